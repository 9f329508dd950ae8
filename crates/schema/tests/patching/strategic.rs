//! Strategic merge patches.

use std::sync::Arc;

use baton_schema::patch::PatchError;
use baton_schema::strategic::merge;
use baton_schema::{Reader, Schema};
use proptest::prelude::*;
use serde_json::{Value, json};

fn schema() -> Arc<Schema> {
    let env = json!({ "type": "object", "properties": { "name": { "type": "string" }, "value": { "type": "string" } } });
    let container = json!({ "type": "object", "properties": {
        "name": { "type": "string" },
        "image": { "type": "string" },
        "args": { "type": "array", "items": { "type": "string" } },
        "env": {
            "type": "array", "items": env,
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"
        }
    } });
    let document = json!({ "type": "object", "properties": {
        "containers": {
            "type": "array", "items": container,
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"
        },
        "finalizers": {
            "type": "array", "items": { "type": "string" }, "x-kubernetes-patch-strategy": "merge"
        },
        "tolerations": { "type": "array", "items": { "type": "object" } },
        "strategy": {
            "type": "object",
            "properties": { "type": { "type": "string" }, "rolling": { "type": "object" } },
            "x-kubernetes-patch-strategy": "retainKeys"
        },
        "labels": { "type": "object", "additionalProperties": { "type": "string" } },
        "broken": { "type": "array", "items": { "type": "object" }, "x-kubernetes-patch-strategy": "merge" }
    } });
    Reader::standalone().read(&document).expect("the schema is readable")
}

fn doc() -> Value {
    json!({
        "containers": [
            { "name": "c", "image": "i", "args": ["x"], "env": [{ "name": "A", "value": "1" }, { "name": "B" }] },
            { "name": "d", "image": "j" },
            { "name": "e", "image": "k" }
        ],
        "finalizers": ["a", "b", "c"],
        "tolerations": [{ "key": "k" }],
        "strategy": { "type": "Rolling", "rolling": { "max": 1 } },
        "labels": { "a": "b" },
        "broken": [{ "x": 1 }]
    })
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().filter_map(|item| item["name"].as_str()).collect()
}

fn patched(patch: &Value) -> Value {
    merge(&schema(), &doc(), patch).unwrap_or_else(|error| panic!("{patch}: {error}"))
}

#[test]
fn list_elements_merge_by_key() {
    let result = patched(&json!({ "containers": [{ "name": "d", "image": "new" }] }));
    assert_eq!(names(&result["containers"]), ["c", "d", "e"]);
    assert_eq!(result["containers"][1], json!({ "name": "d", "image": "new" }));
    assert_eq!(result["containers"][0], doc()["containers"][0]);
}

#[test]
fn lists_keep_the_patchs_order_around_what_only_the_server_has() {
    let order = |list: Value| json!({ "$setElementOrder/containers": list });
    let cases = [
        (json!({ "containers": [{ "name": "n" }, { "name": "d" }] }), vec!["n", "c", "d", "e"]),
        (json!({ "containers": [{ "name": "d", "$patch": "delete" }] }), vec!["c", "e"]),
        (json!({ "containers": [{ "$patch": "replace" }, { "name": "only" }] }), vec!["only"]),
        (order(json!([{ "name": "e" }, { "name": "c" }, { "name": "d" }])), vec!["e", "c", "d"]),
        (order(json!([{ "name": "e" }, { "name": "c" }])), vec!["d", "e", "c"]),
        (
            json!({
                "$setElementOrder/containers": [{ "name": "n" }, { "name": "e" }, { "name": "c" }],
                "containers": [{ "name": "n" }, { "name": "d", "$patch": "delete" }]
            }),
            vec!["n", "e", "c"],
        ),
    ];
    for (patch, expected) in cases {
        assert_eq!(names(&patched(&patch)["containers"]), expected, "{patch}");
    }
}

#[test]
fn nested_lists_follow_their_own_rules() {
    let result = patched(&json!({ "containers": [{
        "name": "c",
        "args": ["y", "z"],
        "env": [{ "name": "A", "$patch": "delete" }, { "name": "C", "value": "3" }],
        "$setElementOrder/env": [{ "name": "C" }, { "name": "B" }]
    }] }));
    assert_eq!(result["containers"][0]["args"], json!(["y", "z"]));
    assert_eq!(result["containers"][0]["env"], json!([{ "name": "C", "value": "3" }, { "name": "B" }]));
}

