//! Deleting Applications: finalizers, hooks, waves, approval.

use serde_json::{Value, json};

use crate::scene::{NAMESPACE, Scene, application, automated, conditions, config_map, job};

async fn delete(scene: &Scene, name: &str) {
    let kind = "Application";
    scene.control.delete_object("argoproj.io/v1alpha1", kind, NAMESPACE, name).await.expect("a deletion");
}

fn finalized(mut application: Value) -> Value {
    application["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    application
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_takes_the_resources_along() {
    let scene = Scene::new().await;
    scene.commit(&[
        ("web/a.yaml", &config_map("a", "a", "b", "argocd.argoproj.io/sync-wave: \"1\"")),
        ("web/b.yaml", &config_map("b", "a", "b", "argocd.argoproj.io/sync-wave: \"2\"")),
        ("web/kept.yaml", &config_map("kept", "a", "b", "argocd.argoproj.io/sync-options: Delete=false")),
    ]);
    scene.apply(finalized(automated(application("web", "web", "east")))).await;
    scene.settled("web").await;
    delete(&scene, "web").await;
    scene.until_all("the Application is gone", |scene| scene.find("web").is_none()).await;
    assert!(scene.object("east", "configmaps", "a").is_none());
    assert!(scene.object("east", "configmaps", "kept").is_some());
    let history = scene.member("east").store().history(0);
    let deleted: Vec<&str> = history
        .iter()
        .filter(|event| matches!(event.change, baton_apiserver::store::Change::Deleted))
        .filter(|event| ["a", "b"].contains(&&*event.record.key.name))
        .map(|event| &*event.record.key.name)
        .collect();
    assert_eq!(deleted, ["b", "a"], "the highest wave goes first");
}

#[tokio::test(start_paused = true)]
async fn without_a_finalizer_everything_stays() {
    let scene = Scene::new().await;
    scene.commit(&[("web/a.yaml", &config_map("a", "a", "b", ""))]);
    scene.apply(automated(application("web", "web", "east"))).await;
    scene.settled("web").await;
    delete(&scene, "web").await;
    scene.until_all("the Application is gone", |scene| scene.find("web").is_none()).await;
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    assert!(scene.object("east", "configmaps", "a").is_some());
}

#[tokio::test(start_paused = true)]
async fn deletion_hooks_run_before_and_after() {
    let scene = Scene::new().await;
    let hook = |phase: &str| format!("argocd.argoproj.io/hook: {phase}");
    scene.commit(&[
        ("web/a.yaml", &config_map("a", "a", "b", "")),
        ("web/pre.yaml", &job("pre", &hook("PreDelete"))),
        ("web/post.yaml", &job("post", &hook("PostDelete"))),
    ]);
    scene.apply(finalized(automated(application("web", "web", "east")))).await;
    let settled = scene.settled("web").await;
    let finalizers: Vec<&str> = settled["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for stage in ["pre-delete", "post-delete"] {
        let name = format!("{stage}-finalizer.argocd.argoproj.io");
        assert!(finalizers.contains(&name.as_str()), "{finalizers:?}");
        assert!(finalizers.contains(&format!("{name}/cleanup").as_str()), "{finalizers:?}");
    }
    delete(&scene, "web").await;
    scene.until_all("the Application is gone", |scene| scene.find("web").is_none()).await;
    let history = scene.member("east").store().history(0);
    let at = |resource: &str, name: &str, deleted: bool| {
        let mut found = history.iter().filter(|event| {
            (&*event.record.key.resource, &*event.record.key.name) == (resource, name)
                && matches!(event.change, baton_apiserver::store::Change::Deleted) == deleted
        });
        found.next().map(|event| event.revision).unwrap_or_else(|| panic!("{name} {deleted}"))
    };
    let order =
        [at("jobs.batch", "pre", false), at("configmaps", "a", true), at("jobs.batch", "post", false)];
    assert!(order.is_sorted(), "{order:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_deletion_hook_runs_again_as_soon_as_git_has_mended_it() {
    let scene = Scene::new().await;
    let hook = "argocd.argoproj.io/hook: PreDelete";
    scene.commit(&[
        ("web/a.yaml", &config_map("a", "a", "b", "")),
        ("web/pre.yaml", &job("pre", &format!("{hook}, sim.baton.dev/fail: boom"))),
    ]);
    scene.apply(finalized(automated(application("web", "web", "east")))).await;
    scene.settled("web").await;
    delete(&scene, "web").await;
    let failed = |application: &Value| {
        let message = "DeletionError: error executing pre-delete hooks: PreDelete hook(s) failed: demo/pre";
        conditions(application).contains(&message.to_owned())
    };
    scene.until("web", failed).await;
    scene.commit(&[("web/pre.yaml", &job("pre", hook))]);
    let mended = tokio::time::Instant::now();
    scene.until_all("the Application is gone", |scene| scene.find("web").is_none()).await;
    let took = mended.elapsed();
    assert!(took < std::time::Duration::from_secs(30), "it took {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_parent_takes_its_children_and_theirs_along() {
    let scene = Scene::new().await;
    let child = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: child\n  finalizers: [resources-finalizer.argocd.argoproj.io]\nspec:\n  project: default\n  source: {repoURL: \"https://git.example.com/apps.git\", path: child, targetRevision: main}\n  destination: {name: west, namespace: demo}\n  syncPolicy: {automated: {}, syncOptions: [CreateNamespace=true]}\n";
    scene.commit(&[
        ("parent/child.yaml", child),
        ("child/a.yaml", &config_map("a", "a", "b", "argocd.argoproj.io/sync-options: Delete=confirm")),
    ]);
    let mut parent = finalized(automated(application("parent", "parent", "east")));
    parent["spec"]["destination"] = json!({"name": "in-cluster", "namespace": NAMESPACE});
    scene.apply(parent).await;
    scene.settled("child").await;
    scene.settled("parent").await;
    delete(&scene, "parent").await;
    let waits = |application: &Value| {
        conditions(application)
            .iter()
            .any(|condition| condition.starts_with("DeletionApprovalRequiredInfo: "))
    };
    scene.until("child", waits).await;
    let parents = |application: &Value| {
        let message = "DeletionWaitingInfo: waiting for deletion of argoproj.io/Application/child";
        conditions(application).iter().any(|condition| condition.starts_with(message))
    };
    scene.until("parent", parents).await;
    let now = scene.control.now().to_string();
    let approval = json!({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": now}}});
    scene.patch("child", approval).await;
    scene
        .until_all("both are gone", |scene| scene.find("child").is_none() && scene.find("parent").is_none())
        .await;
    assert!(scene.object("west", "configmaps", "a").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_guarded_resource_holds_the_deletion_until_it_is_approved() {
    let scene = Scene::new().await;
    scene.commit(&[
        ("web/a.yaml", &config_map("a", "a", "b", "")),
        (
            "web/precious.yaml",
            &config_map("precious", "a", "b", "argocd.argoproj.io/sync-options: Delete=confirm"),
        ),
    ]);
    scene.apply(finalized(automated(application("web", "web", "east")))).await;
    scene.settled("web").await;
    delete(&scene, "web").await;
    let is_waiting = |application: &Value| {
        conditions(application)
            .iter()
            .any(|condition| condition.starts_with("DeletionApprovalRequiredInfo: "))
    };
    let waiting = scene.until("web", is_waiting).await;
    assert!(conditions(&waiting).iter().any(|condition| condition.contains("precious")), "{waiting:#?}");
    assert!(scene.events().iter().any(|event| event.starts_with("DeletionApprovalRequired: ")));
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    assert!(scene.object("east", "configmaps", "a").is_some(), "nothing goes before everything may");
    let approve = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "precious", "namespace": "demo",
            "annotations": {"argocd.argoproj.io/deletion-approved": "true"},
        },
    });
    scene.member("east").apply("person", &approve).await.expect("an approval");
    scene.until_all("the Application is gone", |scene| scene.find("web").is_none()).await;
    assert!(scene.object("east", "configmaps", "precious").is_none());
}
