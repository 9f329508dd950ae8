//! How an Application goes: its finalizers are worked off one after the other, and each wait has a name.
//!
//! The stages: PreDelete hooks run; resources are deleted, the highest wave first; PostDelete hooks run; hooks are
//! cleaned up. Which stage it is stands in the finalizers and in the cluster alone, so that a restart goes on where the
//! last process stopped: a hook carries the deletion it ran for and is held until its outcome was recorded.

mod cascade;
mod finalizers;
mod hook_runs;

use std::sync::Arc;
use std::time::Duration;

use baton_api::Application;
use baton_api::object::{Object, ResourceKey};
use jiff::Timestamp;
use serde_json::Value;

use crate::action::{Outcome, Verb};
use crate::conditions::{DELETION_ERROR, DELETION_WAITING_INFO, Finding};
use crate::hooks::HookType;
use crate::normalize::{Project, project_of};
use crate::observation::{GuardedIn, HealthOf};
use crate::project::{DestinationCluster, ProjectRules};
use crate::targets::Kinds;

pub use cascade::{Guard, Kept, kept, unseen};
pub use finalizers::{cascades, for_hooks, propagation};

/// How deletions are carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletionSettings {
    /// Whether PreDelete hooks wait for approval as well. Argo CD runs them first.
    pub hooks_wait_for_approval: bool,
    /// How long after its creation a failed hook is deleted and run again.
    pub hook_retry: Duration,
}

impl Default for DeletionSettings {
    fn default() -> DeletionSettings {
        DeletionSettings { hooks_wait_for_approval: false, hook_retry: Duration::from_secs(60) }
    }
}

/// What is known of the cluster an Application is deployed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cluster<'a> {
    /// There is no such cluster, so nothing can be deleted there: why.
    Unknown(&'a str),
    /// It is known but does not answer: why.
    Unreachable(&'a str),
    /// It answers.
    Ready(DestinationCluster<'a>),
}

/// Delete hooks as the source has them.
#[derive(Debug, Clone, Copy)]
pub enum Rendered<'a> {
    /// They were not asked for, see [`Stage::needs_hooks`].
    Not,
    /// They could not be rendered: why.
    Failed(&'a str),
    /// Those of the stage, in place and marked as the Application's.
    Hooks(&'a [Arc<Value>]),
}

/// What a step of deletion is made of.
#[derive(Clone, Copy)]
pub struct Observation<'a> {
    /// The Application, read past every cache.
    pub application: &'a Application,
    /// Its project.
    pub project: Project<'a>,
    /// The controller's namespace.
    pub own_namespace: &'a str,
    /// Its cluster.
    pub cluster: Cluster<'a>,
    /// Live objects marked as its own that no other object made, those of [`unseen`] among them.
    pub live: &'a [Arc<Value>],
    /// What the cluster serves.
    pub kinds: Kinds<'a>,
    /// Delete hooks of the stage.
    pub hooks: Rendered<'a>,
    /// How an object fares.
    pub health: HealthOf<'a>,
    /// What a namespace holds that must not be deleted without approval.
    pub guarded_in_namespace: GuardedIn<'a>,
    /// How deletions are carried out.
    pub settings: &'a DeletionSettings,
    /// The time.
    pub now: Timestamp,
}

/// What is left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// An operation runs; it ends first.
    Operation,
    /// Hooks run.
    Hooks(HookType),
    /// Resources are deleted.
    Cascade,
    /// Hooks are cleaned up.
    Cleanup(HookType),
    /// Nothing.
    Done,
}

/// What to do now.
///
/// The verbs may be carried out side by side. Only when all of them went well are the finalizers written, onto the
/// version of the Application that was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decision {
    /// What to do to the cluster.
    pub verbs: Vec<Verb>,
    /// The finalizers that are left then.
    pub finalizers: Option<Vec<String>>,
    /// What is waited for, or what is wrong: conditions of a deletion.
    pub found: Vec<Finding>,
    /// Objects whose deletion waits for approval.
    pub approvals: Vec<ResourceKey>,
    /// Objects that stay, and why.
    pub kept: Vec<(ResourceKey, Kept)>,
    /// When to look again if nothing happens in the cluster.
    pub look_again: Option<Timestamp>,
    /// Worth an event.
    pub event: Option<String>,
}

/// What is left to do about an Application that is being deleted.
pub fn stage(application: &Application) -> Stage {
    let has = |hooks, cleanup| finalizers::has(application, &finalizers::of_hooks(hooks, cleanup));
    let running =
        application.status.operation_state.as_ref().is_some_and(|state| !state.phase.is_completed());
    if application.operation.is_some() || running {
        Stage::Operation
    } else if has(HookType::PreDelete, false) {
        Stage::Hooks(HookType::PreDelete)
    } else if cascades(application) {
        Stage::Cascade
    } else if has(HookType::PostDelete, false) {
        Stage::Hooks(HookType::PostDelete)
    } else if has(HookType::PreDelete, true) {
        Stage::Cleanup(HookType::PreDelete)
    } else if has(HookType::PostDelete, true) {
        Stage::Cleanup(HookType::PostDelete)
    } else {
        Stage::Done
    }
}

