//! What was just applied does not differ, however it was written.

use baton_diff::Rules;
use serde_json::{Value, json};

use crate::objects::{config_map, definition, deployment, thing};
use crate::world::{World, changes};

async fn stays_the_same(world: &World, target: &Value, quickly: bool) {
    world.sync(target).await;
    let difference = world.judge(target).await;
    assert!(!difference.modified, "{}: {:#?}", target["kind"], changes(&difference));
    assert_eq!(
        world.is_quick(target, &Rules::default()).await,
        quickly,
        "{target}: {}",
        world.live(target).await
    );
}

#[tokio::test]
async fn objects_as_they_are_written_need_no_dry_run() {
    let world = World::new().await;
    for target in [
        config_map(),
        deployment(),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "stringData": {"a": "x"}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]}}),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "closed"},
            "spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "labels": {"a": "b"}}}),
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tidy", "annotations": {}},
            "spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "main", "image": "tidy:1"}]}}}}}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": format!("reader-{}", world.namespace)},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {
            "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}, "creationTimestamp": null},
                "spec": {"containers": [{"name": "main", "image": "db:1"}], "volumes": [{"name": "tmp", "emptyDir": {}}]}}}}),
    ] {
        stays_the_same(&world, &target, true).await;
    }
}

#[tokio::test]
async fn other_ways_to_write_a_value_are_no_difference() {
    let world = World::new().await;
    let mut amounts = deployment();
    amounts["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": 0.5}});
    stays_the_same(&world, &amounts, false).await;

    let claims = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {
        "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
        "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "main", "image": "db:1"}]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}}]}});
    stays_the_same(&world, &claims, false).await;
}

#[tokio::test]
async fn what_is_null_or_empty_is_no_difference() {
    let world = World::new().await;
    let mut empty = deployment();
    empty["metadata"]["annotations"] = Value::Null;
    empty["spec"]["template"]["metadata"]["annotations"] = json!({});
    empty["spec"]["template"]["spec"]["nodeSelector"] = json!({});
    empty["spec"]["template"]["spec"]["tolerations"] = json!([]);
    empty["spec"]["template"]["spec"]["securityContext"] = json!({});
    empty["spec"]["template"]["spec"]["containers"][0]["command"] = Value::Null;
    empty["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = json!([]);
    world.sync(&empty).await;
    let difference = world.judge(&empty).await;
    assert!(!difference.modified, "{:#?}", changes(&difference));
}

#[tokio::test]
async fn objects_without_a_full_schema_stay_the_same() {
    let world = World::new().await;
    world.install(&definition()).await;
    stays_the_same(&world, &definition(), true).await;
    let mut target =
        thing(json!({"a": {"b": [1, {"c": null}], "d": {}}, "list": [{"name": "x"}], "empty": [], "f": 1.5}));
    target["tags"] = json!(["b", "a"]);
    target["maybe"] = Value::Null;
    world.sync(&target).await;
    let difference = world.judge(&target).await;
    assert!(!difference.modified, "{:#?}", changes(&difference));
}

#[tokio::test]
async fn a_key_left_to_its_default_identifies_an_item() {
    let world = World::new().await;
    world.install(&definition()).await;
    let mut target = thing(json!({}));
    target["rules"] = json!([{"name": "b", "to": "x"}, {"name": "a", "port": 90}, {"name": "a", "to": "y"}]);
    stays_the_same(&world, &target, true).await;

    // The same item, with its key written out: nothing changes, but only the server knows.
    target["rules"][2]["port"] = json!(80);
    assert!(!world.judge(&target).await.modified);
    assert!(!world.is_quick(&target, &Rules::default()).await);
    target["rules"][1].as_object_mut().expect("an item").remove("port");
    target["rules"][2]["port"] = json!(90);
    assert!(world.judge(&target).await.modified);
}
