//! Policies that keep updates from Applications do not keep them from being rolled out in order.

use serde_json::{Value, json};

use crate::scene::{Scene, fleet};

const MEMBERS: [(&str, &str); 3] = [("a", "dev"), ("b", "test"), ("c", "prod")];
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Has the set make its Applications together, then turns it to RollingSync.
async fn turned_to_steps(scene: &Scene, change: impl Fn(&mut Value)) {
    let commit = scene.commit(&NAMES, "0");
    let mut set = fleet(&MEMBERS);
    change(&mut set);
    let steps = set["spec"]["strategy"].take();
    set["spec"]["strategy"] = json!({"type": "AllAtOnce"});
    scene.apply(set.clone()).await;
    scene
        .until("automatic syncs", |scene| {
            let applications = scene.applications();
            applications.len() == 3
                && applications.values().all(|one| one["status"]["sync"]["status"] == "Synced")
        })
        .await;
    set["spec"]["strategy"] = steps;
    set["spec"]["strategy"]["deletionOrder"] = "Reverse".into();
    scene.apply(set).await;
    scene.rolled_out(&commit).await;
}

fn are_marked(scene: &Scene) -> bool {
    scene.applications().values().all(|one| {
        let owners = one["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        // There is a guard where the controller may make one.
        let guarded = owners.iter().any(|owner| owner["name"] == "fleet.baton-rollout");
        one["metadata"]["labels"]["baton.dev/application-set"] == "fleet"
            && guarded == scene.api.allows_maps()
    })
}

#[tokio::test(start_paused = true)]
async fn applications_of_before_are_rolled_out_under_a_policy_without_updates() {
    let scene = Scene::new().await;
    let create_only =
        |set: &mut Value| set["spec"]["syncPolicy"] = json!({"applicationsSync": "create-only"});
    turned_to_steps(&scene, create_only).await;
    assert!(are_marked(&scene));
    let commit = scene.commit(&NAMES, "1");
    let mut changed = fleet(&MEMBERS);
    create_only(&mut changed);
    changed["spec"]["strategy"]["deletionOrder"] = "Reverse".into();
    changed["spec"]["template"]["metadata"]["labels"]["more"] = "x".into();
    changed["spec"]["template"]["spec"]["destination"]["namespace"] = "elsewhere".into();
    scene.apply(changed).await;
    scene.rolled_out(&commit).await;
    for application in scene.applications().values() {
        assert_eq!(application["spec"]["destination"]["namespace"], "demo", "nothing is updated");
        assert!(application["metadata"]["labels"]["more"].is_null(), "nothing is updated");
    }
}

#[tokio::test(start_paused = true)]
async fn applications_of_before_are_rolled_out_where_their_labels_are_ignored() {
    let scene = Scene::new().await;
    turned_to_steps(&scene, |set| {
        set["spec"]["ignoreApplicationDifferences"] =
            json!([{"jsonPointers": ["/metadata/labels", "/metadata/ownerReferences"]}]);
    })
    .await;
    assert!(are_marked(&scene));
    let commit = scene.commit(&NAMES, "1");
    scene.rolled_out(&commit).await;
}
