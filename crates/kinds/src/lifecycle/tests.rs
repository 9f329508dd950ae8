use serde_json::json;

use super::*;
use crate::find;

fn created(group: &str, version: &str, plural: &str, mut object: Value) -> Value {
    find(group, version, plural).expect("listed").prepare_create(&mut object);
    object
}

#[test]
fn a_new_object_starts_with_its_kinds_first_status() {
    let sent =
        || json!({"metadata": {"name": "x", "generation": 7}, "status": {"replicas": 3, "phase": "Sent"}});
    for (group, version, plural, status) in [
        ("", "v1", "pods", json!({"phase": "Pending", "qosClass": "BestEffort"})),
        ("", "v1", "namespaces", json!({"phase": "Active"})),
        ("", "v1", "persistentvolumeclaims", json!({"phase": "Pending"})),
        ("", "v1", "services", json!({"loadBalancer": {}})),
        ("apps", "v1", "deployments", json!({})),
        ("apps", "v1", "replicasets", json!({"replicas": 0})),
        ("apps", "v1", "statefulsets", json!({"availableReplicas": 0, "replicas": 0})),
        ("batch", "v1", "jobs", json!({})),
        ("", "v1", "resourcequotas", json!({})),
        // A node registers with the status it has.
        ("", "v1", "nodes", json!({"replicas": 3, "phase": "Sent"})),
    ] {
        assert_eq!(created(group, version, plural, sent())["status"], status, "{plural}");
    }
}

#[test]
fn generation_starts_at_one_where_it_is_counted_and_is_absent_elsewhere() {
    let sent = json!({"metadata": {"generation": 7}});
    assert_eq!(created("apps", "v1", "deployments", sent.clone())["metadata"]["generation"], 1);
    assert_eq!(created("", "v1", "configmaps", sent)["metadata"].get("generation"), None);
}

#[test]
fn being_put_on_a_node_does_not_count_as_a_change_of_a_pod() {
    let old = created("", "v1", "pods", json!({"spec": {"containers": [{"name": "a", "image": "x"}]}}));
    let mut bound = old.clone();
    bound["spec"]["nodeName"] = "n1".into();
    let mut changed = old.clone();
    changed["spec"]["containers"][0]["image"] = "y".into();
    for (mut object, generation) in [(bound, 1), (changed, 2)] {
        find("", "v1", "pods").expect("listed").prepare_update(&mut object, &old);
        assert_eq!(object["metadata"]["generation"], generation);
    }
}

#[test]
fn a_namespace_gets_its_finalizer_once() {
    let expected = json!(["kubernetes"]);
    assert_eq!(created("", "v1", "namespaces", json!({}))["spec"]["finalizers"], expected);
    let sent = json!({"spec": {"finalizers": ["kubernetes"]}});
    assert_eq!(created("", "v1", "namespaces", sent)["spec"]["finalizers"], expected);
    let other = created("", "v1", "namespaces", json!({"spec": {"finalizers": ["a"]}}));
    assert_eq!(other["spec"]["finalizers"], json!(["a", "kubernetes"]));
}

#[test]
fn an_update_keeps_status_and_counts_only_what_matters() {
    let deployments = find("apps", "v1", "deployments").expect("listed");
    let old = json!({"metadata": {"generation": 4, "labels": {"a": "1"}}, "spec": {"replicas": 1},
        "status": {"replicas": 1}});
    let update = |mut object: Value| {
        deployments.prepare_update(&mut object, &old);
        object
    };
    let same = update(json!({"metadata": {"generation": 99, "labels": {"a": "2"}, "annotations": {}},
        "spec": {"replicas": 1}, "status": {"replicas": 9}}));
    assert_eq!(same["metadata"]["generation"], 4);
    assert_eq!(same["status"], json!({"replicas": 1}));
    let scaled = update(json!({"metadata": {}, "spec": {"replicas": 2}}));
    assert_eq!(scaled["metadata"]["generation"], 5);
    // Annotations of a Deployment reach its ReplicaSets, so they count.
    let annotated = update(json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"replicas": 1}}));
    assert_eq!(annotated["metadata"]["generation"], 5);
}

#[test]
fn a_daemon_sets_template_generation_follows_its_template() {
    let daemons = find("apps", "v1", "daemonsets").expect("listed");
    let mut old = json!({"metadata": {"name": "d"}, "spec": {"template": {"spec": {"nodeName": "a"}}}});
    daemons.prepare_create(&mut old);
    let annotation = |object: &Value| object["metadata"]["annotations"][TEMPLATE_GENERATION].clone();
    assert_eq!(annotation(&old), "1");
    let mut object = json!({"metadata": {"name": "d"}, "spec": {"template": {"spec": {"nodeName": "b"}}}});
    daemons.prepare_update(&mut object, &old);
    assert_eq!(annotation(&object), "2");
    assert_eq!(object["metadata"]["generation"], 2);
}

#[test]
fn a_status_update_changes_status_and_loose_metadata_only() {
    let pods = find("", "v1", "pods").expect("listed");
    let old = json!({"metadata": {"name": "p", "uid": "u", "generation": 1, "ownerReferences": [{"uid": "o"}]},
        "spec": {"nodeName": "n"}, "status": {"phase": "Pending", "qosClass": "Burstable"}});
    let mut object = json!({"metadata": {"name": "p", "annotations": {"a": "b"}, "generation": 8},
        "spec": {"nodeName": "elsewhere"}, "extra": true, "status": {"phase": "Running"}});
    pods.prepare_status(&mut object, &old);
    assert_eq!(
        object,
        json!({"metadata": {"name": "p", "annotations": {"a": "b"}, "generation": 1, "ownerReferences": [{"uid": "o"}]},
            "spec": {"nodeName": "n"}, "status": {"phase": "Running", "qosClass": "Burstable"}})
    );
}

#[test]
fn a_service_keeps_its_address_when_an_update_leaves_it_out() {
    let services = find("", "v1", "services").expect("listed");
    let old = json!({"metadata": {}, "spec": {"clusterIP": "None", "clusterIPs": ["None"]}});
    let mut object = json!({"metadata": {}, "spec": {"type": "ClusterIP"}});
    services.prepare_update(&mut object, &old);
    assert_eq!(object["spec"]["clusterIP"], "None");
    assert_eq!(object["spec"]["clusterIPs"], json!(["None"]));
    let mut external = json!({"metadata": {}, "spec": {"type": "ExternalName"}});
    services.prepare_update(&mut external, &old);
    assert_eq!(external["spec"].get("clusterIP"), None);
}

#[test]
fn a_job_selects_its_pods_by_uid() {
    let sent = json!({"metadata": {"name": "j", "uid": "u"}, "spec": {"template": {"metadata": {"labels": {"a": "b"}}}}});
    let job = created("batch", "v1", "jobs", sent.clone());
    assert_eq!(job["spec"]["selector"], json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}));
    let labels = &job["spec"]["template"]["metadata"]["labels"];
    assert_eq!(labels["batch.kubernetes.io/controller-uid"], "u");
    assert_eq!(labels["job-name"], "j");
    assert_eq!(labels["a"], "b");
    let mut manual = sent;
    manual["spec"]["manualSelector"] = true.into();
    assert_eq!(created("batch", "v1", "jobs", manual)["spec"].get("selector"), None);
}
