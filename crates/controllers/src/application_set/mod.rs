//! The ApplicationSet reconciler: one pass over one set.
//!
//! A pass generates parameters, renders what changed, validates, plans, carries out, and leaves its findings in the
//! status. Decisions are pure functions in the modules below; this one puts them in order (spec/appset.md 3.1).
//!
//! # Guarantees
//! - Any error of a generator, a template or the API ends the pass before anything is deleted.
//! - A pass that finds everything as it should be makes no request to the API.

mod compare;
mod conditions;
mod desired;
mod destinations;
mod execute;
mod fuse;
mod guard;
mod ignore;
mod leave;
mod order;
mod ownership;
mod plan;
mod status;
mod teardown;
mod triggers;
mod validate;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use baton_api::application_set::ApplicationSetCondition;
use baton_api::conditions::reason;
use baton_api::names::API_VERSION;
use baton_api::names::application_set::{MIN_VERSION, REFRESH};
use baton_api::rollout_status::DeletionStatus;
use baton_api::{ApplicationSet, names};
use baton_generators::{Generated, Generators, Reads};
use baton_rollout::pin::Fingerprint;
use baton_rules::{Rule, holds};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::cache::{Held, Kept, Known, ObjectKey, Record, Whole};
use crate::digest::{Digest, Hasher};
use crate::events::Recorder;
use crate::objects::{ApiError, Objects, Seen};
use crate::phases::{Hangup, phased};
use crate::rollout::{Admission, Board, Offer, listable};
use crate::settings::Settings;
use crate::webhook::Candidate;
use compare::Rules;
use conditions::{Standing, Verdict};
use desired::{Desired, Rendered};
use destinations::Destinations;
use execute::{Executor, Failures};
use fuse::{Leavers, Outcome, Throttle};
use guard::Guard;
use order::Order;
use ownership::{Guarding, Marks};
use plan::Settled;
use status::Findings;
use teardown::Teardown;
use validate::Faults;
use world::ClusterWorld;

pub(crate) use compare::{Automation, CompareError, comparable, ordered_patch};
pub(crate) use conditions::{condition, merged, say_the_same};
pub use ignore::{IgnoreError, IgnoreRules};
pub(crate) use order::{is_guarded, rolls};
pub(crate) use triggers::{application_changed, set_changed};
pub(crate) use world::secret_data;

/// When to look again after generators, templates or validation failed.
const AFTER_FAILURE: Duration = Duration::from_secs(180);
/// Why a set with phases is not acted on.
const NO_PHASES: &str = "generators[].deploymentStrategy needs ordered rollouts, which are switched off: start the \
    controller with --enable-progressive-syncs, or take the field away";
/// How often a status is written anew because the set changed meanwhile.
const STATUS_ATTEMPTS: usize = 5;

