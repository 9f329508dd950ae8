//! The head of a set's rollout: the small durable truth, changed only by compare-and-swap.
//!
//! It is kept as texts under keys, as a ConfigMap holds them. What is told per Application is split over many keys, so
//! that a change writes bytes for what changed and not for the whole set.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::pin::{Fingerprint, Resolution, SourceKey};

/// How many Applications share a key.
const ROWS_PER_KEY: usize = 16;
/// How many revisions share a key.
const REVISIONS_PER_KEY: usize = 32;
const RUN: &str = "run";
const ROWS: &str = "apps.";
const REVISIONS: &str = "revisions.";

/// All that is known for sure of a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head {
    /// The run.
    pub run: Run,
    /// What each revision was resolved to, once for the whole run.
    pub revisions: BTreeMap<SourceKey, Resolution>,
    /// What is told per Application; the place of one never changes in a run.
    rows: Vec<Row>,
    places: BTreeMap<Fingerprint, usize>,
}

/// A run through the steps.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// UID of the set.
    pub set: Arc<str>,
    /// Its number: one more with each run that supersedes another. 0 is before the first.
    pub seq: u64,
    /// Of the steps it follows.
    pub strategy: Fingerprint,
    /// Generation of the set it was begun for.
    #[serde(default)]
    pub generation: i64,
    /// How many steps are open.
    pub open: usize,
    /// Version of the consistent list it began with.
    pub floor: u64,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Timestamp>,
    /// Per open step, how it came to be open.
    #[serde(default)]
    pub openings: Vec<Opening>,
    /// How often it was begun anew before it had ended.
    #[serde(default)]
    pub restarts: u64,
    /// Whether a person ended it.
    #[serde(default)]
    pub aborted: bool,
    /// Whether a person holds it; told here by whoever pauses, beside the set's annotation, so that no write can be
    /// decided on without it.
    #[serde(default)]
    pub paused: bool,
    /// Requests of people that were granted, so that each is granted once.
    #[serde(default)]
    pub granted: Granted,
    /// Which gates of phases it follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<crate::machine::Mark>,
}

/// How a step came to be open, and to be done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Opening {
    /// Version of the consistent list that let it open.
    pub version: u64,
    /// When it opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Since when every one of its Applications has been done and well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub well_since: Option<Timestamp>,
}

/// Requests of people that were granted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Granted {
    /// The last request to abort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abort: Option<Arc<str>>,
    /// The last request to try again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Arc<str>>,
}

/// What is told of one Application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Of its UID.
    pub id: Fingerprint,
    /// Hash of its pin in this run.
    pub pin: Fingerprint,
    /// Number of the last write that was intended. It grows for ever.
    pub n: u64,
    /// What that write is, if it is of this run.
    pub intent: Option<Intent>,
    /// Whether that write, which then was the one before the number, is to be made impossible: if it has landed it
    /// stands, and if not, a fence lands in its stead.
    pub fence: bool,
    /// Whether it holds one of its step's slots.
    pub slot: bool,
    /// How it came to be done in this run.
    pub done: Option<Done>,
    /// When its slot was taken in this run, or the run began with it taken, in seconds.
    pub since: i64,
    /// Number of the write that took it: only if that one is prevented is the slot free again.
    pub taken: u64,
    /// Whether this run has intended to bring it to its pin, and that was not prevented.
    pub begun: bool,
}

/// What a write to an Application is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Intent {
    /// Switches automatic sync off, and asks for a comparison.
    Arm,
    /// Asks for a comparison.
    Refresh,
    /// Asks for a comparison that trusts no cache.
    HardRefresh,
    /// Writes the specification, and no operation.
    Spec,
    /// Writes the specification where it differs, and an operation at the pin.
    Start,
    /// Writes an operation at the revisions it was synced at before: drift is healed where it is.
    Heal,
    /// Ends an operation that waits to be tried again.
    Terminate,
    /// Writes nothing but the stamp, so that no older write can land any more.
    Fence,
}

/// How an Application came to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Done {
    /// By an operation of this run.
    Synced,
    /// It was so already.
    Unchanged,
    /// By somebody else's operation.
    Override,
    /// A person said so.
    Skipped,
    /// It failed, which the step allows.
    Tolerated,
}

