//! Whether an object may be deleted: who asks for approval, what counts as one, and how one is written.
//!
//! Two forms of approval count. The Application's annotation with a time approves everything of one operation; the
//! object's own annotation, `"true"` or a time, approves that object. Neither outlives the operation it was given for,
//! and what came from the source is never a person's word.

mod ownership;
mod refusal;

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::Application;
use baton_api::names::{application, baton, resource};
use baton_api::object::{Object, ResourceKey};
use baton_api::operation::SyncOperation;
use baton_rules::{Rule, holds};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ObjectMeta};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::action::Verb;
use crate::hooks;
use crate::options::{self, Defaults, Options, Removal};
use ownership::Writer;
pub use refusal::refusals;

/// How far an approver's clock may run ahead. A time further in the future would approve operations yet to come.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(5);
/// How long an approval holds for a deletion that belongs to no operation.
const ALONE: SignedDuration = SignedDuration::from_mins(15);

/// Why an object is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A sync found it no longer in the source.
    Prune,
    /// Its Application is deleted.
    Delete,
}

/// What approvals are judged against.
#[derive(Debug, Clone, Copy)]
pub struct Approvals<'a> {
    /// The Application whose operation it is.
    pub application: &'a Application,
    /// When the operation began: `startedAt` of a sync, `deletionTimestamp` of a deletion.
    pub since: Timestamp,
    /// The time.
    pub now: Timestamp,
}

/// What stands in `baton.dev/approval`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// When it was given.
    pub time: Timestamp,
    /// Who gave it.
    pub actor: String,
    /// Hash of the set of objects that was approved at once.
    pub set: String,
    /// The operation it was given for, as [`operation_name`] writes it.
    pub operation: String,
}

/// The values that hold for objects which do not state their own, in a sync: the operation's, else the spec's.
pub fn sync_defaults<'a>(application: &'a Application, sync: &'a SyncOperation) -> Defaults<'a> {
    let spec = spec_defaults(application);
    Defaults { prune: Options::list(&sync.sync_options).value("Prune").or(spec.prune), delete: spec.delete }
}

/// The values that hold for objects which do not state their own, by the spec.
pub fn spec_defaults(application: &Application) -> Defaults<'_> {
    let policy = application.spec.sync_policy.as_ref();
    let options = Options::list(policy.map_or(&[], |policy| policy.sync_options.as_slice()));
    Defaults { prune: options.value("Prune"), delete: options.value("Delete") }
}

/// Whether an object asks for approval before it is deleted for this purpose.
///
/// `Prune=confirm` asks for it on deletion as well, unless the object says of `Delete=` something else.
pub fn needs(object: &Value, purpose: Purpose, defaults: &Defaults<'_>) -> bool {
    let prune = options::prune(object, defaults) == Removal::Confirm;
    match purpose {
        Purpose::Prune => prune,
        Purpose::Delete => {
            let own = Options::of(object).value("Delete").is_some();
            options::delete(object, defaults) == Removal::Confirm || (prune && !own)
        }
    }
}

/// Whether an object, as it is or as it is wanted, asks for approval before it is deleted for any purpose.
pub fn guarded(live: Option<&Value>, target: Option<&Value>, defaults: &Defaults<'_>) -> bool {
    live.into_iter().chain(target).any(|object| {
        options::prune(object, defaults) == Removal::Confirm
            || options::delete(object, defaults) == Removal::Confirm
    })
}

/// Whether the deletion of a live object is approved, by the Application or by the object.
///
/// One that is already being deleted counts as approved.
pub fn approved(live: &Value, target: Option<&Value>, approvals: &Approvals<'_>) -> bool {
    by_application(approvals) || by_object(live, target, approvals) || !holds(Rule::Approval)
}

/// Whether the Application carries a time that approves this operation.
///
/// # Guarantees
/// Where the API has recorded who wrote it ([`keep_record`]), that was a person, and since the operation began: a time
/// that came from git, from a set's template, or that was written ahead of the operation does not count.
pub fn by_application(approvals: &Approvals<'_>) -> bool {
    let metadata = &approvals.application.metadata;
    let text = metadata.annotations.as_ref().and_then(|all| all.get(application::DELETION_APPROVED));
    let Some(true) = text.map(|text| approvals.hold(text)) else { return false };
    let record = serde_json::json!({"metadata": {"managedFields": metadata.managed_fields}});
    match Writer::of(&record, application::DELETION_APPROVED) {
        Some(Writer::Source) => false,
        Some(Writer::Person { time: Some(time), .. }) => approvals.holds(time),
        Some(Writer::Person { time: None, .. }) | None => true,
    }
}

