//! Writes: what is accepted, what it leaves behind, and what history remembers.

use baton_store::{Change, CommitError, Expect, Options, Store};

use crate::object::{body, conflict, delete, json, key, put, remove, run, set, summary, text};

fn store() -> Store {
    Store::memory(Options::unlimited())
}

#[test]
fn a_new_store_is_empty_at_revision_one() {
    let store = store();
    assert_eq!((store.revision(), store.oldest()), (1, 1));
    assert_eq!(store.count("pods"), 0);
    assert!(store.resources().is_empty());
    assert!(store.history(0).is_empty());
    assert!(store.get(&key("pods", "a", "x")).is_none());
}

#[tokio::test(start_paused = true)]
async fn each_write_takes_the_next_revision_and_puts_it_into_the_object() {
    let store = store();
    let x = key("pods", "a", "x");
    let created = store.commit(put(&x, Expect::Absent, "one")).await.unwrap();
    assert_eq!((created.revision, created.created), (2, 2));
    assert_eq!(created.json(), json("x", "one", 2));

    let other = set(&store, &key("nodes", "", "n"), "node").await;
    assert_eq!(other.revision, 3);

    let replaced = store.commit(put(&x, Expect::Revision(2), "two")).await.unwrap();
    assert_eq!((replaced.revision, replaced.created), (4, 2));
    assert_eq!(store.get(&x).unwrap().json(), json("x", "two", 4));

    let deleted = store.commit(delete(&x, Expect::Revision(4), "last words")).await.unwrap();
    assert_eq!((deleted.revision, deleted.created), (5, 2));
    assert_eq!(deleted.json(), json("x", "last words", 5));
    assert!(store.get(&x).is_none());
    assert_eq!(store.revision(), 5);

    let again = store.commit(put(&x, Expect::Absent, "new")).await.unwrap();
    assert_eq!((again.revision, again.created), (6, 6));
}

#[test]
fn a_write_whose_expectation_fails_changes_nothing_and_shows_what_is_there() {
    let (x, absent) = (key("pods", "a", "x"), key("pods", "a", "y"));
    let cases = [
        ("create what exists", put(&x, Expect::Absent, ""), Some(3)),
        ("replace an older state", put(&x, Expect::Revision(2), ""), Some(3)),
        ("replace a state to come", put(&x, Expect::Revision(4), ""), Some(3)),
        ("replace what is absent", put(&absent, Expect::Revision(3), ""), None),
        ("replace revision zero of what is absent", put(&absent, Expect::Revision(0), ""), None),
        ("delete an older state", delete(&x, Expect::Revision(2), ""), Some(3)),
        ("delete what should be absent", delete(&x, Expect::Absent, ""), Some(3)),
        ("delete what is absent", delete(&absent, Expect::Absent, ""), None),
        ("delete a revision of what is absent", delete(&absent, Expect::Revision(3), ""), None),
    ];
    let store = store();
    run(async {
        set(&store, &x, "one").await;
        set(&store, &x, "two").await;
        for (case, write, want) in cases {
            assert_eq!(conflict(store.commit(write).await), want, "{case}");
            assert_eq!(store.revision(), 3, "{case}");
            assert_eq!(store.get(&x).unwrap().json(), json("x", "two", 3), "{case}");
            assert_eq!(store.history(0).len(), 2, "{case}");
        }
    });
}

#[test]
fn the_same_name_elsewhere_is_another_object() {
    let keys =
        [key("pods", "a", "x"), key("pods", "b", "x"), key("pods", "", "x"), key("services", "a", "x")];
    let store = store();
    run(async {
        for (index, key) in keys.iter().enumerate() {
            store.commit(put(key, Expect::Absent, &index.to_string())).await.unwrap();
        }
    });
    for (index, key) in keys.iter().enumerate() {
        assert_eq!(text(&store.get(key).unwrap()), index.to_string(), "{key:?}");
    }
    assert_eq!((store.count("pods"), store.count("services")), (3, 1));
}

#[test]
fn resources_are_those_with_objects() {
    let store = store();
    run(async {
        set(&store, &key("pods", "a", "x"), "").await;
        set(&store, &key("deployments.apps", "a", "x"), "").await;
        set(&store, &key("nodes", "", "n"), "").await;
        remove(&store, &key("nodes", "", "n")).await;
    });
    assert_eq!(
        store.resources().iter().map(|name| &**name).collect::<Vec<_>>(),
        ["deployments.apps", "pods"]
    );
}

#[test]
fn history_tells_what_each_write_did_and_what_was_there_before() {
    let store = store();
    let x = key("pods", "a", "x");
    run(async {
        set(&store, &x, "one").await;
        set(&store, &x, "two").await;
        remove(&store, &x).await;
    });
    let events = store.history(0);
    assert_eq!(summary(&events), ["2 Added x", "3 Modified x", "4 Deleted x"]);
    let texts: Vec<_> =
        events.iter().map(|e| (e.previous.as_ref().map(|record| text(record)), text(&e.record))).collect();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(texts, [(None, "one".into()), (some("one"), "two".into()), (some("two"), "gone".into())]);
    assert_eq!(events[2].record.revision, 4);
    assert_eq!(summary(&store.history(3)), ["4 Deleted x"]);
    assert!(store.history(4).is_empty());
}

