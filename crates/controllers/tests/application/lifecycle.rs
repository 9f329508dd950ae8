//! From git to the cluster and back: create, drift, prune, rollback, app of apps.

use serde_json::{Value, json};

use crate::scene::{
    NAMESPACE, REPOSITORY, Scene, application, automated, conditions, config_map, deployment, health,
    operating, sync, text,
};

#[tokio::test(start_paused = true)]
async fn an_application_is_synced_by_itself_and_becomes_healthy() {
    let scene = Scene::new().await;
    let commit = scene.commit(&[
        ("web/config.yaml", &config_map("settings", "colour", "blue", "")),
        ("web/web.yaml", &deployment("web", "")),
    ]);
    let began = tokio::time::Instant::now();
    scene.apply(automated(application("web", "web", "east"))).await;
    let settled = scene.settled("web").await;
    assert!(began.elapsed().as_secs() < 10, "it waited for nothing but the workload: {:?}", began.elapsed());
    assert_eq!(text(&settled, "/status/sync/revision"), commit);
    assert_eq!(text(&settled, "/status/operationState/message"), "successfully synced (all tasks run)");
    assert_eq!(text(&settled, "/status/sourceType"), "Directory");
    assert_eq!(text(&settled, "/status/controllerNamespace"), NAMESPACE);
    assert_eq!(settled["status"]["operationState"]["operation"]["initiatedBy"]["automated"], true);
    let rows: Vec<String> = settled["status"]["resources"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| format!("{}/{} {}", text(row, "/kind"), text(row, "/name"), text(row, "/status")))
        .collect();
    assert_eq!(rows, ["ConfigMap/settings Synced", "Deployment/web Synced"]);
    let history = settled["status"]["history"].as_array().expect("history");
    assert_eq!((history.len(), text(&history[0], "/revision")), (1, commit));
    let live = scene.object("east", "configmaps", "settings").expect("the ConfigMap");
    let id = "/metadata/annotations/argocd.argoproj.io~1tracking-id";
    assert_eq!(text(&live, id), "web:/ConfigMap:demo/settings");
    assert!(scene.object("west", "configmaps", "settings").is_none());
    assert!(
        scene.events().iter().any(|event| event.starts_with("OperationStarted: Initiated automated sync to"))
    );
}

