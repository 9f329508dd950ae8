//! What `resourceVersion` and `resourceVersionMatch` mean for reads.

use crate::world::{World, cause_fields, names, version};
use serde_json::json;

/// Far beyond any version a test cluster reaches.
const FUTURE: &str = "900000000000000";

pub(crate) async fn an_unset_version_reads_the_latest(world: &World) {
    world.config_map("one", json!({})).await;
    let list = world.get(&world.core("configmaps")).await.ok();
    assert_eq!(list["kind"], "ConfigMapList");
    assert!(names(&list).contains(&"one"));
    let made = world.config_map("two", json!({})).await;
    let list = world.get(&world.core("configmaps")).await.ok();
    assert!(names(&list).contains(&"two"));
    assert!(number(version(&list)) >= number(version(&made)));
}

pub(crate) async fn version_zero_may_be_read_from_a_cache(world: &World) {
    world.config_map("one", json!({})).await;
    let path = world.core("configmaps");
    world
        .eventually("the cache has the object", async || {
            let list = world.get(&format!("{path}?resourceVersion=0")).await.ok();
            names(&list).contains(&"one").then_some(())
        })
        .await;
    world.get(&format!("{path}/one?resourceVersion=0")).await.ok();
}

pub(crate) async fn not_older_than_sees_the_write(world: &World) {
    let made = world.config_map("one", json!({})).await;
    let path = world.core("configmaps");
    let list = world
        .get(&format!("{path}?resourceVersion={}&resourceVersionMatch=NotOlderThan", version(&made)))
        .await
        .ok();
    assert!(names(&list).contains(&"one"));
    assert!(number(version(&list)) >= number(version(&made)));
    let read = world.get(&format!("{path}/one?resourceVersion={}", version(&made))).await.ok();
    assert_eq!(read, made);
}

pub(crate) async fn exact_lists_the_past(world: &World) {
    let first = world.config_map("one", json!({})).await;
    world.config_map("two", json!({})).await;
    let path = world.core("configmaps");
    world.delete(&format!("{path}/one")).await.ok();
    let list = world
        .get(&format!("{path}?resourceVersion={}&resourceVersionMatch=Exact&limit=100", version(&first)))
        .await
        .ok();
    assert!(names(&list).contains(&"one"), "{list}");
    assert!(!names(&list).contains(&"two"));
    assert_eq!(version(&list), version(&first));
}

pub(crate) async fn exact_needs_a_version_other_than_zero(world: &World) {
    let path = world.core("configmaps");
    let reply = world.get(&format!("{path}?resourceVersionMatch=Exact&resourceVersion=0")).await;
    reply.fails_saying(
        422,
        "Invalid",
        &["resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""],
    );
    let reply = world.get(&format!("{path}?resourceVersionMatch=Exact")).await;
    reply.fails_saying(
        422,
        "Invalid",
        &["resourceVersionMatch is forbidden unless resourceVersion is provided"],
    );
    let reply = world.get(&format!("{path}?resourceVersionMatch=Roughly&resourceVersion=1")).await;
    assert_eq!(cause_fields(&reply.fails(422, "Invalid")), ["resourceVersionMatch"]);
}

pub(crate) async fn a_version_in_the_future_times_out(world: &World) {
    let path = world.core("configmaps");
    for query in [
        format!("resourceVersion={FUTURE}"),
        format!("resourceVersion={FUTURE}&resourceVersionMatch=NotOlderThan"),
    ] {
        let status = world.get(&format!("{path}?{query}")).await.fails(504, "Timeout");
        assert_too_large(&status);
    }
}

pub(crate) async fn an_exact_version_in_the_future_times_out(world: &World) {
    let path = world.core("configmaps");
    let query = format!("resourceVersion={FUTURE}&resourceVersionMatch=Exact&limit=10");
    assert_too_large(&world.get(&format!("{path}?{query}")).await.fails(504, "Timeout"));
}

pub(crate) async fn a_get_in_the_future_times_out(world: &World) {
    world.config_map("one", json!({})).await;
    let reply = world.get(&format!("{}?resourceVersion={FUTURE}", world.core("configmaps/one"))).await;
    assert_too_large(&reply.fails(504, "Timeout"));
}

fn assert_too_large(status: &serde_json::Value) {
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.contains("Too large resource version"), "{message}");
    assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert_eq!(status["details"]["retryAfterSeconds"], 1);
}

pub(crate) async fn an_unreadable_version_is_refused(world: &World) {
    let path = world.core("configmaps");
    let reply = world.get(&format!("{path}?resourceVersion=abc")).await;
    reply.fails_saying(400, "BadRequest", &["invalid resource version"]);
    let mut object = world.config_map("one", json!({})).await;
    object["metadata"]["resourceVersion"] = json!("abc");
    object["data"]["key"] = json!("new");
    let reply = world.put(&world.core("configmaps/one"), &object).await;
    assert!(reply.code >= 400, "{}", reply.code);
    assert_eq!(world.get(&world.core("configmaps/one")).await.ok()["data"]["key"], "value");
}

pub(crate) async fn the_version_of_a_list_starts_a_watch_without_a_gap(world: &World) {
    world.config_map("one", json!({})).await;
    let path = world.core("configmaps");
    let list = world.get(&path).await.ok();
    world.config_map("two", json!({})).await;
    world.delete(&format!("{path}/one")).await.ok();
    let mut watch = world.watch(&path, &format!("resourceVersion={}", version(&list))).await;
    watch.expect_named("ADDED", "two").await;
    watch.expect_named("DELETED", "one").await;
}

fn number(version: &str) -> u64 {
    version.parse().expect("versions are numbers here and on every kube-apiserver")
}
