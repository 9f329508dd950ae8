//! I5, of going back: what a phase has changed ends at its own last good state, and what was recorded as good was.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::done::{was_done, why_not};
use super::history::History;
use super::order::{is_healing, names_its_commit};
use super::sources::{Accepted, sources};
use super::starts::{Start, pin_of};
use super::told::{Phasing, Told, action};
use super::wanted::APPS;
use super::{Case, Change, Entry, Violation, is_null, text};

pub(super) fn violations<'h>(
    case: &Case<'h>,
    history: &History<'h>,
    phasing: &Phasing<'h>,
    starts: &[Start<'h>],
) -> Vec<Violation> {
    let mut found: Vec<Violation> =
        case.good.iter().filter_map(|good| unproved(case, history, good)).collect();
    for (number, told) in phasing.versions.iter().enumerate() {
        let before = number.checked_sub(1).map(|number| &phasing.versions[number]);
        let before = before.filter(|before| before.rollout() == told.rollout());
        for (place, phase) in told.phases().iter().enumerate() {
            let names = |phase: &'h Value| phase["failure"]["rolledBack"].as_array().into_iter().flatten();
            let known: Vec<&Value> = before
                .and_then(|before| before.phases().get(place))
                .map(names)
                .into_iter()
                .flatten()
                .collect();
            let new = names(phase).filter(|name| !known.contains(name)).filter_map(Value::as_str);
            for name in new {
                if let Some(why) = is_not_back(case, history, told, (place, name)) {
                    let text = format!("{name} is told to have been put back, and was not: {why}");
                    found.push(Violation { invariant: "I5", at: told.at, text });
                }
            }
        }
    }
    found.extend(in_the_end(case, history, phasing, starts));
    found
}

/// A state that was recorded as good and was not.
fn unproved(case: &Case<'_>, history: &History<'_>, good: &Entry) -> Option<Violation> {
    if good.change != Change::Added {
        return None;
    }
    let (name, spec) = (text(&good.object, "/data/application"), &good.object["data"]["spec"]);
    let before = history.entries.iter().take_while(|entry| entry.at <= good.at).count();
    // It was well at some time since its run began, which is what its phase was open for.
    let why = was_done(
        case,
        history,
        (name, &followed(history, name, spec, before), &commits(spec)),
        (Timestamp::MIN, before),
    )
    .err()?;
    let text = format!("a state of {name} was recorded as good, and it was not: {why}");
    Some(Violation { invariant: "I5", at: good.at, text })
}

/// A specification at its commits, as the template has it: following its branches.
fn followed(history: &History<'_>, name: &str, spec: &Value, before: usize) -> Value {
    let branch = |version: &Value| version.pointer("/spec/source/targetRevision").cloned();
    let mut states = history.writes("control", APPS, name, before);
    let commit = &spec["source"]["targetRevision"];
    let other = states.find_map(|version| branch(&version.entry.object).filter(|branch| branch != commit));
    let mut spec = spec.clone();
    if let Some(branch) = other {
        spec["source"]["targetRevision"] = branch;
    }
    spec
}

/// The commits that a specification names.
fn commits(spec: &Value) -> Accepted<'_> {
    sources(spec).iter().map(|source| [source.branch.1].into()).collect()
}

/// The good states of an Application on record at a time: pin and specification, oldest first.
pub(super) fn recorded<'h>(case: &Case<'h>, name: &str, at: Timestamp) -> Vec<(&'h str, &'h Value)> {
    let mut there: BTreeMap<i64, (&str, &Value)> = BTreeMap::new();
    let of_app = |entry: &&Entry| text(&entry.object, "/data/application") == name && entry.at <= at;
    for entry in case.good.iter().filter(of_app) {
        let number = entry.object["revision"].as_i64().unwrap_or(0);
        match entry.change {
            Change::Deleted => {
                there.remove(&number);
            }
            _ => {
                there.insert(number, (text(&entry.object, "/data/pin"), &entry.object["data"]["spec"]));
            }
        }
    }
    there.into_values().collect()
}

/// Why an Application that is told to have been put back was not, where it was not.
fn is_not_back<'h>(
    case: &Case<'h>,
    history: &History<'h>,
    told: &Told<'h>,
    (place, name): (usize, &str),
) -> Option<String> {
    let entry = super::told::entry(told.phases().get(place)?, name)?;
    let states = recorded(case, name, told.at);
    let Some((_, spec)) = states.iter().find(|(pin, _)| *pin == text(entry, "/pin")) else {
        return Some("what it was put back to is not on record".to_owned());
    };
    was_done(case, history, (name, spec, &commits(spec)), (told.at - case.slack, told.place)).err()
}

/// What was to be put back and is not, in the end.
fn in_the_end<'h>(
    case: &Case<'h>,
    history: &History<'h>,
    phasing: &Phasing<'h>,
    starts: &[Start<'h>],
) -> Vec<Violation> {
    let Some(told) = phasing.last().filter(|_| case.ended) else { return Vec::new() };
    let mut found = Vec::new();
    let mut blame = |text: String| found.push(Violation { invariant: "I5", at: told.at, text });
    for (place, phase) in told.phases().iter().enumerate().filter(|(_, phase)| action(phase) == "rollback") {
        if text(phase, "/state") == "RollingBack" {
            blame(format!("phase {} is being put back, and that does not end", place + 1));
        }
        let failed: Timestamp = text(phase, "/failure/at").parse().unwrap_or(told.at);
        for start in starts {
            let name = &*start.entry.name;
            let of_phase = told.place_of(name) == Some(place) && start.entry.at >= told.began;
            let own = !is_healing(history, start) && !names_its_commit(start);
            let Some(app) = history.state("control", APPS, name, usize::MAX) else { continue };
            let app = &app.entry.object;
            if !of_phase || !own || !is_null(app, "/metadata/deletionTimestamp") {
                continue;
            }
            let states = recorded(case, name, failed.max(start.entry.at));
            let brought = pin_of(start);
            let last = states.iter().rev().find(|(pin, _)| Some(*pin) != brought);
            let listed = |field: &str| {
                let names = phase["failure"][field].as_array();
                names.is_some_and(|names| names.iter().any(|listed| listed == name))
            };
            match last {
                None if listed("notRolledBack") => {}
                None => blame(format!("{name} has nothing to be put back to, and nobody is told")),
                Some((_, spec)) => {
                    if let Some(why) = why_not(case.git, app, spec, &commits(spec)) {
                        blame(format!("{name} is not at its last good state in the end: {why}"));
                    }
                }
            }
        }
    }
    found.dedup_by(|a, b| a.text == b.text);
    found
}