/// Why a pass is to be tried again soon.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PassError {
    #[error("cannot read the ApplicationSet: {0}")]
    Read(#[source] ApiError),
    #[error("cannot write the status of the ApplicationSet: {0}")]
    Status(#[source] ApiError),
    #[error("cannot update the ApplicationSet: {0}")]
    Update(#[source] ApiError),
    #[error("cannot see to the guard of the Applications: {0}")]
    Guard(#[source] ApiError),
    #[error("cannot release Application {name:?}: {why}")]
    Release { name: String, why: String },
    #[error("{0}")]
    Applications(String),
    #[error("the ApplicationSet changed during the pass")]
    Changed,
}

/// Reconciles ApplicationSets.
pub(crate) struct Reconciler {
    pub(crate) client: Client,
    pub(crate) settings: Arc<Settings>,
    pub(crate) generators: Generators,
    pub(crate) known: Arc<Known>,
    pub(crate) recorder: Option<Recorder>,
    /// What the rollout side is told.
    board: Arc<Board>,
    /// Ends the hooks and checks of sets that go.
    hangup: Hangup,
    memories: Mutex<BTreeMap<ObjectKey, Memory>>,
    /// What each set waits for. A set under way is absent, and so is touched by everything.
    interests: Mutex<BTreeMap<ObjectKey, Interest>>,
}

/// What is remembered of a set between passes, to do less in the next.
#[derive(Default)]
struct Memory {
    uid: Option<String>,
    rendered: Rendered,
    settled: Settled,
    /// The last pass, if it found nothing to do.
    quiet: Option<Quiet>,
    /// The guard of the set's Applications, once it was seen.
    guard: Option<Guard>,
    /// Whether it was told that there can be none.
    unguardable: bool,
    /// What the Applications were last marked with.
    marks: Option<Marks>,
    /// Whether a rollout may have left its head.
    headed: bool,
    teardown: Teardown,
    /// When the progress of an ordered deletion was last written.
    teardown_writes: Throttle,
    /// The mass deletion that was last told of.
    fuse_told: Option<Fingerprint>,
    /// Why Applications could not be made what they should be in the last pass.
    refused: order::Refused,
}

/// A pass that found nothing to do and read nothing but caches: while they are the same, so is the next.
struct Quiet {
    surroundings: Digest,
    reads: Reads,
    requeue: Option<Duration>,
}

/// What a set's last pass read, and what would mend its faults.
#[derive(Debug, Default)]
struct Interest {
    reads: Reads,
    projects: BTreeSet<Arc<str>>,
    clusters: bool,
}

/// Whether specifications of Applications are written by a pass or by the rollout side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hands {
    Free,
    OffSpecs,
}

/// What became of the set's own object during a pass.
enum Written {
    /// Nothing but this controller's writes.
    Ours(Whole),
    /// It changed under the pass, which has to be made again.
    Changed,
    /// It is no longer there.
    Gone,
}

impl Reconciler {
    pub(crate) fn new(
        client: Client,
        settings: Arc<Settings>,
        generators: Generators,
        known: Arc<Known>,
        recorder: Option<Recorder>,
        board: Arc<Board>,
        hangup: Hangup,
    ) -> Reconciler {
        let (memories, interests) = (Mutex::default(), Mutex::default());
        Reconciler { client, settings, generators, known, recorder, board, hangup, memories, interests }
    }

    /// One pass. Tells when to look again, if at all.
    pub(crate) async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, PassError> {
        self.interests.lock().remove(key);
        match self.held(key).await? {
            None => {
                let mut memory = self.memories.lock().remove(key).unwrap_or_default();
                self.hangup.end(key, memory.uid.as_deref().unwrap_or_default()).await;
                self.board.forget(key);
                self.hangup.gone(key);
                let reaped = self.reap(key, &mut memory).await;
                if reaped.is_err() {
                    // The next try has to know what there is to do.
                    self.memories.lock().insert(key.clone(), memory);
                }
                reaped.map(|()| None)
            }
            Some(Held::Unreadable { error, .. }) => self.report_unreadable(key, &error).await,
            Some(Held::Whole(set)) => {
                let mut memory = self.memories.lock().remove(key).unwrap_or_default();
                if memory.uid != set.metadata.uid {
                    memory = Memory { uid: set.metadata.uid.clone(), ..Memory::default() };
                }
                let result = match set.metadata.deletion_timestamp.is_some() {
                    true => {
                        // What goes is not rolled out any more, and nothing is called for it.
                        self.hangup.end(key, set.metadata.uid.as_deref().unwrap_or_default()).await;
                        self.board.forget(key);
                        self.let_go(key, set, &mut memory).await
                    }
                    false => self.pass(key, set, &mut memory).await,
                };
                self.memories.lock().insert(key.clone(), memory);
                result
            }
        }
    }

    /// Sets that a change of a cluster may concern.
    pub(crate) fn touched_by_cluster(&self, change: &crate::cache::ClusterChange) -> Vec<ObjectKey> {
        let (before, after) = (change.before.as_ref(), change.after.as_ref());
        self.touched(|interest| interest.clusters || interest.reads.touched_by_cluster(before, after))
    }

    /// Sets that the coming or going of a project may concern.
    pub(crate) fn touched_by_project(&self, name: &str) -> Vec<ObjectKey> {
        self.touched(|interest| interest.projects.contains(name) || interest.reads.projects.contains(name))
    }

    /// Sets that wait for a cluster to become known.
    pub(crate) fn waiting_for_clusters(&self) -> Vec<ObjectKey> {
        self.touched(|interest| interest.clusters)
    }

    /// Every set that could be read, with the repositories its last pass read.
    pub(crate) fn candidates(&self) -> Vec<Candidate> {
        let interests = self.interests.lock();
        let sets = self.known.sets.lock();
        let read = |key: &ObjectKey| Some(Arc::new(interests.get(key)?.reads.repositories.clone()));
        let whole = sets.all().filter_map(|(key, held)| match held {
            Held::Whole(set) => Some(Candidate { set: set.set.clone(), read: read(key) }),
            Held::Unreadable { .. } => None,
        });
        whole.collect()
    }

    /// Asks for a set's generators to be run without what is remembered.
    pub(crate) async fn ask_for_refresh(&self, key: &ObjectKey) -> Result<(), ApiError> {
        let held = self.known.sets.lock().get(key);
        let Some(held) = held else { return Ok(()) };
        let patch = json!({"metadata": {"annotations": {REFRESH: "true"}}});
        let seen = Seen { uid: held.metadata().uid.as_deref().unwrap_or_default(), version: None };
        match self.sets(key).patch(&key.name, patch, seen).await {
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(drop),
        }
    }

    /// How many Applications were rendered since the start.
    pub(crate) fn renders(&self) -> u64 {
        self.memories.lock().values().map(|memory| memory.rendered.renders).sum()
    }

    fn touched(&self, concerns: impl Fn(&Interest) -> bool) -> Vec<ObjectKey> {
        let interests = self.interests.lock();
        let sets = self.known.sets.lock();
        let keys = sets.all().map(|(key, _)| key);
        keys.filter(|key| interests.get(key).is_none_or(&concerns)).cloned().collect()
    }

    /// The set as the cache has it, or as the API has it where a write of ours may be missing in the cache.
    async fn held(&self, key: &ObjectKey) -> Result<Option<Held>, PassError> {
        if self.known.sets.lock().is_doubtful(key) {
            match self.sets(key).get(&key.name).await.map_err(PassError::Read)? {
                Some(raw) => self.known.sets.lock().learn_raw(key, &raw),
                None => return Ok(None),
            }
        }
        Ok(self.known.sets.lock().get(key))
    }

    async fn pass(
        &self,
        key: &ObjectKey,
        set: Whole,
        memory: &mut Memory,
    ) -> Result<Option<Duration>, PassError> {
        let surroundings = self.surroundings(key, &set);
        if let Some(quiet) = memory.quiet.as_ref().filter(|quiet| quiet.surroundings == surroundings) {
            self.remember(key, quiet.reads.clone(), None);
            return Ok(quiet.requeue);
        }
        let Some(set) = self.hold(key, set).await? else { return Err(PassError::Changed) };
        if let Err(why) = self.is_for_us(&set) {
            let verdict = Verdict::Failed { reason: reason::ERROR_OCCURRED, message: why, generated: false };
            return self.give_up(key, set, verdict).await;
        }
        memory.headed |= order::rolls(&set, &self.settings);
        let version = set.metadata.resource_version.clone();
        let order = order::of(&set, &self.settings);
        let generated = match self.generators.generate(&set, &self.world()).await {
            Ok(generated) => generated,
            Err(error) => {
                self.remember(key, error.reads().clone(), None);
                let reason = reason::APPLICATION_PARAMS_GENERATION_ERROR;
                let verdict = Verdict::Failed { reason, message: error.to_string(), generated: false };
                return self.give_up(key, set, verdict).await;
            }
        };
        let rules = IgnoreRules::read(&set.spec.ignore_application_differences).map(Arc::new);
        let none = Arc::new(IgnoreRules::default());
        let ordered = (order == Order::Steps).then(|| rules.as_ref().unwrap_or(&none));
        let desired = match memory.rendered.update(&set, &generated.groups, ordered.map(|rules| &**rules)) {
            Ok(desired) => desired,
            Err(error) => {
                self.remember(key, generated.reads, None);
                let (reason, message) = (error.reason(), error.to_string());
                let verdict = Verdict::Failed { reason, message, generated: false };
                return self.give_up(key, set, verdict).await;
            }
        };
        if order == Order::NoSteps {
            self.remember(key, generated.reads, None);
            let verdict = failed(reason::ROLLOUT_ERROR, order::NO_STEPS.to_owned());
            return self.give_up(key, set, verdict).await;
        }
        let clusters = self.known.secrets.lock().clusters();
        let destinations = Destinations::new(&clusters, self.known.in_cluster_enabled());
        let faults = {
            let projects = self.known.projects.lock();
            let name = set.metadata.name.as_deref().unwrap_or_default();
            validate::validate(name, &desired, |project| projects.contains_key(project), &destinations)
        };
        let mut verdict = match faults.message() {
            None => Verdict::UpToDate,
            Some(message) => failed(reason::APPLICATION_VALIDATION_ERROR, message),
        };
        let ends = ordered.is_none() && self.is_leaving(key);
        let hands = if ordered.is_some() || ends { Hands::OffSpecs } else { Hands::Free };
        let outcome = self.act(key, &set, memory, &generated, &desired, &faults, &destinations, hands).await;
        if let Some(ordered) = ordered {
            // Only now do all Applications carry the label by which the rollout side lists them.
            let policy = self.settings.policy_of(set.spec.sync_policy.as_ref());
            let fuse = outcome.as_ref().ok().and_then(|outcome| outcome.standing.held.as_deref());
            let offer = match &rules {
                Ok(_) => order::offer(&set, &desired, &faults, &memory.refused, ordered, policy, fuse),
                Err(error) => Err(error.to_string()),
            };
            match offer {
                Ok(offer) => {
                    let phases = order::phases(&set, &desired, &generated.groups);
                    self.board.post(key, Offer { phases, ..offer });
                }
                Err(why) => self.board.freeze(key, &why),
            }
        }
        let reads = generated.reads.only_clusters().then(|| generated.reads.clone());
        self.remember(key, generated.reads, Some(&faults));
        let mut outcome = match outcome {
            Ok(outcome) => outcome,
            Err((why, message)) => {
                verdict = failed(why, message.clone());
                let findings = self.findings(&verdict);
                self.write_status(key, set, &findings).await?;
                return Err(PassError::Applications(message));
            }
        };
        if outcome.interrupted {
            // Its own write of the set brings the next pass.
            return Ok(Some(Duration::ZERO));
        }
        let fault = order::fault(&set, &desired, ordered.map(|rules| &**rules));
        outcome.standing.steps = (ordered.is_some() || fault.is_some()).then_some(fault);
        self.unguard(key, &set, memory).await?;
        let owned = self.known.applications.lock().owned_by(key);
        let now = self.settings.clock.now();
        let worth = |status: &DeletionStatus| memory.teardown_writes.may(status, now);
        let deletion = outcome.shown_deletion(order::rolls(&set, &self.settings));
        let findings = Findings {
            applications: Some(&owned),
            standing: Some(&outcome.standing),
            deletion: deletion.filter(|shown| shown.is_none_or(worth)),
            listed_at_most: self.listed_at_most(key, &owned, ordered.is_some()),
            ..self.findings(&verdict)
        };
        let written = self.write_status(key, set, &findings).await;
        let is_written = matches!(written, Ok(Written::Ours(_)));
        if !is_written || deletion.is_some_and(|shown| shown.is_none()) {
            memory.teardown_writes = Throttle::default();
        }
        let untouched = match written? {
            Written::Ours(set) => {
                let set = self.spend_approval(key, set, outcome.leaving).await?;
                let same =
                    self.surroundings(key, &set) == surroundings && set.metadata.resource_version == version;
                self.remove_refresh(key, set, &verdict).await?;
                same
            }
            Written::Changed => return Err(PassError::Changed),
            Written::Gone => return Ok(None),
        };
        let requeue = generated.requeue_after.filter(|delay| !delay.is_zero());
        let settled = untouched && faults.by_name.is_empty() && outcome.wake.is_none() && !ends;
        memory.quiet = reads.filter(|_| settled).map(|reads| Quiet { surroundings, reads, requeue });
        let requeue = match (requeue, outcome.wake) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Ok(match faults.by_name.is_empty() {
            true => requeue,
            false => Some(requeue.unwrap_or(AFTER_FAILURE)),
        })
    }

    /// Whether a set may be acted on: it may ask for a newer controller, or for phases where there are none.
    fn is_for_us(&self, set: &ApplicationSet) -> Result<(), String> {
        let annotations = set.metadata.annotations.as_ref();
        let least = annotations.and_then(|all| all.get(MIN_VERSION)).map(String::as_str);
        baton_phases::version::check(least)?;
        match phased(set).is_empty() || self.settings.progressive_syncs {
            true => Ok(()),
            false => Err(NO_PHASES.to_owned()),
        }
    }

    /// Tells one state of all that a pass without generators' own reads depends on from another.
    fn surroundings(&self, key: &ObjectKey, set: &ApplicationSet) -> Digest {
        let mut hasher = Hasher::new();
        hasher.str(set.metadata.resource_version.as_deref().unwrap_or_default());
        hasher.number(self.known.secrets.lock().cluster_changes());
        hasher.number(u64::from(self.known.in_cluster_enabled()));
        for (name, signed) in &*self.known.projects.lock() {
            hasher.str(name);
            hasher.number(u64::from(*signed));
        }
        self.known.applications.lock().describe(key, &mut hasher);
        self.board.describe(key, &mut hasher);
        hasher.finish()
    }

    /// Makes the Applications what they should be. An error is a reason and a message, those of the first Application
    /// by name that failed; the others were tried too.
    #[allow(clippy::too_many_arguments)]
    async fn act(
        &self,
        key: &ObjectKey,
        set: &ApplicationSet,
        memory: &mut Memory,
        generated: &Generated,
        desired: &[Desired],
        faults: &Faults,
        destinations: &Destinations,
        hands: Hands,
    ) -> Result<Outcome, (&'static str, String)> {
        let guarding = self.guarding(key, set, memory).await;
        let guarding = guarding.map_err(|error| (reason::CREATE_APPLICATION_ERROR, error.to_string()))?;
        let marks = Marks { label: order::mark(set, &self.settings), guard: guarding };
        if memory.marks.as_ref() != Some(&marks) {
            // What was compared by other rules has to be compared again.
            memory.settled.clear();
        }
        memory.marks = Some(marks.clone());
        let policy = self.settings.policy_of(set.spec.sync_policy.as_ref());
        let owned = self.known.applications.lock().owned_by(key);
        let faulty = |name: &str| faults.by_name.contains_key(name);
        let mut plan = plan::plan(policy, desired, faulty, &owned, &memory.settled, hands == Hands::OffSpecs);
        let phased = phased(set);
        if !phased.is_empty() {
            // Whom its phase holds is neither created nor changed.
            let governed = |desired: &Desired| phased.contains(&generated.groups[desired.group].generator);
            let admission = |desired: &Desired| match governed(desired) {
                true => self.board.admission(key, &desired.name),
                false => Some(Admission::Whole),
            };
            let gated = holds(Rule::MakingIsGated);
            plan.create.retain(|desired| admission(desired).is_some() || !gated);
            plan.compare.retain(|desired| admission(desired) == Some(Admission::Whole) || !gated);
        }
        let wanted: BTreeSet<&str> = desired.iter().map(|desired| &*desired.name).collect();
        let leaving = policy.allows_delete() && owned.keys().any(|name| !wanted.contains(&**name));
        let unmarked = owned.values().any(|record| marks.are_missing_on(record));
        memory.refused.clear();
        if plan.create.is_empty() && plan.compare.is_empty() && !leaving && !unmarked {
            memory.forget_others(&owned);
            memory.teardown = Teardown::default();
            let invalid = order::deletion(set).err().map(|invalid| invalid.advice());
            return Ok(Outcome {
                standing: Standing { invalid, ..Standing::default() },
                ..Outcome::default()
            });
        }
        let writing = match policy.allows_update() {
            true => reason::UPDATE_APPLICATION_ERROR,
            false => reason::CREATE_APPLICATION_ERROR,
        };
        let mut executor = self.executor(key, set, policy.allows_update());
        executor.rules.keeps_specs = hands == Hands::OffSpecs;
        executor.rules.mark.clone_from(&marks.label);
        executor.rules.guard = marks.guard.clone();
        let render = |desired: &Desired| memory.rendered.render(set, &generated.groups, desired);
        let (settled, failures) = executor.write(&plan, render).await;
        memory.settled.extend(settled);
        // Policies, faults and ignored fields keep updates from Applications, not what their order needs.
        let unmarked = self.known.applications.lock().owned_by(key).into_iter();
        let unmarked: Vec<Arc<str>> =
            unmarked.filter(|(_, record)| marks.are_missing_on(record)).map(|(name, _)| name).collect();
        let failed_marks = executor.mark(&unmarked).await;
        memory.refused = failures.iter().map(|(name, error)| (name.clone(), error.to_string())).collect();
        first(failures).map_err(|message| (writing, message))?;
        first(failed_marks).map_err(|message| (reason::UPDATE_APPLICATION_ERROR, message))?;
        let leavers = Leavers { wanted: &wanted, owned: &owned, names: &plan.delete, destinations };
        let outcome = self.drop_leavers(&executor, set, memory, leavers).await;
        let outcome = outcome.map_err(|message| (reason::DELETE_APPLICATION_ERROR, message))?;
        memory.forget_others(&self.known.applications.lock().owned_by(key));
        Ok(Outcome { leaving, ..outcome })
    }

    /// Ends a pass that never came to know what is wanted: nothing is created, changed or deleted.
    async fn give_up(
        &self,
        key: &ObjectKey,
        set: Whole,
        verdict: Verdict,
    ) -> Result<Option<Duration>, PassError> {
        if let Verdict::Failed { reason, message, .. } = &verdict {
            tracing::warn!(application_set = %key, reason, "{message}");
            self.board.freeze(key, message);
        }
        // The wish to be looked at anew was granted, if in vain: left in place, the next wish would change nothing
        // and wake nobody.
        let findings = self.findings(&verdict);
        if let Written::Ours(set) = self.write_status(key, set, &findings).await? {
            self.remove_refresh(key, set, &verdict).await?;
        }
        Ok(Some(AFTER_FAILURE))
    }

    /// A set that cannot be read says so.
    async fn report_unreadable(&self, key: &ObjectKey, error: &str) -> Result<Option<Duration>, PassError> {
        let Some(raw) = self.sets(key).get(&key.name).await.map_err(PassError::Read)? else {
            return Ok(None);
        };
        let mut set = ApplicationSet::default();
        let conditions = raw.pointer("/status/conditions").cloned().unwrap_or_default();
        set.status.conditions =
            serde_json::from_value::<Vec<ApplicationSetCondition>>(conditions).unwrap_or_default();
        let message = format!("the ApplicationSet cannot be read: {error}");
        let verdict = Verdict::Failed { reason: reason::ERROR_OCCURRED, message, generated: false };
        let now = self.settings.clock.now_in_seconds();
        let conditions = conditions::after(&set, Some(&verdict), None, now);
        if !conditions::say_the_same(&conditions, &set.status.conditions) {
            let patch =
                json!({"status": {"conditions": conditions, "health": conditions::health(&conditions)}});
            self.sets(key).patch_status(&key.name, patch, Seen::of(&raw)).await.map_err(PassError::Status)?;
        }
        Ok(None)
    }

    /// Writes what the status does not say yet. If the set changed meanwhile, its newer state is taken and the pass
    /// has to be made again.
    async fn write_status(
        &self,
        key: &ObjectKey,
        set: Whole,
        findings: &Findings<'_>,
    ) -> Result<Written, PassError> {
        let (mut set, mut changed) = (set, false);
        let mut attempts = STATUS_ATTEMPTS;
        loop {
            let now = self.settings.clock.now_in_seconds();
            let Some(patch) = status::patch(&set, findings, now) else { break };
            attempts -= 1;
            match self.sets(key).patch_status(&key.name, patch, seen(&set)).await {
                Ok(answer) => {
                    let Some(answered) = self.fold_answer(key, &answer) else { return Ok(Written::Changed) };
                    set = answered;
                    break;
                }
                Err(error) if error.is_not_found() => return Ok(Written::Gone),
                Err(error) if error.is_conflict() && attempts > 0 => {
                    let Some(raw) = self.sets(key).get(&key.name).await.map_err(PassError::Read)? else {
                        return Ok(Written::Gone);
                    };
                    let fresh =
                        raw.pointer("/metadata/uid").and_then(Value::as_str) == set.metadata.uid.as_deref();
                    self.known.sets.lock().learn_raw(key, &raw);
                    match self.whole(key) {
                        Some(read) if fresh => {
                            // The rollout side writes its part of the status whenever it likes.
                            changed |= !is_same_wish(&set, &read);
                            set = read;
                        }
                        _ => return Ok(Written::Changed),
                    }
                }
                Err(error) => return Err(self.doubting(key, error, PassError::Status)),
            }
        }
        Ok(if changed { Written::Changed } else { Written::Ours(set) })
    }

    /// What is told of a verdict alone.
    fn findings<'a>(&self, verdict: &'a Verdict) -> Findings<'a> {
        Findings {
            verdict: Some(verdict),
            listed_at_most: self.settings.max_resources_status_count,
            ..Findings::default()
        }
    }

    /// The wish to be looked at anew is granted.
    async fn remove_refresh(&self, key: &ObjectKey, set: Whole, verdict: &Verdict) -> Result<(), PassError> {
        if !set.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(REFRESH)) {
            return Ok(());
        }
        let patch = json!({"metadata": {"annotations": {REFRESH: null}}});
        match self.sets(key).patch(&key.name, patch, seen(&set)).await {
            Ok(answer) => {
                if !self.settings.dry_run {
                    self.fold_set(key, &answer);
                }
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => {
                let told = failed(reason::REFRESH_APPLICATION_ERROR, error.to_string());
                if !error.is_conflict() && *verdict == Verdict::UpToDate {
                    let findings = self.findings(&told);
                    self.write_status(key, set, &findings).await?;
                }
                Err(self.doubting(key, error, PassError::Update))
            }
        }
    }

    fn executor<'a>(&'a self, key: &'a ObjectKey, set: &ApplicationSet, may_update: bool) -> Executor<'a> {
        let settings = &self.settings;
        let own = set.spec.preserved_fields.clone().unwrap_or_default();
        let with =
            |own: Vec<String>, global: &[String]| own.into_iter().chain(global.iter().cloned()).collect();
        let rules = Rules {
            mark: None,
            guard: Guarding::AsItIs,
            keeps_specs: false,
            preserved_annotations: with(own.annotations, &settings.preserved_annotations),
            preserved_labels: with(own.labels, &settings.preserved_labels),
            ignore: IgnoreRules::read(&set.spec.ignore_application_differences),
        };
        Executor {
            set: key,
            owner: ownership::reference(set),
            about: about(set),
            rules,
            may_update,
            objects: self.objects(key, "applications"),
            sets: self.sets(key),
            known: &self.known,
            recorder: self.recorder.as_ref(),
            concurrency: settings.concurrent_application_updates,
            dry_run: settings.dry_run,
        }
    }

    fn remember(&self, key: &ObjectKey, reads: Reads, faults: Option<&Faults>) {
        let interest = Interest {
            reads,
            projects: faults.map(|faults| faults.missing_projects.clone()).unwrap_or_default(),
            clusters: faults.is_some_and(|faults| faults.unknown_clusters),
        };
        self.interests.lock().insert(key.clone(), interest);
    }

    fn warn(&self, set: &ApplicationSet, reason: &'static str, message: String) {
        tracing::warn!(
            application_set = %ObjectKey::of(&set.metadata), reason, "{message}"
        );
        if let Some(recorder) = &self.recorder {
            recorder.warning(&about(set), reason, message);
        }
    }

    /// How many Applications are listed in the status; 0 is all. A rollout needs room beside them.
    fn listed_at_most(
        &self,
        key: &ObjectKey,
        owned: &BTreeMap<Arc<str>, Arc<Record>>,
        ordered: bool,
    ) -> usize {
        let most = self.settings.max_resources_status_count;
        let fits = listable(owned.keys().map(|name| &**name), &key.namespace);
        if !ordered || fits >= owned.len() || (1..=fits).contains(&most) { most } else { fits }
    }

    /// Whether the set kept an order once and the rollout side has not let go of it yet.
    fn is_leaving(&self, key: &ObjectKey) -> bool {
        let marked = self.known.applications.lock().owned_by(key).values().any(|record| record.marked);
        marked && !self.settings.dry_run && !self.board.leave(key)
    }

    fn world(&self) -> ClusterWorld {
        ClusterWorld {
            client: self.client.clone(),
            known: self.known.clone(),
            namespace: self.settings.namespace.clone(),
        }
    }

    fn sets(&self, key: &ObjectKey) -> Objects {
        self.objects(key, "applicationsets")
    }

    fn objects(&self, key: &ObjectKey, plural: &str) -> Objects {
        Objects::new(self.client.clone(), names::API_VERSION, plural, &key.namespace, self.settings.dry_run)
    }

    /// Keeps the answer to a write and tells the set as it is now; none if it cannot be read.
    fn fold_answer(&self, key: &ObjectKey, raw: &Value) -> Option<Whole> {
        if self.settings.dry_run {
            return serde_json::from_value(raw.clone()).ok().map(Whole::new);
        }
        self.fold_set(key, raw);
        self.whole(key)
    }

    fn fold_set(&self, key: &ObjectKey, raw: &Value) {
        self.known.sets.lock().fold_raw(key, raw);
    }

    fn whole(&self, key: &ObjectKey) -> Option<Whole> {
        match self.known.sets.lock().get(key)? {
            Held::Whole(set) => Some(set),
            Held::Unreadable { .. } => None,
        }
    }

    /// Notes that a failed write may have taken effect.
    fn doubting(&self, key: &ObjectKey, error: ApiError, wrap: impl Fn(ApiError) -> PassError) -> PassError {
        if error.leaves_doubt() || error.is_conflict() {
            self.known.sets.lock().doubt(key);
        }
        wrap(error)
    }
}

