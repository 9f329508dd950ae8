//! Objects that were there before us.

use baton_diff::{TAKEN_OVER, compare, prepare, takeover};
use serde_json::{Value, json};

use crate::objects::{config_map, deployment};
use crate::world::{JSON_PATCH, MERGE, OURS, World, changes};

/// An object as kubectl's client-side apply leaves it.
fn noted(mut object: Value) -> Value {
    let note = object.to_string();
    object["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": note});
    object
}

#[tokio::test]
async fn an_object_that_is_already_as_stated_does_not_differ() {
    let world = World::new().await;
    world.create_as("somebody", &deployment()).await;
    let difference = world.judge(&deployment()).await;
    assert!(!difference.modified, "{:#?}", changes(&difference));
    assert!(!world.is_quick(&deployment(), &Default::default()).await);
}

#[tokio::test]
async fn what_client_side_apply_left_is_taken_over_and_removed() {
    for manager in ["kubectl-client-side-apply", OURS] {
        let world = World::new().await;
        world.create_as(manager, &noted(deployment())).await;
        world.patch_as("hpa", &deployment(), MERGE, &json!({"spec": {"replicas": 7}})).await;
        let mut target = deployment();
        target["spec"].as_object_mut().expect("a spec").remove("replicas");
        let container =
            target["spec"]["template"]["spec"]["containers"][0].as_object_mut().expect("a container");
        container.remove("args");
        container["ports"].as_array_mut().expect("a list").remove(0);
        container["env"].as_array_mut().expect("a list").remove(1);

        let shown = changes(&world.judge(&target).await);
        assert_eq!(shown.len(), 3, "{shown:#?}");
        assert!(!world.predict(&target).await["spec"]["template"]["spec"]["containers"][0]["args"].is_null());

        let patch = takeover(&world.live(&target).await, &TAKEN_OVER).expect("fields to take over");
        let moved = world.patch_as(OURS, &target, JSON_PATCH, &patch).await;
        assert_eq!(takeover(&moved, &TAKEN_OVER), None);
        let before = world.judge(&target).await;
        assert_eq!(changes(&before), shown);
        let after = world.sync(&target).await;
        assert_eq!(after["spec"]["replicas"], 7);
        assert_eq!(
            after["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"],
            Value::Null
        );
        assert!(!world.judge(&target).await.modified);
    }
}

#[tokio::test]
async fn entries_are_joined_with_what_is_ours() {
    let world = World::new().await;
    world.create_as("kubectl-client-side-apply", &noted(config_map())).await;
    let mut target = config_map();
    target["data"] = json!({"a": "1", "c": "3"});
    world.sync(&target).await;
    // The old writer still owns `b`, so it stayed.
    let live = world.live(&target).await;
    assert_eq!(live["data"], json!({"a": "1", "b": "2", "c": "3"}));
    assert_eq!(changes(&world.judge(&target).await), [r#"/data/b: "2" -> null"#]);
    let patch = takeover(&live, &TAKEN_OVER).expect("fields to take over");
    world.patch_as(OURS, &target, JSON_PATCH, &patch).await;
    assert_eq!(world.sync(&target).await["data"], json!({"a": "1", "c": "3"}));
}

#[tokio::test]
async fn nothing_is_taken_from_others() {
    let world = World::new().await;
    let live = world.create_as("somebody", &config_map()).await;
    assert_eq!(takeover(&live, &TAKEN_OVER), None);
    assert!(takeover(&live, &["somebody"]).is_some());
}

#[tokio::test]
async fn a_takeover_fails_where_the_object_has_changed() {
    let world = World::new().await;
    let live = world.create_as("kubectl-client-side-apply", &config_map()).await;
    let patch = takeover(&live, &TAKEN_OVER).expect("fields to take over");
    world.patch_as("another", &config_map(), MERGE, &json!({"data": {"a": "9"}})).await;
    assert_eq!(world.refusal(OURS, &config_map(), &patch).await, 409);
}

#[tokio::test]
async fn an_object_tracked_by_its_label_waits_for_its_annotation_without_a_difference() {
    let world = World::new().await;
    let mut old = config_map();
    old["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "shop"});
    world.sync(&old).await;
    let mut target = config_map();
    target["metadata"]["annotations"] =
        json!({"argocd.argoproj.io/tracking-id": "shop:/ConfigMap:x/settings"});
    let difference = world.judge(&target).await;
    assert!(!difference.modified, "{:#?}", changes(&difference));

    let other = json!({"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": "other:/ConfigMap:x/settings"}}});
    world.patch_as("another", &target, MERGE, &other).await;
    assert!(world.judge(&target).await.modified);
}

#[tokio::test]
async fn an_object_with_the_label_of_another_application_differs() {
    let world = World::new().await;
    let mut old = config_map();
    old["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "bakery"});
    world.sync(&old).await;
    let mut target = config_map();
    target["metadata"]["annotations"] =
        json!({"argocd.argoproj.io/tracking-id": "shop:/ConfigMap:x/settings"});
    assert!(world.judge(&target).await.modified);
}

#[tokio::test]
async fn a_server_that_tells_no_owners_is_judged_by_values() {
    let world = World::new().await;
    let target = prepare(&deployment());
    let mut live = world.sync(&target).await;
    live["metadata"].as_object_mut().expect("metadata").remove("managedFields");
    assert!(!compare(&target, &live, &live, &Default::default(), false).modified);
    live["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] = json!("9");
    let difference = compare(&target, &live, &live, &Default::default(), false);
    assert_eq!(changes(&difference), [r#"/spec/template/spec/containers/0/env/0/value: "9" -> "1""#]);
}
