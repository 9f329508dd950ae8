//! Phases: who goes when, what is called between, and what becomes of failures.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use baton_api::names::API_VERSION;
use baton_hooks::Role;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::matrix::HOOK;
use crate::order::{MEMBERS, judged, names, step};
use crate::scene::{NAMESPACE, Scene, Version, fleet, text};

const ENVIRONMENTS: [&str; 3] = ["dev", "test", "prod"];

/// A set whose generator goes in a phase per environment, and no steps.
pub(crate) fn phased(change: impl Fn(&str, &mut Value)) -> Value {
    let phase = |env: &&str| {
        let hook = |name: &str| {
            let http = json!({"url": "https://hooks.example.com/call"});
            json!({"name": format!("{name}-{env}"), "type": "http", "http": http})
        };
        let mut phase = json!({
            "name": env, "targets": [{"values": {"env": env}}],
            "preHooks": [hook("before")], "postHooks": [hook("after")],
        });
        change(env, &mut phase);
        phase
    };
    let phases: Vec<Value> = ENVIRONMENTS.iter().map(phase).collect();
    let mut set = fleet(&MEMBERS);
    set["spec"]["strategy"] = Value::Null;
    set["spec"]["generators"][0]["deploymentStrategy"] = json!({"type": "phaseDeployment", "phases": phases});
    set
}

fn check(env: &str) -> Value {
    json!([{
        "name": format!("check-{env}"), "type": "http", "timeout": "1m",
        "http": {"url": "https://hooks.example.com/check"},
    }])
}

/// A scene with phases. They need Baton's definitions: where others are installed there is none, which
/// `what_cannot_be_kept_is_not_begun` is about.
pub(crate) async fn scene() -> Option<Scene> {
    let scene = Scene::new().await;
    scene.api.keeps_summary().then_some(scene)
}

