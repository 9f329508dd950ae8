//! What is remembered of a set between rounds. All of it can be read anew.

use std::collections::BTreeMap;

use baton_api::ApplicationSet;
use baton_api::phase_status::GeneratorPhases;
use baton_phases::details;
use serde::Deserialize;
use serde_json::Value;

use super::good::GoodStates;
use super::sides::Sides;
use crate::cache;

/// What is remembered of a set.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) uid: String,
    /// The set as the API last told, where that is newer than what rounds were told.
    newest: Option<(u64, Value)>,
    /// The version of the set that was last read or written here.
    pub(super) sure: u64,
    /// Whether the set, and what is kept beside it, have to be read.
    pub(super) doubts_set: bool,
    pub(super) doubts_sides: bool,
    pub(super) doubts_good: bool,
    pub(super) sides: Sides,
    pub(super) good: GoodStates,
    /// `status.phases` as it was last read or written here.
    stored: Option<Vec<GeneratorPhases>>,
    /// The same with their details, by generator.
    whole: BTreeMap<usize, GeneratorPhases>,
    /// The changes of annotations that the API refused.
    pub(super) refused_mirror: BTreeMap<String, Option<String>>,
}

impl Memory {
    pub(super) fn new(uid: &str) -> Memory {
        Memory {
            uid: uid.to_owned(),
            newest: None,
            sure: 0,
            doubts_set: true,
            doubts_sides: true,
            doubts_good: true,
            sides: Sides::default(),
            good: GoodStates::default(),
            stored: None,
            whole: BTreeMap::new(),
            refused_mirror: BTreeMap::new(),
        }
    }

    /// Everything is to be read anew.
    pub(super) fn doubt(&mut self) {
        (self.doubts_set, self.doubts_sides, self.doubts_good) = (true, true, true);
    }

    /// Whether nothing was read for the set.
    pub(super) fn is_idle(&self) -> bool {
        self.sure == 0 && self.sides.is_empty() && self.good.is_empty()
    }

    /// Takes note of what is stored. Where that is not what was stored here, somebody else is at work, and what is kept
    /// beside the set has to be read anew.
    pub(super) fn follow(&mut self, phases: &[GeneratorPhases]) {
        if self.stored.as_deref() != Some(phases) {
            (self.doubts_sides, self.doubts_good) = (true, true);
            self.stored = Some(phases.to_vec());
            self.whole.clear();
        }
    }

    /// Takes note of what is kept beside the set.
    pub(super) fn keep(&mut self, sides: Sides) {
        self.sides = sides;
        self.doubts_sides = false;
        self.whole.clear();
    }

    /// Takes note of what was stored here.
    pub(super) fn stored(&mut self, phases: Vec<GeneratorPhases>, whole: BTreeMap<usize, GeneratorPhases>) {
        (self.stored, self.whole) = (Some(phases), whole);
    }

    /// The status of a generator with its details. `begin` begins the names of the objects that hold them.
    pub(super) fn whole(&mut self, generator: usize, begin: &str) -> Option<&GeneratorPhases> {
        if !self.whole.contains_key(&generator) {
            let place = i64::try_from(generator).ok()?;
            let stored = self.stored.iter().flatten().find(|phases| phases.generator == place)?;
            let whole = details::join(stored, self.sides.details(begin));
            self.whole.insert(generator, whole);
        }
        self.whole.get(&generator)
    }

    /// Keeps the set as it was read, which is as it is, whatever was known before.
    pub(super) fn trust(&mut self, raw: Value) {
        self.sure = 0;
        self.learn(raw);
        self.doubts_set = false;
    }

    /// Keeps what the API answered to a write of the set.
    pub(super) fn learn(&mut self, raw: Value) {
        let version = version_of(&raw);
        if version >= self.sure {
            self.sure = version;
            self.newest = Some((version, raw));
        }
    }

    /// The set as the API last told, where that is newer than this version of it.
    pub(super) fn newer_than(&mut self, version: u64) -> Option<(&Value, ApplicationSet)> {
        if self.newest.as_ref().is_some_and(|(known, _)| *known <= version) {
            self.newest = None;
        }
        let (_, raw) = self.newest.as_ref()?;
        Some((raw, ApplicationSet::deserialize(raw).ok()?))
    }
}

/// The version of a set as the API told it.
pub(super) fn version_of(raw: &Value) -> u64 {
    let version = raw["metadata"]["resourceVersion"].as_str();
    version.and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// The version of a set.
pub(super) fn version(set: &ApplicationSet) -> u64 {
    cache::version(&set.metadata)
}
