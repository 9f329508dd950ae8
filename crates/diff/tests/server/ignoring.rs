//! Differences that do not count by rule.

use std::collections::BTreeMap;

use baton_api::application::ResourceIgnoreDifferences;
use baton_diff::{Rules, SystemRules, compare, prepare, respect};
use serde_json::{Value, json};

use crate::objects::{config_map, deployment};
use crate::world::{JSON_PATCH, MERGE, World, changes};

fn rules(rules: Value) -> Rules {
    let rules: Vec<ResourceIgnoreDifferences> = serde_json::from_value(rules).expect("rules");
    Rules::compile(&rules, &SystemRules::default()).expect("rules")
}

fn system(settings: &[(&str, &str)]) -> SystemRules {
    let data: BTreeMap<String, String> =
        settings.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    SystemRules::from_config_map(&data).expect("settings")
}

#[tokio::test]
async fn each_way_to_name_a_field_ignores_it() {
    let world = World::new().await;
    let target = deployment();
    world.sync(&target).await;
    world.patch_as("kube-controller-manager", &target, MERGE, &json!({"spec": {"replicas": 7}})).await;
    let replicas = |how: Value| {
        let mut rule = json!({"group": "apps", "kind": "Deployment"});
        rule.as_object_mut().expect("a rule").extend(how.as_object().expect("an object").clone());
        rules(json!([rule]))
    };
    for (how, ignores) in [
        (json!({"jsonPointers": ["/spec/replicas"]}), true),
        (json!({"jsonPointers": ["/spec"]}), true),
        (json!({"jsonPointers": ["/spec/replicas"], "name": "web", "namespace": world.namespace}), true),
        (json!({"jqPathExpressions": [".spec | select(.replicas > 5) | .replicas"]}), false),
        (json!({"jqPathExpressions": [".spec.replicas", ".spec.nothing[]"]}), true),
        (json!({"managedFieldsManagers": ["kube-controller-manager"]}), true),
        (json!({"managedFieldsManagers": ["somebody"]}), false),
        (json!({"jsonPointers": ["/spec/replicas"], "name": "api"}), false),
        (json!({"jsonPointers": ["spec/replicas", "/spec/nothing"]}), false),
        (json!({"jsonPointers": ["/spec/replicas"], "kind": "Deploy*", "group": "*"}), true),
        (json!({"jsonPointers": ["/spec/replicas"], "group": ""}), false),
    ] {
        let difference = world.judge_by(&target, &replicas(how.clone())).await;
        assert_eq!(!difference.modified, ignores, "{how}: {:#?}", changes(&difference));
    }
    let plain = replicas(json!({"jsonPointers": ["/spec/replicas"]}));
    assert!(world.is_quick(&target, &plain).await);
    assert!(!world.is_quick(&target, &Rules::default()).await);
}

#[tokio::test]
async fn the_operator_ignores_for_everybody() {
    let world = World::new().await;
    let target = deployment();
    world.sync(&target).await;
    world.patch_as("another", &target, MERGE, &json!({"spec": {"replicas": 7}})).await;
    let pointers = "jsonPointers:\n- /spec/replicas\n";
    let legacy =
        "apps/*:\n  health.lua: x\n  ignoreDifferences: |\n    jqPathExpressions: [.spec.replicas]\n";
    for (key, value, ignores) in [
        ("resource.customizations.ignoreDifferences.apps_Deployment", pointers, true),
        ("resource.customizations.ignoreDifferences.all", pointers, true),
        ("resource.customizations.ignoreDifferences.Deployment", pointers, false),
        ("resource.customizations", legacy, true),
    ] {
        let rules = Rules::compile(&[], &system(&[(key, value)])).expect("rules");
        assert_eq!(!world.judge_by(&target, &rules).await.modified, ignores, "{key}");
        assert_ne!(rules.digest(), Rules::default().digest());
    }
}

