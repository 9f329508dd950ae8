//! I3: no Application is deleted while one that must go first is still there, whoever deletes it.

use serde_json::Value;

use super::history::{History, Version};
use super::wanted::{APPS, Deletion, Sets, Step, Wanted, labels, place};
use super::{Case, Change, Violation, annotation, is_null, text};

pub(super) fn violations<'h>(case: &Case<'h>, history: &History<'h>, sets: &Sets<'h>) -> Vec<Violation> {
    let mut found = Vec::new();
    for name in history.names("control", APPS) {
        let mut there = false;
        for version in history.writes("control", APPS, name, usize::MAX) {
            let going = version.entry.change == Change::Deleted
                || !is_null(&version.entry.object, "/metadata/deletionTimestamp");
            let begins = there && going;
            there = !going;
            if !begins || case.is_by_people(version.entry) {
                continue;
            }
            let Some(before) = history.state("control", APPS, name, version.place) else { continue };
            if !is_of_set(case, &before.entry.object) {
                continue;
            }
            let versions = sets.in_force(version.place, version.entry.at - case.slack);
            let mut judged: Vec<Option<String>> =
                versions.map(|wanted| judge(case, history, wanted, name, version, before)).collect();
            judged.sort_by_key(Option::is_some);
            if let Some(Some(text)) = judged.into_iter().next() {
                found.push(Violation { invariant: "I3", at: version.entry.at, text });
            }
        }
    }
    found
}

fn judge<'h>(
    case: &Case<'h>,
    history: &History<'h>,
    wanted: &Wanted<'h>,
    name: &str,
    version: Version<'h>,
    before: Version<'h>,
) -> Option<String> {
    let is_doomed = |name: &str| wanted.terminating || !wanted.apps.contains_key(name);
    if !is_doomed(name) {
        return Some(format!("{name} was deleted, and the set wants it"));
    }
    let steps = match &wanted.deletion {
        Deletion::AllAtOnce => return None,
        Deletion::Invalid => return Some(format!("{name} was deleted in an order that nobody can know")),
        Deletion::Steps(steps) => steps,
    };
    let own = rank(steps, &before.entry.object);
    let mut going = Vec::new();
    for other in history.names("control", APPS).into_iter().filter(|other| *other != name) {
        let Some(state) = history.state("control", APPS, other, version.place) else { continue };
        let app = &state.entry.object;
        let is_going = !is_null(app, "/metadata/deletionTimestamp");
        if !is_of_set(case, app) || !(is_doomed(other) || is_going) {
            continue;
        }
        let rank = rank(steps, app);
        if rank < own {
            return Some(format!("{name} was deleted before {other} was gone, which goes first"));
        }
        if rank == own && is_going {
            going.push(other);
        }
    }
    let total = wanted.apps.len().max(1);
    let stated = steps.get(own).and_then(|step| step.limit(total));
    let limit = stated.unwrap_or(1).max(1);
    (going.len() + 1 > limit)
        .then(|| format!("{name} was deleted beside {going:?}, and {limit} may go at once"))
}

/// The place in the order; what no step holds goes last.
fn rank(steps: &[Step<'_>], app: &Value) -> usize {
    place(steps, &labels(app)).unwrap_or(steps.len())
}

/// Whether it belongs to the set, which it says by its owner or its label.
pub(super) fn is_of_set(case: &Case<'_>, app: &Value) -> bool {
    let owners = app.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let owned = |owner: &Value| text(owner, "/kind") == "ApplicationSet" && text(owner, "/name") == case.set;
    owners.into_iter().flatten().any(owned)
        || labels(app).get("baton.dev/application-set").is_some_and(|set| set == case.set)
        || !annotation(app, "baton.dev/pin").is_empty()
}
