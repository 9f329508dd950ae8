//! I4: nothing of an Application is deleted before people approved every guarded deletion of that operation.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::history::{History, Version};
use super::wanted::APPS;
use super::{Case, Change, Violation, annotation, is_null, text};

const APPROVED: &str = "argocd.argoproj.io/deletion-approved";
/// How far ahead a clock may be.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// A deletion of a resource in a member.
struct Deletion<'h> {
    place: usize,
    at: Timestamp,
    name: String,
    app: &'h Value,
    since: Timestamp,
    guarded: bool,
}

pub(super) fn violations(case: &Case<'_>, history: &History<'_>) -> Vec<Violation> {
    let deletions = deletions(case, history);
    let mut found = Vec::new();
    for deletion in &deletions {
        let same = |other: &&Deletion<'_>| {
            other.place >= deletion.place
                && other.since == deletion.since
                && text(other.app, "/metadata/uid") == text(deletion.app, "/metadata/uid")
        };
        let guarded = deletions.iter().filter(same).find(|other| other.guarded);
        if let Some(guarded) = guarded
            && !is_approved(history, deletion)
        {
            let text = format!("{} went before {} was approved", deletion.name, guarded.name);
            found.push(Violation { invariant: "I4", at: deletion.at, text });
        }
    }
    found
}

fn deletions<'h>(case: &Case<'h>, history: &History<'h>) -> Vec<Deletion<'h>> {
    let mut found = Vec::new();
    for (place, entry) in case.entries.iter().enumerate() {
        if &*entry.cluster == "control" || case.is_by_people(entry) || entry.change == Change::Added {
            continue;
        }
        let Some(before) = history.state(&entry.cluster, &entry.resource, &entry.name, place) else {
            continue;
        };
        let before = &before.entry.object;
        let going = |object: &Value| !is_null(object, "/metadata/deletionTimestamp");
        if going(before) || !(entry.change == Change::Deleted || going(&entry.object)) {
            continue;
        }
        let id = annotation(before, "argocd.argoproj.io/tracking-id");
        let Some((owner, _)) = id.split_once(':') else { continue };
        let Some(Version { entry: owner, .. }) = history.state("control", APPS, owner, place) else {
            continue;
        };
        let app = &owner.object;
        let running = ["Running", "Terminating"].contains(&text(app, "/status/operationState/phase"));
        let since = match running {
            true => text(app, "/status/operationState/startedAt"),
            false => text(app, "/metadata/deletionTimestamp"),
        };
        let Ok(since) = since.parse() else { continue };
        let options = annotation(before, "argocd.argoproj.io/sync-options");
        let says = |word: &str| options.split(',').any(|option| option.trim() == word);
        let names_deletion = options.split(',').any(|option| option.trim().starts_with("Delete="));
        let guarded = match running {
            true => says("Prune=confirm"),
            false => says("Delete=confirm") || (says("Prune=confirm") && !names_deletion),
        };
        let name = format!("{}/{}/{}", entry.cluster, entry.resource, entry.name);
        found.push(Deletion { place, at: entry.at, name, app, since, guarded });
    }
    found
}

/// Whether people said so at any time in the operation: what was read once need not stay.
fn is_approved(history: &History<'_>, deletion: &Deletion<'_>) -> bool {
    let name = text(deletion.app, "/metadata/name");
    let mut states = history.states(("control", APPS, name), deletion.since, deletion.place).into_iter();
    states.any(|version| {
        let time: Result<Timestamp, _> = annotation(&version.entry.object, APPROVED).parse();
        time.is_ok_and(|time| {
            time.as_second() >= deletion.since.as_second() && time.duration_since(deletion.at) <= SKEW
        })
    })
}
