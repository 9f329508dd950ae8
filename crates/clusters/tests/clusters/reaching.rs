//! Clusters that are lost and come back.

use std::time::Duration;

use baton_clusters::{ClusterError, Connection};
use baton_sync::action::{Outcome, Verb};
use serde_json::json;

use crate::world::{CONFIG_MAPS, World, access, config_map, key, kinds, settle, until};

#[tokio::test(start_paused = true)]
async fn a_lost_cluster_concerns_nobody_else_and_comes_back_by_itself() {
    let world = World::new(&["east", "west"]);
    for name in ["east", "west"] {
        world.member(name).create(CONFIG_MAPS, config_map("a", "shop", json!({}))).await;
    }
    let (east, west) = (world.cluster("east"), world.cluster("west"));
    let wanted = kinds(&[("v1", "ConfigMap")]);
    east.ready(&wanted).await.expect("ready");
    west.ready(&wanted).await.expect("ready");
    settle().await;
    world.take_changes();

    world.member("west").wire.set_down(true);
    until("the loss is noticed", || matches!(west.connection(), Connection::Lost { .. })).await;
    assert_eq!(world.take_changes(), ["connection west"]);
    let error = west.ready(&wanted).await.expect_err("lost");
    assert!(
        matches!(&error, ClusterError::Unreachable { reason, .. } if reason.contains("connection refused")),
        "{error:?}"
    );
    assert!(error.to_string().contains("https://west"), "{error}");
    world.member("west").wire.take_log();
    let look = Verb::Look { key: key("", "ConfigMap", "default", "a"), api_version: "v1".to_owned() };
    let outcome =
        futures::FutureExt::now_or_never(west.perform(&look)).expect("nobody waits for a lost cluster");
    assert!(
        matches!(&outcome, Outcome::Failed { message } if message.contains("cannot be reached")),
        "{outcome:?}"
    );
    assert_eq!(world.member("west").wire.take_log(), Vec::<String>::new());
    east.ready(&wanted).await.expect("east is well");
    assert_eq!(east.connection(), Connection::Connected);

    tokio::time::sleep(Duration::from_secs(3600)).await;
    let tries = world.member("west").wire.take_log().len();
    assert!((30..200).contains(&tries), "{tries} tries in an hour");
    assert_eq!(world.take_changes(), Vec::<String>::new());

    world.member("west").patch(&format!("{CONFIG_MAPS}/a"), json!({"data": {"k": "new"}})).await;
    world.member("west").wire.set_down(false);
    until("it is back", || west.connection() == Connection::Connected).await;
    west.ready(&wanted).await.expect("back");
    until("what happened meanwhile is known", || west.managed("shop")[0]["data"]["k"] == "new").await;
    let told = world.take_changes();
    assert!(
        told.contains(&"connection west".to_owned()) && told.contains(&"managed shop".to_owned()),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_was_never_reached_says_why_at_once_when_it_is_known() {
    let world = World::new(&["east"]);
    world.member("east").wire.set_down(true);
    let cluster = world.cluster("east");
    assert_eq!(cluster.connection(), Connection::Idle);
    assert_eq!(world.member("east").wire.take_log(), Vec::<String>::new());
    let error = cluster.ready(&[]).await.expect_err("lost");
    assert!(matches!(error, ClusterError::Unreachable { .. }), "{error:?}");
    assert!(cluster.kind("v1", "ConfigMap").is_err());
    world.member("east").wire.set_down(false);
    until("it is there", || cluster.connection() == Connection::Connected).await;
    cluster.ready(&[]).await.expect("ready");
    assert!(cluster.version().starts_with("1."), "{}", cluster.version());
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_refused_make_a_cluster_lost() {
    let world = World::new(&["east"]);
    world.member("east").wire.refuse("GET", "/", 401, u32::MAX);
    let error = world.cluster("east").ready(&[]).await.expect_err("not let in");
    assert!(
        matches!(&error, ClusterError::Unreachable { reason, .. } if reason.contains("401")),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cluster_whose_access_changed_is_connected_to_anew_and_others_are_kept() {
    let world = World::new(&["east", "west"]);
    let (east, west) = (world.cluster("east"), world.cluster("west"));
    east.ready(&[]).await.expect("ready");
    west.ready(&[]).await.expect("ready");
    let mut changed = access("west");
    changed.config.bearer_token = "new".to_owned();
    world.clusters.set(vec![access("east"), changed]);
    assert!(std::sync::Arc::ptr_eq(&east, &world.cluster("east")));
    assert!(!std::sync::Arc::ptr_eq(&west, &world.cluster("west")));
    drop(west);
    settle().await;
    world.member("west").wire.take_log();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.member("west").wire.take_log(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_of_a_cluster_in_which_nothing_happens() {
    let world = World::new(&["east"]);
    let cluster = world.cluster("east");
    let wanted = kinds(&[("v1", "ConfigMap")]);
    cluster.ready(&wanted).await.expect("ready");
    settle().await;
    world.member("east").wire.take_log();
    for _ in 0..100 {
        cluster.ready(&wanted).await.expect("ready");
        cluster.managed("shop");
    }
    settle().await;
    assert_eq!(world.member("east").wire.take_log(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_falls_silent_is_noticed() {
    let world = World::new(&["east"]);
    let cluster = world.cluster("east");
    cluster.ready(&[]).await.expect("ready");
    settle().await;
    world.member("east").wire.set_silent(true);
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert!(matches!(cluster.connection(), Connection::Lost { .. }), "{:?}", cluster.connection());
    world.member("east").wire.set_silent(false);
    until("it is back", || cluster.connection() == Connection::Connected).await;
}

#[tokio::test(start_paused = true)]
async fn who_gave_up_waiting_is_told_when_it_is_worth_asking_again() {
    let world = World::new(&["east"]);
    let member = world.member("east");
    member.wire.refuse("GET", "/configmaps", 500, u32::MAX);
    let cluster = world.cluster("east");
    let wanted = kinds(&[("v1", "ConfigMap")]);
    let error = cluster.ready(&wanted).await.expect_err("it cannot be listed");
    assert!(error.to_string().contains("v1 ConfigMap cannot be listed: refused with 500"), "{error}");
    assert_eq!(cluster.connection(), Connection::Connected);
    world.take_changes();
    member.wire.stop_refusing();
    until("it is told", || world.take_changes().contains(&"connection east".to_owned())).await;
    cluster.ready(&wanted).await.expect("ready");
}