#[tokio::test]
async fn an_item_of_a_list_is_ignored_by_its_name() {
    let world = World::new().await;
    let target = deployment();
    world.sync(&target).await;
    let change =
        json!([{"op": "replace", "path": "/spec/template/spec/initContainers/1/image", "value": "two:9"}]);
    world.patch_as("another", &target, JSON_PATCH, &change).await;
    let second = r#".spec.template.spec.initContainers[] | select(.name == "second")"#;
    for (expression, ignores) in
        [(second, true), (&format!("{second}.image"), true), (&second.replace("second", "first"), false)]
    {
        let rules =
            rules(json!([{"group": "apps", "kind": "Deployment", "jqPathExpressions": [expression]}]));
        assert_eq!(!world.judge_by(&target, &rules).await.modified, ignores, "{expression}");
    }
}

#[tokio::test]
async fn rules_of_aggregated_roles_are_ignored_when_asked() {
    let world = World::new().await;
    let target = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": format!("all-{}", world.namespace)}, "rules": [],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"no": "match"}}]}});
    world.sync(&target).await;
    let filled = json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    world.patch_as("clusterrole-aggregation-controller", &target, MERGE, &filled).await;
    assert!(world.judge(&target).await.modified);
    let asked = system(&[("resource.compareoptions", "ignoreAggregatedRoles: true")]);
    assert!(!world.judge_by(&target, &Rules::compile(&[], &asked).expect("rules")).await.modified);
}

#[tokio::test]
async fn respected_fields_keep_their_live_values() {
    let world = World::new().await;
    let target = deployment();
    world.sync(&target).await;
    let change = json!([
        {"op": "replace", "path": "/spec/replicas", "value": 7},
        {"op": "replace", "path": "/spec/template/spec/initContainers/1/image", "value": "two:9"},
        {"op": "add", "path": "/spec/template/spec/initContainers/0", "value": {"name": "zero", "image": "zero:1"}},
        {"op": "add", "path": "/metadata/annotations", "value": {"note": "kept"}},
        {"op": "replace", "path": "/spec/template/spec/containers/0/env/0/value", "value": "changed"},
    ]);
    world.patch_as("another", &target, JSON_PATCH, &change).await;
    let rules = rules(json!([{"group": "apps", "kind": "Deployment",
        "jsonPointers": ["/spec/replicas", "/metadata/annotations/note", "/status"],
        "jqPathExpressions": [".spec.template.spec.initContainers[] | select(.name == \"second\").image"]}]));
    let live = world.live(&target).await;
    let kept = respect(&prepare(&target), &live, &rules);
    assert_eq!(kept["spec"]["replicas"], 7);
    assert_eq!(
        kept["spec"]["template"]["spec"]["initContainers"],
        json!([
        {"name": "first", "image": "one:1"}, {"name": "second", "image": "two:9"}])
    );
    assert_eq!(kept["metadata"]["annotations"], json!({"note": "kept"}));
    assert_eq!(kept["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"], "1");

    let after = world.sync(&kept).await;
    assert_eq!(
        (&after["spec"]["replicas"], &after["metadata"]["annotations"]["note"]),
        (&json!(7), &json!("kept"))
    );
    assert!(!world.judge_by(&target, &rules).await.modified);
}

#[tokio::test]
async fn fields_of_trusted_managers_are_respected() {
    let world = World::new().await;
    let target = deployment();
    world.sync(&target).await;
    world.patch_as("scaler", &target, MERGE, &json!({"spec": {"replicas": 7, "paused": true}})).await;
    let rules = rules(json!([{"group": "apps", "kind": "Deployment", "managedFieldsManagers": ["scaler"]}]));
    let mut expected = prepare(&target);
    expected["spec"]["replicas"] = json!(7);
    assert_eq!(respect(&prepare(&target), &world.live(&target).await, &rules), expected);
}

#[tokio::test]
async fn what_is_gone_stays_gone_where_that_is_ignored() {
    let world = World::new().await;
    let target = config_map();
    world.sync(&target).await;
    world.patch_as("another", &target, MERGE, &json!({"data": {"a": null}})).await;
    let rules = rules(json!([{"kind": "ConfigMap", "jsonPointers": ["/data/a"]}]));
    assert!(!world.judge_by(&target, &rules).await.modified);
    assert_eq!(respect(&target, &world.live(&target).await, &rules)["data"], json!({"b": "2"}));
}

