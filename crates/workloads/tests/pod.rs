//! Pods by themselves: scheduling, failures, termination.

mod world;

use baton_workloads::Kind;
use serde_json::{Value, json};
use world::{World, condition, is_leaving, is_ready};

fn pod(annotations: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "solo", "namespace": "default", "annotations": annotations},
        "spec": {"restartPolicy": "Always", "initContainers": [{"name": "init", "image": "i:1"}],
            "containers": [{"name": "main", "image": "app:1"}]}})
}

fn after_run(annotations: Value) -> World {
    let mut world = World::with_nodes(2);
    world.create(pod(annotations));
    world.run();
    world
}

fn solo(world: &World) -> &Value {
    world.get(Kind::Pod, "solo")
}

fn main_status(world: &World) -> &Value {
    &solo(world)["status"]["containerStatuses"][0]
}

#[test]
fn a_pod_is_bound_at_once_and_ready_after_the_delay() {
    let mut world = World::with_nodes(2);
    world.create(pod(json!({})));
    world.advance(1);
    assert_eq!(condition(solo(&world), "PodScheduled")["status"], "True");
    assert_eq!(solo(&world)["status"]["phase"], "Pending");
    assert_eq!(main_status(&world)["state"]["waiting"]["reason"], "ContainerCreating");
    world.run();
    assert!(is_ready(solo(&world)));
    assert_eq!(main_status(&world)["ready"], true);
    let init = &solo(&world)["status"]["initContainerStatuses"][0];
    assert_eq!(init["state"]["terminated"]["reason"], "Completed");
}

#[test]
fn a_pod_without_a_node_waits_for_one() {
    let mut world = World::new();
    world.create(pod(json!({})));
    world.run();
    assert_eq!(condition(solo(&world), "PodScheduled")["reason"], "Unschedulable");
    world.create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "first"}}));
    world.run();
    assert!(is_ready(solo(&world)));
    assert_eq!(solo(&world)["spec"]["nodeName"], "first");
}

#[test]
fn a_cordoned_node_takes_no_new_pods() {
    let mut world = World::with_nodes(2);
    world.patch(Kind::Node, "node-0", json!({"spec": {"unschedulable": true}}));
    world.create(pod(json!({})));
    world.run();
    assert_eq!(solo(&world)["spec"]["nodeName"], "node-1");
}

#[test]
fn each_failure_shows_as_a_real_one_would() {
    for (reason, phase, waiting) in [
        ("ImagePullBackOff", "Pending", "ImagePullBackOff"),
        ("CreateContainerConfigError", "Pending", "CreateContainerConfigError"),
        ("CrashLoopBackOff", "Running", "CrashLoopBackOff"),
        ("OOMKilled", "Running", "CrashLoopBackOff"),
        ("disk on fire", "Running", "CrashLoopBackOff"),
    ] {
        let world = after_run(json!({"sim.baton.dev/fail": reason}));
        assert_eq!(solo(&world)["status"]["phase"], phase, "{reason}");
        assert_eq!(main_status(&world)["state"]["waiting"]["reason"], waiting, "{reason}");
        assert!(!is_ready(solo(&world)), "{reason}");
    }
    let killed = after_run(json!({"sim.baton.dev/fail": "OOMKilled"}));
    assert_eq!(main_status(&killed)["lastState"]["terminated"]["exitCode"], 137);
    let unready = after_run(json!({"sim.baton.dev/fail": "NotReady"}));
    assert_eq!(solo(&unready)["status"]["phase"], "Running");
    assert!(!is_ready(solo(&unready)));
    let nowhere = after_run(json!({"sim.baton.dev/fail": "Unschedulable"}));
    assert!(solo(&nowhere)["spec"].get("nodeName").is_none());
}

#[test]
fn a_crash_counts_one_restart_and_recovery_keeps_the_count() {
    let mut world = after_run(json!({}));
    world.annotate(Kind::Pod, "solo", "fail", Some("true"));
    world.run();
    assert_eq!(main_status(&world)["restartCount"], 1);
    world.annotate(Kind::Pod, "solo", "fail", None);
    world.run();
    assert!(is_ready(solo(&world)));
    assert_eq!(main_status(&world)["restartCount"], 1);
    assert_eq!(main_status(&world)["lastState"]["terminated"]["exitCode"], 1);
}

#[test]
fn what_is_ready_stays_ready_when_told_to_be_stuck_or_slow() {
    let mut world = after_run(json!({}));
    let before = world.writes;
    world.annotate(Kind::Pod, "solo", "stuck", Some("true"));
    world.annotate(Kind::Pod, "solo", "delay", Some("1h"));
    world.run();
    assert!(is_ready(solo(&world)));
    assert_eq!(world.writes, before + 2, "only the annotations were written");
}

#[test]
fn a_closed_readiness_gate_keeps_a_running_pod_unready() {
    let mut world = World::with_nodes(1);
    let mut gated = pod(json!({}));
    gated["spec"]["readinessGates"] = json!([{"conditionType": "example.com/gate"}]);
    world.create(gated);
    world.run();
    assert_eq!(condition(solo(&world), "Ready")["reason"], "ReadinessGatesNotReady");
    assert_eq!(condition(solo(&world), "ContainersReady")["status"], "True");
}

#[test]
fn a_deleted_pod_goes_after_its_delay() {
    for (delay, annotations) in [(1, json!({})), (20, json!({"sim.baton.dev/deletion-delay": "20s"}))] {
        let mut world = after_run(annotations);
        world.delete(Kind::Pod, "solo");
        world.advance(delay - 1);
        assert!(is_leaving(solo(&world)));
        world.advance(1);
        assert!(solo(&world).is_null());
    }
}

#[test]
fn a_pod_that_is_not_restarted_runs_to_its_end_once() {
    let mut world = World::with_nodes(1);
    let mut hook = pod(json!({}));
    hook["spec"]["restartPolicy"] = "Never".into();
    world.create(hook);
    world.advance(1);
    assert_eq!(solo(&world)["status"]["phase"], "Running");
    world.run();
    assert_eq!(solo(&world)["status"]["phase"], "Succeeded");
    world.annotate(Kind::Pod, "solo", "fail", Some("true"));
    world.run();
    assert_eq!(solo(&world)["status"]["phase"], "Succeeded");
}

#[test]
fn a_kind_can_have_its_own_delay() {
    let mut world = World::with_nodes(1);
    world.settings.kind_delays.insert(Kind::Pod, std::time::Duration::from_secs(40));
    world.create(pod(json!({})));
    world.advance(39);
    assert!(!is_ready(solo(&world)));
    world.advance(1);
    assert!(is_ready(solo(&world)));
}
