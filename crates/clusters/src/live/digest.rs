//! What is taken out of an object when it is seen. Made without any lock, for health may run a script.

use baton_api::health::Health;
use baton_api::object::Object;
use baton_sync::approval::guarded;
use baton_sync::options::Defaults;
use jiff::Timestamp;
use serde_json::Value;

use super::entry::Uid;
use super::packed::Packed;
use crate::settings::Settings;

/// Most images noted of one object.
const MOST_IMAGES: usize = 32;

/// What is kept of an object.
#[derive(Debug)]
pub(crate) struct Digest {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: Uid,
    pub(crate) version: u64,
    pub(crate) owners: Vec<Uid>,
    pub(crate) instance: Option<String>,
    pub(crate) created: Option<Timestamp>,
    pub(crate) health: Option<Health>,
    pub(crate) images: Vec<String>,
    pub(crate) whole: Option<Packed>,
    pub(crate) print: u64,
    pub(crate) guarded: bool,
}

/// Takes out of an object what is to be kept; all of it if it is tracked, guarded or `held`.
pub(crate) fn digest(object: &Value, held: bool, settings: &Settings) -> Digest {
    let owners: Vec<Uid> = object.owners().into_iter().map(Uid::new).collect();
    let instance = match owners.is_empty() {
        true => (settings.instance_of)(object),
        false => None,
    };
    let guarded = is_guarded(object);
    let whole = held || guarded || instance.is_some();
    let counts = whole || !owners.is_empty();
    Digest {
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
        uid: Uid::new(object.uid()),
        version: object.resource_version().parse().unwrap_or(0),
        owners,
        instance,
        created: object.metadata("creationTimestamp").parse().ok(),
        health: counts.then(|| (settings.health)(object)).flatten(),
        images: if counts { images(object) } else { Vec::new() },
        whole: whole.then(|| Packed::new(object)),
        print: if whole { print(object) } else { 0 },
        guarded,
    }
}

/// Whether the object says that a person must approve its deletion.
pub(crate) fn is_guarded(object: &Value) -> bool {
    guarded(Some(object), None, &Defaults::default())
}

/// Of everything a verdict on the object depends on, health aside.
fn print(object: &Value) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = baton_diff::fingerprint(object);
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// Images of the containers of a Pod, or of the Pods an object makes.
fn images(object: &Value) -> Vec<String> {
    let spec = &object["spec"];
    let mut found = Vec::new();
    for pod in [spec, &spec["template"]["spec"], &spec["jobTemplate"]["spec"]["template"]["spec"]] {
        for list in ["initContainers", "containers"] {
            let containers = pod[list].as_array().map_or(&[][..], Vec::as_slice);
            for image in containers.iter().filter_map(|container| container["image"].as_str()) {
                if found.len() < MOST_IMAGES && !found.iter().any(|known| known == image) {
                    found.push(image.to_owned());
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_print_sees_what_a_verdict_depends_on_and_nothing_else() {
        let base = json!({"kind": "A", "metadata": {"name": "a", "resourceVersion": "1", "generation": 1,
            "annotations": {"x": "1"},
            "managedFields": [{"manager": "m", "operation": "Apply", "time": "t1", "fieldsV1": {"f:spec": {}}},
                              {"manager": "k", "operation": "Update", "subresource": "status", "time": "t1"}]},
            "spec": {"a": [1, 2]}, "status": {"ready": 1}});
        let changed = |pointer: &str, value: Value| {
            let mut other = base.clone();
            *other.pointer_mut(pointer).expect("a field") = value;
            print(&other) != print(&base)
        };
        assert!(!changed("/status", json!({"ready": 2})));
        assert!(!changed("/metadata/resourceVersion", json!("2")));
        assert!(!changed("/metadata/generation", json!(2)));
        assert!(!changed("/metadata/managedFields/0/time", json!("t2")));
        assert!(!changed("/metadata/managedFields/1/time", json!("t2")));
        assert!(changed("/metadata/managedFields/0/fieldsV1", json!({"f:spec": {"f:a": {}}})));
        assert!(changed("/metadata/annotations/x", json!("2")));
        assert!(changed("/metadata/annotations", json!({"argocd.argoproj.io/deletion-approved": "true"})));
        assert!(changed("/spec/a/1", json!(3)));
        assert!(changed("/spec/a", json!([2, 1])));
    }

    #[test]
    fn only_what_is_tracked_guarded_or_held_is_kept_whole() {
        let settings = Settings::default();
        let object = |annotations: Value, owners: Value| json!({"metadata": {"name": "a", "annotations": annotations, "ownerReferences": owners}});
        let tracked = json!({"argocd.argoproj.io/tracking-id": "app:/A:n/a"});
        let seen = digest(&object(tracked.clone(), json!([])), false, &settings);
        assert!(seen.whole.is_some() && seen.instance.as_deref() == Some("app"));
        let child = digest(&object(tracked, json!([{"uid": "u"}])), false, &settings);
        assert!(child.whole.is_none() && child.instance.is_none());
        let plain = || object(json!({}), json!([]));
        assert!(digest(&plain(), false, &settings).whole.is_none());
        assert!(digest(&plain(), true, &settings).whole.is_some());
        let guarded = json!({"argocd.argoproj.io/sync-options": "Replace=true, Delete=confirm"});
        assert!(digest(&object(guarded, json!([])), false, &settings).guarded);
    }
}
