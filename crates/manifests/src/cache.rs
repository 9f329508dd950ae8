//! What was rendered, kept within a bound; and what is being rendered, once for all who ask for the same.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use baton_api::application_status::SourceType;
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::Fault;

/// Everything the objects of a source depend on, digested.
pub(crate) type Key = [u8; 32];

/// The objects of one source.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) objects: Vec<Arc<Value>>,
    pub(crate) source_type: SourceType,
    pub(crate) digest: [u8; 32],
    /// About how many bytes it takes.
    weight: usize,
}

impl Part {
    pub(crate) fn new(objects: Vec<Value>, source_type: SourceType) -> Part {
        let mut hash = Sha256::new();
        let mut weight = 64;
        for object in &objects {
            let text = object.to_string();
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(&text);
            // A value in memory takes several times its text.
            weight += 64 + text.len() * 3;
        }
        let objects = objects.into_iter().map(Arc::new).collect();
        Part { objects, source_type, digest: hash.finalize().into(), weight }
    }
}

pub(crate) type Outcome = Result<Arc<Part>, Fault>;

/// One rendering that somebody waits for: the result stays as long as anybody does.
type Flight = tokio::sync::Mutex<Option<Outcome>>;

/// Parts, the least recently used forgotten first.
#[derive(Debug)]
pub(crate) struct Cache {
    most: usize,
    kept: Mutex<Kept>,
    flights: Mutex<HashMap<Key, Weak<Flight>>>,
}

#[derive(Debug, Default)]
struct Kept {
    parts: HashMap<Key, (u64, Arc<Part>)>,
    weight: usize,
    /// Counts uses.
    now: u64,
}

impl Cache {
    /// Keeps about that many bytes.
    pub(crate) fn new(most: usize) -> Cache {
        Cache { most, kept: Mutex::default(), flights: Mutex::default() }
    }

    /// The part of a key: remembered (unless `anew`), or from whoever renders it at this moment, or rendered now.
    pub(crate) async fn part(&self, key: Key, anew: bool, render: impl Future<Output = Outcome>) -> Outcome {
        if !anew && let Some(part) = self.get(&key) {
            return Ok(part);
        }
        let flight = self.flight(key);
        let mut outcome = flight.lock().await;
        if let Some(outcome) = outcome.as_ref() {
            return outcome.clone();
        }
        let rendered = render.await;
        if let Ok(part) = &rendered {
            self.insert(key, part.clone());
        }
        *outcome = Some(rendered.clone());
        // Whoever comes from now on did not ask at the same time.
        self.flights.lock().remove(&key);
        rendered
    }

    fn flight(&self, key: Key) -> Arc<Flight> {
        let mut flights = self.flights.lock();
        if let Some(flight) = flights.get(&key).and_then(Weak::upgrade) {
            return flight;
        }
        flights.retain(|_, flight| flight.strong_count() > 0);
        let flight = Arc::new(Flight::default());
        flights.insert(key, Arc::downgrade(&flight));
        flight
    }

    fn get(&self, key: &Key) -> Option<Arc<Part>> {
        let mut kept = self.kept.lock();
        kept.now += 1;
        let now = kept.now;
        let (used, part) = kept.parts.get_mut(key)?;
        *used = now;
        Some(part.clone())
    }

    fn insert(&self, key: Key, part: Arc<Part>) {
        if part.weight > self.most {
            return;
        }
        let mut kept = self.kept.lock();
        kept.now += 1;
        let now = kept.now;
        kept.weight += part.weight;
        if let Some((_, replaced)) = kept.parts.insert(key, (now, part)) {
            kept.weight -= replaced.weight;
        }
        while kept.weight > self.most {
            let oldest = kept.parts.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| *key);
            let Some((_, forgotten)) = oldest.and_then(|key| kept.parts.remove(&key)) else { return };
            kept.weight -= forgotten.weight;
        }
    }
}
