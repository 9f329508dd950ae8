//! Changing objects: the rules between a decoded request and the store.

use std::borrow::Cow;
use std::sync::Arc;

use baton_schema::apply::{self, ApplyError, Writer};
use baton_schema::{FieldError, Problem};
use baton_store::{Action, CommitError, Expect, Key, Record, Write};
use serde_json::{Value, json};

use crate::auth::User;
use crate::catalog::{Nature, Resource};
use crate::cluster::{Core, DEFINITIONS};
use crate::failure::Failure;
use crate::{definitions, object};

/// Keeps a claim while Pods use it.
pub(crate) const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
/// Keeps a volume while it is bound.
pub(crate) const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";

/// How often a write without a resourceVersion is tried again when others write the same object.
const ATTEMPTS: usize = 16;

/// How a write is made.
#[derive(Debug, Clone)]
pub(crate) struct WriteOptions {
    /// Who owns the fields.
    pub(crate) manager: String,
    /// Everything but the store.
    pub(crate) dry_run: bool,
    /// Whose rights count; none is the server itself.
    pub(crate) author: Option<User>,
}

impl WriteOptions {
    /// For the server's own controllers.
    pub(crate) fn internal(manager: &str) -> WriteOptions {
        WriteOptions { manager: manager.to_owned(), dry_run: false, author: None }
    }
}

/// What a write left behind.
#[derive(Debug, Clone)]
pub(crate) enum Written {
    /// As stored.
    Stored(Arc<Record>),
    /// What would have been stored.
    Dry(Value),
}

impl Written {
    pub(crate) fn object(&self) -> Value {
        match self {
            Written::Stored(record) => object::read(record),
            Written::Dry(object) => object.clone(),
        }
    }
}

/// Which part of an object a request may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but what has a subresource of its own.
    Main,
    /// Only the status.
    Status,
    /// Only what the named subresource shows, which the caller has already put in place.
    Other(&'static str),
}

impl Part {
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Part::Main => "",
            Part::Status => "status",
            Part::Other(name) => name,
        }
    }
}

/// What a new version of an object is made of.
pub(crate) enum Proposal {
    /// The object as the client wants it (update, patch).
    Object(Value),
    /// The outcome of server-side apply, with ownership already settled.
    Applied(Value),
}

