//! Runs of delete hooks, each once for one deletion, and what becomes of the hooks afterwards.

use std::sync::Arc;
use std::time::Duration;

use baton_api::application_status::HealthCode;
use baton_api::health::severity;
use baton_api::names::baton::OPERATION;
use baton_api::names::resource::{HELM_HOOK_DELETE_POLICY, HOOK_DELETE_POLICY};
use baton_api::object::{Object, ResourceKey, annotations_mut};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Decision, Observation, Rendered, cascade, finalizers, named};
use crate::action::{Apply, Delete, Propagation, ServerSide, Verb};
use crate::hooks::{self, DeletePolicy, HookType};
use crate::options::items;
use crate::project::{DestinationCluster, ProjectRules};
use crate::wave;

/// How often the source is looked at for a mended hook while a failed one is shown.
const LOOK_FOR_A_MEND: Duration = Duration::from_secs(10);

/// Runs the hooks of a stage, wave by wave; Argo CD runs all at once.
///
/// A hook carries the deletion it was created for. One of another deletion, or of a sync, is deleted and created anew;
/// Argo CD takes it for one that has run. Hooks are held until the stage is recorded as done, so that none that
/// completed can vanish before and be run again. The project's rules hold for them as for what is synced; in Argo CD they
/// do not.
pub(super) fn run(
    observation: &Observation<'_>,
    stage: HookType,
    permitted: &[&Arc<Value>],
    rules: &ProjectRules,
    cluster: DestinationCluster<'_>,
) -> Decision {
    let wanted = match observation.hooks {
        Rendered::Hooks(wanted) => wanted,
        Rendered::Failed(why) => return Decision::fails(said(stage, why)),
        Rendered::Not => {
            return Decision::waits(format!("waiting for the {} hooks to be rendered", word(stage)));
        }
    };
    for hook in wanted {
        let checked = (observation.kinds)(hook.api_version(), hook.kind())
            .and_then(|kind| rules.permits_target(hook, kind.as_ref(), cluster));
        if let Err(why) = checked {
            return Decision::fails(said(stage, &format!("{}: {why}", hook.key())));
        }
    }
    let stamp = stamp(observation);
    let mut wanted: Vec<Value> =
        wanted.iter().map(|hook| prepared(observation, stage, hook, &stamp)).collect();
    wanted.sort_by_key(|hook| (wave::of(hook), hook.key()));
    for group in wanted.chunk_by(|a, b| wave::of(a) == wave::of(b)) {
        let mut runs = Runs::default();
        for hook in group {
            runs.look(observation, permitted, hook, &stamp);
        }
        if let Some(decision) = runs.decide(observation, stage) {
            return decision;
        }
    }
    done(observation, stage, permitted)
}

/// The hooks of one wave, by how far they are.
#[derive(Default)]
struct Runs {
    missing: Vec<Value>,
    in_the_way: Vec<Arc<Value>>,
    running: Vec<ResourceKey>,
    failed: Vec<Arc<Value>>,
    /// Whether the source has another version of one that failed.
    mended: bool,
    errors: Vec<String>,
}

impl Runs {
    fn look(&mut self, observation: &Observation<'_>, permitted: &[&Arc<Value>], hook: &Value, stamp: &str) {
        let key = hook.key();
        let Some(live) = permitted.iter().find(|live| live.key() == key) else {
            self.missing.push(hook.clone());
            return;
        };
        let going = live.deletion_timestamp().is_some() && !hooks::is_held(live);
        let Some(version) = version_run(live, stamp).filter(|_| !going) else {
            self.in_the_way.push((*live).clone());
            return;
        };
        match (observation.health)(live).map(|health| health.map(|health| health.code)) {
            Ok(None | Some(HealthCode::Healthy)) => {}
            Ok(Some(HealthCode::Progressing | HealthCode::Suspended | HealthCode::Missing)) => {
                self.running.push(key);
            }
            Ok(Some(HealthCode::Degraded | HealthCode::Unknown | HealthCode::Other(_))) => {
                let wanted = version_run(hook, stamp).unwrap_or_default();
                self.mended |= !version.is_empty() && version != wanted;
                self.failed.push((*live).clone());
            }
            Err(why) => self.errors.push(format!("health of {key}: {why}")),
        }
    }

