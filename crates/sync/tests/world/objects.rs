//! Objects to put into a world.

use baton_api::names::{FIELD_MANAGER, resource};
use serde_json::{Value, json};

/// An object of the core group in the namespace of the destination.
pub(crate) fn object(kind: &str, name: &str) -> Value {
    let api_version = match kind {
        "Deployment" => "apps/v1",
        "Job" => "batch/v1",
        "ClusterRole" => "rbac.authorization.k8s.io/v1",
        "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
        "Widget" => "example.com/v1",
        _ => "v1",
    };
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "annotations": {}}})
}

/// The same with an annotation.
pub(crate) fn annotated(mut object: Value, name: &str, value: &str) -> Value {
    object["metadata"]["annotations"][name] = json!(value);
    object
}

/// The same in a wave.
pub(crate) fn in_wave(object: Value, wave: i64) -> Value {
    annotated(object, resource::SYNC_WAVE, &wave.to_string())
}

/// The same with sync options.
pub(crate) fn with_options(object: Value, options: &str) -> Value {
    annotated(object, resource::SYNC_OPTIONS, options)
}

/// A Job that runs as a hook.
pub(crate) fn hook(name: &str, phases: &str) -> Value {
    annotated(object("Job", name), resource::HOOK, phases)
}

/// The name our own field manager goes by, as a person must not.
pub(crate) fn our_manager() -> &'static str {
    FIELD_MANAGER
}
