//! I6: once faults have stopped, every run finishes or names what it waits for.

use jiff::Timestamp;
use serde_json::Value;

use super::deletion::is_of_set;
use super::done::{has_failed, was_done, why_not};
use super::history::History;
use super::roster::{Roster, rosters};
use super::sources::sources;
use super::told::{Phasing, Told};
use super::wanted::{APPS, SETS, Sets};
use super::{Case, Change, Violation, is_null, text};

pub(super) fn violations<'h>(
    case: &Case<'h>,
    history: &History<'h>,
    sets: &Sets<'h>,
    phasing: &Phasing<'h>,
) -> Vec<Violation> {
    if !case.ended {
        return Vec::new();
    }
    let at = case.entries.last().map_or(Timestamp::UNIX_EPOCH, |entry| entry.at);
    let blame = |text: String| vec![Violation { invariant: "I6", at, text }];
    let Some(wanted) = sets.last() else { return Vec::new() };
    if wanted.terminating || sets.gone.is_some() {
        return teardown(case, history, sets).map(blame).unwrap_or_default();
    }
    let Some(roster) = rosters(wanted, phasing, (usize::MAX, Timestamp::MAX)).pop() else {
        return Vec::new();
    };
    let Some((name, unfinished)) = unfinished(case, history, &roster, phasing) else { return Vec::new() };
    let set = history.state("control", SETS, case.set, usize::MAX).map(|version| &version.entry.object);
    let named = set.map(named).unwrap_or_default();
    if named.is_empty() && !case.blind {
        return blame(format!("{unfinished}, and nothing names what it waits for"));
    }
    // What is done about a failure is judged for itself; that people leave it so is their affair.
    let left = case.left && phasing.last().is_some_and(|told| told.frozen().is_some());
    match left || excused(case, &roster, &name, &named) {
        true => Vec::new(),
        false => blame(format!("{unfinished}, though nothing stands in its way; named: {named:?}")),
    }
}

/// What of a set's deletion is left over.
fn teardown(case: &Case<'_>, history: &History<'_>, sets: &Sets<'_>) -> Option<String> {
    let last = history.writes("control", SETS, case.set, usize::MAX).next_back()?;
    if last.entry.change != Change::Deleted && sets.gone.is_none() {
        let named = named(&last.entry.object);
        let untold = named.is_empty() && !case.blind;
        return untold.then(|| "the set is not gone, and nothing names why".to_owned());
    }
    // Orphans live on.
    let left = left(case, history).into_iter();
    let mut owned = left.filter(|name| {
        let app = history.state("control", APPS, name, usize::MAX);
        app.is_some_and(|app| !is_null(&app.entry.object, "/metadata/deletionTimestamp"))
    });
    owned.next().map(|name| format!("the set is gone and {name} is stuck in its deletion"))
}

/// The first Application that is not as it should be in the end, and why not.
fn unfinished<'h>(
    case: &Case<'h>,
    history: &History<'h>,
    roster: &Roster<'_, 'h>,
    phasing: &Phasing<'h>,
) -> Option<(String, String)> {
    let wanted = roster.wanted;
    // Those that may fail hold nobody up, and are not waited for.
    let count = |step: usize| wanted.steps[step].failures(roster.members(step).count());
    let mut failures: Vec<usize> = (0..wanted.steps.len()).map(count).collect();
    for (name, app) in &wanted.apps {
        let state = history.state("control", APPS, name, usize::MAX);
        if wanted.is_phased() && roster.step(name).is_none() {
            // Whom no phase takes stays as it is.
            continue;
        }
        if phasing.last().is_some_and(|told| is_passed_over(told, name)) {
            continue;
        }
        let Some(state) = state else { return Some((name.clone(), format!("{name} was not created"))) };
        let Some(step) = roster.step(name) else { continue };
        if failures[step] > 0
            && is_broken(case, &app.spec)
            && has_failed(history, name, Timestamp::MIN, usize::MAX)
        {
            failures[step] -= 1;
            continue;
        }
        if wanted.skips(history, name, usize::MAX) {
            continue;
        }
        let accepted = case.git.ends(&sources(&app.spec));
        if let Some(why) = why_not(case.git, &state.entry.object, &app.spec, &accepted) {
            return Some((name.clone(), format!("{name} is not done: {why}")));
        }
        let what = (name.as_str(), &app.spec, &accepted);
        if let Err(why) = was_done(case, history, what, (state.entry.at, usize::MAX)) {
            return Some((name.clone(), format!("{name} is not done: {why}")));
        }
    }
    let left = left(case, history).into_iter().find(|name| !wanted.apps.contains_key(*name));
    left.map(|name| (name.to_owned(), format!("{name} left the set and is still there")))
}

/// Whether the phase of an Application has failed, and the rollout went on without it.
fn is_passed_over(told: &Told<'_>, app: &str) -> bool {
    told.place_of(app).is_some_and(|place| told.passes_over(place))
}

/// The set's Applications in the end.
fn left<'h>(case: &Case<'_>, history: &History<'h>) -> Vec<&'h str> {
    let names = history.names("control", APPS).into_iter();
    let there = names.filter(|name| {
        let app = history.state("control", APPS, name, usize::MAX);
        app.is_some_and(|app| is_of_set(case, &app.entry.object))
    });
    there.collect()
}

/// What the set says it waits for.
fn named(set: &Value) -> Vec<String> {
    let list = |pointer: &str| set.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let blockers = list("/status/rollout/blockers").chain(list("/status/rollout/deletion/blockers"));
    let blockers =
        blockers.map(|blocker| format!("{} {}", text(blocker, "/reason"), text(blocker, "/object")));
    let errors = list("/status/conditions")
        .filter(|condition| {
            text(condition, "/type") == "ErrorOccurred" && text(condition, "/status") == "True"
        })
        .map(|condition| text(condition, "/reason").to_owned());
    blockers.chain(errors).collect()
}

/// Whether people or git hold an Application up: by a pause, by an abort, by a held step or a broken commit that it is in or
/// comes after, or since nobody prunes.
fn excused(case: &Case<'_>, roster: &Roster<'_, '_>, name: &str, named: &[String]) -> bool {
    let wanted = roster.wanted;
    let prunes =
        wanted.set.pointer("/spec/template/spec/syncPolicy/automated/prune") == Some(&Value::Bool(true));
    let says = |reason: &str| named.iter().any(|name| name.starts_with(reason));
    let unpruned = !prunes && says("PruneOnly ");
    // Whoever has left is in no step any more, and goes when nothing is in the way of the rest.
    let place = if wanted.apps.contains_key(name) { roster.step(name) } else { Some(usize::MAX) };
    let before = |step: Option<usize>| step.is_some_and(|step| place.is_some_and(|place| step <= place));
    let held =
        (0..wanted.steps.len()).any(|step| wanted.steps[step].limit(100) == Some(0) && before(Some(step)));
    let broken = wanted
        .apps
        .iter()
        .any(|(other, app)| is_broken(case, &app.spec) && (other == name || before(roster.step(other))));
    let aborted = !wanted.aborted.is_empty() && (case.blind || says("Aborted "));
    wanted.paused || held || broken || unpruned || aborted || wanted.has_failing_hooks()
}

/// Whether what a specification follows in the end holds workloads that never become ready.
fn is_broken(case: &Case<'_>, spec: &Value) -> bool {
    let sources = sources(spec);
    let ends = case.git.ends(&sources);
    sources.iter().zip(ends).any(|(source, commits)| {
        let mut commits = commits.into_iter();
        commits.any(|commit| case.git.broken.contains(&(commit.to_owned(), source.directory.to_owned())))
    })
}
