//! Deletion of Applications whose resources are guarded.

use std::time::Duration;

use serde_json::{Value, json};

use super::trial::{A_WHILE, APPROVED, Trial, by_hand, finalized, guarded, plain, with, with_options};
use crate::scene::{NAMESPACE, REPOSITORY, automated, conditions, job, text};

/// `app` with these ConfigMaps, each with its options, and told to be deleted.
async fn deleted(options: &[&str], maps: &[(&str, &str)]) -> Trial {
    let trial = Trial::new().await;
    let files: Vec<(String, String)> =
        maps.iter().map(|(name, options)| (format!("app/{name}.yaml"), with(name, options))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    trial.deploy(finalized(with_options(by_hand("app"), options)), &files).await;
    trial.delete("app").await;
    trial
}

/// Waits until the deletion asks for approval of this, and sees it still do so a while later.
async fn asks_for(trial: &Trial, what: &str) -> Value {
    let words = format!("DeletionApprovalRequiredInfo: waiting for deletion confirmation of {what}");
    // Why a word that was given does not count may follow.
    let more = format!("{words}; ");
    let asks = |app: &Value| conditions(app).iter().any(|told| *told == words || told.starts_with(&more));
    trial.scene.until("app", asks).await;
    trial.pass(A_WHILE).await;
    let app = trial.scene.application("app");
    assert!(asks(&app), "it no longer waits: {app:#?}");
    app
}

#[tokio::test(start_paused = true)]
async fn only_a_word_since_the_deletion_counts() {
    let trial = deleted(&["CreateNamespace=true"], &[("plain", ""), ("precious", "Delete=confirm")]).await;
    let app = asks_for(&trial, "/ConfigMap/precious").await;
    let since: jiff::Timestamp = text(&app, "/metadata/deletionTimestamp").parse().expect("a time");
    trial.approve_all("app", &(since - jiff::SignedDuration::from_millis(1)).to_string()).await;
    let app = asks_for(&trial, "/ConfigMap/precious").await;
    let why = format!("is before the operation began at {since}");
    assert!(conditions(&app)[0].ends_with(&why), "{app:#?}");
    trial.approve_all("app", "true").await;
    asks_for(&trial, "/ConfigMap/precious").await;
    assert_eq!(trial.left(&["plain", "precious"]), ["plain", "precious"]);
    trial.approve_all("app", &since.to_string()).await;
    trial.is_gone("app").await;
    assert_eq!(trial.left(&["plain", "precious"]), [] as [&str; 0]);
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn a_word_on_the_resource_from_before_does_not_count() {
    let trial = Trial::new().await;
    trial
        .deploy(finalized(by_hand("app")), &[("app/precious.yaml", &with("precious", "Delete=confirm"))])
        .await;
    trial.approve("precious").await;
    trial.pass(Duration::from_secs(2)).await;
    trial.delete("app").await;
    asks_for(&trial, "/ConfigMap/precious").await;
    assert!(trial.has("precious"));
    trial.annotate("precious", json!({})).await;
    asks_for(&trial, "/ConfigMap/precious").await;
    trial.approve("precious").await;
    trial.is_gone("app").await;
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn prune_confirm_asks_on_deletion_too_unless_delete_says_otherwise() {
    let maps = [("asks", "Prune=confirm"), ("free", "Prune=confirm,Delete=true"), ("stays", "Delete=false")];
    let trial = deleted(&["CreateNamespace=true"], &maps).await;
    let app = asks_for(&trial, "/ConfigMap/asks").await;
    for (name, waits) in [("asks", true), ("free", false), ("stays", false)] {
        let rows = app["status"]["resources"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["name"] == name).expect("a row");
        assert_eq!(row["requiresDeletionApproval"] == true, waits, "{row}");
        assert_eq!(row["requiresDeletionConfirmation"] == true, name != "stays", "{row}");
    }
    assert_eq!(trial.left(&["asks", "free"]), ["asks", "free"]);
    trial.approve("asks").await;
    trial.is_gone("app").await;
    assert_eq!(trial.left(&["asks", "free", "stays"]), ["stays"]);
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn the_option_of_the_application_holds_for_what_says_nothing() {
    let options = ["CreateNamespace=true", "Delete=confirm"];
    let trial = deleted(&options, &[("a", ""), ("b", ""), ("free", "Delete=true")]).await;
    asks_for(&trial, "/ConfigMap/a and 1 more resources").await;
    trial.approve("b").await;
    asks_for(&trial, "/ConfigMap/a").await;
    trial.annotate("b", json!({})).await;
    asks_for(&trial, "/ConfigMap/a and 1 more resources").await;
    trial.approve("a").await;
    asks_for(&trial, "/ConfigMap/b").await;
    assert_eq!(trial.left(&["a", "b", "free"]), ["a", "b", "free"]);
    trial.approve("b").await;
    trial.is_gone("app").await;
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn where_every_resource_may_go_nobody_is_asked() {
    let options = ["CreateNamespace=true", "Delete=confirm", "Prune=confirm"];
    let trial = deleted(&options, &[("a", "Delete=true"), ("b", "Prune=true,Delete=true")]).await;
    trial.is_gone("app").await;
    assert_eq!(trial.left(&["a", "b"]), [] as [&str; 0]);
    trial.judge().await;
}

/// The status of an Application that was never compared says nothing of its resources.
#[tokio::test(start_paused = true)]
async fn an_application_that_was_never_compared_asks_as_well() {
    let trial = Trial::new().await;
    let maps =
        [("app/plain.yaml", plain("plain")), ("app/precious.yaml", with("precious", "Delete=confirm"))];
    let maps: Vec<(&str, &str)> = maps.iter().map(|(path, text)| (*path, text.as_str())).collect();
    trial.deploy(by_hand("app"), &maps).await;
    trial.delete("app").await;
    trial.is_gone("app").await;
    let mut again = finalized(by_hand("app"));
    again["metadata"]["annotations"] = json!({"argocd.argoproj.io/skip-reconcile": "true"});
    trial.scene.apply(again).await;
    trial.delete("app").await;
    let skip = json!({"metadata": {"annotations": {"argocd.argoproj.io/skip-reconcile": null}}});
    trial.scene.patch("app", skip).await;
    asks_for(&trial, "/ConfigMap/precious").await;
    assert_eq!(trial.left(&["plain", "precious"]), ["plain", "precious"]);
    trial.approve("precious").await;
    trial.is_gone("app").await;
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn a_restarted_controller_waits_on_and_takes_the_approval() {
    let trial = deleted(&["CreateNamespace=true"], &[("plain", ""), ("precious", "Delete=confirm")]).await;
    asks_for(&trial, "/ConfigMap/precious").await;
    let trial = trial.crash().await;
    asks_for(&trial, "/ConfigMap/precious").await;
    let trial = trial.crash().await;
    trial.approve_all_now().await;
    trial.is_gone("app").await;
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn hooks_of_a_deletion_run_unasked_and_go_unasked() {
    let trial = Trial::new().await;
    let hook = |phase: &str| {
        let guard = "argocd.argoproj.io/sync-options: \"Delete=confirm,Prune=confirm\"";
        format!("argocd.argoproj.io/hook: {phase}, {guard}")
    };
    let files = [
        ("app/plain.yaml", plain("plain")),
        ("app/pre.yaml", job("pre", &hook("PreDelete"))),
        ("app/sync.yaml", job("sync", &hook("PostSync"))),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    trial.deploy(finalized(by_hand("app")), &files).await;
    trial.delete("app").await;
    trial.is_gone("app").await;
    assert!(!trial.has("plain"));
    trial.judge().await;
}

/// A sync that waits and a deletion that waits behind it: one word of now serves both.
#[tokio::test(start_paused = true)]
async fn a_deletion_behind_a_waiting_sync_deletes_nothing() {
    let trial = Trial::new().await;
    let files = [
        ("app/plain.yaml", plain("plain")),
        ("app/precious.yaml", guarded("precious")),
        ("app/dear.yaml", guarded("dear")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    trial.deploy(finalized(by_hand("app")), &files).await;
    trial.drop_files(&["app/precious.yaml"]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/precious").await;
    trial.delete("app").await;
    trial.asks_for("/ConfigMap/precious").await;
    trial.approve("precious").await;
    trial.scene.until_all("the sync ends", |_| !trial.has("precious")).await;
    asks_for(&trial, "/ConfigMap/dear").await;
    assert_eq!(trial.left(&["plain", "dear"]), ["plain", "dear"]);
    trial.approve_all_now().await;
    trial.is_gone("app").await;
    trial.judge().await;
}

/// A parent with a child that is an Application of its own, in the cluster the Applications live in.
async fn parent_and_child(options: &str) -> Trial {
    let child = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: child\n  finalizers: [resources-finalizer.argocd.argoproj.io]\n  annotations: {{argocd.argoproj.io/sync-options: \"{options}\"}}\nspec:\n  project: default\n  source: {{repoURL: \"{REPOSITORY}\", path: child, targetRevision: main}}\n  destination: {{name: east, namespace: demo}}\n  syncPolicy: {{automated: {{}}, syncOptions: [CreateNamespace=true]}}\n"
    );
    let trial = Trial::new().await;
    trial.scene.commit(&[
        ("app/child.yaml", &child),
        ("app/keep.yaml", &plain("keep")),
        ("child/plain.yaml", &plain("plain")),
        ("child/precious.yaml", &with("precious", "Delete=confirm")),
    ]);
    let mut parent = finalized(automated(by_hand("app")));
    parent["spec"]["destination"] = json!({"name": "in-cluster", "namespace": NAMESPACE});
    trial.scene.apply(parent).await;
    trial.scene.settled("child").await;
    trial.scene.settled("app").await;
    trial.pass(A_WHILE).await;
    trial
}

#[tokio::test(start_paused = true)]
async fn a_guarded_child_is_pruned_with_approval_and_then_asks_for_its_own() {
    let trial = parent_and_child("Prune=confirm").await;
    trial.drop_files(&["app/child.yaml"]);
    trial.asks_for("argoproj.io/Application/child").await;
    assert!(trial.scene.application("child").pointer("/metadata/deletionTimestamp").is_none());
    trial.approve_all_now().await;
    let going = |child: &Value| child.pointer("/metadata/deletionTimestamp").is_some();
    trial.scene.until("child", going).await;
    trial.pass(A_WHILE).await;
    assert_eq!(trial.left(&["plain", "precious"]), ["plain", "precious"], "the child's own gate");
    trial.approve_all("child", &trial.now().to_string()).await;
    trial.is_gone("child").await;
    trial.scene.settled("app").await;
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_a_parent_asks_for_its_guarded_child() {
    let trial = parent_and_child("Delete=confirm").await;
    trial.delete("app").await;
    // On an Application the word is for the object, a time would be for everything that goes with it.
    asks_for(&trial, "argoproj.io/Application/child").await;
    assert!(trial.scene.application("child").pointer("/metadata/deletionTimestamp").is_none());
    trial.scene.patch("child", json!({"metadata": {"annotations": {APPROVED: "true"}}})).await;
    let going = |child: &Value| child.pointer("/metadata/deletionTimestamp").is_some();
    trial.scene.until("child", going).await;
    trial.pass(A_WHILE).await;
    assert_eq!(trial.left(&["plain", "precious"]), ["plain", "precious"], "the child's own gate");
    trial.approve_all("child", &trial.now().to_string()).await;
    trial.is_gone("app").await;
    assert_eq!(trial.left(&["plain", "precious"]), [] as [&str; 0]);
    trial.judge().await;
}
