//! I1 too: once a run is said to be paused or aborted, nothing of it is started any more.

use super::history::History;
use super::starts::Start;
use super::wanted::SETS;
use super::{Case, Violation, annotation, text};

/// What people ask for to go on with a run that was ended, or to put it back.
const MORE: [&str; 4] =
    ["baton.dev/retry", "baton.dev/advance", "baton.dev/rollback", "baton.dev/rollback-all"];

pub(super) fn violations<'h>(case: &Case<'h>, history: &History<'h>, starts: &[Start<'h>]) -> Vec<Violation> {
    let mut found = Vec::new();
    for start in starts {
        let Some(stamp) = start.stamp else { continue };
        if let Some(state) = holds(case, history, stamp.run, start.place) {
            let text = format!("{} was started in a run that was said to be {state}", start.entry.name);
            found.push(Violation { invariant: "I1", at: start.entry.at, text });
        }
    }
    found
}

/// What keeps a run from going on at a place: the set says that it does not, and nobody has asked for more since.
fn holds<'h>(case: &Case<'h>, history: &History<'h>, run: u64, place: usize) -> Option<&'h str> {
    let states = history.writes("control", SETS, case.set, place).rev().map(|write| &write.entry.object);
    let mut said = states.take_while(|set| {
        let rollout = &set["status"]["rollout"];
        rollout["run"].as_u64() == Some(run) && matches!(text(rollout, "/state"), "Paused" | "Aborted")
    });
    let now = said.next()?;
    let first = said.last().unwrap_or(now);
    let state = text(now, "/status/rollout/state");
    let is_meant = match state {
        "Paused" => annotation(now, "baton.dev/paused") == "true",
        // Nor have people asked for more of a run that was ended.
        _ => MORE.iter().all(|asked| annotation(now, asked) == annotation(first, asked)),
    };
    is_meant.then_some(state)
}
