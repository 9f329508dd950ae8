//! What has to be taken off an Argo CD's objects when Baton goes, and what must stay for now.

use baton_api::names::baton::{
    ABORT, ADVANCE, COMPARED, DELETION_APPROVED, DELETION_ASKED_BY, GUARD_SUFFIX, PAUSED, PHASES_LABEL, PIN,
    RETRY, ROLLBACK, ROLLBACK_ALL, ROLLOUT, SET_LABEL, SKIP,
};
use serde_json::{Map, Value, json};

use super::installation::{Installation, called};

/// What people have asked Baton for, on a set. Nobody else reads it, and what comes back one day must not act on it.
const REQUESTS: [&str; 8] = [PAUSED, ABORT, RETRY, ADVANCE, ROLLBACK, ROLLBACK_ALL, SKIP, DELETION_APPROVED];

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Change {
    /// As `Application argocd/web`.
    pub(super) object: String,
    pub(super) namespace: String,
    pub(super) name: String,
    /// In words.
    pub(super) what: Vec<String>,
    /// The merge patch, under the version that was read.
    pub(super) patch: Value,
}

/// What is to be done, in this order: Applications, sets, and then what is kept beside them, which nothing needs any more.
#[derive(Debug, Default)]
pub(super) struct Parting {
    pub(super) applications: Vec<Change>,
    pub(super) sets: Vec<Change>,
    /// What a person has to know or do.
    pub(super) left: Vec<String>,
}

/// What follows from what there is.
pub(super) fn plan(installation: &Installation) -> Parting {
    let mut parting = Parting::default();
    for application in &installation.applications {
        let is_ours = !application["metadata"]["labels"][SET_LABEL].is_null()
            || !application["metadata"]["annotations"][PIN].is_null()
            || owners(application).any(is_guard);
        let set = installation.sets.iter().find(|set| owns(set, application));
        // Of an earlier run of this, which left it to a person, the marks are gone.
        let is_left = set.is_some_and(|set| is_ordered(set) && is_held(application));
        if !is_ours && !is_left {
            continue;
        }
        let Some(set) = set else {
            // Without its guard it would be nobody's, and the garbage collector would take it.
            if owners(application).any(is_guard) {
                parting.left.push(format!(
                    "{} is left as it is: its ApplicationSet is gone, and without Baton's guard it would be deleted; keep it by \
                     taking both ownerReferences away, or delete it",
                    called(application)
                ));
            }
            continue;
        };
        let (automated, left) = automated(set, application);
        parting.left.extend(left);
        parting.applications.extend(release(application, automated));
    }
    for set in &installation.sets {
        parting.sets.extend(silence(set));
    }
    parting
}

/// Whether an object is kept beside a set by Baton.
pub(super) fn is_kept_beside(object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    let owned = owners(object).any(|owner| owner["kind"] == "ApplicationSet");
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    !labels[PHASES_LABEL].is_null() && owned
        || !labels[SET_LABEL].is_null()
            && [GUARD_SUFFIX, ".baton-witness"].iter().any(|end| name.ends_with(end))
}

/// Whether an Application still depends on a guard.
pub(super) fn is_guarded(application: &Value) -> bool {
    owners(application).any(is_guard)
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}

fn is_guard(owner: &Value) -> bool {
    owner["kind"] == "ConfigMap" && owner["name"].as_str().is_some_and(|name| name.ends_with(GUARD_SUFFIX))
}

fn owns(set: &Value, application: &Value) -> bool {
    set["metadata"]["namespace"] == application["metadata"]["namespace"]
        && owners(application).any(|owner| owner["uid"] == set["metadata"]["uid"])
}

/// Whether a set decides when its Applications are synced.
fn is_ordered(set: &Value) -> bool {
    set["spec"]["strategy"]["type"] == "RollingSync"
        || set["spec"]["generators"].to_string().contains("\"deploymentStrategy\"")
}

/// Whether automated sync is switched off in its place.
fn is_held(application: &Value) -> bool {
    application["spec"]["syncPolicy"]["automated"]["enabled"] == false
}

