//! Random use of a store against a model too simple to be wrong.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use baton_store::{
    Change, CommitError, Compacted, Event, Expect, Key, ListError, Listing, Options, Page, Record, Store,
    Watch,
};
use proptest::prelude::*;

use crate::object::{delete, json, key, put, run};

const RESOURCES: [&str; 3] = ["pods", "nodes", "secrets"];
const NAMESPACES: [&str; 3] = ["", "a", "b"];
const NAMES: [&str; 4] = ["m", "n", "o", "oo"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_store_in_memory_answers_like_the_model(
        options in options(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        Comparison::new(Store::memory(options), options, None).perform(steps);
    }
}

proptest! {
    // Each write waits for the disk.
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn a_store_on_disk_answers_like_the_model(
        options in options(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), options).unwrap();
        Comparison::new(store, options, Some(dir.path())).perform(steps);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put {
        key: Key,
        expect: Expectation,
        size: usize,
    },
    Delete {
        key: Key,
        expect: Expectation,
        size: usize,
    },
    List {
        resource: &'static str,
        scope: Option<&'static str>,
        back: Option<i8>,
        after: Option<(String, String)>,
        limit: Option<usize>,
    },
    Compact {
        back: u8,
    },
    History {
        back: u8,
    },
    Watch {
        resource: &'static str,
        scope: Option<&'static str>,
        back: u8,
    },
    Read {
        watch: usize,
        count: usize,
    },
    Unwatch {
        watch: usize,
    },
    Reopen,
}

/// What a write expects, in terms of what is there.
#[derive(Clone, Copy, Debug)]
enum Expectation {
    Right,
    Absent,
    Revision(u8),
}

fn options() -> impl Strategy<Value = Options> {
    let bound = prop_oneof![Just(usize::MAX), 0..30usize];
    let bytes = prop_oneof![2 => Just(usize::MAX), 1 => 0..6000usize];
    (bound, bytes, any::<bool>()).prop_map(|(history_events, history_bytes, compress)| Options {
        history_events,
        history_bytes,
        compress,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let resource = || prop::sample::select(&RESOURCES[..]);
    let namespace = || prop::sample::select(&NAMESPACES[..]);
    let name = || prop::sample::select(&NAMES[..]);
    let any_key = || (resource(), namespace(), name()).prop_map(|(r, ns, n)| key(r, ns, n));
    let expect = || {
        prop_oneof![
            6 => Just(Expectation::Right),
            1 => Just(Expectation::Absent),
            1 => any::<u8>().prop_map(Expectation::Revision),
        ]
    };
    // Some beyond the size from which bodies are compressed.
    let size = || prop_oneof![4 => 0..200usize, 1 => 900..3000usize];
    let scope = || prop::option::of(namespace());
    let watched = || prop_oneof![5 => resource(), 1 => Just("")];
    let after = prop::option::of((namespace(), name()).prop_map(|(ns, n)| (ns.to_owned(), n.to_owned())));
    prop_oneof![
        12 => (any_key(), expect(), size()).prop_map(|(key, expect, size)| Step::Put { key, expect, size }),
        4 => (any_key(), expect(), size()).prop_map(|(key, expect, size)| Step::Delete { key, expect, size }),
        6 => (resource(), scope(), prop::option::of(-2..40i8), after, prop::option::of(0..8usize)).prop_map(
            |(resource, scope, back, after, limit)| Step::List { resource, scope, back, after, limit }
        ),
        1 => (0..20u8).prop_map(|back| Step::Compact { back }),
        1 => (0..40u8).prop_map(|back| Step::History { back }),
        3 => (watched(), scope(), 0..30u8).prop_map(|(resource, scope, back)| Step::Watch { resource, scope, back }),
        6 => (0..8usize, 1..6usize).prop_map(|(watch, count)| Step::Read { watch, count }),
        1 => (0..8usize).prop_map(|watch| Step::Unwatch { watch }),
        1 => Just(Step::Reopen),
    ]
}

/// One committed write, as the model remembers it.
#[derive(Clone, Debug)]
struct Fact {
    change: Change,
    key: Key,
    revision: u64,
    created: u64,
    text: String,
    /// Bytes this fact keeps alive.
    bytes: usize,
}

impl Fact {
    fn json(&self) -> String {
        json(&self.key.name, &self.text, self.revision)
    }
}

/// Every write since the beginning, and how far back the store may remember.
struct Model {
    options: Options,
    /// The fact at index i has revision i + 2.
    facts: Vec<Fact>,
    oldest: u64,
}

impl Model {
    fn revision(&self) -> u64 {
        1 + self.facts.len() as u64
    }

    fn at(&self, revision: u64) -> BTreeMap<Key, &Fact> {
        let mut objects = BTreeMap::new();
        for fact in self.facts.iter().filter(|fact| fact.revision <= revision) {
            match fact.change {
                Change::Added | Change::Modified => objects.insert(fact.key.clone(), fact),
                Change::Deleted => objects.remove(&fact.key),
            };
        }
        objects
    }

    fn current(&self, key: &Key) -> Option<&Fact> {
        self.facts.iter().rfind(|fact| fact.key == *key).filter(|fact| fact.change != Change::Deleted)
    }

    fn kept(&self) -> &[Fact] {
        &self.facts[self.oldest as usize - 1..]
    }

    fn trim(&mut self) {
        let too_much = |kept: &[Fact]| {
            kept.len() > self.options.history_events
                || kept.iter().map(|fact| fact.bytes).sum::<usize>() > self.options.history_bytes
        };
        let mut oldest = self.oldest;
        while self.facts.len() as u64 > oldest && too_much(&self.facts[oldest as usize - 1..]) {
            oldest += 1;
        }
        self.oldest = oldest;
    }
}

/// A watch of the store and what the model knows of it.
struct Pair {
    watch: Watch,
    resource: &'static str,
    scope: Option<&'static str>,
    /// It has looked at everything up to here.
    read: u64,
}

impl Pair {
    fn of_resource(&self, fact: &Fact) -> bool {
        self.resource.is_empty() || *fact.key.resource == *self.resource
    }

    fn next<'m>(&self, model: &'m Model) -> Result<Option<&'m Fact>, Compacted> {
        let missed = |fact: &&Fact| fact.revision > self.read && fact.revision <= model.oldest;
        if model.facts.iter().filter(missed).any(|fact| self.of_resource(fact)) {
            return Err(Compacted { oldest: model.oldest });
        }
        let in_scope = |fact: &Fact| self.scope.is_none_or(|scope| scope == &*fact.key.namespace);
        Ok(model
            .facts
            .iter()
            .find(|fact| fact.revision > self.read && self.of_resource(fact) && in_scope(fact)))
    }
}

struct Comparison<'d> {
    store: Store,
    model: Model,
    watches: Vec<Pair>,
    dir: Option<&'d Path>,
}

