//! How far phases are, from what the status says: what each waits for, and what is new since it was looked at last.

use std::collections::BTreeMap;

use baton_api::phase_status::{GeneratorPhases, HookResult, HookState, PhaseState, PhaseStatus};
use baton_hooks::Role;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::forecast::brief;
use crate::instant::until;
use crate::lists::{Lists, ROLES};

/// Something that has happened to phases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// What it is about.
    pub about: About,
    /// In words.
    pub text: String,
}

/// What news are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// The rollout of a generator.
    Rollout,
    /// A phase.
    Phase,
    /// A hook or a check.
    Call,
}

/// What a phase that is under way waits for; nothing of one that has ended, whose failure says more.
pub fn waits(phase: &PhaseStatus, now: Timestamp) -> String {
    if phase.has_ended() {
        return String::new();
    }
    if let Some(Time(end)) = &phase.wait_until
        && *end > now
        && phase.state == PhaseState::Waiting
    {
        return format!("the end of its wait, in {}", brief(until(now, *end)));
    }
    let pending = |result: &&HookResult| matches!(result.state, HookState::Running | HookState::Retrying);
    let mut pending = ROLES.into_iter().flat_map(|role| single(phase.results(role))).filter(pending);
    match (pending.next(), pending.count()) {
        (None, _) => phase.message.clone(),
        (Some(first), 0) => of_call(first, now),
        (Some(first), more) => format!("{}, and {more} more", of_call(first, now)),
    }
}

/// The results without those that sum up what is said of each target beside them.
fn single(results: &[HookResult]) -> impl Iterator<Item = &HookResult> {
    let has_targets =
        |name: &str| results.iter().any(|other| other.name == *name && !other.target.is_empty());
    results.iter().filter(move |result| !result.target.is_empty() || !has_targets(&result.name))
}

/// What a call that has not passed waits for.
fn of_call(result: &HookResult, now: Timestamp) -> String {
    let mut text = result.name.clone();
    if !result.target.is_empty() {
        text.push_str(&format!(" for {}", result.target));
    }
    match (&result.next_attempt_at, &result.started_at) {
        (Some(Time(next)), _) if result.state == HookState::Retrying => {
            let when =
                if *next > now { format!("in {}", brief(until(now, *next))) } else { "now".to_owned() };
            text.push_str(&format!(", attempt {} {when}", result.attempt + 1));
        }
        (_, Some(Time(from))) if result.attempt <= 1 => {
            text.push_str(&format!(", called {} ago", brief(until(*from, now))));
        }
        _ if result.attempt > 1 => text.push_str(&format!(", attempt {}", result.attempt)),
        _ => {}
    }
    if !result.message.is_empty() {
        text.push_str(&format!(": {}", result.message));
    }
    text
}

/// How many hooks and checks of a phase stand how. Of one that is called for each target, the worst tells.
pub fn tally(phase: &PhaseStatus) -> BTreeMap<&str, usize> {
    let mut worst: BTreeMap<(Role, &str), &HookState> = BTreeMap::new();
    for role in ROLES {
        for result in phase.results(role) {
            let known = worst.entry((role, &result.name)).or_insert(&result.state);
            if rank(&result.state) > rank(known) {
                *known = &result.state;
            }
        }
    }
    let mut counts = BTreeMap::new();
    worst.values().for_each(|state| *counts.entry(state.as_str()).or_default() += 1);
    counts
}

/// The higher, the more people want to know of it.
fn rank(state: &HookState) -> usize {
    use HookState as S;
    let order = [S::Succeeded, S::Ignored, S::Pending, S::Running, S::Retrying, S::Cancelled, S::Failed];
    order.iter().position(|known| known == state).unwrap_or(order.len())
}