impl Core {
    /// Creates a decoded object.
    pub(crate) async fn create(
        &self,
        resource: &Resource,
        namespace: &str,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Written, Failure> {
        self.create_from(resource, namespace, Proposal::Object(object), options).await
    }

    pub(crate) async fn create_from(
        &self,
        resource: &Resource,
        namespace: &str,
        proposal: Proposal,
        options: &WriteOptions,
    ) -> Result<Written, Failure> {
        let (mut wanted, applied) = match proposal {
            Proposal::Object(object) => (object, false),
            Proposal::Applied(object) => (object, true),
        };
        if resource.custom().is_some_and(|custom| custom.terminating) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Failure::forbidden(resource.subject(object::name(&wanted)), why));
        }
        let prefix = object::meta_text(&wanted, "generateName").to_owned();
        let generate = object::name(&wanted).is_empty() && !prefix.is_empty();
        if resource.namespaced {
            object::set_meta(&mut wanted, "namespace", namespace);
            self.admit_to_namespace(resource, namespace, &wanted)?;
        }
        self.stamp_new(&mut wanted);
        for _ in 0..ATTEMPTS {
            // A generated name may be taken, and then another one is tried on the same object.
            let mut object = if generate { wanted.clone() } else { wanted.take() };
            if generate {
                object::set_meta(&mut object, "name", generated_name(&prefix, &self.identities.suffix()));
            }
            tidy(resource, &mut object);
            fill_defaults(resource, &mut object);
            // Before the server adds anything of its own: nobody owns what they did not write.
            if !applied {
                self.track(resource, None, &mut object, Part::Main, options);
            }
            resource.prepare_create(&mut object);
            self.fill_derived(resource, &mut object);
            let errors = self.check(resource, &object, None);
            if !errors.is_empty() {
                return Err(Failure::invalid(resource.kind_subject(object::name(&object)), &errors));
            }
            self.admit_rights(resource, &object, None, options.author.as_ref())?;
            self.admit(resource, &mut object, None)?;
            if options.dry_run {
                self.give_back(resource, &object);
                if self.store.get(&key(resource, namespace, object::name(&object))).is_some() {
                    return Err(Failure::already_exists(resource.subject(object::name(&object))));
                }
                return Ok(Written::Dry(object));
            }
            let write = Write {
                key: key(resource, namespace, object::name(&object)),
                expect: Expect::Absent,
                action: Action::Put(object::to_body(&self.store, &to_storage(resource, &object))),
            };
            match self.commit(resource, write).await {
                Ok(record) => return Ok(Written::Stored(record)),
                Err(CommitError::Conflict { .. }) if generate => self.give_back(resource, &object),
                Err(CommitError::Conflict { .. }) => {
                    self.give_back(resource, &object);
                    return Err(Failure::already_exists(resource.subject(object::name(&object))));
                }
                Err(error) => return Err(storage(error)),
            }
        }
        Err(Failure::already_exists(resource.subject(&prefix)))
    }

    /// Makes a new version of an object out of the present one. `propose` is asked again when another writer was
    /// faster, so it must check any resourceVersion the client gave.
    pub(crate) async fn modify(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        part: Part,
        options: &WriteOptions,
        mut propose: impl FnMut(&Value) -> Result<Proposal, Failure>,
    ) -> Result<Written, Failure> {
        for _ in 0..ATTEMPTS {
            let key = key(resource, namespace, name);
            let Some(record) = self.store.get(&key) else {
                return Err(Failure::not_found(resource.subject(name)));
            };
            let current = self.present(resource, &record);
            let (mut next, applied) = match propose(&current)? {
                Proposal::Object(object) => (object, false),
                Proposal::Applied(object) => (object, true),
            };
            carry_over(&mut next, &current);
            tidy(resource, &mut next);
            fill_defaults(resource, &mut next);
            if !applied {
                self.track(resource, Some(&current), &mut next, part, options);
            }
            match part {
                Part::Main => resource.prepare_update(&mut next, &current),
                Part::Status => resource.prepare_status(&mut next, &current),
                Part::Other(_) => {}
            }
            self.fill_derived(resource, &mut next);
            let errors = match part {
                Part::Status => resource.validate(&next, Some(&current)),
                _ => self.check(resource, &next, Some(&current)),
            };
            if !errors.is_empty() {
                return Err(Failure::invalid(resource.kind_subject(name), &errors));
            }
            self.admit_rights(resource, &next, Some(&current), options.author.as_ref())?;
            self.admit(resource, &mut next, Some(&current))?;
            if object::same(&next, &current) {
                return Ok(Written::Stored(record));
            }
            if options.dry_run {
                return Ok(Written::Dry(next));
            }
            let released = is_released(resource, &next);
            let stored = stored(resource, next);
            let body = object::to_body(&self.store, &stored);
            let action = if released { Action::Delete(body) } else { Action::Put(body) };
            let write = Write { key, expect: Expect::Revision(record.revision), action };
            match self.commit(resource, write).await {
                Ok(record) => {
                    object::remember(&record, stored);
                    return Ok(Written::Stored(record));
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(storage(error)),
            }
        }
        Err(Failure::modified(resource.subject(name)))
    }

    /// The present version in the version of the API that was asked for.
    pub(crate) fn present(&self, resource: &Resource, record: &Record) -> Value {
        let mut object = object::read(record);
        self.convert(resource, &mut object);
        object
    }

    /// Shows a stored object in the asked version: of custom kinds the apiVersion, and what the schema of that version
    /// fills in and leaves out.
    pub(crate) fn convert(&self, resource: &Resource, object: &mut Value) {
        if resource.is("events.k8s.io", "events") {
            *object = baton_kinds::event_to_new(object);
        } else if let Some(custom) = resource.custom()
            && !resource.is_served_as_stored()
        {
            object["apiVersion"] = resource.api_version().into();
            baton_schema::apply_defaults(&custom.schema, object);
            baton_schema::prune(&custom.schema, object);
        }
    }

    fn admit_to_namespace(
        &self,
        resource: &Resource,
        namespace: &str,
        object: &Value,
    ) -> Result<(), Failure> {
        let Some(record) = self.store.get(&Key::new("namespaces", "", namespace)) else {
            let subject = crate::failure::Subject { group: "", resource: "namespaces", name: namespace };
            return Err(Failure::not_found(subject));
        };
        if object::is_terminating(&object::read(&record)) {
            let name = match object::name(object) {
                "" => object::meta_text(object, "generateName"),
                name => name,
            };
            return Err(Failure::namespace_terminating(resource.subject(name), namespace));
        }
        Ok(())
    }

    fn stamp_new(&self, object: &mut Value) {
        for field in
            ["resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"]
        {
            object::set_meta(object, field, Value::Null);
        }
        object::set_meta(object, "uid", self.identities.uid());
        object::set_meta(object, "creationTimestamp", self.clock.stamp());
    }

    /// What the server computes beyond defaults: a definition's status.
    fn fill_derived(&self, resource: &Resource, object: &mut Value) {
        if &*resource.storage == DEFINITIONS {
            definitions::fill_status(object, &self.catalog(), &self.clock.stamp());
        }
    }

    /// What admission and allocation add, which no client owns: protection of storage, a Service's address.
    fn admit(&self, resource: &Resource, object: &mut Value, old: Option<&Value>) -> Result<(), Failure> {
        let protection = match &*resource.storage {
            "persistentvolumeclaims" => Some(CLAIM_PROTECTION),
            "persistentvolumes" => Some(VOLUME_PROTECTION),
            _ => None,
        };
        if let Some(finalizer) = protection
            && old.is_none()
        {
            object::set_finalizer(object, finalizer, true);
        }
        if &*resource.storage == "services"
            && old.is_none_or(|old| old["spec"]["type"] != object["spec"]["type"])
        {
            self.service_ips
                .allocate(object)
                .map_err(|error| Failure::invalid(resource.kind_subject(object::name(object)), &[error]))?;
        }
        Ok(())
    }

    /// Undoes [`Core::admit`] for an object that is not stored after all.
    fn give_back(&self, resource: &Resource, object: &Value) {
        if &*resource.storage == "services" {
            self.service_ips.release(object);
        }
    }

    fn check(&self, resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = resource.validate(object, old);
        if &*resource.storage == DEFINITIONS {
            errors.extend(definitions::validate(object, old));
        }
        errors
    }

    fn track(
        &self,
        resource: &Resource,
        before: Option<&Value>,
        after: &mut Value,
        part: Part,
        options: &WriteOptions,
    ) {
        let (api_version, time) = (resource.api_version(), self.clock.stamp());
        let writer = writer(resource, part, options, &api_version, &time);
        apply::track_update(&resource.schema(), before, after, &writer);
    }

    /// Server-side apply on the present version (or on nothing).
    pub(crate) fn applied(
        &self,
        resource: &Resource,
        live: Option<&Value>,
        config: &Value,
        part: Part,
        options: &WriteOptions,
        force: bool,
    ) -> Result<Value, Failure> {
        let (api_version, time) = (resource.api_version(), self.clock.stamp());
        let writer = writer(resource, part, options, &api_version, &time);
        apply::apply(&resource.schema(), live, config, &writer, force).map_err(|error| match error {
            ApplyError::Conflicts(ref conflicts) => {
                let causes = conflicts.iter().map(apply::Conflict::to_cause).collect();
                Failure::apply_conflict(error.to_string(), causes)
            }
            other => Failure::bad_request(other.to_string()),
        })
    }
}

