//! The judge sees what it is there to see: here hands that ask nobody do what a controller must not.

use serde_json::json;

use super::judge::{Scope, violations};
use super::trial::{Trial, guarded, plain};

/// A sync waits to prune `plain`, `precious` and `dear`.
async fn waiting() -> Trial {
    let trial = Trial::deployed(&[
        ("app/keep.yaml", &plain("keep")),
        ("app/plain.yaml", &plain("plain")),
        ("app/precious.yaml", &guarded("precious")),
        ("app/dear.yaml", &guarded("dear")),
    ])
    .await;
    trial.scene.commit(&[("app/plain.yaml", ""), ("app/precious.yaml", ""), ("app/dear.yaml", "")]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/dear and 1 more resources").await;
    trial
}

async fn snatch(trial: &Trial, name: &str) {
    let east = trial.scene.member("east");
    east.delete_object("v1", "ConfigMap", "demo", name).await.expect("a deletion");
}

async fn found(trial: &Trial) -> Vec<String> {
    violations(&trial.journal.entries().await, &[], Scope::Operation)
}

#[tokio::test(start_paused = true)]
async fn what_is_guarded_goes_unapproved() {
    let trial = waiting().await;
    snatch(&trial, "precious").await;
    assert_eq!(
        found(&trial).await,
        ["east/configmaps/demo/precious went before east/configmaps/demo/precious was approved"]
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_plain_goes_before_the_others_are_approved() {
    let trial = waiting().await;
    trial.approve("dear").await;
    trial.asks_for("/ConfigMap/precious").await;
    snatch(&trial, "plain").await;
    assert_eq!(found(&trial).await, [] as [String; 0], "nobody knows yet what else will go");
    trial.approve("precious").await;
    trial.succeeds().await;
    assert_eq!(
        found(&trial).await,
        ["east/configmaps/demo/plain went before east/configmaps/demo/precious was approved"]
    );
}

#[tokio::test(start_paused = true)]
async fn something_goes_while_nothing_runs() {
    let trial = Trial::deployed(&[("app/plain.yaml", &plain("plain"))]).await;
    snatch(&trial, "plain").await;
    assert_eq!(found(&trial).await, ["east/configmaps/demo/plain went outside of any operation"]);
}

#[tokio::test(start_paused = true)]
async fn an_old_word_is_used_again() {
    let trial = waiting().await;
    trial.approve("precious").await;
    trial.asks_for("/ConfigMap/dear").await;
    trial.scene.patch("app", json!({"status": {"operationState": {"phase": "Terminating"}}})).await;
    trial.scene.ended("app").await;
    trial.approve_all_now().await;
    trial.pass(std::time::Duration::from_secs(2)).await;
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/dear and 1 more resources").await;
    snatch(&trial, "precious").await;
    assert_eq!(
        found(&trial).await,
        ["east/configmaps/demo/precious went before east/configmaps/demo/precious was approved"]
    );
}
