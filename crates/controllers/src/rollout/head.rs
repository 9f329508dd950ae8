//! Where the head of a set's rollout is kept: in a ConfigMap beside the set.
//!
//! It is changed only by compare-and-swap: a merge patch under the version it was read at, with no other keys than those
//! that change. It is no child of the set, so that the set's deletion in the foreground does not take it away before
//! the set's Applications; for those of a set that keeps an order it is a second owner.
//!
//! Where this controller may not write ConfigMaps, as beside an Argo CD whose rights it was given, the head is an
//! annotation of the set. That is written whole each time and may not be large. The same holds for a set whose name
//! leaves no room for the ending of the ConfigMap's.

use std::collections::{BTreeMap, BTreeSet};

use baton_api::names;
use baton_api::names::baton::{GUARD_SUFFIX, ROLLOUT, SET_LABEL, WITNESS_SUFFIX};
use baton_rollout::head::{Change, Head};
use kube::Client;
use serde_json::{Map, Value, json};

use super::MANAGER;
use super::label::label_value;
use crate::cache::ObjectKey;
use crate::objects::{ApiError, Objects, Seen};

/// Most bytes that a head may take as an annotation.
const ANNOTATION_BYTES: usize = 64 << 10;
/// Longest name of an object.
const LONGEST_NAME: usize = 253;
/// How often an annotation is written anew because something else of the set has changed.
const ATTEMPTS: usize = 5;

/// Name of the object that holds the head of a set's rollout.
pub(crate) fn head_name(set: &str) -> String {
    format!("{set}{GUARD_SUFFIX}")
}

/// Whether a set's name leaves room for the endings of the names of its ConfigMaps.
pub(crate) fn has_room(set: &str) -> bool {
    set.len() + GUARD_SUFFIX.len().max(WITNESS_SUFFIX.len()) <= LONGEST_NAME
}

/// Why a change of a head was not stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// Somebody else changed it: it has to be read anew.
    #[error("the head of the rollout was changed by somebody else")]
    Changed,
    /// It is too large for the only place it may have.
    #[error(
        "the head of the rollout takes {0} bytes, more than an annotation may hold: let the controller get, create, \
         patch and delete ConfigMaps in this namespace"
    )]
    Large(usize),
    /// The request failed.
    #[error("cannot write the head of the rollout: {0}")]
    Api(#[from] ApiError),
}

/// Heads as they are kept.
#[derive(Clone)]
pub(crate) struct Heads {
    client: Client,
}

/// Where a head is kept, and as what it was last read or written.
#[derive(Debug, Default)]
pub(crate) struct Place {
    at: At,
    /// Keys of something that could not be read and goes with the next change.
    stale: BTreeSet<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum At {
    /// It is not there yet.
    #[default]
    Nowhere,
    /// In a ConfigMap of this UID and version.
    Map(String, String),
    /// In an annotation with these texts.
    Annotation(BTreeMap<String, String>),
}

// === impl Place ===

impl Place {
    /// Whether both are the same place in the same state.
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
        let (at, texts) = match has_room(&set.name) {
            true => self.found(set).await?,
            false => self.annotated(set).await?,
        };
        let mut place = Place { at, stale: BTreeSet::new() };
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
        let known = match &place.at {
            At::Annotation(known) => known.clone(),
            At::Nowhere => {
                let data: BTreeMap<_, _> = present(&texts);
                match self.maps(set).create(&object(set, &data)).await {
                    Ok(answer) => {
                        place.at = address(&answer);
                        return Ok(());
                    }
                    Err(error) if error.is_forbidden() => BTreeMap::new(),
                    Err(error) => return Err(judged(error)),
                }
            }
            At::Map(uid, version) => {
                let seen = Seen { uid, version: Some(version) };
                let patch = json!({ "data": texts });
                let answer = self.maps(set).patch(&head_name(&set.name), patch, seen).await;
                place.at = address(&answer.map_err(judged)?);
                return Ok(());
            }
        };
        let mut now = known.clone();
        for (key, text) in texts {
            match text {
                Some(text) => drop(now.insert(key, text)),
                None => drop(now.remove(&key)),
            }
        }
        self.annotate(set, &known, &now).await?;
        place.at = At::Annotation(now);
        Ok(())
    }