pub(crate) fn condition(scene: &Scene, kind: &str) -> Option<Value> {
    let set = scene.set("fleet");
    let mut conditions = set["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|condition| condition["type"] == kind).cloned()
}

pub(crate) fn phases(scene: &Scene) -> Value {
    scene.set("fleet")["status"]["phases"][0].clone()
}

pub(crate) fn phase(scene: &Scene, number: usize) -> Value {
    phases(scene)["phases"][number].clone()
}

/// Everything is done, by phases as well.
pub(crate) async fn deployed(scene: &Scene, commit: &str) {
    scene.rolled_out(commit).await;
    scene.until("all phases to be complete", |scene| phases(scene)["state"] == "Complete").await;
}

fn at(scene: &Scene, commit: &str) -> BTreeSet<String> {
    let done = |app: &Value| {
        app["status"]["sync"]["revision"] == commit
            && app["status"]["sync"]["status"] == "Synced"
            && app["status"]["health"]["status"] == "Healthy"
            && app["operation"].is_null()
    };
    scene.applications().into_iter().filter(|(_, app)| done(app)).map(|(name, _)| name).collect()
}

fn of(envs: &[&str]) -> BTreeSet<String> {
    let all = MEMBERS.iter().filter(|(_, env)| envs.contains(env));
    all.map(|(name, _)| (*name).to_owned()).collect()
}

fn whole_order() -> Vec<String> {
    ENVIRONMENTS
        .iter()
        .flat_map(|env| [format!("{env}/before-{env}"), format!("{env}/after-{env}")])
        .collect()
}

#[tokio::test(start_paused = true)]
async fn commits_go_through_the_phases_with_their_hooks() {
    let Some(scene) = scene().await else { return };
    let commit = scene.commit(&names(), "0");
    scene.apply(phased(|_, _| {})).await;
    deployed(&scene, &commit).await;
    assert_eq!(scene.applications().len(), 6);
    assert_eq!(scene.receiver.order(), whole_order());
    for (name, application) in scene.applications() {
        let automated = &application["spec"]["syncPolicy"]["automated"];
        assert_eq!(automated["enabled"], false, "{name} takes no commit by itself: {automated}");
    }
    for number in 1..=2 {
        scene.receiver.clear();
        let revision = scene.revision();
        let commit = scene.commit(&names(), &number.to_string());
        deployed(&scene, &commit).await;
        let began = judged(&scene, revision);
        assert_eq!(began.len(), 6, "each began once: {began:?}");
        assert_eq!(scene.receiver.order(), whole_order());
        assert_eq!(scene.receiver.calls().len(), 6, "each was called once");
    }
    let annotations = scene.set("fleet")["metadata"]["annotations"].clone();
    assert_eq!(annotations["applicationset.argoproj.io/phase-list"], "3");
}

#[tokio::test(start_paused = true)]
async fn whoever_is_held_is_not_created() {
    let Some(scene) = scene().await else { return };
    scene.receiver.silence("after-dev", true);
    let commit = scene.commit(&names(), "0");
    scene.apply(phased(|_, _| {})).await;
    scene.until("the first phase", |scene| at(scene, &commit) == of(&["dev"])).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(scene.applications().len(), 2, "the others wait for the hook");
    let named = |scene: &Scene| {
        let blockers = scene.rollout("fleet")["blockers"].as_array().cloned().unwrap_or_default();
        blockers.into_iter().find(|one| text(one, "/reason") == "PhaseGate")
    };
    let blocker = named(&scene).expect("what is waited for is named");
    assert_eq!(text(&blocker, "/object"), "after-dev");
    assert_eq!(text(&blocker, "/message"), "hook \"after-dev\" is running");
    assert_eq!(text(&blocker, "/remedy"), "what its phase waits for: `baton appset phases` tells");
    let time = |text: String| text.parse::<Timestamp>().expect("a time");
    let waited = time(scene.now()).duration_since(time(text(&blocker, "/since")));
    assert!(waited.as_secs() >= 120, "it has waited all the time: {blocker:#}");
    // What it names as the way out is one.
    scene.receiver.silence("after-dev", false);
    let scene = scene.crash().await;
    deployed(&scene, &commit).await;
    assert_eq!(named(&scene), None);
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_comes_before_anybody_is_created_ends_what_is_called_for_the_one_before() {
    let Some(scene) = scene().await else { return };
    scene.receiver.silence("before-dev", true);
    scene.commit(&names(), "0");
    scene.apply(phased(|_, _| {})).await;
    scene.until("the hook to be called", |scene| scene.receiver.calls().len() == 1).await;
    let first = phases(&scene)["rolloutID"].clone();
    let commit = scene.commit(&names(), "1");
    scene.until("the next rollout", |scene| phases(scene)["rolloutID"] != first).await;
    assert_eq!(scene.applications().len(), 0, "nobody is created before the hook has passed");
    assert_eq!(scene.receiver.dropped().len(), 1, "the call for what is no longer wanted was ended");
    scene.receiver.silence("before-dev", false);
    let scene = scene.crash().await;
    deployed(&scene, &commit).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_check_puts_its_phase_back_and_the_next_commit_goes_on() {
    let Some(scene) = scene().await else { return };
    let set = phased(|env, phase| {
        phase["checks"] = check(env);
        phase["onFailure"] = json!({"action": "rollback"});
    });
    let good = scene.commit(&names(), "0");
    scene.apply(set).await;
    deployed(&scene, &good).await;
    scene.receiver.fail("check-test", usize::MAX);
    let bad = scene.commit(&names(), "1");
    scene
        .until("the phase to be put back", |scene| {
            phase(scene, 1)["state"] == "RolledBack" && at(scene, &good) == of(&["test"])
        })
        .await;
    assert_eq!(at(&scene, &bad), of(&["dev"]), "the phase before stays");
    let app = &scene.applications()["cc-test"];
    assert_eq!(app["spec"]["source"]["targetRevision"], *good, "it reads Synced, and is kept there");
    assert_eq!(phase(&scene, 1)["failure"]["action"], "rollback");
    // It stays so, also where others take over.
    tokio::time::sleep(Duration::from_secs(300)).await;
    let scene = scene.crash().await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(at(&scene, &good), of(&["test"]));
    scene.receiver.fail("check-test", 0);
    let mended = scene.commit(&names(), "2");
    deployed(&scene, &mended).await;
    assert_eq!(at(&scene, &mended).len(), 6);
    assert_eq!(scene.applications()["cc-test"]["spec"]["source"]["targetRevision"], "main");
}

#[tokio::test(start_paused = true)]
async fn who_joins_or_leaves_what_was_put_back_tries_nothing_again() {
    let Some(scene) = scene().await else { return };
    let set = |members: &[(&str, &str)]| {
        let mut set = phased(|env, phase| {
            phase["checks"] = check(env);
            phase["onFailure"] = json!({"action": "rollback"});
        });
        set["spec"]["generators"][0]["list"] = fleet(members)["spec"]["generators"][0]["list"].clone();
        set
    };
    let all: Vec<&str> = names().into_iter().chain(["ee-test"]).collect();
    let good = scene.commit(&all, "0");
    scene.apply(set(&MEMBERS)).await;
    deployed(&scene, &good).await;
    scene.receiver.fail("check-test", usize::MAX);
    scene.commit(&all, "1");
    scene
        .until("the phase to be put back", |scene| {
            phase(scene, 1)["state"] == "RolledBack" && at(scene, &good) == of(&["test"])
        })
        .await;
    let rollout = phases(&scene)["rolloutID"].clone();
    scene.receiver.clear();
    let mut members = MEMBERS.to_vec();
    members.push(("ee-test", "test"));
    let revision = scene.revision();
    for members in [&members[..], &MEMBERS] {
        scene.apply(set(members)).await;
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert_eq!(phases(&scene)["rolloutID"], rollout);
        assert_eq!(phase(&scene, 1)["state"], "RolledBack");
        assert!(at(&scene, &good).is_superset(&of(&["test"])), "what was put back stays so");
    }
    assert_eq!(scene.receiver.order(), [""; 0], "nothing is called again");
    assert_eq!(judged(&scene, revision), [""; 0], "and nothing is synced");
    // A newer commit begins anew.
    scene.receiver.fail("check-test", 0);
    let mended = scene.commit(&all, "2");
    deployed(&scene, &mended).await;
    assert_ne!(phases(&scene)["rolloutID"], rollout);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_is_put_back_as_a_whole_stays_so_until_the_next_commit() {
    let Some(scene) = scene().await else { return };
    let good = scene.commit(&names(), "0");
    scene.apply(phased(|_, _| {})).await;
    deployed(&scene, &good).await;
    let bad = scene.commit(&names(), "1");
    deployed(&scene, &bad).await;
    scene.annotate_set("fleet", "baton.dev/rollback-all", Some("back")).await;
    scene.until("everything to be put back", |scene| at(scene, &good).len() == 6).await;
    let revision = scene.revision();
    tokio::time::sleep(Duration::from_secs(900)).await;
    assert_eq!(at(&scene, &good).len(), 6, "nobody takes what they were put back to for a commit");
    assert_eq!(judged(&scene, revision), [""; 0]);
    let mended = scene.commit(&names(), "2");
    deployed(&scene, &mended).await;
    assert_eq!(at(&scene, &mended).len(), 6);
}

#[tokio::test(start_paused = true)]
async fn what_a_person_had_put_back_does_not_come_again_when_the_next_commit_fails() {
    let Some(scene) = scene().await else { return };
    let set = phased(|env, phase| {
        phase["checks"] = check(env);
        phase["onFailure"] = json!({"action": "rollback"});
    });
    let good = scene.commit(&names(), "0");
    scene.apply(set).await;
    deployed(&scene, &good).await;
    let withdrawn = scene.commit(&names(), "1");
    deployed(&scene, &withdrawn).await;
    scene.annotate_set("fleet", "baton.dev/rollback-all", Some("back")).await;
    scene
        .until("everything to be put back", |scene| {
            at(scene, &good).len() == 6 && (0..3).all(|number| phase(scene, number)["state"] == "RolledBack")
        })
        .await;
    let scene = scene.crash().await;
    scene.receiver.fail("check-dev", usize::MAX);
    let revision = scene.revision();
    scene.commit(&names(), "2");
    scene
        .until("the phase to be put back", |scene| {
            phase(scene, 0)["state"] == "RolledBack" && at(scene, &good).is_superset(&of(&["dev"]))
        })
        .await;
    let after = scene.versions_since(revision).into_iter().filter_map(|version| version.object);
    let again = after.filter(|app| app["operation"]["sync"]["revision"] == *withdrawn);
    assert_eq!(again.map(|app| text(&app, "/metadata/name")).collect::<Vec<_>>(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn who_is_put_back_and_deleted_comes_again_as_it_was_put_back() {
    let Some(scene) = scene().await else { return };
    let good = scene.commit(&names(), "0");
    scene.apply(phased(|_, _| {})).await;
    deployed(&scene, &good).await;
    let bad = scene.commit(&names(), "1");
    deployed(&scene, &bad).await;
    scene.annotate_set("fleet", "baton.dev/rollback-all", Some("back")).await;
    scene.until("everything to be put back", |scene| at(scene, &good).len() == 6).await;
    comes_again(&scene, &good).await;
    // Also by somebody who has only what is stored.
    let scene = scene.crash().await;
    comes_again(&scene, &good).await;
}

/// An Application that is put back is deleted, and comes again without having been anything else.
async fn comes_again(scene: &Scene, good: &str) {
    let uid = |scene: &Scene| scene.applications().get("cc-test").map(|app| text(app, "/metadata/uid"));
    let (before, revision) = (uid(scene), scene.revision());
    scene.control.delete_object(API_VERSION, "Application", NAMESPACE, "cc-test").await.expect("a deletion");
    scene
        .until("another to be there", |scene| {
            uid(scene).is_some_and(|uid| Some(uid) != before) && at(scene, good).len() == 6
        })
        .await;
    assert_eq!(scene.applications()["cc-test"]["spec"]["source"]["targetRevision"], *good);
    let since = scene.versions_since(revision).into_iter().filter_map(|version| version.object);
    let synced = since.filter(|app| !app["operation"].is_null());
    let synced: BTreeSet<String> = synced.map(|app| text(&app, "/operation/sync/revision")).collect();
    assert_eq!(synced, BTreeSet::from([good.to_owned()]), "nothing else was brought there");
}

#[tokio::test(start_paused = true)]
async fn a_failed_hook_stops_the_rollout_until_somebody_advances_it() {
    let Some(scene) = scene().await else { return };
    let commit = scene.commit(&names(), "0");
    scene.receiver.fail("before-test", 1);
    scene.apply(phased(|_, _| {})).await;
    scene.until("the hook to fail", |scene| phase(scene, 1)["state"] == "Failed").await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(at(&scene, &commit), of(&["dev"]), "nothing goes on");
    scene.annotate_set("fleet", "baton.dev/advance", Some("on")).await;
    scene.until("the last phase", |scene| at(scene, &commit).is_superset(&of(&["prod"]))).await;
}

#[tokio::test(start_paused = true)]
async fn a_phase_waits_as_long_as_it_says_over_a_restart() {
    let Some(scene) = scene().await else { return };
    let commit = scene.commit(&names(), "0");
    scene
        .apply(phased(|env, phase| {
            if env == "dev" {
                phase["waitDuration"] = "10m".into();
            }
        }))
        .await;
    scene.until("the wait", |scene| phase(scene, 0)["state"] == "Waiting").await;
    let until = phase(&scene, 0)["waitUntil"].clone();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let scene = scene.crash().await;
    tokio::time::sleep(Duration::from_secs(400)).await;
    assert_eq!(phase(&scene, 0)["waitUntil"], until, "it goes on where it was");
    assert_eq!(at(&scene, &commit), of(&["dev"]));
    deployed(&scene, &commit).await;
    let before = scene.receiver.calls();
    let names: BTreeSet<String> = before.iter().map(|call| call.name.clone()).collect();
    assert_eq!(names.len(), before.len(), "none was called twice: {before:?}");
    assert!(before.iter().all(|call| call.role != Role::Check && call.attempt == 1));
}

#[tokio::test(start_paused = true)]
async fn crashes_at_any_time_keep_the_phases() {
    let Some(mut scene) = scene().await else { return };
    let commit = scene.commit(&names(), "0");
    scene.apply(phased(|env, phase| phase["checks"] = check(env))).await;
    deployed(&scene, &commit).await;
    for number in 1..=4u64 {
        let revision = scene.revision();
        let commit = scene.commit(&names(), &number.to_string());
        for pause in [700 * number, 1900, 3100] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            scene = scene.crash().await;
        }
        deployed(&scene, &commit).await;
        judged(&scene, revision);
    }
}

#[tokio::test(start_paused = true)]
async fn both_steps_and_phases_must_allow() {
    let Some(scene) = scene().await else { return };
    let commit = scene.commit(&names(), "0");
    let mut set = phased(|_, _| {});
    set["spec"]["strategy"] = fleet(&MEMBERS)["spec"]["strategy"].clone();
    scene.apply(set).await;
    deployed(&scene, &commit).await;
    let revision = scene.revision();
    let commit = scene.commit(&names(), "1");
    deployed(&scene, &commit).await;
    assert_eq!(judged(&scene, revision).len(), 6);
}

fn rolling(steps: &[&[&str]]) -> Value {
    let step =
        |envs: &&[&str]| json!({"matchExpressions": [{"key": "env", "operator": "In", "values": envs}]});
    let steps: Vec<Value> = steps.iter().map(step).collect();
    json!({"type": "RollingSync", "rollingSync": {"steps": steps}})
}

#[tokio::test(start_paused = true)]
async fn where_steps_are_wider_phases_keep_the_order_and_where_phases_are_steps_do() {
    // Each time one of the two alone would let test and prod go together.
    let wide_steps = || {
        let mut set = phased(|_, _| {});
        set["spec"]["strategy"] = rolling(&[&["dev"], &["test", "prod"]]);
        set
    };
    let wide_phases = || {
        let mut set = phased(|env, phase| {
            if env == "test" {
                phase["targets"] = json!([{"values": {"env": "test"}}, {"values": {"env": "prod"}}]);
            }
        });
        set["spec"]["strategy"] = rolling(&[&["dev"], &["test"], &["prod"]]);
        set
    };
    for set in [wide_steps(), wide_phases()] {
        let Some(scene) = scene().await else { return };
        let commit = scene.commit(&names(), "0");
        scene.apply(set).await;
        deployed(&scene, &commit).await;
        let revision = scene.revision();
        let commit = scene.commit(&names(), "1");
        deployed(&scene, &commit).await;
        assert_eq!(judged(&scene, revision).len(), 6);
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_is_held_keeps_its_specification() {
    let Some(scene) = scene().await else { return };
    let commit = scene.commit(&names(), "0");
    scene.apply(phased(|_, _| {})).await;
    deployed(&scene, &commit).await;
    scene.receiver.silence("after-dev", true);
    let mut set = phased(|_, _| {});
    set["spec"]["template"]["spec"]["revisionHistoryLimit"] = json!(3);
    scene.apply(set).await;
    let with_it = |scene: &Scene| -> BTreeSet<String> {
        let all = scene.applications().into_iter();
        all.filter(|(_, app)| app["spec"]["revisionHistoryLimit"] == 3).map(|(name, _)| name).collect()
    };
    scene.until("the first phase", |scene| with_it(scene) == of(&["dev"])).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(with_it(&scene), of(&["dev"]), "the others keep what they have");
    assert_eq!(scene.applications().len(), 6, "and are there");
    scene.receiver.silence("after-dev", false);
    let scene = scene.crash().await;
    deployed(&scene, &commit).await;
    assert_eq!(with_it(&scene).len(), 6);
}

#[tokio::test(start_paused = true)]
async fn no_more_of_a_phase_change_at_once_than_it_says() {
    let Some(scene) = scene().await else { return };
    let commit = scene.commit(&names(), "0");
    scene.apply(phased(|_, phase| phase["maxConcurrent"] = json!(1))).await;
    deployed(&scene, &commit).await;
    let revision = scene.revision();
    scene.slow_down(&names());
    let commit = scene.commit(&names(), "1");
    deployed(&scene, &commit).await;
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    let mut began = 0;
    for version in scene.versions_since(0) {
        let now = version.object.expect("nobody goes");
        let idle = known.get(&version.name).is_none_or(|before| before["operation"].is_null());
        if idle && !now["operation"].is_null() && version.revision > revision {
            began += 1;
            let peers = known.iter().filter(|(name, _)| **name != version.name);
            for (name, peer) in peers.filter(|(name, _)| step(name) == step(&version.name)) {
                let status = &peer["status"];
                let at = format!("{} began while {name} is {status:#}", version.name);
                assert!(
                    peer["operation"].is_null() && status["operationState"]["phase"] == "Succeeded",
                    "{at}"
                );
                assert_eq!(status["health"]["status"], "Healthy", "{at}");
            }
        }
        known.insert(version.name, now);
    }
    assert_eq!(began, 6);
}

#[tokio::test(start_paused = true)]
async fn a_phase_that_is_aborted_has_its_syncs_ended() {
    let Some(scene) = scene().await else { return };
    let commit = scene.commit(&names(), "0");
    scene
        .apply(phased(|_, phase| {
            phase["progressDeadline"] = "20s".into();
            phase["onFailure"] = json!({"action": "abort"});
        }))
        .await;
    deployed(&scene, &commit).await;
    let revision = scene.revision();
    let hook = HOOK.replace("slow", "slow-zz-dev").replace("delay: 10s", "delay: 10m");
    scene.write("zz-dev/hook.yaml", Some(&hook));
    scene.commit(&names(), "1");
    scene.until("the phase to be aborted", |scene| phase(scene, 0)["state"] == "Aborted").await;
    scene
        .until("its sync to be ended", |scene| {
            let app = &scene.applications()["zz-dev"];
            app["operation"].is_null() && app["status"]["operationState"]["phase"] == "Failed"
        })
        .await;
    let ended = scene.versions_since(revision).into_iter().filter_map(|version| version.object);
    let ended = ended.filter(|app| app["status"]["operationState"]["phase"] == "Terminating");
    let ended: BTreeSet<String> = ended.map(|app| text(&app, "/metadata/name")).collect();
    assert_eq!(ended, BTreeSet::from(["zz-dev".to_owned()]), "who was done is left alone");
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_those_in_no_phase() {
    let Some(scene) = scene().await else { return };
    let commit = scene.commit(&names(), "0");
    let mut set = phased(|_, _| {});
    let others = (0..25).map(|at| json!({"name": format!("oo-{at:02}"), "env": "other"}));
    let elements = set["spec"]["generators"][0]["list"]["elements"].as_array_mut().expect("elements");
    elements.extend(others);
    scene.apply(set).await;
    deployed(&scene, &commit).await;
    assert_eq!(scene.applications().len(), 6, "who is in no phase is not made either");
    assert_eq!(
        (&phases(&scene)["unassignedCount"], phase(&scene, 2)["state"].clone()),
        (&json!(25), "Complete".into())
    );
    let told = condition(&scene, "InvalidPhaseConfig").expect("it is told");
    assert_eq!((&told["status"], &told["reason"]), (&json!("False"), &json!("Unassigned")), "a warning");
    assert!(text(&told, "/message").contains("25 Applications are in no phase"), "{told:#}");
}

#[tokio::test(start_paused = true)]
async fn parameters_reach_hooks_with_their_types() {
    let Some(scene) = scene().await else { return };
    let commit = scene.commit(&names(), "0");
    let set = phased(|_, phase| phase["preHooks"][0]["scope"] = "target".into()).to_string();
    let mut set: Value =
        serde_json::from_str(&set.replace("{{name}}", "{{.name}}").replace("{{env}}", "{{.env}}"))
            .expect("JSON");
    set["spec"]["goTemplate"] = true.into();
    let elements = set["spec"]["generators"][0]["list"]["elements"].as_array_mut().expect("elements");
    for element in elements {
        element["replicas"] = json!(3);
        element["regions"] = json!(["eu", "us"]);
    }
    scene.apply(set).await;
    deployed(&scene, &commit).await;
    let calls = scene.receiver.calls();
    let call =
        calls.iter().find(|call| call.name == "before-dev" && call.target == "zz-dev").expect("a call");
    let kind = |key: &str| call.kinds.get(key).map(String::as_str);
    assert_eq!(
        (kind("name"), kind("replicas"), kind("regions")),
        (Some("string"), Some("float64"), Some("[]interface {}"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_set_that_goes_has_its_calls_ended_before_its_applications_go() {
    let Some(scene) = scene().await else { return };
    scene.receiver.silence("after-dev", true);
    let commit = scene.commit(&names(), "0");
    let mut set = phased(|_, _| {});
    // The set stays until its Applications are gone, last first.
    set["spec"]["strategy"] = rolling(&[&["dev"], &["test"], &["prod"]]);
    set["spec"]["strategy"]["deletionOrder"] = "Reverse".into();
    scene.apply(set).await;
    scene.until("the first phase", |scene| at(scene, &commit) == of(&["dev"])).await;
    scene.until("the hook", |scene| scene.receiver.order().contains(&"dev/after-dev".to_owned())).await;
    let revision = scene.revision();
    scene.control.delete_object(API_VERSION, "ApplicationSet", NAMESPACE, "fleet").await.expect("a deletion");
    scene.until("all to be gone", |scene| scene.applications().is_empty()).await;
    let goes = |version: &Version| {
        let object = version.object.as_ref();
        object.is_none_or(|object| !object["metadata"]["deletionTimestamp"].is_null())
    };
    let first = scene.versions_since(revision).into_iter().find(goes).expect("somebody goes").revision;
    let dropped = scene.receiver.dropped();
    assert!(dropped.iter().any(|(name, _)| name == "after-dev"), "{dropped:?}");
    assert!(dropped.iter().all(|(_, at)| *at < first), "{dropped:?} and {first}");
}

#[tokio::test(start_paused = true)]
async fn a_set_for_a_newer_version_says_so_once_and_is_left_alone() {
    let Some(scene) = scene().await else { return };
    let commit = scene.commit(&names(), "0");
    scene.apply(phased(|_, _| {})).await;
    deployed(&scene, &commit).await;
    scene.receiver.clear();
    scene.annotate_set("fleet", "argocd.argoproj.io/min-version", Some("99.0.0")).await;
    scene
        .until("it to be told", |scene| {
            condition(scene, "ErrorOccurred")
                .is_some_and(|it| it["status"] == "True" && text(&it, "/message").contains("99.0.0"))
        })
        .await;
    let next = scene.commit(&names(), "1");
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(at(&scene, &next).is_empty() && scene.receiver.calls().is_empty(), "nothing is done");
    assert_eq!(condition(&scene, "InvalidPhaseConfig"), None, "it is not the phases that are wrong");
    scene.annotate_set("fleet", "argocd.argoproj.io/min-version", None).await;
    deployed(&scene, &next).await;
}

#[tokio::test(start_paused = true)]
async fn phases_that_make_no_sense_hold_everything_and_say_why() {
    let Some(scene) = scene().await else { return };
    scene.commit(&names(), "0");
    let url = "http://hooks.example.com/call";
    scene.apply(phased(|_, phase| phase["preHooks"][0]["http"]["url"] = url.into())).await;
    nothing_goes_on(&scene, "preHooks[0]").await;
}

/// The phases are told to be wrong, in these words, and nobody is created and nothing called.
async fn nothing_goes_on(scene: &Scene, words: &str) {
    scene
        .until("what is wrong to be told", |scene| {
            let is_told = |kind: &str| {
                condition(scene, kind)
                    .is_some_and(|it| it["status"] == "True" && text(&it, "/message").contains(words))
            };
            is_told("InvalidPhaseConfig") && is_told("ErrorOccurred") && scene.rollout_state() == "Failed"
        })
        .await;
    let rollout = scene.rollout("fleet");
    let blockers = rollout["blockers"].as_array().cloned().unwrap_or_default();
    let named =
        |one: &Value| text(one, "/reason") == "InvalidRolloutConfig" && text(one, "/message").contains(words);
    assert!(blockers.iter().any(named), "{rollout:#}");
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(scene.applications().is_empty(), "nobody is created");
    assert!(scene.receiver.calls().is_empty(), "nothing is called");
    assert_eq!(scene.rollout_state(), "Failed", "and it stays so");
}

#[tokio::test(start_paused = true)]
async fn phases_and_steps_that_contradict_each_other_hold_everything_until_one_of_the_two_is_mended() {
    let Some(scene) = scene().await else { return };
    let commit = scene.commit(&names(), "0");
    let mut set = phased(|_, _| {});
    set["spec"]["strategy"] = rolling(&[&["prod"], &["test"], &["dev"]]);
    scene.apply(set.clone()).await;
    nothing_goes_on(&scene, "phases and steps contradict each other").await;
    let blockers = scene.rollout("fleet")["blockers"].clone();
    let blocker =
        blockers.as_array().into_iter().flatten().find(|one| text(one, "/object").ends_with("-dev"));
    let blocker = blocker.unwrap_or_else(|| panic!("who waits is named: {blockers:#}"));
    let message = text(blocker, "/message");
    assert!(
        message.contains(&text(blocker, "/object")) && message.contains("-test (phase \"test\", step 2)"),
        "{message}"
    );
    // Whoever takes over sees it no other way.
    let scene = scene.crash().await;
    nothing_goes_on(&scene, "phases and steps contradict each other").await;
    set["spec"]["strategy"] = rolling(&[&["dev"], &["test"], &["prod"]]);
    scene.apply(set).await;
    deployed(&scene, &commit).await;
    assert_eq!(scene.receiver.order(), whole_order());
    assert_eq!(condition(&scene, "InvalidPhaseConfig"), None);
    scene
        .until("the error to be over", |scene| {
            condition(scene, "ErrorOccurred").is_some_and(|it| it["status"] == "False")
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_while_phases_cannot_be_followed_is_refused_and_does_not_hit_what_follows() {
    let Some(scene) = scene().await else { return };
    let commit = scene.commit(&names(), "0");
    scene.apply(phased(|_, _| {})).await;
    deployed(&scene, &commit).await;
    let url = "http://hooks.example.com/call";
    scene.apply(phased(|_, phase| phase["preHooks"][0]["http"]["url"] = url.into())).await;
    scene
        .until("what is wrong to be told", |scene| {
            condition(scene, "InvalidPhaseConfig").is_some_and(|it| it["status"] == "True")
        })
        .await;
    for annotation in ["baton.dev/abort", "baton.dev/rollback-all"] {
        scene.annotate_set("fleet", annotation, Some("now")).await;
    }
    scene
        .until("both to be refused", |scene| {
            let refused = phases(scene)["refused"].to_string();
            ["abort: ", "rollbackAll: "]
                .iter()
                .all(|ask| refused.contains(&format!("{ask}the phases cannot be followed: ")))
        })
        .await;
    let next = scene.commit(&names(), "1");
    scene.apply(phased(|_, _| {})).await;
    deployed(&scene, &next).await;
    assert_eq!(at(&scene, &next).len(), 6, "nobody was put back");
    assert_eq!(phases(&scene)["refused"], Value::Null);
}

/// A first phase whose Applications are new and cannot become healthy: it fails when its time is over, and says whom it waited
/// for and why.
async fn fails_with(scene: Scene, reason: &str) {
    scene.apply(phased(|_, phase| phase["progressDeadline"] = json!("2m"))).await;
    scene.until("the phase to fail", |scene| phase(scene, 0)["state"] == "Failed").await;
    let phase = phase(&scene, 0);
    assert_eq!(phase["failure"]["reason"], "ProgressDeadlineExceeded", "{phase:#}");
    let message = text(&phase, "/failure/message");
    assert!(message.contains("yy-dev") && message.contains(reason), "{message}");
    assert!(scene.applications().keys().all(|name| name.ends_with("-dev")), "nobody else is created");
}

#[tokio::test(start_paused = true)]
async fn a_new_application_that_cannot_be_rendered_fails_its_phase() {
    let Some(scene) = scene().await else { return };
    scene.write("yy-dev/broken.yaml", Some("apiVersion: v1\nkind: ConfigMap\nmetadata: [\n"));
    scene.commit(&names(), "0");
    fails_with(scene, "broken.yaml").await;
}

#[tokio::test(start_paused = true)]
async fn a_new_application_whose_folder_is_not_there_fails_its_phase() {
    let Some(scene) = scene().await else { return };
    let others: Vec<&str> = names().into_iter().filter(|name| *name != "yy-dev").collect();
    scene.commit(&others, "0");
    fails_with(scene, "yy-dev").await;
}

#[tokio::test(start_paused = true)]
async fn without_phases_what_was_held_goes() {
    let Some(scene) = scene().await else { return };
    scene.receiver.fail("before-test", 1);
    let commit = scene.commit(&names(), "0");
    scene.apply(phased(|_, _| {})).await;
    scene.until("the hook to fail", |scene| phase(scene, 1)["state"] == "Failed").await;
    let mut set = fleet(&MEMBERS);
    set["spec"]["strategy"] = Value::Null;
    scene.apply(set).await;
    scene.until("all to go", |scene| at(scene, &commit).len() == 6).await;
    scene.until("the status to be cleared", |scene| phases(scene).is_null()).await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_kept_is_not_begun() {
    let scene = Scene::new().await;
    if scene.api.keeps_summary() {
        return;
    }
    scene.commit(&names(), "0");
    scene.apply(phased(|_, _| {})).await;
    scene
        .until("what is wrong to be told", |scene| {
            let set = scene.set("fleet");
            let mut conditions = set["status"]["conditions"].as_array().into_iter().flatten();
            conditions.any(|condition| text(condition, "/message").contains("does not keep status.phases"))
        })
        .await;
    assert!(scene.receiver.calls().is_empty());
    assert!(scene.applications().is_empty(), "nobody is let through");
}
