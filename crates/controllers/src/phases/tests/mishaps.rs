//! Rights that are missing, and others who write as well.

use baton_api::phase_status::PhaseState;
use baton_hooks::Verdict;
use serde_json::json;

use super::faults::{Call, Fault};
use super::world::{World, hook_per_target, phase};

fn many() -> Vec<String> {
    (0..60).map(|at| format!("dev-{at:02}")).collect()
}

async fn world() -> World {
    let names = many();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    World::new(json!([phase("dev", json!({"preHooks": [hook_per_target("a")]}))]), &names).await
}

#[tokio::test(start_paused = true)]
async fn without_the_right_to_write_config_maps_it_goes_on_with_less_to_tell() {
    let world = world().await;
    world.wire.fail(|_, call: &Call| {
        (call.target().0 == "configmaps").then(|| Fault::Refused(403, "configmaps is forbidden".to_owned()))
    });
    world.script.always(Verdict::Success);
    world.settle().await;
    assert_eq!(world.state(0), PhaseState::Deploying);
    assert_eq!(world.script.made().len(), 60);
    world.requests();
    world.round().await.expect("a round");
    assert_eq!(world.requests(), [""; 0], "and is quiet all the same");
}

#[tokio::test(start_paused = true)]
async fn details_that_somebody_else_wrote_are_read_anew() {
    let world = world().await;
    world.script.always(Verdict::Success);
    for _ in 0..20 {
        world.round().await.expect("a round");
        world.breathe().await;
    }
    let mut details = world.objects("configmaps");
    details.retain(|map| map["data"]["details.json"].is_string());
    assert!(!details.is_empty());
    for map in &details {
        let name = map["metadata"]["name"].as_str().expect("a name");
        world.cluster.delete_object("v1", "ConfigMap", "argocd", name).await.expect("a deletion");
    }
    world.settle().await;
    assert_eq!(world.state(0), PhaseState::Deploying);
    assert_eq!(world.script.made().len(), 60, "nobody was called twice");
}

#[tokio::test(start_paused = true)]
async fn another_set_of_the_same_name_is_another_set() {
    let world = world().await;
    world.settle().await;
    let under_way = world.phases.under_way();
    assert_eq!(under_way, 5);
    let mut set = world.set();
    world
        .cluster
        .delete_object("argoproj.io/v1alpha1", "ApplicationSet", "argocd", "web")
        .await
        .expect("deleted");
    set.metadata = kube::api::ObjectMeta {
        name: set.metadata.name,
        namespace: set.metadata.namespace,
        ..Default::default()
    };
    set.status = Default::default();
    world.cluster.apply("test", &serde_json::to_value(&set).expect("JSON")).await.expect("a set");
    world.settle().await;
    assert_eq!(world.script.dropped(), 5);
    assert_eq!(world.script.made().len(), 10, "it has a rollout of its own");
    let keys: std::collections::BTreeSet<String> =
        world.script.made().into_iter().map(|made| made.key).collect();
    assert_eq!(keys.len(), 10);
}
