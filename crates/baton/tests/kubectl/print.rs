//! Reading: tables, formats, watches, descriptions, selectors, and many objects in chunks.

use crate::{application, assert_has, cells, session::Session};

#[test]
fn get_prints_tables() {
    let kubectl = Session::new("get");
    kubectl.run_with(&["apply", "-f", "-"], &application("web", 0, "example/web:1"));
    let table = kubectl.run(&["get", "configmaps", "web"]);
    assert_eq!(cells(&table)[0], ["NAME", "DATA", "AGE"]);
    assert_eq!(cells(&table)[1][..2], ["web", "1"]);
    let table = kubectl.run(&["get", "deployments"]);
    assert_eq!(cells(&table)[0], ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]);
    assert_eq!(cells(&table)[1][..2], ["web", "0/0"]);
    let wide = kubectl.run(&["get", "deployments", "-o", "wide"]);
    assert_eq!(cells(&wide)[0][5..], ["CONTAINERS", "IMAGES", "SELECTOR"]);
    assert_eq!(cells(&wide)[1][5..], ["main", "example/web:1", "app=web"]);
    let table = kubectl.run(&["get", "services"]);
    assert_eq!(cells(&table)[0], ["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"]);
    let several = kubectl.run(&["get", "deployments,services", "-l", "app=web"]);
    assert_has(&several, &["deployment.apps/web", "service/web"]);
    let all = kubectl.run(&["get", "all"]);
    assert_has(&all, &["deployment.apps/web", "service/web", "replicaset.apps/web-"]);
    let everywhere = kubectl.run(&["get", "configmaps", "-A", "-l", "app=web"]);
    assert_eq!(cells(&everywhere)[0][0], "NAMESPACE");
    assert_has(&everywhere, &[kubectl.namespace()]);
    assert_has(&kubectl.run(&["get", "configmap", "web", "--show-labels"]), &["LABELS", "app=web"]);
    assert_has(&kubectl.run(&["get", "configmap", "web", "-L", "app"]), &["APP", "web"]);
    assert_has(&kubectl.run(&["get", "namespaces"]), &["STATUS", "Active", "default"]);
    let empty = kubectl.attempt(&["get", "jobs"]);
    assert_has(&empty.stderr, &["No resources found in", kubectl.namespace()]);
}

#[test]
fn get_prints_formats() {
    let kubectl = Session::new("formats");
    kubectl.run_with(&["apply", "-f", "-"], &application("web", 0, "example/web:1"));
    let yaml = kubectl.run(&["get", "configmap", "web", "-o", "yaml"]);
    assert_has(
        &yaml,
        &["apiVersion: v1\n", "kind: ConfigMap\n", "  greeting: hello\n", "  resourceVersion: "],
    );
    let json = kubectl.run(&["get", "configmaps", "-l", "app=web", "-o", "json"]);
    assert_has(&json, &["\"kind\": \"List\"", "\"greeting\": \"hello\""]);
    assert_eq!(kubectl.run(&["get", "configmap", "web", "-o", "jsonpath={.data.greeting}"]), "hello");
    let ports = "jsonpath={range .items[*]}{.metadata.name}:{.spec.ports[0].port}{end}";
    assert_eq!(kubectl.run(&["get", "services", "-l", "app=web", "-o", ports]), "web:80");
    assert_eq!(kubectl.run(&["get", "configmap", "web", "-o", "name"]), "configmap/web\n");
    let columns =
        kubectl.run(&["get", "configmap", "web", "-o", "custom-columns=N:.metadata.name,G:.data.greeting"]);
    assert_eq!(cells(&columns), [["N", "G"], ["web", "hello"]]);
    let template = "go-template={{.data.greeting}}";
    assert_eq!(kubectl.run(&["get", "configmap", "web", "-o", template]), "hello");
    let sorted = kubectl.run(&["get", "configmaps", "--sort-by=.metadata.name", "-o", "name"]);
    assert_has(&sorted, &["configmap/web"]);
    assert_has(&kubectl.run(&["get", "--raw", "/version"]), &["gitVersion"]);
}

#[test]
fn get_watches() {
    let kubectl = Session::new("watch");
    kubectl.run(&["create", "secret", "generic", "before"]);
    let watch = kubectl.start(&["get", "secrets", "-w", "--output-watch-events"]);
    watch.line_with(&["EVENT", "NAME", "TYPE", "DATA", "AGE"]);
    watch.line_with(&["ADDED", "before", "Opaque", "0"]);
    kubectl.run(&["create", "secret", "generic", "after", "--from-literal=a=b"]);
    watch.line_with(&["ADDED", "after", "Opaque", "1"]);
    kubectl.run(&["label", "secret", "after", "seen=yes"]);
    watch.line_with(&["MODIFIED", "after"]);
    kubectl.run(&["delete", "secret", "after"]);
    watch.line_with(&["DELETED", "after"]);
    let one =
        kubectl.start(&["get", "secret", "before", "-w", "-o", "jsonpath={.metadata.labels.turn}{\"\\n\"}"]);
    // kubectl gets the object, then watches it and leaves out the first event: a change in between is never shown, so
    // the label changes until it is.
    let shown = (1..=60).find(|turn| {
        kubectl.run(&["label", "secret", "before", &format!("turn=first-{turn}"), "--overwrite"]);
        one.sees(&["first"])
    });
    assert!(shown.is_some());
    kubectl.run(&["label", "secret", "before", "turn=second", "--overwrite"]);
    one.line_with(&["second"]);
}

