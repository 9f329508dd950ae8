//! One object in one phase of a sync.

use std::sync::Arc;

use baton_api::application_status::{OperationPhase, ResourceResult, ResultCode, SyncPhase};
use baton_api::object::{Object, ResourceKey};
use serde_json::Value;

use crate::hooks::{self, DeletePolicy};

/// One object in one phase of a sync: to be applied, to be pruned, or to run as a hook.
///
/// At least one of `target` and `live` is there; without a target it is a prune.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Which object. The namespace is empty for cluster-scoped kinds.
    pub key: ResourceKey,
    /// The part of the sync it belongs to.
    pub phase: SyncPhase,
    /// Its wave, after all moves.
    pub wave: i64,
    /// As it is wanted.
    pub target: Option<Arc<Value>>,
    /// As it is.
    pub live: Option<Arc<Value>>,
    /// Namespace in results: the destination's where the target states none, whatever its scope.
    pub namespace: String,
    /// Whether the two differ.
    pub modified: bool,
    /// Whether its kind is yet to come, so that nothing can check it.
    pub skip_dry_run: bool,
    /// What was done; unset before.
    pub status: ResultCode,
    /// How far it is; unset while it is pending.
    pub state: OperationPhase,
    /// In words.
    pub message: String,
}

impl Task {
    /// The target, or else the live object.
    pub fn object(&self) -> &Value {
        self.target.as_deref().or(self.live.as_deref()).unwrap_or(&Value::Null)
    }

    /// Whether the object is no longer in the source.
    pub fn is_prune(&self) -> bool {
        self.target.is_none()
    }

    /// Whether it is a hook.
    pub fn is_hook(&self) -> bool {
        hooks::is_hook(self.object())
    }

    /// Whether nothing has been done yet.
    pub fn is_pending(&self) -> bool {
        self.state.is_unset()
    }

    /// Whether it was begun and its outcome is awaited.
    pub fn is_running(&self) -> bool {
        self.state == OperationPhase::Running
    }

    /// Whether it has ended.
    pub fn is_completed(&self) -> bool {
        self.state.is_completed()
    }

    /// Whether it has ended, and not well.
    pub fn is_unsuccessful(&self) -> bool {
        self.is_completed() && self.state != OperationPhase::Succeeded
    }

    /// Whether it is a hook that is deleted on this occasion.
    pub fn has_policy(&self, policy: DeletePolicy) -> bool {
        self.is_hook() && hooks::delete_policies(self.object()).contains(&policy)
    }

    /// Whether the live object is in the way of a hook that is yet to be created.
    pub fn is_in_the_way(&self) -> bool {
        self.live.is_some() && self.is_pending() && self.has_policy(DeletePolicy::BeforeHookCreation)
    }

    /// Whether the live object is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.deletion_timestamp().is_some())
    }

    /// What its result is known by.
    pub fn result_key(&self) -> ResultKey {
        ResultKey { key: self.key.in_namespace(&self.namespace), phase: self.phase.clone() }
    }

    /// `group/kind/name`, as messages name it.
    pub fn named(&self) -> String {
        format!("{}/{}/{}", self.key.group, self.key.kind, self.key.name)
    }

    /// The result as it stands.
    pub fn result(&self) -> ResourceResult {
        let object = self.object();
        ResourceResult {
            group: self.key.group.clone(),
            version: object.version().to_owned(),
            kind: self.key.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.key.name.clone(),
            status: self.status.clone(),
            message: self.message.clone(),
            hook_type: if self.is_hook() { self.phase.as_str().to_owned() } else { String::new() },
            hook_phase: self.state.clone(),
            sync_phase: self.phase.clone(),
            images: images(object),
        }
    }
}

/// What a result is known by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResultKey {
    key: ResourceKey,
    phase: SyncPhase,
}

impl ResultKey {
    /// That of a stored result.
    pub fn of(result: &ResourceResult) -> ResultKey {
        let key = ResourceKey {
            group: result.group.clone(),
            kind: result.kind.clone(),
            namespace: result.namespace.clone(),
            name: result.name.clone(),
        };
        ResultKey { key, phase: result.sync_phase.clone() }
    }
}

/// Where a phase stands in a sync.
pub fn order(phase: &SyncPhase) -> i8 {
    match phase {
        SyncPhase::PreSync => -1,
        SyncPhase::Sync | SyncPhase::Other(_) => 0,
        SyncPhase::PostSync => 1,
        SyncPhase::SyncFail => 2,
    }
}

/// The images of an object's containers, init containers aside.
fn images(object: &Value) -> Vec<String> {
    let paths = [
        "/spec/containers",
        "/spec/template/spec/containers",
        "/spec/jobTemplate/spec/template/spec/containers",
    ];
    let containers = paths.iter().find_map(|path| object.pointer(path)?.as_array());
    let images = containers.into_iter().flatten().filter_map(|container| container["image"].as_str());
    images.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn images_are_found_wherever_pods_are_described() {
        let containers = json!([{"image": "a:1"}, {"name": "none"}, {"image": "b:2"}]);
        let cases = [
            json!({"spec": {"containers": containers}}),
            json!({"spec": {"template": {"spec": {"containers": containers}}}}),
            json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": containers}}}}}}),
        ];
        for object in cases {
            assert_eq!(images(&object), ["a:1", "b:2"], "{object}");
        }
        assert!(images(&json!({"spec": {"containers": 3}})).is_empty());
    }
}
