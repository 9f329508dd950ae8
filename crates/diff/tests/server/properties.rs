//! What holds for any object.

use baton_diff::{Quick, Rules, compare, fingerprint, prepare, quick};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

use crate::objects::{definition, thing};
use crate::world::{JSON_PATCH, World, changes};

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[a-z0-9]{1,6}".prop_map(Value::from),
        (0..1000i64).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
    ]
}

fn anything() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-e]", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn a_thing() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-e]", anything(), 1..5).prop_map(|spec| thing(json!(spec)))
}

fn a_config_map() -> impl Strategy<Value = Value> {
    let texts = || prop::collection::btree_map("[a-e]{1,2}", "[ -~]{0,8}", 1..6);
    (texts(), texts()).prop_map(|(data, annotations)| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": "thing", "annotations": annotations}})
    })
}

fn a_deployment() -> impl Strategy<Value = Value> {
    let container = (
        "[a-z]{1,4}:[0-9]",
        prop::collection::vec("[a-z]{1,3}", 0..3),
        prop::collection::btree_map("[A-F]", "[a-z]{1,4}", 0..4),
        prop::collection::btree_set(80..90i64, 0..3),
        prop::option::of(1..2000i64),
    )
        .prop_map(|(image, args, env, ports, cpu)| {
            let env: Vec<Value> =
                env.into_iter().rev().map(|(name, value)| json!({"name": name, "value": value})).collect();
            let ports: Vec<Value> = ports.into_iter().map(|port| json!({"containerPort": port})).collect();
            let mut container = json!({"image": image, "args": args, "env": env, "ports": ports});
            if let Some(cpu) = cpu {
                container["resources"] = json!({"limits": {"cpu": format!("{cpu}m")}});
            }
            container
        });
    (prop::collection::btree_map("[a-e]", container, 1..4), 0..5i64).prop_map(|(containers, replicas)| {
        let containers: Vec<Value> = containers
            .into_iter()
            .rev()
            .map(|(name, mut container)| {
                container["name"] = json!(name);
                container
            })
            .collect();
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "thing"}, "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": containers}}}})
    })
}

/// Places of values that somebody else may change, with another value for each.
fn leaves(object: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for root in ["data", "spec"] {
        collect(&object[root], &format!("/{root}"), &mut found);
    }
    collect(&object["metadata"]["annotations"], "/metadata/annotations", &mut found);
    // A selector cannot be changed, nor can labels it selects, nor what identifies an item.
    let fixed = ["/spec/selector", "/spec/template/metadata", "/cpu"];
    found.retain(|(place, _)| !fixed.iter().any(|fixed| place.contains(fixed)));
    found.retain(|(place, _)| {
        object["kind"] != "Deployment" || !(place.ends_with("/name") || place.ends_with("Port"))
    });
    found
}

fn collect(value: &Value, place: &str, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            for (name, below) in fields {
                collect(below, &format!("{place}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (index, below) in items.iter().enumerate() {
                collect(below, &format!("{place}/{index}"), found);
            }
        }
        Value::String(text) => found.push((place.to_owned(), json!(format!("{text}x")))),
        Value::Number(number) => {
            found.push((place.to_owned(), json!(number.as_i64().unwrap_or_default() + 1)))
        }
        Value::Bool(value) => found.push((place.to_owned(), json!(!value))),
        Value::Null => {}
    }
}

#[test]
fn what_is_applied_is_the_same_until_somebody_changes_it() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let world = runtime.block_on(async {
        let world = World::new().await;
        world.install(&definition()).await;
        world
    });
    let mut runner = TestRunner::new(Config { cases: 96, failure_persistence: None, ..Config::default() });
    let cases = (prop_oneof![a_thing(), a_config_map(), a_deployment()], any::<prop::sample::Index>());
    let outcome = runner.run(&cases, |(target, which)| {
        runtime.block_on(check(&world, &target, which));
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

async fn check(world: &World, target: &Value, which: prop::sample::Index) {
    let live = world.sync(target).await;
    let same = world.judge(target).await;
    assert!(!same.modified, "{:#?}", changes(&same));

    let leaves = leaves(&prepare(target));
    if leaves.is_empty() {
        return;
    }
    let (place, value) = which.get(&leaves);
    let change = json!([{"op": "replace", "path": place, "value": value}]);
    let changed = world.patch_as("another", target, JSON_PATCH, &change).await;
    let difference = world.judge(target).await;
    assert!(difference.modified, "{place} {value}");
    assert_eq!(changes(&difference).len(), 1, "{:#?}", changes(&difference));
    assert_ne!(fingerprint(&live), fingerprint(&changed));

    // What somebody else owns by now is ours again after a sync, and then nobody asks the server.
    world.sync(target).await;
    let live = world.live(target).await;
    let prepared = prepare(target);
    assert!(!compare(&prepared, &live, &live, &Rules::default(), false).modified);
    if target["kind"] == "ConfigMap" {
        assert_eq!(quick(&prepared, &live, &Rules::default()), Quick::Same);
    }
}
