//! Invariant I4, judged by the API's history and by nothing the controller says of itself but which operation runs.
//!
//! A resource goes in an operation only if, by then, a person had approved the deletion of every guarded resource that
//! goes in that operation: since the operation began, and not by way of git. The rules are written here a second time on
//! purpose; nothing of the product is asked.

use std::collections::{BTreeMap, BTreeSet};

use baton_apiserver::store::Change;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::journal::{Entry, Spot, annotation};
use crate::scene::text;

const APPROVED: &str = "argocd.argoproj.io/deletion-approved";
const GRANT: &str = "baton.dev/approval";
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// What the gate stands before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Operation,
    Wave,
}

/// A deletion that began.
struct Deletion<'e> {
    /// Position in the journal.
    place: usize,
    entry: &'e Entry,
    /// The operations it may belong to, and whether it asks for approval in each.
    operations: Vec<(Operation, bool)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Operation {
    application: String,
    is_deletion: bool,
    since: Timestamp,
    /// Sync options that hold where a resource says nothing: prune, delete.
    defaults: [String; 2],
}

struct Judge<'e> {
    entries: &'e [Entry],
    /// Objects that people deleted themselves, by name.
    by_people: BTreeSet<&'e str>,
}

/// What went against the invariant.
pub(super) fn violations(entries: &[Entry], by_people: &[&str], scope: Scope) -> Vec<String> {
    let judge = Judge { entries, by_people: by_people.iter().copied().collect() };
    let deletions = judge.deletions();
    let mut found = Vec::new();
    for deletion in &deletions {
        // Where one operation ended and another began at this moment, either may have been the one.
        let mut judged: Vec<Vec<String>> = deletion
            .operations
            .iter()
            .map(|(operation, _)| judge.violations_in(operation, deletion, &deletions, scope))
            .collect();
        judged.sort_by_key(Vec::len);
        let name = deletion.entry.spot.join("/");
        let outside = || vec![format!("{name} went outside of any operation")];
        found.extend(judged.into_iter().next().unwrap_or_else(outside));
    }
    found
}

impl<'e> Judge<'e> {
    fn violations_in(
        &self,
        operation: &Operation,
        deletion: &Deletion<'_>,
        deletions: &[Deletion<'_>],
        scope: Scope,
    ) -> Vec<String> {
        let name = deletion.entry.spot.join("/");
        let mut found = Vec::new();
        let later = deletions.iter().filter(|other| other.place >= deletion.place);
        for other in later.filter(|other| other.is_guarded_in(operation)) {
            let together = match scope {
                Scope::Operation => true,
                Scope::Wave => wave(&other.entry.before) == wave(&deletion.entry.before),
            };
            let spot = &other.entry.spot;
            if together && !self.is_approved(spot, operation, deletion, true) {
                found.push(format!("{name} went before {} was approved", spot.join("/")));
            }
        }
        for inside in self.guarded_inside(deletion) {
            let own = self.owner(&inside, deletion.place) == operation.application;
            if !self.is_approved(&inside, operation, deletion, own) {
                found.push(format!("{name} took {} along unapproved", inside.join("/")));
            }
        }
        found
    }

    fn deletions(&self) -> Vec<Deletion<'e>> {
        let mut found = Vec::new();
        for (place, entry) in self.entries.iter().enumerate() {
            let object = &entry.before;
            if !entry.begins_deletion()
                || is_hook(object)
                || is_owned(object)
                || tracked_by(object).is_empty()
            {
                continue;
            }
            if self.by_people.contains(entry.name()) || self.is_swept_away(entry, place) {
                continue;
            }
            let operations = self.operations(&tracked_by(object), entry.at).into_iter();
            let judged = operations.map(|operation| {
                let guarded = self.is_guarded(entry, place, &operation);
                (operation, guarded)
            });
            found.push(Deletion { place, entry, operations: judged.collect() });
        }
        found
    }

    /// Whether it goes because its namespace does, which was judged then.
    fn is_swept_away(&self, entry: &Entry, place: usize) -> bool {
        let namespace = [entry.spot[0].clone(), "namespaces".into(), String::new(), entry.spot[2].clone()];
        self.state(&namespace, place).is_some_and(|found| !is_null(found, "/metadata/deletionTimestamp"))
    }

