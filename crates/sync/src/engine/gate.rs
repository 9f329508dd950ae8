//! The gate before deletions, and how an object is applied without a way round it.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_api::names::FIELD_MANAGER;
use baton_api::names::application::CLIENT_SIDE_APPLY_MIGRATION_MANAGER;
use baton_api::object::{Object, ResourceKey};
use jiff::Timestamp;
use serde_json::Value;

use super::Engine;
use crate::action::{Apply, Delete, ServerSide};
use crate::approval::{self, Purpose};
use crate::hooks;
use crate::observation::GateScope;
use crate::options::Options;
use crate::order::is_namespace;
use crate::task::Task;
use crate::tracking::is_crd;

/// Field manager of `kubectl apply`.
const KUBECTL: &str = "kubectl-client-side-apply";

impl Engine<'_> {
    /// What still needs approval before anything may be deleted: of the whole operation, or of these tasks.
    pub(super) fn unapproved(&self, wave: &[usize]) -> Vec<ResourceKey> {
        let all: Vec<usize> = (0..self.tasks.len()).collect();
        let judged = match self.world.settings.gate {
            GateScope::Operation => &all,
            GateScope::Wave => wave,
        };
        let mut seen = BTreeSet::new();
        let mut keys = Vec::new();
        for task in judged.iter().map(|index| &self.tasks[*index]).filter(|task| task.is_pending()) {
            keys.extend(self.unapproved_of(task).into_iter().filter(|key| seen.insert(key.clone())));
        }
        keys
    }

    fn unapproved_of(&self, task: &Task) -> Vec<ResourceKey> {
        let Some(live) = task.live.as_deref() else { return Vec::new() };
        if task.is_prune() {
            if self.prune_refusal(task).is_some() || task.is_terminating() {
                return Vec::new();
            }
            let needs = approval::needs(live, Purpose::Prune, &self.defaults());
            let own = needs && !approval::approved(live, None, &self.approvals());
            return own.then(|| task.key.clone()).into_iter().chain(self.unapproved_inside(live)).collect();
        }
        if task.is_hook() {
            return self.turns_guarded(task).then(|| task.key.clone()).into_iter().collect();
        }
        let recreated = self.denied.contains(&task.key) || self.is_sure_to_be_recreated(task);
        if recreated && self.is_protected(task) { vec![task.key.clone()] } else { Vec::new() }
    }

    /// Whether a hook would take the place of an object that is none and needs approval: as a hook it would go by the
    /// hook's policies, which ask nobody.
    pub(super) fn turns_guarded(&self, task: &Task) -> bool {
        let Some(live) = task.live.as_deref() else { return false };
        task.is_hook()
            && task.is_pending()
            && !self.request.sync.dry_run
            && !hooks::is_hook(live)
            && approval::guarded(Some(live), None, &self.defaults())
            && !approval::approved(live, None, &self.approvals())
    }

    /// What a namespace holds that needs approval, of whichever Application: it goes down with the namespace.
    fn unapproved_inside(&self, live: &Value) -> Vec<ResourceKey> {
        if !is_namespace(live) {
            return Vec::new();
        }
        let is_own = |object: &Value| {
            let owner = self.world.settings.tracking.owner_of(object);
            owner.as_deref() == Some(self.world.instance)
        };
        let inside = (self.world.guarded_in_namespace)(live.name());
        approval::unapproved_inside(&inside, is_own, &self.approvals())
    }

    /// Whether an object must not be deleted on the way to being applied.
    pub(super) fn is_protected(&self, task: &Task) -> bool {
        let (Some(live), false) = (task.live.as_deref(), task.is_hook()) else { return false };
        let target = task.target.as_deref();
        approval::guarded(Some(live), target, &self.defaults())
            && !approval::approved(live, target, &self.approvals())
    }

    fn is_sure_to_be_recreated(&self, task: &Task) -> bool {
        task.live.is_some() && self.replaces(task) && self.forces(task)
    }

    /// Whether anything of the operation waits for approval, so that nothing of it may be deleted, however.
    pub(super) fn is_shut(&self) -> bool {
        !self.unapproved(&[]).is_empty()
    }

    /// How an object is applied; `shut` says whether the gate is.
    pub(super) fn apply_of(&self, task: &Task, dry_run: bool, shut: bool) -> Apply {
        let target = task.target.clone().unwrap_or_else(|| Arc::new(Value::Null));
        let own = Options::of(&target);
        Apply {
            live: task.live.clone(),
            dry_run: dry_run || self.request.sync.dry_run,
            validate: !self.request.has("Validate=false") && !own.has("Validate=false"),
            replace: self.replaces(task),
            force: self.forces(task),
            server_side: self.server_side(&own),
            migrate_from: self.migrates_from(),
            guarded: self.is_protected(task) || (shut && task.live.is_some() && !task.is_hook()),
            create_only: task.is_hook() && task.live.is_none() && !dry_run,
            object: target,
        }
    }

    fn replaces(&self, task: &Task) -> bool {
        self.request.has("Replace=true") || says(task, "Replace=true")
    }

    /// Whether an object may be deleted and created anew.
    ///
    /// Never a Namespace or a CustomResourceDefinition, with which all would go that they hold; nor an object that this
    /// operation created, which was created anew already.
    fn forces(&self, task: &Task) -> bool {
        let object = task.object();
        (self.request.force() || says(task, "Force=true"))
            && !is_namespace(object)
            && !is_crd(object)
            && !task.live.as_deref().is_some_and(|live| self.was_created(live))
    }

    /// Whether an object was created since the operation began.
    fn was_created(&self, live: &Value) -> bool {
        self.is_since(live.metadata("creationTimestamp"))
    }

    /// Whether an object was created since the operation began, or written by us.
    pub(super) fn was_written(&self, live: &Value) -> bool {
        let entries = live["metadata"]["managedFields"].as_array().map_or(&[][..], Vec::as_slice);
        let mut ours = entries.iter().filter(|entry| entry["manager"] == FIELD_MANAGER);
        self.was_created(live) || ours.any(|entry| self.is_since(entry["time"].as_str().unwrap_or_default()))
    }

    fn is_since(&self, time: &str) -> bool {
        let time: Option<Timestamp> = time.parse().ok();
        time.is_some_and(|time| time.as_second() >= self.request.started_at.as_second())
    }

    fn server_side(&self, own: &Options<'_>) -> ServerSide {
        if own.has("ServerSideApply=false") {
            ServerSide::Refused
        } else if own.has("ServerSideApply=true") || self.request.has("ServerSideApply=true") {
            ServerSide::Asked
        } else if self.request.has("ServerSideApply=false") {
            ServerSide::Refused
        } else {
            ServerSide::Default
        }
    }

    fn migrates_from(&self) -> Option<String> {
        if self.request.has("ClientSideApplyMigration=false") {
            return None;
        }
        let annotations = self.world.application.metadata.annotations.as_ref();
        let named = annotations.and_then(|all| all.get(CLIENT_SIDE_APPLY_MIGRATION_MANAGER));
        Some(named.filter(|name| !name.is_empty()).map_or(KUBECTL, String::as_str).to_owned())
    }

    /// How a live object is deleted. One that was judged must not have changed since.
    pub(super) fn delete_of(&self, task: &Task, judged: bool) -> Delete {
        let live = task.live.as_deref().unwrap_or(&Value::Null);
        let version = live.resource_version();
        Delete {
            key: task.key.clone(),
            api_version: live.api_version().to_owned(),
            uid: live.uid().to_owned(),
            resource_version: (judged && !version.is_empty()).then(|| version.to_owned()),
            propagation: self.request.propagation(),
        }
    }
}

/// Whether the target or the live object has an option.
fn says(task: &Task, option: &str) -> bool {
    [&task.target, &task.live].into_iter().flatten().any(|object| Options::of(object).has(option))
}