fn writer<'a>(
    resource: &Resource,
    part: Part,
    options: &'a WriteOptions,
    api_version: &'a str,
    time: &'a str,
) -> Writer<'a> {
    let (subresource, ignored) = (part.subresource(), ignored(resource, part));
    Writer { manager: &options.manager, api_version, subresource, time, ignored }
}

/// The object in the version it is stored in.
fn stored(resource: &Resource, object: Value) -> Value {
    match to_storage(resource, &object) {
        Cow::Owned(stored) => stored,
        Cow::Borrowed(_) => object,
    }
}

fn to_storage<'a>(resource: &Resource, object: &'a Value) -> Cow<'a, Value> {
    if resource.is("events.k8s.io", "events") {
        return Cow::Owned(baton_kinds::event_to_core(object));
    }
    match resource.custom() {
        Some(custom) if object["apiVersion"] != custom.storage_api_version.as_str() => {
            let mut stored = object.clone();
            stored["apiVersion"] = custom.storage_api_version.as_str().into();
            baton_schema::prune(&custom.storage_schema, &mut stored);
            baton_schema::apply_defaults(&custom.storage_schema, &mut stored);
            Cow::Owned(stored)
        }
        _ => Cow::Borrowed(object),
    }
}

fn fill_defaults(resource: &Resource, object: &mut Value) {
    resource.fill_defaults(object);
    if &*resource.storage == DEFINITIONS {
        definitions::fill_defaults(object);
    }
}

/// What cannot be owned through a path because writing it there has no effect.
fn ignored(resource: &Resource, part: Part) -> &'static [&'static str] {
    match part {
        Part::Main if resource.has_status() => &["status"],
        Part::Status => &["spec", "metadata.labels", "metadata.finalizers", "metadata.ownerReferences"],
        _ => &[],
    }
}