    /// The operations of an Application at a moment.
    fn operations(&self, application: &str, at: Timestamp) -> Vec<Operation> {
        let mut found: Vec<Operation> = Vec::new();
        for version in self.versions(application, at) {
            let running =
                ["Running", "Terminating"].contains(&text(version, "/status/operationState/phase").as_str());
            let time = match running {
                true => "/status/operationState/startedAt",
                false => "/metadata/deletionTimestamp",
            };
            let Ok(since) = text(version, time).parse() else { continue };
            let spec = |name: &str| option(list(version, "/spec/syncPolicy/syncOptions"), name);
            let asked = option(list(version, "/status/operationState/operation/sync/syncOptions"), "Prune");
            let prune = asked.filter(|_| running).or(spec("Prune")).unwrap_or_default();
            let defaults = [prune, spec("Delete").unwrap_or_default()];
            let application = application.to_owned();
            let operation = Operation { application, is_deletion: !running, since, defaults };
            if !found.contains(&operation) {
                found.push(operation);
            }
        }
        found
    }

    /// The states an Application was in at a moment: with several writes at once, all of them.
    fn versions(&self, application: &str, at: Timestamp) -> Vec<&'e Value> {
        let of = |entry: &&Entry| {
            entry.spot[0] == "control"
                && entry.resource() == "applications.argoproj.io"
                && entry.name() == application
        };
        let all: Vec<&Entry> = self.entries.iter().filter(of).collect();
        let ends = all.iter().skip(1).map(|entry| entry.at).chain([Timestamp::MAX]);
        let at_once = all.iter().zip(ends).filter(|(entry, end)| entry.at <= at && at <= *end);
        at_once.map(|(entry, _)| &entry.after).collect()
    }

    fn is_guarded(&self, entry: &Entry, place: usize, operation: &Operation) -> bool {
        let own = own_options(&entry.before);
        let value = |index: usize, name: &str| {
            option(own.clone(), name).unwrap_or_else(|| operation.defaults[index].clone())
        };
        let (prune, delete) = (value(0, "Prune") == "confirm", value(1, "Delete") == "confirm");
        if operation.is_deletion {
            return delete || (prune && option(own.clone(), "Delete").is_none());
        }
        prune || (delete && self.comes_back(entry, place, operation))
    }

    /// Whether the object is created anew in the same operation.
    fn comes_back(&self, entry: &Entry, place: usize, operation: &Operation) -> bool {
        let later = self.entries.iter().skip(place);
        let mut anew = later.filter(|later| later.spot == entry.spot && later.change == Change::Added);
        anew.next().is_some_and(|anew| {
            let running = self.operations(&operation.application, anew.at);
            running.iter().any(|other| other.since == operation.since)
        })
    }

    /// The guarded objects in a namespace that begins to go, of whichever Application.
    fn guarded_inside(&self, deletion: &Deletion<'_>) -> Vec<Spot> {
        if deletion.entry.resource() != "namespaces" {
            return Vec::new();
        }
        let [cluster, _, _, namespace] = &deletion.entry.spot;
        let within = |entry: &&Entry| &entry.spot[0] == cluster && &entry.spot[2] == namespace;
        let spots: BTreeSet<&Spot> =
            self.entries[..deletion.place].iter().filter(within).map(|entry| &entry.spot).collect();
        let is_guarded = |spot: &&Spot| {
            let Some(object) = self.state(spot, deletion.place) else { return false };
            let owner = self.versions(&tracked_by(object), deletion.entry.at).pop();
            let spec = owner.map(|owner| list(owner, "/spec/syncPolicy/syncOptions")).unwrap_or_default();
            let confirms = |name: &str| {
                option(own_options(object), name).or(option(spec.clone(), name)).as_deref() == Some("confirm")
            };
            !is_hook(object)
                && is_null(object, "/metadata/deletionTimestamp")
                && (confirms("Prune") || confirms("Delete"))
        };
        spots.into_iter().filter(is_guarded).cloned().collect()
    }

    fn owner(&self, spot: &Spot, place: usize) -> String {
        self.state(spot, place).map(tracked_by).unwrap_or_default()
    }

    /// The object as it was right before a place in the journal.
    fn state(&self, spot: &Spot, place: usize) -> Option<&'e Value> {
        let last = self.entries[..place].iter().rev().find(|entry| &entry.spot == spot)?;
        (last.change != Change::Deleted).then_some(&last.after)
    }

    /// Whether, when a deletion began, the deletion of this object was approved in this operation.
    fn is_approved(&self, spot: &Spot, operation: &Operation, deletion: &Deletion<'_>, own: bool) -> bool {
        let by_application = || {
            self.versions(&operation.application, deletion.entry.at).into_iter().any(|version| {
                holds(&annotation(version, APPROVED), operation.since, deletion.entry.at)
                    && !is_from_git(version, APPROVED)
            })
        };
        (own && by_application()) || self.by_object(spot, operation, deletion)
    }

    fn by_object(&self, spot: &Spot, operation: &Operation, deletion: &Deletion<'_>) -> bool {
        let Some(object) = self.state(spot, deletion.place) else { return false };
        let value = annotation(object, APPROVED);
        if is_from_git(object, APPROVED) {
            return false;
        }
        if value != "true" {
            return holds(&value, operation.since, deletion.entry.at);
        }
        let given = annotation(object, GRANT);
        if !given.is_empty() && !is_from_git(object, GRANT) {
            let grant: Value = serde_json::from_str(&given).unwrap_or_default();
            if text(&grant, "/operation").parse().ok() != Some(operation.since) {
                return false;
            }
        }
        self.written(spot, deletion.place).is_some_and(|at| at.as_second() >= operation.since.as_second())
    }

    /// When the approval on an object was written.
    fn written(&self, spot: &Spot, place: usize) -> Option<Timestamp> {
        let said = |object: &Value| {
            let owners = owners(object, APPROVED);
            (annotation(object, APPROVED), annotation(object, GRANT), owners)
        };
        let mut written = self.entries[..place]
            .iter()
            .filter(|entry| &entry.spot == spot && said(&entry.before) != said(&entry.after));
        written.next_back().map(|entry| entry.at)
    }
}

