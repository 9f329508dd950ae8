//! What will happen, phase by phase, told before anything does.

use std::time::Duration;

use baton_api::phase_status::{GeneratorPhases, PhaseStatus};
use baton_hooks::{Finding, Role};
use baton_rollout::steps::Share;
use serde::Serialize;

use crate::config::{CallFailure, CallPlan, PhasePlan, Plan};
use crate::lists::ROLES;
use crate::targets::{Group, Roster, Target, assign};

/// How many names a sentence tells before it counts the rest.
const NAMED: usize = 8;

/// What will happen to the Applications of a generator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    /// The phases, in order.
    pub phases: Vec<PhaseForecast>,
    /// Applications that no phase takes, and that stay as they are.
    pub unassigned: Vec<String>,
    /// What is doubtful.
    pub warnings: Vec<String>,
    /// What keeps it from beginning.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// What will happen in one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PhaseForecast {
    /// Its name.
    pub name: String,
    /// How many targets match.
    pub matched: usize,
    /// How many of them are updated when it ends, those of earlier phases included.
    pub updated: usize,
    /// Those that go in it, in order.
    pub applications: Vec<String>,
    /// How many of those that match are to be updated when it ends, as it is written; none is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<String>,
    /// How many at once; none is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_once: Option<usize>,
    /// Calls before, in the middle and after.
    pub calls: Vec<CallForecast>,
    /// How long it waits at its end, in seconds.
    pub wait_seconds: u64,
    /// What follows a failure.
    pub on_failure: &'static str,
    /// In words.
    pub sentence: String,
}

/// A hook or a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallForecast {
    /// When it runs: `pre`, `check` or `post`.
    pub when: &'static str,
    /// Its name.
    pub name: String,
    /// How often it runs, if it passes at once.
    pub times: usize,
    /// Whether it runs for each Application of the phase.
    pub per_target: bool,
    /// Whether it runs beside neighbours that say the same.
    pub parallel: bool,
    /// What its failure means: `fail`, `ignore` or `abort`.
    pub failure_policy: &'static str,
    /// How long one attempt may take, in seconds. Of a check: until it must have passed.
    pub timeout_seconds: u64,
    /// For how long it is tried again, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_seconds: Option<u64>,
}

/// What going at once is where nothing syncs by itself.
pub(crate) const BY_HAND: &str = "; without `automated`, a person syncs them";

/// What becomes of Applications when the field is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Removal {
    /// The phase that is finished first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finishes: Option<String>,
    /// How many go at once after it.
    pub at_once: usize,
}

// === impl Removal ===

impl Removal {
    /// In words.
    pub fn sentence(&self) -> String {
        let go = match self.at_once {
            0 => "nobody else is held".to_owned(),
            1 => format!("1 Application goes at once{BY_HAND}"),
            count => format!("{count} Applications go at once{BY_HAND}"),
        };
        match &self.finishes {
            Some(phase) => {
                format!("deploymentStrategy is removed: phase {phase:?} is finished first, then {go}")
            }
            None => format!("deploymentStrategy is removed: no phase is open, and {go}"),
        }
    }
}

/// Tells what will happen where nobody has begun.
///
/// # Errors
/// Targets and phases do not fit: see [`assign`].
pub fn forecast(plan: &Plan, targets: &[Target]) -> Result<Forecast, Vec<Finding>> {
    Ok(told(plan, &assign(plan, targets)?, targets))
}

/// The same, with the targets shared out already.
pub(crate) fn told(plan: &Plan, roster: &Roster, targets: &[Target]) -> Forecast {
    let mut warnings = Vec::new();
    let mut phases = Vec::new();
    for (phase, group) in plan.phases.iter().zip(&roster.phases) {
        warnings.extend(group.doubt(phase));
        phases.push(of_phase(phase, group));
    }
    let mut problems = Vec::new();
    if roster.is_idle() && !targets.is_empty() {
        problems.push(
            "no phase matches any Application: the rollout does not begin; mend the targets".to_owned(),
        );
    }
    let unassigned: Vec<String> = roster.unassigned.iter().map(|name| name.to_string()).collect();
    warnings.extend(aside(&unassigned));
    Forecast { phases, unassigned, warnings, problems }
}

