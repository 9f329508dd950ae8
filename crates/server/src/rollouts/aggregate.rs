//! From a set and its Applications to the rollout that people see. Pure.

use std::collections::BTreeMap;

use baton_api::application_set::ConditionStatus;
use baton_api::conditions::application_set as conditions;
use baton_api::conditions::reason as reasons;
use baton_api::health::severity;
use baton_api::phase_status::PhaseState;
use baton_api::rollout_status::RolloutState;
use baton_api::{Application, ApplicationSet};
use baton_rollout::control;
use baton_rollout::explain::{self, Known, Obstacle, Outlook, Standing};
use baton_rollout::plan::rolling_steps;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::action::{Action, has_phases, held};
use super::board::{
    Blocker, Condition, Counts, Lane, Offer, Revision, Rollout, Run, State, Summary, Target, TargetState,
};
use super::lanes::lanes;
use super::past::past;
use super::target::{awaits_approval, short};

/// The rollout of a set. Who may ask for what is not known here: no action is allowed yet.
pub fn rollout(set: &ApplicationSet, applications: &[Application], now: Timestamp) -> Rollout {
    let standing = explain::standing(set, None, &known(applications));
    let lanes = lanes(set, &standing, applications, now);
    let targets = || lanes.iter().filter_map(|lane| lane.targets.as_ref()).flatten();
    let counts = Counts::of(targets());
    let approvals =
        applications.iter().filter(|one| awaits_approval(one)).count() + usize::from(held(set).is_some());
    let state = state(set, &standing, counts, approvals);
    let status = set.status.rollout.as_ref();
    let phased = set.status.phases.iter();
    let earliest = phased.clone().filter_map(|phases| time(phases.started_at.as_ref())).min();
    let over = match state {
        State::Complete | State::Failed | State::Aborted => true,
        State::Paused => phased.clone().all(|phases| phases.finished_at.is_some()),
        _ => false,
    };
    let latest = phased.filter_map(|phases| time(phases.finished_at.as_ref())).max().filter(|_| over);
    let metadata = &set.metadata;
    let [name, namespace] =
        [&metadata.name, &metadata.namespace].map(|text| text.clone().unwrap_or_default());
    let summary = Summary {
        project: set.spec.template.spec.project.clone(),
        strategy: strategy(set),
        reason: reason(set, &standing, state, counts, &lanes),
        run: standing.run,
        revision: standing.revisions.first().map(|one| short(&one.revision)).unwrap_or_default(),
        started_at: standing.started_at.or(earliest),
        finished_at: standing.finished_at.or(latest),
        health: health(set, applications),
        state,
        counts,
        approvals,
        name: name.clone(),
        namespace: namespace.clone(),
    };
    let offers = Action::ALL.map(|action| {
        let sense = action.sense(set, &standing);
        let (sensible, why) = (sense.is_ok(), sense.err().unwrap_or_default());
        let lanes = if sensible { action.lanes(set) } else { Vec::new() };
        Offer { action: action.as_str(), allowed: false, sensible, why, lanes }
    });
    Rollout {
        history: history(set, applications, &summary),
        summary,
        uid: metadata.uid.clone().unwrap_or_default(),
        resource_version: metadata.resource_version.clone().unwrap_or_default(),
        message: standing.message.clone(),
        revisions: standing.revisions.iter().map(revision).collect(),
        restarts: standing.restarts,
        next_check_at: status.and_then(|status| time(status.next_check_at.as_ref())),
        paused_at: status.and_then(|status| time(status.paused_at.as_ref())),
        blockers: blockers(&standing),
        conditions: set.status.conditions.iter().map(condition).collect(),
        actions: offers.to_vec(),
        command: format!("baton appset get {name} --namespace {namespace} --watch"),
        lanes,
    }
}

/// Failed ones first, then those that wait for a person, those that go on, the rest; then by name.
pub fn sort(summaries: &mut [Summary]) {
    summaries.sort_by(|left, right| {
        let key = |one: &Summary| (one.state.urgency(), one.name.clone(), one.namespace.clone());
        key(left).cmp(&key(right))
    });
}

/// The Applications that a set controls, of those given.
pub fn owned<'a>(
    set: &ApplicationSet,
    applications: impl IntoIterator<Item = &'a Application>,
) -> Vec<Application> {
    let uid = set.metadata.uid.as_deref().unwrap_or_default();
    let owned = |application: &&Application| {
        let mut owners = application.metadata.owner_references.iter().flatten();
        application.metadata.namespace == set.metadata.namespace
            && owners.any(|owner| owner.controller == Some(true) && owner.uid == uid)
    };
    applications.into_iter().filter(owned).cloned().collect()
}

