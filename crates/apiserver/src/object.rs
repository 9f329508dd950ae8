//! Reading and writing the parts of an object that every kind has.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use baton_schema::{Additional, Schema};
use baton_store::{Body, Record, Store};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The finalizer that makes the garbage collector delete dependents first.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer that makes the garbage collector release dependents.
pub(crate) const ORPHAN: &str = "orphan";

/// `metadata`, made if absent.
pub(crate) fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    metadata.as_object_mut().expect("made an object just above")
}

/// A field of `metadata`, or null.
pub(crate) fn meta<'a>(object: &'a Value, field: &str) -> &'a Value {
    &object["metadata"][field]
}

/// A text field of `metadata`; empty if absent.
pub(crate) fn meta_text<'a>(object: &'a Value, field: &str) -> &'a str {
    meta(object, field).as_str().unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    meta_text(object, "name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    meta_text(object, "namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    meta_text(object, "uid")
}

/// Sets a field of `metadata`, or removes it where `value` is null.
pub(crate) fn set_meta(object: &mut Value, field: &str, value: impl Into<Value>) {
    match value.into() {
        Value::Null => {
            meta_mut(object).remove(field);
        }
        value => {
            meta_mut(object).insert(field.to_owned(), value);
        }
    }
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    meta(object, "finalizers").as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    finalizers(object).contains(&finalizer)
}

/// Adds or removes one finalizer.
pub(crate) fn set_finalizer(object: &mut Value, finalizer: &str, present: bool) {
    let mut all: Vec<String> =
        finalizers(object).into_iter().filter(|name| *name != finalizer).map(str::to_owned).collect();
    if present {
        all.push(finalizer.to_owned());
    }
    let value = if all.is_empty() { Value::Null } else { all.into() };
    set_meta(object, "finalizers", value);
}

pub(crate) fn is_terminating(object: &Value) -> bool {
    !meta(object, "deletionTimestamp").is_null()
}

/// A whole-number field of `metadata`.
pub(crate) fn meta_number(object: &Value, field: &str) -> Option<i64> {
    meta(object, field).as_i64()
}

/// The stored object as a value, with its resourceVersion.
pub(crate) fn read(record: &Record) -> Value {
    let known = RECENT.with_borrow(|recent| recent.find(record.body()));
    known.map_or_else(|| parse(record), |known| Value::clone(&known))
}

/// The same, to be looked at and not changed: the server's own controllers look at each object several times, one after
/// the other.
pub(crate) fn view(record: &Record) -> Arc<Value> {
    let known = RECENT.with_borrow(|recent| recent.find(record.body()));
    known.unwrap_or_else(|| {
        let object = Arc::new(parse(record));
        RECENT.with_borrow_mut(|recent| recent.keep(record, &object));
        object
    })
}

/// Keeps an object as it was just stored: who is told of it next need not read it.
pub(crate) fn remember(record: &Record, mut object: Value) {
    set_meta(&mut object, "resourceVersion", record.revision.to_string());
    RECENT.with_borrow_mut(|recent| recent.keep(record, &Arc::new(object)));
}

fn parse(record: &Record) -> Value {
    serde_json::from_slice(&record.json()).expect("the store holds only JSON that this server wrote")
}

thread_local! {
    static RECENT: RefCell<Recent> = const { RefCell::new(Recent(VecDeque::new())) };
}

/// How many objects are kept as values.
const KEPT: usize = 32;
/// Larger objects are not.
const KEPT_SIZE: usize = 32 << 10;

/// The objects that were looked at last.
struct Recent(VecDeque<(Body, Arc<Value>)>);

impl Recent {
    fn find(&self, body: &Body) -> Option<Arc<Value>> {
        let found = self.0.iter().find(|(known, _)| known.is(body));
        found.map(|(_, object)| object.clone())
    }

    fn keep(&mut self, record: &Record, object: &Arc<Value>) {
        if record.size() <= KEPT_SIZE {
            self.0.truncate(KEPT - 1);
            self.0.push_front((record.body().clone(), object.clone()));
        }
    }
}

/// The labels of an object in JSON, without building the rest of it.
pub(crate) fn read_labels(json: &[u8]) -> BTreeMap<String, String> {
    #[derive(Deserialize)]
    struct Labelled {
        metadata: Labels,
    }
    #[derive(Deserialize)]
    struct Labels {
        #[serde(default)]
        labels: Option<BTreeMap<String, String>>,
    }
    let labelled = serde_json::from_slice::<Labelled>(json);
    labelled.ok().and_then(|labelled| labelled.metadata.labels).unwrap_or_default()
}

