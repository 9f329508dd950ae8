use serde_json::json;

use super::*;

/// Pairs of lines: an object, and how a real API server (1.36) prints it: headings (`name|type|format|priority`) and cells,
/// ages as `<age>`.
const CASES: &str = include_str!("cases.txt");

fn kind_of(object: &Value) -> &'static Kind {
    let api_version = text(object, "apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    crate::find_kind(group, version, text(object, "kind")).expect("served")
}

/// A moment after all of the cases were made.
fn now() -> Timestamp {
    "2026-11-15T05:00:00Z".parse().expect("a time")
}

#[test]
fn tables_look_as_a_real_api_server_prints_them() {
    let mut lines = CASES.lines();
    let mut cases = 0;
    while let (Some(object), Some(table)) = (lines.next(), lines.next()) {
        let object: Value = serde_json::from_str(object).expect("JSON");
        let table: Value = serde_json::from_str(table).expect("JSON");
        let kind = kind_of(&object);
        let headings: Vec<String> = kind
            .columns()
            .iter()
            .map(|column| format!("{}|{}|{}|{}", column.name, column.type_, column.format, column.priority))
            .collect();
        assert_eq!(json!(headings), table[0], "{}", kind.kind);
        let cells = kind.cells(&object, now()).into_iter().zip(kind.columns());
        let cells: Vec<Value> = cells.map(|(cell, column)| without_ages(cell, column.name)).collect();
        assert_eq!(json!(cells), table[1], "{}", kind.kind);
        cases += 1;
    }
    assert!(cases > 40);
}

/// Ages depend on the moment of the recording; what they look like has its own test.
fn without_ages(cell: Value, column: &str) -> Value {
    const AGES: [&str; 6] = ["Age", "Duration", "Last Seen", "First Seen", "Last Schedule", "Restarts"];
    let age = regex::Regex::new(r"\b(\d+[smhdy])+\b").expect("a pattern");
    match cell {
        Value::String(text) if AGES.contains(&column) => age.replace_all(&text, "<age>").into_owned().into(),
        other => other,
    }
}

#[test]
fn every_row_is_as_wide_as_its_table() {
    for kind in crate::all() {
        for object in [json!({}), json!(null), json!({"metadata": {"name": "x"}, "spec": [], "status": 1})] {
            assert_eq!(kind.cells(&object, now()).len(), kind.columns().len(), "{}", kind.kind);
        }
    }
}

#[test]
fn a_pods_state_is_one_word() {
    let pods = crate::find("", "v1", "pods").expect("pods");
    let state = |pod: &Value| {
        let cells = pods.cells(pod, now());
        format!("{} {} {}", cells[1], cells[2], cells[3]).replace('"', "")
    };
    let spec = json!({"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]});
    let sidecar =
        json!({"containers": [{"name": "a"}], "initContainers": [{"name": "i", "restartPolicy": "Always"}]});
    let running = json!({"name": "a", "ready": true, "restartCount": 1, "state": {"running": {}}});
    for (spec, meta, status, expected) in [
        (&spec, json!({}), json!({"phase": "Pending"}), "0/2 Pending 0"),
        (&spec, json!({}), json!({"phase": "Failed", "reason": "Evicted"}), "0/2 Evicted 0"),
        (
            &spec,
            json!({}),
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
            "0/2 SchedulingGated 0",
        ),
        (
            &spec,
            json!({}),
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "restartCount": 0, "state": {"running": {}}}]}),
            "0/2 Init:0/1 0",
        ),
        (
            &spec,
            json!({}),
            json!({"phase": "Pending", "initContainerStatuses": [
                {"name": "i", "restartCount": 2, "state": {"terminated": {"exitCode": 3}}}]}),
            "0/2 Init:ExitCode:3 2",
        ),
        (
            &spec,
            json!({}),
            json!({"phase": "Running", "containerStatuses": [running, {"name": "b", "restartCount": 4,
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"finishedAt": "2026-11-15T04:55:00Z"}}}]}),
            "1/2 CrashLoopBackOff 5 (5m ago)",
        ),
        (
            &spec,
            json!({}),
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [
                running, {"name": "b", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]}),
            "1/2 Running 1",
        ),
        (&spec, json!({"deletionTimestamp": "x"}), json!({"phase": "Running"}), "0/2 Terminating 0"),
        (&spec, json!({"deletionTimestamp": "x"}), json!({"phase": "Succeeded"}), "0/2 Succeeded 0"),
        (
            &sidecar,
            json!({}),
            json!({"phase": "Running", "containerStatuses": [running], "initContainerStatuses": [
                {"name": "i", "ready": true, "started": true, "restartCount": 2, "state": {"running": {}}}]}),
            "2/2 Running 3",
        ),
    ] {
        assert_eq!(state(&json!({"metadata": meta, "spec": spec, "status": status})), expected);
    }
}

#[test]
fn selectors_read_as_users_write_them() {
    let selector = json!({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [
        {"key": "c", "operator": "In", "values": ["y", "x"]},
        {"key": "d", "operator": "NotIn", "values": ["z"]},
        {"key": "e", "operator": "Exists"},
        {"key": "f", "operator": "DoesNotExist"}]});
    let shown = |selector: Value| selectors::selector(&json!({"spec": selector}), "spec");
    assert_eq!(shown(selector), "a=1,b=2,c in (x,y),d notin (z),e,!f");
    assert_eq!(shown(json!({})), "<none>");
    assert_eq!(shown(json!({"matchExpressions": [{"key": "a", "operator": "Is"}]})), "<error>");
}

#[test]
fn metrics_of_an_autoscaler_show_now_and_goal() {
    let hpa = crate::find("autoscaling", "v2", "horizontalpodautoscalers").expect("listed");
    let metric = |kind: &str, source: Value| json!({"type": kind, kind.to_lowercase(): source});
    let cell = |wanted: Vec<Value>, now_measured: Vec<Value>| {
        let object = json!({"spec": {"metrics": wanted}, "status": {"currentMetrics": now_measured}});
        hpa.cells(&object, now())[2].clone()
    };
    assert_eq!(cell(vec![], vec![]), "<none>");
    let cpu = metric("Resource", json!({"name": "cpu", "target": {"averageUtilization": 80}}));
    assert_eq!(cell(vec![cpu.clone()], vec![]), "cpu: <unknown>/80%");
    let used = metric("Resource", json!({"name": "cpu", "current": {"averageUtilization": 42}}));
    assert_eq!(cell(vec![cpu.clone()], vec![used]), "cpu: 42%/80%");
    let queue = metric("External", json!({"target": {"averageValue": "5"}}));
    let load = metric("Object", json!({"target": {"value": "10"}}));
    assert_eq!(cell(vec![cpu, queue, load], vec![]), "cpu: <unknown>/80%, <unknown>/5 (avg) + 1 more...");
}
