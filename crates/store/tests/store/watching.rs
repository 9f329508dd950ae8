//! Watches: what they deliver, when they wake, and when they give up.

use std::sync::Arc;
use std::time::Duration;

use baton_store::{Compacted, Event, Options, Store, Watch};
use bytes::Bytes;

use crate::object::{key, remove, run, set, summary};

fn drain(watch: &mut Watch) -> Vec<String> {
    let events: Vec<Arc<Event>> = std::iter::from_fn(|| watch.try_next().unwrap()).collect();
    summary(&events)
}

/// Pod a/x, node n, pod b/y, pod a/x again, pod b/y deleted; revisions 2 to 6.
async fn busy_store(options: Options) -> Store {
    let store = Store::memory(options);
    set(&store, &key("pods", "a", "x"), "").await;
    set(&store, &key("nodes", "", "n"), "").await;
    set(&store, &key("pods", "b", "y"), "").await;
    set(&store, &key("pods", "a", "x"), "").await;
    remove(&store, &key("pods", "b", "y")).await;
    store
}

#[test]
fn a_watch_delivers_what_follows_its_start_and_matches_its_scope() {
    let cases = [
        ("pods", None, 1, vec!["2 Added x", "4 Added y", "5 Modified x", "6 Deleted y"]),
        ("pods", None, 4, vec!["5 Modified x", "6 Deleted y"]),
        ("pods", Some("a"), 1, vec!["2 Added x", "5 Modified x"]),
        ("pods", Some("c"), 1, vec![]),
        ("nodes", None, 1, vec!["3 Added n"]),
        ("nodes", Some(""), 1, vec!["3 Added n"]),
        ("services", None, 1, vec![]),
        ("", None, 3, vec!["4 Added y", "5 Modified x", "6 Deleted y"]),
        ("", Some("b"), 1, vec!["4 Added y", "6 Deleted y"]),
        ("pods", None, 6, vec![]),
    ];
    let store = run(busy_store(Options::unlimited()));
    for (resource, namespace, from, want) in cases {
        let mut watch = store.watch(resource, namespace, from).unwrap();
        assert_eq!(drain(&mut watch), want, "{resource} {namespace:?} from {from}");
        assert_eq!(watch.position(), 6, "{resource} {namespace:?} from {from}");
    }
}

#[test]
fn the_position_is_where_a_new_watch_would_continue() {
    let store = run(busy_store(Options::unlimited()));
    let mut watch = store.watch("pods", Some("b"), 1).unwrap();
    let mut positions = vec![watch.position()];
    while watch.try_next().unwrap().is_some() {
        positions.push(watch.position());
    }
    assert_eq!(positions, [3, 5, 6]);
    run(set(&store, &key("nodes", "", "n"), ""));
    assert_eq!(watch.position(), 7);
    run(set(&store, &key("pods", "b", "z"), ""));
    assert_eq!(watch.position(), 7);
}

#[test]
fn a_watch_from_a_revision_to_come_delivers_only_what_follows_it() {
    let store = run(busy_store(Options::unlimited()));
    let mut watch = store.watch("pods", None, 7).unwrap();
    assert_eq!(watch.position(), 7);
    run(async {
        set(&store, &key("pods", "a", "x"), "").await;
        set(&store, &key("pods", "a", "z"), "").await;
    });
    assert_eq!(drain(&mut watch), ["8 Added z"]);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_watch_wakes_for_its_resource_only() {
    let store = busy_store(Options::default()).await;
    let mut pods = store.watch("pods", None, store.revision()).unwrap();
    let mut all = store.watch("", None, store.revision()).unwrap();
    let quiet = Duration::from_secs(3600);
    assert!(tokio::time::timeout(quiet, pods.next()).await.is_err());

    let writer = store.clone();
    let write = tokio::spawn(async move {
        set(&writer, &key("nodes", "", "n"), "").await;
    });
    assert_eq!(summary(&[all.next().await.unwrap()]), ["7 Modified n"]);
    write.await.unwrap();
    assert!(tokio::time::timeout(quiet, pods.next()).await.is_err());

    let writer = store.clone();
    tokio::spawn(async move {
        set(&writer, &key("pods", "a", "z"), "").await;
        set(&writer, &key("pods", "a", "z"), "").await;
    });
    assert_eq!(
        summary(&[pods.next().await.unwrap(), pods.next().await.unwrap()]),
        ["8 Added z", "9 Modified z"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_loses_nothing() {
    let store = busy_store(Options::default()).await;
    let mut watch = store.watch("pods", None, store.revision()).unwrap();
    for round in 0..10 {
        assert!(tokio::time::timeout(Duration::from_secs(1), watch.next()).await.is_err());
        set(&store, &key("pods", "a", "x"), "").await;
        assert_eq!(watch.next().await.unwrap().revision, 7 + round);
    }
}

#[test]
fn a_watch_cannot_start_before_what_is_kept() {
    let store = run(busy_store(Options::unlimited()));
    store.compact(4);
    for resource in ["pods", "nodes", "services", ""] {
        assert_eq!(store.watch(resource, None, 3).err(), Some(Compacted { oldest: 4 }), "{resource}");
        assert!(store.watch(resource, None, 4).is_ok(), "{resource}");
    }
    assert_eq!(store.stats().watches, 0);
}

#[tokio::test]
async fn a_watch_that_falls_behind_is_told_and_one_that_missed_nothing_is_not() {
    let options = Options { history_events: 3, ..Options::default() };
    let store = Store::memory(options);
    let mut slow = store.watch("pods", None, 1).unwrap();
    let mut idle = store.watch("nodes", None, 1).unwrap();
    set(&store, &key("pods", "a", "x"), "").await;
    assert_eq!(slow.next().await.unwrap().revision, 2);
    for _ in 0..4 {
        set(&store, &key("pods", "a", "x"), "").await;
    }
    assert_eq!(slow.position(), 2);
    for _ in 0..2 {
        assert_eq!(slow.try_next().unwrap_err(), Compacted { oldest: 3 });
        assert_eq!(slow.next().await.unwrap_err(), Compacted { oldest: 3 });
    }
    assert_eq!(idle.position(), 6);
    set(&store, &key("nodes", "", "n"), "").await;
    assert_eq!(idle.next().await.unwrap().revision, 7);
}

#[test]
fn a_hundred_watches_share_one_encoded_frame_while_the_event_is_new() {
    let store = Store::memory(Options::unlimited());
    let mut encoded = 0;
    let mut read = |store: &Store| {
        let event = store.watch("pods", None, 1).unwrap().try_next().unwrap().unwrap();
        event.frame.get_or_init(|| {
            encoded += 1;
            Bytes::from_static(b"frame")
        })
    };
    run(async {
        set(&store, &key("pods", "a", "x"), "").await;
        for _ in 0..100 {
            assert_eq!(read(&store), "frame");
        }
        for _ in 0..2000 {
            set(&store, &key("nodes", "", "n"), "").await;
        }
        read(&store);
        read(&store);
    });
    assert_eq!(encoded, 3, "once while new, then on each reading");
}
