//! Deleting objects: grace, finalizers, propagation and preconditions.

use std::sync::Arc;

use baton_store::{Action, CommitError, Expect, Record, Write};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::catalog::Resource;
use crate::clock::stamp;
use crate::cluster::{Core, DEFINITIONS};
use crate::failure::{Failure, Subject};
use crate::object::{self, FOREGROUND, ORPHAN};
use crate::request::Query;
use crate::rest::Call;
use crate::write::{is_held_namespace, key, storage};
use crate::{decode, definitions};

/// What happens to the objects a deleted one owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
    /// They stay, without an owner.
    Orphan,
}

/// `DeleteOptions`, from the body and the query.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace: Option<i64>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) uid: Option<String>,
    pub(crate) revision: Option<String>,
    pub(crate) dry_run: bool,
}

/// What a deletion left.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is gone; its last state.
    Gone(Value),
    /// The object waits for finalizers or for its grace period.
    Pending(Value),
}

const DELETE_OPTIONS: Subject<'static> =
    Subject { group: "meta.k8s.io", resource: "DeleteOptions", name: "" };

/// Namespaces every cluster needs.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

impl DeleteOptions {
    /// The options of a request.
    pub(crate) fn of(call: &Call) -> Result<DeleteOptions, Failure> {
        if call.body.is_empty() {
            return DeleteOptions::read(&Value::Null, &call.query);
        }
        let body = decode::document(call.content_type(), &call.body, "DeleteOptions")?.value;
        let kind = body["kind"].as_str().unwrap_or("DeleteOptions");
        if !body.is_object() || kind != "DeleteOptions" {
            // Whoever sends something else means something else than a deletion.
            return Err(Failure::bad_request(format!("the body of a deletion is DeleteOptions, not {kind}")));
        }
        DeleteOptions::read(&body, &call.query)
    }

    /// Reads a `DeleteOptions` object; the query fills what the body leaves open.
    pub(crate) fn read(body: &Value, query: &Query) -> Result<DeleteOptions, Failure> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let grace = match body["gracePeriodSeconds"].as_i64() {
            Some(grace) => Some(grace),
            None => query.number("gracePeriodSeconds")?,
        };
        let policy = text(&body["propagationPolicy"]).or(query.get("propagationPolicy").map(str::to_owned));
        let orphan = match body["orphanDependents"].as_bool() {
            Some(orphan) => Some(orphan),
            None => query.has("orphanDependents").then(|| query.flag("orphanDependents")),
        };
        let propagation = match (policy.as_deref(), orphan) {
            (Some(policy), Some(_)) => {
                let error = baton_schema::FieldError::invalid(
                    "propagationPolicy",
                    policy,
                    "orphanDependents and deletionPropagation cannot be both set",
                );
                return Err(Failure::invalid(DELETE_OPTIONS, &[error]));
            }
            (Some("Background"), None) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Foreground"), None) => Some(Propagation::Foreground),
            (Some("Orphan"), None) | (None, Some(true)) => Some(Propagation::Orphan),
            (None, None) => None,
            (Some(other), None) => {
                let error = baton_schema::FieldError::not_supported(
                    "propagationPolicy",
                    other,
                    &["Foreground", "Background", "Orphan"],
                );
                return Err(Failure::invalid(DELETE_OPTIONS, &[error]));
            }
        };
        let dry_run = body["dryRun"].as_array().is_some_and(|all| all.iter().any(|value| value == "All"))
            || query.all("dryRun").iter().any(|value| value == "All");
        Ok(DeleteOptions {
            grace,
            propagation,
            uid: text(&body["preconditions"]["uid"]),
            revision: text(&body["preconditions"]["resourceVersion"]),
            dry_run,
        })
    }
}

