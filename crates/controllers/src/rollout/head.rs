//! Where the head of a set's rollout is kept: a ConfigMap beside the set.
//!
//! It is changed only by compare-and-swap: a merge patch under the version it was read at, with no other keys than those
//! that change. It is no child of the set, so that the set's deletion in the foreground does not take it away before
//! the set's Applications; for those of a set that keeps an order it is a second owner.

use std::collections::{BTreeMap, BTreeSet};

use baton_api::names::baton::{GUARD_SUFFIX, SET_LABEL};
use baton_rollout::head::{Change, Head};
use kube::Client;
use serde_json::{Map, Value, json};

use super::MANAGER;
use super::label::label_value;
use crate::cache::ObjectKey;
use crate::objects::{ApiError, Objects, Seen};

/// Name of the object that holds the head of a set's rollout.
pub(crate) fn head_name(set: &str) -> String {
    format!("{set}{GUARD_SUFFIX}")
}

/// Why a change of a head was not stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// Somebody else changed it: it has to be read anew.
    #[error("the head of the rollout was changed by somebody else")]
    Changed,
    /// The request failed.
    #[error("cannot write the head of the rollout: {0}")]
    Api(#[source] ApiError),
}

/// Heads as they are kept.
#[derive(Clone)]
pub(crate) struct Heads {
    client: Client,
}

/// The object that holds a head, as it was last read or written.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// UID and version; none where there is no object yet.
    at: Option<(String, String)>,
    /// Keys of something that could not be read and goes with the next change.
    stale: BTreeSet<String>,
}

// === impl Place ===

impl Place {
    /// Whether both are the same object in the same state.
    pub(crate) fn is_same(&self, other: &Place) -> bool {
        self.at == other.at
    }
}

// === impl Heads ===

impl Heads {
    pub(crate) fn new(client: Client) -> Heads {
        Heads { client }
    }

    /// The head of a set's rollout, and where it is kept. One that cannot be read is as good as lost.
    pub(crate) async fn load(&self, set: &ObjectKey) -> Result<(Option<Head>, Place), ApiError> {
        let Some(object) = self.maps(set).get(&head_name(&set.name)).await? else {
            return Ok((None, Place::default()));
        };
        check(set, &object)?;
        let mut place = Place { at: address(&object), stale: BTreeSet::new() };
        let texts = texts(&object);
        if texts.is_empty() {
            return Ok((None, place));
        }
        match Head::read(&texts) {
            Ok(head) => Ok((Some(head), place)),
            Err(error) => {
                tracing::error!(application_set = %set, %error, "the rollout begins anew");
                place.stale = texts.into_keys().collect();
                Ok((None, place))
            }
        }
    }

    /// Stores a change of a head.
    pub(crate) async fn store(
        &self,
        set: &ObjectKey,
        place: &mut Place,
        head: &Head,
        change: &Change,
    ) -> Result<(), StoreError> {
        let mut texts = head.texts_of(change);
        for key in std::mem::take(&mut place.stale) {
            texts.entry(key).or_insert(None);
        }
        let answer = match &place.at {
            None => {
                let data: BTreeMap<_, _> =
                    texts.into_iter().filter_map(|(key, text)| Some((key, text?))).collect();
                self.maps(set).create(&object(set, &data)).await
            }
            Some((uid, version)) => {
                let seen = Seen { uid, version: Some(version) };
                self.maps(set).patch(&head_name(&set.name), json!({ "data": texts }), seen).await
            }
        };
        match answer {
            Ok(answer) => {
                place.at = address(&answer);
                Ok(())
            }
            Err(error) if error.is_conflict() || error.is_already_exists() || error.is_not_found() => {
                Err(StoreError::Changed)
            }
            Err(error) => Err(StoreError::Api(error)),
        }
    }

    /// Takes the head away. The object stays where it is an owner of Applications: `guards`.
    pub(crate) async fn clear(&self, set: &ObjectKey, guards: bool) -> Result<(), ApiError> {
        let Some(object) = self.maps(set).get(&head_name(&set.name)).await? else { return Ok(()) };
        if check(set, &object).is_err() {
            return Ok(());
        }
        if !guards {
            return self.maps(set).delete(&head_name(&set.name), Seen::of(&object)).await.map(drop);
        }
        let data: BTreeMap<String, Value> =
            texts(&object).into_keys().map(|key| (key, Value::Null)).collect();
        if data.is_empty() {
            return Ok(());
        }
        let patch = json!({ "data": data });
        match self.maps(set).patch(&head_name(&set.name), patch, Seen::of(&object)).await {
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(drop),
        }
    }

    fn maps(&self, set: &ObjectKey) -> Objects {
        Objects::new(self.client.clone(), "v1", "configmaps", &set.namespace, false).managed_by(MANAGER)
    }
}

/// The object with these texts. Whoever needs it first makes it.
pub(crate) fn object(set: &ObjectKey, data: &BTreeMap<String, String>) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": head_name(&set.name), "namespace": &*set.namespace,
            "labels": {SET_LABEL: label_value(&set.name)},
        },
    });
    if !data.is_empty() {
        object["data"] = json!(data);
    }
    object
}

fn address(object: &Value) -> Option<(String, String)> {
    let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
    Some((text("uid")?, text("resourceVersion")?))
}

/// The texts of the head; what else the object may hold is not ours.
fn texts(object: &Value) -> BTreeMap<String, String> {
    let none = Map::new();
    let data = object["data"].as_object().unwrap_or(&none).iter();
    let ours =
        data.filter(|(key, _)| *key == "run" || key.starts_with("apps.") || key.starts_with("revisions."));
    ours.filter_map(|(key, text)| Some((key.clone(), text.as_str()?.to_owned()))).collect()
}

/// An object of that name that is not marked as the set's is somebody else's.
fn check(set: &ObjectKey, object: &Value) -> Result<(), ApiError> {
    if object["metadata"]["labels"][SET_LABEL] == label_value(&set.name) {
        return Ok(());
    }
    let name = head_name(&set.name);
    Err(ApiError::NoAnswer(format!("ConfigMap {name:?} is somebody else's: it lacks the label {SET_LABEL}")))
}
