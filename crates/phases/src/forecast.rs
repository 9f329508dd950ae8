//! What will happen, phase by phase, told before anything does.

use std::time::Duration;

use baton_api::phase_status::GeneratorPhases;
use baton_hooks::{Finding, Role};
use serde::Serialize;

use crate::config::{CallPlan, PhasePlan, Plan};
use crate::lists::ROLES;
use crate::targets::{Group, Target, assign};

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
}

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

/// Tells what will happen.
///
/// # Errors
/// Targets and phases do not fit: see [`assign`].
pub fn forecast(plan: &Plan, targets: &[Target]) -> Result<Forecast, Vec<Finding>> {
    let roster = assign(plan, targets, |_| false)?;
    let mut warnings = Vec::new();
    let mut phases = Vec::new();
    for (phase, group) in plan.phases.iter().zip(&roster.phases) {
        if group.matched == 0 {
            warnings.push(format!("phase {:?} matches no Application and is passed over", phase.name));
        }
        phases.push(of_phase(phase, group));
    }
    if roster.is_idle() && !targets.is_empty() {
        warnings.push("no phase matches anything: the rollout does not begin".to_owned());
    }
    let unassigned: Vec<String> = roster.unassigned.iter().map(|name| name.to_string()).collect();
    if !unassigned.is_empty() {
        warnings.push(format!("{} Applications are in no phase and stay as they are", unassigned.len()));
    }
    Ok(Forecast { phases, unassigned, warnings })
}

/// Tells what becomes of the Applications when the field is removed now.
pub fn removal(stored: Option<&GeneratorPhases>, targets: &[Target]) -> Removal {
    let open = stored.and_then(|stored| stored.phases.get(usize::try_from(stored.current_phase).ok()?));
    let open = open.filter(|phase| phase.started_at.is_some() && phase.finished_at.is_none());
    let begun = |target: &&Target| {
        let phases = stored.map(|stored| stored.phases.as_slice()).unwrap_or_default();
        phases.iter().flat_map(|phase| &phase.applications).any(|entry| *entry.name == *target.name)
    };
    Removal {
        finishes: open.map(|phase| phase.name.clone()),
        at_once: targets.iter().filter(|target| !begun(target)).count(),
    }
}

fn of_phase(phase: &PhasePlan, group: &Group) -> PhaseForecast {
    let at_once = phase.limit(group.own.len());
    let wait = phase.wait.unwrap_or(Duration::ZERO);
    PhaseForecast {
        name: phase.name.to_string(),
        matched: group.matched,
        updated: phase.selects(group.matched).max(group.own.len()),
        applications: group.own.iter().map(|name| name.to_string()).collect(),
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
    let wait = phase.wait.map(|wait| format!(", then waits {wait:?}")).unwrap_or_default();
    format!(
        "updates {} of {} matched Applications{pace}{wait}; on failure: {}",
        group.own.len(),
        group.matched,
        phase.on_failure.as_str()
    )
}
