//! What operators set: argocd-cm, namespaces, clusters, several controllers.

use std::time::Duration;

use serde_json::{Value, json};

use crate::scene::{
    NAMESPACE, Scene, application, argocd_cm, automated, cluster_secret, conditions, config_map, health,
    objects, operating, project, sync, text,
};

#[tokio::test(start_paused = true)]
async fn a_customization_of_health_takes_effect_at_once() {
    let scene = Scene::new().await;
    scene.commit(&[("web/a.yaml", &config_map("a", "colour", "blue", ""))]);
    scene.apply(automated(application("web", "web", "east"))).await;
    scene.settled("web").await;
    let script = "hs = {}\nhs.status = \"Degraded\"\nhs.message = obj.data.colour\nreturn hs\n";
    scene.apply(argocd_cm(json!({"resource.customizations.health.ConfigMap": script}))).await;
    let sick = scene.until("web", |application| health(application) == "Degraded").await;
    assert_eq!(text(&sick, "/status/resources/0/health/message"), "blue");
    scene.apply(argocd_cm(json!({"unrelated": "setting"}))).await;
    scene.settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn settings_that_cannot_be_read_stop_everything_until_they_can() {
    let broken =
        argocd_cm(json!({"resource.customizations.ignoreDifferences.apps_Deployment": "jsonPointers: {"}));
    let scene = Scene::with(|_| {}, &[broken]).await;
    scene.commit(&[("web/a.yaml", &config_map("a", "colour", "blue", ""))]);
    scene.apply(automated(application("web", "web", "east"))).await;
    let told = scene.until("web", |application| !conditions(application).is_empty()).await;
    assert!(conditions(&told)[0].starts_with("UnknownError: argocd-cm cannot be used: "), "{told:#?}");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(scene.object("east", "configmaps", "a").is_none());
    let mended = "jsonPointers: [/spec/replicas]";
    scene
        .apply(argocd_cm(json!({"resource.customizations.ignoreDifferences.apps_Deployment": mended})))
        .await;
    let settled = scene.settled("web").await;
    assert_eq!(conditions(&settled), [] as [String; 0]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_synced_with_more_rights_than_were_meant() {
    let impersonation = argocd_cm(json!({"application.sync.impersonation.enabled": "true"}));
    let scene = Scene::with(|_| {}, &[impersonation]).await;
    scene.commit(&[("web/a.yaml", &config_map("a", "colour", "blue", ""))]);
    let mut wanted = application("web", "web", "east");
    wanted["operation"] = json!({"sync": {"syncOptions": ["CreateNamespace=true"]}});
    scene.apply(wanted).await;
    let (phase, message) = scene.ended("web").await;
    assert_eq!(phase, "Error");
    assert!(message.contains("impersonation"), "{message}");
    assert!(scene.object("east", "configmaps", "a").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_project_of_signed_commits_is_not_passed_over() {
    let scene = Scene::new().await;
    scene.commit(&[("web/a.yaml", &config_map("a", "colour", "blue", ""))]);
    scene.apply(project("default", json!({"signatureKeys": [{"keyID": "4AEE18F83AFDEB23"}]}))).await;
    scene.apply(automated(application("web", "web", "east"))).await;
    let refused = scene.until("web", |application| sync(application) == "Unknown").await;
    assert_eq!(
        conditions(&refused),
        ["InvalidSpecError: project 'default' takes only signed commits, and signatures cannot be verified"]
    );
}

#[tokio::test(start_paused = true)]
async fn applications_of_other_namespaces_live_where_operator_and_project_let_them() {
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let found = [namespace("team-a"), namespace("stranger")];
    let scene =
        Scene::with(|settings| settings.application_namespaces = vec!["team-*".to_owned()], &found).await;
    scene.commit(&[("web/a.yaml", &config_map("a", "colour", "blue", ""))]);
    scene.apply(project("default", json!({"sourceNamespaces": ["team-a"]}))).await;
    for (name, namespace) in [("web", "team-a"), ("lost", "stranger")] {
        let mut wanted = automated(application(name, "web", "east"));
        wanted["metadata"]["namespace"] = json!(namespace);
        scene.apply(wanted).await;
    }
    scene.settled("web").await;
    let live = scene.object("east", "configmaps", "a").expect("the ConfigMap");
    let id = "/metadata/annotations/argocd.argoproj.io~1tracking-id";
    assert_eq!(text(&live, id), "team-a_web:/ConfigMap:demo/a");
    assert_eq!(scene.application("lost").get("status"), None, "nobody minds it");
}

#[tokio::test(start_paused = true)]
async fn of_two_controllers_one_leads_and_the_other_takes_over() {
    let scene = Scene::with(|settings| settings.leader_election = true, &[]).await;
    scene.commit(&[("web/a.yaml", &config_map("a", "colour", "blue", ""))]);
    scene.apply(automated(application("web", "web", "east"))).await;
    scene.settled("web").await;
    let lease =
        || objects(&scene.control, "leases.coordination.k8s.io").remove("baton-application-controller");
    let holder = |lease: Option<Value>| text(&lease.expect("a Lease"), "/spec/holderIdentity");
    let first = holder(lease());
    let second = scene.second();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(holder(lease()), first, "one leads");
    let scene = scene.abandon();
    scene.commit(&[("web/a.yaml", &config_map("a", "colour", "red", ""))]);
    let is_red = |scene: &Scene| {
        scene.object("east", "configmaps", "a").is_some_and(|object| text(&object, "/data/colour") == "red")
    };
    scene.until_all("the second leads", is_red).await;
    second.abort();
}

#[tokio::test(start_paused = true)]
async fn a_cluster_whose_secret_broke_keeps_its_resources_and_its_applications() {
    let scene = Scene::new().await;
    scene.commit(&[("web/a.yaml", &config_map("a", "colour", "blue", ""))]);
    let mut wanted = automated(application("web", "web", "east"));
    wanted["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    scene.apply(wanted).await;
    scene.settled("web").await;
    let mut broken = cluster_secret("east");
    broken["stringData"]["config"] = json!("{not JSON");
    scene.apply(broken).await;
    let kind = "Application";
    scene.control.delete_object("argoproj.io/v1alpha1", kind, NAMESPACE, "web").await.expect("a deletion");
    let stuck = |application: &Value| {
        conditions(application).iter().any(|condition| condition.starts_with("DeletionError: "))
    };
    scene.until("web", stuck).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(scene.find("web").is_some() && !operating(&scene.application("web")));
    assert!(scene.object("east", "configmaps", "a").is_some());
    scene.apply(cluster_secret("east")).await;
    scene.until_all("the Application is gone", |scene| scene.find("web").is_none()).await;
    assert!(scene.object("east", "configmaps", "a").is_none(), "nothing was left behind");
}
