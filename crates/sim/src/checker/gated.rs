//! I5, of what is held: nobody of a phase is made, or given a specification it never had, before every earlier phase is over.
//! What starts a sync is judged beside the steps.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::done::{comparable, was_done};
use super::history::{History, Version};
use super::passed::{lacking, lacking_before};
use super::roster::{Roster, rosters};
use super::sources::{Accepted, sources};
use super::starts::Start;
use super::told::{Phasing, Told};
use super::wanted::{APPS, Sets};
use super::{Case, Change, Violation};

pub(super) fn violations<'h>(
    case: &Case<'h>,
    history: &History<'h>,
    (sets, phasing): (&Sets<'h>, &Phasing<'h>),
    starts: &[Start<'h>],
) -> Vec<Violation> {
    let started: BTreeSet<usize> = starts.iter().map(|start| start.place).collect();
    let written = case.entries.iter().enumerate().filter(|(place, entry)| {
        &*entry.cluster == "control" && &*entry.resource == APPS && !started.contains(place)
    });
    let mut found = Vec::new();
    for (place, entry) in written {
        let write = Version { place, entry };
        let Some(deed) = deed(history, &write) else { continue };
        let spec = comparable(&entry.object["spec"]);
        let from = entry.at - case.slack;
        let mut judged: Vec<Option<String>> = Vec::new();
        for wanted in sets.in_force(place, from) {
            if !wanted.is_phased() {
                judged.push(None);
            }
            if wanted.apps.get(&*entry.name).is_none_or(|app| comparable(&app.spec) != spec) {
                continue;
            }
            let told: Vec<&Told<'h>> = phasing.in_force(place, from).collect();
            let ways = rosters(wanted, phasing, (place, from)).into_iter();
            judged.extend(ways.map(|roster| ahead_of(case, history, &roster, &told, &write)));
        }
        // Of what no version wanted people are the authors, or whoever puts something back.
        judged.sort_by_key(Option::is_some);
        if let Some(Some(why)) = judged.into_iter().next() {
            let text = format!("{} {deed} before {why}", entry.name);
            found.push(Violation { invariant: "I5", at: entry.at, text });
        }
    }
    found
}

/// What a write does to its Application that phases have a say in.
fn deed(history: &History<'_>, write: &Version<'_>) -> Option<&'static str> {
    let (name, object) = (&write.entry.name, &write.entry.object);
    match write.entry.change {
        Change::Deleted => None,
        Change::Added => Some("was made"),
        Change::Modified => {
            let spec = comparable(&object["spec"]);
            let had = history.writes("control", APPS, name, write.place).any(|before| {
                let before = &before.entry.object;
                before["metadata"]["uid"] == object["metadata"]["uid"] && comparable(&before["spec"]) == spec
            });
            (!had && !is_by_person(history, write)).then_some("was given another specification")
        }
    }
}

/// Whether people wrote something of the specification: it is theirs from then on.
fn is_by_person(history: &History<'_>, write: &Version<'_>) -> bool {
    let theirs = |app: &Value| {
        let managers = app.pointer("/metadata/managedFields").and_then(Value::as_array);
        let own = managers.into_iter().flatten().filter(|entry| entry["manager"] == "person");
        own.map(|entry| entry["fieldsV1"]["f:spec"].clone()).collect::<Vec<Value>>()
    };
    let before = history.state("control", APPS, &write.entry.name, write.place);
    let after = theirs(&write.entry.object);
    after.iter().any(|fields| !fields.is_null())
        && before.is_none_or(|before| theirs(&before.entry.object) != after)
}

/// What of the phases before an Application's, or of what is called before its own, was not over when it was written, as
/// far as one version of the set has it.
fn ahead_of<'h>(
    case: &Case<'h>,
    history: &History<'h>,
    roster: &Roster<'_, 'h>,
    told: &[&Told<'h>],
    write: &Version<'h>,
) -> Option<String> {
    let (wanted, entry) = (roster.wanted, write.entry);
    // Whom no phase holds is held, or let go with the field: steps have their say in that.
    let phase = roster.step(&entry.name)?;
    if let Some(hook) = lacking_before(case, roster, told, (phase, &entry.name, entry.at)) {
        return Some(format!("{hook} of phase {} had passed", phase + 1));
    }
    let began = told.iter().map(|told| told.began).min().unwrap_or(entry.at);
    for before in (0..phase).filter(|before| !told.iter().any(|told| told.passes_over(*before))) {
        if let Some(what) = lacking(case, roster, told, (before, entry.at)) {
            return Some(format!("{what} of phase {} had passed", before + 1));
        }
        let mut failures = wanted.steps[before].failures(roster.members(before).count());
        for name in roster.members(before).filter(|name| !wanted.skips(history, name, write.place)) {
            let spec = &wanted.apps[name].spec;
            let accepted = tips(case, spec, (began - case.slack, entry.at));
            let done = was_done(case, history, (name, spec, &accepted), (began - case.slack, write.place));
            let Err(why) = done else { continue };
            if failures > 0 && super::done::has_failed(history, name, began, write.place) {
                failures -= 1;
                continue;
            }
            return Some(format!("{name} (phase {}) was done: {why}", before + 1));
        }
    }
    None
}

/// For each source, what its branch pointed to meanwhile.
fn tips<'h>(case: &Case<'h>, spec: &Value, (from, to): (Timestamp, Timestamp)) -> Accepted<'h> {
    sources(spec).iter().map(|source| case.git.tips(source.branch, from, to)).collect()
}
