//! The guard of a set whose Applications go in an order, and the witness of how the set was deleted.
//!
//! The **guard** is a ConfigMap that nobody owns and every Application of the set names as its second owner. With
//! `kubectl delete --cascade=foreground` the garbage collector would delete all Applications at once; because the guard
//! is still there, it only takes the set's own reference away. The guard is also where the head of a rollout is kept,
//! so its data is never touched here.
//!
//! The **witness** is a ConfigMap that only the set owns. Foreground and orphan deletion leave the Applications in the
//! same state, without the set's reference; but the first deletes the witness, and the second leaves it without an
//! owner. So it can be told even after a restart whether the Applications are to go or to stay.

use baton_api::ApplicationSet;
use baton_api::names::baton::{GUARD_SUFFIX, SET_LABEL, WITNESS_SUFFIX};
use baton_rules::{Rule, holds};
use serde_json::{Value, json};

use super::ownership::{self, Guarding};
use super::{Memory, PassError, Reconciler, order};
use crate::cache::ObjectKey;
use crate::objects::{ApiError, Objects, Seen};
use crate::rollout::{has_room, label_value};

/// Finalizer by which the API tells that dependents are to stay.
const ORPHAN: &str = "orphan";
/// Finalizer by which the API tells that dependents go first.
const FOREGROUND: &str = "foregroundDeletion";

/// The guard as it was last seen.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    uid: String,
    /// How many Applications did not name it then. More of them now mean that it may be gone.
    unguarded: usize,
}

/// What is to become of the Applications of a set that is being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cascade {
    /// They go.
    Delete,
    /// They stay, without an owner.
    Orphan,
}

/// Why there is no guard.
enum Missing {
    /// It may not be written, or something else has its name.
    Refused(String),
    /// The API failed; it is worth another try.
    Failed(ApiError),
}

impl Reconciler {
    /// What becomes of the guard among the owners of a set's Applications. The guard is made where it is missing.
    pub(super) async fn guarding(
        &self,
        key: &ObjectKey,
        set: &ApplicationSet,
        memory: &mut Memory,
    ) -> Result<Guarding, PassError> {
        if !order::is_guarded(set) || !holds(Rule::Guard) {
            return Ok(Guarding::Without);
        }
        let owned = self.known.applications.lock().owned_by(key);
        let living = owned.values().filter(|record| record.deleting.is_none());
        let unguarded = living.filter(|record| !record.guarded).count();
        if let Some(guard) = &mut memory.guard
            && unguarded <= guard.unguarded
        {
            guard.unguarded = unguarded;
            return Ok(Guarding::With(ownership::guard_reference(&key.name, &guard.uid)));
        }
        match self.make_guard(key, set).await {
            Ok(uid) => {
                let reference = ownership::guard_reference(&key.name, &uid);
                if !self.settings.dry_run {
                    memory.guard = Some(Guard { uid, unguarded });
                }
                Ok(Guarding::With(reference))
            }
            Err(Missing::Failed(error)) => Err(PassError::Guard(error)),
            Err(Missing::Refused(why)) => {
                if !std::mem::replace(&mut memory.unguardable, true) {
                    self.warn(
                        set,
                        "DeletionOrderUnguarded",
                        format!("the order of deletion is kept only without --cascade=foreground: {why}"),
                    );
                }
                Ok(Guarding::AsItIs)
            }
        }
    }

    /// How a set that is being deleted is to be deleted.
    pub(super) async fn cascade(&self, key: &ObjectKey, set: &ApplicationSet) -> Result<Cascade, PassError> {
        let finalizers = set.metadata.finalizers.as_deref().unwrap_or_default();
        if finalizers.iter().any(|name| name == ORPHAN) {
            return Ok(Cascade::Orphan);
        }
        if finalizers.iter().any(|name| name == FOREGROUND) {
            return Ok(Cascade::Delete);
        }
        let uid = set.metadata.uid.as_deref().unwrap_or_default();
        self.witnessed(key, |owners| owners.iter().any(|owner| owner["uid"] == uid)).await
    }