/// What is new, in the order in which it must have happened.
pub fn news(before: &[GeneratorPhases], after: &[GeneratorPhases], now: Timestamp) -> Vec<News> {
    let several = before.len().max(after.len()) > 1;
    let mut all = Vec::new();
    for next in after {
        let old = before.iter().find(|old| old.generator == next.generator);
        let mut told = of_generator(old, next, now);
        if several {
            told.iter_mut().for_each(|one| one.text = format!("generator {}: {}", next.generator, one.text));
        }
        all.append(&mut told);
    }
    for gone in before.iter().filter(|old| after.iter().all(|next| next.generator != old.generator)) {
        let text = format!("generator {}: its phases are over, and hold nobody any more", gone.generator);
        all.push(News { about: About::Rollout, text });
    }
    all
}

fn of_generator(old: Option<&GeneratorPhases>, next: &GeneratorPhases, now: Timestamp) -> Vec<News> {
    let mut told = Vec::new();
    let same = old.filter(|old| old.rollout_id == next.rollout_id);
    if same.is_none() {
        let text = match next.total_phases {
            1 => "a rollout of 1 phase begins".to_owned(),
            count => format!("a rollout of {count} phases begins"),
        };
        told.push(News { about: About::Rollout, text });
    }
    for (index, phase) in next.phases.iter().enumerate() {
        let old = same.and_then(|old| old.phases.get(index)).filter(|old| old.name == phase.name);
        let about = |text: String| News { about: About::Phase, text };
        let changed = old.map_or(&PhaseState::Pending, |old| &old.state) != &phase.state;
        let change = Some(phase).filter(|_| changed).and_then(|phase| of_phase(phase, now)).map(about);
        // Calls that have ended came before the end of the phase, those that begin come after its change.
        let (begun, ended): (Vec<_>, Vec<_>) = ROLES
            .into_iter()
            .flat_map(|role| of_calls(role, old, phase, now))
            .partition(|(begins, _)| *begins);
        let calls = |calls: Vec<(bool, String)>| {
            calls.into_iter().map(|(_, text)| News { about: About::Call, text }).collect::<Vec<_>>()
        };
        told.extend(calls(ended));
        told.extend(change);
        told.extend(calls(begun));
    }
    let state = |state: &PhaseState| match state {
        PhaseState::Complete => Some("every phase is complete".to_owned()),
        PhaseState::Aborted => Some("the rollout is aborted".to_owned()),
        PhaseState::Paused => Some("phases are paused".to_owned()),
        _ => None,
    };
    if same.map_or(&PhaseState::Pending, |old| &old.state) != &next.state {
        told.extend(state(&next.state).map(|text| News { about: About::Rollout, text }));
    }
    told
}

/// What a phase has come to, where that is worth a line.
fn of_phase(phase: &PhaseStatus, now: Timestamp) -> Option<String> {
    let name = &phase.name;
    let why = phase.failure.as_ref().map(|failure| format!(": {}", failure.message)).unwrap_or_default();
    Some(match &phase.state {
        PhaseState::Pending => return None,
        PhaseState::PreHooks => format!("phase {name} begins"),
        PhaseState::Deploying => match phase.selected {
            0 => format!("phase {name} changes nobody"),
            1 => format!("phase {name} deploys 1 Application"),
            count => format!("phase {name} deploys {count} Applications"),
        },
        PhaseState::Checking => format!("phase {name} is checked"),
        PhaseState::PostHooks => format!("phase {name} has deployed"),
        PhaseState::Waiting => match &phase.wait_until {
            Some(Time(end)) => format!("phase {name} waits {}", brief(until(now, *end))),
            None => format!("phase {name} waits"),
        },
        PhaseState::Paused => format!("phase {name} is paused"),
        PhaseState::RollingBack => format!("phase {name} failed and is put back{why}"),
        PhaseState::RolledBack => format!("phase {name} was put back"),
        PhaseState::Failed => format!("phase {name} failed{why}"),
        PhaseState::Aborted => format!("phase {name} is aborted"),
        PhaseState::Skipped => format!("phase {name} matches nobody and is passed over"),
        PhaseState::Complete => format!("phase {name} is complete"),
        PhaseState::Other(word) if word.is_empty() => return None,
        PhaseState::Other(word) => format!("phase {name} is {word}"),
    })
}

