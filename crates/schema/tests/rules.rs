//! CEL rules: what they decide, compared with a kube-apiserver 1.36, and that they cannot run away.

use std::sync::Arc;

use baton_schema::{FieldError, Reader, Validator};
use serde_json::{Value, json};

fn validator(spec: Value) -> Validator {
    let document = json!({"type": "object", "properties": {"spec": spec}});
    let schema = Reader::standalone().read(&document).expect("the schema is readable");
    Validator::new(Arc::clone(&schema)).expect("the rules compile")
}

fn shown(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn rules_decide_as_on_a_real_server() {
    let recorded: Value = serde_json::from_str(include_str!("rules.json")).expect("the recording is JSON");
    let mut different = String::new();
    for case in recorded.as_array().expect("a list") {
        let mut schema = case["schema"].clone();
        schema["x-kubernetes-validations"] = json!([{"rule": case["rule"]}]);
        let found = validator(schema).validate(&json!({"spec": case["value"]}), None);
        let found: Vec<String> = found.iter().map(FieldError::message).collect();
        let expected = case["error"].as_str().expect("text");
        if found.join("\n") != expected {
            different.push_str(&format!(
                "{} on {}\n  expected {expected}\n  found    {found:?}\n",
                case["rule"], case["value"]
            ));
        }
    }
    assert!(different.is_empty(), "{different}");
}

#[test]
fn transition_rules_run_where_there_is_something_to_compare() {
    let fixed = json!([{"rule": "self == oldSelf", "message": "is fixed"}]);
    let check = validator(json!({"type": "object", "properties": {
        "plain": {"type": "string", "x-kubernetes-validations": fixed},
        "keyed": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {
                "name": {"type": "string"}, "value": {"type": "string", "x-kubernetes-validations": fixed}
            }}
        },
        "map": {"type": "object", "additionalProperties": {"type": "string", "x-kubernetes-validations": fixed}}
    }}));
    let old = json!({"spec": {
        "plain": "a", "keyed": [{"name": "x", "value": "1"}, {"name": "y", "value": "2"}], "map": {"k": "v"}
    }});
    let reordered = json!({"spec": {
        "plain": "a",
        "keyed": [{"name": "y", "value": "2"}, {"name": "x", "value": "1"}, {"name": "z", "value": "9"}],
        "map": {"k": "v", "new": "w"}
    }});
    assert!(check.validate(&reordered, None).is_empty());
    assert!(check.validate(&reordered, Some(&old)).is_empty());
    let changed = json!({"spec": {
        "plain": "b", "keyed": [{"name": "y", "value": "3"}], "map": {"k": "w"}
    }});
    assert_eq!(
        shown(&check.validate(&changed, Some(&old))),
        [
            "spec.keyed[0].value: Invalid value: \"3\": is fixed",
            "spec.map[k]: Invalid value: \"w\": is fixed",
            "spec.plain: Invalid value: \"b\": is fixed",
        ]
    );
}

#[test]
fn optional_old_self_runs_on_creation_too() {
    let check = validator(json!({"type": "integer", "x-kubernetes-validations": [
        {"rule": "oldSelf.hasValue() ? self > oldSelf.value() : self == 1", "optionalOldSelf": true}
    ]}));
    let object = |number: i64| json!({"spec": number});
    assert!(check.validate(&object(1), None).is_empty());
    assert_eq!(check.validate(&object(2), None).len(), 1);
    assert!(check.validate(&object(3), Some(&object(2))).is_empty());
    assert_eq!(check.validate(&object(2), Some(&object(2))).len(), 1);
}

#[test]
fn what_was_wrong_and_has_not_changed_is_tolerated() {
    let check = validator(json!({"type": "object", "properties": {
        "name": {"type": "string", "maxLength": 2, "x-kubernetes-validations": [{"rule": "self != 'no'"}]},
        "size": {"type": "integer", "minimum": 5},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
    }}));
    let old = json!({"spec": {"name": "no", "size": 1, "set": ["a", "a"], "extra": 1}});
    assert_eq!(check.validate(&old, None).len(), 3);
    assert!(check.validate(&old, Some(&old)).is_empty());
    let other_change = json!({"spec": {"name": "no", "size": 6, "set": ["a", "a"]}});
    assert!(check.validate(&other_change, Some(&old)).is_empty());
    let still_wrong = json!({"spec": {"name": "no", "size": 2, "set": ["a", "a"]}});
    assert_eq!(
        shown(&check.validate(&still_wrong, Some(&old))),
        ["spec.size: Invalid value: 2: spec.size in body should be greater than or equal to 5"]
    );
    let newly_double = json!({"spec": {"set": ["b", "b"]}});
    assert_eq!(
        shown(&check.validate(&newly_double, Some(&json!({"spec": {"set": ["b"]}})))),
        ["spec.set[1]: Duplicate value: \"b\""]
    );
}