impl Core {
    /// Deletes one object, or marks it for deletion where something holds it.
    pub(crate) async fn delete(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Failure> {
        if &*resource.storage == "namespaces" && IMMORTAL.contains(&name) {
            return Err(Failure::forbidden(resource.subject(name), "this namespace may not be deleted"));
        }
        loop {
            let key = key(resource, namespace, name);
            let Some(record) = self.store.get(&key) else {
                return Err(Failure::not_found(resource.subject(name)));
            };
            let current = object::read(&record);
            preconditions(resource, name, &current, options)?;
            let Some(next) = self.marked(resource, &current, options) else {
                // Already marked, and this request changes nothing about it.
                return Ok(Deleted::Pending(current));
            };
            let held = !object::finalizers(&next).is_empty() || is_held_namespace(resource, &next);
            let grace = object::meta_number(&next, "deletionGracePeriodSeconds").unwrap_or(0);
            let gone = !held && grace == 0;
            // An object that goes at once is shown as it was, without a mark nobody could have seen.
            let last = if gone && !object::is_terminating(&current) { current.clone() } else { next };
            if options.dry_run {
                return Ok(if gone { Deleted::Gone(last) } else { Deleted::Pending(last) });
            }
            let body = object::to_body(&self.store, &last);
            let action = if gone { Action::Delete(body) } else { Action::Put(body) };
            let write = Write { key, expect: Expect::Revision(record.revision), action };
            match self.commit(resource, write).await {
                Ok(record) if gone => return Ok(Deleted::Gone(self.last_state(resource, &record))),
                Ok(record) => return Ok(Deleted::Pending(object::read(&record))),
                // Deletion says nothing about the version it deletes, unless a precondition does, so it goes on.
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(storage(error)),
            }
        }
    }

    fn last_state(&self, resource: &Resource, record: &Arc<Record>) -> Value {
        let object = object::read(record);
        if &*resource.storage == "services" {
            self.service_ips.release(&object);
        }
        object
    }

    /// The object with its deletion marked; `None` where the mark is already there.
    fn marked(&self, resource: &Resource, current: &Value, options: &DeleteOptions) -> Option<Value> {
        let mut next = current.clone();
        match options.propagation {
            None => {}
            Some(policy) => {
                object::set_finalizer(&mut next, ORPHAN, policy == Propagation::Orphan);
                object::set_finalizer(&mut next, FOREGROUND, policy == Propagation::Foreground);
            }
        }
        let grace = grace_period(resource, current, options);
        if object::is_terminating(current) {
            let before = object::meta_number(current, "deletionGracePeriodSeconds").unwrap_or(0);
            if grace < before {
                self.mark(&mut next, grace);
            }
            let unheld = object::finalizers(&next).is_empty() && !is_held_namespace(resource, &next);
            let now_free =
                unheld && object::meta_number(&next, "deletionGracePeriodSeconds").unwrap_or(0) == 0;
            return (now_free || !object::same(&next, current)).then_some(next);
        }
        self.mark(&mut next, grace);
        if let Some(generation) =
            object::meta_number(current, "generation").filter(|generation| *generation > 0)
        {
            object::set_meta(&mut next, "generation", generation + 1);
        }
        if &*resource.storage == "namespaces" {
            next["status"]["phase"] = "Terminating".into();
        }
        if &*resource.storage == DEFINITIONS {
            object::set_finalizer(&mut next, definitions::CLEANUP, true);
            let conditions = next["status"]["conditions"].as_array_mut();
            conditions.into_iter().for_each(|conditions| {
                conditions.push(json!({
                    "type": "Terminating", "status": "True", "reason": "InstanceDeletionPending",
                    "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
                    "lastTransitionTime": self.clock.stamp(),
                }));
            });
        }
        Some(next)
    }

    fn mark(&self, object: &mut Value, grace: i64) {
        let at: Timestamp =
            self.clock.now().saturating_add(SignedDuration::from_secs(grace)).unwrap_or(Timestamp::MAX);
        object::set_meta(object, "deletionTimestamp", stamp(at));
        object::set_meta(object, "deletionGracePeriodSeconds", grace);
    }
}

/// Only a Pod on a node needs time to stop.
fn grace_period(resource: &Resource, current: &Value, options: &DeleteOptions) -> i64 {
    if &*resource.storage != "pods" {
        return 0;
    }
    let scheduled = current["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let finished = matches!(current["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
    if !scheduled || finished {
        return 0;
    }
    options.grace.or(current["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(30).max(0)
}

fn preconditions(
    resource: &Resource,
    name: &str,
    current: &Value,
    options: &DeleteOptions,
) -> Result<(), Failure> {
    if let Some(uid) = &options.uid
        && uid != object::uid(current)
    {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            object::uid(current)
        );
        return Err(Failure::conflict(resource.subject(name), why));
    }
    if let Some(revision) = &options.revision
        && revision != object::meta_text(current, "resourceVersion")
    {
        let why = format!(
            "the ResourceVersion in the precondition ({revision}) does not match the ResourceVersion in record ({}). \
             The object might have been modified",
            object::meta_text(current, "resourceVersion")
        );
        return Err(Failure::conflict(resource.subject(name), why));
    }
    Ok(())
}
