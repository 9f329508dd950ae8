//! Lists: order, namespaces, pages, and earlier revisions.

use baton_store::{Compacted, ListError, Listing, Options, Page, Store};

use crate::object::{key, remove, run, set};

fn names(listing: &Listing) -> Vec<String> {
    listing.records.iter().map(|r| format!("{}/{}@{}", r.key.namespace, r.key.name, r.revision)).collect()
}

fn at(revision: u64) -> Page {
    Page { at: Some(revision), ..Page::default() }
}

fn after(namespace: &str, name: &str) -> Option<(String, String)> {
    Some((namespace.to_owned(), name.to_owned()))
}

/// Pods b/x, a/y, a/x, then a service; revisions 2 to 5.
fn four_objects() -> Store {
    let store = Store::memory(Options::unlimited());
    run(async {
        for (resource, namespace, name) in
            [("pods", "b", "x"), ("pods", "a", "y"), ("pods", "a", "x"), ("services", "a", "s")]
        {
            set(&store, &key(resource, namespace, name), "").await;
        }
    });
    store
}

#[test]
fn a_list_is_ordered_and_carries_the_stores_revision() {
    let store = four_objects();
    let all = store.list("pods", None, Page::default()).unwrap();
    assert_eq!(all.revision, 5);
    assert_eq!(names(&all), ["a/x@4", "a/y@3", "b/x@2"]);
    assert_eq!(all.remaining, 0);
    assert_eq!(names(&store.list("pods", Some("a"), Page::default()).unwrap()), ["a/x@4", "a/y@3"]);
    for (resource, namespace) in [("pods", Some("c")), ("pods", Some("")), ("nodes", None)] {
        let none = store.list(resource, namespace, Page::default()).unwrap();
        assert_eq!((names(&none), none.revision), (vec![], 5), "{resource} {namespace:?}");
    }
}

#[test]
fn a_page_starts_after_its_start_and_says_how_many_remain() {
    let store = four_objects();
    let cases = [
        (None, None, Some(2), vec!["a/x@4", "a/y@3"], 1),
        (None, after("a", "y"), Some(2), vec!["b/x@2"], 0),
        (None, after("a", "x"), Some(1), vec!["a/y@3"], 1),
        (None, after("a", "xx"), None, vec!["a/y@3", "b/x@2"], 0),
        (None, after("b", "x"), None, vec![], 0),
        (None, None, Some(0), vec![], 3),
        (Some("a"), None, Some(1), vec!["a/x@4"], 1),
        (Some("a"), after("a", "x"), Some(1), vec!["a/y@3"], 0),
        (Some("b"), after("a", "y"), None, vec!["b/x@2"], 0),
        (Some("a"), after("b", "x"), None, vec![], 0),
    ];
    for (namespace, after, limit, want, remaining) in cases {
        let page = Page { at: None, after, limit };
        let listing = store.list("pods", namespace, page.clone()).unwrap();
        assert_eq!(
            (names(&listing), listing.remaining),
            (want.iter().map(|s| s.to_string()).collect(), remaining),
            "{namespace:?} {page:?}"
        );
    }
}

#[test]
fn an_earlier_revision_is_listed_as_it_was() {
    let store = four_objects();
    run(async {
        set(&store, &key("pods", "a", "x"), "changed").await;
        remove(&store, &key("pods", "a", "y")).await;
        set(&store, &key("pods", "a", "y"), "back").await;
        remove(&store, &key("pods", "b", "x")).await;
    });
    let cases = [
        (1, vec![]),
        (2, vec!["b/x@2"]),
        (3, vec!["a/y@3", "b/x@2"]),
        (4, vec!["a/x@4", "a/y@3", "b/x@2"]),
        (5, vec!["a/x@4", "a/y@3", "b/x@2"]),
        (6, vec!["a/x@6", "a/y@3", "b/x@2"]),
        (7, vec!["a/x@6", "b/x@2"]),
        (8, vec!["a/x@6", "a/y@8", "b/x@2"]),
        (9, vec!["a/x@6", "a/y@8"]),
    ];
    for (revision, want) in cases {
        let listing = store.list("pods", None, at(revision)).unwrap();
        assert_eq!(
            (names(&listing), listing.revision),
            (want.iter().map(|s| s.to_string()).collect(), revision)
        );
    }
    let page = Page { at: Some(4), after: after("a", "x"), limit: Some(1) };
    let listing = store.list("pods", None, page).unwrap();
    assert_eq!((names(&listing), listing.remaining), (vec!["a/y@3".to_owned()], 1));
}

#[test]
fn revisions_out_of_reach_are_refused_each_in_its_way() {
    let store = four_objects();
    store.compact(3);
    assert_eq!(store.list("pods", None, at(2)).unwrap_err(), ListError::Compacted(Compacted { oldest: 3 }));
    assert_eq!(names(&store.list("pods", None, at(3)).unwrap()), ["a/y@3", "b/x@2"]);
    assert_eq!(store.list("pods", None, at(6)).unwrap_err(), ListError::Future { current: 5 });
    assert_eq!(store.list("nodes", None, at(6)).unwrap_err(), ListError::Future { current: 5 });
}
