//! Matrix, merge and post-selectors: what holds for any parameters, and that no generator makes the program panic.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use baton_api::ApplicationSet;
use baton_generators::offline::Offline;
use baton_generators::{Generated, GeneratorError, Generators, Settings};
use baton_scm::Hosts;
use baton_source::Repositories;
use baton_template::Value as Param;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Generators that reach nothing outside.
static GENERATORS: LazyLock<Generators> = LazyLock::new(|| {
    let hosts = baton_scm::Settings { enabled: false, ..baton_scm::Settings::default() };
    let hosts = Hosts::new(hosts).expect("usable settings");
    Generators::new(Repositories::new(baton_source::Settings::default()), hosts, Settings::default())
});

fn generate(generators: Value, go_template: bool) -> Result<Generated, GeneratorError> {
    let set: ApplicationSet = serde_json::from_value(json!({
        "metadata": {"name": "set", "namespace": "argocd"},
        "spec": {"goTemplate": go_template, "generators": generators, "template": {}},
    }))
    .expect("an ApplicationSet");
    run(&set)
}

fn run(set: &ApplicationSet) -> Result<Generated, GeneratorError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(GENERATORS.generate(set, &Offline::new("argocd")))
}

fn sets(generators: Value, go_template: bool) -> Result<Vec<String>, String> {
    let generated = generate(generators, go_template).map_err(|error| error.to_string())?;
    let sets = generated.groups.iter().flat_map(|group| &group.params);
    Ok(sets.map(|set| Param::Map(set.clone()).to_string()).collect())
}

fn list(elements: impl Into<Value>) -> Value {
    json!({"list": {"elements": elements.into()}})
}

#[test]
fn the_first_child_of_a_matrix_wins_at_every_depth() {
    let left = list(json!([{"a": {"x": "left", "l": ""}, "k": "", "n": null, "s": [1]}]));
    let right = list(
        json!([{"a": {"x": "right", "l": "right", "r": "right"}, "k": "right", "n": 1, "s": [2, 3], "m": {}}]),
    );
    let matrix = json!([{"matrix": {"generators": [left, right]}}]);
    let expected = "map[a:map[l: r:right x:left] k: m:map[] n:<nil> s:[1]]";
    assert_eq!(sets(matrix, true), Ok(vec![expected.to_owned()]));
}

#[test]
fn a_matrix_of_texts_refuses_two_values_of_one_key() {
    let matrix =
        |right: Value| json!([{"matrix": {"generators": [list(json!([{"a": "1"}])), list(json!([right]))]}}]);
    assert_eq!(sets(matrix(json!({"a": "1", "b": "2"})), false), Ok(vec!["map[a:1 b:2]".to_owned()]));
    let error = sets(matrix(json!({"a": "2"})), false).expect_err("two values");
    assert!(error.contains("found duplicate key a with different value, a: 1 ,b: 2"), "{error}");
    assert!(error.starts_with("spec.generators[0].matrix: "), "{error}");
}

#[test]
fn sets_of_a_matrix_share_nothing_that_a_template_could_write_to() {
    let left = list(json!([{"shared": {"a": "1"}, "l": [{"b": "2"}]}]));
    let matrix = json!([{"matrix": {"generators": [left, list(json!([{"n": "1"}, {"n": "2"}]))]}}]);
    let generated = generate(matrix, true).expect("two sets");
    let params = &generated.groups[0].params;
    let Some(Param::Map(shared)) = params[0].get("shared") else { panic!("a map") };
    shared.insert("a", Param::from("changed"));
    let Some(Param::List(list)) = params[0].get("l") else { panic!("a list") };
    let Param::Map(item) = &list.items()[0] else { panic!("a map") };
    item.insert("b", Param::from("changed"));
    assert_eq!(Param::Map(params[1].clone()).to_string(), "map[l:[map[b:2]] n:2 shared:map[a:1]]");
}

