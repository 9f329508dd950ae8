//! Which changes make a pass worth while.

use std::collections::BTreeMap;

use baton_api::names::application::NOTIFIED;
use baton_api::names::application_set::REFRESH;
use baton_api::names::baton::ROLLOUT;

use crate::cache::{ApplicationChange, Held, ObjectKey, SetChange};

/// Whether a change of a set needs a pass. Its status is this controller's own and needs none.
pub(crate) fn set_changed(change: &SetChange) -> bool {
    let (Some(before), Some(after)) = (&change.before, &change.after) else { return true };
    let (Held::Whole(before), Held::Whole(after)) = (before, after) else { return true };
    let (old, new) = (&before.metadata, &after.metadata);
    if old.uid != new.uid || old.deletion_timestamp != new.deletion_timestamp {
        return true;
    }
    if old.labels != new.labels || old.finalizers != new.finalizers || before.spec != after.spec {
        return true;
    }
    let (none, also_none) = (Default::default(), Default::default());
    let old = old.annotations.as_ref().unwrap_or(&none);
    let new = new.annotations.as_ref().unwrap_or(&also_none);
    // The removal of the request is this controller's own, and so is the head of a rollout; what people were told decides
    // nothing. Other changes beside them still count.
    let refreshed = old.contains_key(REFRESH) && !new.contains_key(REFRESH);
    let counts = |key: &str| key != ROLLOUT && key != NOTIFIED && !(refreshed && key == REFRESH);
    let told = |all: &BTreeMap<String, String>| -> Vec<(String, String)> {
        let told = all.iter().filter(|(key, _)| counts(key));
        told.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    old != new && told(old) != told(new)
}

/// The set that needs a pass for a change of one of its Applications. Verdicts need none: an order that waits for them
/// is woken by itself.
pub(crate) fn application_changed(change: &ApplicationChange) -> Option<&ObjectKey> {
    match change {
        ApplicationChange::Content { owner } | ApplicationChange::Removed { owner } => Some(owner),
        ApplicationChange::Status { .. } | ApplicationChange::Added { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::cache::{Applications, Observed, Sets};
    use crate::guarded::Guarded;
    use baton_api::ApplicationSet;
    use serde::Deserialize;
    use serde_json::{Value, json};

    /// Changes that wake a set here and not in Argo CD, or the other way round, and why.
    const DIFFERENT: &[(&str, &str, bool, &str)] = &[
        ("Application", "refresh asked for", false, "the set leaves the annotation alone anyway"),
        ("Application", "owner changed", true, "an Application that was taken away is taken back"),
        ("Application", "empty list added", true, "the pass finds that nothing is to be done"),
        (
            "ApplicationSet",
            "refresh done and another annotation changed",
            true,
            "the other annotation counts",
        ),
    ];

    #[test]
    fn sets_are_woken_by_the_changes_that_wake_argo_cd() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/triggers");
        let read = |file: &str| {
            let text = std::fs::read_to_string(directory.join(file)).expect("a file");
            baton_grammar::yaml::documents(&text).expect("YAML")
        };
        let objects = read("objects.yaml");
        let cases = read("triggers.yaml").remove(0);
        let mut wrong = Vec::new();
        for case in cases.as_array().expect("a list") {
            let kind = case["kind"].as_str().expect("a kind");
            let name = case["name"].as_str().expect("a name");
            let object = objects.iter().find(|object| object["kind"] == kind).expect("an object");
            let (from, to) = (state(object, &case["from"], 1), state(object, &case["to"], 2));
            let found = match kind {
                "Application" => application_wakes(from, to),
                _ => set_wakes(from, to),
            };
            let different = DIFFERENT.iter().find(|(of, which, ..)| (*of, *which) == (kind, name));
            let expected = different.map_or(case["wakes"] == true, |(_, _, wakes, _)| *wakes);
            if found != expected {
                wrong.push(format!("{kind}, {name}: wakes {found}"));
            }
        }
        assert_eq!(wrong, Vec::<String>::new());
    }

    /// An object with what differs, or none.
    fn state(object: &Value, changes: &Value, version: u64) -> Option<Value> {
        let changes = changes.as_object()?;
        let mut object = object.clone();
        object["metadata"]["uid"] = "uid".into();
        if object["kind"] == "Application" {
            object["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "s", "uid": "u", "controller": true,
            }]);
        }
        for (path, value) in changes {
            let mut place = &mut object;
            let mut rest = path.as_str();
            // Keys of annotations hold slashes themselves; below three levels nothing else is nested.
            for _ in 0..2 {
                if let Some((part, more)) = rest.split_once('/') {
                    place = &mut place[part];
                    rest = more;
                }
            }
            match value {
                // Its name, a bare `y`, is a boolean to every reader of YAML 1.1.
                Value::Array(_) if rest == "ownerReferences" => {
                    place[rest] = json!([{"apiVersion": "v1", "kind": "X", "name": "y", "uid": "u"}]);
                }
                Value::Null => drop(place.as_object_mut().map(|fields| fields.remove(rest))),
                _ => place[rest] = value.clone(),
            }
        }
        object["metadata"]["resourceVersion"] = version.to_string().into();
        Some(object)
    }

    fn application_wakes(from: Option<Value>, to: Option<Value>) -> bool {
        let mut applications = Applications::default();
        let read = |value: &Value| Observed::deserialize(value).expect("an Application");
        if let Some(from) = &from {
            applications.applied(read(from));
        }
        let changes = match (&from, &to) {
            (_, Some(to)) => applications.applied(read(to)),
            (Some(from), None) => applications.deleted(&read(from)),
            (None, None) => Vec::new(),
        };
        changes.iter().any(|change| application_changed(change).is_some())
    }

    fn set_wakes(from: Option<Value>, to: Option<Value>) -> bool {
        let mut sets = Sets::default();
        let read = |value: &Value| Guarded::<ApplicationSet>::of(value).expect("a set");
        if let Some(from) = &from {
            sets.applied(read(from));
        }
        let change = match (&from, &to) {
            (_, Some(to)) => sets.applied(read(to)),
            (Some(from), None) => sets.deleted(kube::Resource::meta(&read(from))),
            (None, None) => None,
        };
        change.is_some_and(|change| set_changed(&change))
    }

    #[test]
    fn a_change_that_a_read_has_shown_before_the_watch_did_still_counts() {
        let set = |version: &str, label: &str| {
            json!({
                "metadata": {"name": "s", "namespace": "n", "uid": "u", "resourceVersion": version, "labels": {"a": label}},
                "spec": {},
            })
        };
        let read = |value: &Value| Guarded::<ApplicationSet>::of(value).expect("a set");
        let key = ObjectKey::new("n", "s");
        let mut sets = Sets::default();
        sets.applied(read(&set("1", "old")));
        sets.learn_raw(&key, &set("2", "new"));
        sets.fold_raw(&key, &set("3", "new"));
        assert!(sets.applied(read(&set("2", "new"))).is_none(), "it is newer already");
        assert!(sets.applied(read(&set("3", "new"))).is_some_and(|change| set_changed(&change)));
        assert!(
            !sets.applied(read(&set("4", "new"))).is_some_and(|change| set_changed(&change)),
            "it was told"
        );
    }

    #[test]
    fn an_annotation_changed_beside_a_granted_refresh_counts() {
        let set = |annotations: Value, version: &str| {
            Some(json!({
                "metadata": {"name": "s", "namespace": "n", "uid": "u", "resourceVersion": version, "annotations": annotations},
                "spec": {},
            }))
        };
        let asked = || set(json!({"a": "1", (REFRESH): "true"}), "1");
        assert!(!set_wakes(asked(), set(json!({"a": "1"}), "2")));
        assert!(set_wakes(asked(), set(json!({"a": "2"}), "2")));
        assert!(set_wakes(asked(), set(json!({"a": "1", "b": "1"}), "2")));
        assert!(set_wakes(asked(), set(json!({}), "2")));
    }

    #[test]
    fn what_people_were_told_of_a_set_wakes_nobody() {
        let set = |annotations: Value, version: &str| {
            Some(json!({
                "metadata": {"name": "s", "namespace": "n", "uid": "u", "resourceVersion": version, "annotations": annotations},
                "spec": {},
            }))
        };
        assert!(!set_wakes(set(json!({}), "1"), set(json!({(NOTIFIED): "{}"}), "2")));
        assert!(set_wakes(set(json!({}), "1"), set(json!({(NOTIFIED): "{}", "a": "1"}), "2")));
    }
}
