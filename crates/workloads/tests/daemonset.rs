//! DaemonSets: one pod per node.

mod world;

use baton_workloads::Kind;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use world::{World, image, is_leaving, is_ready, workload};

fn status(world: &World) -> &Value {
    &world.get(Kind::DaemonSet, "agent")["status"]
}

#[test]
fn every_node_gets_a_pod_and_so_does_a_node_that_joins() {
    let mut world = World::with_nodes(2);
    world.create(workload(Kind::DaemonSet, "agent", json!({})));
    world.run();
    world.create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late"}}));
    world.run();
    let nodes: BTreeSet<_> =
        world.list(Kind::Pod).iter().map(|pod| pod["spec"]["nodeName"].to_string()).collect();
    assert_eq!(nodes.len(), 3);
    assert_eq!(status(&world)["desiredNumberScheduled"], 3);
    assert_eq!(status(&world)["numberAvailable"], 3);
    world.delete(Kind::Node, "late");
    world.run();
    assert_eq!(world.list(Kind::Pod).len(), 2);
    assert_eq!(status(&world)["desiredNumberScheduled"], 2);
}

#[test]
fn selectors_and_taints_keep_pods_away() {
    let mut world = World::with_nodes(3);
    world.patch(Kind::Node, "node-0", json!({"metadata": {"labels": {"disk": "ssd"}}}));
    world.patch(
        Kind::Node,
        "node-1",
        json!({"metadata": {"labels": {"disk": "ssd"}},
        "spec": {"taints": [{"key": "own", "value": "db", "effect": "NoSchedule"}]}}),
    );
    let selector =
        json!({"template": {"spec": {"nodeSelector": {"disk": "ssd", "kubernetes.io/os": "linux"}}}});
    world.create(workload(Kind::DaemonSet, "agent", selector));
    world.run();
    let pods = world.list(Kind::Pod);
    assert_eq!(pods.len(), 1);
    assert_eq!(pods[0]["spec"]["nodeName"], "node-0");
    let tolerations = json!([{"key": "own", "operator": "Equal", "value": "db", "effect": "NoSchedule"}]);
    world.patch(
        Kind::DaemonSet,
        "agent",
        json!({"spec": {"template": {"spec": {"tolerations": tolerations}}}}),
    );
    world.run();
    assert_eq!(world.list(Kind::Pod).len(), 2);
}

fn within_bounds(world: &World) {
    let rolling = &world.get(Kind::DaemonSet, "agent")["spec"]["updateStrategy"]["rollingUpdate"];
    let limit = |key: &str| usize::try_from(rolling[key].as_u64().unwrap_or(0)).expect("small");
    let pods: Vec<_> = world.list(Kind::Pod).into_iter().filter(|pod| !is_leaving(pod)).collect();
    let served: BTreeSet<_> =
        pods.iter().filter(|pod| is_ready(pod)).map(|pod| pod["spec"]["nodeName"].to_string()).collect();
    let down = 4 - served.len();
    assert!(down <= limit("maxUnavailable"), "{down} nodes without a ready pod");
    assert!(pods.len() <= 4 + limit("maxSurge"), "{} pods", pods.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn an_update_stays_within_its_bounds_at_every_moment(
        (surge, unavailable) in prop_oneof![(Just(0), 1usize..4), (1usize..4, Just(0))],
        order in any::<u64>(),
    ) {
        let mut world = World::with_nodes(4);
        world.order = order;
        let rolling = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        let strategy = json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}});
        world.create(workload(Kind::DaemonSet, "agent", strategy));
        world.run();
        world.check = Some(within_bounds);
        world.patch(Kind::DaemonSet, "agent", image("2"));
        world.run();
        prop_assert_eq!(&status(&world)["updatedNumberScheduled"], 4);
        prop_assert_eq!(&status(&world)["numberAvailable"], 4);
        prop_assert_eq!(world.list(Kind::Pod).len(), 4);
    }
}
