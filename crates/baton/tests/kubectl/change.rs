//! Changing what is there: patches, edit, labels, scale, rollouts, and waiting for the effect.

use crate::{application, assert_has, session::Session};

#[test]
fn patch_of_every_type() {
    let kubectl = Session::new("patch");
    kubectl.run_with(&["apply", "-f", "-"], &application("web", 0, "example/web:1"));
    let strategic =
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"example/side:1"}]}}}}"#;
    kubectl.run(&["patch", "deployment", "web", "-p", strategic]);
    let names = "jsonpath={.spec.template.spec.containers[*].name}";
    let found = kubectl.run(&["get", "deployment", "web", "-o", names]);
    assert_has(&found, &["main", "side"]);
    let merge = r#"{"data":{"greeting":null,"other":"x"}}"#;
    kubectl.run(&["patch", "configmap", "web", "--type=merge", "-p", merge]);
    assert_eq!(kubectl.run(&["get", "configmap", "web", "-o", "jsonpath={.data}"]), r#"{"other":"x"}"#);
    let json =
        r#"[{"op":"replace","path":"/data/other","value":"y"},{"op":"add","path":"/data/more","value":"z"}]"#;
    kubectl.run(&["patch", "configmap", "web", "--type=json", "-p", json]);
    assert_eq!(
        kubectl.run(&["get", "configmap", "web", "-o", "jsonpath={.data}"]),
        r#"{"more":"z","other":"y"}"#
    );
    let said = kubectl.run(&[
        "patch",
        "configmap",
        "web",
        "--type=json",
        "-p",
        r#"[{"op":"test","path":"/data/more","value":"z"}]"#,
    ]);
    assert_has(&said, &["configmap/web patched (no change)"]);
    let status = r#"{"status":{"conditions":[{"type":"Seen","status":"True"}]}}"#;
    kubectl.run(&["patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", status]);
}

#[test]
fn edit_sends_what_the_editor_leaves() {
    let kubectl = Session::new("edit");
    kubectl.run_with(&["apply", "-f", "-"], &application("web", 0, "example/web:1"));
    kubectl.editor("sed -i 's/greeting: hello/greeting: edited/' \"$1\"");
    assert_has(&kubectl.run(&["edit", "configmap", "web"]), &["configmap/web edited"]);
    assert_eq!(kubectl.run(&["get", "configmap", "web", "-o", "jsonpath={.data.greeting}"]), "edited");
    kubectl.editor("sed -i 's#example/web:1#example/web:9#' \"$1\"");
    assert_has(&kubectl.run(&["edit", "deployment", "web"]), &["deployment.apps/web edited"]);
    let image = "jsonpath={.spec.template.spec.containers[0].image}";
    assert_eq!(kubectl.run(&["get", "deployment", "web", "-o", image]), "example/web:9");
}

#[test]
fn replace_needs_the_current_version() {
    let kubectl = Session::new("replace");
    kubectl.run(&["create", "configmap", "settings", "--from-literal=a=1"]);
    let old = kubectl.run(&["get", "configmap", "settings", "-o", "yaml"]);
    let new = old.replace("a: \"1\"", "a: \"2\"");
    assert_has(&kubectl.run_with(&["replace", "-f", "-"], &new), &["configmap/settings replaced"]);
    let complaint = kubectl.fails_with(&["replace", "-f", "-"], &old.replace("a: \"1\"", "a: \"3\""));
    assert_has(&complaint, &["(Conflict)", "the object has been modified"]);
    let said = kubectl.run_with(&["replace", "--force", "-f", "-"], &new);
    assert_has(&said, &["configmap \"settings\" deleted", "configmap/settings replaced"]);
}

