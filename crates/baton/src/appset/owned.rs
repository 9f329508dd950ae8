//! The Applications of a set, as explanations and plans need them.

use std::collections::BTreeMap;

use baton_rollout::explain::Known;
use serde_json::Value;

pub(super) fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// What an explanation needs to know of Applications, by name.
pub(super) fn known(applications: &[Value]) -> BTreeMap<String, Known> {
    let one = |object: &Value| {
        let metadata = &object["metadata"];
        let finalizers = metadata["finalizers"].as_array().into_iter().flatten();
        Known {
            uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
            labels: labels(object),
            terminating: metadata["deletionTimestamp"].as_str().and_then(|time| time.parse().ok()),
            finalizers: finalizers.filter_map(|name| name.as_str().map(str::to_owned)).collect(),
        }
    };
    applications.iter().map(|object| (name_of(object), one(object))).collect()
}

pub(super) fn labels(application: &Value) -> BTreeMap<String, String> {
    let labels = application["metadata"]["labels"].as_object();
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    labels.into_iter().flatten().filter_map(text).collect()
}
