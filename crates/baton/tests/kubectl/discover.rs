//! What the server offers: kinds, their documentation, permissions, and custom kinds of Baton's own.

use crate::{assert_has, cells, session::Session};
use std::process::Command;

#[test]
fn api_resources_and_versions_are_listed() {
    let kubectl = Session::new("discover");
    let table = kubectl.run(&["api-resources"]);
    assert_eq!(cells(&table)[0], ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]);
    let rows = cells(&table);
    for row in [
        ["configmaps", "cm", "v1", "true", "ConfigMap"],
        ["deployments", "deploy", "apps/v1", "true", "Deployment"],
        ["namespaces", "ns", "v1", "false", "Namespace"],
        [
            "customresourcedefinitions",
            "crd,crds",
            "apiextensions.k8s.io/v1",
            "false",
            "CustomResourceDefinition",
        ],
    ] {
        assert!(rows.iter().any(|found| found[..] == row), "{row:?} is not in\n{table}");
    }
    let wide = kubectl.run(&["api-resources", "--api-group=apps", "-o", "wide"]);
    assert_has(&wide, &["VERBS", "create,delete,deletecollection,get,list,patch,update,watch", "all"]);
    let versions = kubectl.run(&["api-versions"]);
    assert_has(
        &versions,
        &["apps/v1\n", "batch/v1\n", "v1\n", "rbac.authorization.k8s.io/v1\n", "policy/v1\n"],
    );
    assert_has(&kubectl.run(&["version"]), &["Server Version: v1."]);
    assert_has(&kubectl.run(&["cluster-info"]), &["is running at"]);
}

#[test]
fn permissions_can_be_asked_for() {
    let kubectl = Session::new("auth");
    assert_eq!(kubectl.run(&["auth", "can-i", "create", "pods"]), "yes\n");
    assert_eq!(kubectl.run(&["auth", "can-i", "*", "*", "--all-namespaces"]), "yes\n");
    assert_has(&kubectl.run(&["auth", "can-i", "--list"]), &["Resources", "Verbs"]);
    assert_has(&kubectl.run(&["auth", "whoami"]), &["Username", "Groups", "system:authenticated"]);
}

#[test]
fn explain_documents_built_in_kinds() {
    let kubectl = Session::new("explain");
    assert_has(
        &kubectl.run(&["explain", "deployment"]),
        &["GROUP:      apps", "KIND:       Deployment", "spec"],
    );
    let text = kubectl.run(&["explain", "pod.spec.containers"]);
    assert_has(&text, &["FIELD: containers <[]Container>", "image\t<string>"]);
    assert_has(&kubectl.run(&["explain", "configmap", "--recursive"]), &["binaryData", "immutable"]);
    assert_has(&kubectl.fails(&["explain", "pod.spec.nonsense"]), &["field \"nonsense\" does not exist"]);
}

