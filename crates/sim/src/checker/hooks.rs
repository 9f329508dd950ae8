//! I5, of hooks: what is on record as passed is not called again.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::history::History;
use super::wanted::SETS;
use super::{Case, Violation, text};

/// One attempt at a hook or a check, as whoever was called saw it.
#[derive(Debug, Clone)]
pub struct HookCall {
    /// When it came.
    pub at: Timestamp,
    /// When it was answered well; none where it was not, or nobody heard the answer.
    pub passed: Option<Timestamp>,
    /// The key it came with, the same for all attempts of a rollout.
    pub key: String,
    /// Place of the phase, counted from 0.
    pub phase: usize,
    /// The list of the phase that it stands in: `preHooks`, `checks` or `postHooks`.
    pub list: &'static str,
    /// The Application it was made for; empty where it was made for the phase.
    pub target: Arc<str>,
    /// Name of the hook or check.
    pub name: Arc<str>,
}

/// What was called although it is on record that it had passed.
pub(super) fn violations(case: &Case<'_>, history: &History<'_>) -> Vec<Violation> {
    let mut recorded: BTreeMap<&str, Timestamp> = BTreeMap::new();
    if case.calls.is_empty() {
        return Vec::new();
    }
    for write in history.writes("control", SETS, case.set, usize::MAX) {
        for key in passed(&write.entry.object) {
            recorded.entry(key).or_insert(write.entry.at);
        }
    }
    let again = |call: &&HookCall| recorded.get(&*call.key).is_some_and(|at| call.at > *at);
    let blame = |call: &HookCall| {
        let text = format!("{} of phase {} was called again after it had passed", call.name, call.phase + 1);
        Violation { invariant: "I5", at: call.at, text }
    };
    case.calls.iter().filter(again).map(blame).collect()
}

/// The keys of what a set says has passed.
fn passed(set: &Value) -> impl Iterator<Item = &str> {
    let phases = list(&set["status"], "phases").iter().flat_map(|generator| list(generator, "phases"));
    let results = phases.flat_map(|phase| {
        ["preHooks", "postHooks", "checks"].into_iter().flat_map(move |field| list(phase, field))
    });
    results
        .filter(|result| text(result, "/state") == "Succeeded")
        .map(|result| text(result, "/idempotencyKey"))
}

fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}