    /// What to do for this wave; none where all of it completed.
    fn decide(&self, observation: &Observation<'_>, stage: HookType) -> Option<Decision> {
        if let Some(error) = self.errors.first() {
            return Some(Decision::fails(said(stage, error)));
        }
        if !self.failed.is_empty() {
            return Some(self.retry(observation, stage));
        }
        let word = word(stage);
        if !self.in_the_way.is_empty() {
            let keys: Vec<ResourceKey> = self.in_the_way.iter().map(|live| live.key()).collect();
            let verbs = self.in_the_way.iter().flat_map(removal).collect();
            let reason = format!("waiting for deletion of {word} hook {} of an earlier run", named(&keys));
            return Some(Decision { verbs, ..Decision::waits(reason) });
        }
        let missing = self.missing.iter().map(|hook| hook.key());
        let keys: Vec<ResourceKey> = missing.chain(self.running.iter().cloned()).collect();
        if keys.is_empty() {
            return None;
        }
        let verbs = self.missing.iter().map(creation).collect();
        let reason = format!("waiting for completion of {word} hook {}", named(&keys));
        Some(Decision { verbs, ..Decision::waits(reason) })
    }

    /// Failed hooks are shown for a while, or until the source has mended one, then deleted and run again as the source
    /// has them by then.
    fn retry(&self, observation: &Observation<'_>, stage: HookType) -> Decision {
        let names: Vec<String> =
            self.failed.iter().map(|live| format!("{}/{}", live.namespace(), live.name())).collect();
        let message = said(stage, &format!("{} hook(s) failed: {}", word(stage), names.join(", ")));
        let pause = SignedDuration::try_from(observation.settings.hook_retry).unwrap_or(SignedDuration::MAX);
        let created = |live: &Value| live.metadata("creationTimestamp").parse::<Timestamp>().ok();
        let due = self
            .failed
            .iter()
            .filter_map(|live| created(live)?.saturating_add(pause).ok())
            .max()
            .unwrap_or(observation.now);
        if due > observation.now && !self.mended {
            let soon = observation.now.saturating_add(LOOK_FOR_A_MEND).unwrap_or(due);
            return Decision { look_again: Some(due.min(soon)), ..Decision::fails(message) };
        }
        let verbs = self.failed.iter().flat_map(removal).collect();
        Decision { verbs, ..Decision::fails(message) }
    }
}

/// Records that the stage is done. Where nothing is left to let the hooks go afterwards, they are let go before.
fn done(observation: &Observation<'_>, stage: HookType, permitted: &[&Arc<Value>]) -> Decision {
    let application = observation.application;
    let own = finalizers::of_hooks(stage, false);
    let cleaned_up = finalizers::has(application, &finalizers::of_hooks(stage, true));
    let verbs = match cleaned_up {
        true => Vec::new(),
        false => of_stage(permitted, stage)
            .filter(|live| hooks::is_held(live))
            .map(|live| cascade::release(live))
            .collect(),
    };
    let left = finalizers::without(application, |finalizer| finalizer == own);
    Decision { verbs, finalizers: Some(left), ..Decision::default() }
}

/// Deletes the hooks of a stage as their policies say and lets the others go.
///
/// One without a policy is deleted: nothing will ever create it anew. Argo CD means to, but keeps it.
pub(super) fn clean_up(
    observation: &Observation<'_>,
    stage: HookType,
    permitted: &[&Arc<Value>],
) -> Decision {
    let all: Vec<&Arc<Value>> = of_stage(permitted, stage).collect();
    let mut worst = HealthCode::Healthy;
    for live in &all {
        match (observation.health)(live) {
            Ok(Some(health)) if severity(&health.code) > severity(&worst) => worst = health.code,
            Ok(_) => {}
            Err(why) => return Decision::fails(said(stage, &format!("health of {}: {why}", live.key()))),
        }
    }
    let (goes, stays): (Vec<&Arc<Value>>, Vec<&Arc<Value>>) =
        all.into_iter().partition(|live| is_deleted(live, &worst));
    let mut verbs: Vec<Verb> =
        stays.into_iter().filter(|live| hooks::is_held(live)).map(|live| cascade::release(live)).collect();
    if goes.is_empty() {
        let own = finalizers::of_hooks(stage, true);
        let left = finalizers::without(observation.application, |finalizer| finalizer == own);
        return Decision { verbs, finalizers: Some(left), ..Decision::default() };
    }
    let keys: Vec<ResourceKey> = goes.iter().map(|live| live.key()).collect();
    verbs.extend(goes.iter().flat_map(|live| removal(live)));
    let reason = format!("waiting for deletion of {} hook {}", word(stage), named(&keys));
    Decision { verbs, ..Decision::waits(reason) }
}

