//! What a comparison means for each resource of an Application and for the whole.

use std::sync::Arc;

use baton_api::Application;
use baton_api::application_status::{HealthStatus, OperationState, ResourceStatus, SyncCode};
use baton_api::health::Health;
use baton_api::names::resource::COMPARE_OPTIONS;
use baton_api::object::{Object, ResourceKey};
use jiff::Timestamp;
use serde_json::Value;

use crate::app_health::{self, AppHealth};
use crate::approval::{self, Approvals, Purpose};
use crate::conditions::{COMPARISON_ERROR, Finding};
use crate::deletion::Guard;
use crate::hooks;
use crate::observation::HealthOf;
use crate::options::items;
use crate::project::ProjectRules;
use crate::refresh::namespace_metadata_changed;
use crate::targets::{Kinds, Pair};
use crate::tracking::Tracking;
use crate::wave;

/// The largest whole number that every reader of JSON holds exactly.
const LARGEST_WAVE: i64 = (1 << 53) - 1;

/// What source and cluster hold, side by side.
#[derive(Clone, Copy)]
pub struct Comparison<'a> {
    /// The Application.
    pub application: &'a Application,
    /// Every object, as it is wanted and as it is. Live objects the project does not permit are not among them.
    pub pairs: &'a [Pair],
    /// Hooks of a sync's phases, as they are wanted.
    pub hooks: &'a [Arc<Value>],
    /// What the cluster serves.
    pub kinds: Kinds<'a>,
    /// What the project permits.
    pub project: &'a ProjectRules,
    /// How objects are marked.
    pub tracking: &'a Tracking,
    /// How an object fares.
    pub health: HealthOf<'a>,
    /// Whether source or cluster could not be read or compared in full: then nothing can be said.
    pub failed: bool,
    /// The time.
    pub now: Timestamp,
}

/// What a comparison found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Rows of `status.resources`, in its order.
    pub resources: Vec<ResourceStatus>,
    /// Whether the cluster matches the source.
    pub sync: SyncCode,
    /// Health of the whole.
    pub health: Health,
    /// What is worth a condition.
    pub found: Vec<Finding>,
}

/// Judges a comparison.
pub fn judge(comparison: &Comparison<'_>) -> Found {
    let AppHealth { whole, parts, error } =
        app_health::aggregate(comparison.application, comparison.pairs, comparison.health);
    let guard = Guard::of(comparison.application);
    let mut sync = SyncCode::Synced;
    let mut resources = Vec::with_capacity(comparison.pairs.len());
    for (pair, health) in comparison.pairs.iter().zip(parts) {
        let Some(object) = pair.live.as_deref().or(pair.target.as_deref()) else {
            continue;
        };
        let mut row = row(comparison, &guard, pair, object);
        if row.status == SyncCode::OutOfSync && !is_tolerated(pair, object) {
            sync = SyncCode::OutOfSync;
        }
        let namespaced = matches!(
            (comparison.kinds)(object.api_version(), object.kind()), Ok(Some(info)) if info.namespaced);
        let permitted =
            comparison.project.permits_kind(object.group(), object.kind(), object.name(), namespaced);
        if comparison.failed || !permitted {
            row.status = SyncCode::Unknown;
        }
        row.health = health.map(|health| HealthStatus {
            status: health.code,
            message: health.message,
            last_transition_time: None,
        });
        resources.push(row);
    }
    if comparison.failed {
        sync = SyncCode::Unknown;
    } else if namespace_metadata_changed(comparison.application) {
        sync = SyncCode::OutOfSync;
    }
    resources.sort_by_cached_key(|row: &ResourceStatus| {
        format!("{}/{}/{}/{}", row.group, row.kind, row.namespace, row.name)
    });
    let error = error.map(|why| Finding::new(COMPARISON_ERROR, format!("error setting app health: {why}")));
    Found { resources, sync, health: whole, found: error.into_iter().collect() }
}

/// A row without health. What is not permitted or could not be read is the caller's business.
fn row(comparison: &Comparison<'_>, guard: &Guard<'_>, pair: &Pair, object: &Value) -> ResourceStatus {
    let (target, live) = (pair.target.as_deref(), pair.live.as_deref());
    let own = comparison.tracking.refers_to_itself(live, target);
    let hook = hooks::is_hook(object);
    let requires_pruning = target.is_none() && live.is_some() && own;
    let defaults = approval::spec_defaults(comparison.application);
    let pending_prune = requires_pruning && !hook;
    ResourceStatus {
        group: object.group().to_owned(),
        version: object.version().to_owned(),
        kind: object.kind().to_owned(),
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
        status: status(comparison.application, pair, hook || !own),
        health: None,
        hook,
        requires_pruning,
        // Beyond this the API takes no whole number.
        sync_wave: wave_of(comparison, pair, object).clamp(-LARGEST_WAVE, LARGEST_WAVE),
        requires_deletion_confirmation: approval::guarded(live, target, &defaults),
        requires_deletion_approval: live.is_some_and(|live| {
            (awaits_prune_approval(comparison, live) && (pending_prune || is_asked_for(comparison, live)))
                || guard.awaits_approval(live, comparison.now)
        }),
    }
}

