//! Namespaces, with which everything goes that is in them.

use serde_json::{Value, json};

use super::trial::{A_WHILE, APPROVED, OPTIONS, Trial, by_hand, finalized, plain, with_options};
use crate::scene::{conditions, config_map, text};

fn namespace(options: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: data\n  annotations: {{{OPTIONS}: \"{options}\"}}\n"
    )
}

/// A ConfigMap in the namespace `data`.
fn inside(name: &str, options: &str) -> String {
    let map = config_map(name, "a", "b", &format!("{OPTIONS}: \"{options}\""));
    map.replace(&format!("  name: {name}\n"), &format!("  name: {name}\n  namespace: data\n"))
}

fn in_data(application: Value) -> Value {
    let mut application = application;
    application["spec"]["destination"]["namespace"] = json!("data");
    application
}

fn has_namespace(trial: &Trial) -> bool {
    let found = trial.scene.object("east", "namespaces", "data");
    found.is_some_and(|found| text(&found, "/metadata/deletionTimestamp").is_empty())
}

/// `app` has the namespace, `other` a guarded ConfigMap in it.
async fn of_two(app: Value, other: Value, options: &str) -> Trial {
    let trial = Trial::new().await;
    trial.deploy(app, &[("app/data.yaml", &namespace("")), ("app/keep.yaml", &plain("keep"))]).await;
    trial.deploy(in_data(other), &[("other/theirs.yaml", &inside("theirs", options))]).await;
    trial
}

#[tokio::test(start_paused = true)]
async fn a_guarded_namespace_holds_what_is_in_it() {
    let trial = Trial::deployed(&[
        ("app/data.yaml", &namespace("Prune=confirm")),
        ("app/inside.yaml", &inside("inside", "")),
        ("app/keep.yaml", &plain("keep")),
    ])
    .await;
    trial.drop_files(&["app/data.yaml", "app/inside.yaml"]);
    trial.prune(json!({})).await;
    trial.asks_for("/Namespace/data").await;
    assert!(trial.has("inside") && has_namespace(&trial));
    trial.approve_all_now().await;
    trial.succeeds().await;
    trial.scene.until_all("gone", |scene| scene.object("east", "namespaces", "data").is_none()).await;
    assert_eq!(trial.left(&["keep", "inside"]), ["keep"]);
    trial.judge().await;
}

/// The guarded object stays in git; only the namespace that holds it leaves.
#[tokio::test(start_paused = true)]
async fn a_namespace_asks_for_what_it_holds_of_its_own_application() {
    let trial = Trial::deployed(&[
        ("app/data.yaml", &namespace("")),
        ("app/inside.yaml", &inside("inside", "Delete=confirm")),
    ])
    .await;
    trial.drop_files(&["app/data.yaml"]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/inside").await;
    assert!(trial.has("inside") && has_namespace(&trial));
    trial.approve_all_now().await;
    trial.scene.until_all("it goes", |_| !has_namespace(&trial)).await;
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_asks_for_what_it_holds_of_another_application() {
    let trial = of_two(by_hand("app"), by_hand("other"), "Prune=confirm").await;
    trial.drop_files(&["app/data.yaml"]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/theirs").await;
    // The word of one Application is not that of the other.
    trial.approve_all_now().await;
    trial.asks_for("/ConfigMap/theirs").await;
    assert!(trial.has("theirs") && has_namespace(&trial));
    trial.annotate_in("data", "theirs", json!({APPROVED: "true"})).await;
    trial.succeeds().await;
    assert!(!has_namespace(&trial));
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_asks_for_what_another_application_guards_by_default() {
    let other = with_options(by_hand("other"), &["Prune=confirm"]);
    let trial = of_two(by_hand("app"), other, "").await;
    trial.drop_files(&["app/data.yaml"]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/theirs").await;
    assert!(trial.has("theirs") && has_namespace(&trial));
    trial.annotate_in("data", "theirs", json!({APPROVED: "true"})).await;
    trial.succeeds().await;
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_an_application_asks_for_what_its_namespace_holds_of_another() {
    let trial = of_two(finalized(by_hand("app")), by_hand("other"), "Delete=confirm").await;
    trial.delete("app").await;
    let waits = |app: &Value| {
        let words = "DeletionApprovalRequiredInfo: waiting for deletion confirmation of /ConfigMap/theirs";
        conditions(app).iter().any(|condition| condition == words)
    };
    trial.scene.until("app", waits).await;
    trial.approve_all_now().await;
    trial.pass(A_WHILE).await;
    assert!(waits(&trial.scene.application("app")), "the word of one Application is not that of the other");
    assert_eq!(trial.left(&["keep", "theirs"]), ["keep", "theirs"]);
    assert!(has_namespace(&trial));
    trial.annotate_in("data", "theirs", json!({APPROVED: "true"})).await;
    trial.is_gone("app").await;
    assert!(!has_namespace(&trial));
    trial.judge().await;
}

/// A hook in a namespace is its own affair.
#[tokio::test(start_paused = true)]
async fn hooks_in_a_namespace_are_not_asked_for() {
    let hook = config_map(
        "theirs",
        "a",
        "b",
        &format!("{OPTIONS}: \"Delete=confirm\", argocd.argoproj.io/hook: PreSync"),
    );
    let trial = Trial::new().await;
    trial.deploy(finalized(by_hand("app")), &[("app/data.yaml", &namespace(""))]).await;
    trial.deploy(in_data(by_hand("other")), &[("other/theirs.yaml", &hook)]).await;
    assert!(trial.has("theirs"));
    trial.delete("app").await;
    trial.is_gone("app").await;
    assert!(!has_namespace(&trial));
    trial.judge().await;
}
