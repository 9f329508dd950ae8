//! Good states: when they are recorded, how many are kept, and how they are gone back to.

use baton_api::phase_status::PhaseState;
use baton_phases::{Gate, Progress};
use serde_json::{Value, json};

use super::faults::Fault;
use super::world::{World, definition, phase};

async fn world(limit: i64, names: &[&str]) -> World {
    let phases = json!([phase("dev", json!({"onFailure": {"action": "rollback"}}))]);
    let strategy = json!({"type": "phaseDeployment", "phases": phases, "revisionHistoryLimit": limit});
    World::with(strategy, names, definition()).await
}

/// The pins on record for an Application, the oldest first.
fn pins(world: &World, name: &str) -> Vec<String> {
    let mut all = world.objects("controllerrevisions.apps");
    all.retain(|object| object["data"]["application"] == name);
    all.sort_by_key(|object| object["revision"].as_i64());
    all.iter().map(|object| object["data"]["pin"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn good_states_are_recorded_before_the_status_and_only_so_many() {
    let mut world = world(1, &["dev-1", "dev-2"]).await;
    for run in 1..=4 {
        world.begin_run(run, &format!("p{run}"));
        world.settle().await;
        world.requests();
        world.deploy().await;
        assert_eq!(world.status().state, PhaseState::Complete);
        let requests = world.requests();
        let at = |line: &str| requests.iter().rposition(|request| request == line);
        let complete = at("PATCH applicationsets/status").expect("a write");
        assert!(at("POST controllerrevisions").expect("two records") < complete, "{requests:?}");
    }
    for name in ["dev-1", "dev-2"] {
        assert_eq!(pins(&world, name), ["p3", "p4"], "{name}");
    }
    let object = &world.objects("controllerrevisions.apps")[0];
    let metadata = &object["metadata"];
    assert_eq!(metadata["labels"]["baton.dev/phases"], "web");
    assert_eq!(metadata["ownerReferences"][0]["uid"], world.set().metadata.uid.expect("a UID"));
    assert_eq!(object["data"]["spec"]["source"]["targetRevision"], "p3");
    // What is known of them survives.
    world.crash();
    world.begin_run(5, "p5");
    world.deploy().await;
    assert_eq!(pins(&world, "dev-1"), ["p4", "p5"]);
}

#[tokio::test(start_paused = true)]
async fn where_they_cannot_be_recorded_the_status_waits_or_people_are_told() {
    let mut world = world(1, &["dev-1"]).await;
    world.settle().await;
    world.see("dev-1", Progress::Done);
    let refuse = |code: u16| {
        move |_, call: &super::faults::Call| {
            let revision = call.target().0 == "controllerrevisions" && call.method != http::Method::GET;
            revision.then(|| Fault::Refused(code, "no".to_owned()))
        }
    };
    world.wire.fail(refuse(500));
    let error = world.round().await.expect_err("the API fails");
    assert!(error.to_string().starts_with("cannot keep good states"), "{error}");
    assert_eq!(world.state(0), PhaseState::Deploying);
    world.wire.fail(refuse(403));
    let ruling = world.round().await.expect("a round");
    assert!(ruling.notices.iter().any(|notice| notice.reason == "GoodStateNotKept"), "{:?}", ruling.notices);
    assert_eq!(world.status().state, PhaseState::Complete);
}

#[tokio::test(start_paused = true)]
async fn a_rollback_gives_the_recorded_specifications() {
    let names: Vec<String> = (0..12).map(|at| format!("dev-{at:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = world(2, &names).await;
    world.deploy().await;
    world.begin_run(2, "p2");
    world.settle().await;
    for name in &names {
        world.see(name, Progress::UnderWay);
    }
    world.settle().await;
    let failed = Progress::Failed { reason: "Degraded".to_owned(), message: "it is degraded".to_owned() };
    world.see("dev-03", failed);
    let check = |world: &World, ruling: &crate::phases::Ruling| {
        assert_eq!(world.state(0), PhaseState::RollingBack);
        assert_eq!(ruling.back.len(), names.len());
        for name in &names {
            assert_eq!(ruling.gates[*name].gate, Gate::Back { pin: "p1".into() }, "{name}");
            assert_eq!(ruling.back[*name]["source"]["targetRevision"], "p1", "{name}");
        }
    };
    let ruling = world.settle().await;
    check(&world, &ruling);
    world.requests();
    world.round().await.expect("a round");
    assert_eq!(world.requests(), [""; 0], "they are read once");
    world.crash();
    let ruling = world.settle().await;
    check(&world, &ruling);
    let lists = world.requests().into_iter().filter(|line| line == "GET controllerrevisions").count();
    assert_eq!(lists, 2, "many are read by a list");
    for name in &names {
        world.see(name, Progress::Done);
        world.seen.get_mut(*name).expect("it is known").pin = "p1".into();
    }
    world.settle().await;
    assert_eq!(world.state(0), PhaseState::RolledBack);
}

#[tokio::test(start_paused = true)]
async fn a_good_state_that_somebody_took_away_is_told_of() {
    let mut world = world(2, &["dev-1"]).await;
    world.deploy().await;
    world.begin_run(2, "p2");
    world.settle().await;
    world.see("dev-1", Progress::UnderWay);
    world.settle().await;
    let failed = Progress::Failed { reason: "Degraded".to_owned(), message: "it is degraded".to_owned() };
    world.see("dev-1", failed);
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let record = name(&world.objects("controllerrevisions.apps")[0]);
    world.cluster.delete_object("apps/v1", "ControllerRevision", "argocd", &record).await.expect("deleted");
    let ruling = world.settle().await;
    assert!(matches!(ruling.gates["dev-1"].gate, Gate::Held(_)) && ruling.back.is_empty());
    assert!(ruling.notices.iter().any(|notice| notice.reason == "GoodStateLost"));
}

#[tokio::test(start_paused = true)]
async fn row_02_a_state_that_a_person_had_put_back_is_not_gone_back_to_when_the_next_commit_fails() {
    let mut world = world(10, &["dev-1"]).await;
    for run in 1..=2 {
        world.begin_run(run, &format!("p{run}"));
        world.deploy().await;
    }
    assert_eq!(pins(&world, "dev-1"), ["p1", "p2"]);
    world.requests.rollback_all = Some("back".to_owned());
    world.wire.fail(|_, call: &super::faults::Call| {
        (call.method == http::Method::DELETE).then(|| Fault::Refused(500, "no".to_owned()))
    });
    world.round().await.expect("the way back is stored");
    world.round().await.expect_err("what was withdrawn stays on record");
    assert_eq!(pins(&world, "dev-1"), ["p1", "p2"]);
    // Whoever takes over finishes it.
    world.wire.heal();
    world.crash();
    world.settle().await;
    world.see("dev-1", Progress::Done);
    world.seen.get_mut("dev-1").expect("it is known").pin = "p1".into();
    world.settle().await;
    assert_eq!(world.state(0), PhaseState::RolledBack);
    assert_eq!(pins(&world, "dev-1"), ["p1"], "what was put away is good no longer");
    world.begin_run(3, "p3");
    world.settle().await;
    let failed = Progress::Failed { reason: "Degraded".to_owned(), message: "it is degraded".to_owned() };
    world.see("dev-1", failed);
    let ruling = world.settle().await;
    assert_eq!(ruling.gates["dev-1"].gate, Gate::Back { pin: "p1".into() });
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_older_than_what_is_on_record_withdraws_nothing() {
    let mut world = world(10, &["dev-1"]).await;
    for run in 1..=2 {
        world.begin_run(run, &format!("p{run}"));
        world.deploy().await;
    }
    let good = world.status();
    world.requests.rollback_all = Some("back".to_owned());
    world.round().await.expect("the way back is stored");
    let old = world.set();
    assert_eq!(old.status.phases[0].phases[0].state, PhaseState::RollingBack);
    // Another controller has come to another end since.
    world.store(&good).await;
    world.crash();
    let ruling = world.round_of(&old, true).await.expect("a round");
    assert!(ruling.again, "the set is looked at again");
    assert_eq!(pins(&world, "dev-1"), ["p1", "p2"]);
}
