//! Why nothing happens: how a rollout stands and what it waits for first, from what a set's status says.
//!
//! The status is a view that may lag, and beside another controller it may lack `rollout`. Then the standing is told
//! from `applicationStatus`, which every controller of ordered rollouts writes.

mod leaving;
mod obstacle;
mod remarks;

use std::collections::BTreeMap;

use baton_api::ApplicationSet;
use baton_api::application_set::{ApplicationSetApplicationStatus, ConditionStatus, ProgressiveSyncCode};
use baton_api::conditions::application_set::{DELETION_HELD, ERROR_OCCURRED};
use baton_api::rollout_status::{DeletionStatus, RolloutState, RolloutStatus, StepState, StepStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;

pub use obstacle::Obstacle;

use crate::blocker::Reason;
use crate::control;
use crate::head::{Done, Head, Intent};
use crate::pin::{Fingerprint, Resolution, SourceKey};
use crate::plan;
use crate::steps::Steps;

/// An Application as the cluster has it, as far as an explanation needs it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Known {
    /// Its UID.
    pub uid: String,
    /// Its labels, which choose its place when it goes.
    pub labels: BTreeMap<String, String>,
    /// Since when it is being deleted.
    pub terminating: Option<Timestamp>,
    /// What must be removed from it before it is gone.
    pub finalizers: Vec<String>,
}

/// How a rollout stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// How far it is.
    pub state: String,
    /// In words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Number of the run; 0 where nobody counts them.
    pub run: i64,
    /// The open step, counted from 1; 0 before the first.
    pub step: i64,
    /// How often it was begun anew.
    pub restarts: i64,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Whether the status is older than the set.
    pub outdated: bool,
    /// The steps, in order.
    pub steps: Vec<StepStanding>,
    /// What it waits for first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Obstacle>,
    /// Everything it waits for, the first first.
    pub obstacles: Vec<Obstacle>,
    /// The Applications, by step and name; those in no step last.
    pub applications: Vec<ApplicationStanding>,
    /// Ordered deletion under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<DeletionStanding>,
    /// What revisions were resolved to.
    pub revisions: Vec<Resolved>,
    /// What is wrong with how it is asked for, or surprising.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// How a step stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepStanding {
    /// Its number, counted from 1; -1 for Applications in no step.
    pub step: i64,
    /// How far it is.
    pub state: String,
    /// How many Applications it holds.
    pub total: i64,
    /// How many are done.
    pub done: i64,
    /// How many are under way.
    pub updating: i64,
    /// How many have failed.
    pub failed: i64,
    /// How many may be under way at once; absent is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_once: Option<i64>,
    /// When it opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened_at: Option<Timestamp>,
    /// When it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Until when it must stay healthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_until: Option<Timestamp>,
}

/// How an Application stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationStanding {
    /// Its name.
    pub name: String,
    /// Its step, counted from 1; -1 where no step holds it.
    pub step: i64,
    /// How far it is, in Argo CD's words.
    pub status: String,
    /// In words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The revisions it is to have.
    pub target_revisions: Vec<String>,
    /// What it waits for first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Obstacle>,
    /// What the head of the rollout records of it, where it could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<Record>,
}

/// What the head of a rollout records of an Application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Hash of what it is to be.
    pub pin: String,
    /// How many writes were made to it.
    pub writes: u64,
    /// What the last write of this run is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<&'static str>,
    /// Whether it holds one of its step's slots.
    pub slot: bool,
    /// How it came to be done in this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<&'static str>,
}

/// How a deletion stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionStanding {
    /// `AllAtOnce`, `Reverse` or `Custom`.
    pub order: String,
    /// The step being deleted, counted from 1 in the order of deletion.
    pub step: i64,
    /// How many steps there are.
    pub total_steps: i64,
    /// How many Applications are left.
    pub remaining: i64,
    /// Applications being deleted now.
    pub deleting: Vec<String>,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Whether the set itself goes.
    pub of_the_set: bool,
    /// What it waits for, the first first.
    pub obstacles: Vec<Obstacle>,
}

/// What a revision was resolved to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resolved {
    /// URL of the repository.
    #[serde(rename = "repoURL")]
    pub repo: String,
    /// The revision asked for.
    pub target_revision: String,
    /// Name of the chart, where it is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub chart: String,
    /// What it is.
    pub revision: String,
}

