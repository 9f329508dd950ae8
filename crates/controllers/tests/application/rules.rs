//! Who may do what, when: windows, projects, namespaces, annotations.

use std::time::Duration;

use serde_json::{Value, json};

use crate::scene::{
    NAMESPACE, REPOSITORY, Scene, application, automated, conditions, config_map, health, job, objects,
    operating, project, sync, text,
};

#[tokio::test(start_paused = true)]
async fn a_served_refresh_takes_its_nonce_along_and_tells_the_new_revision() {
    let scene = Scene::new().await;
    scene.commit(&[("web/a.yaml", &config_map("a", "colour", "blue", ""))]);
    scene.apply(application("web", "web", "east")).await;
    scene.until("web", |application| sync(application) == "OutOfSync").await;
    let commit = scene.commit(&[("web/a.yaml", &config_map("a", "colour", "red", ""))]);
    let asked = json!({
        "argocd.argoproj.io/refresh": "normal", "argocd.argoproj.io/refresh-timestamp": "nonce-1",
    });
    scene.patch("web", json!({"metadata": {"annotations": asked}})).await;
    let gone = |application: &Value| {
        let annotation = |name: &str| application["metadata"]["annotations"][name].clone();
        annotation("argocd.argoproj.io/refresh").is_null()
            && annotation("argocd.argoproj.io/refresh-timestamp").is_null()
    };
    let served = scene.until("web", gone).await;
    assert_eq!(text(&served, "/status/sync/revision"), commit, "the status came first");
}

#[tokio::test(start_paused = true)]
async fn an_application_that_is_to_be_left_alone_is() {
    let scene = Scene::new().await;
    scene.commit(&[("web/a.yaml", &config_map("a", "colour", "blue", ""))]);
    let mut wanted = automated(application("web", "web", "east"));
    wanted["metadata"]["annotations"] = json!({"argocd.argoproj.io/skip-reconcile": "true"});
    scene.apply(wanted).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(scene.application("web").get("status"), None);
    let back = json!({"metadata": {"annotations": {"argocd.argoproj.io/skip-reconcile": null}}});
    scene.patch("web", back).await;
    scene.settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_sync_window_holds_syncs_until_it_lets_them_go() {
    let scene = Scene::new().await;
    scene.commit(&[("web/a.yaml", &config_map("a", "colour", "blue", ""))]);
    let window = json!({
        "kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["*"],
    });
    scene.apply(project("default", json!({"syncWindows": [window]}))).await;
    scene.apply(automated(application("web", "web", "east"))).await;
    scene.until("web", |application| sync(application) == "OutOfSync").await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(!operating(&scene.application("web")), "no automatic sync while the window is open");
    scene.patch("web", json!({"operation": {"sync": {"syncOptions": ["CreateNamespace=true"]}}})).await;
    scene
        .until("web", |application| {
            text(application, "/status/operationState/message") == "Sync operation blocked by sync window"
        })
        .await;
    assert!(scene.object("east", "configmaps", "a").is_none());
    scene.apply(project("default", json!({"syncWindows": []}))).await;
    scene.settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_failed_is_not_tried_again_but_the_next_one_is() {
    let scene = Scene::new().await;
    let bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {colour: 3}\n";
    scene.commit(&[("web/a.yaml", bad)]);
    let mut wanted = automated(application("web", "web", "east"));
    wanted["spec"]["syncPolicy"]["retry"] = json!({"limit": 0});
    scene.apply(wanted).await;
    let refused = |application: &Value| {
        let wanted = |condition: &String| condition.starts_with("SyncError: Failed last sync attempt to [");
        conditions(application).iter().any(wanted)
    };
    scene.until("web", refused).await;
    scene.commit(&[("web/a.yaml", &config_map("a", "colour", "blue", ""))]);
    scene.refresh("web").await;
    let settled = scene.settled("web").await;
    assert_eq!(conditions(&settled), [] as [String; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_waits_for_the_operation_and_says_so() {
    let scene = Scene::new().await;
    let annotations = "argocd.argoproj.io/hook: PreSync, sim.baton.dev/stuck: \"true\"";
    scene.commit(&[
        ("web/pre.yaml", &job("pre", annotations)),
        ("web/a.yaml", &config_map("a", "a", "b", "")),
    ]);
    let mut wanted = automated(application("web", "web", "east"));
    wanted["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    scene.apply(wanted).await;
    scene
        .until("web", |application| {
            text(application, "/status/operationState/message").starts_with("waiting for completion of hook")
        })
        .await;
    let kind = "Application";
    scene.control.delete_object("argoproj.io/v1alpha1", kind, NAMESPACE, "web").await.expect("a deletion");
    let waits = "DeletionWaitingInfo: waiting for the running operation to end or be terminated".to_owned();
    scene.until("web", |application| conditions(application).contains(&waits)).await;
    scene.patch("web", json!({"status": {"operationState": {"phase": "Terminating"}}})).await;
    scene.until_all("the Application is gone", |scene| scene.find("web").is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn a_project_goes_once_nobody_uses_it() {
    let scene = Scene::new().await;
    scene.commit(&[("web/a.yaml", &config_map("a", "a", "b", ""))]);
    let mut team = project("team", json!({}));
    team["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    scene.apply(team).await;
    let mut wanted = application("web", "web", "east");
    wanted["spec"]["project"] = json!("team");
    scene.apply(wanted).await;
    scene.until("web", |application| sync(application) == "OutOfSync").await;
    let version = "argoproj.io/v1alpha1";
    scene.control.delete_object(version, "AppProject", NAMESPACE, "team").await.expect("a deletion");
    tokio::time::sleep(Duration::from_secs(600)).await;
    let there = |scene: &Scene| objects(&scene.control, "appprojects.argoproj.io").contains_key("team");
    assert!(there(&scene));
    scene.control.delete_object(version, "Application", NAMESPACE, "web").await.expect("a deletion");
    scene.until_all("the project is gone", |scene| !there(scene)).await;
}

#[tokio::test(start_paused = true)]
async fn health_of_the_application_is_that_of_its_workloads() {
    let scene = Scene::new().await;
    scene.commit(&[(
        "web/web.yaml",
        &crate::scene::deployment("web", "sim.baton.dev/fail: ImagePullBackOff"),
    )]);
    let mut slow = automated(application("web", "web", "east"));
    slow["spec"]["syncPolicy"]["automated"]["selfHeal"] = json!(false);
    scene.apply(slow).await;
    let sick = scene
        .until("web", |application| sync(application) == "Synced" && health(application) == "Progressing");
    let sick = sick.await;
    assert_eq!(text(&sick, "/status/health/message"), "Caused by apps/Deployment:demo/web");
}

#[tokio::test(start_paused = true)]
async fn an_operation_reaches_no_repository_that_the_project_does_not_permit() {
    let scene = Scene::new().await;
    scene.commit(&[("web/a.yaml", &config_map("a", "colour", "blue", ""))]);
    scene.apply(project("default", json!({"sourceRepos": [REPOSITORY]}))).await;
    let mut wanted = application("web", "web", "east");
    let foreign =
        json!({"repoURL": "https://git.example.com/elsewhere.git", "path": "web", "targetRevision": "main"});
    wanted["operation"] = json!({"sync": {"source": foreign}});
    scene.apply(wanted).await;
    let (phase, message) = scene.ended("web").await;
    assert_eq!(phase, "Error");
    let told = "application repo https://git.example.com/elsewhere.git is not permitted in project 'default'";
    assert_eq!(message, told);
}
