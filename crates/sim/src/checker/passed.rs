//! I5, of what a phase has to have passed before the next one begins: its hooks and checks, and its wait.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::hooks::HookCall;
use super::roster::Roster;
use super::told::Told;
use super::{Case, annotation, text};

/// What of a phase had not passed at a time in any rollout that may be meant, if there is something.
pub(super) fn lacking<'h>(
    case: &Case<'_>,
    roster: &Roster<'_, 'h>,
    told: &[&Told<'h>],
    (phase, at): (usize, Timestamp),
) -> Option<String> {
    let mut judged: Vec<Option<String>> =
        told.iter().map(|told| of_rollout(case, roster, told, (phase, at))).collect();
    judged.sort_by_key(Option::is_some);
    judged.into_iter().next().flatten()
}

fn of_rollout(
    case: &Case<'_>,
    roster: &Roster<'_, '_>,
    told: &Told<'_>,
    (phase, at): (usize, Timestamp),
) -> Option<String> {
    let mut last = None;
    for list in ["preHooks", "checks", "postHooks"] {
        for call in roster.wanted.calls(phase, list) {
            let name = text(call, "/name");
            let targets: Vec<&str> = match text(call, "/scope") == "target" {
                true => roster.members(phase).collect(),
                false => vec![""],
            };
            for target in targets {
                let is_meant = |made: &&HookCall| {
                    (made.phase, made.list, &*made.name, &*made.target) == (phase, list, name, target)
                        && made.at >= told.began
                };
                let passed = case.calls.iter().filter(is_meant).filter_map(|made| made.passed);
                let passed = passed.filter(|passed| *passed <= at).min();
                let Some(passed) = passed else {
                    return Some(if target.is_empty() {
                        name.to_owned()
                    } else {
                        format!("{name} for {target}")
                    });
                };
                last = last.max(Some(passed));
            }
        }
    }
    // Of a wait that a person ended nothing is left.
    let advanced = !annotation(told.set, "baton.dev/advance").is_empty();
    let ends = last? + wait(roster.wanted.phase(phase));
    (ends > at && !advanced).then(|| "the wait".to_owned())
}

/// How long a phase waits at its end.
fn wait(phase: &Value) -> SignedDuration {
    let seconds = text(phase, "/waitDuration").strip_suffix('s').and_then(|text| text.parse().ok());
    SignedDuration::from_secs(seconds.unwrap_or(0))
}
