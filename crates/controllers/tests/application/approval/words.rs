//! What stands on a resource as its approval, whose word it is, and for what it was given.

use std::time::Duration;

use baton_api::object::ResourceKey;
use baton_sync::approval;
use serde_json::{Value, json};

use super::trial::{APPROVED, OPTIONS, Trial, by_hand, guarded, plain};
use crate::scene::{NAMESPACE, application, automated, conditions, config_map};

async fn three() -> Trial {
    Trial::deployed(&[
        ("app/keep.yaml", &plain("keep")),
        ("app/plain.yaml", &plain("plain")),
        ("app/precious.yaml", &guarded("precious")),
        ("app/dear.yaml", &guarded("dear")),
    ])
    .await
}

fn key(name: &str) -> ResourceKey {
    ResourceKey {
        group: String::new(),
        kind: "ConfigMap".to_owned(),
        namespace: "demo".to_owned(),
        name: name.to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_word_from_git_never_counts() {
    for value in ["true", "2026-01-01T02:00:00Z"] {
        let annotations = format!("{OPTIONS}: Prune=confirm, {APPROVED}: \"{value}\"");
        let trial = Trial::deployed(&[
            ("app/keep.yaml", &plain("keep")),
            ("app/precious.yaml", &config_map("precious", "a", "b", &annotations)),
        ])
        .await;
        trial.drop_files(&["app/precious.yaml"]);
        trial.prune(json!({})).await;
        let app = trial.asks_for("/ConfigMap/precious").await;
        assert!(trial.has("precious"), "{value}");
        let told = "the approval on /ConfigMap/demo/precious does not count: it came from git";
        assert!(conditions(&app)[0].contains(told), "{app:#?}");
        trial.approve_all_now().await;
        trial.succeeds().await;
        trial.judge().await;
    }
}

/// Git brings the word in the very commit whose predecessor is being synced.
#[tokio::test(start_paused = true)]
async fn a_word_that_git_brings_during_the_operation_never_counts() {
    let said = |wave: &str| {
        let wave = format!("argocd.argoproj.io/sync-wave: \"{wave}\"");
        config_map(
            "precious",
            "a",
            "b",
            &format!("{OPTIONS}: \"Prune=confirm,Replace=true,Force=true\", {APPROVED}: \"true\", {wave}"),
        )
    };
    let trial = three().await;
    trial.scene.commit(&[("app/precious.yaml", &said("0"))]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/precious").await;
    assert!(trial.has("precious"));
    trial.approve_all_now().await;
    trial.succeeds().await;
    trial.judge().await;
}

/// A child of another Application is written from git as a whole, its approval as well.
#[tokio::test(start_paused = true)]
async fn an_approval_that_git_writes_on_a_child_application_never_counts() {
    let trial = Trial::new().await;
    let child = |annotations: Value| {
        let mut child = by_hand("app");
        child["metadata"]["annotations"] = annotations;
        child.to_string()
    };
    trial.scene.commit(&[
        ("parent/app.json", &child(json!({}))),
        ("app/keep.yaml", &plain("keep")),
        ("app/precious.yaml", &guarded("precious")),
    ]);
    let mut parent = automated(application("parent", "parent", "east"));
    parent["spec"]["destination"] = json!({"name": "in-cluster", "namespace": NAMESPACE});
    trial.scene.apply(parent).await;
    trial.scene.until("app", |_| true).await;
    trial.sync("app").await;
    trial.drop_files(&["app/precious.yaml"]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/precious").await;
    let word = trial.now().to_string();
    trial.scene.commit(&[("parent/app.json", &child(json!({APPROVED: word})))]);
    trial.scene.refresh("parent").await;
    trial.scene.until("app", |app| app["metadata"]["annotations"][APPROVED] == word).await;
    let app = trial.asks_for("/ConfigMap/precious").await;
    assert_eq!(app["metadata"]["annotations"][APPROVED], word);
    assert!(trial.has("precious"));
    let told = "the approval on the Application does not count: it came from git";
    assert!(conditions(&app).iter().any(|condition| condition.contains(told)), "{app:#?}");
    trial.approve("precious").await;
    trial.succeeds().await;
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn a_word_given_for_one_operation_is_none_for_the_next() {
    let trial = three().await;
    trial.drop_files(&["app/plain.yaml", "app/precious.yaml", "app/dear.yaml"]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/dear and 1 more resources").await;
    trial.approve("precious").await;
    trial.asks_for("/ConfigMap/dear").await;
    trial.scene.patch("app", json!({"status": {"operationState": {"phase": "Terminating"}}})).await;
    assert_eq!(trial.scene.ended("app").await.0, "Failed");
    trial.pass(Duration::from_secs(2)).await;
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/dear and 1 more resources").await;
    trial.approve("dear").await;
    trial.asks_for("/ConfigMap/precious").await;
    assert_eq!(trial.left(&["plain", "precious", "dear"]), ["plain", "precious", "dear"]);
    // The old word must be taken back before it can be given anew.
    trial.annotate("precious", json!({})).await;
    trial.asks_for("/ConfigMap/precious").await;
    trial.approve("precious").await;
    trial.succeeds().await;
    assert_eq!(trial.left(&["keep", "plain", "precious", "dear"]), ["keep"]);
    trial.judge().await;
}

/// The API records one time for all that a writer wrote: a later word about something else must not renew the old one.
#[tokio::test(start_paused = true)]
async fn an_old_word_is_not_renewed_by_what_its_writer_says_next() {
    let trial = three().await;
    trial.approve("precious").await;
    trial.pass(Duration::from_secs(5)).await;
    trial.drop_files(&["app/precious.yaml"]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/precious").await;
    trial.annotate("precious", json!({"note": "hello"})).await;
    trial.pass(Duration::from_secs(60)).await;
    assert!(trial.has("precious"));
    trial.approve("precious").await;
    trial.succeeds().await;
    assert!(!trial.has("precious"));
    trial.judge().await;
}

/// A time ahead of now, written before the operation began, is no word for it.
#[tokio::test(start_paused = true)]
async fn a_time_written_ahead_is_no_approval() {
    let trial = three().await;
    let ahead = trial.now() + jiff::SignedDuration::from_secs(90);
    trial.approve_all("app", &ahead.to_string()).await;
    trial.pass(Duration::from_secs(5)).await;
    trial.drop_files(&["app/precious.yaml"]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/precious").await;
    trial.pass(Duration::from_secs(60)).await;
    assert!(trial.has("precious"));
    trial.approve_all_now().await;
    trial.succeeds().await;
    trial.judge().await;
}

/// A sync puts back into git what was approved to go; what is pruned later is another matter.
#[tokio::test(start_paused = true)]
async fn a_word_does_not_outlive_the_return_to_git() {
    let trial = three().await;
    trial.drop_files(&["app/precious.yaml", "app/dear.yaml"]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/dear and 1 more resources").await;
    trial.approve("precious").await;
    trial.asks_for("/ConfigMap/dear").await;
    trial.scene.patch("app", json!({"status": {"operationState": {"phase": "Terminating"}}})).await;
    trial.scene.ended("app").await;
    trial.scene.commit(&[("app/precious.yaml", &guarded("precious")), ("app/dear.yaml", &guarded("dear"))]);
    trial.prune(json!({})).await;
    trial.succeeds().await;
    trial.drop_files(&["app/precious.yaml"]);
    trial.pass(Duration::from_secs(2)).await;
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/precious").await;
    assert!(trial.has("precious"));
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn a_time_on_the_resource_counts_as_one_on_the_application() {
    let trial = three().await;
    trial.drop_files(&["app/plain.yaml", "app/precious.yaml"]);
    let started: jiff::Timestamp = trial.prune(json!({})).await.parse().expect("a time");
    trial.asks_for("/ConfigMap/precious").await;
    let old = (started - jiff::SignedDuration::from_secs(1)).to_string();
    trial.annotate("precious", json!({APPROVED: old})).await;
    trial.asks_for("/ConfigMap/precious").await;
    trial.annotate("precious", json!({APPROVED: trial.now().to_string()})).await;
    trial.succeeds().await;
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn the_action_approves_the_operation_it_names_and_no_other() {
    let trial = three().await;
    trial.drop_files(&["app/plain.yaml", "app/precious.yaml"]);
    let started: jiff::Timestamp = trial.prune(json!({})).await.parse().expect("a time");
    trial.asks_for("/ConfigMap/precious").await;
    let keys = [key("precious")];
    let grant = |operation: &str| Value::Object(approval::grant(&keys, "someone", trial.now(), operation));
    let earlier = approval::operation_name(started - jiff::SignedDuration::from_secs(60));
    trial.annotate("precious", grant(&earlier)).await;
    trial.asks_for("/ConfigMap/precious").await;
    assert!(trial.has("precious"));
    trial.annotate("precious", grant(&approval::operation_name(started))).await;
    trial.succeeds().await;
    assert_eq!(trial.left(&["keep", "plain", "precious", "dear"]), ["keep", "dear"]);
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_but_the_literal_word_counts() {
    let trial = three().await;
    trial.drop_files(&["app/plain.yaml", "app/precious.yaml"]);
    trial.prune(json!({})).await;
    for word in ["yes", "True", "1", "", "true "] {
        trial.annotate("precious", json!({APPROVED: word})).await;
        trial.asks_for("/ConfigMap/precious").await;
        assert!(trial.has("precious"), "{word:?}");
    }
    trial.approve("precious").await;
    trial.succeeds().await;
    trial.judge().await;
}
