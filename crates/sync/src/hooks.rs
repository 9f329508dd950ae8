//! Hooks: which objects are, when they run, and when they are deleted.

use baton_api::application_status::SyncPhase;
use baton_api::names::resource::{
    HELM_HOOK, HELM_HOOK_DELETE_POLICY, HOOK, HOOK_DELETE_POLICY, HOOK_FINALIZER,
};
use baton_api::object::Object;
use serde_json::{Value, json};

use crate::options::items;

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookType {
    /// Before a sync.
    PreSync,
    /// During a sync.
    Sync,
    /// After a sync.
    PostSync,
    /// After a failed sync.
    SyncFail,
    /// Never: the object is left out.
    Skip,
    /// Before an Application's resources are deleted.
    PreDelete,
    /// After they were deleted.
    PostDelete,
}

/// When a hook is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletePolicy {
    /// When the operation succeeded.
    HookSucceeded,
    /// When the operation failed.
    HookFailed,
    /// Before it is created anew.
    BeforeHookCreation,
}

/// When an object runs as a hook. Helm's annotation counts only where Argo CD's names no known type.
pub fn types(object: &Value) -> Vec<HookType> {
    let own = annotated(object, HOOK, HookType::of_argo);
    if own.is_empty() { annotated(object, HELM_HOOK, HookType::of_helm) } else { own }
}

/// Whether an object is a hook, of a known type or not. One that is only skipped is none.
pub fn is_hook(object: &Value) -> bool {
    match object.annotation(HOOK) {
        Some(_) => !is_skipped(object),
        None => object.annotation(HELM_HOOK).is_some_and(|value| value != "crd-install"),
    }
}

/// Whether an object is left out of syncs: `Skip` is its only type.
pub fn is_skipped(object: &Value) -> bool {
    types(object) == [HookType::Skip]
}

/// Whether an object is a hook of no known type, which nothing is ever done with.
pub fn is_ignored(object: &Value) -> bool {
    is_hook(object) && types(object).is_empty()
}

/// Whether an object is a hook of this type, by either annotation.
pub fn has_type(object: &Value, wanted: HookType) -> bool {
    annotated(object, HOOK, HookType::of_argo).contains(&wanted)
        || annotated(object, HELM_HOOK, HookType::of_helm).contains(&wanted)
}

/// The phases of a sync that an object takes part in, in their order.
pub fn phases(object: &Value) -> Vec<SyncPhase> {
    if is_skipped(object) {
        return Vec::new();
    }
    if !is_hook(object) {
        return vec![SyncPhase::Sync];
    }
    let mut types = types(object);
    types.sort_unstable();
    types.dedup();
    types.into_iter().filter_map(HookType::phase).collect()
}

/// When a hook is deleted; before it is created anew where nothing valid is said.
pub fn delete_policies(object: &Value) -> Vec<DeletePolicy> {
    let mut policies = annotated(object, HOOK_DELETE_POLICY, DeletePolicy::of_argo);
    policies.extend(annotated(object, HELM_HOOK_DELETE_POLICY, DeletePolicy::of_helm));
    if policies.is_empty() {
        policies.push(DeletePolicy::BeforeHookCreation);
    }
    policies
}

/// Whether a hook is held by the finalizer that keeps it until its outcome is known.
pub fn is_held(object: &Value) -> bool {
    object.finalizers().contains(&HOOK_FINALIZER)
}

/// Puts the finalizer on a hook.
pub fn hold(object: &mut Value) {
    if is_held(object) || !object.is_object() {
        return;
    }
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    match object["metadata"]["finalizers"].as_array_mut() {
        Some(finalizers) => finalizers.push(json!(HOOK_FINALIZER)),
        None => object["metadata"]["finalizers"] = json!([HOOK_FINALIZER]),
    }
}

/// Takes the finalizer off a hook.
pub fn release(object: &mut Value) {
    if let Some(finalizers) = object.pointer_mut("/metadata/finalizers").and_then(Value::as_array_mut) {
        finalizers.retain(|finalizer| finalizer != HOOK_FINALIZER);
    }
}

fn annotated<T>(object: &Value, name: &str, read: fn(&str) -> Option<T>) -> Vec<T> {
    object.annotation(name).map(items).unwrap_or_default().into_iter().filter_map(read).collect()
}

// === impl HookType ===

impl HookType {
    /// The phase of a sync it stands for.
    pub fn phase(self) -> Option<SyncPhase> {
        match self {
            HookType::PreSync => Some(SyncPhase::PreSync),
            HookType::Sync => Some(SyncPhase::Sync),
            HookType::PostSync => Some(SyncPhase::PostSync),
            HookType::SyncFail => Some(SyncPhase::SyncFail),
            HookType::Skip | HookType::PreDelete | HookType::PostDelete => None,
        }
    }