fn known(applications: &[Application]) -> BTreeMap<String, Known> {
    let one = |application: &Application| {
        let metadata = &application.metadata;
        let known = Known {
            uid: metadata.uid.clone().unwrap_or_default(),
            labels: metadata.labels.clone().unwrap_or_default(),
            terminating: time(metadata.deletion_timestamp.as_ref()),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
        };
        (metadata.name.clone().unwrap_or_default(), known)
    };
    applications.iter().map(one).collect()
}

fn state(set: &ApplicationSet, standing: &Standing, counts: Counts, approvals: usize) -> State {
    let in_phase = |wanted: PhaseState| {
        let mut generators = set.status.phases.iter();
        generators.any(|generator| {
            generator.state == wanted || generator.phases.iter().any(|one| one.state == wanted)
        })
    };
    if set.metadata.deletion_timestamp.is_some() {
        return State::Deleting;
    }
    let phases = baton_phases::outlook(&set.status.phases);
    let failed =
        matches!(phases, baton_phases::Outlook::Failed(_)) || matches!(standing.outlook(), Outlook::Failed);
    let mut told = set.status.conditions.iter().filter(|one| one.status == ConditionStatus::True);
    if told.any(|one| match one.kind.as_str() {
        conditions::INVALID_ROLLOUT_CONFIG | conditions::INVALID_PHASE_CONFIG => true,
        // A rollout that failed is an error of the set, too; there is nothing wrong with how it is written.
        conditions::ERROR_OCCURRED => !failed || one.reason != reasons::ROLLOUT_ERROR,
        _ => false,
    }) {
        return State::Invalid;
    }
    if in_phase(PhaseState::RollingBack) {
        return State::RollingBack;
    }
    let rolls = rolling_steps(set.spec.strategy.as_ref()).is_some();
    // Also between runs: whoever holds a set that is done waits for nothing to begin, and others should see why nothing does.
    if (rolls || has_phases(set)) && control::is_paused(set.metadata.annotations.as_ref()) {
        return State::Paused;
    }
    // A phase that somebody let pass stays failed, and the rollout goes on.
    let goes_on = matches!(phases, baton_phases::Outlook::UnderWay(_));
    if !goes_on && (in_phase(PhaseState::Failed) || in_phase(PhaseState::RolledBack)) {
        return State::Failed;
    }
    if in_phase(PhaseState::Aborted) || standing.state == "Aborted" {
        return State::Aborted;
    }
    if approvals > 0 {
        return State::Waiting;
    }
    if rolls {
        return match standing.outlook() {
            Outlook::Done => State::Complete,
            Outlook::WaitsForPerson => State::Waiting,
            Outlook::Failed => State::Failed,
            Outlook::Underway if standing.state == "Idle" => State::Idle,
            Outlook::Underway => State::Progressing,
        };
    }
    let phases_over = set.status.phases.iter().all(|generator| generator.state == PhaseState::Complete);
    match counts {
        Counts { failed: 1.., .. } => State::Failed,
        Counts { total: 0, .. } => State::Idle,
        Counts { total, done, .. } if total == done && phases_over => State::Complete,
        _ => State::Progressing,
    }
}

fn strategy(set: &ApplicationSet) -> &'static str {
    match (rolling_steps(set.spec.strategy.as_ref()).is_some(), has_phases(set)) {
        (true, true) => "RollingSync+Phases",
        (true, false) => "RollingSync",
        (false, true) => "Phases",
        (false, false) => "AllAtOnce",
    }
}

/// One sentence: what it waits for, or what is well.
fn reason(set: &ApplicationSet, standing: &Standing, state: State, counts: Counts, lanes: &[Lane]) -> String {
    let of_condition = |kinds: &[&str]| {
        let mut conditions = set.status.conditions.iter();
        let held =
            conditions.find(|one| kinds.contains(&one.kind.as_str()) && one.status == ConditionStatus::True);
        held.map(|one| one.message.replace('\n', " "))
    };
    let obstacle = |first: &Obstacle| match (first.object.as_str(), first.message.as_str()) {
        (_, "") => format!("{}: waits for {}", first.reason, first.unblocks),
        ("", message) => message.to_owned(),
        (object, message) if message.contains(object) => message.to_owned(),
        (object, message) => format!("{object}: {message}"),
    };
    let failed = || {
        let targets = lanes.iter().filter_map(|lane| lane.targets.as_ref()).flatten();
        let worst = targets.into_iter().find(|target| target.state == TargetState::Failed)?;
        Some(told(worst))
    };
    let of_lane = || {
        let mut open = lanes.iter().filter(|lane| !lane.message.is_empty() && lane.kind == "phase");
        open.find(|lane| {
            !matches!(lane.state, super::board::LaneState::Done | super::board::LaneState::Pending)
        })
        .map(|lane| format!("{}: {}", lane.title, lane.message))
    };
    let found = match state {
        State::Invalid => of_condition(&[
            conditions::INVALID_ROLLOUT_CONFIG,
            conditions::INVALID_PHASE_CONFIG,
            conditions::ERROR_OCCURRED,
        ]),
        State::Paused if counts.total == counts.done => {
            Some("a person holds the rollout: the next run begins once it is resumed".to_owned())
        }
        State::Paused => Some("a person holds the rollout".to_owned()),
        State::Failed => of_lane().or_else(failed).or_else(|| standing.first.as_ref().map(obstacle)),
        State::Complete => Some(match counts.total {
            1 => "1 Application is done".to_owned(),
            total => format!("all {total} Applications are done"),
        }),
        State::Idle => Some("nothing to do".to_owned()),
        _ => standing.first.as_ref().map(obstacle).or_else(of_lane),
    };
    let counted = || match counts.failed {
        0 => format!("{} of {} Applications are done", counts.done, counts.total),
        failed => format!("{failed} of {} Applications failed", counts.total),
    };
    found.filter(|text| !text.is_empty()).unwrap_or_else(counted)
}

