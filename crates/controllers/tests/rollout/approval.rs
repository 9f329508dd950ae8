//! A guarded resource inside an Application that a rollout syncs (argo-cd#25193): the operation waits for a person, once,
//! and the rollout says so; nothing begins anew meanwhile, and nothing goes before its time.

use std::time::Duration;

use crate::scene::{Scene, fleet, objects, text};

const MEMBERS: [(&str, &str); 2] = [("aa-prod", "prod"), ("zz-dev", "dev")];
const APPROVED: &str = "argocd.argoproj.io/deletion-approved";

#[tokio::test(start_paused = true)]
async fn a_guarded_prune_holds_the_step_until_a_person_approves() {
    let scene = Scene::new().await;
    let names = ["aa-prod", "zz-dev"];
    let guarded = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kept\n  annotations:\n    \
                   argocd.argoproj.io/sync-options: Prune=confirm\n";
    scene.write("zz-dev/kept.yaml", Some(guarded));
    let commit = scene.commit(&names, "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;

    scene.write("zz-dev/kept.yaml", None);
    let (since, commit) = (scene.revision(), scene.commit(&names, "1"));
    scene
        .until("the wait for a person is named", |scene| {
            text(&scene.rollout("fleet"), "/blockers/0/reason") == "ApprovalRequired"
        })
        .await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(objects(&scene.member, "configmaps").contains_key("kept"), "nobody has approved");
    let began = |name: &str| {
        let versions = scene.versions_since(since).into_iter().filter(|version| version.name == name);
        let mut stamps: Vec<String> = versions
            .filter_map(|version| version.object)
            .map(|object| text(&object, "/status/operationState/operation/info/1/value"))
            .filter(|stamp| !stamp.is_empty())
            .collect();
        stamps.sort();
        stamps.dedup();
        stamps.len()
    };
    assert!(began("zz-dev") <= 2, "the operation of before and this one, and no other");
    assert_eq!(text(&scene.applications()["zz-dev"], "/status/operationState/phase"), "Running");
    assert!(scene.applications()["aa-prod"]["operation"].is_null(), "the next step waits");

    scene.annotate_application("zz-dev", APPROVED, &scene.now()).await;
    scene.rolled_out(&commit).await;
    assert!(!objects(&scene.member, "configmaps").contains_key("kept"), "it was approved");
}
