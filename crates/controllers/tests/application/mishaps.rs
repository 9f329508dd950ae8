//! Writes that are refused, lost or repeated, and crashes: nothing is done twice, nothing guarded is lost.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::faults::Fault;
use crate::scene::{NAMESPACE, Scene, application, automated, conditions, config_map, job, text};

fn two_hooks(scene: &Scene) {
    let hook = |phase: &str| format!("argocd.argoproj.io/hook: {phase}");
    scene.commit(&[
        ("app/pre.yaml", &job("pre", &hook("PreSync"))),
        ("app/a.yaml", &config_map("a", "a", "b", "")),
        ("app/post.yaml", &job("post", &hook("PostSync"))),
    ]);
}

fn runs_of(scene: &Scene, name: &str) -> usize {
    let history = scene.member("east").store().history(0);
    let runs: BTreeSet<String> = history
        .iter()
        .filter(|event| &*event.record.key.resource == "jobs.batch" && &*event.record.key.name == name)
        .map(|event| {
            let object: Value = serde_json::from_slice(&event.record.json()).expect("JSON");
            text(&object, "/metadata/uid")
        })
        .collect();
    runs.len()
}

/// Each write to the Application fails once in each way there is.
#[tokio::test(start_paused = true)]
async fn a_sync_survives_any_write_that_fails() {
    for nth in 0..8 {
        for fault in [
            Fault::Refused(409, "the object has been modified".to_owned()),
            Fault::Refused(503, "not now".to_owned()),
            Fault::Done(500, "it may have been done".to_owned()),
            Fault::Silent,
        ] {
            let scene = Scene::new().await;
            two_hooks(&scene);
            let (mut writes, failing) = (0, fault.clone());
            scene.wire.fail(move |_, call| {
                if call.method != Method::PATCH {
                    return None;
                }
                writes += 1;
                (writes == nth + 1).then(|| failing.clone())
            });
            let mut wanted = application("app", "app", "east");
            wanted["spec"]["syncPolicy"] = json!({"syncOptions": ["CreateNamespace=true"]});
            wanted["operation"] = json!({"sync": {"syncOptions": ["CreateNamespace=true"]}});
            scene.apply(wanted).await;
            assert_eq!(scene.ended("app").await.0, "Succeeded", "write {nth}: {fault:?}");
            assert_eq!((runs_of(&scene, "pre"), runs_of(&scene, "post")), (1, 1), "write {nth}: {fault:?}");
        }
    }
}

/// However often the controller dies, what is guarded waits for its approval.
#[tokio::test(start_paused = true)]
async fn crashes_delete_nothing_that_is_not_approved() {
    let mut scene = Scene::new().await;
    scene.commit(&[
        ("web/a.yaml", &config_map("a", "a", "b", "")),
        (
            "web/precious.yaml",
            &config_map("precious", "a", "b", "argocd.argoproj.io/sync-options: Delete=confirm"),
        ),
    ]);
    let mut wanted = automated(application("web", "web", "east"));
    wanted["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    scene.apply(wanted).await;
    scene.settled("web").await;
    let kind = "Application";
    scene.control.delete_object("argoproj.io/v1alpha1", kind, NAMESPACE, "web").await.expect("a deletion");
    for pause in [0, 1, 10, 100, 1000, 40_000] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        scene = scene.crash().await;
    }
    let asked = |application: &Value| {
        conditions(application)
            .iter()
            .any(|condition| condition.starts_with("DeletionApprovalRequiredInfo: "))
    };
    scene.until("web", asked).await;
    for name in ["a", "precious"] {
        assert!(scene.object("east", "configmaps", name).is_some(), "{name}");
    }
    let now = scene.control.now().to_string();
    scene
        .patch("web", json!({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": now}}}))
        .await;
    scene.until_all("the Application is gone", |scene| scene.find("web").is_none()).await;
    assert!(scene.object("east", "configmaps", "precious").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_too_large_is_said_to_be() {
    let scene = Scene::new().await;
    scene.commit(&[("web/a.yaml", &config_map("a", "a", "b", ""))]);
    scene.wire.fail(|_, call| {
        let rows = call.patch.as_ref().is_some_and(|patch| patch.pointer("/status/resources").is_some());
        rows.then(|| Fault::Refused(413, "Request entity too large: limit is 3145728".to_owned()))
    });
    scene.apply(application("web", "web", "east")).await;
    let told = scene.until("web", |application| !conditions(application).is_empty()).await;
    assert_eq!(
        conditions(&told),
        ["UnknownError: the status is too large to be stored: Request entity too large: limit is 3145728"]
    );
}