/// The store's key of an object.
pub(crate) fn key(resource: &Resource, namespace: &str, name: &str) -> Key {
    let namespace = if resource.namespaced { namespace } else { "" };
    Key::new(resource.storage.clone(), namespace, name)
}

pub(crate) fn storage(error: CommitError) -> Failure {
    match error {
        CommitError::Conflict { .. } => Failure::internal("an unexpected write conflict"),
        error => Failure::unavailable(format!("the store refused the write: {error}")),
    }
}

/// A prefix and a suffix, the prefix cut so that the whole is a legal name.
fn generated_name(prefix: &str, suffix: &str) -> String {
    const LONGEST: usize = 63;
    let room = LONGEST - suffix.len();
    let end = (0..=prefix.len().min(room)).rev().find(|&at| prefix.is_char_boundary(at)).unwrap_or(0);
    format!("{}{suffix}", &prefix[..end])
}

/// What apply and patches leave behind is read as the struct it is; of a custom object only the metadata is one.
fn tidy(resource: &Resource, object: &mut Value) {
    let schema = resource.schema();
    if resource.custom().is_none() {
        object::drop_empty(&schema, object);
    } else if let Some(schema) = schema.properties.get("metadata") {
        object::drop_empty(schema, &mut object["metadata"]);
    }
}

/// Metadata that clients cannot change, and may leave out.
fn carry_over(next: &mut Value, current: &Value) {
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"]
    {
        object::set_meta(next, field, object::meta(current, field).clone());
    }
    object::set_meta(next, "selfLink", Value::Null);
    object::set_meta(next, "resourceVersion", object::meta(current, "resourceVersion").clone());
    for field in ["name", "namespace"] {
        if object::meta_text(next, field).is_empty() {
            object::set_meta(next, field, object::meta(current, field).clone());
        }
    }
    next["apiVersion"] = current["apiVersion"].clone();
    next["kind"] = current["kind"].clone();
}

/// Whether nothing holds a terminating object any longer.
fn is_released(resource: &Resource, object: &Value) -> bool {
    object::is_terminating(object)
        && object::finalizers(object).is_empty()
        && object::meta_number(object, "deletionGracePeriodSeconds").unwrap_or(0) == 0
        && !is_held_namespace(resource, object)
}

/// A namespace also has finalizers in its spec.
pub(crate) fn is_held_namespace(resource: &Resource, object: &Value) -> bool {
    &*resource.storage == "namespaces"
        && object["spec"]["finalizers"].as_array().is_some_and(|all| !all.is_empty())
}

/// The resourceVersion a client wants to replace, if it says one.
pub(crate) fn check_revision(resource: &Resource, wanted: &Value, current: &Value) -> Result<(), Failure> {
    let name = object::name(current);
    let asked = object::meta_text(wanted, "resourceVersion");
    if !asked.is_empty() && asked != "0" {
        if asked.parse::<u64>().is_err() {
            let error = FieldError {
                path: "metadata.resourceVersion".into(),
                problem: Problem::Invalid(json!(asked)),
                detail: "must be a whole number".into(),
            };
            return Err(Failure::invalid(resource.kind_subject(name), &[error]));
        }
        if asked != object::meta_text(current, "resourceVersion") {
            return Err(Failure::modified(resource.subject(name)));
        }
    }
    let uid = object::uid(wanted);
    if !uid.is_empty() && uid != object::uid(current) {
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            object::uid(current)
        );
        return Err(Failure::conflict(resource.subject(name), why));
    }
    Ok(())
}

/// Whether a PUT without resourceVersion is refused.
pub(crate) fn needs_revision(resource: &Resource) -> bool {
    match &resource.nature {
        Nature::Custom(_) => true,
        Nature::BuiltIn(kind) => matches!(
            (kind.group, kind.plural),
            ("apiextensions.k8s.io", _)
                | ("coordination.k8s.io", _)
                | ("policy", _)
                | ("storage.k8s.io", "csidrivers" | "csinodes" | "volumeattachments")
        ),
    }
}

/// Whether a PUT to a name that does not exist creates the object.
pub(crate) fn creates_on_update(resource: &Resource) -> bool {
    resource.custom().is_none()
        && (resource.group == "rbac.authorization.k8s.io"
            || matches!(
                resource.plural.as_str(),
                "leases" | "endpoints" | "events" | "limitranges" | "services"
            ))
}