#[test]
fn describe_tells_the_story() {
    let kubectl = Session::new("describe");
    kubectl.run_with(&["apply", "-f", "-"], &application("web", 0, "example/web:1"));
    let event = format!(
        "apiVersion: v1
kind: Event
metadata:
  name: web.1
involvedObject: {{apiVersion: v1, kind: ConfigMap, name: web, namespace: {0}, uid: {1}}}
reason: Tested
message: seen by a test
type: Normal
source: {{component: kubectl-test}}
firstTimestamp: 2026-01-01T00:00:00Z
lastTimestamp: 2026-01-01T00:00:00Z
count: 1
",
        kubectl.namespace(),
        kubectl.run(&["get", "configmap", "web", "-o", "jsonpath={.metadata.uid}"]),
    );
    kubectl.run_with(&["create", "-f", "-"], &event);
    let text = kubectl.run(&["describe", "configmap", "web"]);
    assert_has(&text, &["Name:         web", "greeting:\n----\nhello", "Tested", "seen by a test"]);
    let text = kubectl.run(&["describe", "deployment", "web"]);
    assert_has(
        &text,
        &["Selector:", "app=web", "0 desired", "StrategyType:", "RollingUpdate", "example/web:1"],
    );
    assert_has(&kubectl.run(&["describe", "service", "web"]), &["Selector:", "app=web", "Port:", "80/TCP"]);
    assert_has(&kubectl.run(&["describe", "namespace", kubectl.namespace()]), &["Status:", "Active"]);
    assert_has(&kubectl.run(&["get", "events"]), &["LAST SEEN", "REASON", "Tested", "configmap/web"]);
    assert_has(&kubectl.run(&["events", "--for", "configmap/web"]), &["Tested"]);
}

#[test]
fn selectors_narrow_what_is_read() {
    let kubectl = Session::new("select");
    for (name, tier) in [("a", "web"), ("b", "db"), ("c", "web")] {
        kubectl.run(&["create", "secret", "generic", name]);
        kubectl.run(&["label", "secret", name, &format!("tier={tier}")]);
    }
    for (selector, expected) in [
        ("tier=web", "secret/a\nsecret/c\n"),
        ("tier!=web", "secret/b\n"),
        ("tier in (db)", "secret/b\n"),
        ("tier notin (db)", "secret/a\nsecret/c\n"),
        ("!tier", ""),
    ] {
        assert_eq!(kubectl.run(&["get", "secrets", "-l", selector, "-o", "name"]), expected, "{selector}");
    }
    let named = ["get", "secrets", "--field-selector", "metadata.name=b", "-o", "name"];
    assert_eq!(kubectl.run(&named), "secret/b\n");
    let typed = ["get", "secrets", "--field-selector", "type!=Opaque", "-o", "name"];
    assert_eq!(kubectl.run(&typed), "");
}

#[test]
fn more_than_five_hundred_objects_come_in_chunks() {
    let kubectl = Session::new("chunks");
    let objects: String = (0..520)
        .map(|index| {
            format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c{index:03}\n  labels: {{many: \"yes\"}}\n")
        })
        .collect();
    kubectl.run_with(&["create", "-f", "-"], &objects);
    for size in ["500", "100", "7", "0"] {
        let chunk = format!("--chunk-size={size}");
        let names = kubectl.run(&["get", "configmaps", "-l", "many=yes", &chunk, "-o", "name"]);
        let found: Vec<&str> = names.lines().collect();
        assert_eq!(found.len(), 520, "chunks of {size}");
        assert_eq!((found[0], found[519]), ("configmap/c000", "configmap/c519"));
    }
    let table = kubectl.attempt(&["get", "configmaps", "-l", "many=yes", "--chunk-size=100", "-v=6"]);
    assert_eq!(table.stdout.lines().count(), 521, "one header, and every object once");
    assert!(table.stderr.matches("continue=").count() >= 5, "pages were asked for:\n{}", table.stderr);
    kubectl.run(&["delete", "configmaps", "-l", "many=yes", "--wait=false"]);
}

#[test]
fn logs_show_what_containers_have_written() {
    let kubectl = Session::new("logs");
    if !kubectl.runs_pods() {
        return;
    }
    kubectl.run_with(&["apply", "-f", "-"], &application("web", 1, "example/web:1"));
    kubectl.run(&["rollout", "status", "deployment/web"]);
    let log = kubectl.run(&["logs", "deployment/web"]);
    assert_has(&log, &["simulated container main of pod ", "image example/web:1 on node "]);
    assert_eq!(kubectl.run(&["logs", "-l", "app=web", "--tail=1"]).lines().count(), 1);
    let complaint = kubectl.fails(&["logs", "deployment/web", "-c", "other"]);
    assert_has(&complaint, &["container other is not valid for pod web-"]);
}
