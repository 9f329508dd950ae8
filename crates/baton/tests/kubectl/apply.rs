//! apply on both sides, diff, and dry runs.

use crate::{application, assert_has, session::Session};

#[test]
fn apply_on_the_client_creates_configures_and_prunes() {
    let kubectl = Session::new("apply");
    let first = application("web", 0, "example/web:1");
    let said = kubectl.run_with(&["apply", "-f", "-"], &first);
    assert_has(&said, &["deployment.apps/web created", "service/web created", "configmap/web created"]);
    let said = kubectl.run_with(&["apply", "-f", "-"], &first);
    assert_has(&said, &["deployment.apps/web unchanged", "service/web unchanged", "configmap/web unchanged"]);
    let second = application("web", 0, "example/web:2").replace("  greeting: hello", "  farewell: bye");
    let said = kubectl.run_with(&["apply", "-f", "-"], &second);
    assert_has(
        &said,
        &["deployment.apps/web configured", "service/web unchanged", "configmap/web configured"],
    );
    let image = "jsonpath={.spec.template.spec.containers[0].image}";
    assert_eq!(kubectl.run(&["get", "deployment", "web", "-o", image]), "example/web:2");
    assert_eq!(kubectl.run(&["get", "configmap", "web", "-o", "jsonpath={.data}"]), r#"{"farewell":"bye"}"#);
    let last = kubectl.run(&["apply", "view-last-applied", "configmap/web", "-o", "json"]);
    assert_has(&last, &["\"farewell\": \"bye\""]);
}

#[test]
fn apply_on_the_client_keeps_what_others_set() {
    let kubectl = Session::new("apply-keeps");
    kubectl.run_with(&["apply", "-f", "-"], &application("web", 0, "example/web:1"));
    kubectl.run(&["set", "env", "deployment/web", "ADDED=yes"]);
    kubectl.run(&["label", "deployment/web", "team=blue"]);
    kubectl.run_with(&["apply", "-f", "-"], &application("web", 0, "example/web:2"));
    let kept = "jsonpath={.metadata.labels.team} {.spec.template.spec.containers[0].env[0].name}";
    assert_eq!(kubectl.run(&["get", "deployment", "web", "-o", kept]), "blue ADDED");
}

#[test]
fn apply_on_the_server_owns_fields_and_conflicts() {
    let kubectl = Session::new("apply-server");
    let one = application("web", 0, "example/web:1");
    let said = kubectl.run_with(&["apply", "--server-side", "-f", "-"], &one);
    assert_has(&said, &["deployment.apps/web serverside-applied", "configmap/web serverside-applied"]);
    let two = application("web", 0, "example/web:2");
    let other = ["apply", "--server-side", "--field-manager=other", "-f", "-"];
    let complaint = kubectl.fails_with(&other, &two);
    assert_has(
        &complaint,
        &[
            "conflict with \"kubectl\"",
            ".spec.template.spec.containers[name=\"main\"].image",
            "--force-conflicts",
        ],
    );
    let force = ["apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-"];
    kubectl.run_with(&force, &two);
    let managers = "jsonpath={.metadata.managedFields[?(@.operation==\"Apply\")].manager}";
    let shown = kubectl.run(&["get", "deployment", "web", "--show-managed-fields", "-o", managers]);
    assert_has(&shown, &["kubectl", "other"]);
}

#[test]
fn apply_moves_from_the_client_to_the_server() {
    let kubectl = Session::new("apply-move");
    kubectl.run_with(&["apply", "-f", "-"], &application("web", 0, "example/web:1"));
    kubectl.run_with(&["apply", "--server-side", "-f", "-"], &application("web", 0, "example/web:2"));
    let image = "jsonpath={.spec.template.spec.containers[0].image}";
    assert_eq!(kubectl.run(&["get", "deployment", "web", "-o", image]), "example/web:2");
}

#[test]
fn diff_shows_what_apply_would_change() {
    let kubectl = Session::new("diff");
    let first = application("web", 0, "example/web:1");
    let outcome = kubectl.attempt_with(&["diff", "-f", "-"], &first);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    assert_has(&outcome.stdout, &["+kind: Deployment", "+  greeting: hello"]);
    kubectl.run_with(&["apply", "-f", "-"], &first);
    assert_eq!(kubectl.attempt_with(&["diff", "-f", "-"], &first).code, 0);
    let second = application("web", 0, "example/web:2");
    let outcome = kubectl.attempt_with(&["diff", "-f", "-"], &second);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    assert_has(&outcome.stdout, &["image: example/web:1", "image: example/web:2"]);
    assert_eq!(
        kubectl.attempt_with(&["diff", "--server-side", "--force-conflicts", "-f", "-"], &second).code,
        1
    );
    let image = "jsonpath={.spec.template.spec.containers[0].image}";
    assert_eq!(
        kubectl.run(&["get", "deployment", "web", "-o", image]),
        "example/web:1",
        "a diff stores nothing"
    );
}

#[test]
fn a_dry_run_on_the_server_stores_nothing() {
    let kubectl = Session::new("dry");
    let manifest = application("web", 0, "example/web:1");
    let said = kubectl.run_with(&["apply", "--dry-run=server", "-f", "-"], &manifest);
    assert_has(&said, &["deployment.apps/web created (server dry run)"]);
    let said = kubectl.run_with(&["apply", "--server-side", "--dry-run=server", "-f", "-"], &manifest);
    assert_has(&said, &["deployment.apps/web serverside-applied (server dry run)"]);
    kubectl.run(&["create", "configmap", "dry", "--from-literal=a=b", "--dry-run=server"]);
    assert_eq!(kubectl.run(&["get", "deployments,services,configmaps", "-o", "name", "-l", "app=web"]), "");
    kubectl.run_with(&["apply", "-f", "-"], &manifest);
    kubectl.run(&["delete", "configmap", "web", "--dry-run=server"]);
    kubectl.run(&["label", "configmap", "web", "dry=yes", "--dry-run=server"]);
    kubectl.run(&["scale", "deployment", "web", "--replicas=3", "--dry-run=server"]);
    assert_eq!(
        kubectl.run(&["get", "configmap", "web", "-o", "jsonpath={.metadata.labels}"]),
        r#"{"app":"web"}"#
    );
    assert_eq!(kubectl.run(&["get", "deployment", "web", "-o", "jsonpath={.spec.replicas}"]), "0");
}

#[test]
fn a_misspelt_field_is_refused_by_name() {
    let kubectl = Session::new("strict");
    let manifest = application("web", 0, "example/web:1").replace("image:", "imagee:");
    let complaint = kubectl.fails_with(&["apply", "-f", "-"], &manifest);
    assert_has(
        &complaint,
        &["strict decoding error", "unknown field \"spec.template.spec.containers[0].imagee\""],
    );
}
