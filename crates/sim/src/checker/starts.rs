//! The writes that start a sync on behalf of a rollout.

use serde_json::Value;

use super::sources::revisions;
use super::wanted::APPS;
use super::{Change, Entry, annotation, is_null, text};

/// Who writes for a rollout.
const MANAGER: &str = "baton-rollout";

/// One write that starts a sync.
#[derive(Debug, Clone)]
pub struct Start<'h> {
    /// Its place in the history.
    pub place: usize,
    /// The write.
    pub entry: &'h Entry,
    /// The stamp that came with it; none where there is none that can be read.
    pub stamp: Option<Stamp<'h>>,
    /// The revisions it syncs, one per source.
    pub revisions: Vec<&'h str>,
}

/// `baton.dev/pin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp<'h> {
    /// UID of the set.
    pub set: &'h str,
    /// Number of the run.
    pub run: u64,
    /// Number of the write to this Application.
    pub n: u64,
}

/// The writes that start a sync on behalf of a rollout, in order.
pub fn starts(entries: &[Entry]) -> Vec<Start<'_>> {
    let mut before: std::collections::BTreeMap<&str, &Value> = std::collections::BTreeMap::new();
    let mut found = Vec::new();
    for (place, entry) in entries.iter().enumerate() {
        if &*entry.cluster != "control" || &*entry.resource != APPS {
            continue;
        }
        let previous = before.insert(&entry.name, &entry.object).map(|object| &object["operation"]);
        let operation = &entry.object["operation"];
        // One that somebody edits is begun no second time.
        let is_edit = previous.is_some_and(|previous| {
            stamp_of(previous).is_some_and(|stamp| Some(stamp) == stamp_of(operation))
        });
        if entry.change == Change::Deleted || operation.is_null() || previous == Some(operation) || is_edit {
            continue;
        }
        if is_ours(&entry.object) && !operation["sync"].is_null() {
            let stamp = Stamp::read(annotation(&entry.object, "baton.dev/pin"));
            found.push(Start { place, entry, stamp, revisions: revisions(&operation["sync"]) });
        }
    }
    found
}

/// Whether the rollout wrote the operation, by what it says of itself or by the record of owners. What people write over
/// it is theirs.
fn is_ours(app: &Value) -> bool {
    let managers = app.pointer("/metadata/managedFields").and_then(Value::as_array);
    let owners: Vec<&str> = managers
        .into_iter()
        .flatten()
        .filter(|entry| !is_null(entry, "/fieldsV1/f:operation/f:sync"))
        .map(|entry| text(entry, "/manager"))
        .collect();
    let by_person = app["operation"]["initiatedBy"]["automated"] != true;
    (owners == [MANAGER] && !by_person) || stamp_of(&app["operation"]).is_some()
}

/// The stamp that an operation carries.
pub(super) fn stamp_of(operation: &Value) -> Option<&str> {
    let info = operation["info"].as_array().into_iter().flatten();
    info.filter(|item| text(item, "/name") == "baton.dev/pin").map(|item| text(item, "/value")).next()
}

/// What a start is to bring, in the stamp that came with it.
pub(super) fn pin_of<'h>(start: &Start<'h>) -> Option<&'h str> {
    annotation(&start.entry.object, "baton.dev/pin").split('/').nth(3)
}

impl<'h> Stamp<'h> {
    /// Reads a stamp.
    pub fn read(text: &'h str) -> Option<Stamp<'h>> {
        let mut parts = text.split('/');
        let (set, run, n, pin) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let stamp = Stamp { set, run: run.parse().ok()?, n: n.parse().ok()? };
        (parts.next().is_none() && !set.is_empty() && !pin.is_empty()).then_some(stamp)
    }
}
