//! A cluster that cannot be reached is its own Applications' trouble and nobody else's.

use std::time::Duration;

use serde_json::json;

use crate::faults::Fault;
use crate::scene::{
    Scene, application, automated, cluster_secret, conditions, config_map, project, sync, text,
};

#[tokio::test(start_paused = true)]
async fn an_unreachable_cluster_makes_only_its_own_applications_unknown() {
    let scene = Scene::new().await;
    scene.commit(&[("web/a.yaml", &config_map("a", "colour", "blue", ""))]);
    let (_, east) = &scene.members["east"];
    east.fail(|_, _| Some(Fault::Refused(503, "the server is down".to_owned())));
    for number in 0..40 {
        scene.apply(automated(application(&format!("lost-{number}"), "web", "east"))).await;
    }
    scene.apply(automated(application("fine", "web", "west"))).await;
    scene.settled("fine").await;
    for number in 0..40 {
        let lost = scene.until(&format!("lost-{number}"), |application| sync(application) == "Unknown").await;
        assert!(
            conditions(&lost)[0].starts_with("ComparisonError: Failed to load live state: "),
            "{lost:#?}"
        );
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    let revision = scene.control.store().revision();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(scene.control_writes_since(revision), [] as [String; 0], "trouble that lasts is told once");
    east.heal();
    scene.until_all("back again", |scene| scene.object("east", "configmaps", "a").is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_destination_is_said_in_argo_cds_words() {
    let scene = Scene::new().await;
    let mut wanted = application("web", "web", "east");
    wanted["spec"]["destination"] = json!({"name": "north", "namespace": "demo"});
    scene.apply(wanted).await;
    let told = scene.until("web", |application| sync(application) == "Unknown").await;
    assert_eq!(conditions(&told), ["InvalidSpecError: there are no clusters with this name: north"]);
    assert_eq!(text(&told, "/status/health/status"), "Unknown");
}

#[tokio::test(start_paused = true)]
async fn a_broken_cluster_secret_is_named_beside_what_is_wrong_with_it() {
    let scene = Scene::new().await;
    let mut wanted = application("web", "web", "east");
    wanted["spec"]["destination"] = json!({"name": "north", "namespace": "demo"});
    scene.apply(wanted).await;
    scene.until("web", |application| sync(application) == "Unknown").await;
    let mut secret = cluster_secret("north");
    secret["stringData"]["config"] = json!(r#"{"bearerToken": ["hunter2"]}"#);
    scene.apply(secret).await;
    let told = scene.until("web", |application| conditions(application)[0].contains("cluster-north")).await;
    let wrong = "cluster Secret \"cluster-north\": config is not the JSON that is expected";
    assert!(conditions(&told)[0].starts_with(&format!("InvalidSpecError: {wrong}")), "{told:#?}");
    assert!(!told.to_string().contains("hunter2"), "{told:#?}");
    scene.apply(cluster_secret("north")).await;
    scene.until("web", |application| !conditions(application)[0].contains("cluster-north")).await;
}

#[tokio::test(start_paused = true)]
async fn a_source_that_gives_nothing_is_said_and_heals_with_the_next_commit() {
    let scene = Scene::new().await;
    scene.apply(automated(application("web", "web", "east"))).await;
    let told = scene.until("web", |application| sync(application) == "Unknown").await;
    let wanted = "ComparisonError: Failed to load target state: ";
    assert!(conditions(&told)[0].starts_with(wanted), "{told:#?}");
    assert_eq!(text(&told, "/status/health/status"), "Unknown", "of a new Application nothing is known");
    scene.commit(&[("web/a.yaml", &config_map("a", "colour", "blue", ""))]);
    let settled = scene.settled("web").await;
    assert_eq!(conditions(&settled), [] as [String; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_two_applications_and_what_belongs_to_none_is_pointed_out() {
    let scene = Scene::new().await;
    scene.commit(&[("web/a.yaml", &config_map("a", "colour", "blue", ""))]);
    scene.apply(project("default", json!({"orphanedResources": {"warn": true}}))).await;
    scene.apply(automated(application("first", "web", "east"))).await;
    scene.settled("first").await;
    let stray =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "stray", "namespace": "demo"}});
    scene.member("east").apply("somebody", &stray).await.expect("a ConfigMap");
    scene.apply(application("second", "web", "east")).await;
    let told = scene.until("second", |application| conditions(application).len() == 2).await;
    assert_eq!(
        conditions(&told),
        [
            "OrphanedResourceWarning: Application has 1 orphaned resources",
            "SharedResourceWarning: ConfigMap/a is part of applications argocd/second and first",
        ]
    );
}
