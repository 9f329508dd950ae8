//! Templates of Applications. Expected values are worked by hand from the spec sections named in each test.

use crate::support::{GO, STRICT, params, render, rendered, template, yaml};
use baton_render::{Engine, Renderer, Subject};
use serde_json::json;

/// 2.1, 2.4: strings, list elements, map keys and map values are rendered; other values are copied.
#[test]
fn every_string_and_key_is_rendered_by_substitution() {
    let application = r#"
        metadata:
          name: '{{name}}-guestbook'
          labels: {'team-{{team}}': '{{ team }}', plain: '{{unknown}}'}
        spec:
          project: default
          sources:
            - repoURL: https://example.com/{{name}}.git
              helm:
                parameters: [{name: 'a.{{name}}', value: '}} {{', forceString: true}]
                valuesObject: {'{{name}}': {list: ['{{team}}', 3, true, null], none: null}}
          destination: {server: '{{server}}', namespace: guestbook}
          revisionHistoryLimit: 3
    "#;
    let parameters = "{name: dev, team: blue, server: 'https://1.2.3.4'}";
    assert_eq!(
        rendered(Engine::Fast, application, None, parameters),
        Ok(yaml(
            r#"
            metadata:
              name: dev-guestbook
              namespace: argocd
              labels: {team-blue: blue, plain: '{{unknown}}'}
              finalizers: [resources-finalizer.argocd.argoproj.io]
            spec:
              project: default
              sources:
                - repoURL: https://example.com/dev.git
                  helm:
                    parameters: [{name: a.dev, value: '}} {{', forceString: true}]
                    valuesObject: {dev: {list: [blue, 3, true, null]}}
              destination: {server: 'https://1.2.3.4', namespace: guestbook}
              revisionHistoryLimit: 3
            "#
        ))
    );
}

/// 2.2, 2.7: each string is a template of its own over the parameters; numbers print as Go's.
#[test]
fn go_templates_see_nested_parameters_and_print_as_go() {
    let application = r#"
        metadata:
          name: '{{ .path.basename }}-{{ index .path.segments 0 }}'
          annotations: {'{{ .team }}/count': '{{ .count }}', missing: '{{ .nothing }}'}
        spec:
          project: '{{ if eq .team "blue" }}ocean{{ else }}other{{ end }}'
          source:
            repoURL: https://example.com/a.git
            path: '{{- range $i, $s := .path.segments }}{{ if $i }}/{{ end }}{{ $s }}{{ end -}}'
          destination: {name: in-cluster}
    "#;
    let parameters = "{path: {basename: web, segments: [apps, web]}, team: blue, count: 1000000}";
    assert_eq!(
        rendered(GO, application, None, parameters),
        Ok(yaml(
            r#"
            metadata:
              name: web-apps
              namespace: argocd
              annotations: {blue/count: '1e+06', missing: '<no value>'}
              finalizers: [resources-finalizer.argocd.argoproj.io]
            spec:
              project: ocean
              source: {repoURL: 'https://example.com/a.git', path: apps/web}
              destination: {name: in-cluster}
            "#
        ))
    );
}

/// 2.4: without parameters the template is returned unrendered and without the default finalizer, also by Go templates.
#[test]
fn an_empty_parameter_set_leaves_the_template_as_it_is() {
    let application = "
        metadata: {name: '{{ .name }}', namespace: elsewhere}
        spec: {project: '{{ upper .x }}', destination: {name: a}}
    ";
    let expected = yaml(
        "
        metadata: {name: '{{ .name }}', namespace: argocd}
        spec: {project: '{{ upper .x }}', destination: {name: a}}
        ",
    );
    assert_eq!(rendered(STRICT, application, None, "{}"), Ok(expected.clone()));
    assert_eq!(rendered(Engine::Fast, application, None, "{}"), Ok(expected));
}

/// 2.4: any finalizer of the template suppresses the default, and so does preserveResourcesOnDeletion.
#[test]
fn the_default_finalizer_is_added_only_where_nothing_speaks_against_it() {
    let finalizers = |finalizers: &str, preserve: bool| {
        let text = format!("{{metadata: {{name: a, finalizers: {finalizers}}}, spec: {{project: p}}}}");
        let renderer = Renderer::new(&GO, &template(&text), None, preserve).expect("a template");
        let object = renderer.render(&params("{x: own}"), "argocd").expect("an Application");
        object["metadata"].get("finalizers").cloned()
    };
    assert_eq!(finalizers("[]", false), Some(json!(["resources-finalizer.argocd.argoproj.io"])));
    assert_eq!(finalizers("[]", true), None);
    assert_eq!(finalizers("['{{ .x }}']", false), Some(json!(["own"])));
    // A list of one empty text is a list all the same.
    assert_eq!(finalizers("['{{ if false }}x{{ end }}']", false), Some(json!([""])));
}

/// 2.4: the namespace is forced to that of the set.
#[test]
fn the_namespace_of_the_template_is_rendered_and_then_forced() {
    let application = "{metadata: {name: a, namespace: '{{ .ns }}'}, spec: {project: p}}";
    let object = rendered(GO, application, None, "{ns: other}").expect("an Application");
    assert_eq!(object["metadata"]["namespace"], "argocd");
    assert!(rendered(STRICT, application, None, "{x: y}").is_err());
}