    /// What the witness says; `bound` tells whether its owners are those that a set in the background leaves.
    pub(super) async fn witnessed(
        &self,
        key: &ObjectKey,
        bound: impl Fn(&[Value]) -> bool,
    ) -> Result<Cascade, PassError> {
        let witness = match self.maps(key).get(&witness_name(&key.name)).await {
            Ok(witness) => witness.filter(is_ours),
            Err(error) if error.is_forbidden() => None,
            Err(error) => return Err(PassError::Guard(error)),
        };
        let Some(witness) = witness else { return Ok(Cascade::Delete) };
        let owners = witness["metadata"]["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(if bound(owners) { Cascade::Delete } else { Cascade::Orphan })
    }

    /// Deletes guard and witness, whatever there is of them. While a rollout keeps its head in the guard, it stays.
    pub(super) async fn remove_guard(
        &self,
        key: &ObjectKey,
        memory: &mut Memory,
        keep_head: bool,
    ) -> Result<(), PassError> {
        memory.guard = None;
        if !keep_head {
            self.remove_map(key, &guard_name(&key.name)).await?;
        }
        self.remove_map(key, &witness_name(&key.name)).await
    }

    async fn remove_map(&self, key: &ObjectKey, name: &str) -> Result<(), PassError> {
        let maps = self.maps(key);
        let found = match maps.get(name).await {
            Ok(found) => found.filter(is_ours),
            Err(error) if error.is_forbidden() => None,
            Err(error) => return Err(PassError::Guard(error)),
        };
        let Some(found) = found else { return Ok(()) };
        let seen = Seen { version: None, ..Seen::of(&found) };
        maps.delete(name, seen).await.map(drop).map_err(PassError::Guard)
    }

    /// Makes guard and witness where they are missing and tells the guard's uid.
    async fn make_guard(&self, key: &ObjectKey, set: &ApplicationSet) -> Result<String, Missing> {
        if !has_room(&key.name) {
            return Err(Missing::Refused(order::NO_ROOM.to_owned()));
        }
        let maps = self.maps(key);
        let owner = json!({
            "apiVersion": baton_api::names::API_VERSION, "kind": "ApplicationSet", "name": set.metadata.name,
            "uid": set.metadata.uid, "controller": false, "blockOwnerDeletion": true,
        });
        let name = witness_name(&key.name);
        let witness = find_or_make(&maps, key, &name, Some(&owner)).await?;
        if witness.pointer("/metadata/ownerReferences/0/uid") != owner.get("uid") {
            // Left by a set of the same name.
            let patch = json!({"metadata": {"ownerReferences": [owner]}});
            maps.patch(&name, patch, Seen::of(&witness)).await.map_err(Missing::from)?;
        }
        let guard = find_or_make(&maps, key, &guard_name(&key.name), None).await?;
        let uid = guard.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
        Ok(uid.to_owned())
    }

    fn maps(&self, key: &ObjectKey) -> Objects {
        Objects::new(self.client.clone(), "v1", "configmaps", &key.namespace, self.settings.dry_run)
    }
}

async fn find_or_make(
    maps: &Objects,
    set: &ObjectKey,
    name: &str,
    owner: Option<&Value>,
) -> Result<Value, Missing> {
    if let Some(found) = maps.get(name).await? {
        let going = found.pointer("/metadata/deletionTimestamp").is_some();
        return match is_ours(&found) {
            false => Err(Missing::Refused(format!("a ConfigMap {name:?} of somebody else is in the way"))),
            true if going => {
                Err(Missing::Failed(ApiError::NoAnswer(format!("ConfigMap {name:?} is being deleted"))))
            }
            true => Ok(found),
        };
    }
    let mut map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": name, "namespace": &*set.namespace, "labels": {SET_LABEL: label_value(&set.name)},
        },
    });
    if let Some(owner) = owner {
        map["metadata"]["ownerReferences"] = json!([owner]);
    }
    Ok(maps.create(&map).await?)
}

/// Whether a ConfigMap was made by this controller: its label says so.
fn is_ours(map: &Value) -> bool {
    map["metadata"]["labels"].get(SET_LABEL).is_some()
}

fn guard_name(set: &str) -> String {
    format!("{set}{GUARD_SUFFIX}")
}

fn witness_name(set: &str) -> String {
    format!("{set}{WITNESS_SUFFIX}")
}

// === impl Missing ===

impl From<ApiError> for Missing {
    fn from(error: ApiError) -> Missing {
        match error.is_forbidden() || error.is_invalid() {
            true => Missing::Refused(format!(
                "{error}; let the controller get, create, patch and delete ConfigMaps in this namespace"
            )),
            false => Missing::Failed(error),
        }
    }
}
