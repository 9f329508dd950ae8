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
    least(told.iter().map(|told| of_rollout(case, roster, told, (phase, at))))
}

/// What is called before a phase, for all of it or for this Application, and had not passed at a time in any rollout that
/// may be meant, if there is something. Of others of the phase, who may have joined it later, it is not waited for.
pub(super) fn lacking_before<'h>(
    case: &Case<'_>,
    roster: &Roster<'_, 'h>,
    told: &[&Told<'h>],
    (phase, app, at): (usize, &str, Timestamp),
) -> Option<String> {
    least(told.iter().map(|told| {
        let made = |call: &HookCall| call.at >= told.began;
        let mut calls = roster.wanted.calls(phase, "preHooks");
        calls.find_map(|call| {
            let target = if is_per_target(call) { app } else { "" };
            passed(case, (phase, "preHooks", call, target), &made, at).err()
        })
    }))
}

/// The verdict of the rollout that lacks nothing, if there is one.
fn least(verdicts: impl Iterator<Item = Option<String>>) -> Option<String> {
    let mut verdicts: Vec<Option<String>> = verdicts.collect();
    verdicts.sort_by_key(Option::is_some);
    verdicts.into_iter().next().flatten()
}

fn is_per_target(call: &Value) -> bool {
    text(call, "/scope") == "target"
}

/// When a call for a target passed first among those that may be meant; what has not passed at a time, by name.
fn passed(
    case: &Case<'_>,
    (phase, list, call, target): (usize, &str, &Value, &str),
    is_meant: &dyn Fn(&HookCall) -> bool,
    at: Timestamp,
) -> Result<Timestamp, String> {
    let name = text(call, "/name");
    let is_such = |made: &&HookCall| {
        (made.phase, made.list, &*made.name, &*made.target) == (phase, list, name, target) && is_meant(made)
    };
    let passed = case.calls.iter().filter(is_such).filter_map(|made| made.passed);
    let first = passed.filter(|passed| *passed <= at).min();
    first.ok_or_else(|| if target.is_empty() { name.to_owned() } else { format!("{name} for {target}") })
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
            let targets: Vec<&str> = match is_per_target(call) {
                true => roster.members(phase).collect(),
                false => vec![""],
            };
            for target in targets {
                let made = |call: &HookCall| call.at >= told.began;
                let passed = match passed(case, (phase, list, call, target), &made, at) {
                    Ok(passed) => passed,
                    Err(lacking) => return Some(lacking),
                };
                last = last.max(Some(passed));
            }
        }
    }
    // Of a wait that a person ended nothing is left.
    let advanced = !annotation(told.set, "baton.dev/advance").is_empty();
    let ends = last? + (wait(roster.wanted.phase(phase)) - case.apart).max(SignedDuration::ZERO);
    (ends > at && !advanced).then(|| "the wait".to_owned())
}

/// How long a phase waits at its end.
fn wait(phase: &Value) -> SignedDuration {
    let seconds = text(phase, "/waitDuration").strip_suffix('s').and_then(|text| text.parse().ok());
    SignedDuration::from_secs(seconds.unwrap_or(0))
}
