//! The second child of a matrix (1.14). Expected values are worked by hand.

use crate::support::{GO, STRICT, params, yaml};
use baton_render::{Engine, Interpolation, interpolate};

fn interpolated(engine: Engine, generator: &str, parameters: &str) -> Result<serde_json::Value, String> {
    interpolate(&engine, &yaml(generator), &params(parameters)).map_err(|error| error.to_string())
}

#[test]
fn everything_in_a_generator_is_filled_in() {
    for (engine, generator, expected) in [
        (
            GO,
            "{list: {elements: [{a: '{{ .x }}', '{{ .x }}': 1, n: null}], elementsYaml: '[{b: {{ .x }}}]'}}",
            "{list: {elements: [{a: one, one: 1}], elementsYaml: '[{b: one}]'}}",
        ),
        (
            Engine::Fast,
            "{git: {repoURL: 'https://h/{{x}}.git', revision: HEAD, files: [{path: '{{ x }}/{{y}}/*.json'}]}}",
            "{git: {repoURL: 'https://h/one.git', revision: HEAD, files: [{path: 'one/{{y}}/*.json'}]}}",
        ),
        (
            GO,
            "{clusters: {selector: {matchLabels: {'{{ .x }}': '{{ .x }}'}, matchExpressions: [{key: k, operator: In, values: ['{{ .x }}']}]}}}",
            "{clusters: {selector: {matchLabels: {one: one}, matchExpressions: [{key: k, operator: In, values: [one]}]}}}",
        ),
        (
            GO,
            "{matrix: {generators: [{list: {elements: [{a: '{{ .x }}'}]}, selector: {matchLabels: {a: '{{ .x }}'}}}, {clusters: {values: {late: '{{ .name }}'}}}]}}",
            "{matrix: {generators: [{list: {elements: [{a: one}]}, selector: {matchLabels: {a: one}}}, {clusters: {values: {late: '{{ .name }}'}}}]}}",
        ),
        (
            GO,
            "{merge: {mergeKeys: ['{{ .x }}'], generators: [{plugin: {configMapRef: {name: '{{ .x }}'}, input: {parameters: {p: {q: '{{ .x }}'}}}}}]}}",
            "{merge: {mergeKeys: [one], generators: [{plugin: {configMapRef: {name: one}, input: {parameters: {p: {q: one}}}}}]}}",
        ),
    ] {
        assert_eq!(interpolated(engine, generator, "{x: one}"), Ok(yaml(expected)), "{generator}");
    }
}

/// 1.3: the selector beside the generator is read as written. Templates of children are not used.
#[test]
fn the_selector_beside_the_generator_and_templates_stay_as_written() {
    let generator = "
        list: {elements: [], template: {metadata: {name: '{{ .gone }}'}}}
        selector: {matchLabels: {a: '{{ .gone }}'}}
    ";
    assert_eq!(interpolated(STRICT, generator, "{x: one}"), Ok(yaml(generator)));
}

#[test]
fn values_that_lack_a_key_keep_their_text() {
    for kind in ["git", "clusters", "scmProvider", "pullRequest", "plugin", "clusterDecisionResource"] {
        let generator = |values: &str| format!("{{{kind}: {{values: {values}}}}}");
        let written =
            "{now: '{{ .x }}', '{{ .k }}': '{{ .x }}', later: '{{ .x }}-{{ .name }}', field: '{{ .x.y }}'}";
        let expected = "{now: one, '{{ .k }}': one, later: '{{ .x }}-{{ .name }}', field: '{{ .x.y }}'}";
        // Also without the option a missing key is left for later here.
        for engine in [GO, STRICT] {
            let result = interpolated(engine, &generator(written), "{x: one}");
            assert_eq!(result, Ok(yaml(&generator(expected))), "{kind}");
        }
        let error = interpolated(GO, &generator("{bad: '{{ fail .x }}'}"), "{x: one}").expect_err("it fails");
        assert!(error.starts_with(&format!("generator {kind}.values.bad, line 1, column 4: ")), "{error}");
    }
    let error = interpolated(STRICT, "{list: {elements: [{values: {a: '{{ .gone }}'}}]}}", "{x: one}");
    assert!(error.is_err_and(|error| error.starts_with("generator list.elements[0].values.a, ")));
}

#[test]
fn without_parameters_nothing_is_filled_in() {
    let generator = "{list: {elements: [{a: '{{ .x }}', n: null}]}}";
    assert_eq!(interpolated(STRICT, generator, "{}"), Ok(yaml(generator)));
    let compiled = Interpolation::compile(&STRICT, &yaml(generator)).expect("a generator");
    assert_eq!(compiled.render(&params("{}")), Ok(yaml(generator)));
    assert_eq!(compiled.render(&params("{x: 1}")), Ok(yaml("{list: {elements: [{a: '1'}]}}")));
}
