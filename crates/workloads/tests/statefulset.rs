//! StatefulSets: order, revisions, claims.

mod world;

use baton_workloads::Kind;
use serde_json::{Value, json};
use world::{World, image, is_leaving, is_ready, workload};

fn set(spec: Value) -> World {
    let mut world = World::with_nodes(2);
    world.create(workload(Kind::StatefulSet, "db", spec));
    world
}

fn status(world: &World) -> &Value {
    &world.get(Kind::StatefulSet, "db")["status"]
}

#[test]
fn pods_are_made_one_after_the_other_and_removed_from_the_top() {
    let mut world = set(json!({"replicas": 3}));
    world.check = Some(|world| {
        let pods = world.list(Kind::Pod);
        let unready = pods.iter().filter(|pod| !is_ready(pod) || is_leaving(pod)).count();
        assert!(unready <= 1, "one pod at a time");
    });
    world.run();
    assert_eq!(world.log, ["+db-0", "+db-1", "+db-2"]);
    assert_eq!(status(&world)["readyReplicas"], 3);
    assert_eq!(status(&world)["currentRevision"], status(&world)["updateRevision"]);
    world.log.clear();
    world.patch(Kind::StatefulSet, "db", json!({"spec": {"replicas": 1}}));
    world.run();
    assert_eq!(world.log, ["-db-2", "-db-1"]);
    assert_eq!(status(&world)["replicas"], 1);
}

#[test]
fn parallel_pods_are_made_at_once() {
    let mut world = set(json!({"replicas": 3, "podManagementPolicy": "Parallel"}));
    world.advance(1);
    assert_eq!(world.list(Kind::Pod).len(), 3);
    world.run();
    assert_eq!(status(&world)["availableReplicas"], 3);
}

#[test]
fn a_new_template_rolls_from_the_highest_pod_down() {
    let mut world = set(json!({"replicas": 3}));
    world.run();
    let first = status(&world)["currentRevision"].clone();
    world.log.clear();
    world.patch(Kind::StatefulSet, "db", image("2"));
    world.advance(1);
    assert_eq!(status(&world)["currentRevision"], first);
    assert_ne!(status(&world)["updateRevision"], first);
    world.run();
    assert_eq!(world.log, ["-db-2", "+db-2", "-db-1", "+db-1", "-db-0", "+db-0"]);
    assert_eq!(status(&world)["currentRevision"], status(&world)["updateRevision"]);
    assert_eq!(status(&world)["currentReplicas"], 3);
    assert_eq!(world.list(Kind::ControllerRevision).len(), 2);
}

#[test]
fn a_partition_holds_back_the_lower_pods_even_when_they_are_replaced() {
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    let mut world = set(json!({"replicas": 3, "updateStrategy": rolling}));
    world.run();
    world.patch(Kind::StatefulSet, "db", image("2"));
    world.run();
    world.delete(Kind::Pod, "db-0");
    world.run();
    let image_of = |name| world.get(Kind::Pod, name)["spec"]["containers"][0]["image"].clone();
    assert_eq!([image_of("db-0"), image_of("db-1"), image_of("db-2")], ["app:1", "app:1", "app:2"]);
    assert_eq!(status(&world)["updatedReplicas"], 1);
    assert_eq!(status(&world)["currentReplicas"], 2);
}

#[test]
fn pods_wait_for_nothing_under_on_delete() {
    let mut world = set(json!({"replicas": 2, "updateStrategy": {"type": "OnDelete"}}));
    world.run();
    world.log.clear();
    world.patch(Kind::StatefulSet, "db", image("2"));
    world.run();
    assert!(world.log.is_empty());
    world.delete(Kind::Pod, "db-1");
    world.run();
    assert_eq!(world.get(Kind::Pod, "db-1")["spec"]["containers"][0]["image"], "app:2");
}

#[test]
fn each_pod_has_its_own_bound_claim_which_outlives_it() {
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    let mut world = set(json!({"replicas": 2, "volumeClaimTemplates": [claim]}));
    world.run();
    let volume = &world.get(Kind::Pod, "db-1")["spec"]["volumes"][0];
    assert_eq!(volume["persistentVolumeClaim"]["claimName"], "data-db-1");
    for name in ["data-db-0", "data-db-1"] {
        let claim = world.get(Kind::PersistentVolumeClaim, name);
        assert_eq!(claim["status"]["phase"], "Bound");
        assert_eq!(claim["status"]["capacity"]["storage"], "1Gi");
    }
    assert!(world.list(Kind::PersistentVolume).iter().all(|volume| volume["status"]["phase"] == "Bound"));
    world.patch(Kind::StatefulSet, "db", json!({"spec": {"replicas": 0}}));
    world.run();
    assert_eq!(world.list(Kind::PersistentVolumeClaim).len(), 2);
}

#[test]
fn a_stuck_pod_holds_up_the_next_until_it_is_released() {
    let mut world = set(json!({"replicas": 2}));
    world.annotate(Kind::StatefulSet, "db", "stuck", Some("true"));
    world.run();
    assert_eq!(world.log, ["+db-0"]);
    world.annotate(Kind::StatefulSet, "db", "stuck", None);
    world.run();
    assert_eq!(status(&world)["readyReplicas"], 2);
}