#[test]
fn fields_change_as_the_schema_and_the_directives_say() {
    let cases = [
        ("finalizers", json!({ "finalizers": ["d", "a"] }), json!(["d", "a", "b", "c"])),
        ("finalizers", json!({ "$deleteFromPrimitiveList/finalizers": ["b"] }), json!(["a", "c"])),
        (
            "finalizers",
            json!({
                "$setElementOrder/finalizers": ["c", "a", "n"],
                "finalizers": ["n"],
                "$deleteFromPrimitiveList/finalizers": ["b"]
            }),
            json!(["c", "a", "n"]),
        ),
        ("finalizers", json!({ "finalizers": null }), Value::Null),
        ("tolerations", json!({ "tolerations": [{ "key": "z" }] }), json!([{ "key": "z" }])),
        ("labels", json!({ "labels": { "c": "d", "a": null } }), json!({ "c": "d" })),
        ("labels", json!({ "labels": { "$patch": "replace", "z": "y" } }), json!({ "z": "y" })),
        ("labels", json!({ "labels": { "$patch": "delete" } }), json!({})),
        (
            "strategy",
            json!({ "strategy": { "$retainKeys": ["type"], "type": "Recreate" } }),
            json!({ "type": "Recreate" }),
        ),
        ("unknown", json!({ "unknown": { "a": { "b": null, "c": 1 } } }), json!({ "a": { "c": 1 } })),
        ("unknown", json!({ "unknown": { "$patch": "delete" } }), Value::Null),
        ("labels", json!({ "labels": "text" }), json!("text")),
    ];
    for (name, patch, expected) in cases {
        assert_eq!(patched(&patch)[name], expected, "{patch}");
    }
}

#[test]
fn patches_that_cannot_be_merged_are_told_why() {
    let merge_key = "map: map[image:x] does not contain declared merge key: name";
    let cases = [
        (json!({ "containers": [{ "image": "x" }] }), 500, merge_key),
        (
            json!({ "containers": [{ "name": "c", "$patch": "bogus" }] }),
            500,
            "unknown patch type: bogus in map: map[$patch:bogus name:c]",
        ),
        (
            json!({ "containers": [{ "name": "c", "$patch": "merge" }] }),
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (json!({ "$patch": "bogus" }), 500, "unknown patch type: bogus in map: map[$patch:bogus]"),
        (json!({ "finalizers": [1] }), 500, "list element types are not identical: [[a b c] [1]]"),
        (json!({ "broken": [{ "x": 2 }] }), 500, "cannot merge lists without merge key"),
        (
            json!({ "$setElementOrder/containers": "x" }),
            500,
            "expected a []interface {}, but received a string",
        ),
        (json!({ "$setElementOrder": [] }), 400, "invalid patch format of setElementOrder list"),
        (json!({ "$deleteFromPrimitiveList": [] }), 400, "invalid patch format of primitive list"),
        (
            json!({ "strategy": { "$retainKeys": ["type"], "rolling": {} } }),
            400,
            "invalid patch format of retainKeys",
        ),
        (json!({ "strategy": { "$retainKeys": "type" } }), 400, "invalid patch format of retainKeys"),
        (json!([]), 400, "invalid JSON document"),
    ];
    for (patch, status, expected) in cases {
        let error = merge(&schema(), &doc(), &patch).expect_err("must not merge");
        assert_eq!((error.status(), error.answer()), (status, expected), "{patch}");
    }
    let unordered =
        json!({ "$setElementOrder/containers": [{ "name": "e" }], "containers": [{ "name": "zz" }] });
    let error = merge(&schema(), &doc(), &unordered).expect_err("must not merge");
    assert!(matches!(&error, PatchError::Unmergeable(text) if text.starts_with("The order in patch list:")));
}

/// Patches over the schema's names, directives among them.
fn patches() -> impl Strategy<Value = Value> {
    let names = vec![
        "containers",
        "finalizers",
        "strategy",
        "labels",
        "broken",
        "name",
        "env",
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$deleteFromPrimitiveList/finalizers",
        "$setElementOrder/env",
        "z",
    ];
    let scalar = prop_oneof![
        Just(Value::Null),
        (0..3i64).prop_map(Value::from),
        prop::sample::select(vec!["a", "c", "delete", "replace", "merge"]).prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(names.clone()), inner, 0..4)
                .prop_map(|fields| json!(fields)),
        ]
    })
}

fn has_directive(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| name.starts_with('$') || has_directive(value))
        }
        Value::Array(items) => items.iter().any(has_directive),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_and_no_directive_is_stored(patch in patches()) {
        if let Ok(result) = merge(&schema(), &doc(), &patch) {
            prop_assert!(!has_directive(&result), "{}", result);
        }
    }

    #[test]
    fn an_empty_patch_changes_nothing(doc in patches()) {
        if doc.is_object() {
            prop_assert_eq!(merge(&schema(), &doc, &json!({})), Ok(doc));
        }
    }
}
