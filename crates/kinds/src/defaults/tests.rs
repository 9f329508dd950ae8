use serde_json::json;

use super::*;
use crate::lookup::{list_mut, remove};

/// Pairs of lines: an object as sent, and what a real API server (1.36) made of it on create, without what it assigns
/// (times, addresses, node ports) and what only its controllers could take away again (protection finalizers, taints).
const CASES: &str = include_str!("cases.txt");

fn created(mut object: Value) -> Value {
    let (group, version) = {
        let api_version = text(&object, "apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        (group.to_owned(), version.to_owned())
    };
    let kind = crate::find_kind(&group, &version, text(&object, "kind")).expect("served");
    kind.default(&mut object);
    set(&mut object["metadata"], "uid", "uid-1");
    kind.prepare_create(&mut object);
    remove(&mut object["metadata"], "uid");
    object
}

#[test]
fn new_objects_look_as_a_real_api_server_makes_them() {
    let mut lines = CASES.lines();
    let mut cases = 0;
    while let (Some(sent), Some(expected)) = (lines.next(), lines.next()) {
        let sent: Value = serde_json::from_str(sent).expect("JSON");
        let expected: Value = serde_json::from_str(expected).expect("JSON");
        let mut object = created(sent);
        if object["kind"] == "Service" {
            let spec = &mut object["spec"];
            if spec["clusterIP"] != "None" {
                remove(spec, "clusterIP");
                remove(spec, "clusterIPs");
            }
            list_mut(spec, "ports").for_each(|port| drop(remove(port, "nodePort")));
        }
        assert_eq!(difference("", &object, &expected), Vec::<String>::new(), "{}", expected["kind"]);
        cases += 1;
    }
    assert!(cases > 40);
}

fn difference(path: &str, ours: &Value, theirs: &Value) -> Vec<String> {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let names: std::collections::BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
            let get = |map: &serde_json::Map<String, Value>, name| map.get(name).cloned().unwrap_or_default();
            names
                .into_iter()
                .flat_map(|name| difference(&format!("{path}.{name}"), &get(ours, name), &get(theirs, name)))
                .collect()
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => ours
            .iter()
            .zip(theirs)
            .enumerate()
            .flat_map(|(place, (ours, theirs))| difference(&format!("{path}[{place}]"), ours, theirs))
            .collect(),
        _ if ours == theirs => Vec::new(),
        _ => vec![format!("{path}: ours {ours}, theirs {theirs}")],
    }
}

#[test]
fn defaults_are_stable() {
    for sent in CASES.lines().step_by(2) {
        let once = created(serde_json::from_str(sent).expect("JSON"));
        assert_eq!(created(once.clone()), once);
    }
}

#[test]
fn what_the_client_states_stays() {
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "replicas": 0, "revisionHistoryLimit": 0,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}},
        "template": {"spec": {"terminationGracePeriodSeconds": 0, "containers": [
            {"name": "a", "image": "a", "imagePullPolicy": "Never"}]}}}});
    let spec = created(deployment)["spec"].take();
    assert_eq!(spec["replicas"], 0);
    assert_eq!(spec["revisionHistoryLimit"], 0);
    assert_eq!(spec["strategy"]["rollingUpdate"], json!({"maxSurge": 0, "maxUnavailable": "25%"}));
    assert_eq!(spec["template"]["spec"]["terminationGracePeriodSeconds"], 0);
    assert_eq!(spec["template"]["spec"]["containers"][0]["imagePullPolicy"], "Never");
}

#[test]
fn node_ports_are_stable_and_apart() {
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "n"},
        "spec": {"type": "NodePort", "ports": [{"port": 80}, {"port": 81}, {"port": 82, "nodePort": 30123}]}});
    let first = created(service.clone());
    assert_eq!(first, created(service));
    let ports: std::collections::BTreeSet<i64> = first["spec"]["ports"]
        .as_array()
        .expect("ports")
        .iter()
        .map(|port| port["nodePort"].as_i64().expect("a node port"))
        .collect();
    assert_eq!(ports.len(), 3);
    assert!(ports.iter().all(|port| (30000..32768).contains(port)));
    assert!(ports.contains(&30123));
}