/// The calls of a list whose state is another, and whether they begin. Those for several targets are told together.
fn of_calls(
    role: Role,
    old: Option<&PhaseStatus>,
    phase: &PhaseStatus,
    now: Timestamp,
) -> Vec<(bool, String)> {
    let before = old.map(|old| old.results(role)).unwrap_or_default();
    let known: BTreeMap<(&str, &str), Stage> =
        single(before).map(|one| ((one.name.as_str(), one.target.as_str()), Stage::of(one))).collect();
    let mut changed: Vec<(&str, Stage, Vec<&HookResult>)> = Vec::new();
    for result in single(phase.results(role)) {
        let (stage, was) = (Stage::of(result), known.get(&(result.name.as_str(), result.target.as_str())));
        if was.copied().unwrap_or(Stage::Pending) == stage {
            continue;
        }
        match changed.iter_mut().find(|(name, other, _)| *name == result.name && *other == stage) {
            Some((_, _, all)) => all.push(result),
            None => changed.push((&result.name, stage, vec![result])),
        }
    }
    let what = if role == Role::Check { "check" } else { "hook" };
    let tell = |(name, stage, all): (&str, Stage, Vec<&HookResult>)| {
        let whom = match all.as_slice() {
            [one] if one.target.is_empty() => format!("{what} {name} of {}", phase.name),
            [one] => format!("{what} {name} of {} for {}", phase.name, one.target),
            all => format!("{what} {name} of {} for {} Applications", phase.name, all.len()),
        };
        (stage == Stage::Begun, format!("{whom} {}", stage.words(all[0], now)))
    };
    changed.into_iter().map(tell).collect()
}

/// How far a call is, as far as that is news: the attempts of one that is tried again and again are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Pending,
    Begun,
    Again,
    Passed,
    Ignored,
    Failed,
    Cancelled,
}

// === impl Stage ===

impl Stage {
    fn of(result: &HookResult) -> Stage {
        match &result.state {
            HookState::Running if result.attempt <= 1 => Stage::Begun,
            HookState::Running | HookState::Retrying => Stage::Again,
            HookState::Succeeded => Stage::Passed,
            HookState::Ignored => Stage::Ignored,
            HookState::Failed => Stage::Failed,
            HookState::Cancelled => Stage::Cancelled,
            HookState::Pending | HookState::Other(_) => Stage::Pending,
        }
    }

    fn words(self, result: &HookResult, now: Timestamp) -> String {
        let why = match result.message.as_str() {
            "" => String::new(),
            message => format!(": {message}"),
        };
        match self {
            Stage::Pending => "is to come".to_owned(),
            Stage::Begun => "is called".to_owned(),
            Stage::Again => {
                let next = result.next_attempt_at.as_ref().filter(|Time(next)| *next > now);
                let when = next.map(|Time(next)| format!(" in {}", brief(until(now, *next))));
                format!("did not pass and is tried again{}{why}", when.unwrap_or_default())
            }
            Stage::Passed if result.attempt > 1 => format!("passed at attempt {}", result.attempt),
            Stage::Passed => "passed".to_owned(),
            Stage::Ignored => format!("failed, and that does not matter{why}"),
            Stage::Failed => format!("failed{why}"),
            Stage::Cancelled => "was ended".to_owned(),
        }
    }
}

/// What can be told of the state of a phase.
trait Ended {
    fn has_ended(&self) -> bool;
}

impl Ended for PhaseStatus {
    fn has_ended(&self) -> bool {
        use PhaseState as P;
        matches!(self.state, P::Complete | P::Skipped | P::Failed | P::RolledBack | P::Aborted)
    }
}
