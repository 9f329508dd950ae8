//! Applications come, change and go with what generators say.

use serde_json::{Value, json};

use crate::scene::{Scene, cluster_secret, list, set};

#[tokio::test(start_paused = true)]
async fn applications_follow_a_list() {
    let scene = Scene::new().await;
    scene.put(set("set", list(&["a", "b"]))).await;
    assert_eq!(scene.names(), ["a", "b"]);
    let a = scene.application("a");
    let owner = json!([{
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "set",
        "uid": scene.set("set")["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]);
    assert_eq!(a["metadata"]["ownerReferences"], owner);
    assert_eq!(a["metadata"]["labels"], json!({"from": "set"}));
    assert_eq!(a["metadata"]["finalizers"], json!(["resources-finalizer.argocd.argoproj.io"]));
    assert_eq!(a["spec"]["source"]["targetRevision"], "HEAD");
    assert_eq!(
        scene.conditions("set"),
        [
            "ErrorOccurred=False ApplicationSetUpToDate: All applications have been generated successfully",
            "ParametersGenerated=True ParametersGenerated: Successfully generated parameters for all Applications",
            "ResourcesUpToDate=True ApplicationSetUpToDate: All applications have been generated successfully",
        ]
    );
    let status = &scene.set("set")["status"];
    assert_eq!(status["resourcesCount"], 2);
    assert_eq!(status["health"]["status"], "Healthy");
    assert_eq!(scene.events(), ["created: created Application \"a\"", "created: created Application \"b\""]);

    let revision = scene.revision();
    scene.put(set("set", list(&["b", "c"]))).await;
    assert_eq!(scene.application_writes_since(revision), ["added c", "modified a"]);
    assert!(scene.application("a")["metadata"]["deletionTimestamp"].is_string(), "its finalizer holds it");
}

#[tokio::test(start_paused = true)]
async fn applications_follow_clusters() {
    let scene = Scene::new().await;
    scene.put(cluster_secret("east", json!({"env": "prod"}))).await;
    scene.put(cluster_secret("test", json!({"env": "dev"}))).await;
    let mut wanted = set("set", json!([{"clusters": {"selector": {"matchLabels": {"env": "prod"}}}}]));
    wanted["spec"]["template"]["spec"]["destination"] = json!({"server": "{{server}}", "namespace": "demo"});
    scene.put(wanted).await;
    assert_eq!(scene.names(), ["east"]);
    scene.put(cluster_secret("west", json!({"env": "prod"}))).await;
    assert_eq!(scene.names(), ["east", "west"]);
    assert_eq!(scene.application("west")["spec"]["destination"]["server"], "https://west.example.com");

    let revision = scene.revision();
    scene.wire.take_calls();
    scene.put(cluster_secret("test", json!({"env": "qa"}))).await;
    assert_eq!(scene.application_writes_since(revision), Vec::<String>::new());
    assert_eq!(scene.wire.take_calls(), [], "a cluster nobody selects wakes nobody");
}

#[tokio::test(start_paused = true)]
async fn a_changed_template_changes_every_application_in_place() {
    let scene = Scene::new().await;
    scene.put(set("set", list(&["a", "b"]))).await;
    let before: Vec<Value> = ["a", "b"].map(|name| scene.application(name)["metadata"]["uid"].clone()).into();
    let mut changed = set("set", list(&["a", "b"]));
    changed["spec"]["template"]["spec"]["source"]["targetRevision"] = "v2".into();
    let revision = scene.revision();
    scene.put(changed).await;
    assert_eq!(scene.application_writes_since(revision), ["modified a", "modified b"]);
    for (name, uid) in ["a", "b"].into_iter().zip(before) {
        let application = scene.application(name);
        assert_eq!(application["spec"]["source"]["targetRevision"], "v2");
        assert_eq!(application["metadata"]["uid"], uid);
    }
    assert_eq!(
        scene.events()[2..],
        ["updated: updated Application \"a\"", "updated: updated Application \"b\""]
    );
}

#[tokio::test(start_paused = true)]
async fn drift_is_undone() {
    let scene = Scene::new().await;
    scene.put(set("set", list(&["a"]))).await;
    let mut drifted = scene.application("a");
    drifted["metadata"]["managedFields"] = Value::Null;
    drifted["spec"]["source"]["path"] = "elsewhere".into();
    scene.put(drifted).await;
    assert_eq!(scene.application("a")["spec"]["source"]["path"], "app");
}

#[tokio::test(start_paused = true)]
async fn an_application_that_someone_deletes_comes_back() {
    let scene = Scene::new().await;
    let mut wanted = set("set", list(&["a", "b"]));
    wanted["spec"]["syncPolicy"] = json!({"preserveResourcesOnDeletion": true});
    scene.put(wanted).await;
    let before = scene.application("a")["metadata"]["uid"].clone();
    scene.remove("Application", "a").await;
    assert_eq!(scene.names(), ["a", "b"]);
    assert_ne!(scene.application("a")["metadata"]["uid"], before);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_set_takes_its_applications_along() {
    let scene = Scene::new().await;
    let mut wanted = set("set", list(&["a", "b"]));
    wanted["spec"]["syncPolicy"] = json!({"preserveResourcesOnDeletion": true});
    scene.put(wanted).await;
    scene.remove("ApplicationSet", "set").await;
    assert_eq!(scene.names(), Vec::<String>::new());
}
