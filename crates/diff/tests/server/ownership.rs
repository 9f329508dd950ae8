//! Which changes of a live object count: those of what we own.

use baton_diff::{Quick, Rules, compare, prepare, quick};
use serde_json::{Value, json};

use crate::objects::{config_map, definition, deployment, thing};
use crate::world::{JSON_PATCH, MERGE, World, changes};

#[tokio::test]
async fn what_another_changes_of_ours_counts() {
    let world = World::new().await;
    let target = deployment();
    world.sync(&target).await;
    world.patch_as("kubectl-edit", &target, MERGE, &json!({"spec": {"replicas": 5}})).await;
    let image =
        json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "web:9"}]);
    world.patch_as("kubectl-set", &target, JSON_PATCH, &image).await;
    assert_eq!(
        changes(&world.judge(&target).await),
        ["/spec/replicas: 5 -> 3", r#"/spec/template/spec/containers/0/image: "web:9" -> "web:1""#,]
    );
    world.sync(&target).await;
    assert!(!world.judge(&target).await.modified);
}

#[tokio::test]
async fn what_another_removes_of_ours_counts() {
    let world = World::new().await;
    let target = deployment();
    world.sync(&target).await;
    let removal = json!([
        {"op": "remove", "path": "/metadata/labels/app"},
        {"op": "remove", "path": "/spec/template/spec/containers/0/env/0"},
        {"op": "remove", "path": "/spec/template/spec/initContainers/1"},
    ]);
    world.patch_as("kubectl-edit", &target, JSON_PATCH, &removal).await;
    let difference = world.judge(&target).await;
    let predicted = &difference.predicted["spec"]["template"]["spec"];
    assert_eq!(difference.predicted["metadata"]["labels"], json!({"app": "web"}));
    assert_eq!(
        predicted["containers"][0]["env"],
        json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}])
    );
    assert_eq!(predicted["initContainers"][1]["name"], "second");
    assert_eq!(difference.live["metadata"]["labels"], Value::Null);
}

