//! Jobs: success, failure, suspension, expiry.

mod world;

use baton_workloads::Kind;
use serde_json::{Value, json};
use world::{World, condition, workload};

fn job(spec: Value) -> World {
    let mut world = World::with_nodes(2);
    let mut job = workload(Kind::Job, "task", spec);
    if let Some(spec) = job["spec"].as_object_mut() {
        spec.remove("selector");
    }
    if job["spec"]["template"]["spec"]["restartPolicy"].is_null() {
        job["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    }
    world.create(job);
    world
}

fn task(world: &World) -> &Value {
    world.get(Kind::Job, "task")
}

#[test]
fn a_job_runs_to_completion_with_bounded_parallelism() {
    let mut world = job(json!({"completions": 5, "parallelism": 2}));
    world.check = Some(|world| {
        let active = world.list(Kind::Pod).into_iter().filter(|pod| pod["status"]["phase"] != "Succeeded");
        assert!(active.count() <= 2);
    });
    world.advance(1);
    assert_eq!(task(&world)["status"]["active"], 2);
    world.run();
    assert_eq!(task(&world)["status"]["succeeded"], 5);
    assert_eq!(condition(task(&world), "Complete")["status"], "True");
    assert!(task(&world)["status"]["completionTime"].is_string());
    assert!(task(&world)["status"].get("active").is_none());
    let pods = world.list(Kind::Pod);
    assert_eq!(pods.len(), 5);
    assert_eq!(pods[0]["metadata"]["labels"]["batch.kubernetes.io/job-name"], "task");
}

#[test]
fn an_indexed_job_completes_every_index() {
    let mut world = job(json!({"completions": 4, "parallelism": 3, "completionMode": "Indexed"}));
    world.run();
    assert_eq!(task(&world)["status"]["completedIndexes"], "0-3");
    assert_eq!(condition(task(&world), "Complete")["status"], "True");
}

#[test]
fn a_failing_job_fails_when_its_retries_are_used_up() {
    let mut world = job(json!({"backoffLimit": 2}));
    world.annotate(Kind::Job, "task", "fail", Some("migration failed"));
    world.run();
    assert_eq!(condition(task(&world), "Failed")["reason"], "BackoffLimitExceeded");
    assert_eq!(task(&world)["status"]["failed"], 3);
    let pods = world.list(Kind::Pod);
    assert_eq!(pods.len(), 3);
    let ended = &pods[0]["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(ended["exitCode"], 1);
    assert_eq!(ended["message"], "migration failed");
}

#[test]
fn a_job_that_stops_failing_in_time_succeeds() {
    let mut world = job(json!({"backoffLimit": 3}));
    world.annotate(Kind::Job, "task", "fail", Some("true"));
    world.advance(3);
    world.annotate(Kind::Job, "task", "fail", None);
    world.run();
    assert_eq!(condition(task(&world), "Complete")["status"], "True");
    assert_eq!(task(&world)["status"]["failed"], 1);
}

#[test]
fn a_container_crashing_in_place_fails_the_job() {
    let mut world = job(json!({"template": {"spec": {"restartPolicy": "OnFailure"}}}));
    world.annotate(Kind::Job, "task", "fail", Some("true"));
    world.run();
    assert_eq!(condition(task(&world), "Failed")["reason"], "BackoffLimitExceeded");
    assert!(world.list(Kind::Pod).is_empty());
}

#[test]
fn a_stuck_job_runs_until_its_deadline() {
    let mut world = job(json!({"activeDeadlineSeconds": 60}));
    world.annotate(Kind::Job, "task", "stuck", Some("true"));
    world.advance(59);
    assert_eq!(task(&world)["status"]["ready"], 1);
    world.run();
    assert_eq!(condition(task(&world), "Failed")["reason"], "DeadlineExceeded");
    assert!(world.list(Kind::Pod).is_empty());
}

#[test]
fn a_suspended_job_has_no_pods_until_it_is_resumed() {
    let mut world = job(json!({"suspend": true}));
    world.run();
    assert!(world.list(Kind::Pod).is_empty());
    assert_eq!(condition(task(&world), "Suspended")["status"], "True");
    world.patch(Kind::Job, "task", json!({"spec": {"suspend": false}}));
    world.run();
    assert_eq!(condition(task(&world), "Suspended")["status"], "False");
    assert_eq!(condition(task(&world), "Complete")["status"], "True");
}

#[test]
fn a_finished_job_is_deleted_after_its_time_to_live() {
    let mut world = job(json!({"ttlSecondsAfterFinished": 30}));
    world.advance(31);
    assert_eq!(condition(task(&world), "Complete")["status"], "True");
    world.run();
    assert!(task(&world).is_null());
    assert!(world.list(Kind::Pod).is_empty());
}

#[test]
fn endless_completions_do_not_fill_the_store() {
    for mode in ["NonIndexed", "Indexed"] {
        let mut world = job(json!({"completions": 2_000_000_000, "parallelism": 3, "completionMode": mode}));
        world.settings.max_pods_per_owner = 7;
        world.run();
        assert_eq!(world.list(Kind::Pod).len(), 7);
        assert_eq!(task(&world)["status"]["succeeded"], 7);
    }
}