/// Who is in no phase, in words.
fn aside(unassigned: &[String]) -> Option<String> {
    let some = unassigned[..unassigned.len().min(NAMED)].join(", ");
    match (unassigned.len(), unassigned.len().saturating_sub(NAMED)) {
        (0, _) => None,
        (1, _) => Some(format!("{some} is in no phase and stays as it is")),
        (count, 0) => Some(format!("{count} Applications are in no phase and stay as they are: {some}")),
        (count, more) => {
            Some(format!("{count} Applications are in no phase and stay as they are: {some} and {more} more"))
        }
    }
}

/// Tells what becomes of the Applications when the field is removed now.
pub fn removal(stored: Option<&GeneratorPhases>, targets: &[Target]) -> Removal {
    let open = stored.and_then(|stored| stored.phases.get(usize::try_from(stored.current_phase).ok()?));
    let open = open.filter(|phase| phase.started_at.is_some() && phase.finished_at.is_none());
    let begun = |target: &&Target| {
        let phases = stored.map(|stored| stored.phases.as_slice()).unwrap_or_default();
        phases.iter().flat_map(|phase| &phase.applications).any(|entry| *entry.name == *target.name)
    };
    // What does not fit into the status is not named in it, but counted.
    let unnamed = |phase: &PhaseStatus| match phase.details_ref.is_empty() {
        true => 0,
        false => usize::try_from(phase.selected).unwrap_or(0).saturating_sub(phase.applications.len()),
    };
    let unnamed: usize = stored.iter().flat_map(|stored| &stored.phases).map(unnamed).sum();
    let left = targets.iter().filter(|target| !begun(target)).count();
    Removal { finishes: open.map(|phase| phase.name.clone()), at_once: left.saturating_sub(unnamed) }
}

fn of_phase(phase: &PhasePlan, group: &Group) -> PhaseForecast {
    let at_once = phase.limit(group.own.len());
    let wait = phase.wait.unwrap_or(Duration::ZERO);
    PhaseForecast {
        name: phase.name.to_string(),
        matched: group.matched,
        updated: phase.selects(group.matched).max(group.own.len()),
        applications: group.own.iter().map(|name| name.to_string()).collect(),
        share: phase.quota.map(|share| match share {
            Share::Count(count) => count.to_string(),
            Share::Percent(percent) => format!("{percent}%"),
        }),
        at_once,
        calls: ROLES.into_iter().flat_map(|role| of_calls(phase, group, role)).collect(),
        wait_seconds: wait.as_secs(),
        on_failure: phase.on_failure.as_str(),
        sentence: sentence(phase, group, at_once),
    }
}

fn of_calls<'a>(
    phase: &'a PhasePlan,
    group: &'a Group,
    role: Role,
) -> impl Iterator<Item = CallForecast> + 'a {
    let times = |call: &CallPlan| match (group.matched, call.per_target) {
        (0, _) => 0,
        (_, true) => group.own.len(),
        (_, false) => 1,
    };
    let when = role.hook_type().unwrap_or("check");
    phase.calls(role).iter().map(move |call| CallForecast {
        when,
        name: call.name.to_string(),
        times: times(call),
        per_target: call.per_target,
        parallel: call.parallel,
        failure_policy: match call.on_failure {
            CallFailure::Fails => "fail",
            CallFailure::Ignored => "ignore",
            CallFailure::Aborts => "abort",
        },
        timeout_seconds: call.timeout.as_secs(),
        // A check is asked again in any case.
        retry_seconds: call.again.filter(|_| role != Role::Check).map(|again| again.deadline.as_secs()),
    })
}

fn sentence(phase: &PhasePlan, group: &Group, at_once: Option<usize>) -> String {
    if group.matched == 0 {
        return "matches nothing, and is passed over".to_owned();
    }
    let pace = match at_once {
        Some(most) if most < group.own.len() => format!(", at most {most} at once"),
        _ => String::new(),
    };
    let wait = phase.wait.map(|wait| format!(", then waits {}", brief(wait))).unwrap_or_default();
    format!(
        "updates {} of {} matched Applications{pace}{wait}; on failure: {}",
        group.own.len(),
        group.matched,
        phase.on_failure.as_str()
    )
}

/// A duration in the units it is written in: `90s`, `5m`, `1h30m`.
pub fn brief(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let text: String =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}")).collect();
    if text.is_empty() { "0s".to_owned() } else { text }
}