/// What is to be changed in a head, all at once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    /// The run, where it changes.
    pub run: Option<Run>,
    /// The whole table of revisions, where it changes.
    pub revisions: Option<BTreeMap<SourceKey, Resolution>>,
    /// Rows that change or are new.
    pub rows: Vec<Row>,
    /// Whether the rows given are all there are: a new run.
    pub anew: bool,
}

/// A head that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the head of the rollout cannot be read: {key}: {why}")]
pub struct Broken {
    /// Where.
    pub key: String,
    /// What is wrong.
    pub why: String,
}

// === impl Head ===

impl Head {
    /// What is told of an Application, by the fingerprint of its UID.
    pub fn row(&self, id: Fingerprint) -> Option<&Row> {
        self.places.get(&id).map(|&place| &self.rows[place])
    }

    /// What is told of every Application.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Makes a change that was stored.
    pub fn apply(&mut self, change: &Change) {
        if let Some(run) = &change.run {
            self.run = run.clone();
        }
        if let Some(revisions) = &change.revisions {
            self.revisions.clone_from(revisions);
        }
        if change.anew {
            self.rows.clear();
            self.places.clear();
        }
        for row in &change.rows {
            match self.places.get(&row.id) {
                Some(&place) => self.rows[place] = row.clone(),
                None => {
                    self.places.insert(row.id, self.rows.len());
                    self.rows.push(row.clone());
                }
            }
        }
    }

    /// The texts under keys that a change writes; none takes a key away.
    pub fn texts_of(&self, change: &Change) -> BTreeMap<String, Option<String>> {
        let mut texts = BTreeMap::new();
        if let Some(run) = &change.run {
            texts.insert(RUN.to_owned(), Some(serde_json::to_string(run).unwrap_or_default()));
        }
        if let Some(revisions) = &change.revisions {
            let before = self.revisions.len().div_ceil(REVISIONS_PER_KEY);
            let after = written_revisions(revisions);
            (after.len()..before).for_each(|number| drop(texts.insert(key(REVISIONS, number), None)));
            texts.extend(after.into_iter().map(|(key, text)| (key, Some(text))));
        }
        if change.rows.is_empty() && !change.anew {
            return texts;
        }
        let before = self.rows.len().div_ceil(ROWS_PER_KEY);
        let mut touched = BTreeSet::new();
        let mut fresh: BTreeMap<usize, &Row> = BTreeMap::new();
        let mut end = if change.anew { 0 } else { self.rows.len() };
        for row in &change.rows {
            let known = self.places.get(&row.id).copied().filter(|_| !change.anew);
            let place = known.unwrap_or_else(|| {
                end += 1;
                end - 1
            });
            fresh.insert(place, row);
            touched.insert(place / ROWS_PER_KEY);
        }
        for number in touched {
            let mut text = String::new();
            for place in number * ROWS_PER_KEY..((number + 1) * ROWS_PER_KEY).min(end) {
                if let Some(row) = fresh.get(&place).copied().or_else(|| self.rows.get(place)) {
                    row.write(&mut text);
                }
            }
            texts.insert(key(ROWS, number), Some(text));
        }
        let after = end.div_ceil(ROWS_PER_KEY);
        (after..before).for_each(|number| drop(texts.insert(key(ROWS, number), None)));
        texts
    }

    /// Reads what was stored.
    ///
    /// # Errors
    /// If it is not what this version writes. Then it is as good as lost.
    pub fn read(texts: &BTreeMap<String, String>) -> Result<Head, Broken> {
        let broken = |key: &str, why: String| Broken { key: key.to_owned(), why };
        let run = texts.get(RUN).ok_or_else(|| broken(RUN, "it is missing".to_owned()))?;
        let run = serde_json::from_str(run).map_err(|error| broken(RUN, error.to_string()))?;
        let mut head = Head { run, ..Head::default() };
        for number in 0.. {
            let key = key(REVISIONS, number);
            let Some(text) = texts.get(&key) else { break };
            let read: Vec<(SourceKey, Resolution)> =
                serde_json::from_str(text).map_err(|error| broken(&key, error.to_string()))?;
            head.revisions.extend(read);
        }
        for number in 0.. {
            let key = key(ROWS, number);
            let Some(text) = texts.get(&key) else { break };
            for line in text.lines() {
                let row = Row::read(line).ok_or_else(|| broken(&key, format!("{line:?}")))?;
                if head.places.insert(row.id, head.rows.len()).is_some() {
                    return Err(broken(&key, "the same Application twice".to_owned()));
                }
                head.rows.push(row);
            }
        }
        Ok(head)
    }
}