impl Deletion<'_> {
    fn is_guarded_in(&self, operation: &Operation) -> bool {
        self.operations.iter().any(|(own, guarded)| own == operation && *guarded)
    }
}

/// Whether a time approves an operation.
fn holds(value: &str, since: Timestamp, now: Timestamp) -> bool {
    let time: Result<Timestamp, _> = value.parse();
    time.is_ok_and(|time| time.as_second() >= since.as_second() && time.duration_since(now) <= SKEW)
}

fn is_from_git(object: &Value, name: &str) -> bool {
    owners(object, name).contains("argocd-controller")
}

/// The field managers of an annotation.
fn owners(object: &Value, name: &str) -> BTreeSet<String> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let field = format!("f:{name}");
    let owns = |entry: &&Value| !entry["fieldsV1"]["f:metadata"]["f:annotations"][field.as_str()].is_null();
    entries.into_iter().flatten().filter(owns).map(|entry| text(entry, "/manager")).collect()
}

fn tracked_by(object: &Value) -> String {
    let id = annotation(object, "argocd.argoproj.io/tracking-id");
    id.split_once(':').map(|(application, _)| application.to_owned()).unwrap_or_default()
}

fn is_hook(object: &Value) -> bool {
    ["argocd.argoproj.io/hook", "helm.sh/hook"].iter().any(|name| !annotation(object, name).is_empty())
}

fn is_owned(object: &Value) -> bool {
    object.pointer("/metadata/ownerReferences").and_then(Value::as_array).is_some_and(|all| !all.is_empty())
}

fn wave(object: &Value) -> i64 {
    annotation(object, "argocd.argoproj.io/sync-wave").parse().unwrap_or(0)
}

fn own_options(object: &Value) -> Vec<String> {
    let all = annotation(object, "argocd.argoproj.io/sync-options");
    all.split(',').map(|item| item.trim().to_owned()).collect()
}

fn list(object: &Value, pointer: &str) -> Vec<String> {
    let items = object.pointer(pointer).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn option(items: Vec<String>, name: &str) -> Option<String> {
    let all: BTreeMap<String, String> = items
        .iter()
        .filter_map(|item| item.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    all.get(name).cloned()
}

fn is_null(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).is_none_or(Value::is_null)
}
