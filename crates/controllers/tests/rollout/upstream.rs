//! An ApplicationSet controller that goes about RollingSync as Argo CD's does: it judges by the entries of
//! `status.applicationStatus` as the last pass left them, writes specifications to all Applications at once, asks for
//! operations without a revision, and leaves no label or annotation that the template does not have.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::scene::{NAMESPACE, Scene, text};

/// The only annotations of Applications that stay though no template has them.
const KEPT: [&str; 3] =
    ["argocd.argoproj.io/refresh", "argocd.argoproj.io/hydrate", "notified.notifications.argoproj.io"];

/// Makes one pass over the set "fleet".
pub(crate) async fn pass(scene: &Scene) {
    let set = scene.set("fleet");
    let steps = set["spec"]["strategy"]["rollingSync"]["steps"].as_array().cloned().unwrap_or_default();
    let envs: Vec<String> = steps.iter().map(|step| text(step, "/matchExpressions/0/values/0")).collect();
    let wanted = rendered(&set);
    let live = scene.applications();
    let place = |env: &str| envs.iter().position(|one| one == env).expect("a step");
    let before: BTreeMap<String, Value> = set["status"]["applicationStatus"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| (text(entry, "/application"), entry.clone()))
        .collect();
    let mut entries: BTreeMap<&str, Value> = BTreeMap::new();
    for (name, (env, desired)) in &wanted {
        let Some(application) = live.get(name) else { continue };
        let entry = next_entry(scene, before.get(name), application, desired);
        entries.insert(name, with(entry, "step", (place(env) + 1).to_string().into()));
    }
    // Steps are open up to the first that is not healthy.
    let healthy = |name: &str| entries.get(name).is_some_and(|entry| entry["status"] == "Healthy");
    let unfinished =
        |step: &usize| wanted.iter().any(|(name, (env, _))| place(env) == *step && !healthy(name));
    let first = (0..envs.len()).find(unfinished);
    let eligible: BTreeSet<&str> = wanted
        .iter()
        .filter(|(_, (env, _))| first.is_none_or(|first| place(env) <= first))
        .map(|(name, _)| name.as_str())
        .collect();
    for (name, entry) in &mut entries {
        if entry["status"] == "Waiting" && eligible.contains(name) {
            entry["status"] = "Pending".into();
            entry["message"] =
                "Application moved to Pending status, watching for the Application resource to \
                                start Progressing."
                    .into();
            entry["lastTransitionTime"] = scene.now().into();
        }
    }
    let (status, message) = match first {
        Some(step) => ("True", format!("ApplicationSet is performing rollout of step {}", step + 1)),
        None => ("False", "ApplicationSet Rollout has completed".to_owned()),
    };
    let condition = json!({
        "type": "RolloutProgressing", "status": status, "message": message, "reason": "ApplicationSetModified",
        "lastTransitionTime": scene.now(),
    });
    let entries: Vec<Value> = entries.into_values().collect();
    let status = json!({"status": {"applicationStatus": entries, "conditions": [condition]}});
    let sets = api(scene, "ApplicationSet");
    sets.patch_status("fleet", &PatchParams::default(), &Patch::Merge(status)).await.expect("a status");
    for (name, (env, desired)) in &wanted {
        // As the last pass left it.
        let pending = before.get(name).is_some_and(|entry| entry["status"] == "Pending");
        let begins = pending && eligible.contains(name.as_str());
        write(scene, &set, live.get(name), (name, env, desired), begins).await;
    }
}