/// How it goes on, for whoever waits for the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    /// There is nothing left to do.
    Done,
    /// It goes on by itself.
    Underway,
    /// A person must do something first.
    WaitsForPerson,
    /// It failed, or was ended by a person.
    Failed,
}

/// Tells how the rollout of a set stands. `head` adds what revisions were resolved to; with the Applications that are
/// `known` also what it records of each, and what those wait for that go.
pub fn standing(set: &ApplicationSet, head: Option<&Head>, known: &BTreeMap<String, Known>) -> Standing {
    let status = &set.status;
    let mut standing = match &status.rollout {
        // A deletion may be told of where no run is.
        Some(rollout) if !rollout.state.is_unset() => told(set, rollout),
        _ => derived(set),
    };
    paused(set, head, &mut standing);
    held(set, &mut standing);
    standing.deletion = deletion(set);
    let applications: Vec<ApplicationStanding> =
        status.application_status.iter().map(|entry| application(entry, &standing)).collect();
    standing.applications = applications;
    leaving::tell(set, known, &mut standing);
    // Applications in no step stand last.
    standing.applications.sort_by_key(|one| (one.step as u64, one.name.clone()));
    if let Some(head) = head {
        if standing.revisions.is_empty() {
            standing.revisions = head.revisions.iter().map(Resolved::of).collect();
        }
        for application in &mut standing.applications {
            let row = known.get(&application.name).and_then(|known| head.row(Fingerprint::of([&known.uid])));
            application.record = row.map(|row| Record {
                pin: row.pin.to_string(),
                writes: row.n,
                last: row.intent.map(intent),
                slot: row.slot,
                done: row.done.map(done),
            });
        }
    }
    broken(set, &mut standing);
    let ordered = !standing.steps.is_empty()
        || set.spec.generators.iter().any(|generator| generator.deployment_strategy.is_some());
    let silent = standing.state == RolloutState::Idle.as_str() && standing.obstacles.is_empty();
    if silent && ordered && !standing.deletes() {
        let message = "no controller has told of a run yet".to_owned();
        standing.obstacles.push(Obstacle::new(Reason::NoReport, String::new(), message));
    }
    standing.first = first(&standing);
    standing.remarks = remarks::of(set, &standing);
    standing
}

fn told(set: &ApplicationSet, rollout: &RolloutStatus) -> Standing {
    let mut steps: Vec<StepStanding> = rollout.steps.iter().map(step).collect();
    steps.sort_by_key(|step| step.step as u64);
    close(&mut steps, time(rollout.finished_at.as_ref()));
    let generation = set.metadata.generation.unwrap_or_default();
    Standing {
        state: rollout.state.as_str().to_owned(),
        message: rollout.message.clone(),
        run: rollout.run,
        step: rollout.step,
        restarts: rollout.restarts,
        started_at: time(rollout.started_at.as_ref()),
        finished_at: time(rollout.finished_at.as_ref()),
        outdated: rollout.observed_generation != 0 && rollout.observed_generation < generation,
        steps,
        first: None,
        obstacles: rollout.blockers.iter().map(Obstacle::of).collect(),
        applications: Vec::new(),
        deletion: None,
        remarks: Vec::new(),
        revisions: rollout
            .revisions
            .iter()
            .map(|one| Resolved {
                repo: one.repo_url.clone(),
                target_revision: one.target_revision.clone(),
                chart: one.chart.clone(),
                revision: one.revision.clone(),
            })
            .collect(),
    }
}

/// Tells when steps were done that do not say so: when the next one opened, or the run ended.
fn close(steps: &mut [StepStanding], finished: Option<Timestamp>) {
    let mut next = finished;
    for step in steps.iter_mut().filter(|step| step.step > 0).rev() {
        if step.state == StepState::Complete.as_str() {
            step.completed_at = step.completed_at.or(next);
        }
        next = step.opened_at;
    }
}

