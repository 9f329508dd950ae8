//! Stores on disk: reopening, exclusive use, and damaged files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use baton_store::{Compacted, Expect, ListError, OpenError, Options, Page, Store};

use crate::object::{json, key, put, remove, run, set, text};
use crate::random::Random;

fn open(dir: &Path) -> Store {
    Store::open(dir, Options::default()).unwrap()
}

fn file(dir: &Path) -> PathBuf {
    dir.join("objects.redb")
}

/// Every object of some resource, as (name, JSON).
fn contents(store: &Store) -> Vec<(String, String)> {
    let listing = store.list("pods", None, Page::default()).unwrap();
    let json = |bytes: bytes::Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    listing.records.iter().map(|record| (record.key.name.to_string(), json(record.json()))).collect()
}

#[test]
fn a_reopened_store_has_its_objects_and_goes_on_counting() {
    let dir = tempfile::tempdir().unwrap();
    let (x, node) = (key("pods", "a", "x"), key("nodes", "", "n"));
    let long = "large enough to be compressed ".repeat(100);
    run(async {
        let store = open(dir.path());
        assert_eq!((store.revision(), store.oldest()), (1, 1));
        set(&store, &x, "one").await;
        set(&store, &x, &long).await;
        set(&store, &node, "node").await;
        set(&store, &key("pods", "a", "y"), "").await;
        remove(&store, &key("pods", "a", "y")).await;
        assert_eq!(store.history(0).len(), 5);
    });
    let store = open(dir.path());
    assert_eq!((store.revision(), store.oldest()), (6, 6), "a deletion's revision is not used again");
    let record = store.get(&x).unwrap();
    assert_eq!((record.revision, record.created), (3, 2));
    assert_eq!(record.json(), json("x", &long, 3));
    assert_eq!(text(&store.get(&node).unwrap()), "node");
    assert_eq!((store.count("pods"), store.stats().objects), (1, 2));

    assert_eq!(store.watch("pods", None, 5).err(), Some(Compacted { oldest: 6 }));
    let earlier = store.list("pods", None, Page { at: Some(5), ..Page::default() });
    assert_eq!(earlier.unwrap_err(), ListError::Compacted(Compacted { oldest: 6 }));
    let mut watch = store.watch("pods", None, 6).unwrap();
    assert_eq!(run(set(&store, &x, "two")).revision, 7);
    assert_eq!(watch.try_next().unwrap().unwrap().previous.as_ref().unwrap().revision, 3);
}

#[test]
fn a_store_in_use_is_refused_until_it_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    let error = Store::open(dir.path(), Options::default()).unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error:?}");
    let message = error.to_string();
    assert!(message.contains(&*dir.path().to_string_lossy()) && message.contains("in use"), "{message}");
    first.close();
    open(dir.path());
}

#[test]
fn a_closed_store_is_free_at_once_even_while_processes_are_started() {
    let dir = tempfile::tempdir().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let mut command = Command::new(std::env::current_exe().unwrap());
                assert!(command.arg("--help").stdout(Stdio::null()).status().unwrap().success());
            }
        });
        let outcomes: Vec<_> =
            (0..50).map(|_| Store::open(dir.path(), Options::default()).map(drop)).collect();
        done.store(true, Ordering::Relaxed);
        let refused: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
        assert!(refused.is_empty(), "{refused:?}");
    });
}

#[test]
fn closing_completes_the_writes_under_way() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let acknowledged: Vec<_> = run(async {
        let writes: Vec<_> = (0..50)
            .map(|index| {
                let store = store.clone();
                tokio::task::spawn(async move {
                    let key = key("pods", "a", &index.to_string());
                    store.commit(put(&key, Expect::Absent, "")).await.map(|record| record.revision)
                })
            })
            .collect();
        tokio::task::yield_now().await;
        store.close();
        let mut outcomes = Vec::new();
        for write in writes {
            outcomes.extend(write.await.unwrap());
        }
        outcomes
    });
    assert_eq!(acknowledged.len(), 50, "all were queued before the store was closed");
    assert_eq!(open(dir.path()).revision(), 51);
}

#[test]
fn an_unfinished_creation_is_started_over() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("objects.redb.new"), b"half a file").unwrap();
    assert_eq!(open(dir.path()).revision(), 1);
}

#[test]
fn files_that_are_no_store_are_refused_by_name() {
    let good = tempfile::tempdir().unwrap();
    run(async {
        let store = open(good.path());
        for index in 0..40 {
            set(&store, &key("pods", "a", &index.to_string()), &"text".repeat(200)).await;
        }
    });
    let whole = fs::read(file(good.path())).unwrap();
    let mut cases = vec![("empty".to_owned(), vec![]), ("text".to_owned(), b"not a store".repeat(1000))];
    cases.extend(
        [1, 100, 4096, 10_000, whole.len() / 2].map(|len| (format!("cut to {len}"), whole[..len].to_vec())),
    );
    for (case, bytes) in cases {
        let dir = tempfile::tempdir().unwrap();
        fs::write(file(dir.path()), bytes).unwrap();
        let error = Store::open(dir.path(), Options::default()).unwrap_err();
        assert!(matches!(error, OpenError::Corrupt { .. }), "{case}: {error:?}");
        assert!(error.to_string().contains("objects.redb is damaged"), "{case}: {error}");
    }
}

#[test]
fn a_path_that_cannot_be_a_directory_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("occupied");
    fs::write(&path, "").unwrap();
    let error = Store::open(&path, Options::default()).unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }), "{error:?}");
    assert!(error.to_string().contains("occupied"), "{error}");
}

#[test]
fn a_damaged_byte_is_found_or_does_not_matter() {
    let good = tempfile::tempdir().unwrap();
    let want = run(async {
        let store = open(good.path());
        for index in 0..40 {
            set(&store, &key("pods", "a", &index.to_string()), &"text".repeat(index * 9)).await;
        }
        contents(&store)
    });
    let whole = fs::read(file(good.path())).unwrap();
    let seed = 7;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut found = 0;
    for round in 0..150 {
        let dir = tempfile::tempdir().unwrap();
        let mut bytes = whole.clone();
        // Half of the time in the header and the first pages, where damage has the strangest effects.
        let reach = if round % 2 == 0 { whole.len() } else { 16_384 };
        let place = random.below(reach as u64) as usize;
        bytes[place] ^= 1 << random.below(8);
        fs::write(file(dir.path()), bytes).unwrap();
        match Store::open(dir.path(), Options::default()) {
            Ok(store) => assert_eq!((contents(&store), store.revision()), (want.clone(), 41), "byte {place}"),
            Err(error) => {
                found += 1;
                let again = Store::open(dir.path(), Options::default());
                assert!(again.is_err(), "byte {place}: the second opening must not pass over the damage");
                assert!(error.to_string().contains("objects.redb"), "byte {place}: {error}");
            }
        }
    }
    assert!(found > 0, "some damage is in live pages");
}