#[test]
fn children_are_checked() {
    let one = || list(json!([{"a": "b"}]));
    for (generator, place, part) in [
        (
            json!({"matrix": {"generators": [one()]}}),
            "spec.generators[0].matrix",
            "found less than two generators, Matrix",
        ),
        (
            json!({"matrix": {"generators": [one(), one(), one()]}}),
            "spec.generators[0].matrix",
            "found more than two generators, Matrix",
        ),
        (
            json!({"merge": {"generators": [one()], "mergeKeys": ["a"]}}),
            "spec.generators[0].merge",
            "found less than two generators, Merge",
        ),
        (
            json!({"merge": {"generators": [one(), one()], "mergeKeys": []}}),
            "spec.generators[0].merge",
            "no merge keys were specified",
        ),
        (
            json!({"matrix": {"generators": [{}, one()]}}),
            "spec.generators[0].matrix.generators[0]",
            "child generator generated no parameters",
        ),
        (
            json!({"matrix": {"generators": [{"list": {}, "clusters": {}}, one()]}}),
            "spec.generators[0].matrix.generators[0]",
            "found more than one generator in matrix.Generators",
        ),
        (
            json!({"matrix": {"generators": [one(), {"matrix": {"generators": [one(), {"matrix": {}}]}}]}}),
            "spec.generators[0].matrix.generators[1].matrix.generators[1]",
            "child generator generated no parameters",
        ),
        (
            json!({"merge": {"generators": [one(), {"matrix": {"generators": "text"}}], "mergeKeys": ["a"]}}),
            "spec.generators[0].merge.generators[1]",
            "cannot unmarshal",
        ),
        (
            json!({"merge": {"generators": [one(), list(json!([{"a": "x"}, {"a": "x"}]))], "mergeKeys": ["a"]}}),
            "spec.generators[0].merge.generators[1]",
            "Duplicate key was {\"a\":\"x\"}",
        ),
        (
            json!({"list": {"elements": []}, "selector": {"matchLabels": {"path[0]": "x"}}}),
            "spec.generators[0].selector",
            "error parsing label selector",
        ),
    ] {
        let error = generate(json!([generator]), true).expect_err(part);
        assert_eq!(error.place(), place, "{error}");
        assert!(error.message().contains(part), "{error}");
    }
}

#[test]
fn selectors_see_flattened_parameters() {
    let elements = json!([{"a": {"b": [true, 1_000_000]}, "url": "https://x.y/z?q"}, {"a": "text"}]);
    for (selector, kept) in [
        (json!({}), 2),
        (json!({"matchLabels": {"a.b.0": "true"}}), 1),
        (json!({"matchLabels": {"a.b.1": "1e+06"}}), 1),
        (json!({"matchLabels": {"url": "https://x.y/z?q"}}), 1),
        (json!({"matchExpressions": [{"key": "url", "operator": "NotIn", "values": ["x"]}]}), 2),
        (json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}), 1),
        (json!({"matchExpressions": [{"key": "a.b", "operator": "DoesNotExist"}]}), 2),
    ] {
        let generator = json!([{"list": {"elements": elements}, "selector": selector}]);
        assert_eq!(sets(generator, true).map(|sets| sets.len()), Ok(kept), "{selector}");
        let nested = json!({"list": {"elements": elements}, "selector": selector});
        let matrix = json!([{"matrix": {"generators": [nested, list(json!([{"z": 1}]))]}}]);
        assert_eq!(sets(matrix, true).map(|sets| sets.len()), Ok(kept), "nested {selector}");
    }
}

#[test]
fn several_generators_of_one_entry_run_in_order() {
    let entry = json!([{"plugin": null, "clusters": {}, "list": {"elements": [{"a": "b"}]}}]);
    let generated = generate(entry, true).expect("parameters");
    assert_eq!(
        generated.groups.iter().map(|group| (group.generator, group.params.len())).collect::<Vec<_>>(),
        [(0, 1), (0, 1)]
    );
}

