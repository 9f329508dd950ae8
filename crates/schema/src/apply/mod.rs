//! Server-side apply and the bookkeeping of who owns which field (`metadata.managedFields`).
//!
//! Ownership is kept per path in the `FieldsV1` format. What is one field follows from the schema: atomic lists and
//! maps are owned as one, lists with keys and sets element by element, everything else leaf by leaf. Where the schema
//! is silent, objects are taken apart and lists are not.

mod client_side;
mod compare;
mod conflict;
mod element;
mod fields;
mod managers;
mod merge;
mod reconcile;
mod set;
mod typed;
mod validate;

use std::sync::LazyLock;

use serde_json::{Map, Value};

pub use conflict::{ApplyError, Conflict};
pub use managers::Operation;

use compare::Changes;
use element::same;
use fields::Which;
use managers::{Identity, Managers, Owned};
use set::Set;
use typed::Type;

use crate::model::{Kind, MAX_DEPTH, Schema};

/// Who owns an object's fields that nobody has claimed when it is first applied to.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// A write, as the bookkeeping sees it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Writer<'a> {
    /// The field manager's name.
    pub manager: &'a str,
    /// The version the object is written in, for example `apps/v1`.
    pub api_version: &'a str,
    /// The subresource written through, for example `status`; empty for the main resource.
    pub subresource: &'a str,
    /// When, in RFC 3339 with whole seconds.
    pub time: &'a str,
    /// Dotted paths this endpoint resets and nobody can own through it, for example `status` on the main resource
    /// and `spec` on its status subresource.
    pub ignored: &'a [&'a str],
}

/// Records in `after.metadata.managedFields` which fields a create, update or patch changed.
///
/// `before` is the stored object; `None` for a create.
///
/// Absent `managedFields` in `after` mean the old ones. An empty list, or a list of one empty entry, forgets them all.
/// Unreadable ones are ignored, and so is whatever a write through a subresource says about them.
pub fn track_update(schema: &Schema, before: Option<&Value>, after: &mut Value, writer: &Writer<'_>) {
    let Some(sent) = take_managed_fields(after) else { return };
    let stored = before.and_then(managed_fields);
    let changes = changes(schema, before, after, writer);
    if changes.is_empty() && sent.as_ref().is_none_or(|sent| Some(sent) == stored) {
        // Most writes that change nothing come from controllers, in a loop.
        return put_managed_fields(after, sent.or_else(|| stored.cloned()));
    }
    let mut managers = starting_managers(stored, sent.as_ref(), writer);
    let created = before.is_none_or(|before| uid(before).is_empty());
    if !managers.all.is_empty() || created {
        reconcile::with_schema(Type::root(schema), &mut managers);
        hand_over(changes, &mut managers, writer.manager, writer);
        managers.cap_updaters();
    }
    put_managed_fields(after, managers.written());
}

/// Applies a configuration (`PATCH` with `application/apply-patch+yaml`) and returns the new object with its
/// `managedFields`.
///
/// Where nothing changes, the result equals `live`.
///
/// # Errors
/// Conflicts with other managers unless `force` is set; configurations of another version, with `managedFields`, or
/// that do not fit the schema.
pub fn apply(
    schema: &Schema,
    live: Option<&Value>,
    config: &Value,
    writer: &Writer<'_>,
    force: bool,
) -> Result<Value, ApplyError> {
    check_config(schema, config, writer)?;
    let nothing = Value::Object(Map::new());
    let live = live.unwrap_or(&nothing);
    let mut managers = Managers::read(managed_fields(live))
        .map_err(|why| ApplyError::Invalid(format!("failed to decode managed fields: {why}")))?;
    if managers.all.is_empty() {
        hand_over(changes(schema, None, live, writer), &mut managers, BEFORE_FIRST_APPLY, writer);
    }

    let again = (writer.manager == client_side::MANAGER && !force).then(|| managers.clone());
    let laid = match (lay(schema, live, config, managers, writer, force), again) {
        (Err(ApplyError::Conflicts(conflicts)), Some(managers)) => {
            let left = client_side::unexplained(schema, live, conflicts, writer);
            if !left.is_empty() {
                return Err(ApplyError::Conflicts(left));
            }
            lay(schema, live, config, managers, writer, true)?
        }
        (outcome, _) => outcome?,
    };
    let mut result = match laid {
        Some((mut result, managers)) => {
            put_managed_fields(&mut result, managers.written());
            result
        }
        None => live.clone(),
    };
    if writer.manager == client_side::MANAGER {
        client_side::refresh_annotation(&mut result, config);
    }
    Ok(result)
}