#[tokio::test(start_paused = true)]
async fn drift_is_healed_and_what_leaves_git_is_pruned() {
    let scene = Scene::new().await;
    scene.commit(&[
        ("web/a.yaml", &config_map("a", "colour", "blue", "")),
        ("web/b.yaml", &config_map("b", "colour", "red", "")),
    ]);
    scene.apply(automated(application("web", "web", "east"))).await;
    scene.settled("web").await;
    let drifted = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "demo"}, "data": {"colour": "green"},
    });
    scene.member("east").apply("somebody", &drifted).await.expect("drift");
    let healed = |object: Option<Value>| object.is_some_and(|object| text(&object, "/data/colour") == "blue");
    scene.until_all("healed", |scene| healed(scene.object("east", "configmaps", "a"))).await;
    let settled = scene.settled("web").await;
    assert_eq!(settled["status"]["operationState"]["operation"]["sync"]["autoHealAttemptsCount"], 1);
    assert_eq!(
        settled["status"]["history"].as_array().map(Vec::len),
        Some(1),
        "a self-heal is no deployment"
    );
    scene.remove("web/b.yaml");
    scene.refresh("web").await;
    scene.until_all("pruned", |scene| scene.object("east", "configmaps", "b").is_none()).await;
    scene.settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn without_auto_sync_differences_are_only_shown() {
    let scene = Scene::new().await;
    scene.commit(&[("web/a.yaml", &config_map("a", "colour", "blue", ""))]);
    scene.apply(application("web", "web", "east")).await;
    let shown = scene.until("web", |application| sync(application) == "OutOfSync").await;
    assert_eq!(health(&shown), "Missing");
    assert!(!operating(&shown) && scene.object("east", "configmaps", "a").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_rollback_goes_to_the_revision_it_names() {
    let scene = Scene::new().await;
    let first = scene.commit(&[("web/a.yaml", &config_map("a", "colour", "blue", ""))]);
    let mut wanted = application("web", "web", "east");
    wanted["spec"]["syncPolicy"] = json!({"syncOptions": ["CreateNamespace=true"]});
    scene.apply(wanted).await;
    let operation = |revision: &str| json!({"operation": {"sync": {"revision": revision, "syncOptions": ["CreateNamespace=true"]}}});
    scene.until("web", |application| sync(application) == "OutOfSync").await;
    scene.patch("web", operation(&first)).await;
    scene.ended("web").await;
    let second = scene.commit(&[("web/a.yaml", &config_map("a", "colour", "red", ""))]);
    scene.patch("web", operation(&second)).await;
    let colour = |scene: &Scene| scene.object("east", "configmaps", "a").map(|a| text(&a, "/data/colour"));
    scene.until_all("red", |scene| colour(scene).as_deref() == Some("red")).await;
    scene.ended("web").await;
    scene.patch("web", operation(&first)).await;
    scene.until_all("blue again", |scene| colour(scene).as_deref() == Some("blue")).await;
    scene.ended("web").await;
    let application =
        scene.until("web", |application| sync(application) == "OutOfSync" && !operating(application)).await;
    let revisions: Vec<String> = application["status"]["history"]
        .as_array()
        .expect("history")
        .iter()
        .map(|entry| text(entry, "/revision"))
        .collect();
    assert_eq!(revisions, [first.clone(), second, first]);
}

#[tokio::test(start_paused = true)]
async fn an_app_of_apps_deploys_its_children() {
    let scene = Scene::new().await;
    let child = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: child\nspec:\n  project: default\n  source: {{repoURL: \"{REPOSITORY}\", path: child, targetRevision: main}}\n  destination: {{name: west, namespace: demo}}\n  syncPolicy: {{automated: {{}}, syncOptions: [CreateNamespace=true]}}\n"
    );
    scene.commit(&[("parent/child.yaml", &child), ("child/a.yaml", &config_map("a", "colour", "blue", ""))]);
    let mut parent = automated(application("parent", "parent", "east"));
    parent["spec"]["destination"] = json!({"name": "in-cluster", "namespace": NAMESPACE});
    scene.apply(parent).await;
    scene.settled("child").await;
    scene.settled("parent").await;
    assert!(scene.object("west", "configmaps", "a").is_some());
}

#[tokio::test(start_paused = true)]
async fn several_sources_are_one_application_and_each_has_its_revision() {
    let scene = Scene::new().await;
    let first = scene.commit(&[("one/a.yaml", &config_map("a", "colour", "blue", ""))]);
    let second = scene.commit(&[("two/b.yaml", &config_map("b", "colour", "red", ""))]);
    let mut wanted = automated(application("web", "", "east"));
    wanted["spec"]["source"] = json!(null);
    wanted["spec"]["sources"] = json!([
        {"repoURL": REPOSITORY, "path": "one", "targetRevision": first},
        {"repoURL": REPOSITORY, "path": "two", "targetRevision": "main"},
    ]);
    scene.apply(wanted).await;
    let settled = scene.settled("web").await;
    assert_eq!(settled["status"]["sync"]["revisions"], json!([first, second]));
    assert_eq!(settled["status"]["operationState"]["syncResult"]["revisions"], json!([first, second]));
    assert_eq!(settled["status"]["history"][0]["revisions"], json!([first, second]));
    for name in ["a", "b"] {
        assert!(scene.object("east", "configmaps", name).is_some(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_application_that_moves_is_deployed_where_it_moves_to() {
    let scene = Scene::new().await;
    scene.commit(&[("web/a.yaml", &config_map("a", "colour", "blue", ""))]);
    scene.apply(automated(application("web", "web", "east"))).await;
    scene.settled("web").await;
    scene.patch("web", json!({"spec": {"destination": {"server": crate::scene::server("west")}}})).await;
    scene.until_all("deployed to west", |scene| scene.object("west", "configmaps", "a").is_some()).await;
    let settled = scene.settled("web").await;
    let compared = text(&settled, "/status/sync/comparedTo/destination/server");
    assert_eq!(compared, crate::scene::server("west"));
    assert!(scene.object("east", "configmaps", "a").is_some(), "nobody asked for its deletion");
}

#[tokio::test(start_paused = true)]
async fn a_spec_that_is_not_permitted_is_said_and_nothing_is_done() {
    let scene = Scene::new().await;
    scene.commit(&[("web/a.yaml", &config_map("a", "colour", "blue", ""))]);
    let mut wanted = automated(application("web", "web", "east"));
    wanted["spec"]["project"] = json!("nowhere");
    scene.apply(wanted).await;
    let refused = scene.until("web", |application| sync(application) == "Unknown").await;
    assert_eq!(
        conditions(&refused),
        ["InvalidSpecError: Application referencing project nowhere which does not exist"]
    );
    assert_eq!(health(&refused), "Unknown");
    assert!(scene.object("east", "configmaps", "a").is_none());
}