#[test]
fn history_is_bounded_by_events_and_by_bytes_but_keeps_the_newest() {
    let size = body("x", "0123456789").clone();
    let record_bytes = {
        let store = store();
        let record = run(store.commit(baton_store::Write {
            key: key("pods", "a", "x"),
            expect: Expect::Absent,
            action: baton_store::Action::Put(size),
        }));
        record.unwrap().size()
    };
    let cases = [
        ("by events", Options { history_events: 3, history_bytes: usize::MAX, ..Options::default() }, 3),
        (
            "by bytes",
            Options { history_events: usize::MAX, history_bytes: 2 * record_bytes, ..Options::default() },
            2,
        ),
        ("no events", Options { history_events: 0, history_bytes: usize::MAX, ..Options::default() }, 1),
        ("no bytes", Options { history_events: usize::MAX, history_bytes: 0, ..Options::default() }, 1),
    ];
    for (case, options, kept) in cases {
        let store = Store::memory(options);
        run(async {
            for _ in 0..10 {
                set(&store, &key("pods", "a", "x"), "0123456789").await;
            }
        });
        assert_eq!(store.history(0).len(), kept, "{case}");
        assert_eq!(store.oldest(), 11 - kept as u64, "{case}");
        assert_eq!(store.stats().history_bytes, kept * record_bytes, "{case}");
        assert_eq!(store.stats().object_bytes, record_bytes, "{case}");
    }
}

#[test]
fn compaction_forgets_events_but_no_object() {
    let store = store();
    let x = key("pods", "a", "x");
    run(async {
        for text in ["one", "two", "three"] {
            set(&store, &x, text).await;
        }
    });
    store.compact(3);
    assert_eq!((store.oldest(), store.revision()), (3, 4));
    assert_eq!(summary(&store.history(0)), ["4 Modified x"]);
    store.compact(2);
    assert_eq!(store.oldest(), 3);
    store.compact(u64::MAX);
    assert_eq!((store.oldest(), store.revision()), (4, 4));
    assert!(store.history(0).is_empty());
    assert_eq!(text(&store.get(&x).unwrap()), "three");
    assert_eq!(store.stats().history_bytes, 0);
}

#[test]
fn statistics_follow_what_is_held() {
    let store = store();
    let (x, y) = (key("pods", "a", "x"), key("pods", "a", "y"));
    run(async {
        let first = set(&store, &x, "long text that will be superseded").await.size();
        let second = set(&store, &x, "short").await.size();
        let other = set(&store, &y, "other").await.size();
        let _watch = store.watch("pods", None, 1).unwrap();
        let stats = store.stats();
        assert_eq!((stats.objects, stats.object_bytes), (2, second + other));
        assert_eq!((stats.history_events, stats.history_bytes, stats.watches), (3, first, 1));
        let last = remove(&store, &y).await.size();
        let stats = store.stats();
        assert_eq!((stats.objects, stats.object_bytes), (1, second));
        assert_eq!((stats.history_events, stats.history_bytes), (4, first + other + last));
    });
    assert_eq!(store.stats().watches, 0);
}

#[test]
fn a_closed_store_can_be_read_but_not_written() {
    let store = store();
    let x = key("pods", "a", "x");
    run(async {
        set(&store, &x, "one").await;
        store.close();
        let outcome = store.commit(put(&x, Expect::Revision(2), "two")).await;
        assert!(matches!(outcome, Err(CommitError::Closed)), "{outcome:?}");
    });
    assert_eq!(text(&store.get(&x).unwrap()), "one");
    assert_eq!(store.history(0)[0].change, Change::Added);
}

#[test]
fn ten_thousand_objects_of_5_kb_are_held_in_half_of_that() {
    let store = Store::memory(Options::default());
    run(async {
        for index in 0..10_000 {
            let key = key("applications.argoproj.io", "argocd", &format!("app-{index}"));
            let written = store.commit(put(&key, Expect::Absent, &manifest(index))).await.unwrap();
            assert!(written.size() > 4_500, "{}", written.size());
        }
    });
    let stats = store.stats();
    assert!(stats.object_bytes < 25_000_000, "{stats:?}");
    let listing = store.list("applications.argoproj.io", None, Default::default()).unwrap();
    assert!(listing.records.iter().all(|record| text(record).starts_with("resource")));
}

/// Text that repeats about as much as an Application's status does.
fn manifest(index: usize) -> String {
    let mut random = crate::random::Random::new(index as u64);
    let mut text = String::new();
    while text.len() < 4_800 {
        text += &format!(
            "resource: {{group: apps, kind: Deployment, namespace: team-{}, name: web-{:08x}, \
             image: registry.example/{:x}@sha256:{:016x}{:016x}, status: Synced, health: Healthy}} ",
            random.below(40),
            random.next() as u32,
            random.below(99),
            random.next(),
            random.next(),
        );
    }
    text
}