/// What `applicationStatus` alone gives away.
fn derived(set: &ApplicationSet) -> Standing {
    let entries = &set.status.application_status;
    let (steps, _) = Steps::read(plan::rolling_steps(set.spec.strategy.as_ref()).unwrap_or_default());
    let mut found: Vec<StepStanding> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let number = at as i64 + 1;
        let of_step = || entries.iter().filter(move |entry| step_of(entry) == number);
        let total = of_step().count();
        let done = of_step().filter(|entry| entry.status == ProgressiveSyncCode::Healthy).count();
        let waiting = of_step().filter(|entry| entry.status == ProgressiveSyncCode::Waiting).count();
        let open = found.iter().all(|earlier: &StepStanding| earlier.done == earlier.total);
        found.push(StepStanding {
            step: number,
            state: match (done == total, open) {
                (true, true) if !entries.is_empty() => StepState::Complete,
                (false, true) => StepState::Open,
                _ => StepState::Waiting,
            }
            .as_str()
            .to_owned(),
            total: total as i64,
            done: done as i64,
            updating: (total - done - waiting) as i64,
            failed: 0,
            at_once: step.max_update.map(|share| share.of(total) as i64),
            opened_at: None,
            completed_at: None,
            wait_until: None,
        });
    }
    let open = found.iter().find(|step| step.done < step.total);
    let state = match (entries.is_empty(), open) {
        (true, _) => RolloutState::Idle,
        (false, None) => RolloutState::Complete,
        (false, Some(_)) => RolloutState::Progressing,
    };
    Standing {
        state: state.as_str().to_owned(),
        message: String::new(),
        run: 0,
        step: open.map_or(0, |step| step.step),
        restarts: 0,
        started_at: None,
        finished_at: None,
        outdated: false,
        steps: found,
        first: None,
        obstacles: Vec::new(),
        applications: Vec::new(),
        deletion: None,
        revisions: Vec::new(),
        remarks: Vec::new(),
    }
}

/// A pause counts from the moment it is asked for, before any status tells of it.
fn paused(set: &ApplicationSet, head: Option<&Head>, standing: &mut Standing) {
    let asked = control::is_paused(set.metadata.annotations.as_ref());
    let ended =
        [RolloutState::Complete, RolloutState::Aborted].iter().any(|end| standing.state == end.as_str());
    if !(asked || head.is_some_and(|head| head.run.paused)) || ended {
        return;
    }
    standing.state = RolloutState::Paused.as_str().to_owned();
    if !standing.obstacles.iter().any(|obstacle| obstacle.reason == Reason::Paused.as_str()) {
        let message = "a person holds the rollout".to_owned();
        standing.obstacles.insert(0, Obstacle::new(Reason::Paused, String::new(), message));
    }
}

/// A mass deletion that waits for approval, also where there is no order to tell of.
fn held(set: &ApplicationSet, standing: &mut Standing) {
    let mut conditions = set.status.conditions.iter();
    let found = conditions.find(|one| one.kind == DELETION_HELD && one.status == ConditionStatus::True);
    let fuse = Reason::DeletionFuse;
    if let Some(condition) = found
        && !standing.obstacles.iter().any(|obstacle| obstacle.reason == fuse.as_str())
    {
        let since = time(condition.last_transition_time.as_ref());
        let obstacle = Obstacle::new(fuse, String::new(), leaving::fuse_words(&condition.message));
        standing.obstacles.push(Obstacle { since, ..obstacle });
    }
}

/// What is wrong with the set itself, where nothing else is told: then no run begins.
fn broken(set: &ApplicationSet, standing: &mut Standing) {
    let mut conditions = set.status.conditions.iter();
    let found = conditions.find(|one| one.kind == ERROR_OCCURRED && one.status == ConditionStatus::True);
    if let Some(condition) = found.filter(|_| standing.obstacles.is_empty()) {
        let since = time(condition.last_transition_time.as_ref());
        let obstacle = Obstacle::new(Reason::GeneratorError, String::new(), condition.message.clone());
        standing.obstacles.push(Obstacle { since, ..obstacle });
    }
}