#[tokio::test]
async fn what_others_add_does_not_count() {
    let world = World::new().await;
    let target = deployment();
    world.sync(&target).await;
    let addition = json!([
        {"op": "add", "path": "/metadata/annotations", "value": {"injected": "yes"}},
        {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/hold"]},
        {"op": "add", "path": "/spec/template/spec/containers/0", "value": {"name": "sidecar", "image": "side:1"}},
        {"op": "add", "path": "/spec/template/spec/containers/1/env/1", "value": {"name": "X", "value": "9"}},
        {"op": "add", "path": "/spec/template/spec/nodeSelector", "value": {"zone": "a"}},
        {"op": "replace", "path": "/spec/progressDeadlineSeconds", "value": 30},
    ]);
    world.patch_as("injector", &target, JSON_PATCH, &addition).await;
    let difference = world.judge(&target).await;
    assert!(!difference.modified, "{:#?}", changes(&difference));
    assert!(world.is_quick(&target, &Default::default()).await);
}

#[tokio::test]
async fn what_the_target_no_longer_states_is_removed_or_set_by_default() {
    let world = World::new().await;
    world.sync(&deployment()).await;
    let mut target = deployment();
    let spec = target["spec"].as_object_mut().expect("a spec");
    spec.remove("replicas");
    let container = target["spec"]["template"]["spec"]["containers"][0].as_object_mut().expect("a container");
    container.remove("args");
    container["env"].as_array_mut().expect("a list").remove(0);
    assert_eq!(
        changes(&world.judge(&target).await),
        [
            "/spec/replicas: 3 -> 1",
            r#"/spec/template/spec/containers/0/args: ["--a","--b"] -> null"#,
            r#"/spec/template/spec/containers/0/env: [{"name":"A","value":"1"},{"name":"B","value":"2"}] -> [{"name":"B","value":"2"}]"#,
        ]
    );
    world.sync(&target).await;
    assert!(!world.judge(&target).await.modified);
}

#[tokio::test]
async fn what_another_owns_too_stays_when_the_target_drops_it() {
    let world = World::new().await;
    world.sync(&config_map()).await;
    let mut other = config_map();
    other["data"] = json!({"a": "1"});
    world.apply_as("another", &other).await;
    let mut target = config_map();
    target["data"] = json!({"b": "2"});
    assert!(!world.judge(&target).await.modified);
}

#[tokio::test]
async fn the_order_of_our_items_counts_among_themselves() {
    let world = World::new().await;
    let target = deployment();
    let mut live = world.sync(&target).await;
    live["spec"]["template"]["spec"]["initContainers"].as_array_mut().expect("a list").reverse();
    world.replace_as("kubectl-replace", &live).await;
    let difference = world.judge(&target).await;
    assert_eq!(changes(&difference).len(), 4, "{:#?}", changes(&difference));
    assert_eq!(difference.predicted["spec"]["template"]["spec"]["initContainers"][0]["name"], "first");
    world.sync(&target).await;
    assert!(!world.judge(&target).await.modified);

    let mut turned = deployment();
    turned["spec"]["template"]["spec"]["containers"][0]["env"].as_array_mut().expect("a list").reverse();
    assert!(world.judge(&turned).await.modified);
}

#[tokio::test]
async fn members_of_a_set_count_one_by_one_and_in_any_order() {
    let world = World::new().await;
    world.install(&definition()).await;
    let mut target = thing(json!({}));
    target["metadata"]["finalizers"] = json!(["example.com/a", "example.com/b"]);
    target["tags"] = json!(["x", "y"]);
    world.sync(&target).await;
    world.patch_as("another", &target, MERGE, &json!({"tags": ["z", "y", "x"]})).await;
    let difference = world.judge(&target).await;
    assert!(!difference.modified, "{:#?}", changes(&difference));

    world.patch_as("another", &target, MERGE, &json!({"tags": ["z", "y"]})).await;
    assert!(world.judge(&target).await.modified);
    world.sync(&target).await;
    target["tags"] = json!(["x"]);
    let difference = world.judge(&target).await;
    assert!(difference.modified);
    let left = difference.predicted["tags"].as_array().expect("a list");
    assert!(left.contains(&json!("x")) && left.contains(&json!("z")), "{left:?}");
    target["metadata"]["finalizers"] = json!(["example.com/b"]);
    assert_eq!(world.judge(&target).await.predicted["metadata"]["finalizers"], json!(["example.com/b"]));

    // So that a namespace of a real cluster can go.
    target["metadata"]["finalizers"] = json!([]);
    world.sync(&target).await;
}

#[tokio::test]
async fn lists_without_keys_count_as_a_whole() {
    let world = World::new().await;
    world.install(&definition()).await;
    let target = thing(json!({"list": [{"name": "a", "x": 1}, {"name": "b"}]}));
    world.sync(&target).await;
    for list in [json!([{"name": "b"}, {"name": "a", "x": 1}]), json!([{"name": "a", "x": 1}]), json!([])] {
        world.patch_as("another", &target, MERGE, &json!({"spec": {"list": list}})).await;
        assert!(world.judge(&target).await.modified, "{list}");
        world.sync(&target).await;
        assert!(!world.judge(&target).await.modified);
    }
    world
        .patch_as("another", &target, MERGE, &json!({"spec": {"more": {"deep": [1]}}, "mode": "other"}))
        .await;
    assert!(!world.judge(&target).await.modified);
}

#[tokio::test]
async fn only_what_differs_is_shown_of_a_secret_written_as_text() {
    let world = World::new().await;
    let target = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"},
        "stringData": {"a": "x"}, "data": {"b": "eQ=="}});
    world.sync(&target).await;
    world.patch_as("another", &target, MERGE, &json!({"data": {"a": "eg==", "c": "eg=="}})).await;
    assert_eq!(changes(&world.judge(&target).await), [r#"/data/a: "eg==" -> "eA==""#]);
}

#[tokio::test]
async fn what_the_server_makes_of_a_target_every_time_does_not_count() {
    let world = World::new().await;
    let target = prepare(&deployment());
    world.sync(&target).await;
    // As a webhook that pins images would leave the object, and predict it.
    let pinned = |mut object: Value| {
        object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web@sha256:1");
        object
    };
    let (predicted, live) = (pinned(world.predict(&target).await), pinned(world.live(&target).await));
    assert_eq!(quick(&target, &live, &Rules::default()), Quick::Unsure);
    assert!(!compare(&target, &predicted, &live, &Rules::default(), false).modified);
    assert!(compare(&target, &world.predict(&target).await, &live, &Rules::default(), false).modified);
}
