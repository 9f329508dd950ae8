//! `phases`: how far phased deployments are, and what they wait for.

use std::collections::BTreeMap;

use baton_api::ApplicationSet;
use baton_api::application_set::ConditionStatus;
use baton_rollout::explain;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::json;

use super::phase_view;
use super::sets::Sets;
use super::standing_view::{COLUMN, obstacle};
use crate::failure::Failure;
use crate::place::Place;
use crate::print;
use crate::screen::{Screen, Tone};

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
    place: Place,
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
    let set = Sets::at(&arguments.place).await?.set(&arguments.set).await?;
    if !super::control::has_phases(&set) {
        return Err(Failure::failed(format!(
            "{} has no phases: none of its generators has a deploymentStrategy",
            arguments.set
        )));
    }
    let whole = vec![json!(set.status.phases)];
    print::out(&match arguments.output {
        None => text(&set, Timestamp::now(), &Screen::of_stdout()),
        Some(Output::Json) => print::json(&whole, true)?,
        Some(Output::Yaml) => print::yaml(&whole)?,
    })
}

fn text(set: &ApplicationSet, now: Timestamp, screen: &Screen) -> String {
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let mut out = screen.labelled("Set:", name, Tone::Heading, COLUMN);
    if set.status.phases.is_empty() {
        let why = "no rollout has begun";
        out.push_str(&screen.labelled("Phases:", why, Tone::Busy, COLUMN));
        match &explain::standing(set, None, &BTreeMap::new()).first {
            Some(first) => out.push_str(&obstacle("Waits for:", first, now, screen)),
            None => {
                let first = "a controller with ordered rollouts (--enable-progressive-syncs) to see it";
                out.push_str(&screen.labelled("Waits for:", first, Tone::Busy, COLUMN));
            }
        }
    }
    for condition in set.status.conditions.iter().filter(|it| it.kind == "InvalidPhaseConfig") {
        // While it is not true, what it says holds nobody up.
        let (label, tone) = match condition.status {
            ConditionStatus::True => ("Wrong:", Tone::Bad),
            _ => ("Note:", Tone::Busy),
        };
        out.push_str(&screen.labelled(label, &condition.message, tone, COLUMN));
    }
    if !set.status.phases.is_empty() {
        out.push('\n');
        out.push_str(&phase_view::generators(&set.status.phases, now, screen));
    }
    out
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