/// Where an Application is by now.
fn next_entry(scene: &Scene, before: Option<&Value>, application: &Value, desired: &Value) -> Value {
    let sync = &application["status"]["sync"];
    let revisions = match text(sync, "/revision") {
        revision if revision.is_empty() => json!([]),
        revision => json!([revision]),
    };
    let waiting = |why: &str| {
        json!({
            "application": application["metadata"]["name"], "status": "Waiting", "message": why,
            "targetRevisions": revisions, "lastTransitionTime": scene.now(), "step": "",
        })
    };
    let mut entry = before
        .cloned()
        .unwrap_or_else(|| waiting("No Application status found, defaulting status to Waiting"));
    let was = text(&entry, "/status");
    if entry["targetRevisions"] != revisions || application["spec"] != *desired {
        entry = waiting("Application has pending changes, setting status to Waiting");
    }
    let well = application["status"]["health"]["status"] == "Healthy";
    let synced = sync["status"] == "Synced";
    let since = text(&entry, "/lastTransitionTime");
    let started = text(application, "/status/operationState/startedAt");
    let next = match text(&entry, "/status").as_str() {
        "Waiting" if synced && well => "Healthy",
        "Waiting" if synced => "Progressing",
        "Pending" if was == "Pending" && started > since => "Progressing",
        "Progressing" if was == "Progressing" && synced && well => "Healthy",
        _ => return entry,
    };
    entry["lastTransitionTime"] = scene.now().into();
    entry["message"] = format!("Application moved to {next} status").into();
    with(entry, "status", next.into())
}

/// The Applications that the set wants, by name: environment and specification, automatic sync off.
fn rendered(set: &Value) -> BTreeMap<String, (String, Value)> {
    let elements = set["spec"]["generators"][0]["list"]["elements"].as_array().expect("elements");
    let one = |element: &Value| {
        let (name, env) = (text(element, "/name"), text(element, "/env"));
        let template = set["spec"]["template"]["spec"].to_string();
        let filled = template.replace("{{name}}", &name).replace("{{env}}", &env);
        let mut spec: Value = serde_json::from_str(&filled).expect("a specification");
        spec["syncPolicy"]["automated"]["enabled"] = false.into();
        (name, (env, spec))
    };
    elements.iter().map(one).collect()
}

/// Makes an Application what it is to be, and asks for an operation.
async fn write(
    scene: &Scene,
    set: &Value,
    live: Option<&Value>,
    (name, env, desired): (&str, &str, &Value),
    begins: bool,
) {
    let applications = api(scene, "Application");
    let Some(live) = live else {
        let application = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {
                "name": name, "namespace": NAMESPACE, "labels": {"env": env},
                "ownerReferences": [{
                    "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "fleet",
                    "uid": set["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": desired,
        });
        let application: DynamicObject = serde_json::from_value(application).expect("an Application");
        applications.create(&PostParams::default(), &application).await.expect("an Application");
        return;
    };
    let unwanted = |kind: &str, kept: &[&str]| -> BTreeMap<String, Value> {
        let all = live["metadata"][kind].as_object().into_iter().flatten();
        all.filter(|(name, _)| !kept.contains(&name.as_str()))
            .map(|(name, _)| (name.clone(), Value::Null))
            .collect()
    };
    let mut patch = json!({
        "metadata": {"labels": unwanted("labels", &["env"]), "annotations": unwanted("annotations", &KEPT)},
        "spec": desired,
    });
    if begins && live["operation"].is_null() {
        patch["operation"] = json!({
            "initiatedBy": {"username": "applicationset-controller", "automated": true},
            "info": [{"name": "Reason", "value": "ApplicationSet RollingSync triggered a sync of this Application"}],
            "sync": {"prune": true, "syncOptions": desired["syncPolicy"]["syncOptions"]},
            "retry": {"limit": 5},
        });
    }
    let params = PatchParams::default();
    applications.patch(name, &params, &Patch::Merge(patch)).await.expect("a patch");
}

fn api(scene: &Scene, kind: &str) -> kube::Api<DynamicObject> {
    let client = Client::new(scene.control.service(), NAMESPACE);
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("argoproj.io", "v1alpha1", kind));
    kube::Api::namespaced_with(client, NAMESPACE, &resource)
}

fn with(mut object: Value, field: &str, value: Value) -> Value {
    object[field] = value;
    object
}
