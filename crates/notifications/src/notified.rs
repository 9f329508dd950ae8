//! What has been told already: the annotation `notified.notifications.argoproj.io`, as Argo CD writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use baton_api::names::application::NOTIFIED;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::subject::annotations;
use crate::subscription::Destination;

/// Most keys that are kept beside those whose conditions are met now.
const MOST: usize = 100;

/// Tells one occasion to tell somebody something from every other of the same object:
/// `[<oncePer>:]<trigger>:[<place>].<hash>:<service>:<recipient>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DedupKey(String);

/// What has been told about an object: each key, and when, in seconds after 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Notified {
    told: BTreeMap<DedupKey, i64>,
}

// === impl DedupKey ===

impl DedupKey {
    /// The key of a condition and a destination.
    pub fn new(once_per: &str, trigger: &str, condition: &str, to: &Destination) -> DedupKey {
        let Destination { service, recipient } = to;
        let key = format!("{trigger}:{condition}:{service}:{recipient}");
        DedupKey(if once_per.is_empty() { key } else { format!("{once_per}:{key}") })
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DedupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl Notified ===

impl Notified {
    /// Reads an object's annotation. What cannot be read counts as nothing, as for Argo CD.
    pub fn of(object: &Json) -> Notified {
        let text = annotations(object).find(|(key, _)| *key == NOTIFIED).map(|(_, text)| text);
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// The annotation's text; none if it is to be removed.
    pub fn to_annotation(&self) -> Option<String> {
        // A map from texts to numbers is always JSON.
        if self.told.is_empty() { None } else { serde_json::to_string(&self.told).ok() }
    }

    /// Whether this has been told.
    pub fn contains(&self, key: &DedupKey) -> bool {
        self.told.contains_key(key)
    }

    /// When this was told.
    pub fn told_at(&self, key: &DedupKey) -> Option<i64> {
        self.told.get(key).copied()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.told.len()
    }

    /// Whether nothing has been told.
    pub fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    pub(crate) fn insert(&mut self, key: DedupKey, now: Timestamp) {
        self.told.insert(key, now.as_second());
    }

    pub(crate) fn remove(&mut self, key: &DedupKey) -> bool {
        self.told.remove(key).is_some()
    }

    /// Forgets the oldest beyond a hundred. Those whose conditions are met now are never forgotten, for they would be
    /// told again.
    pub(crate) fn forget_oldest(&mut self, live: &BTreeSet<DedupKey>) {
        let mut oldest: Vec<(i64, DedupKey)> = self
            .told
            .iter()
            .map(|(key, at)| (*at, key.clone()))
            .filter(|(_, key)| !live.contains(key))
            .collect();
        oldest.sort();
        let surplus = self.told.len().saturating_sub(MOST);
        for (_, key) in oldest.into_iter().take(surplus) {
            self.told.remove(&key);
        }
    }
}
