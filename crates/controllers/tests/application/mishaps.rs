//! Writes that are refused, lost or repeated, and crashes: nothing is done twice, nothing guarded is lost.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_apiserver::store::Change;
use http::Method;
use serde_json::{Value, json};

use crate::faults::{Call, Fault};
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

/// The controller dies right after a write took effect and before it knows of it.
#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_neither_loses_nor_repeats_a_hook() {
    for of_member in [false, true] {
        for nth in 0.. {
            let mut scene = Scene::new().await;
            two_hooks(&scene);
            let reached = Arc::new(AtomicBool::new(false));
            let wire = if of_member { &scene.members["east"].1 } else { &scene.wire };
            wire.fail(silent_after(nth, reached.clone()));
            let mut wanted = application("app", "app", "east");
            wanted["operation"] = json!({"sync": {"syncOptions": ["CreateNamespace=true"]}});
            scene.apply(wanted).await;
            let ended = |scene: &Scene| {
                let phase = scene.find("app").map(|app| text(&app, "/status/operationState/phase"));
                phase.as_deref() == Some("Succeeded")
            };
            scene
                .until_all("that write, or the end", |scene| reached.load(Ordering::Relaxed) || ended(scene))
                .await;
            let crashed = reached.load(Ordering::Relaxed);
            if crashed {
                scene.members["east"].1.heal();
                scene = scene.crash().await;
            }
            let (phase, message) = scene.ended("app").await;
            assert_eq!(phase, "Succeeded", "after write {nth}: {message}");
            assert_eq!((runs_of(&scene, "pre"), runs_of(&scene, "post")), (1, 1), "after write {nth}");
            if !crashed {
                assert!(nth > 4, "there were only {nth} writes to crash after");
                break;
            }
        }
    }
}

/// Wherever the controller dies, nothing of the Application is deleted before all that is guarded is approved.
#[tokio::test(start_paused = true)]
async fn crashes_delete_nothing_that_is_not_approved() {
    for of_member in [false, true] {
        for nth in 0.. {
            let mut scene = Scene::new().await;
            scene.commit(&[
                ("web/a.yaml", &config_map("a", "a", "b", "argocd.argoproj.io/sync-wave: \"1\"")),
                (
                    "web/precious.yaml",
                    &config_map("precious", "a", "b", "argocd.argoproj.io/sync-options: Delete=confirm"),
                ),
            ]);
            let mut wanted = automated(application("web", "web", "east"));
            wanted["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
            scene.apply(wanted).await;
            scene.settled("web").await;
            let reached = Arc::new(AtomicBool::new(false));
            let wire = if of_member { &scene.members["east"].1 } else { &scene.wire };
            wire.fail(silent_after(nth, reached.clone()));
            let version = "argoproj.io/v1alpha1";
            scene.control.delete_object(version, "Application", NAMESPACE, "web").await.expect("a deletion");
            let asks = |scene: &Scene| {
                let told = scene.find("web").map(|web| conditions(&web)).unwrap_or_default();
                told.iter().any(|condition| condition.starts_with("DeletionApprovalRequiredInfo: "))
            };
            let crashed = || reached.load(Ordering::Relaxed);
            scene.until_all("that write, or the question", |scene| crashed() || asks(scene)).await;
            if crashed() {
                scene.members["east"].1.heal();
                scene = scene.crash().await;
                scene.until_all("the question", asks).await;
            }
            let begin = scene.member("east").store().revision();
            let now = scene.control.now().to_string();
            let approval =
                json!({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": now}}});
            scene.patch("web", approval).await;
            let is_gone = |scene: &Scene| scene.find("web").is_none();
            scene.until_all("that write, or the end", |scene| crashed() || is_gone(scene)).await;
            if crashed() && !is_gone(&scene) {
                scene.members["east"].1.heal();
                scene = scene.crash().await;
            }
            scene.until_all("the Application is gone", is_gone).await;
            let history = scene.member("east").store().history(0);
            let mut deletions = history.iter().filter(|event| {
                matches!(event.change, Change::Deleted) && &*event.record.key.resource == "configmaps"
            });
            assert!(deletions.all(|event| event.revision > begin), "crashed after write {nth}");
            assert!(scene.object("east", "configmaps", "precious").is_none());
            if !crashed() {
                break;
            }
        }
    }
}

/// The nth write is carried out and never answered; the flag tells when.
fn silent_after(nth: usize, reached: Arc<AtomicBool>) -> impl FnMut(usize, &Call) -> Option<Fault> + Send {
    let mut writes = 0;
    move |_, call| {
        if call.method == Method::GET || call.path.ends_with("/events") {
            return None;
        }
        writes += 1;
        (writes == nth + 1).then(|| {
            reached.store(true, Ordering::Relaxed);
            Fault::Silent
        })
    }
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
        ["UnknownError: the status cannot be stored: Request entity too large: limit is 3145728"]
    );
}