/// Keeps of the record of an Application's writers only what approvals are judged by.
pub fn keep_record(metadata: &mut ObjectMeta) {
    let approves = |annotations: &std::collections::BTreeMap<String, String>| {
        annotations.contains_key(application::DELETION_APPROVED)
    };
    if !metadata.annotations.as_ref().is_some_and(approves) {
        metadata.managed_fields = None;
        return;
    }
    let field = format!("f:{}", application::DELETION_APPROVED);
    let entries = metadata.managed_fields.take().unwrap_or_default();
    let kept = entries.into_iter().filter_map(|mut entry| {
        let fields = &entry.fields_v1.as_ref()?.0["f:metadata"]["f:annotations"][field.as_str()];
        if fields.is_null() {
            return None;
        }
        let only = serde_json::json!({"f:metadata": {"f:annotations": {field.as_str(): {}}}});
        entry.fields_v1 = Some(FieldsV1(only));
        Some(entry)
    });
    metadata.managed_fields = Some(kept.collect());
}

/// Whether the object itself says that its deletion is approved.
///
/// # Guarantees
/// A value that the target carries, or that our own field manager wrote, came from the source and does not count.
/// `"true"` counts for the operation that [`Grant`] names, or else if it was written since the operation began.
pub fn by_object(live: &Value, target: Option<&Value>, approvals: &Approvals<'_>) -> bool {
    by_object_for(live, target, approvals, &operation_name(approvals.since))
}

/// The same for an operation of this name.
fn by_object_for(live: &Value, target: Option<&Value>, approvals: &Approvals<'_>, operation: &str) -> bool {
    if live.deletion_timestamp().is_some() {
        return true;
    }
    if target.is_some_and(|target| target.annotation(resource::DELETION_APPROVED).is_some()) {
        return false;
    }
    let Some(value) = live.annotation(resource::DELETION_APPROVED) else { return false };
    let writer = Writer::of(live, resource::DELETION_APPROVED);
    if value != "true" {
        return writer != Some(Writer::Source) && approvals.hold(value);
    }
    let noted = Writer::of(live, baton::APPROVAL);
    if let Some(grant) = Grant::of(live).filter(|_| noted != Some(Writer::Source)) {
        if grant.operation == operation && approvals.holds(grant.time) {
            return true;
        }
        // The same hand wrote both: the value is as old as the grant, whatever that hand wrote since.
        if noted == writer || writer.is_none() {
            return false;
        }
    }
    matches!(writer, Some(Writer::Person { time: Some(time), .. }) if approvals.holds(time))
}

/// Of the guarded objects inside a namespace that is to be deleted, those whose deletion is not approved.
///
/// The Application's own word counts for its own objects only; what belongs to another needs a word of its own. Hooks
/// need none.
pub fn unapproved_inside(
    inside: &[(ResourceKey, Arc<Value>)],
    is_own: impl Fn(&Value) -> bool,
    approvals: &Approvals<'_>,
) -> Vec<ResourceKey> {
    let by_application = by_application(approvals);
    let missing = inside.iter().filter(|(_, object)| {
        let agreed = by_application && is_own(object);
        !hooks::is_hook(object) && !agreed && !by_object(object, None, approvals)
    });
    missing.map(|(key, _)| key.clone()).collect()
}

/// Whether an object carries a `"true"` that was not given for this operation. It has to be taken back: the record of who
/// wrote it holds one time for all of a writer's fields, so the writer's next change of anything would renew it.
///
/// `unasked` says that nobody can have known of the operation yet, so that no word found now can be meant for it.
pub fn is_stale(live: &Value, target: Option<&Value>, approvals: &Approvals<'_>, unasked: bool) -> bool {
    if live.annotation(resource::DELETION_APPROVED) != Some("true") || live.deletion_timestamp().is_some() {
        return false;
    }
    // What the source says counts for nothing anyway, and would come back.
    let stated = target.is_some_and(|target| target.annotation(resource::DELETION_APPROVED).is_some());
    if stated || Writer::of(live, resource::DELETION_APPROVED) == Some(Writer::Source) {
        return false;
    }
    let named =
        Grant::of(live).filter(|_| Writer::of(live, baton::APPROVAL) != Some(Writer::Source)).is_some_and(
            |grant| grant.operation == operation_name(approvals.since) && approvals.holds(grant.time),
        );
    !named && (unasked || !by_object(live, target, approvals))
}