/// Merges the configuration over the live object and settles ownership; `None` if that changes neither.
fn lay(
    schema: &Schema,
    live: &Value,
    config: &Value,
    mut managers: Managers,
    writer: &Writer<'_>,
    force: bool,
) -> Result<Option<(Value, Managers)>, ApplyError> {
    let ty = Type::root(schema);
    let ignored = ignored(writer);
    reconcile::with_schema(ty, &mut managers);
    let applier = Identity::new(writer.manager, Operation::Apply, writer.api_version, writer.subresource);
    let last = managers.all.remove(&applier);
    let claimed = fields::of(ty, config, Which::Claimed).without_trees(&ignored);
    let fields = claimed.clone().without(&UNOWNED);
    let merged = merge::merge(ty, live, config);
    let as_before = |last: &Owned| last.fields == fields && last.api_version == writer.api_version;
    if last.as_ref().is_some_and(as_before) && same(live, &merged) {
        return Ok(None);
    }
    let pruned = prune(ty, &merged, &managers, &claimed, last.as_ref().map(|last| &last.fields));
    let result = pruned.as_ref().unwrap_or(&merged);

    let changes = compare::compare(ty, Some(live), result).without_trees(&ignored);
    let changed = changes.modified.union(changes.added);
    let mut conflicts = Vec::new();
    for (identity, owned) in managers.all.iter().filter(|_| !force) {
        let contested = owned.fields.intersection(&changed);
        conflicts.extend(conflict::list(identity, &owned.api_version, owned.time.as_deref(), &contested));
    }
    if !conflicts.is_empty() {
        return Err(ApplyError::Conflicts(conflicts));
    }
    managers.dispossess(&[&changed, &changes.removed]);

    // Time tells when the object last changed by this manager's hand, not when it last looked.
    let time = match same(live, result) {
        true => last.and_then(|last| last.time),
        false => Some(writer.time.to_owned()),
    };
    if !fields.is_empty() {
        managers.all.insert(applier, Owned { api_version: writer.api_version.to_owned(), fields, time });
    }
    let Some(mut pruned) = pruned else { return Ok(Some((merged, managers))) };
    merge::drop_hollowed(ty, &merged, &mut pruned);
    Ok(Some((pruned, managers)))
}

/// Takes out what the manager applied last time, does not apply now, and nobody else owns; `None` if there is nothing
/// of the kind.
fn prune(
    ty: Type<'_>,
    merged: &Value,
    others: &Managers,
    claimed: &Set,
    last: Option<&Set>,
) -> Option<Value> {
    let last = last.filter(|last| !last.is_within(claimed))?;
    let full = |set: Set| fields::with_named(ty, set);
    let present = |value: &Value| full(fields::of(ty, value, Which::Claimed));
    let last = full(last.clone());
    let all = present(merged);

    // First without anything applied last time, then again with what somebody owns.
    let stripped = merge::remove(ty, merged, &last);
    let owned =
        others.all.values().fold(claimed.clone(), |owned, manager| owned.union(manager.fields.clone()));
    let kept = present(&stripped).union(full(owned));
    let kept = merge::remove(ty, merged, &all.clone().without(&kept));

    // What nobody owns, such as defaults inside a list element that stays, was never the manager's to take.
    let doomed = all.without(&present(&kept)).intersection(&last);
    Some(merge::remove(ty, merged, &doomed))
}

/// What a write changed, apart from what it cannot own.
fn changes(schema: &Schema, before: Option<&Value>, after: &Value, writer: &Writer<'_>) -> Changes {
    let blank = if before.is_none() { blank(schema) } else { None };
    let changes = compare::compare(Type::root(schema), before.or(blank.as_ref()), after);
    changes.without_trees(&ignored(writer)).without(&UNOWNED)
}

/// What an object of a built-in kind holds before anybody sets a field; `None` for custom resources, which hold
/// nothing.
///
/// Built-in kinds have fields that are always there, and setting something inside does not make one their owner. Their
/// definitions mark such objects with `default: {}`, metadata among them, and lists of the sort are required. A custom
/// resource's schema may not default metadata, which tells the two apart.
fn blank(schema: &Schema) -> Option<Value> {
    schema.properties.get("metadata").filter(|metadata| is_always_there(metadata))?;
    Some(zero(schema, 0))
}