    fn of_argo(word: &str) -> Option<HookType> {
        Some(match word {
            "PreSync" => HookType::PreSync,
            "Sync" => HookType::Sync,
            "PostSync" => HookType::PostSync,
            "SyncFail" => HookType::SyncFail,
            "Skip" => HookType::Skip,
            "PreDelete" => HookType::PreDelete,
            "PostDelete" => HookType::PostDelete,
            _ => return None,
        })
    }

    fn of_helm(word: &str) -> Option<HookType> {
        Some(match word {
            "pre-install" | "pre-upgrade" => HookType::PreSync,
            "post-install" | "post-upgrade" => HookType::PostSync,
            "pre-delete" => HookType::PreDelete,
            "post-delete" => HookType::PostDelete,
            _ => return None,
        })
    }
}

// === impl DeletePolicy ===

impl DeletePolicy {
    fn of_argo(word: &str) -> Option<DeletePolicy> {
        Some(match word {
            "HookSucceeded" => DeletePolicy::HookSucceeded,
            "HookFailed" => DeletePolicy::HookFailed,
            "BeforeHookCreation" => DeletePolicy::BeforeHookCreation,
            _ => return None,
        })
    }

    fn of_helm(word: &str) -> Option<DeletePolicy> {
        Some(match word {
            "hook-succeeded" => DeletePolicy::HookSucceeded,
            "hook-failed" => DeletePolicy::HookFailed,
            "before-hook-creation" => DeletePolicy::BeforeHookCreation,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(annotations: Value) -> Value {
        json!({"metadata": {"annotations": annotations}})
    }

    #[test]
    fn an_object_takes_part_in_the_phases_its_annotations_name() {
        use SyncPhase::{PostSync, PreSync, Sync, SyncFail};
        let cases = [
            (json!({}), vec![Sync]),
            (json!({HOOK: "PreSync"}), vec![PreSync]),
            (json!({HOOK: "PostSync, PreSync,PostSync"}), vec![PreSync, PostSync]),
            (json!({HOOK: "SyncFail,Sync"}), vec![Sync, SyncFail]),
            (json!({HOOK: "presync"}), vec![]),
            (json!({HOOK: "Skip"}), vec![]),
            (json!({HOOK: "Skip,PreSync"}), vec![PreSync]),
            (json!({HOOK: "PreDelete"}), vec![]),
            (json!({HOOK: "PreDelete,PostSync"}), vec![PostSync]),
            (json!({HELM_HOOK: "pre-install,pre-upgrade"}), vec![PreSync]),
            (json!({HELM_HOOK: "post-upgrade"}), vec![PostSync]),
            (json!({HELM_HOOK: "crd-install"}), vec![Sync]),
            (json!({HELM_HOOK: "test"}), vec![]),
            (json!({HOOK: "Sync", HELM_HOOK: "pre-install"}), vec![Sync]),
            (json!({HOOK: "nonsense", HELM_HOOK: "pre-install"}), vec![PreSync]),
        ];
        for (annotations, expected) in cases {
            assert_eq!(phases(&object(annotations.clone())), expected, "{annotations}");
        }
    }

    #[test]
    fn a_hook_of_no_known_type_is_ignored() {
        assert!(is_ignored(&object(json!({HOOK: "Never"}))));
        assert!(is_ignored(&object(json!({HELM_HOOK: "test"}))));
        assert!(!is_ignored(&object(json!({HOOK: "PreDelete"}))));
        assert!(!is_hook(&object(json!({HOOK: "Skip"}))));
    }

    #[test]
    fn a_type_is_found_by_either_annotation() {
        let both = object(json!({HOOK: "PreSync", HELM_HOOK: "post-delete"}));
        assert!(has_type(&both, HookType::PostDelete));
        assert!(!has_type(&both, HookType::PreDelete));
    }

    #[test]
    fn helms_delete_policies_are_added() {
        use DeletePolicy::{BeforeHookCreation, HookFailed, HookSucceeded};
        let cases = [
            (json!({}), vec![BeforeHookCreation]),
            (json!({HOOK_DELETE_POLICY: "never"}), vec![BeforeHookCreation]),
            (json!({HOOK_DELETE_POLICY: "HookSucceeded"}), vec![HookSucceeded]),
            (
                json!({HOOK_DELETE_POLICY: "HookSucceeded", HELM_HOOK_DELETE_POLICY: "hook-failed"}),
                vec![HookSucceeded, HookFailed],
            ),
        ];
        for (annotations, expected) in cases {
            assert_eq!(delete_policies(&object(annotations.clone())), expected, "{annotations}");
        }
    }

    #[test]
    fn a_hook_is_held_once_and_released() {
        let mut hook = json!({"metadata": {"finalizers": ["mine"]}});
        hold(&mut hook);
        hold(&mut hook);
        assert_eq!(hook["metadata"]["finalizers"], json!(["mine", HOOK_FINALIZER]));
        release(&mut hook);
        assert_eq!(hook["metadata"]["finalizers"], json!(["mine"]));
        let mut odd = json!({"metadata": 1});
        hold(&mut odd);
        assert!(is_held(&odd));
    }
}