/// Decides on the next step of an Application's deletion.
///
/// # Assumptions
/// The Application has a deletion timestamp, and the controller is not asked to leave it alone.
pub fn decide(observation: &Observation<'_>) -> Decision {
    let application = observation.application;
    let stage = stage(application);
    match stage {
        Stage::Done => return Decision::default(),
        Stage::Operation => {
            return Decision::waits("waiting for the running operation to end or be terminated");
        }
        Stage::Hooks(_) | Stage::Cascade | Stage::Cleanup(_) => {}
    }
    let cluster = match observation.cluster {
        Cluster::Ready(cluster) => cluster,
        Cluster::Unknown(why) => return orphan(application, why),
        Cluster::Unreachable(why) => {
            return Decision::fails(format!("the destination cluster cannot be reached: {why}"));
        }
    };
    let rules = match rules(observation) {
        Ok(rules) => rules,
        Err(why) => return Decision::fails(why),
    };
    let (permitted, refused): (Vec<&Arc<Value>>, Vec<&Arc<Value>>) =
        observation.live.iter().partition(|live| rules.permits_live(live, cluster));
    match stage {
        Stage::Hooks(HookType::PreDelete) => {
            if observation.settings.hooks_wait_for_approval
                && let Some(gated) = cascade::gate(observation, &permitted)
            {
                return gated;
            }
            hook_runs::run(observation, HookType::PreDelete, &permitted, rules, cluster)
        }
        Stage::Hooks(hooks) => hook_runs::run(observation, hooks, &permitted, rules, cluster),
        Stage::Cascade => {
            let mut decision = cascade::decide(observation, &permitted);
            let refused = refused.iter().map(|live| (live.key(), Kept::NotPermitted));
            decision.kept.extend(refused);
            decision
        }
        Stage::Cleanup(hooks) => hook_runs::clean_up(observation, hooks, &permitted),
        Stage::Operation | Stage::Done => Decision::default(),
    }
}

fn rules<'a>(observation: &Observation<'a>) -> Result<&'a ProjectRules, String> {
    match observation.project {
        Project::Found(rules) => {
            rules.permits_application(observation.application, observation.own_namespace)?;
            Ok(rules)
        }
        Project::Missing => {
            let project = project_of(&observation.application.spec);
            Err(format!("Application referencing project {project} which does not exist"))
        }
        Project::Failed(why) => Err(why.to_owned()),
    }
}

/// Nothing can be deleted in a cluster that is not known: the resources are left, and the Application goes.
fn orphan(application: &Application, why: &str) -> Decision {
    Decision {
        finalizers: Some(finalizers::without(application, finalizers::is_ours)),
        event: Some(format!("Resources are left behind, the destination cluster is not known: {why}")),
        ..Decision::default()
    }
}

/// What a verb of a deletion that did not go well is worth; none where it did.
pub fn failure(verb: &Verb, outcome: &Outcome) -> Option<Finding> {
    let what = match verb {
        Verb::Apply(apply) => apply.object.key(),
        Verb::Delete(delete) => delete.key.clone(),
        Verb::ReleaseHook { key, .. } | Verb::Revoke { key, .. } | Verb::Look { key, .. } => key.clone(),
    };
    let why = match outcome {
        Outcome::Failed { message } => message.clone(),
        // What is seen of the cluster may lag behind: the hook was created by an earlier step of this deletion.
        Outcome::Exists(found) if hook_runs::is_run_of(verb, found) => return None,
        Outcome::Exists(_) => {
            "an object of this name exists that does not belong to the application".to_owned()
        }
        Outcome::NeedsApproval => "it would have to be deleted, which needs approval".to_owned(),
        Outcome::Applied { .. }
        | Outcome::Gone
        | Outcome::Terminating
        | Outcome::Done
        | Outcome::Found(_)
        | Outcome::Changed => return None,
    };
    Some(Finding::new(DELETION_ERROR, format!("{what}: {why}")))
}

/// Names one object and counts the others, as Argo CD does.
fn named<'k>(keys: impl IntoIterator<Item = &'k ResourceKey>) -> String {
    let mut keys = keys.into_iter();
    let Some(first) = keys.next() else { return String::new() };
    let first = format!("{}/{}/{}", first.group, first.kind, first.name);
    match keys.count() {
        0 => first,
        more => format!("{first} and {more} more resources"),
    }
}

// === impl Stage ===

impl Stage {
    /// The delete hooks that must be rendered for a decision.
    pub fn needs_hooks(self) -> Option<HookType> {
        match self {
            Stage::Hooks(hooks) => Some(hooks),
            Stage::Operation | Stage::Cascade | Stage::Cleanup(_) | Stage::Done => None,
        }
    }
}

// === impl Decision ===

impl Decision {
    fn waits(reason: impl Into<String>) -> Decision {
        Decision { found: vec![Finding::new(DELETION_WAITING_INFO, reason)], ..Decision::default() }
    }

    fn fails(reason: impl Into<String>) -> Decision {
        Decision { found: vec![Finding::new(DELETION_ERROR, reason)], ..Decision::default() }
    }
}

#[cfg(test)]
mod tests;