fn key(prefix: &str, number: usize) -> String {
    format!("{prefix}{number:05}")
}

fn written_revisions(revisions: &BTreeMap<SourceKey, Resolution>) -> Vec<(String, String)> {
    let all: Vec<_> = revisions.iter().collect();
    let texts = all.chunks(REVISIONS_PER_KEY).map(|chunk| serde_json::to_string(chunk).unwrap_or_default());
    texts.enumerate().map(|(number, text)| (key(REVISIONS, number), text)).collect()
}

// === impl Row ===

impl Row {
    /// An Application that nothing has been done about.
    pub fn new(id: Fingerprint, pin: Fingerprint) -> Row {
        let (fence, slot, begun) = (false, false, false);
        Row { id, pin, n: 0, intent: None, fence, slot, done: None, since: 0, taken: 0, begun }
    }

    fn write(&self, text: &mut String) {
        let intent = self.intent.map_or('-', Intent::letter);
        let done = self.done.map_or('-', Done::letter);
        let slot = if self.slot { '+' } else { '-' };
        let fence = if self.fence { '+' } else { '-' };
        let begun = if self.begun { '+' } else { '-' };
        let Row { id, pin, n, since, taken, .. } = self;
        let _ = writeln!(text, "{id} {pin} {n} {intent}{slot}{done}{fence}{begun} {since} {taken}");
    }

    fn read(line: &str) -> Option<Row> {
        let mut words = line.split(' ');
        let (id, pin) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let n = words.next()?.parse().ok()?;
        let mut letters = words.next()?.chars();
        let intent = match letters.next()? {
            '-' => None,
            letter => Some(Intent::ALL.into_iter().find(|intent| intent.letter() == letter)?),
        };
        let flag = |letter: char| match letter {
            '+' => Some(true),
            '-' => Some(false),
            _ => None,
        };
        let slot = flag(letters.next()?)?;
        let done = match letters.next()? {
            '-' => None,
            letter => Some(Done::ALL.into_iter().find(|done| done.letter() == letter)?),
        };
        let (fence, begun) = (flag(letters.next()?)?, flag(letters.next()?)?);
        let (since, taken) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let ends = letters.next().is_none() && words.next().is_none();
        ends.then_some(Row { id, pin, n, intent, fence, slot, done, since, taken, begun })
    }
}

// === impl Intent ===

impl Intent {
    const ALL: [Intent; 8] = [
        Intent::Arm,
        Intent::Refresh,
        Intent::HardRefresh,
        Intent::Spec,
        Intent::Start,
        Intent::Heal,
        Intent::Terminate,
        Intent::Fence,
    ];

    fn letter(self) -> char {
        match self {
            Intent::Arm => 'a',
            Intent::Refresh => 'r',
            Intent::HardRefresh => 'R',
            Intent::Spec => 's',
            Intent::Start => 'o',
            Intent::Heal => 'h',
            Intent::Terminate => 't',
            Intent::Fence => 'f',
        }
    }

    /// Whether it brings an Application to the pin of its run.
    pub fn begins(self) -> bool {
        matches!(self, Intent::Spec | Intent::Start)
    }

    /// Whether it asks for a comparison that must have been made before anything is believed.
    pub fn asks_for_comparison(self) -> bool {
        matches!(self, Intent::Arm | Intent::Refresh | Intent::HardRefresh | Intent::Spec)
    }

