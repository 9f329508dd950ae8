//! The actions that Kubernetes' own workloads offer where no customization says otherwise, under the names that Argo CD has for
//! them.

use std::collections::BTreeMap;

use baton_api::object::Object;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{ActionInfo, ActionParam, Change};
use crate::HealthError;

/// What `kubectl rollout restart` writes too.
const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";
/// Longest name of a CronJob whose Jobs can be named after it and the time.
const LONGEST: usize = 52;

/// What an object offers, by name.
pub(super) fn offered(object: &Value) -> Vec<ActionInfo> {
    let on = |field: &str| object["spec"][field] == true;
    let action = |name: &str, display: &str, icon: &str, disabled: bool| ActionInfo {
        name: name.to_owned(),
        disabled,
        display_name: display.to_owned(),
        icon_class: format!("fa fa-fw fa-{icon}"),
        params: Vec::new(),
    };
    let restart = || action("restart", "Restart", "redo", false);
    let scale = || {
        let params = vec![ActionParam { name: "replicas".to_owned() }];
        ActionInfo { params, ..action("scale", "Scale", "expand-arrows-alt", false) }
    };
    let halted = |field: &str, stop: &str, display: &str| {
        [action("resume", "Resume", "play", !on(field)), action(stop, display, "pause", on(field))]
    };
    match (object.group(), object.kind()) {
        ("apps", "Deployment") => {
            let [resume, pause] = halted("paused", "pause", "Pause");
            vec![pause, restart(), resume, scale()]
        }
        ("apps", "StatefulSet") => vec![restart(), scale()],
        ("apps", "DaemonSet") => vec![restart()],
        ("batch", "CronJob") => {
            let [resume, suspend] = halted("suspend", "suspend", "Suspend");
            vec![action("create-job", "Create Job", "play-circle", false), resume, suspend]
        }
        ("batch", "Job") => {
            let [resume, suspend] = halted("suspend", "suspend", "Suspend");
            vec![resume, suspend]
        }
        _ => Vec::new(),
    }
}

/// What an action does; none where the object does not offer it.
///
/// # Errors
/// What was told to it makes no sense.
pub(super) fn run(
    object: &Value,
    name: &str,
    params: &BTreeMap<String, String>,
    now: Timestamp,
) -> Result<Option<Change>, HealthError> {
    if !offered(object).iter().any(|action| action.name == name) {
        return Ok(None);
    }
    let with = |field: &str, value: Value| {
        let mut wanted = object.clone();
        wanted["spec"][field] = value;
        Change::Patch(wanted)
    };
    Ok(Some(match name {
        "restart" => {
            let mut wanted = object.clone();
            let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
            wanted["spec"]["template"]["metadata"]["annotations"][RESTARTED] = second.to_string().into();
            Change::Patch(wanted)
        }
        "scale" => {
            let replicas = params.get("replicas").and_then(|text| text.parse::<i32>().ok());
            let replicas = replicas.filter(|replicas| *replicas >= 0);
            let wrong =
                || HealthError::Parameter { name: "replicas".to_owned(), what: "a whole number from 0 up" };
            with("replicas", replicas.ok_or_else(wrong)?.into())
        }
        "pause" | "suspend" | "resume" => {
            let field = if object.kind() == "Deployment" { "paused" } else { "suspend" };
            with(field, (name != "resume").into())
        }
        _ => Change::Create(job_of(object, now)),
    }))
}

/// The Job that a CronJob would start now, as its own.
fn job_of(object: &Value, now: Timestamp) -> Value {
    let template = &object["spec"]["jobTemplate"];
    let mut annotations = template["metadata"]["annotations"].clone();
    annotations["cronjob.kubernetes.io/instantiate"] = "manual".into();
    let name: String = object.name().chars().take(LONGEST).collect();
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": format!("{name}-{}", now.as_second()), "namespace": object.namespace(),
            "labels": template["metadata"]["labels"], "annotations": annotations,
            "ownerReferences": [{
                "apiVersion": object.api_version(), "kind": "CronJob", "name": object.name(), "uid": object.uid(),
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": template["spec"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(object: &Value, name: &str, params: &[(&str, &str)]) -> Result<Option<Change>, HealthError> {
        let params = params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        run(object, name, &params, "2026-01-02T03:04:05.6Z".parse().expect("a time"))
    }

    fn patched(object: &Value, name: &str, params: &[(&str, &str)]) -> Value {
        match done(object, name, params) {
            Ok(Some(Change::Patch(object))) => object,
            other => panic!("{name}: {other:?}"),
        }
    }

    fn names(object: &Value) -> Vec<(String, bool)> {
        offered(object).into_iter().map(|action| (action.name, action.disabled)).collect()
    }

    #[test]
    fn a_deployment_is_restarted_scaled_and_held() {
        let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1}});
        let offered = [("pause", false), ("restart", false), ("resume", true), ("scale", false)];
        assert_eq!(names(&web), offered.map(|(name, disabled)| (name.to_owned(), disabled)));
        let again = patched(&web, "restart", &[]);
        assert_eq!(
            again["spec"]["template"]["metadata"]["annotations"],
            json!({RESTARTED: "2026-01-02T03:04:05Z"})
        );
        assert_eq!(patched(&web, "scale", &[("replicas", "3")])["spec"]["replicas"], 3);
        for wrong in [&[][..], &[("replicas", "-1")], &[("replicas", "many")]] {
            assert!(done(&web, "scale", wrong).is_err(), "{wrong:?}");
        }
        let held = patched(&web, "pause", &[]);
        assert_eq!(held["spec"]["paused"], true);
        assert!(names(&held).contains(&("pause".to_owned(), true)));
        assert_eq!(patched(&held, "resume", &[])["spec"]["paused"], false);
        assert_eq!(done(&web, "fly", &[]), Ok(None));
    }

    #[test]
    fn a_cron_job_starts_one_of_its_jobs() {
        let nightly = json!({"apiVersion": "batch/v1", "kind": "CronJob",
            "metadata": {"name": "nightly", "namespace": "shop", "uid": "u"},
            "spec": {"jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"backoffLimit": 1}}}});
        let Ok(Some(Change::Create(job))) = done(&nightly, "create-job", &[]) else { panic!("no Job") };
        assert_eq!(job["metadata"]["name"], "nightly-1767323045");
        assert_eq!(
            (&job["metadata"]["namespace"], &job["spec"]),
            (&json!("shop"), &json!({"backoffLimit": 1}))
        );
        assert_eq!(job["metadata"]["ownerReferences"][0]["uid"], "u");
        assert_eq!(patched(&nightly, "suspend", &[])["spec"]["suspend"], true);
    }

    #[test]
    fn what_is_no_workload_offers_nothing() {
        for kind in [
            json!({"apiVersion": "v1", "kind": "ConfigMap"}),
            json!({"apiVersion": "x.io/v1", "kind": "Deployment"}),
        ] {
            assert_eq!(offered(&kind), []);
            assert_eq!(done(&kind, "restart", &[]), Ok(None));
        }
    }
}
