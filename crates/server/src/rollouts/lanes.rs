//! Steps and phases as lanes, each with its gates and its Applications.

use std::collections::BTreeMap;

use baton_api::phase_status::{HookResult, HookState, PhaseApplication, PhaseState, PhaseStatus};
use baton_api::phases::PhaseTarget;
use baton_api::strategy::RolloutStep;
use baton_api::{Application, ApplicationSet};
use baton_rollout::explain::{ApplicationStanding, Standing, StepStanding};
use baton_rollout::plan::rolling_steps;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::board::{Counts, Gate, Lane, LaneState, Target};
use super::target::target;

/// The lanes of a set, in the order in which they open.
///
/// Every Application stands in one lane: in that of its phase where it has one, else in that of its step, else among
/// the unmatched.
pub(super) fn lanes(
    set: &ApplicationSet,
    standing: &Standing,
    applications: &[Application],
    now: Timestamp,
) -> Vec<Lane> {
    let of_set: BTreeMap<&str, &ApplicationStanding> =
        standing.applications.iter().map(|one| (one.name.as_str(), one)).collect();
    let mut in_phase: BTreeMap<&str, (usize, usize, &PhaseApplication)> = BTreeMap::new();
    for (at, generator) in set.status.phases.iter().enumerate() {
        for (index, phase) in generator.phases.iter().enumerate() {
            for one in &phase.applications {
                in_phase.insert(&one.name, (at, index, one));
            }
        }
    }
    let mut by_phase: BTreeMap<(usize, usize), Vec<Target>> = BTreeMap::new();
    let mut by_step: BTreeMap<i64, Vec<Target>> = BTreeMap::new();
    let ordered = rolling_steps(set.spec.strategy.as_ref()).is_some();
    for application in applications {
        let name = application.metadata.name.as_deref().unwrap_or_default();
        let (told, phase) = (of_set.get(name).copied(), in_phase.get(name));
        let target = target(application, told, phase.map(|(_, _, one)| *one));
        let place = phase.map(|(at, index, _)| (*at, *index)).or_else(|| ahead(set, told?));
        match place {
            Some(place) => by_phase.entry(place).or_default().push(target),
            // Where nobody orders them they all go at once.
            None if !ordered && set.status.phases.is_empty() => by_step.entry(1).or_default().push(target),
            None => by_step.entry(told.map_or(-1, |told| told.step)).or_default().push(target),
        }
    }
    let mut lanes = Vec::new();
    match rolling_steps(set.spec.strategy.as_ref()) {
        Some(steps) => lanes.extend(of_steps(steps, standing, &mut by_step, !set.status.phases.is_empty())),
        None if set.status.phases.is_empty() => {
            lanes.push(all_at_once(by_step.remove(&1).unwrap_or_default()));
        }
        None => {}
    }
    for (at, generator) in set.status.phases.iter().enumerate() {
        for (index, status) in generator.phases.iter().enumerate() {
            let targets = by_phase.remove(&(at, index)).unwrap_or_default();
            lanes.push(of_phase(set, generator.generator, index, &generator.phases, status, targets, now));
        }
    }
    let unmatched: Vec<Target> = by_step.into_values().flatten().collect();
    if !unmatched.is_empty() {
        lanes.push(Lane {
            id: "unmatched".to_owned(),
            kind: "unmatched",
            title: "In no step or phase".to_owned(),
            selector: String::new(),
            state: LaneState::Skipped,
            counts: Counts::of(&unmatched),
            max_update: None,
            opened_at: None,
            wait_until: None,
            message: "only a person syncs these".to_owned(),
            gates: Vec::new(),
            targets: Some(sorted(unmatched)),
        });
    }
    lanes
}

/// The phase of an Application that no phase holds yet, told by what it waits for.
fn ahead(set: &ApplicationSet, told: &ApplicationStanding) -> Option<(usize, usize)> {
    let why = told.message.strip_prefix("PhaseGate: ").unwrap_or(&told.message);
    let name = baton_phases::phase_held_by(why)?;
    set.status
        .phases
        .iter()
        .enumerate()
        .find_map(|(at, generator)| Some((at, generator.phases.iter().position(|phase| phase.name == name)?)))
}