#[test]
fn an_entry_without_a_known_generator_is_an_error_and_not_nothing() {
    for entry in [json!({}), json!({"unknown": {}}), json!({"selector": {}})] {
        let error =
            generate(json!([{"list": {"elements": [{"a": "b"}]}}, entry]), true).expect_err("no generator");
        assert!(
            error.to_string().contains("spec.generators[1]: the entry holds no known generator"),
            "{error}"
        );
    }
}

#[test]
fn a_generators_template_lies_over_that_of_the_set() {
    let set: ApplicationSet = serde_json::from_value(json!({
        "spec": {
            "generators": [
                {"list": {"elements": [], "template": {"metadata": {"name": "own"}, "spec": {}}}},
                {"matrix": {"generators": [
                    {"list": {"elements": [], "template": {"metadata": {"name": "ignored"}, "spec": {}}}},
                    {"list": {"elements": []}},
                ]}},
            ],
            "template": {"metadata": {"name": "common", "labels": {"a": "b"}}, "spec": {"project": "p"}},
        },
    }))
    .expect("an ApplicationSet");
    let generated = run(&set).expect("parameters");
    let names: Vec<_> = generated.groups.iter().map(|group| group.template.metadata.name.as_str()).collect();
    assert_eq!(names, ["own", "common"]);
    assert_eq!(generated.groups[0].template.spec.project, "p");
    assert_eq!(
        generated.groups[0].template.metadata.labels,
        BTreeMap::from([("a".to_owned(), "b".to_owned())])
    );
}

#[test]
fn values_may_nest_as_deep_as_yaml_is_read() {
    let deep = format!("- {{k: x, deep: {}{}}}", "[{a: ".repeat(240), "}]".repeat(240));
    let child = || json!({"list": {"elementsYaml": deep}, "selector": {"matchLabels": {"k": "x"}}});
    for go_template in [true, false] {
        let matrix = json!({"matrix": {"generators": [child(), child()]}});
        let merge = json!({"merge": {"generators": [child(), child()], "mergeKeys": ["k", "deep"]}});
        assert_eq!(sets(json!([matrix]), go_template).map(|sets| sets.len()), Ok(1));
        assert_eq!(sets(json!([merge]), go_template).map(|sets| sets.len()), Ok(1));
    }
    let deeper = format!("- {}{}", "[".repeat(2_000), "]".repeat(2_000));
    assert!(sets(json!([{"list": {"elementsYaml": deeper}}]), true).is_err());
}

/// Any JSON, small.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-c{} .]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..3)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Elements with distinct keys `k`.
fn keyed() -> impl Strategy<Value = Vec<Value>> {
    prop::collection::btree_map("[x-z]{1,2}", prop::collection::btree_map("[a-c]", json_value(), 0..3), 0..5)
        .prop_map(|sets| {
            let with_key = |(key, mut set): (String, BTreeMap<String, Value>)| {
                set.insert("k".to_owned(), Value::from(key));
                Value::Object(set.into_iter().collect())
            };
            sets.into_iter().map(with_key).collect()
        })
}