/// Argo CD's types leave empty strings out when they are written; map entries and list elements stay.
#[test]
fn fields_that_render_to_nothing_are_left_out_as_the_typed_object_leaves_them_out() {
    let application = r#"
        metadata: {name: a, labels: {empty: '{{ .e }}'}}
        spec:
          project: '{{ .e }}'
          source:
            repoURL: '{{ .e }}'
            path: '{{ .e }}'
            helm:
              valueFiles: ['{{ .e }}']
              values: '{{ .e }}'
              valuesObject: {empty: '{{ .e }}'}
            plugin: {parameters: [{name: a, string: '{{ .e }}'}]}
          destination: {server: '{{ .e }}', namespace: kept}
    "#;
    let object = rendered(GO, application, None, "{e: ''}").expect("an Application");
    assert_eq!(
        object["spec"],
        yaml(
            r#"
            project: ''
            source:
              repoURL: ''
              helm: {valueFiles: [''], valuesObject: {empty: ''}}
              plugin: {parameters: [{name: a, string: ''}]}
            destination: {namespace: kept}
            "#
        )
    );
    assert_eq!(object["metadata"]["labels"], json!({"empty": ""}));
}

/// Go decides by chance which of two keys that render alike wins; here it is the later template.
#[test]
fn of_two_keys_that_render_alike_the_later_template_wins() {
    let application = "
        metadata: {name: a, labels: {'{{ .b }}': second, '{{ .a }}': first, same: literal}}
        spec: {project: p}
    ";
    let object = rendered(GO, application, None, "{a: same, b: same}").expect("an Application");
    assert_eq!(object["metadata"]["labels"], json!({"same": "second"}));
}

/// A template that changes its parameters does so for its own Application only.
#[test]
fn changed_parameters_are_seen_within_one_application_only() {
    let text = "
        metadata: {annotations: {a: '{{ $_ := set .m \"x\" \"changed\" }}{{ .m.x }}'}, name: '{{ .m.x }}'}
        spec: {project: p}
    ";
    let renderer = Renderer::new(&GO, &template(text), None, true).expect("a template");
    let parameters = params("{m: {x: original}}");
    for _ in 0..2 {
        let object = renderer.render(&parameters, "argocd").expect("an Application");
        assert_eq!(object["metadata"]["name"], "changed");
    }
    assert_eq!(baton_template::Value::Map(parameters).to_string(), "map[m:map[x:original]]");
}

/// 2.2: functions that give something else each time stay available.
#[test]
fn time_and_randomness_are_to_be_had() {
    let application = "{metadata: {name: 'a-{{ randAlphaNum 8 | lower }}', annotations: {at: '{{ now | date \"2006\" }}'}}, spec: {project: p}}";
    let object = rendered(GO, application, None, "{x: v}").expect("an Application");
    assert_eq!(object["metadata"]["name"].as_str().map(str::len), Some(10));
    assert_eq!(object["metadata"]["annotations"]["at"].as_str().map(str::len), Some(4));
}

/// Whole numbers written as floats lose their fraction, as they do in Go; large integers keep every digit.
#[test]
fn numbers_in_free_form_values_are_written_as_go_writes_them() {
    let application = "
        metadata: {name: '{{ .n }}'}
        spec: {project: p, source: {repoURL: r, helm: {valuesObject: {a: 9007199254740993, c: 2.5}}}}
    ";
    let mut typed = template(application);
    let values =
        &mut typed.spec.source.as_mut().expect("a source").helm.as_mut().expect("helm").values_object;
    values.as_mut().expect("values").insert("b".into(), json!(1.0));
    let renderer = Renderer::new(&GO, &typed, None, true).expect("a template");
    let object = renderer.render(&params("{n: x}"), "argocd").expect("an Application");
    let values = &object["spec"]["source"]["helm"]["valuesObject"];
    assert_eq!(values.to_string(), r#"{"a":9007199254740993,"b":1,"c":2.5}"#);
}

#[test]
fn errors_name_template_field_line_and_column() {
    let in_field = |field: &str| {
        format!("{{metadata: {{name: a}}, spec: {{project: p, source: {{repoURL: r, helm: {{{field}}}}}}}}}")
    };
    for (engine, field, expected) in [
        (
            STRICT,
            r"parameters: [{name: a}, {name: b}, {name: c, value: 'x{{ .gone }}'}]",
            r#"template spec.source.helm.parameters[2].value, line 1, column 5: failed to execute go template x{{ .gone }}: executing "base" at <.gone>: map has no entry for key "gone""#,
        ),
        (
            STRICT,
            r#"values: "a: 1\nb: {{ .x }}\nc: {{ .x | 5 }}\n""#,
            "template spec.source.helm.values, line 3, column 4: failed to parse template a: 1\nb: {{ .x }}\nc: {{ .x | 5 }}\n: non executable command in pipeline stage 2",
        ),
        (
            STRICT,
            r"releaseName: '{{ .x }}{{ nofunc }}{{ .x }}'",
            r#"template spec.source.helm.releaseName, line 1, column 9: failed to parse template {{ .x }}{{ nofunc }}{{ .x }}: function "nofunc" not defined"#,
        ),
        (
            STRICT,
            r"valuesObject: {a.b/c: {'{{ .gone }}': 1}}",
            r#"template spec.source.helm.valuesObject["a.b/c"], line 1, column 4: failed to execute go template {{ .gone }}: executing "base" at <.gone>: map has no entry for key "gone""#,
        ),
        (
            Engine::Fast,
            r#"values: "{{x}}\n  {{x""#,
            "template spec.source.helm.values, line 2, column 3: invalid template: \"{{\" has no \"}}\": {{x}}\n  {{x",
        ),
    ] {
        let error = render(engine, &in_field(field), None, "{x: v}").expect_err(field);
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.subject(), Subject::Template);
        assert_eq!(error.reason(), "RenderTemplateParamsError");
    }
}
