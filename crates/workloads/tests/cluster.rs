//! Everything around the workloads: volumes, load balancers, budgets, namespaces, nodes.

mod world;

use baton_workloads::Kind;
use serde_json::{Value, json};
use world::{World, condition, workload};

fn object(kind: Kind, spec: Value) -> Value {
    let namespace = if kind.namespaced() { json!("default") } else { Value::Null };
    let mut object = json!({"apiVersion": kind.api_version(), "kind": kind.kind(),
        "metadata": {"name": "it"}, "spec": spec});
    if namespace.is_string() {
        object["metadata"]["namespace"] = namespace;
    }
    object
}

fn claim() -> Value {
    object(
        Kind::PersistentVolumeClaim,
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}}),
    )
}

#[test]
fn a_claim_is_bound_to_a_volume_that_goes_with_it() {
    let mut world = World::new();
    world.create(claim());
    world.advance(1);
    assert_eq!(world.get(Kind::PersistentVolumeClaim, "it")["status"]["phase"], "Pending");
    world.run();
    let bound = world.get(Kind::PersistentVolumeClaim, "it");
    assert_eq!(bound["status"]["phase"], "Bound");
    let volume = world.list(Kind::PersistentVolume)[0];
    assert_eq!(bound["spec"]["volumeName"], volume["metadata"]["name"]);
    assert_eq!(volume["spec"]["capacity"]["storage"], "5Gi");
    assert_eq!(volume["status"]["phase"], "Bound");
    world.delete(Kind::PersistentVolumeClaim, "it");
    world.run();
    assert!(world.list(Kind::PersistentVolume).is_empty());
}

#[test]
fn a_retained_volume_is_released() {
    let mut world = World::new();
    world.create(claim());
    world.run();
    let name = world.list(Kind::PersistentVolume)[0]["metadata"]["name"].as_str().expect("named").to_owned();
    let retain = json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}});
    world.patch(Kind::PersistentVolume, &name, retain);
    world.delete(Kind::PersistentVolumeClaim, "it");
    world.run();
    assert_eq!(world.get(Kind::PersistentVolume, &name)["status"]["phase"], "Released");
}

#[test]
fn a_claim_can_be_stuck_or_lost() {
    let mut world = World::new();
    world.create(claim());
    world.annotate(Kind::PersistentVolumeClaim, "it", "stuck", Some("true"));
    world.run();
    assert_eq!(world.get(Kind::PersistentVolumeClaim, "it")["status"]["phase"], "Pending");
    world.annotate(Kind::PersistentVolumeClaim, "it", "fail", Some("true"));
    world.run();
    assert_eq!(world.get(Kind::PersistentVolumeClaim, "it")["status"]["phase"], "Lost");
}

#[test]
fn load_balancers_get_an_address_after_the_delay_unless_stuck() {
    for (kind, spec) in [(Kind::Service, json!({"type": "LoadBalancer"})), (Kind::Ingress, json!({}))] {
        let mut world = World::new();
        world.create(object(kind, spec));
        world.annotate(kind, "it", "stuck", Some("true"));
        world.run();
        assert!(world.get(kind, "it")["status"].is_null());
        world.advance(10);
        world.annotate(kind, "it", "stuck", None);
        world.run();
        assert!(world.get(kind, "it")["status"]["loadBalancer"]["ingress"][0]["ip"].is_string());
    }
}

#[test]
fn a_service_that_stops_being_a_load_balancer_loses_its_address() {
    let mut world = World::new();
    world.create(object(Kind::Service, json!({"type": "ClusterIP"})));
    world.run();
    assert!(world.get(Kind::Service, "it")["status"].is_null());
    world.patch(Kind::Service, "it", json!({"spec": {"type": "LoadBalancer"}}));
    world.run();
    world.patch(Kind::Service, "it", json!({"spec": {"type": "NodePort"}}));
    world.run();
    assert_eq!(world.get(Kind::Service, "it")["status"]["loadBalancer"], json!({}));
}

#[test]
fn a_budget_follows_the_pods() {
    let mut world = World::with_nodes(1);
    let selector = json!({"matchLabels": {"app": "web"}});
    world.create(object(Kind::PodDisruptionBudget, json!({"minAvailable": "50%", "selector": selector})));
    world.create(workload(Kind::Deployment, "web", json!({"replicas": 3})));
    world.create(workload(Kind::Deployment, "other", json!({"replicas": 2})));
    world.run();
    let status = world.get(Kind::PodDisruptionBudget, "it")["status"].clone();
    assert_eq!(status["expectedPods"], 3);
    assert_eq!(status["desiredHealthy"], 2);
    assert_eq!(status["disruptionsAllowed"], 1);
    world.annotate(Kind::Deployment, "web", "fail", Some("NotReady"));
    world.run();
    let budget = world.get(Kind::PodDisruptionBudget, "it");
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert_eq!(condition(budget, "DisruptionAllowed")["reason"], "InsufficientPods");
}

#[test]
fn a_namespace_comes_with_its_account_and_certificate_and_gets_them_back() {
    let mut world = World::new();
    world.settings.root_ca = "PEM".to_owned();
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}});
    world.create(space);
    world.run();
    assert_eq!(world.get(Kind::ConfigMap, "kube-root-ca.crt")["data"]["ca.crt"], "PEM");
    world.patch(Kind::ConfigMap, "kube-root-ca.crt", json!({"data": {"ca.crt": "forged"}}));
    world.delete(Kind::ServiceAccount, "default");
    world.run();
    assert_eq!(world.get(Kind::ConfigMap, "kube-root-ca.crt")["data"]["ca.crt"], "PEM");
    assert!(world.get(Kind::ServiceAccount, "default").is_object());
}

#[test]
fn a_node_registers_and_can_fail() {
    let mut world = World::with_nodes(1);
    let node = world.get(Kind::Node, "node-0");
    assert_eq!(condition(node, "Ready")["status"], "True");
    assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], "node-0");
    assert!(node["status"]["nodeInfo"]["kubeletVersion"].is_string());
    world.annotate(Kind::Node, "node-0", "fail", Some("KubeletDown"));
    world.run();
    assert_eq!(condition(world.get(Kind::Node, "node-0"), "Ready")["reason"], "KubeletDown");
}