fn all_at_once(targets: Vec<Target>) -> Lane {
    let counts = Counts::of(&targets);
    let state = match counts {
        Counts { failed: 1.., .. } => LaneState::Failed,
        Counts { total, done, .. } if total == done => LaneState::Done,
        _ => LaneState::Open,
    };
    Lane {
        id: "step-1".to_owned(),
        kind: "step",
        title: "All at once".to_owned(),
        selector: "every Application".to_owned(),
        state,
        counts,
        max_update: None,
        opened_at: None,
        wait_until: None,
        message: String::new(),
        gates: Vec::new(),
        targets: Some(sorted(targets)),
    }
}

fn of_steps(
    written: &[RolloutStep],
    standing: &Standing,
    targets: &mut BTreeMap<i64, Vec<Target>>,
    phased: bool,
) -> Vec<Lane> {
    let told = |number: i64| standing.steps.iter().find(|step| step.step == number);
    let mut lanes: Vec<Lane> = Vec::new();
    for (at, step) in written.iter().enumerate() {
        let number = at as i64 + 1;
        let status = told(number);
        let own = sorted(targets.remove(&number).unwrap_or_default());
        // What the controller counts is newer than a cache; with phases the Applications stand elsewhere.
        let counts = match status.filter(|_| phased || own.is_empty()) {
            Some(status) => counted(status),
            None => Counts::of(&own),
        };
        let state = step_state(status);
        let before = lanes.last().map(|before| before.state);
        let mut gates: Vec<Gate> = before.map(|before| previous(at, before)).into_iter().collect();
        if let Some(wait) = step.wait_duration.as_deref().filter(|wait| !wait.is_empty()) {
            let soaking = status.is_some_and(|status| status.state == "Soaking");
            let word = match state {
                LaneState::Done => "Passed",
                LaneState::Open if soaking => "Running",
                _ => "Pending",
            };
            gates.push(gate("wait", wait, word));
        }
        lanes.push(Lane {
            id: format!("step-{number}"),
            kind: "step",
            title: format!("Step {number}"),
            selector: selector(step),
            state,
            counts,
            max_update: status.and_then(|status| status.at_once),
            opened_at: status.and_then(|status| status.opened_at),
            wait_until: status.and_then(|status| status.wait_until),
            message: String::new(),
            gates,
            targets: Some(own),
        });
    }
    lanes
}

fn of_phase(
    set: &ApplicationSet,
    generator: i64,
    index: usize,
    all: &[PhaseStatus],
    status: &PhaseStatus,
    targets: Vec<Target>,
    now: Timestamp,
) -> Lane {
    let place = usize::try_from(generator).ok();
    let strategy = place.and_then(|at| set.spec.generators.get(at)?.deployment_strategy.as_ref());
    let written =
        strategy.and_then(|strategy| strategy.phases.iter().find(|phase| phase.name == status.name));
    let mut gates: Vec<Gate> = Vec::new();
    if let Some(before) = index.checked_sub(1).and_then(|before| all.get(before)) {
        gates.push(Gate { name: before.name.clone(), ..previous(index, phase_state(&before.state)) });
    }
    gates.extend(status.pre_hooks.iter().map(|call| of_call("preHook", call)));
    gates.extend(status.checks.iter().map(|call| of_call("check", call)));
    gates.extend(status.post_hooks.iter().map(|call| of_call("postHook", call)));
    if let Some(wait) = written.and_then(|phase| phase.wait_duration.as_deref()) {
        let word = match status.state {
            PhaseState::Waiting => "Running",
            PhaseState::Complete => "Passed",
            PhaseState::Skipped => "Skipped",
            _ => "Pending",
        };
        gates.push(gate("wait", wait, word));
    }
    let failure = status.failure.as_ref().map(|failure| failure.message.clone());
    let counts = match targets.is_empty() {
        // Too many for the status: only their numbers are told.
        true => {
            let number = |count: i64| usize::try_from(count).unwrap_or_default();
            let (total, done, failed) =
                (number(status.selected), number(status.healthy), number(status.failed));
            let updating = number(status.updated).saturating_sub(done + failed);
            Counts { total, done, updating, failed, waiting: total.saturating_sub(done + failed + updating) }
        }
        false => Counts::of(&targets),
    };
    Lane {
        id: format!("phase-{generator}-{index}"),
        kind: "phase",
        title: status.name.clone(),
        selector: written.map(|phase| whom(&phase.targets)).unwrap_or_default(),
        state: phase_state(&status.state),
        counts,
        max_update: None,
        opened_at: time(status.started_at.as_ref()),
        wait_until: time(status.wait_until.as_ref()),
        message: failure.unwrap_or_else(|| baton_phases::standing::waits(status, now)),
        gates,
        targets: Some(sorted(targets)),
    }
}

