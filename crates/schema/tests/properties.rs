//! What holds for every schema and every value.

use std::sync::Arc;

use baton_schema::{
    Reader, Schema, Validator, apply_defaults, names, prune, structural, type_errors, unknown_fields,
    validate,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-5_i64..5).prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        "[a-c]{0,3}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(field_name(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn field_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]",
        Just("spec".to_owned()),
        Just("metadata".to_owned()),
        Just("apiVersion".to_owned()),
        Just("kind".to_owned()),
        Just("labels".to_owned()),
    ]
}

/// Schemas as a CRD may have them, with a value that fits each.
fn schema_and_value() -> impl Strategy<Value = (Value, Value)> {
    let leaf = prop_oneof![
        ("[a-c]{1,3}", any::<bool>()).prop_map(|(text, default)| {
            let mut schema = json!({"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^[a-c]+$"});
            if default {
                schema["default"] = json!("abc");
            }
            (schema, json!(text))
        }),
        (0_i64..9, any::<bool>()).prop_map(|(number, default)| {
            let mut schema = json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 9});
            if default {
                schema["default"] = json!(5);
            }
            (schema, json!(number))
        }),
        any::<bool>().prop_map(|flag| (json!({"type": "boolean"}), json!(flag))),
        Just((json!({"x-kubernetes-int-or-string": true}), json!("50%"))),
        Just((json!({"type": "string", "nullable": true}), Value::Null)),
        any_value()
            .prop_filter("null is dropped", |value| !value.is_null())
            .prop_map(|value| { (json!({"x-kubernetes-preserve-unknown-fields": true}), value) }),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            (inner.clone(), 0..3_usize).prop_map(|((schema, value), count)| {
                (json!({"type": "array", "items": schema}), Value::from(vec![value; count]))
            }),
            prop::collection::btree_map("[a-e]", inner.clone(), 0..4).prop_map(|fields| {
                let schemas: Map<_, _> =
                    fields.iter().map(|(name, (schema, _))| (name.clone(), schema.clone())).collect();
                let values: Map<_, _> = fields.into_iter().map(|(name, (_, value))| (name, value)).collect();
                (json!({"type": "object", "properties": schemas}), Value::Object(values))
            }),
            inner.prop_map(|(schema, value)| {
                (json!({"type": "object", "additionalProperties": schema}), json!({"x": value}))
            }),
        ]
    })
}

fn read(spec: &Value) -> Arc<Schema> {
    let document = json!({"type": "object", "properties": {"spec": spec}});
    Reader::standalone().read(&document).expect("generated schemas are readable")
}

/// Schema documents that may be anything, with keywords likely to be understood.
fn any_document() -> impl Strategy<Value = Value> {
    let keyword = prop::sample::select(vec![
        "type",
        "properties",
        "items",
        "additionalProperties",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "default",
        "enum",
        "required",
        "pattern",
        "format",
        "minimum",
        "maxLength",
        "nullable",
        "x-kubernetes-validations",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "multipleOf",
        "$ref",
        "x-kubernetes-map-type",
    ]);
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "object", "array", "string", "integer", "number", "boolean", "map", "set", "(", "x"
        ])
        .prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        Just(json!([{"rule": "self == oldSelf"}])),
        Just(json!(["a"])),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            3 => prop::collection::btree_map(keyword.clone(), inner.clone(), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())),
            1 => prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            1 => prop::collection::btree_map("[a-c]", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn valid_objects_stay_valid((spec, value) in schema_and_value(), extra in any_value()) {
        let schema = read(&spec);
        let mut object = json!({"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "n"}, "spec": value, "extra": extra});
        apply_defaults(&schema, &mut object);
        prune(&schema, &mut object);
        prop_assert_eq!(object.get("extra"), None);
        prop_assert_eq!(validate(&schema, &object, None), vec![], "{} {}", spec, object);
        prop_assert_eq!(structural::check(&json!({"type": "object", "properties": {"spec": spec}}), "x"), vec![]);
    }

    #[test]
    fn pruning_and_defaulting_twice_change_nothing((spec, _) in schema_and_value(), value in any_value()) {
        let schema = read(&spec);
        let mut object = json!({"spec": value});
        apply_defaults(&schema, &mut object);
        let once = object.clone();
        apply_defaults(&schema, &mut object);
        prop_assert_eq!(&object, &once);
        let unknown = unknown_fields(&schema, &object);
        prop_assert_eq!(prune(&schema, &mut object), unknown);
        let once = object.clone();
        prop_assert_eq!(prune(&schema, &mut object), Vec::<String>::new());
        prop_assert_eq!(object, once);
    }

    #[test]
    fn an_unchanged_object_is_always_accepted((spec, _) in schema_and_value(), value in any_value()) {
        let schema = read(&spec);
        let object = json!({"spec": value});
        prop_assert_eq!(validate(&schema, &object, Some(&object)), vec![]);
    }

    #[test]
    fn nothing_panics(document in any_document(), value in any_value(), old in any_value()) {
        for error in structural::check(&document, "x") {
            let _ = error.to_string();
        }
        let Ok(schema) = Reader::standalone().read(&document) else { return Ok(()) };
        for error in validate(&schema, &value, Some(&old)) {
            let _ = error.to_string();
        }
        if let Ok(validator) = Validator::new(schema.clone()) {
            let _ = validator.validate(&value, None);
            let _ = validator.validate(&value, Some(&old));
        }
        let _ = type_errors(&schema, &value);
        let mut changed = value.clone();
        apply_defaults(&schema, &mut changed);
        prune(&schema, &mut changed);
        let _ = names::validate_object_meta(&value, true, names::dns1123_subdomain, "metadata");
        let _ = names::validate_object_meta_update(&value, &old);
    }

    #[test]
    fn no_expression_panics(rule in r#"[a-z0-9().\[\]{}?:&|!=<>+*/%'", \-]{0,40}"#, value in any_value()) {
        let document = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": [{"rule": rule}]});
        let schema = Reader::standalone().read(&document).expect("readable");
        if let Ok(validator) = Validator::new(schema) {
            let _ = validator.validate(&value, None);
        }
    }
}

#[test]
fn values_deeper_than_any_schema_are_survived() {
    let schema = read(&json!({"type": "array", "items": {"type": "array", "items": {"type": "object"}}}));
    let mut deep = json!(1);
    for _ in 0..400 {
        deep = json!([deep]);
    }
    let mut object = json!({"spec": deep});
    let _ = validate(&schema, &object, None);
    apply_defaults(&schema, &mut object);
    prune(&schema, &mut object);
}