impl Memory {
    /// Forgets Applications that are the set's no more.
    fn forget_others(&mut self, owned: &BTreeMap<Arc<str>, Arc<Record>>) {
        if self.settled.len() != owned.len() {
            self.settled.retain(|name, _| owned.contains_key(name));
        }
    }
}

fn failed(reason: &'static str, message: String) -> Verdict {
    Verdict::Failed { reason, message, generated: true }
}

/// Whether two states of a set ask for the same. The head of a rollout may be among the annotations, and asks for nothing.
fn is_same_wish(a: &ApplicationSet, b: &ApplicationSet) -> bool {
    let told = |set: &ApplicationSet| {
        let mut annotations = set.metadata.annotations.clone().unwrap_or_default();
        annotations.remove(names::baton::ROLLOUT);
        annotations
    };
    let (old, new) = (&a.metadata, &b.metadata);
    (old.generation, &old.labels, &old.finalizers, &old.deletion_timestamp)
        == (new.generation, &new.labels, &new.finalizers, &new.deletion_timestamp)
        && told(a) == told(b)
}

fn seen(set: &ApplicationSet) -> Seen<'_> {
    Seen {
        uid: set.metadata.uid.as_deref().unwrap_or_default(),
        version: set.metadata.resource_version.as_deref(),
    }
}

fn about(set: &ApplicationSet) -> ObjectReference {
    ObjectReference {
        api_version: Some(API_VERSION.to_owned()),
        kind: Some("ApplicationSet".to_owned()),
        namespace: set.metadata.namespace.clone(),
        name: set.metadata.name.clone(),
        uid: set.metadata.uid.clone(),
        resource_version: set.metadata.resource_version.clone(),
        field_path: None,
    }
}

fn first(failures: Failures) -> Result<(), String> {
    failures.into_values().next().map_or(Ok(()), |error| Err(error.to_string()))
}
