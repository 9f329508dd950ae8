//! What a verdict about a live object depends on.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Metadata that changes without changing any verdict.
const PASSING: [&str; 2] = ["generation", "resourceVersion"];

/// Equal for states of an object about which every verdict is the same.
///
/// Everything counts but the status and who owns it, the versions of the object and the times in `managedFields`. A rule
/// that looks at the status to ignore something else is not followed when only the status changes.
pub fn fingerprint(live: &Value) -> [u8; 32] {
    let mut hash = Sha256::new();
    let Some(fields) = live.as_object() else {
        feed(&mut hash, live, &[]);
        return hash.finalize().into();
    };
    for (name, value) in fields.iter().filter(|(name, _)| *name != "status") {
        feed_text(&mut hash, name);
        match (name.as_str(), value) {
            ("metadata", Value::Object(metadata)) => {
                for (name, value) in metadata.iter().filter(|(name, _)| !PASSING.contains(&name.as_str())) {
                    feed_text(&mut hash, name);
                    match (name.as_str(), value) {
                        ("managedFields", Value::Array(entries)) => feed_entries(&mut hash, entries),
                        _ => feed(&mut hash, value, &[]),
                    }
                }
            }
            _ => feed(&mut hash, value, &[]),
        }
    }
    hash.finalize().into()
}

fn feed_entries(hash: &mut Sha256, entries: &[Value]) {
    for entry in entries.iter().filter(|entry| entry["subresource"] != "status") {
        feed(hash, entry, &["time"]);
    }
}

/// Feeds a value so that no two feed alike: each with its type, and with its length where it has one.
fn feed(hash: &mut Sha256, value: &Value, left_out: &[&str]) {
    match value {
        Value::Null => hash.update(b"z"),
        Value::Bool(true) => hash.update(b"t"),
        Value::Bool(false) => hash.update(b"f"),
        Value::Number(number) => {
            hash.update(b"n");
            feed_text(hash, &number.to_string());
        }
        Value::String(text) => {
            hash.update(b"s");
            feed_text(hash, text);
        }
        Value::Array(items) => {
            hash.update(b"[");
            items.iter().for_each(|item| feed(hash, item, &[]));
            hash.update(b"]");
        }
        Value::Object(fields) => {
            hash.update(b"{");
            for (name, value) in fields.iter().filter(|(name, _)| !left_out.contains(&name.as_str())) {
                feed_text(hash, name);
                feed(hash, value, &[]);
            }
            hash.update(b"}");
        }
    }
}

fn feed_text(hash: &mut Sha256, text: &str) {
    hash.update(text.len().to_le_bytes());
    hash.update(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn live() -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}, "metadata": {
            "name": "x", "resourceVersion": "7", "generation": 2, "managedFields": [
                {"manager": "m", "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {}}},
                {"manager": "m", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
            ]}, "status": {"phase": "Old"}})
    }

    #[test]
    fn what_no_verdict_depends_on_leaves_it_the_same() {
        let mut other = live();
        other["status"] = json!({"phase": "New"});
        other["metadata"]["resourceVersion"] = json!("8");
        other["metadata"]["generation"] = json!(3);
        other["metadata"]["managedFields"][0]["time"] = json!("2027-01-01T00:00:00Z");
        other["metadata"]["managedFields"][1]["manager"] = json!("another");
        assert_eq!(fingerprint(&other), fingerprint(&live()));
    }

    #[test]
    fn everything_else_changes_it() {
        for (place, value) in [
            ("/data/a", json!("2")),
            ("/data/a", json!(1)),
            ("/data", json!({"a": "1", "b": ""})),
            ("/metadata/name", json!("y")),
            ("/metadata/managedFields/0/manager", json!("argocd-controller")),
            ("/metadata/managedFields/0/fieldsV1", json!({"f:data": {"f:a": {}}})),
        ] {
            let mut other = live();
            *other.pointer_mut(place).expect("a place") = value;
            assert_ne!(fingerprint(&other), fingerprint(&live()), "{place}");
        }
        assert_ne!(fingerprint(&json!([["a"], []])), fingerprint(&json!([[], ["a"]])));
    }
}