#[test]
fn rules_at_the_root_see_the_name_and_no_other_metadata() {
    let read = |rule: &str| {
        let document = json!({"type": "object", "x-kubernetes-validations": [{"rule": rule}], "properties": {
            "spec": {"type": "object"}
        }});
        Validator::new(Reader::standalone().read(&document).expect("the schema is readable"))
            .expect("it compiles")
    };
    let object = json!({"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "n", "labels": {"a": "b"}}});
    let rule = "self.metadata.name == 'n' && self.kind == 'K' && self.apiVersion == 'a/v1' && !has(self.metadata.labels)";
    assert!(read(rule).validate(&object, None).is_empty());
}

#[test]
fn quantities_are_added_and_converted() {
    let check = validator(json!({"type": "string", "x-kubernetes-validations": [
        {"rule": "quantity(self).add(quantity('1k')).sub(500).asInteger() == 2500"},
        {"rule": "quantity(self).isInteger() && quantity(self).asApproximateFloat() == 2000.0"}
    ]}));
    assert_eq!(shown(&check.validate(&json!({"spec": "2k"}), None)), Vec::<String>::new());
    assert_eq!(check.validate(&json!({"spec": "2.5"}), None).len(), 2);
}

#[test]
fn evaluation_is_bounded() {
    let many: Vec<usize> = (0..20_000).collect();
    let nested =
        validator(json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [
            {"rule": "self.all(a, self.all(b, a + b >= 0))"}
        ]}));
    assert_eq!(
        shown(&nested.validate(&json!({"spec": many}), None)),
        [
            "spec: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: self.all(a, self.all(b, a + b >= 0))"
        ]
    );
    let doubling = "[self]".to_owned() + &".map(s, s + s)".repeat(60) + ".size() == 1";
    let growing = validator(json!({"type": "string", "x-kubernetes-validations": [{"rule": doubling}]}));
    let errors = growing.validate(&json!({"spec": "x".repeat(100)}), None);
    assert!(errors[0].detail.contains("actual cost limit exceeded"), "{errors:?}");
    let replacing = validator(json!({"type": "object", "properties": {
        "a": {"type": "string"}, "b": {"type": "string"}
    }, "x-kubernetes-validations": [{"rule": "self.a.replace('x', self.b).size() > 0 && [self.a].join(self.b) != ''"}]}));
    let large = "x".repeat(1 << 20);
    let errors = replacing.validate(&json!({"spec": {"a": large, "b": large}}), None);
    assert!(errors[0].detail.contains("actual cost limit exceeded"), "{errors:?}");
}

#[test]
fn a_single_loop_over_a_long_list_is_affordable() {
    let many: Vec<usize> = (1..50_000).collect();
    let check =
        validator(json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [
            {"rule": "self.map(a, a * 2).all(b, b > 0)"}
        ]}));
    assert!(check.validate(&json!({"spec": many}), None).is_empty());
}

#[test]
fn expressions_of_any_depth_are_read_or_refused() {
    for rule in [
        "(".repeat(50_000),
        "!".repeat(50_000) + "true",
        "-".repeat(50_000) + "1 == 1",
        "self".to_owned() + &".a".repeat(20_000),
        "true".to_owned() + &" && true".repeat(5_000),
        "1".to_owned() + &"+1".repeat(5_000) + " > 0",
        "[".repeat(10_000) + &"]".repeat(10_000),
        "true ? ".repeat(5_000) + "true",
    ] {
        let document = json!({"type": "object", "x-kubernetes-validations": [{"rule": rule}]});
        let schema = Reader::standalone().read(&document).expect("the schema is readable");
        if let Ok(check) = Validator::new(schema) {
            let _ = check.validate(&json!({}), None);
        }
    }
}
