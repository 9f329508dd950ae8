//! Deleting, with and without patience, and what happens to dependents.

use crate::{application, assert_has, session::Session};

#[test]
fn delete_by_name_file_and_selector() {
    let kubectl = Session::new("delete");
    let manifest = application("web", 0, "example/web:1");
    let path = kubectl.file("app.yaml", &manifest);
    kubectl.run(&["apply", "-f", &path]);
    let said = kubectl.run(&["delete", "-f", &path]);
    assert_has(
        &said,
        &["deployment.apps \"web\" deleted", "service \"web\" deleted", "configmap \"web\" deleted"],
    );
    assert_eq!(kubectl.run(&["get", "deployments,services,configmaps", "-l", "app=web", "-o", "name"]), "");
    for name in ["a", "b", "c"] {
        kubectl.run(&["create", "secret", "generic", name]);
    }
    kubectl.run(&["label", "secret", "a", "b", "old=yes"]);
    kubectl.run(&["delete", "secrets", "-l", "old=yes"]);
    assert_eq!(kubectl.run(&["get", "secrets", "-o", "name"]), "secret/c\n");
    kubectl.run(&["delete", "secrets", "--all"]);
    assert_eq!(kubectl.run(&["get", "secrets", "-o", "name"]), "");
    assert_has(&kubectl.fails(&["delete", "secret", "a"]), &["(NotFound)"]);
    assert_eq!(kubectl.run(&["delete", "secret", "a", "--ignore-not-found"]), "");
}

#[test]
fn delete_waits_for_finalizers() {
    let kubectl = Session::new("finalizer");
    let held = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: held\n  finalizers: [example.com/hold]\n";
    kubectl.run_with(&["apply", "-f", "-"], held);
    let deletion = kubectl.start(&["delete", "configmap", "held"]);
    deletion.line_with(&["configmap \"held\" deleted"]);
    let marked = "jsonpath={.metadata.deletionTimestamp}";
    kubectl.eventually("the object is marked", || {
        !kubectl.run(&["get", "configmap", "held", "-o", marked]).is_empty()
    });
    let complaint = kubectl.fails(&["wait", "configmap/held", "--for=delete", "--timeout=1s"]);
    assert_has(&complaint, &["timed out waiting for the condition on configmaps/held"]);
    kubectl.run(&["patch", "configmap", "held", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]);
    kubectl.run(&["wait", "configmap/held", "--for=delete", "--timeout=60s"]);
    assert_has(&kubectl.fails(&["get", "configmap", "held"]), &["(NotFound)"]);
}

#[test]
fn cascade_background_foreground_and_orphan() {
    let kubectl = Session::new("cascade");
    for policy in ["background", "foreground"] {
        family(&kubectl, policy);
        kubectl.run(&["delete", "configmap", &format!("{policy}-owner"), &format!("--cascade={policy}")]);
        kubectl.run(&["wait", &format!("configmap/{policy}-child"), "--for=delete", "--timeout=60s"]);
    }
    family(&kubectl, "orphan");
    kubectl.run(&["delete", "configmap", "orphan-owner", "--cascade=orphan"]);
    let owners = ["get", "configmap", "orphan-child", "-o", "jsonpath={.metadata.ownerReferences}"];
    kubectl.eventually("the child has no owner", || kubectl.run(&owners).is_empty());
}

#[test]
fn deleting_a_deployment_takes_its_replica_sets_along() {
    let kubectl = Session::new("workload");
    kubectl.run_with(&["apply", "-f", "-"], &application("web", 0, "example/web:1"));
    kubectl.run(&["rollout", "status", "deployment/web"]);
    let sets = ["get", "replicasets", "-l", "app=web", "-o", "name"];
    assert_eq!(kubectl.run(&sets).lines().count(), 1);
    kubectl.run(&["delete", "deployment", "web", "--cascade=foreground"]);
    assert_eq!(kubectl.run(&sets), "");
}

#[test]
fn deleting_a_namespace_empties_it() {
    let kubectl = Session::new("namespace");
    let name = format!("{}-inner", kubectl.namespace());
    kubectl.run(&["create", "namespace", &name]);
    kubectl.run(&["create", "configmap", "inside", "-n", &name]);
    kubectl.run(&["delete", "namespace", &name]);
    assert_has(&kubectl.fails(&["get", "namespace", &name]), &["(NotFound)"]);
    assert_has(&kubectl.fails(&["get", "configmap", "inside", "-n", &name]), &["(NotFound)"]);
}

/// A ConfigMap that owns another.
fn family(kubectl: &Session, prefix: &str) {
    let owner = format!("{prefix}-owner");
    kubectl.run(&["create", "configmap", &owner]);
    let uid = kubectl.run(&["get", "configmap", &owner, "-o", "jsonpath={.metadata.uid}"]);
    let child = format!(
        "apiVersion: v1
kind: ConfigMap
metadata:
  name: {prefix}-child
  ownerReferences:
  - {{apiVersion: v1, kind: ConfigMap, name: {owner}, uid: {uid}, blockOwnerDeletion: true}}
"
    );
    kubectl.run_with(&["create", "-f", "-"], &child);
}
