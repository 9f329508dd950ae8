//! Deletions that wait for a person, from git to the letter.

use std::time::Duration;

use baton_notifications::catalog;
use serde_json::{Value, json};

use crate::letterbox::Letterbox;
use crate::scene::{Scene, application, automated, config_map};
use crate::stage::{Stage, pass};

const SUBSCRIBE: &str = "notifications.argoproj.io/subscribe.on-deletion-approval-required.ops";
const APPROVED: &str = "argocd.argoproj.io/deletion-approved";
/// Long enough for many looks that nothing but time asks for.
const A_WHILE: Duration = Duration::from_secs(600);

/// The catalog, and a service.
fn configuration() -> Vec<(String, String)> {
    let mut data: Vec<(String, String)> = catalog::catalog().data.expect("a catalog").into_iter().collect();
    data.push(("service.webhook.ops".to_owned(), "url: https://ops.example/hook".to_owned()));
    data
}

async fn stage(scene: &Scene) -> Stage {
    let data = configuration();
    let data: Vec<(&str, &str)> = data.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    Stage::over(scene.control.clone(), Letterbox::default(), &data).await
}

/// An Application of ConfigMaps, each with its options, deployed.
async fn deployed(scene: &Scene, maps: &[(&str, &str)]) {
    for (name, options) in maps {
        let annotation = format!("argocd.argoproj.io/sync-options: \"{options}\"");
        scene.commit(&[(&format!("app/{name}.yaml"), &config_map(name, "a", "b", &annotation))]);
    }
    let mut wanted = automated(application("app", "app", "east"));
    wanted["metadata"]["annotations"] = json!({SUBSCRIBE: ""});
    wanted["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    scene.apply(wanted).await;
    scene.settled("app").await;
}

/// The resources that a letter lists.
fn listed(letter: &str) -> Vec<&str> {
    letter.lines().filter(|line| line.starts_with("- ")).collect()
}

async fn approve(scene: &Scene) {
    let now = scene.control.now().to_string();
    scene.patch("app", json!({"metadata": {"annotations": {APPROVED: now}}})).await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_waits_is_told_once_with_exactly_what_waits() {
    let scene = Scene::new().await;
    let stage = stage(&scene).await;
    let _controller = stage.run();
    deployed(&scene, &[("plain", ""), ("precious", "Delete=confirm"), ("dear", "Delete=confirm")]).await;
    pass(A_WHILE).await;
    assert_eq!(stage.letters.arrived(), [] as [&str; 0]);
    stage.delete("Application", "app").await;
    let letters = stage.arrived(1).await;
    assert_eq!(listed(&letters[0]), ["- ConfigMap demo/dear", "- ConfigMap demo/precious"], "{letters:?}");
    assert!(letters[0].contains("baton app confirm-deletion app"), "{letters:?}");
    pass(A_WHILE).await;
    assert_eq!(stage.letters.attempts().len(), 1, "once per wait");
    approve(&scene).await;
    scene.until_all("the Application is gone", |scene| scene.find("app").is_none()).await;
    pass(A_WHILE).await;
    assert_eq!(stage.letters.attempts().len(), 1);
    assert_eq!(stage.outboxes(), [] as [&str; 0], "nothing is left behind");
}

#[tokio::test(start_paused = true)]
async fn every_sync_that_waits_is_told_of_once_and_again_after_a_500() {
    let scene = Scene::new().await;
    let stage = stage(&scene).await;
    let _controller = stage.run();
    let maps = [("keep", ""), ("plain", ""), ("precious", "Prune=confirm"), ("dear", "Prune=confirm")];
    deployed(&scene, &maps).await;
    stage.letters.refuse(&["https://ops.example answered with status 500", "status 500"]);
    scene.remove("app/precious.yaml");
    scene.remove("app/plain.yaml");
    scene.refresh("app").await;
    stage.arrived(1).await;
    let attempts = stage.letters.attempts();
    assert_eq!(attempts.len(), 3);
    assert!(attempts.iter().all(|one| (&one.id, &one.text) == (&attempts[0].id, &attempts[0].text)));
    assert_eq!(listed(&attempts[0].text), ["- ConfigMap demo/precious"]);
    let waits = |app: &Value| {
        let conditions = app.pointer("/status/conditions").and_then(Value::as_array);
        conditions.into_iter().flatten().any(|one| one["type"] == "DeletionApprovalRequiredInfo")
    };
    pass(A_WHILE).await;
    assert!(waits(&scene.application("app")), "it still waits");
    assert_eq!(stage.letters.attempts().len(), 3, "once per wait");
    approve(&scene).await;
    scene.settled("app").await;
    pass(A_WHILE).await;
    // Another sync is another wait.
    scene.remove("app/dear.yaml");
    scene.refresh("app").await;
    let letters = stage.arrived(2).await;
    assert_eq!(listed(&letters[1]), ["- ConfigMap demo/dear"]);
    pass(A_WHILE).await;
    let attempts = stage.letters.attempts();
    assert_eq!(attempts.len(), 4);
    assert_ne!(attempts[3].id, attempts[0].id);
    assert_eq!(stage.outboxes(), [] as [&str; 0]);
}