impl<'d> Comparison<'d> {
    fn new(store: Store, options: Options, dir: Option<&'d Path>) -> Self {
        Self { store, model: Model { options, facts: Vec::new(), oldest: 1 }, watches: Vec::new(), dir }
    }

    fn perform(mut self, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Put { key, expect, size } => self.write(key, expect, size, false),
                Step::Delete { key, expect, size } => self.write(key, expect, size, true),
                Step::List { resource, scope, back, after, limit } => {
                    let at = back.map(|back| self.model.revision().saturating_add_signed(-i64::from(back)));
                    self.list(resource, scope, Page { at, after, limit });
                }
                Step::Compact { back } => self.compact(back),
                Step::History { back } => self.history(back),
                Step::Watch { resource, scope, back } => self.watch(resource, scope, back),
                Step::Read { watch, count } => (0..count).for_each(|_| self.read(watch)),
                Step::Unwatch { watch } if watch < self.watches.len() => {
                    drop(self.watches.swap_remove(watch))
                }
                Step::Unwatch { .. } => {}
                Step::Reopen => self.reopen(),
            }
            self.compare();
        }
    }

    fn write(&mut self, key: Key, expect: Expectation, size: usize, is_deletion: bool) {
        let current = self.model.current(&key).cloned();
        let expect = match (expect, &current) {
            (Expectation::Right, Some(fact)) => Expect::Revision(fact.revision),
            (Expectation::Right | Expectation::Absent, _) => Expect::Absent,
            (Expectation::Revision(revision), _) => Expect::Revision(revision.into()),
        };
        let text = format!("{} {}", self.model.revision(), "0123456789abcdef".repeat(size / 16));
        let write = if is_deletion { delete(&key, expect, &text) } else { put(&key, expect, &text) };
        let outcome = run(self.store.commit(write));

        let holds = match (expect, &current) {
            (Expect::Absent, None) => !is_deletion,
            (Expect::Revision(revision), Some(fact)) => fact.revision == revision,
            _ => false,
        };
        if !holds {
            let Err(CommitError::Conflict { current: shown }) = outcome else {
                panic!("no conflict: {outcome:?}")
            };
            assert_eq!(shown.map(|record| text_of(&record)), current.map(|fact| fact.json()));
            return;
        }
        let record = outcome.unwrap();
        let change = match (&current, is_deletion) {
            (None, _) => Change::Added,
            (Some(_), false) => Change::Modified,
            (Some(_), true) => Change::Deleted,
        };
        let revision = self.model.revision() + 1;
        let created = current.as_ref().map_or(revision, |fact| fact.created);
        let mut fact = Fact { change, key, revision, created, text, bytes: 0 };
        // Compressed sizes are the store's own business: the model takes over what an event weighs.
        fact.bytes = self.weight(&fact, current.as_ref());
        assert_same(&record, &fact);
        self.model.facts.push(fact);
        self.model.trim();
    }

    fn weight(&self, fact: &Fact, previous: Option<&Fact>) -> usize {
        let alone = |fact: &Fact| {
            let store = Store::memory(Options::unlimited());
            run(store.commit(put(&fact.key, Expect::Absent, &fact.text))).unwrap();
            store.stats().object_bytes
        };
        let deleted = if fact.change == Change::Deleted { alone(fact) } else { 0 };
        deleted + previous.map_or(0, alone)
    }

    fn list(&self, resource: &str, scope: Option<&str>, page: Page) {
        let outcome = self.store.list(resource, scope, page.clone());
        let revision = page.at.unwrap_or(self.model.revision());
        if revision > self.model.revision() {
            assert_eq!(outcome.unwrap_err(), ListError::Future { current: self.model.revision() });
            return;
        }
        if revision < self.model.oldest {
            assert_eq!(outcome.unwrap_err(), ListError::Compacted(Compacted { oldest: self.model.oldest }));
            return;
        }
        let objects = self.model.at(revision);
        let mut wanted: Vec<_> = objects
            .values()
            .filter(|fact| {
                *fact.key.resource == *resource && scope.is_none_or(|scope| scope == &*fact.key.namespace)
            })
            .filter(|fact| {
                let place = (fact.key.namespace.to_string(), fact.key.name.to_string());
                page.after.as_ref().is_none_or(|after| place > *after)
            })
            .collect();
        let count = wanted.len();
        wanted.truncate(page.limit.unwrap_or(usize::MAX));
        let Listing { revision: listed, records, remaining } = outcome.unwrap();
        assert_eq!(
            (listed, records.len(), remaining),
            (revision, wanted.len(), count - wanted.len()),
            "{page:?}"
        );
        records.iter().zip(wanted).for_each(|(record, fact)| assert_same(record, fact));
    }

    fn compact(&mut self, back: u8) {
        let revision = self.model.revision().saturating_sub(back.into());
        self.store.compact(revision);
        self.model.oldest = self.model.oldest.max(revision);
    }

    fn history(&self, back: u8) {
        let from = self.model.revision().saturating_sub(back.into());
        let wanted: Vec<_> = self.model.kept().iter().filter(|fact| fact.revision > from).collect();
        let events = self.store.history(from);
        assert_eq!(events.len(), wanted.len());
        events.iter().zip(wanted).for_each(|(event, fact)| self.assert_event(event, fact));
    }

    fn watch(&mut self, resource: &'static str, scope: Option<&'static str>, back: u8) {
        let from = self.model.revision().saturating_sub(back.into());
        let outcome = self.store.watch(resource, scope, from);
        if from < self.model.oldest {
            assert_eq!(outcome.err(), Some(Compacted { oldest: self.model.oldest }));
        } else if self.watches.len() < 8 {
            self.watches.push(Pair { watch: outcome.unwrap(), resource, scope, read: from });
        }
    }

    fn read(&mut self, index: usize) {
        let Some(mut pair) = (index < self.watches.len()).then(|| self.watches.swap_remove(index)) else {
            return;
        };
        match (pair.watch.try_next(), pair.next(&self.model)) {
            (Ok(event), Ok(fact)) => {
                assert_eq!(event.is_some(), fact.is_some(), "{event:?} {fact:?}");
                if let (Some(event), Some(fact)) = (&event, fact) {
                    self.assert_event(event, fact);
                }
                pair.read = fact.map_or(self.model.revision(), |fact| fact.revision);
            }
            (outcome, wanted) => {
                assert_eq!(outcome.err(), wanted.err());
                // It has ended, so it is not put back.
                return;
            }
        }
        let continues_at = match pair.next(&self.model) {
            Ok(Some(fact)) => fact.revision - 1,
            Ok(None) => self.model.revision(),
            Err(_) => pair.read,
        };
        assert_eq!(pair.watch.position(), continues_at);
        self.watches.push(pair);
    }

    fn reopen(&mut self) {
        let Some(dir) = self.dir else { return };
        self.watches.clear();
        self.store.close();
        self.store = Store::open(dir, self.model.options).unwrap();
        self.model.oldest = self.model.revision();
    }

    fn compare(&self) {
        let (store, model) = (&self.store, &self.model);
        assert_eq!((store.revision(), store.oldest()), (model.revision(), model.oldest));
        let objects = model.at(model.revision());
        for resource in RESOURCES {
            assert_eq!(
                store.count(resource),
                objects.keys().filter(|key| *key.resource == *resource).count()
            );
        }
        for fact in objects.values() {
            assert_same(&store.get(&fact.key).unwrap(), fact);
        }
        let stats = store.stats();
        assert_eq!((stats.objects, stats.watches), (objects.len(), self.watches.len()));
        assert_eq!(stats.history_events, model.kept().len());
        assert_eq!(stats.history_bytes, model.kept().iter().map(|fact| fact.bytes).sum::<usize>());
    }

    fn assert_event(&self, event: &Arc<Event>, fact: &Fact) {
        assert_eq!((event.revision, event.change), (fact.revision, fact.change));
        assert_same(&event.record, fact);
        let before = self.model.at(fact.revision - 1);
        match (&event.previous, before.get(&fact.key)) {
            (Some(record), Some(fact)) => assert_same(record, fact),
            (record, fact) => assert!(record.is_none() && fact.is_none(), "{record:?} {fact:?}"),
        }
    }
}

fn assert_same(record: &Record, fact: &Fact) {
    assert_eq!(record.key, fact.key);
    assert_eq!((record.revision, record.created), (fact.revision, fact.created));
    assert_eq!(text_of(record), fact.json());
}

fn text_of(record: &Record) -> String {
    String::from_utf8(record.json().to_vec()).unwrap()
}
