//! What templates cannot do: panic, run on, or grow without end.

use baton_render::{Engine, Interpolation, Params, Renderer, Text};
use baton_template::Value as Param;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{GO, STRICT, params, rendered, template, yaml};

#[test]
fn what_is_rendered_is_bounded_in_bytes() {
    let large = Params::new([("x".into(), Param::from("v".repeat(3 << 20)))]);
    let refusal = |engine: Engine, application: &str, patch: Option<&str>| {
        let renderer = Renderer::new(&engine, &template(application), patch, false).expect("a template");
        renderer.render(&large, "argocd").expect_err("too large").to_string()
    };
    for (engine, text) in [(GO, "{{ .x }}"), (Engine::Fast, "{{x}}")] {
        let application = format!("{{metadata: {{annotations: {{a: '{text}', b: '{text}'}}}}}}");
        let error = refusal(engine, &application, None);
        assert_eq!(
            error,
            "template metadata.annotations.b: rendered text is larger than 4194304 bytes in all"
        );
    }
    let error = refusal(GO, "{metadata: {name: '{{ .x }}'}}", Some("#{{ .x }}"));
    assert_eq!(error, "spec.templatePatch: rendered text is larger than 4194304 bytes in all");
}

#[test]
fn loops_end() {
    let endless = "{{ define \"x\" }}{{ template \"x\" . }}{{ end }}{{ template \"x\" . }}";
    let many = "{{ range $a := .l }}{{ range $b := $.l }}{{ range $c := $.l }}{{ end }}{{ end }}{{ end }}";
    let list = format!("{{l: [{}]}}", ["1"; 500].join(","));
    for text in [endless, many, "{{ template \"base\" . }}"] {
        let text = Text::compile(&GO, "values.x", text).expect("a template");
        assert!(text.render(&params(&list)).is_err());
    }
}

#[test]
fn values_nested_too_deeply_are_refused() {
    let mut deep = json!("{{ .x }}");
    for _ in 0..200 {
        deep = json!({"a": deep});
    }
    let mut typed = template("{metadata: {name: a}, spec: {source: {helm: {valuesObject: {}}}}}");
    let helm = typed.spec.source.as_mut().and_then(|source| source.helm.as_mut()).expect("helm");
    helm.values_object = deep.as_object().cloned();
    let error = Renderer::new(&GO, &typed, None, false).expect_err("too deep").to_string();
    assert!(error.contains("nested more than 120 deep"), "{error}");
    assert!(Interpolation::compile(&GO, &json!({"list": {"elements": [deep]}})).is_err());
}

#[test]
fn a_patch_of_aliases_is_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let below = level - 1;
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![format!("*a{below}"); 10].join(", "));
    }
    let error = rendered(GO, "{metadata: {name: a}}", Some(&bomb), "{x: v}").expect_err("a bomb");
    assert!(error.starts_with("spec.templatePatch"), "{error}");
}

/// Text that is likely to come near what the engines look for.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{{".to_owned()),
        Just("}}".to_owned()),
        Just("{{ .a }}".to_owned()),
        Just("{{a}}".to_owned()),
        Just("{{- range .l -}}".to_owned()),
        Just("{{ end }}".to_owned()),
        Just("\n".to_owned()),
        "[a-z.|\"$é]{0,6}",
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        text().prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect()
        }
        scalar => scalar.clone(),
    }
}

proptest! {
    #[test]
    fn text_without_braces_is_returned_unchanged(text in "[^{]*", name in "[a-z]{1,8}") {
        for engine in [Engine::Fast, GO, STRICT] {
            let compiled = Text::compile(&engine, "x", &text).expect("no template, no error");
            prop_assert_eq!(&compiled.render(&params("{a: b}")).expect("no template, no error"), &text);
            let element = json!({"list": {"elements": [{&name: &text}]}});
            let compiled = Interpolation::compile(&engine, &element).expect("no template, no error");
            prop_assert_eq!(compiled.render(&params("{a: b}")).expect("no template, no error"), element);
        }
    }

    #[test]
    fn substitution_is_that_of_the_template_crate(text in text()) {
        let parameters = params("{a: '{{b}}', b: x, l: [1]}");
        let ours = Text::compile(&Engine::Fast, "x", &text).and_then(|text| text.render(&parameters));
        let theirs = baton_template::params::substitute(&text, &parameters);
        prop_assert_eq!(ours.ok(), theirs.ok());
    }

    #[test]
    fn no_template_panics_and_the_outcome_is_always_the_same(value in value(), patch in text()) {
        let mut typed = template("{metadata: {name: a}, spec: {source: {helm: {valuesObject: {}}}}}");
        let helm = typed.spec.source.as_mut().and_then(|source| source.helm.as_mut()).expect("helm");
        helm.values_object = Some([("v".to_owned(), value.clone())].into_iter().collect());
        for engine in [Engine::Fast, GO, STRICT] {
            let render = || {
                let renderer = Renderer::new(&engine, &typed, Some(&patch), false)?;
                renderer.render(&params("{a: b, l: [1, 2]}"), "argocd")
            };
            prop_assert_eq!(render(), render());
            let generator = json!({"list": {"elements": [&value]}});
            let interpolated = Interpolation::compile(&engine, &generator)
                .and_then(|compiled| compiled.render(&params("{a: b, l: [1, 2]}")));
            if !generator.to_string().contains("{{") {
                prop_assert_eq!(interpolated.expect("no template, no error"), without_nulls(&generator));
            }
        }
    }
}

/// The patch of a hostile parameter stays data: it cannot reach the project or the namespace.
#[test]
fn parameters_inserted_into_a_patch_cannot_move_the_application() {
    let application = "{metadata: {name: a}, spec: {project: blue}}";
    let parameters = r#"{x: "a\nspec: {project: admin}\nmetadata: {namespace: kube-system}"}"#;
    let object = rendered(GO, application, Some("operation: {{ .x }}"), parameters);
    if let Ok(object) = object {
        assert_eq!(object["spec"]["project"], "blue");
        assert_eq!(object["metadata"]["namespace"], "argocd");
    }
    let object =
        rendered(GO, application, Some("status: {}\n#{{ .x }}"), parameters).expect("an Application");
    assert_eq!(object["spec"]["project"], "blue");
    assert_eq!(
        object["metadata"],
        yaml("{name: a, namespace: argocd, finalizers: [resources-finalizer.argocd.argoproj.io]}")
    );
}
