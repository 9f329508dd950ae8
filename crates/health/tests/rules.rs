//! Rules in which Baton knowingly differs from Argo CD; the others are compared with it in `argo.rs`.

use baton_health::{Customizations, assess};
use serde_json::{Value, json};

fn health(object: &Value) -> (String, String) {
    let health = assess(object, &Customizations::default()).expect("a known version").expect("a known kind");
    (health.code.to_string(), health.message)
}

fn is(status: &str, message: &str) -> (String, String) {
    (status.to_owned(), message.to_owned())
}

fn job(conditions: &[(&str, &str)]) -> (String, String) {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(kind, status)| json!({"type": kind, "status": status, "message": kind.to_lowercase()}))
        .collect();
    health(&json!({"apiVersion": "batch/v1", "kind": "Job", "status": {"conditions": conditions}}))
}

#[test]
fn a_condition_of_a_job_counts_while_it_holds() {
    assert_eq!(job(&[("Suspended", "False")]), is("Progressing", ""), "it was resumed, and runs");
    assert_eq!(job(&[("Suspended", "False"), ("Complete", "True")]), is("Healthy", "complete"));
    assert_eq!(job(&[("Suspended", "True")]), is("Suspended", "suspended"));
    assert_eq!(job(&[("Failed", "False")]), is("Progressing", ""));
    assert_eq!(job(&[("Complete", "Unknown")]), is("Progressing", ""));
    assert_eq!(job(&[("Complete", "True"), ("Failed", "True")]), is("Degraded", "failed"));
}

#[test]
fn an_application_has_the_health_its_controller_wrote() {
    let application = |status: Value| {
        health(&json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "status": status}))
    };
    let waiting = is("Progressing", "Waiting for the status to be reported");
    assert_eq!(application(json!({})), waiting);
    assert_eq!(application(json!({"health": {}})), waiting);
    assert_eq!(application(json!({"health": {"status": "Splendid"}})), waiting);
    assert_eq!(application(json!({"health": {"status": "Healthy"}})), is("Healthy", ""));
    assert_eq!(application(json!({"health": {"status": "Degraded", "message": "m"}})), is("Degraded", "m"));
}

#[test]
fn an_application_set_has_the_health_of_its_conditions() {
    let set = |conditions: &[(&str, &str)], reported: Option<&str>| {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(kind, status)| json!({"type": kind, "status": status, "message": format!("{kind} {status}")}))
            .collect();
        let mut status = json!({"conditions": conditions});
        if let Some(reported) = reported {
            status["health"] = json!({"status": reported, "message": "reported"});
        }
        health(&json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "status": status}))
    };
    assert_eq!(set(&[], None), is("Progressing", "Waiting for the status to be reported"));
    assert_eq!(
        set(&[("ResourcesUpToDate", "True"), ("ErrorOccurred", "True")], Some("Healthy")),
        is("Degraded", "ErrorOccurred True")
    );
    assert_eq!(set(&[("ResourcesUpToDate", "False")], None), is("Degraded", "ResourcesUpToDate False"));
    assert_eq!(
        set(
            &[("ErrorOccurred", "False"), ("ResourcesUpToDate", "True"), ("RolloutProgressing", "True")],
            None
        ),
        is("Progressing", "RolloutProgressing True")
    );
    assert_eq!(
        set(&[("ResourcesUpToDate", "True"), ("RolloutProgressing", "False")], None),
        is("Healthy", "ResourcesUpToDate True")
    );
    assert_eq!(set(&[], Some("Healthy")), is("Healthy", "reported"));
}

#[test]
fn an_object_of_any_shape_is_assessed() {
    let shapes = [json!(null), json!(7), json!("x"), json!([]), json!({}), json!([[{}]])];
    let kinds = [
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "ReplicaSet"),
        ("v1", "Pod"),
        ("v1", "Service"),
        ("v1", "PersistentVolumeClaim"),
        ("batch/v1", "Job"),
        ("networking.k8s.io/v1", "Ingress"),
        ("apiregistration.k8s.io/v1", "APIService"),
        ("autoscaling/v1", "HorizontalPodAutoscaler"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("argoproj.io/v1alpha1", "Workflow"),
        ("argoproj.io/v1alpha1", "Application"),
        ("argoproj.io/v1alpha1", "ApplicationSet"),
    ];
    for (api_version, kind) in kinds {
        for shape in &shapes {
            let status = json!({"conditions": shape, "containerStatuses": [shape], "phase": shape, "health": shape,
                "loadBalancer": shape, "observedGeneration": shape});
            let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"generation": i64::MIN},
                "spec": {"replicas": i64::MIN, "updateStrategy": shape}, "status": status});
            let whole = json!({"apiVersion": api_version, "kind": kind, "metadata": shape, "spec": shape, "status": shape});
            for object in [object, whole] {
                let health = assess(&object, &Customizations::default()).expect("a known version");
                assert!(health.is_some(), "{object}");
            }
        }
    }
}
