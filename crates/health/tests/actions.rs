//! Actions: what is offered, what is done with parameters, and what comes back whole.

use std::collections::BTreeMap;

use baton_health::{
    ActionInfo, ActionParam, Change, Customizations, HealthError, actions, run_action, run_action_at,
};
use serde_json::{Value, json};

fn with(file: &str, script: &str) -> Customizations {
    Customizations::from_files([(format!("example.com/Thing/actions/{file}"), script.to_owned())])
        .expect("readable")
}

fn thing() -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": "it", "namespace": "shop", "annotations": {"a": "b"}, "generation": 7},
        "spec": {"replicas": 2, "empty": {}, "none": [], "volumes": [{"emptyDir": {}, "name": "v"}],
                 "id": 9_007_199_254_740_993_i64, "ratio": 0.5, "nothing": null}
    })
}

fn run(script: &str, params: &[(&str, &str)]) -> Result<Vec<Change>, HealthError> {
    let params = params.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    run_action(&thing(), "go", &params, &with("go/action.lua", script))
}

#[test]
fn actions_are_told_with_all_that_is_shown_of_them() {
    let script = r#"
        local actions = {}
        actions["resume"] = { disabled = obj.spec.replicas > 0 }
        actions["pause"] = { iconClass = "fa fa-pause", displayName = "Pause it" }
        actions["scale"] = { params = { { name = "replicas" }, { name = "now" } } }
        actions["plain"] = {}
        return actions"#;
    let named = |name: &str| ActionInfo { name: name.to_owned(), ..ActionInfo::default() };
    let param = |name: &str| ActionParam { name: name.to_owned() };
    let expected = [
        ActionInfo {
            icon_class: "fa fa-pause".to_owned(),
            display_name: "Pause it".to_owned(),
            ..named("pause")
        },
        named("plain"),
        ActionInfo { disabled: true, ..named("resume") },
        ActionInfo { params: vec![param("replicas"), param("now")], ..named("scale") },
    ];
    assert_eq!(actions(&thing(), &with("discovery.lua", script)).expect("it runs"), expected);
}

#[test]
fn a_kind_without_scripts_offers_nothing() {
    assert_eq!(actions(&thing(), &Customizations::default()), Ok(Vec::new()));
    assert_eq!(actions(&thing(), &with("discovery.lua", "return {}")), Ok(Vec::new()));
    let error = actions(&thing(), &with("discovery.lua", "return { 'go' }")).expect_err("no names");
    assert_eq!(error.to_string(), "expect table output from Lua script, not list");
}

#[test]
fn an_object_that_is_returned_comes_back_whole() {
    let mut expected = thing();
    expected["spec"]["replicas"] = json!(0);
    expected["spec"].as_object_mut().expect("a map").remove("nothing");
    assert_eq!(run("obj.spec.replicas = 0 return obj", &[]), Ok(vec![Change::Patch(expected)]));
}

#[test]
fn maps_stay_maps_even_where_a_script_empties_or_makes_them() {
    let emptied = run("obj.metadata.annotations['a'] = nil return obj", &[]).expect("it runs");
    let [Change::Patch(patched)] = emptied.as_slice() else { panic!("{emptied:?}") };
    assert_eq!(patched["metadata"]["annotations"], json!({}));

    let created = run(
        "return { { operation = 'create', resource = { kind = 'Job', metadata = { labels = {} }, spec = obj.spec } } }",
        &[],
    )
    .expect("it runs");
    let [Change::Create(job)] = created.as_slice() else { panic!("{created:?}") };
    assert_eq!(job["spec"]["empty"], json!({}));
    assert_eq!(job["spec"]["none"], json!([]));
    assert_eq!(job["spec"]["volumes"], json!([{"emptyDir": {}, "name": "v"}]));
    assert_eq!(job["metadata"]["labels"], json!({}));
}

#[test]
fn a_copy_made_by_the_script_keeps_empty_maps_too() {
    let copying = r#"
        local function copy(value)
          if type(value) ~= "table" then return value end
          local result = {}
          for key, field in next, value, nil do result[copy(key)] = copy(field) end
          setmetatable(result, copy(getmetatable(value)))
          return result
        end
        return { { operation = "create", resource = copy(obj) } }"#;
    let created = run(copying, &[]).expect("it runs");
    let [Change::Create(copied)] = created.as_slice() else { panic!("{created:?}") };
    assert_eq!(copied["spec"]["empty"], json!({}));
}

#[test]
fn several_changes_are_told_in_their_order() {
    let script = r#"
        local job = { apiVersion = "batch/v1", kind = "Job", metadata = { name = obj.metadata.name .. "-1" } }
        obj.spec.replicas = 5
        return { { operation = "create", resource = job }, { operation = "patch", resource = obj } }"#;
    let changes = run(script, &[]).expect("it runs");
    let [Change::Create(job), Change::Patch(patched)] = changes.as_slice() else { panic!("{changes:?}") };
    assert_eq!(job["metadata"]["name"], "it-1");
    assert_eq!(patched["spec"]["replicas"], 5);
    assert_eq!(
        patched["spec"]["id"], 9_007_199_254_740_993_i64,
        "whole numbers beyond 2^53 come back exactly"
    );
}

#[test]
fn parameters_are_texts() {
    let script =
        "obj.spec.replicas = tonumber(actionParams['replicas']) obj.kindOf = type(actionParams.replicas)
        return obj";
    let changes = run(script, &[("replicas", "12")]).expect("it runs");
    let [Change::Patch(patched)] = changes.as_slice() else { panic!("{changes:?}") };
    assert_eq!((&patched["spec"]["replicas"], &patched["kindOf"]), (&json!(12), &json!("string")));
    let error =
        run("if actionParams.replicas == nil then error('replicas is missing', 0) end return obj", &[]);
    assert_eq!(error.expect_err("told").to_string(), "replicas is missing");
}

#[test]
fn the_time_an_action_sees_is_the_one_it_is_given() {
    let script =
        "local os = require('os') obj.metadata.annotations['at'] = os.date('!%Y-%m-%dT%XZ') return obj";
    let now = "2026-03-04T05:06:07Z".parse().expect("a time");
    let changes = run_action_at(&thing(), "go", &BTreeMap::new(), &with("go/action.lua", script), now);
    let Ok([Change::Patch(patched)]) = changes.as_deref() else { panic!("{changes:?}") };
    assert_eq!(patched["metadata"]["annotations"]["at"], "2026-03-04T05:06:07Z");
}

#[test]
fn what_is_no_change_is_refused() {
    for (script, expected) in [
        ("return { { operation = 'delete', resource = obj } }", "unsupported operation: \"delete\""),
        ("return { { resource = obj } }", "unsupported operation: null"),
        ("return { { operation = 'patch' } }", "the script returned a change that is no map with a resource"),
        ("return { 'patch' }", "the script returned a change that is no map with a resource"),
        ("return 'done'", "expect table output from Lua script, not string"),
        ("return nil", "expect table output from Lua script, not nil"),
        ("return string.upper('x')", "<string>:1: attempt to index global 'string' (a nil value)"),
    ] {
        assert_eq!(run(script, &[]).expect_err(script).to_string(), expected, "{script}");
    }
    let error = run_action(&thing(), "other", &BTreeMap::new(), &with("go/action.lua", "return obj"));
    assert_eq!(error.expect_err("unknown").to_string(), "there is no action \"other\" for example.com/Thing");
}