fn change(object: &Value, what: Vec<String>, mut patch: Value) -> Option<Change> {
    let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
    patch["metadata"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
    patch["metadata"]["uid"] = object["metadata"]["uid"].clone();
    Some(Change { object: called(object), namespace: text("namespace")?, name: text("name")?, what, patch })
}

/// An Application without what is Baton's.
fn release(application: &Value, automated: Option<Value>) -> Option<Change> {
    let metadata = &application["metadata"];
    let mut what = Vec::new();
    let mut patch = json!({"metadata": {}});
    if !metadata["labels"][SET_LABEL].is_null() || !metadata["annotations"][PIN].is_null() {
        patch["metadata"]["labels"] = json!({SET_LABEL: null});
        patch["metadata"]["annotations"] = json!({PIN: null, COMPARED: null, DELETION_ASKED_BY: null});
        what.push("its marks go".to_owned());
    }
    if owners(application).any(is_guard) {
        let rest: Vec<&Value> = owners(application).filter(|owner| !is_guard(owner)).collect();
        patch["metadata"]["ownerReferences"] = json!(rest);
        what.push("its guard goes".to_owned());
    }
    if let Some(automated) = automated {
        patch["spec"] = json!({"syncPolicy": {"automated": automated}});
        what.push("automated is as in the template".to_owned());
    }
    if what.is_empty() { None } else { change(application, what, patch) }
}

/// A set without its head, and without what was asked of Baton.
fn silence(set: &Value) -> Option<Change> {
    let annotations = &set["metadata"]["annotations"];
    let mut what = Vec::new();
    if !annotations[ROLLOUT].is_null() {
        what.push("the head of its rollout goes".to_owned());
    }
    let asked: Vec<&str> = REQUESTS.into_iter().filter(|name| !annotations[*name].is_null()).collect();
    if !asked.is_empty() {
        what.push(format!("what was asked of Baton goes ({})", asked.join(", ")));
    }
    if annotations[PAUSED] == "true" {
        what.push("it was paused, and the next controller knows of no pause".to_owned());
    }
    let gone: Map<String, Value> =
        asked.into_iter().chain([ROLLOUT]).map(|name| (name.to_owned(), Value::Null)).collect();
    let patch = json!({"metadata": {"annotations": gone}});
    if what.is_empty() { None } else { change(set, what, patch) }
}

/// What makes `automated` as the template has it, where that starts nothing; otherwise what is to be said.
fn automated(set: &Value, application: &Value) -> (Option<Value>, Option<String>) {
    let live = &application["spec"]["syncPolicy"]["automated"];
    let wanted = &set["spec"]["template"]["spec"]["syncPolicy"]["automated"];
    if live == wanted || !application["metadata"]["deletionTimestamp"].is_null() {
        return (None, None);
    }
    let elsewhere = set["spec"]["templatePatch"].as_str().is_some_and(|text| text.contains("automated"))
        || set["spec"]["generators"].to_string().contains("\"automated\"");
    if elsewhere {
        let left = format!(
            "{}: automated is not looked at, for templatePatch or a generator's template speak of it; the next ApplicationSet \
             controller writes it",
            called(application)
        );
        return (None, Some(left));
    }
    let Some(block) = wanted.as_object() else { return (None, None) };
    let status = &application["status"];
    let at_rest = status["sync"]["status"] == "Synced"
        && application["operation"].is_null()
        && status["operationState"]["phase"] != "Running";
    if !at_rest && wanted["enabled"] != false {
        let left = format!(
            "{} stays without automated sync: it is {} and would be synced at once; sync it, or leave it to the next \
             ApplicationSet controller, then run this again",
            called(application),
            status["sync"]["status"].as_str().unwrap_or("not compared")
        );
        return (None, Some(left));
    }
    let mut patch: Map<String, Value> = block.clone();
    for key in live.as_object().into_iter().flatten().map(|(key, _)| key) {
        patch.entry(key.clone()).or_insert(Value::Null);
    }
    (Some(Value::Object(patch)), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(automated: Value) -> Value {
        json!({
            "kind": "ApplicationSet", "metadata": {"name": "web", "namespace": "argocd", "uid": "s"},
            "spec": {"generators": [{"list": {}}], "template": {"spec": {"syncPolicy": {"automated": automated}}}},
        })
    }

    fn application(owners: Value, sync: &str) -> Value {
        json!({
            "kind": "Application",
            "metadata": {
                "name": "a", "namespace": "argocd", "uid": "u", "resourceVersion": "7", "ownerReferences": owners,
                "labels": {SET_LABEL: "web", "env": "dev"}, "annotations": {PIN: "s/1/1/x"},
            },
            "spec": {"syncPolicy": {"automated": {"enabled": false, "prune": true}}},
            "status": {"sync": {"status": sync}},
        })
    }

    fn owner() -> Value {
        json!({"kind": "ApplicationSet", "name": "web", "uid": "s"})
    }

    fn guard() -> Value {
        json!({"kind": "ConfigMap", "name": "web.baton-rollout", "uid": "g"})
    }

    fn planned(sets: &[Value], application: Value) -> Parting {
        let installation =
            Installation { sets: sets.to_vec(), applications: vec![application], ..Installation::default() };
        plan(&installation)
    }

    #[test]
    fn marks_and_guards_go_under_the_version_that_was_read() {
        let parting =
            planned(&[set(json!({"prune": true}))], application(json!([owner(), guard()]), "Synced"));
        assert_eq!(parting.left, [""; 0]);
        assert_eq!(
            parting.applications[0].patch,
            json!({
                "metadata": {
                    "uid": "u", "resourceVersion": "7", "ownerReferences": [owner()],
                    "labels": {SET_LABEL: null},
                    "annotations": {PIN: null, COMPARED: null, DELETION_ASKED_BY: null},
                },
                "spec": {"syncPolicy": {"automated": {"prune": true, "enabled": null}}},
            })
        );
    }

    #[test]
    fn what_was_asked_of_baton_goes_and_what_was_set_for_good_stays() {
        let mut asked = set(Value::Null);
        asked["metadata"]["resourceVersion"] = "9".into();
        asked["metadata"]["annotations"] = json!({
            ROLLOUT: "{}", PAUSED: "true", SKIP: "a=x", "baton.dev/deletion-fuse": "30%", "team": "a",
        });
        let installation = Installation { sets: vec![asked], ..Installation::default() };
        let parting = plan(&installation);
        let annotations = json!({ROLLOUT: null, PAUSED: null, SKIP: null});
        assert_eq!(
            parting.sets[0].patch,
            json!({"metadata": {"uid": "s", "resourceVersion": "9", "annotations": annotations}})
        );
        let told = parting.sets[0].what.join("; ");
        assert!(told.contains("baton.dev/paused, baton.dev/skip") && told.contains("no pause"), "{told}");
        let plain = Installation { sets: vec![set(Value::Null)], ..Installation::default() };
        assert!(plan(&plain).sets.is_empty());
    }

    #[test]
    fn automated_comes_back_only_where_it_starts_nothing() {
        for (wanted, sync, restored, told) in [
            (json!({"prune": true}), "Synced", true, false),
            (json!({"prune": true}), "OutOfSync", false, true),
            (json!({"prune": true, "enabled": true}), "Unknown", false, true),
            (json!({"prune": true, "enabled": false}), "OutOfSync", false, false),
            (json!({"prune": false, "enabled": false}), "OutOfSync", true, false),
            (Value::Null, "Synced", false, false),
        ] {
            let parting = planned(&[set(wanted.clone())], application(json!([owner()]), sync));
            let patch = &parting.applications[0].patch;
            assert_eq!(!patch["spec"].is_null(), restored, "{wanted} {sync}: {patch}");
            assert_eq!(!parting.left.is_empty(), told, "{wanted} {sync}: {:?}", parting.left);
        }
        let mut patched = set(json!({"prune": true}));
        patched["spec"]["templatePatch"] = "spec: {syncPolicy: {automated: {}}}".into();
        let parting = planned(&[patched], application(json!([owner()]), "Synced"));
        assert!(parting.applications[0].patch["spec"].is_null());
        assert!(parting.left[0].contains("templatePatch"));
    }

    #[test]
    fn what_an_earlier_run_has_left_to_a_person_is_finished_by_the_next() {
        let mut without_marks = application(json!([owner()]), "Synced");
        without_marks["metadata"]["labels"] = json!({"env": "dev"});
        without_marks["metadata"]["annotations"] = Value::Null;
        let plain = set(json!({"prune": true}));
        assert!(
            planned(std::slice::from_ref(&plain), without_marks.clone()).applications.is_empty(),
            "no set of ours"
        );
        let mut ordered = plain;
        ordered["spec"]["strategy"] = json!({"type": "RollingSync", "rollingSync": {"steps": []}});
        let parting = planned(&[ordered.clone()], without_marks.clone());
        assert_eq!(parting.applications[0].what, ["automated is as in the template"]);
        without_marks["status"]["sync"]["status"] = "OutOfSync".into();
        let parting = planned(&[ordered], without_marks);
        assert!(parting.applications.is_empty() && parting.left.len() == 1, "{:?}", parting.left);
    }

    #[test]
    fn what_would_be_nobodys_is_left_alone() {
        for owners in [json!([guard()]), json!([owner(), guard()])] {
            let parting = planned(&[], application(owners, "Synced"));
            assert!(parting.applications.is_empty());
            assert!(parting.left[0].contains("its ApplicationSet is gone"), "{:?}", parting.left);
        }
    }
}
