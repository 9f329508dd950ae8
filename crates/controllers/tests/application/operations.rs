//! Syncs as operations: hooks, waves, failure, termination, crashes.

use serde_json::json;

use crate::scene::{Scene, application, config_map, deployment, job, operating, results, text};

const SYNC: &str = "argocd.argoproj.io";

fn hook(phase: &str) -> String {
    format!("{SYNC}/hook: {phase}")
}

async fn synced_by_hand(scene: &Scene, name: &str) {
    let mut wanted = application(name, name, "east");
    wanted["spec"]["syncPolicy"] = json!({"syncOptions": ["CreateNamespace=true"]});
    scene.apply(wanted).await;
    scene.patch(name, json!({"operation": {"sync": {"syncOptions": ["CreateNamespace=true"]}}})).await;
}

#[tokio::test(start_paused = true)]
async fn hooks_run_around_the_waves_and_each_wave_waits_for_the_one_before() {
    let scene = Scene::new().await;
    scene.commit(&[
        ("app/pre.yaml", &job("pre", &hook("PreSync"))),
        ("app/web.yaml", &deployment("web", &format!("{SYNC}/sync-wave: \"1\""))),
        ("app/late.yaml", &config_map("late", "a", "b", &format!("{SYNC}/sync-wave: \"2\""))),
        (
            "app/post.yaml",
            &job("post", &format!("{}, {SYNC}/hook-delete-policy: HookSucceeded", hook("PostSync"))),
        ),
    ]);
    synced_by_hand(&scene, "app").await;
    let (phase, message) = scene.ended("app").await;
    assert_eq!((phase.as_str(), message.as_str()), ("Succeeded", "successfully synced (no more tasks)"));
    let created = |resource: &str, name: &str| {
        let history = scene.member("east").store().history(0);
        let found = history
            .iter()
            .find(|event| &*event.record.key.resource == resource && &*event.record.key.name == name);
        found.map(|event| event.revision).unwrap_or_else(|| panic!("no {resource} {name}"))
    };
    let order = [
        created("jobs.batch", "pre"),
        created("deployments.apps", "web"),
        created("configmaps", "late"),
        created("jobs.batch", "post"),
    ];
    assert!(order.is_sorted(), "{order:?}");
    assert!(scene.object("east", "jobs.batch", "pre").is_some(), "kept until the next sync");
    scene.until_all("cleaned up", |scene| scene.object("east", "jobs.batch", "post").is_none()).await;
    let application = scene.application("app");
    assert_eq!(
        results(&application),
        [
            // What the namespace came to nobody looks at again, as with Argo CD.
            "Namespace/demo Synced Running",
            "Job/pre Synced Succeeded",
            "Deployment/web Synced Succeeded",
            "ConfigMap/late Synced Succeeded",
            "Job/post Synced Succeeded"
        ]
        .map(str::to_owned)
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_hook_fails_the_sync_and_runs_its_sync_fail_hooks() {
    let scene = Scene::new().await;
    scene.commit(&[
        ("app/pre.yaml", &job("pre", &format!("{}, sim.baton.dev/fail: boom", hook("PreSync")))),
        ("app/a.yaml", &config_map("a", "a", "b", "")),
        ("app/sorry.yaml", &job("sorry", &hook("SyncFail"))),
    ]);
    synced_by_hand(&scene, "app").await;
    let (phase, message) = scene.ended("app").await;
    assert_eq!(phase, "Failed");
    assert!(message.starts_with("one or more synchronization tasks completed unsuccessfully"), "{message}");
    assert!(scene.object("east", "jobs.batch", "sorry").is_some());
    assert!(scene.object("east", "configmaps", "a").is_none(), "the sync itself never began");
}

#[tokio::test(start_paused = true)]
async fn an_operation_can_be_terminated() {
    let scene = Scene::new().await;
    scene.commit(&[(
        "app/pre.yaml",
        &job("pre", &format!("{}, sim.baton.dev/stuck: \"true\"", hook("PreSync"))),
    )]);
    synced_by_hand(&scene, "app").await;
    scene
        .until("app", |application| {
            text(application, "/status/operationState/message")
                == "waiting for completion of hook batch/Job/pre"
        })
        .await;
    scene.patch("app", json!({"status": {"operationState": {"phase": "Terminating"}}})).await;
    let (phase, message) = scene.ended("app").await;
    assert_eq!((phase.as_str(), message.as_str()), ("Failed", "Operation terminated"));
    scene.until_all("the hook is gone", |scene| scene.object("east", "jobs.batch", "pre").is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn pruning_that_asks_for_confirmation_waits_for_it() {
    let scene = Scene::new().await;
    scene.commit(&[
        ("app/keep.yaml", &config_map("keep", "a", "b", "")),
        (
            "app/precious.yaml",
            &config_map("precious", "a", "b", &format!("{SYNC}/sync-options: Prune=confirm")),
        ),
    ]);
    synced_by_hand(&scene, "app").await;
    assert_eq!(scene.ended("app").await.0, "Succeeded");
    scene.remove("app/precious.yaml");
    scene.patch("app", json!({"operation": {"sync": {"prune": true}}})).await;
    let waiting = scene
        .until("app", |application| {
            text(application, "/status/operationState/message")
                == "waiting for pruning confirmation of /ConfigMap/precious"
        })
        .await;
    assert!(operating(&waiting));
    tokio::time::sleep(std::time::Duration::from_secs(300)).await;
    assert!(scene.object("east", "configmaps", "precious").is_some());
    let now = scene.control.now().to_string();
    scene
        .patch("app", json!({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": now}}}))
        .await;
    assert_eq!(scene.ended("app").await.0, "Succeeded");
    scene.until_all("pruned", |scene| scene.object("east", "configmaps", "precious").is_none()).await;
}
