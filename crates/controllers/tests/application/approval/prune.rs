//! Pruning that waits for approval, and what else happens meanwhile.

use std::time::Duration;

use serde_json::{Value, json};

use super::trial::{A_WHILE, APPROVED, OPTIONS, Trial, by_hand, guarded, plain, with, with_options};
use crate::faults::Fault;
use crate::scene::{automated, conditions, config_map, job, operating, results, text};

const HOOK: &str = "argocd.argoproj.io/hook";
const WAVE: &str = "argocd.argoproj.io/sync-wave";

/// `keep`, `plain` and the guarded `precious` and `dear` are deployed.
async fn four() -> Trial {
    Trial::deployed(&[
        ("app/keep.yaml", &plain("keep")),
        ("app/plain.yaml", &plain("plain")),
        ("app/precious.yaml", &guarded("precious")),
        ("app/dear.yaml", &guarded("dear")),
    ])
    .await
}

fn row(app: &Value, name: &str) -> Value {
    let rows = app["status"]["resources"].as_array().cloned().unwrap_or_default();
    rows.into_iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no row of {name}"))
}

#[tokio::test(start_paused = true)]
async fn a_commit_during_the_wait_is_not_part_of_what_is_approved() {
    let trial = four().await;
    trial.drop_files(&["app/plain.yaml", "app/precious.yaml"]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/precious").await;
    trial.drop_files(&["app/dear.yaml"]);
    trial.scene.refresh("app").await;
    trial.approve_all_now().await;
    trial.succeeds().await;
    assert_eq!(trial.left(&["keep", "plain", "precious", "dear"]), ["keep", "dear"]);
    trial.pass(Duration::from_secs(2)).await;
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/dear").await;
    assert!(trial.has("dear"), "the approval was for another operation");
    trial.approve_all_now().await;
    trial.succeeds().await;
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn a_sync_that_waits_can_be_terminated_and_then_nothing_goes() {
    let trial = four().await;
    trial.drop_files(&["app/plain.yaml", "app/precious.yaml"]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/precious").await;
    trial.scene.patch("app", json!({"status": {"operationState": {"phase": "Terminating"}}})).await;
    let (phase, message) = trial.scene.ended("app").await;
    assert_eq!((phase.as_str(), message.as_str()), ("Failed", "Operation terminated"));
    trial.approve_all_now().await;
    trial.approve("precious").await;
    trial.pass(A_WHILE).await;
    assert_eq!(trial.left(&["plain", "precious"]), ["plain", "precious"]);
    let app = trial.scene.application("app");
    assert_eq!(conditions(&app), [] as [String; 0], "nobody is asked for anything any more");
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_a_failure_keeps_the_approval() {
    let early = |value: &str| config_map("early", "a", value, &format!("{WAVE}: \"-1\""));
    let trial =
        Trial::deployed(&[("app/early.yaml", &early("1")), ("app/precious.yaml", &guarded("precious"))])
            .await;
    trial.scene.commit(&[("app/early.yaml", &early("2"))]);
    trial.drop_files(&["app/precious.yaml"]);
    let mut refusals = 0;
    trial.scene.members["east"].1.fail(move |_, call| {
        let is_early = call.method == http::Method::PATCH && call.path.ends_with("/configmaps/early");
        refusals += usize::from(is_early);
        (is_early && refusals <= 4).then(|| Fault::Refused(500, "not now".to_owned()))
    });
    let started = {
        let retry = json!({"limit": 9, "backoff": {"duration": "60s", "factor": 1}});
        trial.scene.patch("app", json!({"operation": {"retry": retry, "sync": {"prune": true}}})).await;
        let failed =
            |app: &Value| text(app, "/status/operationState/message").contains("Retrying attempt #1");
        text(&trial.scene.until("app", failed).await, "/status/operationState/startedAt")
    };
    trial.approve_all_now().await;
    trial.succeeds().await;
    let app = trial.scene.application("app");
    assert_eq!(text(&app, "/status/operationState/startedAt"), started);
    assert!(app["status"]["operationState"]["retryCount"].as_u64() >= Some(1), "{app:#?}");
    assert!(!trial.has("precious"));
    trial.judge().await;
}

/// A retry that takes the newest revision deletes what nobody was asked about.
#[tokio::test(start_paused = true)]
async fn a_retry_with_a_newer_revision_asks_anew() {
    let early = |value: &str| config_map("early", "a", value, &format!("{WAVE}: \"-1\""));
    let trial = Trial::deployed(&[
        ("app/early.yaml", &early("1")),
        ("app/precious.yaml", &guarded("precious")),
        ("app/dear.yaml", &guarded("dear")),
    ])
    .await;
    trial.scene.commit(&[("app/early.yaml", &early("2"))]);
    trial.drop_files(&["app/precious.yaml"]);
    let mut refusals = 0;
    trial.scene.members["east"].1.fail(move |_, call| {
        let is_early = call.method == http::Method::PATCH && call.path.ends_with("/configmaps/early");
        refusals += usize::from(is_early);
        (is_early && refusals <= 4).then(|| Fault::Refused(500, "not now".to_owned()))
    });
    let retry = json!({"limit": 9, "refresh": true, "backoff": {"duration": "60s", "factor": 1}});
    trial.scene.patch("app", json!({"operation": {"retry": retry, "sync": {"prune": true}}})).await;
    let failed = |app: &Value| text(app, "/status/operationState/message").contains("Retrying attempt #1");
    trial.scene.until("app", failed).await;
    trial.approve_all_now().await;
    trial.drop_files(&["app/dear.yaml"]);
    let app = trial.asks_for("/ConfigMap/dear and 1 more resources").await;
    assert_eq!(
        app["metadata"]["annotations"].get(APPROVED),
        None,
        "it went with the attempt it was given for"
    );
    assert!(trial.has("precious") && trial.has("dear"));
    trial.approve_all_now().await;
    trial.succeeds().await;
    assert_eq!(trial.left(&["precious", "dear"]), [] as [&str; 0]);
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn a_selective_sync_does_not_wait_for_what_it_leaves_out() {
    let trial = four().await;
    trial.drop_files(&["app/plain.yaml", "app/precious.yaml"]);
    let only = |name: &str| json!({"resources": [{"kind": "ConfigMap", "name": name}]});
    trial.prune(only("plain")).await;
    trial.succeeds().await;
    assert_eq!(trial.left(&["plain", "precious"]), ["precious"]);
    trial.prune(only("precious")).await;
    trial.asks_for("/ConfigMap/precious").await;
    trial.approve("precious").await;
    trial.succeeds().await;
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn what_somebody_deleted_already_is_not_asked_for() {
    let mut trial = four().await;
    let held = |finalizers: Value| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "precious", "namespace": "demo", "finalizers": finalizers},
        })
    };
    let east = trial.scene.member("east").clone();
    east.apply("holder", &held(json!(["example.com/held"]))).await.expect("a finalizer");
    trial.drop_files(&["app/plain.yaml", "app/precious.yaml"]);
    trial.delete_by_hand("precious").await;
    trial.prune(json!({})).await;
    trial.scene.until_all("plain goes", |_| !trial.has("plain")).await;
    east.apply("holder", &held(json!([]))).await.expect("no finalizer");
    trial.succeeds().await;
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn what_loses_the_option_during_the_wait_goes() {
    let trial = four().await;
    trial.drop_files(&["app/plain.yaml", "app/precious.yaml"]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/precious").await;
    trial.annotate("precious", json!({OPTIONS: "Validate=false"})).await;
    trial.succeeds().await;
    assert_eq!(trial.left(&["plain", "precious"]), [] as [&str; 0]);
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn what_gains_the_option_during_the_wait_is_asked_for_too() {
    let trial = four().await;
    trial.drop_files(&["app/plain.yaml", "app/precious.yaml"]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/precious").await;
    trial.annotate("plain", json!({OPTIONS: "Prune=confirm"})).await;
    trial.asks_for("/ConfigMap/plain and 1 more resources").await;
    trial.approve("precious").await;
    trial.asks_for("/ConfigMap/plain").await;
    trial.approve_all_now().await;
    trial.succeeds().await;
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn hooks_are_never_asked_for() {
    let trial = Trial::new().await;
    let annotations =
        |more: &str| format!("{HOOK}: PreSync, {OPTIONS}: \"Prune=confirm,Delete=confirm\"{more}");
    let policy = "argocd.argoproj.io/hook-delete-policy";
    let options = ["CreateNamespace=true", "Prune=confirm", "Delete=confirm"];
    let files = [
        ("app/keep.yaml", plain("keep")),
        ("app/old.yaml", job("old", &annotations(""))),
        ("app/done.yaml", job("done", &annotations(&format!(", {policy}: HookSucceeded")))),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    trial.deploy(with_options(by_hand("app"), &options), &files).await;
    let uid = |trial: &Trial| {
        trial.scene.object("east", "jobs.batch", "old").map(|old| text(&old, "/metadata/uid"))
    };
    let first = uid(&trial).expect("the hook stays");
    assert!(trial.scene.object("east", "jobs.batch", "done").is_none());
    trial.prune(json!({"syncOptions": options})).await;
    trial.succeeds().await;
    assert!(uid(&trial).is_some_and(|second| second != first), "a new run in the place of the old one");
    trial.drop_files(&["app/old.yaml"]);
    trial.prune(json!({"syncOptions": options})).await;
    trial.succeeds().await;
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_is_taken_back_in_time_is_none() {
    let trial = four().await;
    trial.drop_files(&["app/plain.yaml", "app/precious.yaml", "app/dear.yaml"]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/dear and 1 more resources").await;
    trial.approve("precious").await;
    trial.asks_for("/ConfigMap/dear").await;
    trial.annotate("precious", json!({})).await;
    trial.asks_for("/ConfigMap/dear and 1 more resources").await;
    trial.approve("dear").await;
    trial.asks_for("/ConfigMap/precious").await;
    assert_eq!(trial.left(&["plain", "precious", "dear"]), ["plain", "precious", "dear"]);
    trial.approve("precious").await;
    trial.succeeds().await;
    assert_eq!(trial.left(&["keep", "plain", "precious", "dear"]), ["keep"]);
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn an_approval_of_all_that_is_taken_back_in_time_is_none() {
    let slow = job("slow", &format!("{HOOK}: PreSync, sim.baton.dev/delay: 600s"));
    let trial =
        Trial::deployed(&[("app/keep.yaml", &plain("keep")), ("app/precious.yaml", &guarded("precious"))])
            .await;
    trial.scene.commit(&[("app/slow.yaml", &slow)]);
    trial.drop_files(&["app/precious.yaml"]);
    trial.prune(json!({})).await;
    trial.pass(Duration::from_secs(10)).await;
    trial.approve_all_now().await;
    trial.pass(Duration::from_secs(10)).await;
    trial.take_back_all().await;
    trial.asks_for("/ConfigMap/precious").await;
    assert!(trial.has("precious"));
    trial.approve_all_now().await;
    trial.succeeds().await;
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn two_are_approved_one_by_one_and_nothing_goes_before_the_last() {
    let trial = four().await;
    trial.drop_files(&["app/plain.yaml", "app/precious.yaml", "app/dear.yaml"]);
    trial.prune(json!({})).await;
    let app = trial.asks_for("/ConfigMap/dear and 1 more resources").await;
    for name in ["precious", "dear"] {
        assert_eq!(row(&app, name)["requiresDeletionApproval"], true, "{name}");
    }
    trial.approve("dear").await;
    let app = trial.asks_for("/ConfigMap/precious").await;
    assert_ne!(row(&app, "dear")["requiresDeletionApproval"], true);
    assert_eq!(trial.left(&["plain", "precious", "dear"]), ["plain", "precious", "dear"]);
    trial.approve("precious").await;
    trial.succeeds().await;
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_told_in_every_place() {
    let trial = four().await;
    trial.drop_files(&["app/plain.yaml", "app/precious.yaml"]);
    trial.prune(json!({})).await;
    let app = trial.asks_for("/ConfigMap/precious").await;
    assert!(operating(&app));
    for (name, confirmation, approval) in
        [("precious", true, true), ("dear", true, false), ("plain", false, false), ("keep", false, false)]
    {
        let row = row(&app, name);
        assert_eq!(row["requiresDeletionConfirmation"] == true, confirmation, "{name}: {row}");
        assert_eq!(row["requiresDeletionApproval"] == true, approval, "{name}: {row}");
    }
    let told = "DeletionApprovalRequiredInfo: pruning waits for approval of ";
    let conditions = conditions(&app);
    assert!(
        conditions.iter().any(|line| line.starts_with(told) && line.contains("precious")),
        "{conditions:?}"
    );
    let events = trial.scene.events();
    let asked = events.iter().filter(|event| event.starts_with("DeletionApprovalRequired: "));
    assert_eq!(asked.count(), 1, "{events:?}");
    trial.approve_all_now().await;
    trial.succeeds().await;
    let settled =
        trial.scene.until("app", |app| app["status"]["conditions"].as_array().is_none_or(Vec::is_empty));
    let settled = settled.await;
    let waits = |row: &Value| row["requiresDeletionApproval"] == true;
    assert!(!settled["status"]["resources"].as_array().into_iter().flatten().any(waits));
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn the_option_of_the_application_holds_for_what_says_nothing() {
    let trial = Trial::new().await;
    let options = ["CreateNamespace=true", "Prune=confirm"];
    let files = [
        ("app/keep.yaml", plain("keep")),
        ("app/a.yaml", plain("a")),
        ("app/b.yaml", with("b", "Prune=true")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    trial.deploy(with_options(by_hand("app"), &options), &files).await;
    // What says of itself that it may go goes unasked.
    trial.drop_files(&["app/b.yaml"]);
    trial.prune(json!({})).await;
    trial.succeeds().await;
    assert!(!trial.has("b"));
    trial.drop_files(&["app/a.yaml"]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/a").await;
    trial.approve("a").await;
    trial.succeeds().await;
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn the_option_of_the_operation_holds_before_that_of_the_application() {
    let trial = four().await;
    trial.drop_files(&["app/plain.yaml"]);
    trial.prune(json!({"syncOptions": ["Prune=confirm"]})).await;
    trial.asks_for("/ConfigMap/plain").await;
    trial.approve("plain").await;
    trial.succeeds().await;
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn a_sync_that_deletes_nothing_waits_for_nobody() {
    let trial = four().await;
    trial.drop_files(&["app/plain.yaml", "app/precious.yaml"]);
    for operation in [json!({"prune": false}), json!({"dryRun": true})] {
        trial.prune(operation.clone()).await;
        trial.succeeds().await;
        assert_eq!(trial.left(&["plain", "precious"]), ["plain", "precious"], "{operation}");
        let results = results(&trial.scene.application("app"));
        let precious: Vec<&String> = results.iter().filter(|line| line.contains("precious")).collect();
        assert_eq!(precious.len(), 1, "{operation}: {results:?}");
    }
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn automatic_syncs_and_self_heal_wait_as_well() {
    let trial = Trial::new().await;
    trial.scene.commit(&[
        ("app/keep.yaml", &plain("keep")),
        ("app/plain.yaml", &plain("plain")),
        ("app/precious.yaml", &guarded("precious")),
    ]);
    trial.scene.apply(automated(by_hand("app"))).await;
    trial.scene.settled("app").await;
    trial.pass(A_WHILE).await;
    trial.drop_files(&["app/plain.yaml", "app/precious.yaml"]);
    trial.asks_for("/ConfigMap/precious").await;
    let drift = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "keep", "namespace": "demo"},
        "data": {"a": "drifted"},
    });
    trial.scene.member("east").apply("somebody", &drift).await.expect("drift");
    trial.asks_for("/ConfigMap/precious").await;
    assert_eq!(trial.left(&["plain", "precious"]), ["plain", "precious"]);
    trial.approve_all_now().await;
    trial.scene.settled("app").await;
    assert_eq!(trial.left(&["keep", "plain", "precious"]), ["keep"]);
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn wave_by_wave_only_the_wave_that_asks_waits() {
    let trial = Trial::by_wave().await;
    let waved =
        |name: &str, wave: &str, more: &str| config_map(name, "a", "b", &format!("{WAVE}: \"{wave}\"{more}"));
    let files = [
        ("app/keep.yaml", plain("keep")),
        ("app/first.yaml", waved("first", "2", "")),
        ("app/precious.yaml", waved("precious", "1", &format!(", {OPTIONS}: Prune=confirm"))),
        ("app/last.yaml", waved("last", "0", "")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    trial.deploy(by_hand("app"), &files).await;
    trial.drop_files(&["app/first.yaml", "app/precious.yaml", "app/last.yaml"]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/precious").await;
    assert_eq!(trial.left(&["first", "precious", "last"]), ["precious", "last"]);
    trial.annotate("precious", json!({APPROVED: "true"})).await;
    trial.succeeds().await;
    assert_eq!(trial.left(&["keep", "first", "precious", "last"]), ["keep"]);
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn a_restarted_controller_waits_on_and_takes_the_approval() {
    let trial = four().await;
    trial.drop_files(&["app/plain.yaml", "app/precious.yaml"]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/precious").await;
    let trial = trial.crash().await;
    trial.asks_for("/ConfigMap/precious").await;
    let trial = trial.crash().await;
    trial.approve("precious").await;
    trial.succeeds().await;
    assert_eq!(trial.left(&["keep", "plain", "precious"]), ["keep"]);
    trial.judge().await;
}