fn of_call(kind: &'static str, call: &HookResult) -> Gate {
    let state = match call.state {
        HookState::Running | HookState::Retrying => "Running",
        HookState::Succeeded | HookState::Ignored => "Passed",
        HookState::Failed => "Failed",
        HookState::Cancelled => "Skipped",
        HookState::Pending | HookState::Other(_) => "Pending",
    };
    let name = match call.target.as_str() {
        "" => call.name.clone(),
        target => format!("{} ({target})", call.name),
    };
    Gate {
        kind,
        name,
        state,
        attempt: (call.attempt > 0).then_some(call.attempt),
        started_at: time(call.started_at.as_ref()),
        seconds: call.finished_at.as_ref().map(|_| call.duration_milliseconds / 1000),
        message: call.message.clone(),
    }
}

fn gate(kind: &'static str, name: &str, state: &'static str) -> Gate {
    Gate {
        kind,
        name: name.to_owned(),
        state,
        attempt: None,
        started_at: None,
        seconds: None,
        message: String::new(),
    }
}

/// The lane before as a gate. `at` is its number.
fn previous(at: usize, before: LaneState) -> Gate {
    let state = match before {
        LaneState::Done | LaneState::Skipped => "Passed",
        LaneState::Open | LaneState::RollingBack => "Running",
        LaneState::Failed | LaneState::RolledBack => "Failed",
        LaneState::Pending => "Pending",
    };
    gate("previous", &format!("step {at}"), state)
}

fn step_state(status: Option<&StepStanding>) -> LaneState {
    match status.map(|status| status.state.as_str()) {
        Some("Open" | "Soaking") => LaneState::Open,
        Some("Complete") => LaneState::Done,
        Some("Failed") => LaneState::Failed,
        _ => LaneState::Pending,
    }
}

fn phase_state(state: &PhaseState) -> LaneState {
    match state {
        PhaseState::Pending | PhaseState::Other(_) => LaneState::Pending,
        PhaseState::PreHooks
        | PhaseState::Deploying
        | PhaseState::Checking
        | PhaseState::PostHooks
        | PhaseState::Waiting
        | PhaseState::Paused => LaneState::Open,
        PhaseState::RollingBack => LaneState::RollingBack,
        PhaseState::RolledBack => LaneState::RolledBack,
        PhaseState::Failed | PhaseState::Aborted => LaneState::Failed,
        PhaseState::Skipped => LaneState::Skipped,
        PhaseState::Complete => LaneState::Done,
    }
}

fn counted(step: &StepStanding) -> Counts {
    let number = |count: i64| usize::try_from(count).unwrap_or_default();
    let (total, done) = (number(step.total), number(step.done));
    let (updating, failed) = (number(step.updating), number(step.failed));
    Counts { total, done, updating, failed, waiting: total.saturating_sub(done + updating + failed) }
}

/// Whom a step takes, as `env In (dev)`.
fn selector(step: &RolloutStep) -> String {
    if step.match_expressions.is_empty() {
        return "every Application".to_owned();
    }
    let one = |expression: &baton_api::strategy::MatchExpression| {
        format!("{} {} ({})", expression.key, expression.operator.as_str(), expression.values.join(", "))
    };
    step.match_expressions.iter().map(one).collect::<Vec<_>>().join(" and ")
}

/// Whom a phase takes.
fn whom(targets: &[PhaseTarget]) -> String {
    let one = |target: &PhaseTarget| {
        let mut parts = Vec::new();
        if !target.clusters.is_empty() {
            parts.push(format!("cluster In ({})", target.clusters.join(", ")));
        }
        parts.extend(target.values.iter().map(|(key, value)| format!("{key} In ({value})")));
        parts.extend(target.match_expressions.iter().map(|expression| {
            let values = match expression.values.is_empty() {
                true => String::new(),
                false => format!(" ({})", expression.values.join(", ")),
            };
            format!("{} {}{values}", expression.key, expression.operator.as_str())
        }));
        parts.join(" and ")
    };
    targets.iter().map(one).collect::<Vec<_>>().join(" or ")
}

fn sorted(mut targets: Vec<Target>) -> Vec<Target> {
    targets.sort_by(|left, right| left.name.cmp(&right.name));
    targets
}

fn time(time: Option<&Time>) -> Option<Timestamp> {
    time.map(|time| time.0)
}