fn deletion(set: &ApplicationSet) -> Option<DeletionStanding> {
    let going = set.metadata.deletion_timestamp.as_ref();
    let status = set.status.rollout.as_ref().and_then(|rollout| rollout.deletion.as_ref());
    let order =
        set.spec.strategy.as_ref().map(|strategy| strategy.deletion_order.clone()).unwrap_or_default();
    let unknown =
        DeletionStatus { order, remaining: set.status.resources_count, ..DeletionStatus::default() };
    let status = match (status, going) {
        (Some(status), _) => status,
        (None, Some(_)) => &unknown,
        (None, None) => return leaving::by_condition(set),
    };
    Some(DeletionStanding {
        order: if status.order.is_empty() { "AllAtOnce".to_owned() } else { status.order.clone() },
        step: status.step,
        total_steps: status.total_steps,
        remaining: status.remaining,
        deleting: status.deleting.clone(),
        started_at: time(status.started_at.as_ref()).or_else(|| time(going)),
        of_the_set: going.is_some(),
        obstacles: status.blockers.iter().map(Obstacle::of).collect(),
    })
}

fn application(entry: &ApplicationSetApplicationStatus, run: &Standing) -> ApplicationStanding {
    let since = time(entry.last_transition_time.as_ref());
    let mut about = run.obstacles.iter().filter(|obstacle| obstacle.is_about(&entry.application));
    let named = about.find(|obstacle| !obstacle.is_queueing());
    // That its phase waits for it is no reason; what it waits for itself is.
    let said = entry.message.split_once(": ").and_then(|(word, _)| Reason::named(word));
    let own =
        said.is_some_and(|reason| reason != Reason::PhaseGate && !obstacle::is_queueing(reason.as_str()));
    let named = named.filter(|named| named.reason != Reason::PhaseGate.as_str() || !own);
    let first = match (&entry.status, named) {
        (_, Some(named)) => Some(Obstacle { count: 1, ..named.clone() }),
        (ProgressiveSyncCode::Healthy, None) => None,
        _ => Some(Obstacle { since, ..guessed(entry, run) }),
    };
    ApplicationStanding {
        name: entry.application.clone(),
        step: step_of(entry),
        status: entry.status.as_str().to_owned(),
        message: entry.message.clone(),
        since,
        target_revisions: entry.target_revisions.clone(),
        first,
        record: None,
    }
}

/// What an Application waits for that no blocker names: its step, a slot, or its own sync.
fn guessed(entry: &ApplicationSetApplicationStatus, run: &Standing) -> Obstacle {
    let own = || entry.application.clone();
    let number = step_of(entry);
    // Our own controller says it in the message.
    let said = entry.message.split_once(": ").and_then(|(word, rest)| Some((Reason::named(word)?, rest)));
    if let Some((reason, rest)) = said.filter(|(reason, _)| !obstacle::is_queueing(reason.as_str())) {
        return Obstacle::new(reason, own(), rest.to_owned());
    }
    let Some(step) = run.steps.iter().find(|step| step.step == number && number > 0) else {
        let message = "no step holds it: only a person syncs it".to_owned();
        return Obstacle::new(Reason::HoldStep, own(), message);
    };
    for (state, reason) in [(RolloutState::Paused, Reason::Paused), (RolloutState::Aborted, Reason::Aborted)]
    {
        if run.state == state.as_str() && entry.status == ProgressiveSyncCode::Waiting {
            // The run's message begins with the same word.
            let told = run.message.strip_prefix(reason.as_str()).and_then(|rest| rest.strip_prefix(": "));
            return Obstacle::new(reason, String::new(), told.unwrap_or(&run.message).to_owned());
        }
    }
    if step.state == StepState::Waiting.as_str() {
        let earlier =
            run.steps.iter().find(|step| step.step > 0 && step.state != StepState::Complete.as_str());
        let (object, message) = match earlier.filter(|earlier| earlier.step < number) {
            Some(earlier) => (
                format!("step {}", earlier.step),
                format!("step {} is not done: {} of {}", earlier.step, earlier.done, earlier.total),
            ),
            None => (format!("step {number}"), "its step is not open yet".to_owned()),
        };
        return Obstacle::new(Reason::WaitingForStep, object, message);
    }
    if entry.status == ProgressiveSyncCode::Waiting {
        match step.at_once {
            Some(0) => {
                let message = format!("step {number} is held: people sync its Applications");
                return Obstacle::new(Reason::HoldStep, format!("step {number}"), message);
            }
            Some(limit) if step.updating >= limit => {
                let message = format!("{} of {limit} places of its step are taken", step.updating);
                return Obstacle::new(Reason::WaitingForSlot, format!("step {number}"), message);
            }
            _ => {}
        }
    }
    Obstacle::new(Reason::Progressing, own(), entry.message.clone())
}

