//! Watches: where they start, what they say, and how they end.

use crate::world::{MERGE_PATCH, World, config_map, names, version};
use serde_json::{Value, json};

const INITIAL_END: &str = "/metadata/annotations/k8s.io~1initial-events-end";

pub(crate) async fn events_follow_the_given_version(world: &World) {
    let made = world.config_map("one", json!({})).await;
    let path = world.core("configmaps");
    let mut watch = world.watch(&path, &format!("resourceVersion={}", version(&made))).await;
    let patched = touch(world, "one", "2").await;
    world.delete(&format!("{path}/one")).await.ok();
    let seen = watch.expect_named("MODIFIED", "one").await;
    assert_eq!(seen, patched, "a watch sends the object as a read gives it, type included");
    let gone = watch.expect_named("DELETED", "one").await;
    assert!(number(version(&gone)) > number(version(&patched)), "a deletion has a version of its own");
    assert_eq!(gone["data"], patched["data"]);
}

pub(crate) async fn history_is_replayed_in_order(world: &World) {
    let first = world.config_map("one", json!({})).await;
    for value in ["2", "3", "4"] {
        touch(world, "one", value).await;
    }
    let query = format!("resourceVersion={}", version(&first));
    let mut watch = world.watch(&world.core("configmaps"), &query).await;
    for value in ["2", "3", "4"] {
        assert_eq!(watch.expect_named("MODIFIED", "one").await["data"]["key"], value);
    }
}

pub(crate) async fn an_unset_version_starts_with_the_present(world: &World) {
    let path = world.core("secrets");
    for name in ["a", "b"] {
        secret(world, name, json!({})).await;
    }
    let mut watch = world.watch(&path, "").await;
    watch.expect_named("ADDED", "a").await;
    watch.expect_named("ADDED", "b").await;
    secret(world, "c", json!({})).await;
    watch.expect_named("ADDED", "c").await;
}

pub(crate) async fn version_zero_starts_with_the_present(world: &World) {
    let path = world.core("secrets");
    secret(world, "a", json!({})).await;
    // The cache that answers version zero may lag behind the write.
    world
        .eventually("the cache has it", async || {
            (names(&world.get(&format!("{path}?resourceVersion=0")).await.ok()) == ["a"]).then_some(())
        })
        .await;
    let mut watch = world.watch(&path, "resourceVersion=0").await;
    watch.expect_named("ADDED", "a").await;
    secret(world, "b", json!({})).await;
    watch.expect_named("ADDED", "b").await;
}

pub(crate) async fn a_label_change_moves_objects_in_and_out(world: &World) {
    let path = world.core("secrets");
    let list = world.get(&path).await.ok();
    let query = format!("labelSelector=show%3Dyes&resourceVersion={}", version(&list));
    let mut watch = world.watch(&path, &query).await;
    secret(world, "other", json!({"show": "no"})).await;
    secret(world, "one", json!({"show": "yes"})).await;
    watch.expect_named("ADDED", "one").await;
    let hidden = relabel(world, "one", json!("no")).await;
    let gone = watch.expect_named("DELETED", "one").await;
    assert_eq!(version(&gone), version(&hidden), "the version is that of the change that hid it");
    assert_eq!(gone["metadata"]["labels"]["show"], "yes", "the content is the last that matched");
    relabel(world, "one", json!("yes")).await;
    watch.expect_named("ADDED", "one").await;
    relabel(world, "other", json!("still-no")).await;
    world.delete(&format!("{path}/one")).await.ok();
    watch.expect_named("DELETED", "one").await;
}

pub(crate) async fn a_single_name_can_be_watched(world: &World) {
    let path = world.core("secrets");
    let list = world.get(&path).await.ok();
    let query = format!("fieldSelector=metadata.name%3Dtwo&resourceVersion={}", version(&list));
    let mut watch = world.watch(&path, &query).await;
    secret(world, "one", json!({})).await;
    secret(world, "two", json!({})).await;
    watch.expect_named("ADDED", "two").await;
}

pub(crate) async fn the_deprecated_watch_paths_still_work(world: &World) {
    let list = world.get(&world.core("secrets")).await.ok();
    let path = format!("/api/v1/watch/namespaces/{}/secrets", world.namespace());
    let mut watch = world.watch(&path, &format!("resourceVersion={}", version(&list))).await;
    secret(world, "one", json!({})).await;
    watch.expect_named("ADDED", "one").await;
}

pub(crate) async fn a_timeout_ends_the_stream(world: &World) {
    let list = world.get(&world.core("secrets")).await.ok();
    let query = format!("timeoutSeconds=1&resourceVersion={}", version(&list));
    let mut watch = world.watch(&world.core("secrets"), &query).await;
    assert_eq!(watch.next().await, None);
}

