//! RFC 6902 patches.

use baton_schema::patch::{MAX_OPERATIONS, PatchError, json};
use proptest::prelude::*;
use serde_json::{Value, json};

fn doc() -> Value {
    json!({ "a": 1, "l": [1, 2, 3], "o": { "x": { "y": 1 } }, "n": null, "a/b": 1, "m~n": 2 })
}

/// The document with one field as given.
fn with(name: &str, value: Value) -> Value {
    let mut doc = doc();
    doc[name] = value;
    doc
}

#[test]
fn operations_do_what_a_real_server_does() {
    let cases = [
        (json!([]), doc()),
        (json!([{ "op": "add", "path": "/z", "value": 1 }]), with("z", json!(1))),
        (json!([{ "op": "add", "path": "/z" }]), with("z", Value::Null)),
        (json!([{ "op": "add", "path": "/l/-", "value": 4 }]), with("l", json!([1, 2, 3, 4]))),
        (json!([{ "op": "add", "path": "/l/0", "value": 0 }]), with("l", json!([0, 1, 2, 3]))),
        (json!([{ "op": "add", "path": "/l/3", "value": 0 }]), with("l", json!([1, 2, 3, 0]))),
        (json!([{ "op": "add", "path": "/l/-1", "value": 0 }]), with("l", json!([1, 2, 3, 0]))),
        (json!([{ "op": "add", "path": "/l/01", "value": 0 }]), with("l", json!([1, 0, 2, 3]))),
        (json!([{ "op": "remove", "path": "/l/-1" }]), with("l", json!([1, 2]))),
        (json!([{ "op": "remove", "path": "/l/1" }]), with("l", json!([1, 3]))),
        (json!([{ "op": "replace", "path": "/a", "value": 2 }]), with("a", json!(2))),
        (json!([{ "op": "replace", "path": "/new", "value": 2 }]), with("new", json!(2))),
        (json!([{ "op": "replace", "path": "/a~1b", "value": 9 }]), with("a/b", json!(9))),
        (json!([{ "op": "replace", "path": "/m~0n", "value": 9 }]), with("m~n", json!(9))),
        (json!([{ "op": "replace", "path": "", "value": {} }]), json!({})),
        (json!([{ "op": "test", "path": "/a", "value": 1 }]), doc()),
        (json!([{ "op": "test", "path": "/n", "value": null }]), doc()),
        (json!([{ "op": "test", "path": "/missing", "value": null }]), doc()),
        (json!([{ "op": "copy", "from": "/o", "path": "/p" }]), with("p", json!({ "x": { "y": 1 } }))),
        (json!([{ "op": "copy", "from": "/missing", "path": "/p" }]), with("p", Value::Null)),
        (json!([{ "op": "copy", "from": "/l/0", "path": "/l/-" }]), with("l", json!([1, 2, 3, 1]))),
        (json!([{ "op": "move", "from": "/l/0", "path": "/l/2" }]), with("l", json!([2, 3, 1]))),
        (json!([{ "op": "add", "path": "/a", "value": 5, "extra": 1 }]), with("a", json!(5))),
    ];
    for (patch, expected) in cases {
        assert_eq!(json(&doc(), &patch), Ok(expected), "{patch}");
    }
}

#[test]
fn operations_that_do_not_apply_are_rejected_with_the_servers_words() {
    let cases = [
        (json!([{ "op": "test", "path": "/a", "value": 2 }]), "testing value /a failed: test failed"),
        (json!([{ "op": "test", "path": "/zz", "value": 2 }]), "testing value /zz failed: test failed"),
        (
            json!([{ "op": "add", "path": "/q/r", "value": 1 }]),
            "add operation does not apply: doc is missing path: \"/q/r\": missing value",
        ),
        (
            json!([{ "op": "remove", "path": "/zz" }]),
            "remove operation does not apply: doc is missing path: \"/zz\": missing value",
        ),
        (
            json!([{ "op": "replace", "path": "/q/r", "value": 1 }]),
            "replace operation does not apply: doc is missing key: /q/r: missing value",
        ),
        (
            json!([{ "op": "move", "from": "/zz", "path": "/p" }]),
            "move operation does not apply: doc is missing from path: /zz: missing value",
        ),
        (json!([{ "op": "bogus", "path": "/a" }]), "Unexpected kind: bogus"),
        (json!([{ "path": "/a" }]), "Unexpected kind: unknown"),
        (json!([{ "op": "remove" }]), "remove operation failed to decode path: missing value"),
    ];
    for (patch, expected) in cases {
        let error = json(&doc(), &patch).expect_err("must not apply");
        assert_eq!(error, PatchError::Rejected(expected.to_owned()), "{patch}");
        assert_eq!(error.answer(), "the server rejected our request due to an error in our request");
        assert_eq!((error.status(), error.reason()), (422, "Invalid"));
    }
}

#[test]
fn a_patch_that_fails_late_changes_nothing() {
    let patch = json!([{ "op": "remove", "path": "/a" }, { "op": "test", "path": "/l", "value": [] }]);
    let before = doc();
    assert!(json(&before, &patch).is_err());
    assert_eq!(before, doc());
}

#[test]
fn what_is_not_a_list_of_operations_is_malformed() {
    for (patch, found) in [(json!({}), "object"), (json!("x"), "string"), (json!(null), "null")] {
        let expected = format!(
            "error decoding patch: json: cannot unmarshal {found} into Go value of type []handlers.jsonPatchOp"
        );
        assert_eq!(json(&doc(), &patch), Err(PatchError::Malformed(expected)));
    }
    assert_eq!(json(&doc(), &json!([1])).expect_err("no operation").status(), 400);
}

#[test]
fn too_many_operations_are_too_large() {
    let operation = json!({ "op": "test", "path": "/a", "value": 1 });
    assert!(json(&doc(), &Value::Array(vec![operation.clone(); MAX_OPERATIONS])).is_ok());
    let error = json(&doc(), &Value::Array(vec![operation; MAX_OPERATIONS + 1])).expect_err("too many");
    assert_eq!(
        (error.status(), error.answer()),
        (413, "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001")
    );
}

#[test]
fn copies_can_neither_explode_nor_nest_without_end() {
    let doubling: Vec<Value> =
        (0..60).map(|round| json!({ "op": "copy", "from": "/a", "path": format!("/a/{round}") })).collect();
    assert!(json(&json!({ "a": {} }), &Value::Array(doubling)).is_err());

    let mut path = String::from("/a");
    let mut nesting = Vec::new();
    for _ in 0..200 {
        path.push_str("/a");
        nesting.push(json!({ "op": "add", "path": path, "value": {} }));
    }
    assert!(json(&json!({ "a": {} }), &Value::Array(nesting)).is_err());
}

fn pointers() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "", "/", "/a", "/l", "/l/0", "/l/-", "/l/-1", "/l/9", "/o/x", "/o/x/y", "/zz/q", "a",
    ])
    .prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(
        operations in prop::collection::vec(
            (prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test", "x"]), pointers(), pointers()),
            0..8,
        )
    ) {
        let patch: Vec<Value> = operations
            .into_iter()
            .map(|(op, path, from)| json!({ "op": op, "path": path, "from": from, "value": doc() }))
            .collect();
        let _ = json(&doc(), &Value::Array(patch));
    }
}
