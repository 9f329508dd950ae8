//! What has not changed costs nothing and writes nothing.

use std::time::Duration;

use serde_json::json;

use crate::scene::{Scene, application, automated, config_map, deployment};

async fn at_rest() -> Scene {
    let scene = Scene::new().await;
    scene.commit(&[
        ("web/a.yaml", &config_map("a", "colour", "blue", "")),
        ("web/web.yaml", &deployment("web", "")),
    ]);
    scene.apply(automated(application("web", "web", "east"))).await;
    let mut broken = application("broken", "nowhere", "west");
    broken["spec"]["project"] = json!("missing");
    scene.apply(broken).await;
    scene.settled("web").await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    scene
}

#[tokio::test(start_paused = true)]
async fn frozen_inputs_mean_not_one_write_and_not_one_request() {
    let scene = at_rest().await;
    let (control, member) = (scene.control.store().revision(), scene.member("east").store().revision());
    scene.wire.take_calls();
    scene.members.values().for_each(|(_, wire)| drop(wire.take_calls()));
    // Several periodic looks, and less than until the next search for objects nobody asked for.
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(scene.control_writes_since(control), [] as [String; 0]);
    assert_eq!(scene.control.store().revision(), control, "not even an event");
    assert_eq!(scene.member("east").store().revision(), member);
    assert_eq!(scene.wire.take_calls(), []);
    for (_, wire) in scene.members.values() {
        let mut calls = wire.take_calls();
        // A sign of life, asked for whether or not there are Applications.
        calls.retain(|call| call.path != "/version");
        assert_eq!(calls, []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_restarted_controller_writes_nothing() {
    let scene = at_rest().await;
    let revision = scene.control.store().revision();
    let member = scene.member("east").store().revision();
    let mut scene = scene.crash().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(scene.control_writes_since(revision), [] as [String; 0]);
    assert_eq!(scene.member("east").store().revision(), member);
    scene.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_repository_that_cannot_be_read_is_not_asked_all_the_time() {
    let scene = at_rest().await;
    let standing = {
        let before = scene.passes();
        tokio::time::sleep(Duration::from_secs(600)).await;
        scene.passes() - before
    };
    scene.hide_repository();
    let before = scene.passes();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let passes = scene.passes() - before;
    assert!(passes > standing, "it is tried again");
    // Every ten seconds, and whatever stands still is looked at beside it.
    assert!(passes <= 60 + 2 * standing + 10, "{passes} passes in ten minutes, {standing} before");
}