    /// Whether it is not written while an operation waits or runs: neither a specification nor an operation is, and a
    /// comparison that is asked for then would not tell what becomes of it.
    pub fn waits_for_operations(self) -> bool {
        self.asks_for_comparison() || matches!(self, Intent::Start | Intent::Heal)
    }
}

// === impl Done ===

impl Done {
    const ALL: [Done; 5] = [Done::Synced, Done::Unchanged, Done::Override, Done::Skipped, Done::Tolerated];

    fn letter(self) -> char {
        match self {
            Done::Synced => 'd',
            Done::Unchanged => 'u',
            Done::Override => 'o',
            Done::Skipped => 's',
            Done::Tolerated => 't',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row() -> impl Strategy<Value = Row> {
        let intent = prop::option::of(prop::sample::select(Intent::ALL.to_vec()));
        let done = prop::option::of(prop::sample::select(Done::ALL.to_vec()));
        (0..60u8, any::<u8>(), any::<u16>(), intent, any::<bool>(), done, any::<i32>()).prop_map(
            |(id, pin, n, intent, slot, done, since)| Row {
                id: Fingerprint::of([[id]]),
                pin: Fingerprint::of([[pin]]),
                n: n.into(),
                intent,
                fence: pin % 3 == 0,
                slot,
                done,
                since: since.into(),
                taken: n.into(),
                begun: pin % 2 == 0,
            },
        )
    }

    fn change() -> impl Strategy<Value = Change> {
        let revisions = prop::collection::btree_map(0..50u8, any::<u8>(), 0..50);
        let rows = prop::collection::vec(row(), 0..60);
        (any::<Option<u32>>(), prop::option::of(revisions), rows, any::<bool>()).prop_map(
            |(seq, revisions, rows, anew)| {
                let named = |(key, value): (u8, u8)| {
                    let key = SourceKey {
                        repo: (key / 2).to_string().into(),
                        target: "main".into(),
                        chart: "".into(),
                        tag_prefix: if key % 2 == 0 { "".into() } else { "web-".into() },
                    };
                    (key, Resolution::exact(value.to_string()))
                };
                let distinct: BTreeMap<Fingerprint, Row> =
                    rows.into_iter().map(|row| (row.id, row)).collect();
                Change {
                    run: seq.map(|seq| Run { seq: seq.into(), set: "u".into(), ..Run::default() }),
                    revisions: revisions.map(|all| all.into_iter().map(named).collect()),
                    rows: distinct.into_values().collect(),
                    anew,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_stored_is_what_is_known(changes in prop::collection::vec(change(), 1..8)) {
            let mut head = Head::default();
            let mut stored = BTreeMap::new();
            let first = Change { run: Some(Run::default()), ..Change::default() };
            for change in std::iter::once(first).chain(changes) {
                for (key, text) in head.texts_of(&change) {
                    match text {
                        Some(text) => drop(stored.insert(key, text)),
                        None => drop(stored.remove(&key)),
                    }
                }
                head.apply(&change);
                prop_assert_eq!(Head::read(&stored), Ok(head.clone()));
            }
        }

        #[test]
        fn no_text_breaks_the_reader(texts in prop::collection::btree_map("run|apps.0000[01]|revisions.00000", ".*", 0..4)) {
            let _ = Head::read(&texts);
        }
    }

    #[test]
    fn a_change_of_one_among_many_writes_little() {
        let mut head = Head::default();
        let rows = (0..10_000u32)
            .map(|id| Row::new(Fingerprint::of([id.to_be_bytes()]), Fingerprint::default()))
            .collect();
        head.apply(&Change { rows, anew: true, ..Change::default() });
        let one = Row { n: 1, ..head.rows()[5000].clone() };
        let texts = head.texts_of(&Change { rows: vec![one], ..Change::default() });
        let bytes: usize = texts.values().flatten().map(String::len).sum();
        assert!(texts.len() == 1 && bytes < 1000, "{bytes} bytes under {} keys", texts.len());
        let all = Change { rows: head.rows().to_vec(), anew: true, ..Change::default() };
        let bytes: usize = Head::default().texts_of(&all).values().flatten().map(String::len).sum();
        assert!(bytes < 512 << 10, "10,000 Applications take {bytes} bytes");
    }
}
