//! `phases`: how far phased deployments are, and what they wait for.

use std::collections::BTreeMap;

use baton_api::ApplicationSet;
use baton_api::application_set::ConditionStatus;
use baton_api::phase_status::{GeneratorPhases, HookResult, HookState, PhaseState, PhaseStatus};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::owned;
use super::screen::{Cell, Screen, Tone, span};
use super::standing_view::{COLUMN, state_tone};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::print;

/// Of which set.
#[derive(Debug, Args)]
#[command(
    after_help = "JSON and YAML hold `status.phases` whole, one entry per generator; `currentPhase` counts from 0 and \
equals `totalPhases` when all are done.

Exit codes: 0 told; 1 usage; 3 the set has no phases; 20 no such set, or the API refused or cannot be reached.

Examples:
  baton appset phases web
  baton appset phases web -o json | jq '.[] | {currentPhase, totalPhases}'"
)]
pub(crate) struct Arguments {
    /// The ApplicationSet.
    set: String,
    #[command(flatten)]
    connection: Connection,
    /// How to print it; without it for people.
    #[arg(short, long, value_enum)]
    output: Option<Output>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Json,
    Yaml,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let client = arguments.connection.client().await?;
    let set = owned::set(&client, &arguments.connection.namespace, &arguments.set).await?;
    if !super::control::has_phases(&set) {
        return Err(Failure::failed(format!(
            "{} has no phases: none of its generators has a deploymentStrategy",
            arguments.set
        )));
    }
    let whole = vec![whole(&set)];
    print::out(&match arguments.output {
        None => text(&set, Timestamp::now(), &Screen::of_stdout()),
        Some(Output::Json) => print::json(&whole, true)?,
        Some(Output::Yaml) => print::yaml(&whole)?,
    })
}

/// `status.phases`, with the number of the first phase too, which the API leaves out.
fn whole(set: &ApplicationSet) -> Value {
    let mut whole = json!(set.status.phases);
    for (entry, phases) in whole.as_array_mut().into_iter().flatten().zip(&set.status.phases) {
        entry["currentPhase"] = phases.current_phase.into();
    }
    whole
}

fn text(set: &ApplicationSet, now: Timestamp, screen: &Screen) -> String {
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let mut out = screen.labelled("Set:", name, Tone::Heading, COLUMN);
    if set.status.phases.is_empty() {
        let why = "no rollout has begun; `baton appset explain` tells what is waited for";
        out.push_str(&screen.labelled("Phases:", why, Tone::Busy, COLUMN));
    }
    for condition in set.status.conditions.iter().filter(|it| it.kind == "InvalidPhaseConfig") {
        // While it is not true, what it says holds nobody up.
        let (label, tone) = match condition.status {
            ConditionStatus::True => ("Wrong:", Tone::Bad),
            _ => ("Note:", Tone::Busy),
        };
        out.push_str(&screen.labelled(label, &condition.message, tone, COLUMN));
    }
    for generator in &set.status.phases {
        out.push('\n');
        out.push_str(&generator_text(generator, now, screen));
    }
    out
}

fn generator_text(generator: &GeneratorPhases, now: Timestamp, screen: &Screen) -> String {
    let state = generator.state.as_str();
    let mut words = vec![format!("{} ({})", generator.generator, generator.generator_type), state.to_owned()];
    if generator.current_phase < generator.total_phases {
        words.push(format!("phase {} of {}", generator.current_phase + 1, generator.total_phases));
    }
    words.extend(times(&generator.started_at, &generator.finished_at, now));
    let mut out = screen.labelled("Generator:", &words.join(", "), state_tone(state), COLUMN);
    if !generator.message.is_empty() {
        out.push_str(&screen.labelled("Message:", &generator.message, Tone::Plain, COLUMN));
    }
    if generator.unassigned_count > 0 {
        let some = generator.unassigned.iter().take(5).cloned().collect::<Vec<_>>();
        let text = match usize::try_from(generator.unassigned_count) {
            Ok(count) if count == some.len() => some.join(", "),
            _ => format!("{} Applications, {} among them", generator.unassigned_count, some.join(", ")),
        };
        out.push_str(&screen.labelled("In no phase:", &text, Tone::Busy, COLUMN + 2));
    }
    out.push('\n');
    let headings = ["PHASE", "STATE", "DONE", "FAILED", "HOOKS", "WAITS FOR"];
    let rows: Vec<Vec<Cell>> = generator.phases.iter().map(|phase| row(phase, now)).collect();
    match screen.table(&headings, &rows, 2) {
        Some(table) => out.push_str(&table),
        // Too narrow for columns.
        None => {
            for phase in &generator.phases {
                let text = format!("{} {}", phase.state.as_str(), waits(phase, now));
                out.push_str(&screen.labelled(&phase.name, &text, state_tone(phase.state.as_str()), COLUMN));
            }
        }
    }
    for (phase, failure) in generator.phases.iter().filter_map(|phase| Some((phase, phase.failure.as_ref()?)))
    {
        let text = format!("{}: {} ({})", phase.name, failure.message, failure.reason);
        out.push_str(&screen.labelled("Failed:", &text, Tone::Bad, COLUMN));
        if !failure.remedy.is_empty() {
            out.push_str(&screen.labelled("Remedy:", &failure.remedy, Tone::Plain, COLUMN));
        }
        if !failure.not_rolled_back.is_empty() {
            let text = format!("no good state is known of {}", failure.not_rolled_back.join(", "));
            out.push_str(&screen.labelled("Not put back:", &text, Tone::Bad, COLUMN + 3));
        }
    }
    out
}