/// The first named, or else what the first Application that is not done waits for.
fn first(standing: &Standing) -> Option<Obstacle> {
    let of_deletion = standing.deletion.iter().flat_map(|deletion| &deletion.obstacles);
    let undone = standing.applications.iter().filter(|one| one.step > 0).find_map(|one| one.first.as_ref());
    standing.obstacles.iter().chain(of_deletion).next().or(undone).cloned()
}

fn step(step: &StepStatus) -> StepStanding {
    StepStanding {
        step: step.step,
        state: step.state.as_str().to_owned(),
        total: step.total,
        done: step.done,
        updating: step.updating,
        failed: step.failed,
        at_once: step.max_update,
        opened_at: time(step.opened_at.as_ref()),
        completed_at: time(step.completed_at.as_ref()),
        wait_until: time(step.wait_until.as_ref()),
    }
}

fn step_of(entry: &ApplicationSetApplicationStatus) -> i64 {
    entry.step.parse().unwrap_or(-1)
}

fn time(time: Option<&Time>) -> Option<Timestamp> {
    time.map(|time| time.0)
}

fn intent(intent: Intent) -> &'static str {
    match intent {
        Intent::Arm => "automatic sync off",
        Intent::Refresh => "comparison asked for",
        Intent::HardRefresh => "comparison past every cache asked for",
        Intent::Spec => "specification written",
        Intent::Start => "sync started",
        Intent::Heal => "drift healed",
        Intent::Terminate => "operation ended",
        Intent::Fence => "older writes fenced off",
    }
}

fn done(done: Done) -> &'static str {
    match done {
        Done::Synced => "synced by this run",
        Done::Unchanged => "unchanged",
        Done::Override => "synced by somebody else",
        Done::Skipped => "skipped by a person",
        Done::Tolerated => "failed, which the step allows",
    }
}

// === impl Resolved ===

impl Resolved {
    fn of((key, resolution): (&SourceKey, &Resolution)) -> Resolved {
        Resolved {
            repo: key.repo.to_string(),
            target_revision: key.target.to_string(),
            chart: key.chart.to_string(),
            revision: resolution.sync.to_string(),
        }
    }
}

// === impl Standing ===

impl Standing {
    /// How it goes on.
    pub fn outlook(&self) -> Outlook {
        let is = |state: RolloutState| self.state == state.as_str();
        let person = self.first.as_ref().is_some_and(Obstacle::waits_for_person);
        let fuse = self.is_held_by_fuse();
        if self.outdated {
            if is(RolloutState::Paused) { Outlook::WaitsForPerson } else { Outlook::Underway }
        } else if self.deletion.is_some() {
            if person { Outlook::WaitsForPerson } else { Outlook::Underway }
        } else if is(RolloutState::Failed) || is(RolloutState::Aborted) {
            Outlook::Failed
        } else if fuse {
            Outlook::WaitsForPerson
        } else if is(RolloutState::Complete) {
            Outlook::Done
        } else if is(RolloutState::Paused) || person {
            Outlook::WaitsForPerson
        } else {
            Outlook::Underway
        }
    }

    /// Whether the set itself goes.
    pub fn goes(&self) -> bool {
        self.deletion.as_ref().is_some_and(|deletion| deletion.of_the_set)
    }

    /// Whether Applications go, or are to go.
    pub fn has_leavers(&self) -> bool {
        let leaves = |first: &Obstacle| first.reason == Reason::Leaving.as_str();
        self.deletes() || self.applications.iter().any(|one| one.first.as_ref().is_some_and(leaves))
    }

    /// Whether Applications are being deleted, or would be if somebody approved it.
    pub fn deletes(&self) -> bool {
        self.deletion.is_some() || self.is_held_by_fuse()
    }

    fn is_held_by_fuse(&self) -> bool {
        self.obstacles.iter().any(|obstacle| obstacle.reason == Reason::DeletionFuse.as_str())
    }

    /// How many Applications of steps are done, of how many.
    pub fn counts(&self) -> (i64, i64) {
        let steps = self.steps.iter().filter(|step| step.step > 0);
        let add = |(done, total): (i64, i64), step: &StepStanding| {
            (done.saturating_add(step.done), total.saturating_add(step.total))
        };
        steps.fold((0, 0), add)
    }
}
