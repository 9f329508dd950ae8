//! Many writers at once: of those that read the same state, one wins.

use std::sync::Barrier;

use baton_store::{Change, CommitError, Expect, Options, Store};

use crate::object::{key, put, run, text};

#[test]
fn counters_in_memory_lose_no_increment() {
    count(&Store::memory(Options::unlimited()), 8, 500);
}

#[test]
fn counters_on_disk_lose_no_increment() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::unlimited()).unwrap();
    count(&store, 8, 40);
    store.close();
    let reopened = Store::open(dir.path(), Options::default()).unwrap();
    assert_eq!(reopened.revision(), store.revision());
    assert_eq!(total(&reopened), 8 * 40);
}

const COUNTERS: usize = 3;

/// Each thread adds one to some counter so many times, by compare-and-swap, while a watch follows.
fn count(store: &Store, threads: usize, increments: usize) {
    let mut watch = store.watch("counters", None, store.revision()).unwrap();
    let barrier = Barrier::new(threads);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                run(async {
                    for round in 0..increments {
                        increment(store, (thread + round) % COUNTERS).await;
                    }
                });
            });
        }
        let mut counts = [0; COUNTERS];
        let mut seen = store.oldest();
        run(async {
            for _ in 0..threads * increments {
                let event = watch.next().await.unwrap();
                seen += 1;
                assert_eq!(event.revision, seen, "no gap and no disorder");
                let counter: usize = event.record.key.name.parse().unwrap();
                counts[counter] += 1;
                assert_eq!(
                    text(&event.record),
                    counts[counter].to_string(),
                    "each increment builds on the last"
                );
                assert_eq!(event.change == Change::Added, counts[counter] == 1);
            }
        });
    });
    assert!(watch.try_next().unwrap().is_none());
    assert_eq!(total(store), threads * increments);
}

async fn increment(store: &Store, counter: usize) {
    let key = key("counters", "", &counter.to_string());
    loop {
        let current = store.get(&key);
        let (expect, value) = match &current {
            None => (Expect::Absent, 0),
            Some(record) => (Expect::Revision(record.revision), text(record).parse::<usize>().unwrap()),
        };
        match store.commit(put(&key, expect, &(value + 1).to_string())).await {
            Ok(written) => {
                let seen = store.get(&key).unwrap();
                assert!(seen.revision >= written.revision, "a write is visible once acknowledged");
                return;
            }
            Err(CommitError::Conflict { current: now }) => {
                let (now, before) = (now.unwrap().revision, current.map_or(0, |record| record.revision));
                assert!(now > before, "a conflict means that somebody else has written");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

fn total(store: &Store) -> usize {
    let counters = store.list("counters", None, Default::default()).unwrap();
    counters.records.iter().map(|record| text(record).parse::<usize>().unwrap()).sum()
}
