//! I2: never more Applications of a step under way than `maxUpdate` allows, judged whenever one is started.

use jiff::Timestamp;
use serde_json::Value;

use super::done::has_failed;
use super::history::History;
use super::order::{Runs, names_its_commit};
use super::roster::{Roster, rosters};
use super::sources::revisions;
use super::starts::{Start, pin_of, stamp_of};
use super::told::Phasing;
use super::wanted::{APPS, Sets};
use super::{Case, Violation, is_null, text};

pub(super) fn violations<'h>(
    case: &Case<'h>,
    history: &History<'h>,
    (sets, phasing): (&Sets<'h>, &Phasing<'h>),
    (starts, runs): (&[Start<'h>], &Runs<'h>),
) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, start) in starts.iter().enumerate() {
        let when = (start.place, start.entry.at - case.slack);
        let versions = sets.in_force(when.0, when.1).flat_map(|wanted| rosters(wanted, phasing, when));
        let mut judged: Vec<Option<String>> =
            versions.map(|roster| judge((history, sets, runs), &roster, start, &starts[..number])).collect();
        judged.sort_by_key(Option::is_some);
        if let Some(Some(text)) = judged.into_iter().next() {
            found.push(Violation { invariant: "I2", at: start.entry.at, text });
        }
    }
    found
}

fn judge<'h>(
    (history, sets, runs): (&History<'h>, &Sets<'h>, &Runs<'h>),
    roster: &Roster<'_, 'h>,
    start: &Start<'h>,
    earlier: &[Start<'h>],
) -> Option<String> {
    let (name, wanted) = (&*start.entry.name, roster.wanted);
    let step = roster.step(name)?;
    let members: Vec<&str> = roster.members(step).collect();
    let total = members.len();
    let limit = wanted.steps[step].limit(total)?;
    // Where limits were lowered, or Applications moved, more may be under way than there is room for. One of them begins
    // anew in its own slot then, which makes them no more; but not beside the operation of another.
    let again = is_under_way(history, name, start.place, earlier);
    // A phase says how many begin at once. Who has begun, in this run or one that it supersedes, goes on in its own place,
    // is mended there, and is put back as its turn comes.
    if wanted.is_phased() && (again || names_its_commit(start) || has_begun(history, runs, start, earlier)) {
        return None;
    }
    let counts = |other: &&str| match again {
        true => is_under_way(history, other, start.place, earlier) && is_busy(history, other, start.place),
        false => is_under_way(history, other, start.place, earlier),
    };
    // Whom people said to be done has given its place back then, whatever it is to be since.
    let skipped = |other: &str| {
        let begun = earlier.iter().rev().find(|earlier| &*earlier.entry.name == other);
        let begun = begun.and_then(|begun| Some((begun.entry.at, pin_of(begun)?)));
        begun.is_some_and(|(at, pin)| sets.have_skipped((other, pin), start.place, at))
    };
    let counts =
        |other: &&str| counts(other) && !wanted.skips(history, other, start.place) && !skipped(other);
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

/// Whether an Application was started before in the same run, or was under way when that began.
fn has_begun<'h>(history: &History<'h>, runs: &Runs<'h>, start: &Start<'h>, earlier: &[Start<'h>]) -> bool {
    let name = &*start.entry.name;
    let Some((own, began)) = start.stamp.and_then(|stamp| Some((stamp, runs.began(stamp)?))) else {
        return false;
    };
    let place = history.entries.partition_point(|entry| entry.at < began);
    let before = &earlier[..earlier.partition_point(|other| other.place < place)];
    let of_run = |other: &Start<'_>| other.stamp.is_some_and(|stamp| stamp.run == own.run);
    earlier.iter().any(|other| &*other.entry.name == name && of_run(other))
        || is_under_way(history, name, place, before)
        || is_unwell(history, name, start.place) && before.iter().any(|other| &*other.entry.name == name)
}

/// Whether an Application is not healthy: who was begun and is not well keeps its place.
fn is_unwell(history: &History<'_>, name: &str, place: usize) -> bool {
    let state = history.state("control", APPS, name, place);
    state.is_some_and(|version| text(&version.entry.object, "/status/health/status") != "Healthy")
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