/// The object as the store keeps it. `metadata` must have fields besides resourceVersion; every stored object has a
/// name and a uid.
pub(crate) fn to_body(store: &Store, object: &Value) -> Body {
    let mut json = Vec::with_capacity(512);
    let mut splice_at = 0;
    json.extend_from_slice(type_prefix(&object["apiVersion"], &object["kind"]).as_bytes());
    let typed = |key: &str| matches!(key, "apiVersion" | "kind");
    let mut first = true;
    for (key, value) in object.as_object().into_iter().flatten().filter(|(key, _)| !typed(key)) {
        if !first {
            json.push(b',');
        }
        first = false;
        write_json(&mut json, key);
        json.push(b':');
        if key == "metadata" {
            json.push(b'{');
            splice_at = json.len();
            let mut first = true;
            for (field, value) in value.as_object().into_iter().flatten() {
                if field == "resourceVersion" {
                    continue;
                }
                if !first {
                    json.push(b',');
                }
                first = false;
                write_json(&mut json, field);
                json.push(b':');
                write_json(&mut json, value);
            }
            json.push(b'}');
        } else {
            write_json(&mut json, value);
        }
    }
    json.push(b'}');
    store.body(&json, splice_at)
}

/// How every stored object begins, so that a list can leave the type of its items out without reading them.
pub(crate) fn type_prefix(api_version: &Value, kind: &Value) -> String {
    format!("{{\"apiVersion\":{api_version},\"kind\":{kind},")
}

fn write_json(out: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    serde_json::to_writer(out, value).expect("writing a JSON value to memory cannot fail");
}

/// Whether two versions differ in nothing but resourceVersion.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return a == b };
    fn without_revision(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
        value.as_object().into_iter().flatten().filter(|(field, _)| *field != "resourceVersion")
    }
    a.len() == b.len()
        && a.iter().all(|(field, value)| match b.get(field) {
            Some(other) if field == "metadata" => without_revision(value).eq(without_revision(other)),
            other => other == Some(value),
        })
}

/// Drops what a Go struct would not write back: nulls, and lists and maps that are empty. An empty struct
/// (`emptyDir: {}`) says something and stays, and so does everything in opaque parts.
pub(crate) fn drop_empty(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if schema.preserve_unknown && schema.properties.is_empty() {
                return;
            }
            for (name, field) in fields.iter_mut() {
                if let Some(child) = schema.properties.get(name) {
                    drop_empty(child, field);
                } else if let Additional::Typed(child) = &schema.additional {
                    drop_empty(child, field);
                }
            }
            fields.retain(|name, field| match schema.properties.get(name) {
                _ if field.is_null() => false,
                Some(child) => !is_empty_collection(child, field),
                None => true,
            });
        }
        Value::Array(items) => {
            if let Some(child) = &schema.items {
                items.iter_mut().for_each(|item| drop_empty(child, item));
            }
        }
        _ => {}
    }
}

fn is_empty_collection(schema: &Schema, value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty() && matches!(schema.additional, Additional::Typed(_)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_store::{Action, Expect, Key, Options, Write};
    use serde_json::json;

    #[tokio::test]
    async fn what_is_remembered_is_what_would_be_read() {
        let store = Store::memory(Options::default());
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1", "b": null, "c": [1, 2.5, {"d": true}]},
            "metadata": {"name": "one", "uid": "u", "resourceVersion": "7"},
        });
        let mut before = None;
        for kept in [true, false] {
            let write = Write {
                key: Key::new("configmaps", "", "one"),
                expect: before.map_or(Expect::Absent, Expect::Revision),
                action: Action::Put(to_body(&store, &object)),
            };
            let record = store.commit(write).await.expect("a write");
            before = Some(record.revision);
            if kept {
                remember(&record, object.clone());
            }
            let (seen, read) = (view(&record), read(&record));
            assert_eq!((&*seen, &read), (&parse(&record), &parse(&record)));
            assert_eq!(read["metadata"]["resourceVersion"], record.revision.to_string());
            assert!(Arc::ptr_eq(&seen, &view(&record)), "looked at twice, read once");
        }
    }

    #[test]
    fn equality_ignores_the_revision_only() {
        let a = json!({"metadata": {"name": "a", "resourceVersion": "1"}, "data": {"x": "1"}});
        let b = json!({"metadata": {"name": "a", "resourceVersion": "2"}, "data": {"x": "1"}});
        let c = json!({"metadata": {"name": "a", "resourceVersion": "2"}, "data": {"x": "2"}});
        assert!(same(&a, &b));
        assert!(!same(&b, &c));
        assert!(!same(&a, &json!({"metadata": {"name": "a"}})));
    }

    #[test]
    fn finalizers_are_added_once_and_removed_whole() {
        let mut object = json!({"metadata": {"finalizers": ["a"]}});
        set_finalizer(&mut object, "b", true);
        set_finalizer(&mut object, "b", true);
        assert_eq!(finalizers(&object), ["a", "b"]);
        set_finalizer(&mut object, "a", false);
        set_finalizer(&mut object, "b", false);
        assert_eq!(object, json!({"metadata": {}}));
    }
}
