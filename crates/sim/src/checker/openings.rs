//! I1 too: a step opens when one consistent list showed every Application of all steps before it done and well.
//!
//! The head records the version of that list. It is believed in nothing: what the API held at that version is looked up.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::done::{has_failed, why_not};
use super::history::{History, Version};
use super::order::Runs;
use super::roster::{Roster, rosters};
use super::starts::Stamp;
use super::told::Phasing;
use super::wanted::{APPS, Sets};
use super::{Case, Entry, Violation, text};

pub(super) fn violations<'h>(
    case: &Case<'h>,
    history: &History<'h>,
    (sets, phasing): (&Sets<'h>, &Phasing<'h>),
    runs: &Runs<'h>,
) -> Vec<Violation> {
    let mut found = Vec::new();
    for opening in openings(case, history, runs) {
        let listed = place_of(case.entries, opening.version);
        let mut judged: Vec<Option<String>> = sets
            .in_force(opening.place, opening.entry.at - case.slack)
            .flat_map(|wanted| rosters(wanted, phasing, (opening.place, opening.entry.at)))
            .map(|roster| judge(case, history, runs, &roster, &opening, listed))
            .collect();
        judged.sort_by_key(Option::is_some);
        // A consistent list is no older than when it was asked for.
        let known = case.entries[..opening.place]
            .iter()
            .rev()
            .find(|entry| &*entry.cluster == "control" && entry.at <= opening.entry.at - case.moment);
        // The first step needs nobody's consent but that of whoever has automatic sync switched off.
        if opening.step > 0 && known.and_then(version).is_some_and(|known| known > opening.version) {
            judged = vec![Some("the list was old".to_owned())];
        }
        if let Some(Some(why)) = judged.into_iter().next() {
            let (step, run, version) = (opening.step + 1, opening.stamp.run, opening.version);
            let text = format!("step {step} of run {run} was opened by the list at version {version}: {why}");
            found.push(Violation { invariant: "I1", at: opening.entry.at, text });
        }
    }
    found
}

/// A head that opens a step.
struct Opening<'h> {
    place: usize,
    entry: &'h Entry,
    stamp: Stamp<'h>,
    /// Counted from 0.
    step: usize,
    version: u64,
}

/// Every opening of a step, in order.
fn openings<'h>(case: &Case<'h>, history: &History<'h>, runs: &Runs<'h>) -> Vec<Opening<'h>> {
    let name = format!("{}.baton-rollout", case.set);
    let mut found: Vec<Opening<'h>> = Vec::new();
    let mut before = (0, 0);
    for write in history.writes("control", "configmaps", &name, usize::MAX) {
        let Ok(run) = serde_json::from_str::<Value>(text(&write.entry.object, "/data/run")) else { continue };
        let (Some(seq), Some(open)) = (run["seq"].as_u64(), run["open"].as_u64()) else { continue };
        let stamp = runs.stamp(text(&run, "/set"), seq);
        let from = if before.0 == seq { before.1 } else { 0 };
        for step in from..open {
            let step = usize::try_from(step).unwrap_or(usize::MAX);
            let version = run["openings"][step]["version"].as_u64().unwrap_or(0);
            found.push(Opening { place: write.place, entry: write.entry, stamp, step, version });
        }
        before = (seq, open);
    }
    found
}

/// Whether the head says at a place that a step of a run is open; how it came to be is judged where it did.
pub(super) fn is_open(case: &Case<'_>, history: &History<'_>, run: u64, step: usize, place: usize) -> bool {
    let name = format!("{}.baton-rollout", case.set);
    let head = history.state("control", "configmaps", &name, place);
    let head: Option<Value> =
        head.and_then(|head| serde_json::from_str(text(&head.entry.object, "/data/run")).ok());
    head.is_some_and(|head| {
        head["seq"].as_u64() == Some(run) && head["open"].as_u64().is_some_and(|open| open > step as u64)
    })
}

/// Where in the history the control plane came to a version.
fn place_of(entries: &[Entry], version: u64) -> usize {
    let is_later =
        |entry: &Entry| &*entry.cluster == "control" && self::version(entry).is_some_and(|own| own > version);
    entries.iter().position(is_later).unwrap_or(entries.len())
}

/// The version of the control plane that a write made.
fn version(entry: &Entry) -> Option<u64> {
    text(&entry.object, "/metadata/resourceVersion").parse().ok()
}

/// Why the newest of these states, or a stretch of older ones that nobody could miss, is not well.
fn unwell(
    states: &[Version<'_>],
    end: Timestamp,
    moment: SignedDuration,
    why_not: impl Fn(&Value) -> Option<String>,
) -> Option<String> {
    let mut until = end;
    // When the stretch that is looked at ended, and why it was not well.
    let mut stretch: Option<(Timestamp, String)> = None;
    for (number, state) in states.iter().enumerate() {
        let why = why_not(&state.entry.object);
        if number == 0 && why.is_some() {
            return why;
        }
        stretch = why.map(|why| stretch.take().unwrap_or((until, why)));
        until = state.entry.at;
        if let Some((ended, why)) = &stretch
            && ended.duration_since(until) >= moment
        {
            return Some(why.clone());
        }
    }
    None
}

/// What keeps a step from being open by one version of the set.
fn judge<'h>(
    case: &Case<'h>,
    history: &History<'h>,
    runs: &Runs<'h>,
    roster: &Roster<'_, 'h>,
    opening: &Opening<'h>,
    listed: usize,
) -> Option<String> {
    let wanted = roster.wanted;
    let from = runs.began(opening.stamp).unwrap_or(opening.entry.at) - case.slack;
    for (number, step) in wanted.steps.iter().enumerate().take(opening.step) {
        let mut failures = step.failures(roster.members(number).count());
        // It must have been well for as long as its step asks; the last before this one, that is.
        let soaks = if number + 1 == opening.step { step.wait() } else { SignedDuration::ZERO };
        let soaks = (soaks - case.apart).max(SignedDuration::ZERO);
        for name in roster.members(number) {
            if wanted.skips(history, name, opening.place) {
                continue;
            }
            let spec = &wanted.apps[name].spec;
            let accepted = runs.accepted(case, (opening.stamp, spec), (from, opening.entry.at));
            let since = opening.entry.at - soaks;
            let states = history.states(("control", APPS, name), since, listed);
            let states = if soaks.is_zero() { states.get(..1) } else { Some(&*states) };
            let states = states.unwrap_or_default();
            let why = match history.state("control", APPS, name, listed) {
                Some(_) => {
                    let why = |app: &Value| why_not(case.git, app, spec, &accepted);
                    unwell(states, opening.entry.at, case.moment, why)
                }
                None => Some("it is not there".to_owned()),
            };
            let Some(why) = why else { continue };
            if failures > 0 && has_failed(history, name, from, opening.place) {
                failures -= 1;
                continue;
            }
            return Some(format!("{name} was not done in it: {why}"));
        }
    }
    None
}
