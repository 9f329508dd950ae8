//! RFC 7386 patches.

use baton_schema::patch::merge;
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn objects_merge_null_deletes_and_the_rest_replaces() {
    let cases = [
        (json!({ "a": "b" }), json!({ "a": "c" }), json!({ "a": "c" })),
        (json!({ "a": "b" }), json!({ "b": "c" }), json!({ "a": "b", "b": "c" })),
        (json!({ "a": "b" }), json!({ "a": null }), json!({})),
        (json!({ "a": "b" }), json!({ "z": null }), json!({ "a": "b" })),
        (json!({ "a": ["b"] }), json!({ "a": "c" }), json!({ "a": "c" })),
        (json!({ "a": "c" }), json!({ "a": ["b"] }), json!({ "a": ["b"] })),
        (json!({ "a": { "b": "c" } }), json!({ "a": { "b": "d", "c": null } }), json!({ "a": { "b": "d" } })),
        (json!({ "a": [{ "b": "c" }] }), json!({ "a": [1] }), json!({ "a": [1] })),
        (json!({ "a": "b" }), json!(["c"]), json!(["c"])),
        (json!({ "a": "foo" }), json!(null), json!(null)),
        (json!({ "e": null }), json!({ "a": 1 }), json!({ "e": null, "a": 1 })),
        (json!([1, 2]), json!({ "a": "b", "c": null }), json!({ "a": "b" })),
        (json!({}), json!({ "a": { "bb": { "ccc": null } } }), json!({ "a": { "bb": {} } })),
        (json!({ "l": [1] }), json!({ "l": [null, { "a": null }] }), json!({ "l": [null, {}] })),
    ];
    for (doc, patch, expected) in cases {
        assert_eq!(merge(&doc, &patch), expected, "{doc} with {patch}");
    }
}

fn values() -> impl Strategy<Value = Value> {
    let scalar =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), "[a-c]".prop_map(Value::from)];
    scalar.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..4).prop_map(|fields| json!(fields)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_empty_patch_changes_no_object(doc in prop::collection::btree_map("[a-c]", values(), 0..4)) {
        let doc = json!(doc);
        prop_assert_eq!(merge(&doc, &json!({})), doc);
    }

    #[test]
    fn patching_twice_is_patching_once(doc in values(), patch in values()) {
        let once = merge(&doc, &patch);
        prop_assert_eq!(merge(&once, &patch), once);
    }
}