#[test]
fn label_and_annotate_set_overwrite_and_remove() {
    let kubectl = Session::new("label");
    kubectl.run(&["create", "configmap", "settings"]);
    assert_has(
        &kubectl.run(&["label", "configmap", "settings", "tier=web"]),
        &["configmap/settings labeled"],
    );
    let complaint = kubectl.fails(&["label", "configmap", "settings", "tier=db"]);
    assert_has(&complaint, &["--overwrite is false"]);
    kubectl.run(&["label", "configmap", "settings", "tier=db", "--overwrite"]);
    assert_eq!(
        kubectl.run(&["get", "configmap", "settings", "-o", "jsonpath={.metadata.labels}"]),
        r#"{"tier":"db"}"#
    );
    assert_has(&kubectl.run(&["label", "configmap", "settings", "tier-"]), &["unlabeled"]);
    kubectl.run(&["annotate", "configmap", "settings", "example.com/note=here"]);
    let note = "jsonpath={.metadata.annotations.example\\.com/note}";
    assert_eq!(kubectl.run(&["get", "configmap", "settings", "-o", note]), "here");
    kubectl.run(&["annotate", "configmap", "settings", "example.com/note-"]);
    assert_eq!(kubectl.run(&["get", "configmap", "settings", "-o", "jsonpath={.metadata.annotations}"]), "");
    kubectl.run(&["create", "configmap", "second"]);
    kubectl.run(&["label", "configmap", "settings", "second", "both=yes"]);
    let found = kubectl.run(&["get", "configmaps", "-l", "both=yes", "-o", "name"]);
    assert_eq!(found, "configmap/second\nconfigmap/settings\n");
    assert_has(
        &kubectl.fails(&["label", "configmap", "settings", "bad=not valid"]),
        &["invalid label value"],
    );
}

#[test]
fn scale_and_rollout_reach_their_goal() {
    let kubectl = Session::new("scale");
    kubectl.run_with(&["apply", "-f", "-"], &application("web", 0, "example/web:1"));
    assert_has(&kubectl.run(&["rollout", "status", "deployment/web"]), &["successfully rolled out"]);
    let complaint = kubectl.fails(&["scale", "deployment", "web", "--current-replicas=5", "--replicas=1"]);
    assert_has(&complaint, &["Expected replicas to be 5, was 0"]);
    if kubectl.runs_pods() {
        assert_has(
            &kubectl.run(&["scale", "deployment", "web", "--replicas=2"]),
            &["deployment.apps/web scaled"],
        );
        assert_has(&kubectl.run(&["rollout", "status", "deployment/web"]), &["successfully rolled out"]);
        kubectl.run(&["wait", "deployment/web", "--for=condition=Available", "--timeout=60s"]);
        let ready = kubectl.run(&["get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}"]);
        assert_eq!(ready, "2");
        let running = "--field-selector=status.phase=Running";
        assert_eq!(kubectl.run(&["get", "pods", "-l", "app=web", running, "-o", "name"]).lines().count(), 2);
    }
    kubectl.run(&["set", "image", "deployment/web", "main=example/web:2"]);
    assert_has(&kubectl.run(&["rollout", "status", "deployment/web"]), &["successfully rolled out"]);
    assert_has(&kubectl.run(&["rollout", "history", "deployment/web"]), &["REVISION", "2"]);
    kubectl.run(&["rollout", "undo", "deployment/web"]);
    let image = "jsonpath={.spec.template.spec.containers[0].image}";
    assert_eq!(kubectl.run(&["get", "deployment", "web", "-o", image]), "example/web:1");
    kubectl.run(&["rollout", "restart", "deployment/web"]);
    assert_has(&kubectl.run(&["rollout", "status", "deployment/web"]), &["successfully rolled out"]);
    kubectl.run(&["scale", "deployment", "web", "--replicas=0"]);
}

#[test]
fn wait_for_conditions_fields_creation_and_deletion() {
    let kubectl = Session::new("wait");
    let appearing = kubectl.start(&["wait", "configmap/late", "--for=create", "--timeout=60s"]);
    kubectl.run(&["create", "configmap", "late", "--from-literal=a=1"]);
    appearing.line_with(&["configmap/late condition met"]);
    let changing = kubectl.start(&["wait", "configmap/late", "--for=jsonpath={.data.a}=2", "--timeout=60s"]);
    kubectl.run(&["patch", "configmap", "late", "-p", r#"{"data":{"a":"2"}}"#]);
    changing.line_with(&["configmap/late condition met"]);
    let leaving = kubectl.start(&["wait", "configmap/late", "--for=delete", "--timeout=60s"]);
    kubectl.run(&["delete", "configmap", "late"]);
    // What is gone before the command looks counts as deleted too, without a word.
    leaving.succeeds();
    kubectl.run_with(&["apply", "-f", "-"], &application("web", 0, "example/web:1"));
    kubectl.run(&["wait", "deployment/web", "--for=condition=Available", "--timeout=60s"]);
    let complaint = kubectl.fails(&["wait", "deployment/web", "--for=condition=Impossible", "--timeout=1s"]);
    assert_has(&complaint, &["timed out waiting for the condition"]);
}