/// Any entry that might be a generator.
fn generator() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        Just(""),
        Just("a"),
        Just("{{a}}"),
        Just("{{ .a.b }}"),
        Just("{{"),
        Just("$x:y"),
        Just("../*"),
        Just("[")
    ];
    let selector = prop_oneof![
        Just(json!({})),
        Just(json!({"matchLabels": {"a": "b"}})),
        Just(json!({"matchExpressions": [{"key": "a", "operator": "In"}]})),
    ];
    let field = (text, selector, json_value());
    let terminal = (0..9usize, field).prop_map(|(kind, (text, selector, any))| match kind {
        0 => json!({"list": {"elements": [any, {"a": any}]}, "selector": selector}),
        1 => json!({"list": {"elementsYaml": format!("- {any}")}}),
        2 => json!({"clusters": {"selector": selector, "values": {"v": text}, "flatList": any == Value::Null}}),
        3 => json!({"git": {"repoURL": text, "revision": text, "files": [{"path": text}]}}),
        4 => json!({"git": {"repoURL": text, "revision": text, "directories": [{"path": text, "exclude": true}]}}),
        5 => json!({"plugin": {"configMapRef": {"name": text}, "input": {"parameters": {"a": any}}}}),
        6 => json!({"clusterDecisionResource": {"configMapRef": text, "name": text}}),
        7 => json!({"pullRequest": {"values": {"v": text}}, "scmProvider": {}}),
        _ => json!({}),
    });
    terminal.prop_recursive(3, 12, 3, |inner| {
        (any::<bool>(), prop::collection::vec(inner, 0..4)).prop_map(|(matrix, children)| {
            if matrix {
                json!({"matrix": {"generators": children}})
            } else {
                json!({"merge": {"generators": children, "mergeKeys": ["a"]}})
            }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_matrix_has_every_pair_in_order(left in keyed(), right in keyed()) {
        let rename = |set: &Value| json!({"r": set["k"]});
        let right: Vec<Value> = right.iter().map(rename).collect();
        let matrix = json!([{"matrix": {"generators": [list(left.clone()), list(right.clone())]}}]);
        let generated = generate(matrix, true).expect("no templates, no error");
        let pairs: Vec<(String, String)> = generated.groups[0]
            .params
            .iter()
            .map(|set| (set.get("k").unwrap_or_default().to_string(), set.get("r").unwrap_or_default().to_string()))
            .collect();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let expected: Vec<(String, String)> = left
            .iter()
            .flat_map(|left| right.iter().map(move |right| (text(&left["k"]), text(&right["r"]))))
            .collect();
        prop_assert_eq!(pairs, expected);
    }

    #[test]
    fn a_merge_keeps_the_sets_of_its_base(base in keyed(), over in keyed()) {
        let merge = |others: Vec<Value>| {
            let mut children = vec![list(base.clone())];
            children.extend(others);
            sets(json!([{"merge": {"generators": children, "mergeKeys": ["k", "k"]}}]), true).expect("unique keys")
        };
        let alone = merge(vec![list(json!([]))]);
        prop_assert_eq!(alone.len(), base.len());
        prop_assert_eq!(&merge(vec![list(base.clone())]), &alone, "merging a base with itself changes nothing");
        let merged = merge(vec![list(over.clone())]);
        prop_assert_eq!(merged.len(), base.len());
        prop_assert_eq!(&merge(vec![list(over.clone()), list(over.clone())]), &merged, "twice is as once");
        let keys = |sets: &[Value]| sets.iter().map(|set| set["k"].to_string()).collect::<BTreeSet<_>>();
        if keys(&base).is_disjoint(&keys(&over)) {
            prop_assert_eq!(merged, alone);
        }
    }

    #[test]
    fn the_order_of_a_base_does_not_matter(base in keyed(), over in keyed()) {
        let merge = |base: Vec<Value>| {
            sets(json!([{"merge": {"generators": [list(base), list(over.clone())], "mergeKeys": ["k"]}}]), true)
        };
        let backwards: Vec<Value> = base.iter().rev().cloned().collect();
        prop_assert_eq!(merge(base), merge(backwards));
    }

    #[test]
    fn no_generator_panics(entries in prop::collection::vec(generator(), 0..3), go_template: bool) {
        if let Err(error) = generate(Value::from(entries), go_template) {
            prop_assert!(error.place().starts_with("spec.generators["), "{}", error);
        }
    }

    #[test]
    fn no_json_panics(fields in prop::collection::btree_map("list|clusters|git|matrix|merge|plugin|selector", json_value(), 0..3)) {
        let entry = Value::Object(fields.into_iter().collect::<Map<_, _>>());
        // Most of it is no generator at all; what is one must not panic.
        if serde_json::from_value::<baton_api::generators::Generator>(entry.clone()).is_ok() {
            let _ = generate(json!([entry]), true);
        }
    }
}
