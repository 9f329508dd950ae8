use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::lookup::text;

/// One line per case: an object, the one it replaces (or `null`), and what a real API server (1.36) said: field, reason and
/// message (`null` where the message shows Go's own names).
const CASES: &str = include_str!("cases.txt");

fn kind_of(object: &Value) -> &'static Kind {
    let api_version = text(object, "apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    crate::find_kind(group, version, text(object, "kind")).expect("served")
}

fn judged(mut object: Value, old: Option<&Value>) -> Vec<FieldError> {
    let kind = kind_of(&object);
    kind.default(&mut object);
    match old {
        Some(old) => kind.prepare_update(&mut object, old),
        None => {
            object["metadata"]["uid"] = "uid-1".into();
            kind.prepare_create(&mut object);
        }
    }
    let meta = &object["metadata"];
    let mut errors = kind.validate(&object, old);
    if old.is_none() {
        for wrong in kind.name_rule()(text(meta, "name")) {
            errors.push(FieldError::invalid("metadata.name", text(meta, "name"), wrong));
        }
    }
    errors
}

#[test]
fn mistakes_are_reported_as_a_real_api_server_reports_them() {
    let mut cases = 0;
    for line in CASES.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let old = Some(&case[1]).filter(|old| !old.is_null());
        let errors = judged(case[0].clone(), old);
        let expected = case[2].as_array().expect("causes");
        let silent: Vec<&Value> =
            expected.iter().filter(|cause| cause[2].is_null()).map(|cause| &cause[0]).collect();
        let theirs: BTreeSet<String> =
            expected.iter().map(|cause| format!("{} {} {}", cause[0], cause[1], cause[2])).collect();
        let ours: BTreeSet<String> = errors
            .iter()
            .map(|error| {
                let path = json!(if error.path.is_empty() { "[]" } else { &error.path });
                let message = if silent.contains(&&path) { Value::Null } else { error.message().into() };
                format!("{path} {} {message}", json!(error.reason()))
            })
            .collect();
        assert_eq!(ours, theirs, "{}", case[0]);
        cases += 1;
    }
    assert!(cases > 200);
}

#[test]
fn what_is_fine_has_nothing_wrong() {
    for sent in include_str!("../defaults/cases.txt").lines().step_by(2) {
        let object: Value = serde_json::from_str(sent).expect("JSON");
        assert_eq!(judged(object, None), [], "{sent}");
    }
}

#[test]
fn an_update_that_changes_nothing_is_fine() {
    for line in include_str!("../columns/cases.txt").lines().step_by(2) {
        let object: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(kind_of(&object).validate(&object, Some(&object)), [], "{line}");
    }
}

#[test]
fn large_configuration_is_refused() {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
        "data": {"a": "x".repeat(1 << 20), "b": "y"}});
    let errors = judged(object, None);
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].message(), "Too long: may not be more than 1048576 bytes");
}

#[test]
fn a_secret_that_is_no_base64_is_refused_without_being_shown() {
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "not base64!"}});
    let errors = judged(object, None);
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].path, "data[a]");
    assert!(!errors[0].to_string().contains("not base64!"));
}

#[test]
fn an_amount_that_cannot_be_read_is_refused() {
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [
        {"name": "a", "image": "x", "resources": {"limits": {"cpu": "lots"}}}]}});
    let errors = judged(object, None);
    let paths: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
    assert_eq!(
        paths,
        ["spec.containers[0].resources.limits[cpu]", "spec.containers[0].resources.requests[cpu]"]
    );
}

#[test]
fn a_pod_without_a_node_may_be_bound_but_not_moved() {
    let pod = |node: Option<&str>| {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "a", "image": "x"}]}});
        if let Some(node) = node {
            pod["spec"]["nodeName"] = node.into();
        }
        kind_of(&pod).default(&mut pod);
        kind_of(&pod).prepare_create(&mut pod);
        pod
    };
    assert_eq!(judged(pod(Some("n1")), Some(&pod(None))), []);
    assert_eq!(judged(pod(Some("n2")), Some(&pod(Some("n1")))).len(), 1);
    let mut image = pod(None);
    image["spec"]["containers"][0]["image"] = "y".into();
    assert_eq!(judged(image, Some(&pod(None))), []);
}

#[test]
fn schedules_are_read_as_cron_reads_them() {
    for good in
        ["* * * * *", "*/5 0-23/2 1,15 jan-mar MON", "@hourly", "@every 1h30m", "0 0 31 12 6", "5/10 * * * ?"]
    {
        assert_eq!(cron::check(good), Ok(()), "{good}");
    }
    for bad in [
        "",
        "* * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 7",
        "5-1 * * * *",
        "1-2-3 * * * *",
        "1/2/3 * * * *",
        "@sometimes",
        "@every soon",
        "CRON_TZ=UTC * * * * *",
        "99999999999 * * * *",
    ] {
        assert!(cron::check(bad).is_err(), "{bad}");
    }
}
