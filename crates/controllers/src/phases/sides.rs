//! ConfigMaps beside a set: details that do not fit into its status, and how each generator was to be deployed when its
//! rollout began.
//!
//! The status decides, and these tell. So a controller that may not write them goes on without, and what it would have
//! written lives as long as it does.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt, stream};
use serde_json::{Value, json};

use super::names::Owner;
use crate::objects::{ApiError, Objects, Seen};

/// Key under which details are kept.
pub(super) const DETAILS: &str = "details.json";
/// Key under which a strategy is kept.
pub(super) const STRATEGY: &str = "strategy.json";
/// Most bytes of one text; a ConfigMap takes a little more.
pub(super) const MOST_BYTES: usize = 900 << 10;
/// Most objects of one set.
const MOST: usize = 5000;
/// How many are written at once.
const AT_ONCE: usize = 10;

/// What is kept beside a set.
#[derive(Debug, Default)]
pub(super) struct Sides {
    known: BTreeMap<String, Side>,
}

#[derive(Debug, Clone)]
struct Side {
    text: Text,
    /// UID and version; none where it could not be written.
    at: Option<(String, String)>,
}

/// A text, and the key it is kept under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) key: &'static str,
    pub(super) text: Arc<str>,
}

/// What became of writing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// All is as it should be, or cannot be.
    Done,
    /// Somebody else has written as well: all has to be read anew.
    Changed,
}

// === impl Sides ===

impl Sides {
    /// Reads what is kept beside a set. Where that is not allowed, nothing is.
    pub(super) async fn load(objects: &Objects, owner: Owner<'_>) -> Result<Sides, ApiError> {
        let mut sides = Sides::default();
        let selector = owner.selector();
        let listed = objects.each(Some(&selector), |object| {
            if owner.owns(&object) && sides.known.len() < MOST {
                sides.learn(&object);
            }
        });
        match listed.await {
            Ok(_) => Ok(sides),
            Err(error) if error.is_forbidden() => {
                tracing::warn!(namespace = owner.namespace, application_set = owner.name, %error,
                    "details of phases are not read: let the controller list ConfigMaps");
                Ok(Sides::default())
            }
            Err(error) => Err(error),
        }
    }

    /// The details whose names begin so, to be put together with a status.
    pub(super) fn details<'a>(&'a self, begin: &'a str) -> impl Iterator<Item = &'a str> {
        self.named(begin).filter(|(_, text)| text.key == DETAILS).map(|(_, text)| &*text.text)
    }

    /// The texts of the objects whose names begin so.
    pub(super) fn named<'a>(&'a self, begin: &'a str) -> impl Iterator<Item = (&'a String, &'a Text)> {
        let named = self.known.iter().filter(move |(name, _)| name.starts_with(begin));
        named.map(|(name, side)| (name, &side.text))
    }

    /// The text of an object.
    pub(super) fn text(&self, name: &str, key: &str) -> Option<&Arc<str>> {
        self.known.get(name).filter(|side| side.text.key == key).map(|side| &side.text.text)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Writes what is wanted and is not so.
    pub(super) async fn store(
        &mut self,
        objects: &Objects,
        owner: Owner<'_>,
        wanted: &BTreeMap<String, Text>,
    ) -> Result<Kept, ApiError> {
        let differs =
            |(name, text): &(&String, &Text)| self.known.get(*name).is_none_or(|side| side.text != **text);
        let writes = wanted.iter().filter(differs).take(MOST).map(|(name, text)| {
            let at = self.known.get(name).and_then(|side| side.at.clone());
            async move { (name, text, write(objects, owner, name, text, at).await) }
        });
        let writes: Vec<_> = writes.collect();
        let answers: Vec<_> = stream::iter(writes).buffered(AT_ONCE).collect().await;
        let mut kept = Kept::Done;
        for (name, text, answer) in answers {
            match answer {
                Ok(object) => drop(self.learn(&object)),
                Err(error) if error.is_conflict() || error.is_not_found() => kept = Kept::Changed,
                Err(error) if is_hopeless(&error) => {
                    tracing::warn!(namespace = owner.namespace, application_set = owner.name, config_map = name,
                        %error, "details of phases are not kept");
                    self.known.insert(name.clone(), Side { text: text.clone(), at: None });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(kept)
    }

    /// Deletes what nobody refers to any more. What cannot be deleted is tried again in another round.
    pub(super) async fn sweep(&mut self, objects: &Objects, wanted: &BTreeMap<String, Text>) {
        let stale: Vec<String> =
            self.known.keys().filter(|name| !wanted.contains_key(*name)).cloned().collect();
        let deletions = stale.into_iter().map(|name| {
            let at = self.known.get(&name).and_then(|side| side.at.clone());
            async move {
                let deleted = match &at {
                    // By its UID: another of this name is somebody else's.
                    Some((uid, _)) => objects.delete(&name, Seen { uid, version: None }).await.map(drop),
                    None => Ok(()),
                };
                (name, deleted)
            }
        });
        let deletions: Vec<_> = deletions.collect();
        let answers: Vec<_> = stream::iter(deletions).buffered(AT_ONCE).collect().await;
        for (name, deleted) in answers {
            match deleted {
                Err(error) if !error.is_conflict() => {
                    tracing::warn!(config_map = %name, %error, "details of phases that are over are not deleted");
                }
                _ => drop(self.known.remove(&name)),
            }
        }
    }

    fn learn(&mut self, object: &Value) -> Option<()> {
        let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
        let key = [DETAILS, STRATEGY].into_iter().find(|key| object["data"][*key].is_string())?;
        let kept = Text { key, text: object["data"][key].as_str()?.into() };
        let at = Some((text("uid")?, text("resourceVersion")?));
        self.known.insert(text("name")?, Side { text: kept, at });
        Some(())
    }
}

async fn write(
    objects: &Objects,
    owner: Owner<'_>,
    name: &str,
    text: &Text,
    at: Option<(String, String)>,
) -> Result<Value, ApiError> {
    let data = json!({text.key: &*text.text});
    match at {
        Some((uid, version)) => {
            objects.patch(name, json!({"data": data}), Seen { uid: &uid, version: Some(&version) }).await
        }
        None => {
            let metadata = owner.metadata(name, None);
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
            let created = objects.create(&object).await;
            match created {
                // Ours, by an answer that was lost or another leader: all is read anew. Somebody else's: it stays.
                Err(error) if error.is_already_exists() => match objects.get(name).await? {
                    Some(object) if owner.owns(&object) => Err(changed()),
                    _ => Err(error),
                },
                other => other,
            }
        }
    }
}

fn changed() -> ApiError {
    let message = "it was written by somebody else".to_owned();
    ApiError::Refused { code: 409, reason: "Conflict".to_owned(), message }
}

/// Whether trying again will not help.
fn is_hopeless(error: &ApiError) -> bool {
    error.is_forbidden() || error.is_already_exists() || error.is_invalid() || error.is_too_large()
}
