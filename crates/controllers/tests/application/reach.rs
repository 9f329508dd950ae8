//! A cluster that cannot be reached is its own Applications' trouble and nobody else's.

use crate::faults::Fault;
use crate::scene::{Scene, application, automated, conditions, config_map, sync, text};

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
    east.heal();
    scene.until_all("back again", |scene| scene.object("east", "configmaps", "a").is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_destination_is_said_in_argo_cds_words() {
    let scene = Scene::new().await;
    let mut wanted = application("web", "web", "east");
    wanted["spec"]["destination"] = serde_json::json!({"name": "north", "namespace": "demo"});
    scene.apply(wanted).await;
    let told = scene.until("web", |application| sync(application) == "Unknown").await;
    assert_eq!(conditions(&told), ["InvalidSpecError: there are no clusters with this name: north"]);
    assert_eq!(text(&told, "/status/health/status"), "Unknown");
}
