//! Objects as these tests write them.

use std::future::Future;
use std::sync::Arc;

use baton_store::{Action, Body, CommitError, Event, Expect, Key, Record, Store, Write};

const HEAD: &str = r#"{"metadata":{"#;

pub(crate) fn key(resource: &str, namespace: &str, name: &str) -> Key {
    Key::new(resource, namespace, name)
}

/// The body of an object with a name and some text in it.
pub(crate) fn body(name: &str, text: &str) -> Body {
    Body::new(format!(r#"{HEAD}"name":"{name}"}},"text":"{text}"}}"#), HEAD.len())
}

/// What such a body reads as at a revision.
pub(crate) fn json(name: &str, text: &str, revision: u64) -> String {
    format!(r#"{HEAD}"resourceVersion":"{revision}","name":"{name}"}},"text":"{text}"}}"#)
}

/// The text in the JSON of such an object.
pub(crate) fn text(record: &Record) -> String {
    let json = String::from_utf8(record.json().to_vec()).unwrap();
    let (_, rest) = json.split_once(r#""text":""#).unwrap();
    rest.strip_suffix(r#""}"#).unwrap().to_owned()
}

pub(crate) fn put(key: &Key, expect: Expect, text: &str) -> Write {
    Write { key: key.clone(), expect, action: Action::Put(body(&key.name, text)) }
}

pub(crate) fn delete(key: &Key, expect: Expect, text: &str) -> Write {
    Write { key: key.clone(), expect, action: Action::Delete(body(&key.name, text)) }
}

/// Creates the object or replaces it, whatever is there.
pub(crate) async fn set(store: &Store, key: &Key, text: &str) -> Arc<Record> {
    let expect = store.get(key).map_or(Expect::Absent, |record| Expect::Revision(record.revision));
    store.commit(put(key, expect, text)).await.unwrap()
}

pub(crate) async fn remove(store: &Store, key: &Key) -> Arc<Record> {
    let record = store.get(key).unwrap();
    store.commit(delete(key, Expect::Revision(record.revision), "gone")).await.unwrap()
}

/// The revision of the object that was in a write's way; `None` if there was no object.
pub(crate) fn conflict(outcome: Result<Arc<Record>, CommitError>) -> Option<u64> {
    match outcome {
        Err(CommitError::Conflict { current }) => current.map(|record| record.revision),
        other => panic!("expected a conflict, got {other:?}"),
    }
}

/// Revision, change and name of each event.
pub(crate) fn summary(events: &[Arc<Event>]) -> Vec<String> {
    events
        .iter()
        .map(|event| format!("{} {:?} {}", event.revision, event.change, event.record.key.name))
        .collect()
}

/// Runs asynchronous code to its end on this thread.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