pub(crate) async fn a_timeout_ends_with_a_bookmark_where_wanted(world: &World) {
    let made = secret(world, "one", json!({})).await;
    let query = format!("timeoutSeconds=3&allowWatchBookmarks=true&resourceVersion={}", version(&made));
    let mut watch = world.watch(&world.core("secrets"), &query).await;
    let mark = watch.expect("BOOKMARK").await;
    assert_eq!(mark["kind"], "Secret");
    assert_eq!(mark["apiVersion"], "v1");
    assert!(number(version(&mark)) >= number(version(&made)));
    assert!(mark["metadata"].get("name").is_none());
}

pub(crate) async fn initial_events_end_with_a_bookmark(world: &World) {
    let path = world.core("secrets");
    secret(world, "a", json!({})).await;
    let last = secret(world, "b", json!({})).await;
    let mut watch = world
        .watch(&path, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
        .await;
    watch.expect_named("ADDED", "a").await;
    watch.expect_named("ADDED", "b").await;
    let mark = watch.expect("BOOKMARK").await;
    assert_eq!(mark.pointer(INITIAL_END), Some(&json!("true")), "{mark}");
    assert!(number(version(&mark)) >= number(version(&last)));
    secret(world, "c", json!({})).await;
    watch.expect_named("ADDED", "c").await;
}

pub(crate) async fn initial_events_respect_selectors(world: &World) {
    let path = world.core("secrets");
    secret(world, "a", json!({"show": "yes"})).await;
    secret(world, "b", json!({"show": "no"})).await;
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=show%3Dyes";
    let mut watch = world.watch(&path, query).await;
    watch.expect_named("ADDED", "a").await;
    let mark = watch.expect("BOOKMARK").await;
    assert_eq!(mark.pointer(INITIAL_END), Some(&json!("true")));
}

pub(crate) async fn initial_events_need_the_match_parameter(world: &World) {
    let path =
        format!("{}?watch=true&sendInitialEvents=true&allowWatchBookmarks=true", world.core("secrets"));
    let status = world.get(&path).await.fails(422, "Invalid");
    assert!(status["message"].as_str().unwrap_or_default().contains("resourceVersionMatch"), "{status}");
}

pub(crate) async fn a_match_parameter_alone_is_refused_on_watches(world: &World) {
    let path =
        format!("{}?watch=true&resourceVersionMatch=NotOlderThan&resourceVersion=1", world.core("secrets"));
    let status = world.get(&path).await.fails(422, "Invalid");
    assert!(
        status["message"].as_str().unwrap_or_default().contains("resourceVersionMatch is forbidden"),
        "{status}"
    );
}

pub(crate) async fn a_version_before_history_is_gone(world: &World) {
    let mut watch = world.watch(&world.core("configmaps"), "resourceVersion=1").await;
    assert_gone(&watch.next().await.expect("an event before the end"));
}

/// The event that tells a watcher to list again.
pub(crate) fn assert_gone(event: &Value) {
    assert_eq!(event["type"], "ERROR", "{event}");
    let status = &event["object"];
    assert_eq!(status["kind"], "Status");
    assert_eq!(status["code"], 410);
    assert_eq!(status["reason"], "Expired");
    assert!(
        status["message"].as_str().unwrap_or_default().contains("too old resource version: "),
        "{status}"
    );
}

pub(crate) async fn a_deleted_namespaced_object_is_seen_cluster_wide(world: &World) {
    let list = world.get("/api/v1/secrets").await.ok();
    let query = format!("labelSelector=run%3D{}&resourceVersion={}", world.unique(), version(&list));
    let mut watch = world.watch("/api/v1/secrets", &query).await;
    secret(world, "one", json!({"run": world.unique()})).await;
    watch.expect_named("ADDED", "one").await;
    world.delete(&world.core("secrets/one")).await.ok();
    watch.expect_named("DELETED", "one").await;
}

pub(crate) async fn finalized_deletions_are_modified_then_deleted(world: &World) {
    let mut wanted = config_map("held", json!({}));
    wanted["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let made = world.post(&world.core("configmaps"), &wanted).await.created();
    let path = world.core("configmaps");
    let mut watch = world.watch(&path, &format!("resourceVersion={}", version(&made))).await;
    world.delete(&format!("{path}/held")).await.ok();
    let marked = watch.expect_named("MODIFIED", "held").await;
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    world.patch(&format!("{path}/held"), MERGE_PATCH, &json!({"metadata": {"finalizers": null}})).await.ok();
    watch.expect_named("DELETED", "held").await;
}

async fn touch(world: &World, name: &str, value: &str) -> Value {
    let path = world.core(&format!("configmaps/{name}"));
    world.patch(&path, MERGE_PATCH, &json!({"data": {"key": value}})).await.ok()
}

async fn relabel(world: &World, name: &str, value: Value) -> Value {
    let path = world.core(&format!("secrets/{name}"));
    world.patch(&path, MERGE_PATCH, &json!({"metadata": {"labels": {"show": value}}})).await.ok()
}

async fn secret(world: &World, name: &str, labels: Value) -> Value {
    let wanted = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": labels}});
    world.post(&world.core("secrets"), &wanted).await.created()
}

fn number(version: &str) -> u64 {
    version.parse().expect("versions are numbers here and on every kube-apiserver")
}
