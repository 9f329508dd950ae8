//! What people are told of a rollout while it stands, and how they help it on.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_rollout::blocker::Reason;
use baton_rollout::fuse;
use baton_rollout::stamp::Stamp;
use baton_traces::Outcome;
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::faults::Fault;
use crate::scene::{NAMESPACE, Scene, fleet, text};

const MEMBERS: [(&str, &str); 3] = [("a", "dev"), ("b", "test"), ("c", "prod")];
const NAMES: [&str; 3] = ["a", "b", "c"];

/// The reasons of what is waited for, the first first.
fn reasons(scene: &Scene) -> Vec<String> {
    let blockers = scene.rollout("fleet")["blockers"].as_array().cloned().unwrap_or_default();
    blockers.iter().map(|blocker| text(blocker, "/reason")).collect()
}

/// How many Applications of a step are done; nothing is written for none.
fn done(scene: &Scene, step: usize) -> i64 {
    scene.rollout("fleet")["steps"][step]["done"].as_i64().unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn a_head_that_cannot_be_written_is_told_with_the_answer_of_the_api() {
    let scene = Scene::new().await;
    let commit = scene.commit(&NAMES, "0");
    let api = scene.api;
    scene.wire.fail(move |_, call| {
        api.writes_head(call).then(|| Fault::Refused(422, "the name is too long".to_owned()))
    });
    let applied = scene.now();
    scene.apply(fleet(&MEMBERS)).await;
    scene
        .until("the error to be told", |scene| {
            reasons(scene).first().is_some_and(|first| first == "ApiError")
        })
        .await;
    let rollout = scene.rollout("fleet");
    assert!(text(&rollout, "/message").contains("the name is too long"), "{rollout:#}");
    let blocker = &rollout["blockers"][0];
    assert_eq!(text(blocker, "/object"), "");
    let since = text(blocker, "/since");
    if scene.api.keeps_summary() {
        assert_eq!(text(blocker, "/remedy"), Reason::ApiError.remedy());
        assert!(since >= applied && since <= scene.now(), "{since}, applied {applied}");
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(text(&scene.rollout("fleet"), "/blockers/0/since"), since, "it lasts");
    scene.wire.heal();
    scene.rolled_out(&commit).await;
    assert_eq!(reasons(&scene), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_holds_the_whole_set_is_told_in_a_condition() {
    let scene = Scene::new().await;
    let commit = scene.commit(&NAMES, "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    let told = |scene: &Scene| {
        let conditions = scene.set("fleet")["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let condition = conditions.iter().find(|condition| condition["type"] == "RolloutProgressing");
        condition.map(|condition| text(condition, "/message")).unwrap_or_default()
    };
    assert_eq!(told(&scene), "ApplicationSet Rollout has completed");
    scene.annotate_set("fleet", "baton.dev/paused", Some("true")).await;
    let paused = "ApplicationSet Rollout has completed; Paused: the rollout is paused";
    scene.until("the pause to be told", |scene| told(scene) == paused).await;
    // Whoever takes over tells it too.
    let scene = scene.crash().await;
    scene.annotate_set("fleet", "baton.dev/paused", None).await;
    scene
        .until("the pause to be taken back", |scene| told(scene) == "ApplicationSet Rollout has completed")
        .await;
    // People sync the second step, so that a run does not end by itself.
    let mut held = fleet(&MEMBERS);
    held["spec"]["strategy"]["rollingSync"]["steps"][1]["maxUpdate"] = json!(0);
    scene.apply(held).await;
    scene.commit(&NAMES, "1");
    scene.until("the step of people", |scene| reasons(scene).contains(&"HoldStep".to_owned())).await;
    scene.annotate_set("fleet", "baton.dev/abort", Some("now")).await;
    scene
        .until("the end of the run to be told", |scene| {
            told(scene).ends_with("; Aborted: the run was aborted")
        })
        .await;
    assert!(told(&scene).starts_with("ApplicationSet is performing rollout of step 2"), "{}", told(&scene));
    let commit = scene.commit(&NAMES, "2");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    assert_eq!(told(&scene), "ApplicationSet Rollout has completed");
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_waits_for_the_next_run_is_no_regression() {
    let scene = Scene::new().await;
    let commit = scene.commit(&NAMES, "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    scene.annotate_set("fleet", "baton.dev/paused", Some("true")).await;
    let commit = scene.commit(&NAMES, "1");
    for name in NAMES {
        scene.ask_for_refresh(name).await;
    }
    scene.until("the commit to be told of", |scene| reasons(scene).contains(&"Superseded".to_owned())).await;
    assert_eq!(reasons(&scene), ["Paused", "Superseded"]);
    let run = scene.run("fleet")["seq"].as_u64();
    scene.annotate_set("fleet", "baton.dev/paused", None).await;
    scene.until("the next run", |scene| scene.rollout_state() != "Paused").await;
    let next = scene.run("fleet")["seq"].as_u64();
    assert!(scene.rollout_state() != "Complete" || next > run, "the run that is complete is not the last");
    scene.rolled_out(&commit).await;
}

#[tokio::test(start_paused = true)]
async fn a_set_that_is_refreshed_looks_its_revisions_up_at_once() {
    let scene = Scene::new().await;
    let commit = scene.commit(&NAMES, "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    let next = scene.commit(&NAMES, "1");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let begun = |scene: &Scene| text(&scene.rollout("fleet"), "/revisions/0/revision") == next;
    assert!(!begun(&scene), "nobody has told of the commit yet");
    let asked = tokio::time::Instant::now();
    scene.annotate_set("fleet", "argocd.argoproj.io/application-set-refresh", Some("true")).await;
    scene.until("the run", begun).await;
    assert!(asked.elapsed() < Duration::from_secs(30), "virtual time: {:?}", asked.elapsed());
    scene.rolled_out(&next).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_is_no_longer_as_the_run_left_it_can_be_skipped() {
    let scene = Scene::new().await;
    let first = scene.commit(&NAMES, "0");
    let second = scene.commit(&NAMES, "1");
    assert_ne!(first, second);
    let mut set = fleet(&MEMBERS);
    set["spec"]["template"]["spec"]["syncPolicy"]["automated"]["selfHeal"] = json!(false);
    // The last step is people's, so that the run does not end.
    set["spec"]["strategy"]["rollingSync"]["steps"][2]["maxUpdate"] = json!(0);
    scene.apply(set).await;
    scene.until("the last step", |scene| scene.rollout("fleet")["step"] == 3).await;
    let client = Client::new(scene.control.service(), NAMESPACE);
    let applications: kube::Api<baton_api::Application> = kube::Api::namespaced(client, NAMESPACE);
    let back = json!({"operation": {"sync": {"revision": first}}});
    applications.patch("a", &PatchParams::default(), &Patch::Merge(back)).await.expect("a patch");
    scene.until("its regression to be told", |scene| reasons(scene).contains(&"Regressed".to_owned())).await;
    assert_eq!(done(&scene, 0), 0, "what has regressed is not done");
    let stamp = text(&scene.applications()["a"], "/metadata/annotations/baton.dev~1pin");
    let stamp: Stamp = stamp.parse().expect("a stamp");
    scene.annotate_set("fleet", "baton.dev/skip", Some(&format!("a={}", stamp.pin))).await;
    scene.until("it to be skipped", |scene| !reasons(scene).contains(&"Regressed".to_owned())).await;
    assert_eq!(done(&scene, 0), 1);
}

#[tokio::test(start_paused = true)]
async fn a_mass_deletion_holds_the_run_until_it_is_approved() {
    let scene = Scene::new().await;
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let commit = scene.commit(&names, "0");
    let all: Vec<(&str, &str)> = names.iter().map(|name| (*name, "dev")).collect();
    let armed = |members: &[(&str, &str)]| {
        let mut set = fleet(members);
        set["metadata"]["annotations"] = json!({"baton.dev/deletion-fuse": "50%"});
        set
    };
    scene.apply(armed(&all)).await;
    scene.rolled_out(&commit).await;
    scene.apply(armed(&all[..2])).await;
    let (since, commit) = (scene.revision(), scene.commit(&names, "1"));
    scene
        .until("the fuse to be named", |scene| {
            reasons(scene).first().is_some_and(|one| one == "DeletionFuse")
        })
        .await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let blocker = scene.rollout("fleet")["blockers"][0].clone();
    assert_eq!(text(&blocker, "/reason"), "DeletionFuse");
    assert_eq!(text(&blocker, "/since").is_empty(), !scene.api.keeps_summary(), "{blocker:#}");
    let begun = scene.versions_since(since).into_iter().filter_map(|version| version.object);
    assert_eq!(begun.filter(|object| !object["operation"].is_null()).count(), 0, "the run waits");
    assert_eq!(scene.applications().len(), names.len(), "nobody has approved");
    let print = fuse::asked_for(&text(&blocker, "/message")).expect("what to approve");
    scene.annotate_set("fleet", "baton.dev/deletion-approved", Some(&print.to_string())).await;
    scene.until("the leavers to go", |scene| scene.applications().len() == 2).await;
    scene.rolled_out(&commit).await;
}

#[tokio::test(start_paused = true)]
async fn each_run_is_told_of_as_one_trace() {
    let mut scene = Scene::new().await;
    if !scene.api.keeps_summary() {
        // Where nothing is kept of a run, nothing is told of it.
        let commit = scene.commit(&NAMES, "0");
        scene.apply(fleet(&MEMBERS)).await;
        scene.until("all to be at the commit", |scene| scene.applications().len() == 3).await;
        scene.rolled_out(&commit).await;
        assert!(scene.traces.try_recv().is_err());
        return;
    }
    for number in ["0", "1"] {
        let commit = scene.commit(&NAMES, number);
        if number == "0" {
            scene.apply(fleet(&MEMBERS)).await;
        }
        scene.rolled_out(&commit).await;
        let told = |scene: &Scene| {
            let rollout = scene.rollout("fleet");
            !rollout["finishedAt"].is_null() && rollout["revisions"][0]["revision"] == *commit
        };
        scene.until("the end of its run to be told", told).await;
    }
    let mut told = BTreeMap::new();
    while let Ok(spans) = scene.traces.try_recv() {
        assert_eq!(spans[0].name, format!("rollout {NAMESPACE}/fleet"));
        assert_eq!(spans[0].outcome, Outcome::Well, "{spans:#?}");
        let steps = spans[1..].iter().map(|span| span.name.clone()).collect::<Vec<_>>();
        assert_eq!(steps, ["step 1", "step 2", "step 3"]);
        *told.entry(spans[0].trace).or_insert(0) += 1;
    }
    assert_eq!(told.into_values().collect::<Vec<_>>(), [1, 1], "two runs, each once");
}