fn row(phase: &PhaseStatus, now: Timestamp) -> Vec<Cell> {
    let state = phase.state.as_str();
    // Of a hook that is called for each target, the worst tells.
    let mut worst: BTreeMap<&str, &HookState> = BTreeMap::new();
    for result in phase.pre_hooks.iter().chain(&phase.checks).chain(&phase.post_hooks) {
        let known = worst.entry(&result.name).or_insert(&result.state);
        if rank(&result.state) > rank(known) {
            *known = &result.state;
        }
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    worst.values().for_each(|state| *counts.entry(state.as_str()).or_default() += 1);
    let counts: Vec<String> =
        counts.into_iter().map(|(state, count)| format!("{count} {}", state.to_lowercase())).collect();
    let failed = if phase.failed > 0 { Tone::Bad } else { Tone::Plain };
    vec![
        Cell::toned(&phase.name, Tone::Plain),
        Cell::toned(state, state_tone(state)),
        Cell::toned(format!("{}/{}", phase.healthy, phase.selected), Tone::Plain),
        Cell::toned(phase.failed.to_string(), failed),
        Cell::toned(counts.join(", "), Tone::Plain),
        Cell::toned(waits(phase, now), Tone::Plain),
    ]
}

/// The higher, the more people want to know of it.
fn rank(state: &HookState) -> usize {
    use HookState as S;
    let order = [S::Succeeded, S::Ignored, S::Pending, S::Running, S::Retrying, S::Cancelled, S::Failed];
    order.iter().position(|known| known == state).unwrap_or(order.len())
}

/// What a phase that is under way waits for. Why one has failed is told below.
fn waits(phase: &PhaseStatus, now: Timestamp) -> String {
    let ended = [PhaseState::Complete, PhaseState::Skipped, PhaseState::Failed, PhaseState::RolledBack];
    if ended.contains(&phase.state) {
        return String::new();
    }
    if let Some(Time(until)) = &phase.wait_until
        && *until > now
        && phase.state == PhaseState::Waiting
    {
        return format!("the end of its wait, in {}", span(now, *until));
    }
    let pending = |result: &&HookResult| matches!(result.state, HookState::Running | HookState::Retrying);
    let hooks = phase.pre_hooks.iter().chain(&phase.checks).chain(&phase.post_hooks);
    let names: Vec<String> = hooks
        .filter(pending)
        .map(|result| match result.target.as_str() {
            "" => result.name.clone(),
            target => format!("{} for {target}", result.name),
        })
        .collect();
    match names.as_slice() {
        [] => phase.message.clone(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

fn times(from: &Option<Time>, to: &Option<Time>, now: Timestamp) -> Option<String> {
    match (from, to) {
        (Some(Time(from)), Some(Time(to))) => {
            Some(format!("took {}, ended {} ago", span(*from, *to), span(*to, now)))
        }
        (Some(Time(from)), None) => Some(format!("began {} ago", span(*from, now))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_that_failed_is_told_with_what_helps() {
        let set: ApplicationSet = serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"generators": [], "template": {}},
            "status": {"phases": [{
                "generator": 0, "generatorType": "clusters", "rolloutID": "1-a-b", "currentPhase": 1, "totalPhases": 2,
                "state": "Failed", "startedAt": "2026-01-01T00:00:00Z",
                "phases": [
                    {"name": "canary", "state": "Complete", "selected": 2, "healthy": 2, "preHooks": [
                        {"name": "open", "state": "Succeeded"},
                    ]},
                    {"name": "all", "state": "Failed", "selected": 18, "healthy": 3, "failed": 1, "failure": {
                        "reason": "CheckFailed", "message": "check load failed", "action": "stop",
                        "remedy": "`baton appset retry web`, or commit something newer",
                    }},
                ],
            }]},
        }))
        .expect("a set");
        let now = "2026-01-01T00:05:00Z".parse().expect("a time");
        let screen = Screen { width: Some(100), height: None, colours: false, folds: false };
        insta::assert_snapshot!(text(&set, now, &screen));
    }

    #[test]
    fn the_first_phase_has_a_number() {
        let set: ApplicationSet = serde_json::from_value(json!({
            "metadata": {"name": "web"}, "spec": {"generators": [], "template": {}},
            "status": {"phases": [{"generator": 0, "totalPhases": 2}]},
        }))
        .expect("a set");
        assert_eq!(whole(&set), json!([{"generator": 0, "currentPhase": 0, "totalPhases": 2}]));
    }

    #[test]
    fn what_holds_nobody_up_is_not_called_wrong() {
        let told = |status: &str| {
            let condition = json!({
                "type": "InvalidPhaseConfig", "status": status, "reason": "Unassigned", "message": "one is in no phase",
            });
            let set: ApplicationSet = serde_json::from_value(json!({
                "metadata": {"name": "web"}, "spec": {"generators": [], "template": {}},
                "status": {"conditions": [condition]},
            }))
            .expect("a set");
            let screen = Screen { width: Some(100), height: None, colours: false, folds: false };
            text(&set, Timestamp::UNIX_EPOCH, &screen)
        };
        assert!(told("True").contains("Wrong:      one is in no phase"), "{}", told("True"));
        assert!(told("False").contains("Note:       one is in no phase"), "{}", told("False"));
    }
}
