//! A rollout that people have a hand in: what fails is tried again, a later one is put back, another is ended in its middle,
//! and what cannot be done any more is refused.

use serde_json::{Value, json};

use crate::process::eventually;
use crate::stage::{Needs, Stage};
use crate::{SLACK, clusters, names};

const SET: &str = "canary-with-hooks";

/// What `baton appset` says to a person who wants this, and that it ends with this code.
#[track_caller]
fn appset(stage: &Stage, words: &[&str], code: i32) -> String {
    let outcome = stage.baton(&[&["appset"], words, &[SET]].concat());
    assert_eq!(outcome.code, Some(code), "{words:?}: {}{}", outcome.stdout, outcome.stderr);
    format!("{}{}", outcome.stdout, outcome.stderr)
}

/// A watch of the rollout ends because it has failed, and says so in these words.
#[track_caller]
fn watch_tells(stage: &Stage, words: &str) {
    let told = appset(stage, &["get", "--watch"], 3);
    assert!(told.contains("the rollout of canary-with-hooks is ") && told.contains(words), "{told}");
}

fn states(phases: &Value) -> [&str; 2] {
    [0, 1].map(|phase| phases["phases"][phase]["state"].as_str().unwrap_or_default())
}

/// Waits until the set tells that its phases can be followed, or that they cannot.
async fn is_followed(stage: &Stage, expected: bool) {
    eventually("the condition to say so", async || {
        let set = stage.set().await;
        let mut conditions = set["status"]["conditions"].as_array().into_iter().flatten();
        let wrong = conditions.any(|one| one["type"] == "InvalidPhaseConfig" && one["status"] == "True");
        (wrong != expected).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_rollout_is_tried_again_put_back_and_ended_as_people_ask_and_what_cannot_be_is_refused() {
    let stage = Stage::start(Needs {
        file: "canary.yaml",
        set: SET,
        clusters: clusters(&["prod-1", "prod-2"], "environment=production"),
        hosts: names(&[SLACK]),
        // The first call is refused.
        answers: &["/webhook=503,times=1"],
    })
    .await;

    // A hook fails: whoever watches is told, and it is tried again.
    stage.apply();
    watch_tells(&stage, "phase canary: hook \"deployment-notification\" failed: ");
    let failed = stage.phases().await;
    assert_eq!(states(&failed), ["Failed", "Pending"]);
    assert_eq!(stage.applications().await, [""; 0], "nobody is created before the hook has passed");
    appset(&stage, &["retry"], 0);
    stage.advance(0, "").await;
    let first = stage.complete("").await;
    assert_eq!(first["rolloutID"], failed["rolloutID"], "it is the same rollout");
    let first = first["rolloutID"].as_str().expect("a rollout");
    let refused = appset(&stage, &["retry"], 3);
    assert!(refused.contains("nothing to retry in canary-with-hooks: every phase has ended"), "{refused}");

    // Another commit goes everywhere, and is put back everywhere.
    stage.push("green").await;
    stage.advance(0, first).await;
    let second = stage.complete(first).await;
    assert_eq!(stage.coloured("green").await, ["prod-1", "prod-2"]);
    appset(&stage, &["rollback", "--all"], 0);
    stage.until("everything is put back", |phases| states(phases) == ["RolledBack", "RolledBack"]).await;
    assert_eq!(stage.coloured("blue").await, ["prod-1", "prod-2"], "the clusters have what they had before");
    watch_tells(&stage, "a person asked for the whole rollout to be put back");
    for words in [&["rollback", "--all"][..], &["rollback"]] {
        let refused = appset(&stage, words, 3);
        assert!(refused.contains("it was put back already"), "{refused}");
    }
    for words in ["retry", "advance"] {
        let refused = appset(&stage, &[words], 3);
        assert!(refused.contains("stays so until a new commit"), "{refused}");
    }

    // The next commit goes on from there, and is ended while its canary waits.
    stage.push("red").await;
    let second = second["rolloutID"].as_str().expect("a rollout");
    let waits = |phases: &Value| phases["rolloutID"] != second && states(phases) == ["Waiting", "Pending"];
    stage.until("the canary waits", waits).await;
    appset(&stage, &["abort"], 0);
    stage.until("it is aborted", |phases| states(phases) == ["Aborted", "Pending"]).await;
    let told: Value = serde_json::from_str(&appset(&stage, &["phases", "-o", "json"], 0)).expect("JSON");
    assert_eq!((&told[0]["currentPhase"], &told[0]["totalPhases"]), (&json!(0), &json!(2)));
    assert_eq!(told[0]["phases"][0]["failure"]["reason"], "AbortedByRequest");
    watch_tells(&stage, "a person aborted the rollout");
    let refused = appset(&stage, &["abort"], 3);
    assert!(refused.contains("nothing to abort in canary-with-hooks: it has ended already"), "{refused}");
    assert_eq!(stage.coloured("red").await, ["prod-1"], "nobody else has gone on");

    // Phases that cannot be followed refuse what is asked of them, and do not do it when they are mended.
    let url = "/spec/generators/0/deploymentStrategy/phases/0/preHooks/0/http/url";
    let patch =
        json!([{"op": "replace", "path": url, "value": "http://hooks.slack.com/webhook"}]).to_string();
    stage.kubectl(&["patch", "-n", "argocd", "applicationsets", SET, "--type", "json", "-p", &patch]);
    is_followed(&stage, false).await;
    let outcome = stage.baton(&["appset", "advance", SET]);
    let refuses =
        |phases: &Value| phases["refused"].to_string().contains("advance: the phases cannot be followed: ");
    stage.until("it is refused", refuses).await;
    // Where the controller is slow, the command does not wait for it.
    let told = outcome.stderr.contains("advance was refused: the phases cannot be followed: ");
    let late = outcome.stderr.contains("No controller has answered yet");
    assert!((outcome.code == Some(3) && told) || (outcome.code == Some(0) && late), "{outcome:?}");
    stage.apply();
    is_followed(&stage, true).await;
    assert_eq!(states(&stage.phases().await), ["Aborted", "Pending"]);
    appset(&stage, &["advance"], 0);
    stage.until("the rest goes on", |phases| states(phases) == ["Aborted", "Complete"]).await;
    assert_eq!(stage.coloured("red").await, ["prod-1", "prod-2"], "now that it is asked for again");

    let (_, calls) = stage.end().await;
    let statuses: Vec<u16> = calls.iter().map(|call| call.status).collect();
    assert_eq!(statuses, [503, 200, 200, 200], "each commit was announced, the first once more");
}
