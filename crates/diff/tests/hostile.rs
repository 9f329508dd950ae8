//! No object makes a verdict panic.

use baton_api::application::ResourceIgnoreDifferences;
use baton_diff::{
    CompareOptions, Rules, SystemRules, TAKEN_OVER, compare, fingerprint, masked, prepare, quick, respect,
    subset, takeover, unified,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn odd() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..3i64).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let name = prop_oneof![Just("name".to_owned()), "[a-c]", Just("data".to_owned())];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn owned() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![4 => Just(json!({})), 1 => Just(Value::Null)];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let part = prop_oneof![
            "f:[a-c]",
            Just("f:name".to_owned()),
            Just(".".to_owned()),
            "k:\\{\"name\":\"[a-c]\"\\}",
            "k:\\{\"[a-c]\":[0-2]\\}",
            "v:\"[a-c]\"",
            "i:[0-3]",
            "[a-z:{]{0,4}",
        ];
        prop::collection::btree_map(part, inner, 0..4)
            .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>()))
    })
}

fn object() -> impl Strategy<Value = Value> {
    let manager = prop_oneof![Just("argocd-controller"), Just("kubectl-client-side-apply"), Just("trusted")];
    let operation = prop_oneof![Just("Apply"), Just("Update")];
    let entry = (manager, operation, owned()).prop_map(|(manager, operation, fields)| {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": {"f:spec": fields.clone(), "f:data": fields}})
    });
    let kind = prop_oneof![Just("Secret"), Just("Thing")];
    (kind, odd(), odd(), odd(), prop::collection::vec(entry, 0..3)).prop_map(|(kind, spec, data, odd, entries)| {
        let note = json!({"spec": odd}).to_string();
        json!({"apiVersion": "v1", "kind": kind, "spec": spec, "data": data, "stringData": odd, "metadata": {
            "name": "x", "managedFields": entries, "labels": odd,
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": note}}})
    })
}

fn rules() -> Rules {
    let rules: Vec<ResourceIgnoreDifferences> = serde_json::from_value(json!([{"group": "*", "kind": "*",
        "jsonPointers": ["/spec/a", "/spec/0", "/spec/name/1", "/data", ""],
        "jqPathExpressions": [".spec.b[]", ".spec[]?.c", ".. | .name?"], "managedFieldsManagers": ["trusted"]}]))
    .expect("rules");
    Rules::compile(&rules, &SystemRules::default()).expect("rules")
}

proptest! {
    #[test]
    fn any_three_objects_can_be_compared(
        target in prop_oneof![4 => object(), 1 => odd()],
        predicted in prop_oneof![4 => object(), 1 => odd()],
        live in prop_oneof![4 => object(), 1 => odd()],
    ) {
        let rules = rules();
        let prepared = prepare(&target);
        let _ = quick(&prepared, &live, &rules);
        for include_mutations in [false, true] {
            let difference = compare(&prepared, &predicted, &live, &rules, include_mutations);
            prop_assert_eq!(difference.modified, difference.live != difference.predicted);
        }
        subset(&prepared, &live, &rules);
        respect(&prepared, &live, &rules);
        takeover(&live, &TAKEN_OVER);
        fingerprint(&live);
        CompareOptions::of(&live);
        let (target, live) = masked(&target, &live, &rules);
        unified(&live, &target, "x");
    }

    /// Whoever owns what: an object that a dry run leaves as it is does not differ.
    #[test]
    fn a_prediction_that_equals_the_object_is_no_difference(mut live in object(), fields in owned()) {
        live["metadata"]["annotations"] = Value::Null;
        let entry = json!({"manager": "argocd-controller", "operation": "Apply", "fieldsV1": {"f:spec": fields}});
        live["metadata"]["managedFields"] = json!([entry]);
        let difference = compare(&json!({}), &live, &live, &Rules::default(), false);
        prop_assert!(!difference.modified, "{:#?}", difference);
    }
}