#[test]
fn a_custom_kind_is_used_like_a_built_in_one() {
    let kubectl = Session::new("custom");
    let group = format!("g{}.kubectl.example", std::process::id());
    let crd = format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gizmos.{group}
spec:
  group: {group}
  scope: Namespaced
  names: {{plural: gizmos, singular: gizmo, kind: Gizmo, shortNames: [gz]}}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {{status: {{}}, scale: {{specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}}}
    additionalPrinterColumns:
    - {{name: Size, type: integer, jsonPath: .spec.size}}
    - {{name: Note, type: string, jsonPath: .spec.note, priority: 1}}
    schema:
      openAPIV3Schema:
        description: Gizmo is a thing with a size.
        type: object
        properties:
          spec:
            type: object
            description: What it should be.
            required: [size]
            properties:
              size: {{type: integer, minimum: 1, description: How large it is.}}
              note: {{type: string}}
              replicas: {{type: integer}}
          status:
            type: object
            properties:
              replicas: {{type: integer}}
"
    );
    let object = |size: u32| {
        format!(
            "apiVersion: {group}/v1\nkind: Gizmo\nmetadata:\n  name: one\nspec:\n  size: {size}\n  note: blue\n"
        )
    };
    kubectl.run_with(&["apply", "-f", "-"], &crd);
    let crd_name = format!("crd/gizmos.{group}");
    kubectl.run(&["wait", &crd_name, "--for=condition=Established", "--timeout=60s"]);
    kubectl.eventually("the kind is served", || {
        kubectl.attempt_with(&["apply", "-f", "-"], &object(1)).code == 0
    });
    assert_has(&kubectl.run_with(&["apply", "-f", "-"], &object(2)), &["gizmo.", "one configured"]);
    let complaint = kubectl.fails_with(&["apply", "-f", "-"], &object(0));
    assert_has(&complaint, &["spec.size: Invalid value: 0", "should be greater than or equal to 1"]);
    let table = kubectl.run(&["get", "gz"]);
    assert_eq!(cells(&table), [["NAME", "SIZE"], ["one", "2"]]);
    let table = kubectl.run(&["get", "gizmos", "-o", "wide"]);
    assert_eq!(cells(&table), [["NAME", "SIZE", "NOTE"], ["one", "2", "blue"]]);
    kubectl.eventually("the kind is documented", || kubectl.attempt(&["explain", "gizmo"]).code == 0);
    assert_has(&kubectl.run(&["explain", "gizmo"]), &["Gizmo is a thing with a size.", "What it should be."]);
    assert_has(&kubectl.run(&["explain", "gizmo.spec.size"]), &["FIELD: size <integer>", "How large it is."]);
    assert_has(&kubectl.run(&["describe", "gizmo", "one"]), &["Kind:         Gizmo", "Size:", "Note:"]);
    kubectl.run(&["scale", "gizmo", "one", "--replicas=4"]);
    assert_eq!(kubectl.run(&["get", "gizmo", "one", "-o", "jsonpath={.spec.replicas}"]), "4");
    kubectl.run(&["patch", "gizmo", "one", "--type=merge", "-p", r#"{"spec":{"note":"red"}}"#]);
    kubectl.run_with(&["apply", "--server-side", "--force-conflicts", "-f", "-"], &object(3));
    kubectl.run(&["delete", &crd_name]);
    kubectl.eventually("the kind is gone", || kubectl.attempt(&["get", "gizmos"]).code != 0);
}

#[test]
fn explain_documents_the_kinds_baton_installs() {
    let kubectl = Session::new("crds");
    let printed =
        Command::new(env!("CARGO_BIN_EXE_baton")).arg("crds").output().expect("the binary under test runs");
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let crds = String::from_utf8(printed.stdout).expect("YAML is UTF-8");
    let before = kubectl.run(&["get", "crds", "-o", "name"]);
    assert_has(
        &kubectl.run_with(&["apply", "--server-side", "--force-conflicts", "-f", "-"], &crds),
        &["applications.argoproj.io", "applicationsets.argoproj.io", "appprojects.argoproj.io"],
    );
    let ours =
        ["crd/applications.argoproj.io", "crd/applicationsets.argoproj.io", "crd/appprojects.argoproj.io"];
    for crd in ours {
        kubectl.run(&["wait", crd, "--for=condition=Established", "--timeout=60s"]);
    }
    kubectl.eventually("the kinds are documented", || {
        ["application", "applicationset", "appproject"]
            .iter()
            .all(|kind| kubectl.attempt(&["explain", kind]).code == 0)
    });
    let text = kubectl.run(&["explain", "application.spec.source"]);
    assert_has(&text, &["GROUP:      argoproj.io", "KIND:       Application", "repoURL", "targetRevision"]);
    let text = kubectl.run(&["explain", "applicationset.spec.strategy"]);
    assert_has(&text, &["rollingSync", "deletionOrder"]);
    assert_has(&kubectl.run(&["explain", "appproject.spec"]), &["destinations", "sourceRepos"]);
    assert_has(&kubectl.run(&["get", "applications,applicationsets,appprojects", "-A"]), &[]);
    for crd in ours {
        // A cluster that had the kind before keeps it.
        if !before.contains(crd.trim_start_matches("crd/")) {
            kubectl.run(&["delete", crd, "--wait=false"]);
        }
    }
}