fn zero(schema: &Schema, depth: usize) -> Value {
    let mut fields = Map::new();
    for (name, field) in schema.properties.iter().filter(|_| depth < MAX_DEPTH) {
        if is_always_there(field) {
            fields.insert(name.clone(), zero(field, depth + 1));
        } else if field.kind == Some(Kind::Array) && schema.limits.required.contains(name) {
            fields.insert(name.clone(), Value::Null);
        }
    }
    Value::Object(fields)
}

fn is_always_there(field: &Schema) -> bool {
    field.default.as_ref().and_then(Value::as_object).is_some_and(Map::is_empty)
}

/// Gives everything that changed to the manager, and takes it from the others.
fn hand_over(changes: Changes, managers: &mut Managers, manager: &str, writer: &Writer<'_>) {
    let changed = changes.modified.union(changes.added);
    managers.dispossess(&[&changed, &changes.removed]);
    if changed.is_empty() {
        return;
    }
    let identity = Identity::new(manager, Operation::Update, writer.api_version, writer.subresource);
    let previous = managers.all.remove(&identity).map(|owned| owned.fields).unwrap_or_default();
    let owned = Owned {
        api_version: writer.api_version.to_owned(),
        fields: previous.union(changed),
        time: Some(writer.time.to_owned()),
    };
    managers.all.insert(identity, owned);
}

/// The managers a write starts from.
fn starting_managers(stored: Option<&Value>, sent: Option<&Value>, writer: &Writer<'_>) -> Managers {
    let from_store = || Managers::read(stored).unwrap_or_default();
    if !writer.subresource.is_empty() {
        return from_store();
    }
    if managers::asks_for_reset(sent) {
        return Managers::default();
    }
    match Managers::read(sent) {
        Ok(managers) if !managers.all.is_empty() => managers,
        _ => from_store(),
    }
}

fn check_config(schema: &Schema, config: &Value, writer: &Writer<'_>) -> Result<(), ApplyError> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    if !config.is_object() {
        return Err(ApplyError::BadRequest(
            "error decoding patch: the configuration is not an object".into(),
        ));
    }
    let version = text(config.get("apiVersion"));
    if version != writer.api_version {
        return Err(ApplyError::BadRequest(format!(
            "Incorrect version specified in apply patch. Specified patch version: {version}, expected: {}",
            writer.api_version
        )));
    }
    if managed_fields(config).is_some_and(|entries| !entries.is_null()) {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".into()));
    }
    let problems = validate::problems(Type::root(schema), config);
    if problems.is_empty() {
        return Ok(());
    }
    let metadata = |name: &str| text(config.get("metadata").and_then(|metadata| metadata.get(name)));
    // Go prints the group of core kinds as empty, slash included.
    let slash = if version.contains('/') { "" } else { "/" };
    Err(ApplyError::Invalid(format!(
        "failed to create typed patch object ({}/{}; {slash}{version}, Kind={}): {}",
        metadata("namespace"),
        metadata("name"),
        text(config.get("kind")),
        validate::message(&problems)
    )))
}

/// What is never owned: what names an object and what the server alone writes.
static UNOWNED: LazyLock<Set> = LazyLock::new(|| {
    let mut set = Set::default();
    for name in ["apiVersion", "kind", "metadata"] {
        set.add_fields(&[name]);
    }
    for name in [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ] {
        set.add_fields(&["metadata", name]);
    }
    set
});

fn ignored(writer: &Writer<'_>) -> Set {
    let mut set = Set::default();
    for path in writer.ignored {
        set.add_fields(&path.split('.').collect::<Vec<_>>());
    }
    set
}

fn uid(object: &Value) -> &str {
    object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default()
}

fn managed_fields(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

/// Takes the object's `managedFields` out; `None` if the object has no metadata to hold any.
fn take_managed_fields(object: &mut Value) -> Option<Option<Value>> {
    Some(object.get_mut("metadata")?.as_object_mut()?.remove("managedFields"))
}

fn put_managed_fields(object: &mut Value, entries: Option<Value>) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    match entries {
        Some(entries) => metadata.insert("managedFields".into(), entries),
        None => metadata.remove("managedFields"),
    };
}
