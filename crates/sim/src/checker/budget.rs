//! I2: never more Applications of a step under way than `maxUpdate` allows, judged whenever one is started.

use jiff::Timestamp;
use serde_json::Value;

use super::done::has_failed;
use super::history::History;
use super::sources::revisions;
use super::starts::{Start, stamp_of};
use super::wanted::{APPS, Sets, Wanted};
use super::{Case, Violation, is_null, text};

pub(super) fn violations<'h>(
    case: &Case<'h>,
    history: &History<'h>,
    sets: &Sets<'h>,
    starts: &[Start<'h>],
) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, start) in starts.iter().enumerate() {
        let versions = sets.in_force(start.place, start.entry.at - case.slack);
        let mut judged: Vec<Option<String>> =
            versions.map(|wanted| judge(history, wanted, start, &starts[..number])).collect();
        judged.sort_by_key(Option::is_some);
        if let Some(Some(text)) = judged.into_iter().next() {
            found.push(Violation { invariant: "I2", at: start.entry.at, text });
        }
    }
    found
}

fn judge<'h>(
    history: &History<'h>,
    wanted: &Wanted<'h>,
    start: &Start<'h>,
    earlier: &[Start<'h>],
) -> Option<String> {
    let name = &*start.entry.name;
    let step = wanted.step(name)?;
    let members: Vec<&str> = wanted.members(step).collect();
    let total = members.len();
    let limit = wanted.steps[step].limit(total)?;
    // Where limits were lowered, or Applications moved, more may be under way than there is room for. One of them begins
    // anew in its own slot then, which makes them no more; but not beside the operation of another.
    let again = is_under_way(history, name, start.place, earlier);
    let counts = |other: &&str| match again {
        true => is_under_way(history, other, start.place, earlier) && is_busy(history, other, start.place),
        false => is_under_way(history, other, start.place, earlier),
    };
    let counts = |other: &&str| counts(other) && !wanted.skips(history, other, start.place);
    let under_way: Vec<&str> = members.into_iter().filter(|other| *other != name).filter(counts).collect();
    // Those that may fail hold nobody up.
    let failed =
        under_way.iter().filter(|name| has_failed(history, name, Timestamp::MIN, start.place)).count();
    let limit = limit + failed.min(wanted.steps[step].failures(total));
    (under_way.len() + 1 > limit).then(|| {
        let step = step + 1;
        format!("{name} was started beside {under_way:?}, and step {step} lets {limit} be under way")
    })
}

/// Whether an Application was started and has not been well since.
fn is_under_way(history: &History<'_>, name: &str, place: usize, starts: &[Start<'_>]) -> bool {
    let Some(start) = starts.iter().rev().find(|start| &*start.entry.name == name) else { return false };
    let uid = text(&start.entry.object, "/metadata/uid");
    let Some(now) = history.state("control", APPS, name, place) else { return false };
    if text(&now.entry.object, "/metadata/uid") != uid {
        return false;
    }
    let later = history.writes("control", APPS, name, place).rev().take_while(|v| v.place > start.place);
    !later.into_iter().any(|version| {
        let app = &version.entry.object;
        ended_well(app, &start.revisions) || was_found_well(app)
    })
}

fn is_busy(history: &History<'_>, name: &str, place: usize) -> bool {
    history.state("control", APPS, name, place).is_some_and(|version| super::is_busy(&version.entry.object))
}

/// Whether an operation that ended otherwise, or one of somebody else, was followed by a comparison that found nothing
/// left to do.
fn was_found_well(app: &Value) -> bool {
    let ended = text(app, "/status/operationState/finishedAt");
    let is_other = stamp_of(&app["status"]["operationState"]["operation"]).is_none();
    let phase = text(app, "/status/operationState/phase");
    is_null(app, "/operation")
        && (matches!(phase, "Failed" | "Error") || (phase == "Succeeded" && is_other))
        && !ended.is_empty()
        && text(app, "/status/reconciledAt") >= ended
        && text(app, "/status/sync/status") == "Synced"
        && text(app, "/status/health/status") == "Healthy"
}

fn ended_well(app: &Value, synced: &[&str]) -> bool {
    is_null(app, "/operation")
        && text(app, "/status/operationState/phase") == "Succeeded"
        && revisions(&app["status"]["operationState"]["syncResult"]) == synced
        && text(app, "/status/sync/status") == "Synced"
        && text(app, "/status/health/status") == "Healthy"
}