    /// Takes the head away. The object stays where it is an owner of Applications: `guards`.
    pub(crate) async fn clear(&self, set: &ObjectKey, guards: bool) -> Result<(), ApiError> {
        if let Some((object, texts)) = self.annotation(set).await?
            && !texts.is_empty()
        {
            let patch = json!({"metadata": {"annotations": {ROLLOUT: null}}});
            self.sets(set).patch(&set.name, patch, Seen::of(&object)).await?;
        }
        let object = match self.maps(set).get(&head_name(&set.name)).await {
            Ok(Some(object)) if check(set, &object).is_ok() => object,
            Ok(_) => return Ok(()),
            Err(error) if error.is_forbidden() => return Ok(()),
            Err(error) => return Err(error),
        };
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

    /// Swaps the texts in the annotation, if they are still those that are known.
    async fn annotate(
        &self,
        set: &ObjectKey,
        known: &BTreeMap<String, String>,
        texts: &BTreeMap<String, String>,
    ) -> Result<(), StoreError> {
        let text = serde_json::to_string(texts).unwrap_or_default();
        if text.len() > ANNOTATION_BYTES {
            return Err(StoreError::Large(text.len()));
        }
        let patch = json!({"metadata": {"annotations": {ROLLOUT: text}}});
        for _ in 0..ATTEMPTS {
            let Some((object, found)) = self.annotation(set).await? else { return Err(StoreError::Changed) };
            if found != *known {
                return Err(StoreError::Changed);
            }
            match self.sets(set).patch(&set.name, patch.clone(), Seen::of(&object)).await {
                Ok(_) => return Ok(()),
                // The status of a set changes often, and is nothing to the head.
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(judged(error)),
            }
        }
        Err(StoreError::Changed)
    }

    /// Where the head is, or was put when there was no other place.
    async fn found(&self, set: &ObjectKey) -> Result<(At, BTreeMap<String, String>), ApiError> {
        match self.maps(set).get(&head_name(&set.name)).await {
            Ok(Some(object)) => {
                check(set, &object)?;
                Ok((address(&object), texts(&object)))
            }
            Ok(None) => Ok(match self.annotation(set).await? {
                Some((_, texts)) if !texts.is_empty() => (At::Annotation(texts.clone()), texts),
                _ => (At::Nowhere, BTreeMap::new()),
            }),
            Err(error) if error.is_forbidden() => self.annotated(set).await,
            Err(error) => Err(error),
        }
    }

    /// The annotation as the only place a head may have.
    async fn annotated(&self, set: &ObjectKey) -> Result<(At, BTreeMap<String, String>), ApiError> {
        let texts = self.annotation(set).await?.map(|(_, texts)| texts).unwrap_or_default();
        Ok((At::Annotation(texts.clone()), texts))
    }

    /// The set, and the texts of the head in its annotation; none if there is no set.
    async fn annotation(
        &self,
        set: &ObjectKey,
    ) -> Result<Option<(Value, BTreeMap<String, String>)>, ApiError> {
        let Some(object) = self.sets(set).get(&set.name).await? else { return Ok(None) };
        let text = object["metadata"]["annotations"][ROLLOUT].as_str().unwrap_or_default();
        let texts = serde_json::from_str(text).unwrap_or_default();
        Ok(Some((object, texts)))
    }

    fn maps(&self, set: &ObjectKey) -> Objects {
        Objects::new(self.client.clone(), "v1", "configmaps", &set.namespace, false).managed_by(MANAGER)
    }

    fn sets(&self, set: &ObjectKey) -> Objects {
        let client = self.client.clone();
        Objects::new(client, names::API_VERSION, "applicationsets", &set.namespace, false).managed_by(MANAGER)
    }
}

fn judged(error: ApiError) -> StoreError {
    match error.is_conflict() || error.is_already_exists() || error.is_not_found() {
        true => StoreError::Changed,
        false => StoreError::Api(error),
    }
}

fn present(texts: &BTreeMap<String, Option<String>>) -> BTreeMap<String, String> {
    texts.iter().filter_map(|(key, text)| Some((key.clone(), text.clone()?))).collect()
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

fn address(object: &Value) -> At {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    At::Map(text("uid"), text("resourceVersion"))
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