fn told(target: &Target) -> String {
    match target.message.as_str() {
        "" => format!("{} is {}", target.name, target.health),
        message => format!("{}: {message}", target.name),
    }
}

fn health(set: &ApplicationSet, applications: &[Application]) -> String {
    let own = &set.status.health.status;
    let worst = applications.iter().map(|one| &one.status.health.status).max_by_key(|code| severity(code));
    let code = if own.is_unset() { worst.map(|code| code.as_str()) } else { Some(own.as_str()) };
    code.filter(|code| !code.is_empty()).unwrap_or("Unknown").to_owned()
}

/// The runs that the status keeps, which are the last one through the steps and the last one of each generator's phases, and
/// before them those that the Applications know of.
fn history(set: &ApplicationSet, applications: &[Application], summary: &Summary) -> Vec<Run> {
    let of_steps = set.status.rollout.iter().filter(|rollout| rollout.run > 0).map(|rollout| Run {
        run: rollout.run,
        generator: None,
        revision: summary.revision.clone(),
        started_at: time(rollout.started_at.as_ref()),
        finished_at: time(rollout.finished_at.as_ref()),
        state: match rollout.state {
            RolloutState::Idle | RolloutState::Other(_) => State::Idle,
            RolloutState::Arming | RolloutState::Progressing => State::Progressing,
            RolloutState::Paused => State::Paused,
            RolloutState::Failed => State::Failed,
            RolloutState::Aborted => State::Aborted,
            RolloutState::Complete => State::Complete,
        },
        reached: None,
        of: None,
    });
    let begun = set.status.phases.iter().filter(|phases| phases.started_at.is_some());
    let of_phases = begun.map(|phases| Run {
        run: 0,
        generator: Some(phases.generator),
        revision: String::new(),
        started_at: time(phases.started_at.as_ref()),
        finished_at: time(phases.finished_at.as_ref()),
        state: match phases.state {
            PhaseState::Pending | PhaseState::Other(_) => State::Idle,
            PhaseState::Paused => State::Paused,
            PhaseState::RollingBack => State::RollingBack,
            PhaseState::Failed | PhaseState::RolledBack => State::Failed,
            PhaseState::Aborted => State::Aborted,
            PhaseState::Complete | PhaseState::Skipped => State::Complete,
            _ => State::Progressing,
        },
        reached: None,
        of: None,
    });
    let mut runs: Vec<Run> = of_steps.chain(of_phases).collect();
    let ordered = rolling_steps(set.spec.strategy.as_ref()).is_some() || has_phases(set);
    if ordered {
        let began = runs.iter().filter_map(|run| run.started_at).min();
        runs.extend(past(applications, began));
    }
    runs.sort_by_key(|run| std::cmp::Reverse(run.started_at));
    runs
}

fn blockers(standing: &Standing) -> Vec<Blocker> {
    let of_deletion = standing.deletion.iter().flat_map(|deletion| &deletion.obstacles);
    let one = |obstacle: &Obstacle| Blocker {
        reason: obstacle.reason.clone(),
        object: obstacle.object.clone(),
        message: obstacle.message.clone(),
        since: obstacle.since,
        unblocks: obstacle.unblocks.clone(),
        next_check_at: obstacle.next_look,
    };
    let mut all: Vec<Blocker> = standing.obstacles.iter().chain(of_deletion).map(one).collect();
    if all.is_empty() {
        all.extend(standing.first.as_ref().map(one));
    }
    all
}

fn condition(condition: &baton_api::application_set::ApplicationSetCondition) -> Condition {
    Condition {
        kind: condition.kind.clone(),
        status: condition.status.as_str().to_owned(),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
        last_transition_time: time(condition.last_transition_time.as_ref()),
    }
}

fn revision(resolved: &explain::Resolved) -> Revision {
    Revision {
        repo_url: resolved.repo.clone(),
        target_revision: resolved.target_revision.clone(),
        revision: resolved.revision.clone(),
    }
}

fn time(time: Option<&Time>) -> Option<Timestamp> {
    time.map(|time| time.0)
}
