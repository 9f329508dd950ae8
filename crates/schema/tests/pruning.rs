//! Unknown fields and defaults.

use baton_schema::{Reader, Schema, apply_defaults, metadata_type_errors, prune, unknown_fields};
use serde_json::{Value, json};
use std::sync::Arc;

fn read(document: Value) -> Arc<Schema> {
    Reader::standalone().read(&document).expect("the schema is readable")
}

fn spec(properties: Value) -> Arc<Schema> {
    read(json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}))
}

#[test]
fn unknown_fields_go_and_are_named() {
    let schema = spec(json!({
        "known": {"type": "string"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "integer"}}}},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "closed": {"type": "object", "properties": {"a": {"type": "integer"}}}
        }},
        "openList": {"x-kubernetes-preserve-unknown-fields": true},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
            "spec": {"type": "object", "properties": {"a": {"type": "integer"}}}
        }},
        "bare": {"type": "object"}
    }));
    let object = json!({
        "apiVersion": "a/b", "kind": "K", "extra": 1,
        "metadata": {"name": "n", "anything": 1, "labels": {"a": "b"}, "ownerReferences": [{"uid": "u", "extra": 1}]},
        "spec": {
            "known": "x", "extra": {"a": 1},
            "list": [{"a": 1}, {"a": 1, "b": 2}],
            "map": {"k.1": {"a": 1, "b": 2}},
            "open": {"extra": {"deep": [{"x": 1}]}, "closed": {"a": 1, "b": 2}},
            "openList": [{"x": 1}, [[{"y": 2}]]],
            "embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"x": 1}, "spec": {"a": 1, "b": 2}, "extra": 1},
            "bare": {"a": 1}
        }
    });
    let expected_paths = [
        "extra",
        "metadata.anything",
        "metadata.ownerReferences[0].extra",
        "spec.bare.a",
        "spec.embedded.extra",
        "spec.embedded.metadata.x",
        "spec.embedded.spec.b",
        "spec.extra",
        "spec.list[1].b",
        "spec.map.k.1.b",
        "spec.open.closed.b",
    ];
    assert_eq!(unknown_fields(&schema, &object), expected_paths);
    let mut pruned = object;
    assert_eq!(prune(&schema, &mut pruned), expected_paths);
    assert_eq!(
        pruned,
        json!({
            "apiVersion": "a/b", "kind": "K",
            "metadata": {"name": "n", "labels": {"a": "b"}, "ownerReferences": [{"uid": "u"}]},
            "spec": {
                "known": "x",
                "list": [{"a": 1}, {"a": 1}],
                "map": {"k.1": {"a": 1}},
                "open": {"extra": {"deep": [{"x": 1}]}, "closed": {"a": 1}},
                "openList": [{"x": 1}, [[{"y": 2}]]],
                "embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"a": 1}},
                "bare": {}
            }
        })
    );
}

#[test]
fn restricting_the_name_does_not_prune_other_metadata() {
    let schema = read(json!({"type": "object", "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}
    }}));
    let object = json!({"metadata": {"name": "n", "labels": {"a": "b"}}});
    assert!(unknown_fields(&schema, &object).is_empty());
}

#[test]
fn metadata_of_the_wrong_type_is_described() {
    for (metadata, expected) in [
        (json!({"name": "n", "labels": {"a": "b"}, "unknown": 5}), None),
        (
            json!({"labels": 5}),
            Some("number into Go struct field ObjectMeta.labels of type map[string]string"),
        ),
        (json!("x"), Some("string into Go value of type v1.ObjectMeta")),
        (json!({"name": 5}), Some("number into Go struct field ObjectMeta.name of type string")),
        (
            json!({"ownerReferences": [{"uid": 5}]}),
            Some("number into Go struct field OwnerReference.ownerReferences.uid of type string"),
        ),
    ] {
        let expected = expected.map(|text| format!("json: cannot unmarshal {text}"));
        assert_eq!(metadata_type_errors(&json!({"kind": "K", "metadata": metadata, "spec": 1})), expected);
    }
}

#[test]
fn defaults_fill_what_is_absent_inside_what_is_there() {
    let schema = spec(json!({
        "plain": {"type": "string", "default": "d"},
        "object": {"type": "object", "properties": {"inner": {"type": "integer", "default": 1}}},
        "defaulted": {"type": "object", "default": {}, "properties": {"inner": {"type": "integer", "default": 2}}},
        "nullable": {"type": "string", "nullable": true, "default": "d"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {
            "a": {"type": "string", "default": "x"}
        }}},
        "none": {"type": "string"}
    }));
    for (before, after) in [
        (json!({}), json!({})),
        (json!({"spec": {}}), json!({"spec": {"plain": "d", "defaulted": {"inner": 2}, "nullable": "d"}})),
        (
            json!({"spec": {"plain": null, "nullable": null, "none": null, "object": {}, "defaulted": {"inner": 5}}}),
            json!({"spec": {"plain": "d", "nullable": null, "object": {"inner": 1}, "defaulted": {"inner": 5}}}),
        ),
        (
            json!({"spec": {"plain": "p", "nullable": "n", "defaulted": {}, "list": [{}, {"a": "y"}], "map": {"k": {}}}}),
            json!({"spec": {
                "plain": "p", "nullable": "n", "defaulted": {"inner": 2}, "list": [{"a": "x"}, {"a": "y"}],
                "map": {"k": {"a": "x"}}
            }}),
        ),
    ] {
        let mut object = before.clone();
        apply_defaults(&schema, &mut object);
        assert_eq!(object, after, "{before}");
    }
}