/// Whether an Application carries a time that lies ahead although nobody can have known of the operation yet. It has to be
/// taken back, or it would approve this operation once its writer changes anything else.
pub fn is_ahead(application: &Application, now: Timestamp) -> bool {
    let annotations = application.metadata.annotations.as_ref();
    let time = annotations.and_then(|all| all.get(application::DELETION_APPROVED)?.parse::<Timestamp>().ok());
    time.is_some_and(|time| time.as_second() > now.as_second() + 1)
}

/// Takes an approval back that stands on a live object.
pub fn revoke(live: &Value) -> Verb {
    Verb::Revoke {
        key: live.key(),
        api_version: live.api_version().to_owned(),
        uid: live.uid().to_owned(),
        resource_version: live.resource_version().to_owned(),
    }
}

/// Whether a resource may be deleted at a person's request, outside of any operation; else what still needs approval.
///
/// `inside` are the guarded objects of the namespace that is to be deleted. Approvals of the last quarter of an hour
/// count: a [`grant`] for [`deletion_of`] the very object, or a person's own `"true"`. They go with the object, so none
/// is used twice.
///
/// # Errors
/// The keys of the objects that ask for approval and have none.
pub fn delete_of_resource(
    live: &Value,
    inside: &[(ResourceKey, Arc<Value>)],
    owner: &Application,
    now: Timestamp,
) -> Result<(), Vec<ResourceKey>> {
    let since = now.checked_sub(ALONE).unwrap_or(Timestamp::MIN);
    let approvals = Approvals { application: owner, since, now };
    let lacks = |object: &Value| {
        !hooks::is_hook(object) && !by_object_for(object, None, &approvals, &deletion_of(object))
    };
    let own = guarded(Some(live), None, &spec_defaults(owner)) && lacks(live);
    let mut missing: Vec<ResourceKey> = own.then(|| live.key()).into_iter().collect();
    missing.extend(inside.iter().filter(|(_, object)| lacks(object)).map(|(key, _)| key.clone()));
    if missing.is_empty() { Ok(()) } else { Err(missing) }
}

/// How the deletion of one object, outside of any operation, is named in approvals.
pub fn deletion_of(object: &Value) -> String {
    format!("deletion/{}", object.uid())
}

/// What the user reads while approvals are missing, in Argo CD's words. Empty for no keys.
pub fn waiting_message(keys: &[ResourceKey]) -> String {
    let Some(first) = keys.first() else { return String::new() };
    let named = format!("waiting for pruning confirmation of {}/{}/{}", first.group, first.kind, first.name);
    match keys.len() {
        1 => named,
        more => format!("{named} and {} more resources", more - 1),
    }
}

/// How an operation is named in approvals: by when it began.
pub fn operation_name(since: Timestamp) -> String {
    Timestamp::from_second(since.as_second()).unwrap_or(since).to_string()
}

/// The annotations that approve the deletion of each of these objects.
pub fn grant<'k>(
    keys: impl IntoIterator<Item = &'k ResourceKey>,
    actor: &str,
    now: Timestamp,
    operation: &str,
) -> Map<String, Value> {
    let grant =
        Grant { time: now, actor: actor.to_owned(), set: set_hash(keys), operation: operation.to_owned() };
    let note = serde_json::to_string(&grant).expect("texts and a time are always JSON");
    Map::from_iter([
        (resource::DELETION_APPROVED.to_owned(), Value::from("true")),
        (baton::APPROVAL.to_owned(), Value::from(note)),
    ])
}

/// The annotations to merge that take an approval back.
pub fn revocation() -> Map<String, Value> {
    [resource::DELETION_APPROVED, baton::APPROVAL]
        .map(|name| (name.to_owned(), Value::Null))
        .into_iter()
        .collect()
}

/// Names a set of objects, whatever their order.
pub fn set_hash<'k>(keys: impl IntoIterator<Item = &'k ResourceKey>) -> String {
    let sorted: BTreeMap<String, ()> = keys.into_iter().map(|key| (key.to_string(), ())).collect();
    let mut hash = Sha256::new();
    for key in sorted.keys() {
        hash.update(key.as_bytes());
        hash.update(b"\n");
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

// === impl Approvals ===

impl Approvals<'_> {
    fn hold(&self, text: &str) -> bool {
        text.parse().is_ok_and(|time| self.holds(time))
    }

    /// Whether a time belongs to this operation. Operations are known to the second only.
    fn holds(&self, time: Timestamp) -> bool {
        time.as_second() >= self.since.as_second() && time.duration_since(self.now) <= CLOCK_SKEW
    }
}

// === impl Grant ===

impl Grant {
    /// The approval noted on an object.
    pub fn of(object: &Value) -> Option<Grant> {
        serde_json::from_str(object.annotation(baton::APPROVAL)?).ok()
    }
}

#[cfg(test)]
mod tests;