#[tokio::test]
async fn mutations_count_when_asked() {
    let world = World::new().await;
    let target = config_map();
    let live = world.sync(&target).await;
    let mut predicted = world.predict(&target).await;
    assert!(!compare(&target, &predicted, &live, &Rules::default(), true).modified);
    predicted["data"]["injected"] = json!("by a webhook");
    predicted["metadata"]["generation"] = json!(9);
    predicted["status"] = json!({});
    assert!(!compare(&target, &predicted, &live, &Rules::default(), false).modified);
    assert_eq!(
        changes(&compare(&target, &predicted, &live, &Rules::default(), true)),
        [r#"/data/injected: null -> "by a webhook""#]
    );
}

#[test]
fn rules_that_cannot_be_used_are_named() {
    let bad: Vec<ResourceIgnoreDifferences> =
        serde_json::from_value(json!([{"kind": "A"}, {"kind": "B", "jqPathExpressions": [".a["]}]))
            .expect("rules");
    let error = Rules::compile(&bad, &SystemRules::default()).expect_err("a bad expression").to_string();
    assert!(error.starts_with("spec.ignoreDifferences[1].jqPathExpressions: jq expression"), "{error}");
    for (key, value, said) in [
        ("resource.customizations.ignoreDifferences.a_b_c", "{}", "must end in <group>_<Kind> or <Kind>"),
        ("resource.customizations.ignoreDifferences.all", "{", "yaml: line"),
        (
            "resource.customizations.ignoreDifferences.all",
            "jqPathExpressions: [')']",
            "jqPathExpressions: jq expression",
        ),
    ] {
        let data = [(key.to_owned(), value.to_owned())].into();
        let error = SystemRules::from_config_map(&data).expect_err(key).to_string();
        assert!(error.contains(key) && error.contains(said), "{error}");
    }
}

#[tokio::test]
async fn respected_items_are_found_by_their_keys() {
    let world = World::new().await;
    let target = deployment();
    world.sync(&target).await;
    let change = json!([
        {"op": "add", "path": "/spec/template/spec/containers/0/ports/0", "value": {"containerPort": 79}},
        {"op": "add", "path": "/spec/template/spec/containers/0/ports/1/hostPort", "value": 8080},
        {"op": "replace", "path": "/spec/template/spec/containers/0/args/1", "value": "--c"},
    ]);
    world.patch_as("another", &target, JSON_PATCH, &change).await;
    let rules = rules(json!([{"group": "apps", "kind": "Deployment", "jqPathExpressions": [
        ".spec.template.spec.containers[].ports[].hostPort",
        ".spec.template.spec.containers[].args[1]",
    ]}]));
    let kept = respect(&prepare(&target), &world.live(&target).await, &rules);
    let container = &kept["spec"]["template"]["spec"]["containers"][0];
    let ports = json!([{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81, "protocol": "UDP", "name": "dns"}]);
    assert_eq!(container["ports"], ports);
    assert_eq!(container["args"], json!(["--a", "--c"]));
    world.sync(&kept).await;
    assert!(!world.judge_by(&target, &rules).await.modified);
}

#[tokio::test]
async fn a_whole_item_that_is_ignored_comes_and_goes_as_it_lives() {
    let world = World::new().await;
    let target = deployment();
    world.sync(&target).await;
    let change = json!([
        {"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "X_TOKEN", "value": "1"}},
        {"op": "remove", "path": "/spec/template/spec/containers/0/env/0"},
    ]);
    world.patch_as("another", &target, JSON_PATCH, &change).await;
    let rules = rules(json!([{"group": "apps", "kind": "Deployment", "jqPathExpressions": [
        ".spec.template.spec.containers[].env[] | select(.name == \"A\" or (.name | startswith(\"X_\")))"]}]));
    assert!(!world.judge_by(&target, &rules).await.modified);
    let kept = respect(&prepare(&target), &world.live(&target).await, &rules);
    let env = &kept["spec"]["template"]["spec"]["containers"][0]["env"];
    assert_eq!(*env, json!([{"name": "B", "value": "2"}, {"name": "X_TOKEN", "value": "1"}]));
}