/// Unset for what takes no part in a sync as a resource.
fn status(application: &Application, pair: &Pair, apart: bool) -> SyncCode {
    let target = pair.target.as_deref();
    if apart || target.is_some_and(hooks::is_skipped) {
        return SyncCode::default();
    }
    // The namespace that a sync will create is no difference.
    let created =
        pair.live.is_none() && target.is_some_and(|target| is_managed_namespace(application, target));
    let differs = pair.modified || target.is_none() || pair.live.is_none();
    if differs && !created { SyncCode::OutOfSync } else { SyncCode::Synced }
}

/// Whether an object is the namespace whose metadata the Application manages.
pub fn is_managed_namespace(application: &Application, object: &Value) -> bool {
    let policy = application.spec.sync_policy.as_ref();
    object.kind() == "Namespace"
        && object.group().is_empty()
        && object.name() == application.spec.destination.namespace
        && policy.is_some_and(|policy| policy.managed_namespace_metadata.is_some())
}

/// Whether an object that is no longer in the source says itself that it does not matter.
fn is_tolerated(pair: &Pair, object: &Value) -> bool {
    let options = object.annotation(COMPARE_OPTIONS).map(items).unwrap_or_default();
    pair.target.is_none() && options.contains(&"IgnoreExtraneous")
}

/// The wave of the target; of a live hook, that of the hook in the source.
fn wave_of(comparison: &Comparison<'_>, pair: &Pair, object: &Value) -> i64 {
    if let Some(target) = &pair.target {
        return wave::of(target);
    }
    let same = |hook: &&Arc<Value>| {
        (hook.kind(), hook.namespace(), hook.name()) == (object.kind(), object.namespace(), object.name())
    };
    comparison.hooks.iter().find(same).filter(|_| hooks::is_hook(object)).map_or(0, |hook| wave::of(hook))
}

/// Whether pruning an object waits for a person: it asks for approval and has none for the running sync. Without one
/// the next will wait.
fn awaits_prune_approval(comparison: &Comparison<'_>, live: &Value) -> bool {
    let application = comparison.application;
    let running = application.status.operation_state.as_ref().filter(|state| !state.phase.is_completed());
    let sync = running.and_then(|state| state.operation.sync.as_ref());
    let defaults = match sync {
        Some(sync) => approval::sync_defaults(application, sync),
        None => approval::spec_defaults(application),
    };
    approval::needs(live, Purpose::Prune, &defaults)
        && !running.and_then(started).is_some_and(|since| {
            approval::approved(live, None, &Approvals { application, since, now: comparison.now })
        })
}

/// Whether the running sync asks for it, though the source has the object again by now: the sync is of an earlier commit.
fn is_asked_for(comparison: &Comparison<'_>, live: &Value) -> bool {
    let status = &comparison.application.status;
    let runs = status.operation_state.as_ref().is_some_and(|state| !state.phase.is_completed());
    runs && status.resources.iter().any(|row| {
        row.requires_deletion_approval
            && (&*row.group, &*row.kind, &*row.namespace, &*row.name)
                == (live.group(), live.kind(), live.namespace(), live.name())
    })
}

fn started(state: &OperationState) -> Option<Timestamp> {
    state.started_at.as_ref().map(|time| time.0)
}

/// Marks the rows whose deletion waits for approval now, beside those that are marked.
pub fn mark_waiting_too(resources: &mut [ResourceStatus], waiting: &[ResourceKey]) {
    for row in resources.iter_mut().filter(|row| is_among(row, waiting)) {
        row.requires_deletion_approval = true;
    }
}

/// Marks the rows whose deletion waits for approval now, and no others.
pub fn mark_waiting(resources: &mut [ResourceStatus], waiting: &[ResourceKey]) {
    for row in resources {
        row.requires_deletion_approval = is_among(row, waiting);
    }
}

fn is_among(row: &ResourceStatus, keys: &[ResourceKey]) -> bool {
    keys.iter().any(|key| {
        (&key.group, &key.kind, &key.namespace, &key.name)
            == (&row.group, &row.kind, &row.namespace, &row.name)
    })
}

/// The keys of rows whose deletion waits for approval now.
pub fn awaiting_approval(resources: &[ResourceStatus]) -> Vec<ResourceKey> {
    let waiting = resources.iter().filter(|row| row.requires_deletion_approval);
    waiting
        .map(|row| ResourceKey {
            group: row.group.clone(),
            kind: row.kind.clone(),
            namespace: row.namespace.clone(),
            name: row.name.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests;