fn is_deleted(live: &Value, worst: &HealthCode) -> bool {
    let states = |name, word| live.annotation(name).map(items).unwrap_or_default().contains(&word);
    let kept_by_word = states(HOOK_DELETE_POLICY, "BeforeHookCreation")
        || states(HELM_HOOK_DELETE_POLICY, "before-hook-creation");
    let policies = hooks::delete_policies(live);
    if policies == [DeletePolicy::BeforeHookCreation] {
        return !kept_by_word;
    }
    policies.iter().any(|policy| match policy {
        DeletePolicy::HookSucceeded => *worst == HealthCode::Healthy,
        DeletePolicy::HookFailed => *worst == HealthCode::Degraded,
        DeletePolicy::BeforeHookCreation => false,
    })
}

fn of_stage<'a>(permitted: &[&'a Arc<Value>], stage: HookType) -> impl Iterator<Item = &'a Arc<Value>> {
    permitted.iter().copied().filter(move |live| hooks::has_type(live, stage))
}

/// What marks a hook as run for this deletion.
fn stamp(observation: &Observation<'_>) -> String {
    let deleted = observation.application.metadata.deletion_timestamp.as_ref();
    format!("delete/{}", deleted.map(|time| time.0.to_string()).unwrap_or_default())
}

/// The version of a hook that ran for this deletion, empty where it is not noted; none where it ran for another or for
/// none.
fn version_run<'h>(hook: &'h Value, stamp: &str) -> Option<&'h str> {
    let version = hook.annotation(OPERATION)?.strip_prefix(stamp)?;
    if version.is_empty() { Some(version) } else { version.strip_prefix('/') }
}

/// Tells versions of a hook apart.
fn version(hook: &Value) -> String {
    let hash = Sha256::digest(hook.to_string());
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// A hook as it is created. One whose name is to be generated gets one that a restart finds again.
fn prepared(observation: &Observation<'_>, stage: HookType, hook: &Value, stamp: &str) -> Value {
    let version = version(hook);
    let mut hook = hook.clone();
    let prefix = hook.metadata("generateName").to_owned();
    if hook.name().is_empty() && !prefix.is_empty() {
        let deleted = observation.application.metadata.deletion_timestamp.as_ref();
        let second = deleted.map(|time| time.0.as_second()).unwrap_or_default();
        hook["metadata"]["name"] = json!(format!("{prefix}{}-{second}", word(stage).to_lowercase()));
    }
    if let Some(annotations) = annotations_mut(&mut hook) {
        annotations.insert(OPERATION.to_owned(), json!(format!("{stamp}/{version}")));
    }
    hooks::hold(&mut hook);
    hook
}

fn creation(hook: &Value) -> Verb {
    Verb::Apply(Apply {
        object: Arc::new(hook.clone()),
        live: None,
        dry_run: false,
        validate: true,
        replace: false,
        force: false,
        server_side: ServerSide::Default,
        migrate_from: None,
        guarded: false,
        create_only: true,
    })
}

/// Whether an object is the very hook that was to be created, for the same deletion.
pub(super) fn is_run_of(verb: &Verb, found: &Value) -> bool {
    let Verb::Apply(apply) = verb else { return false };
    let Some((stamp, _)) = apply.object.annotation(OPERATION).and_then(|mark| mark.rsplit_once('/')) else {
        return false;
    };
    version_run(found, stamp).is_some()
}

/// Takes a hook away, whatever holds it on our side.
fn removal(live: &Arc<Value>) -> Vec<Verb> {
    let mut verbs = Vec::new();
    if live.deletion_timestamp().is_none() {
        verbs.push(Verb::Delete(Delete {
            key: live.key(),
            api_version: live.api_version().to_owned(),
            uid: live.uid().to_owned(),
            resource_version: None,
            propagation: Propagation::Background,
        }));
    }
    if hooks::is_held(live) {
        verbs.push(cascade::release(live));
    }
    verbs
}

fn word(stage: HookType) -> &'static str {
    if stage == HookType::PreDelete { "PreDelete" } else { "PostDelete" }
}

/// Argo CD says where PreDelete hooks went wrong, and nothing of PostDelete hooks.
fn said(stage: HookType, what: &str) -> String {
    match stage {
        HookType::PreDelete => format!("error executing pre-delete hooks: {what}"),
        _ => what.to_owned(),
    }
}
