//! Which fields of Baton's own the installed definitions keep, and what to do about the others.

use std::collections::BTreeSet;

use serde_json::Value;

use super::finding::{Finding, Weight};
use super::installation::{Installation, called};

/// Fields that something depends on, by definition: where they are, and what is lost where they are pruned.
const FIELDS: [(&str, &str, &str); 7] = [
    (
        "applicationsets.argoproj.io",
        "spec.generators[].deploymentStrategy",
        "phased deployments (deploymentStrategy of a generator) are dropped before Baton sees them",
    ),
    (
        "applicationsets.argoproj.io",
        "spec.strategy.deletionSync",
        "deletionOrder: Custom has no steps, and so nothing of such a set is deleted",
    ),
    (
        "applicationsets.argoproj.io",
        "status.phases",
        "phased deployments do not begin: their state has no place",
    ),
    (
        "applicationsets.argoproj.io",
        "status.rollout",
        "the summary of a rollout is not shown; the condition RolloutProgressing says what is in the way",
    ),
    (
        "applicationsets.argoproj.io",
        "status.deletion",
        "the progress of an ordered deletion is not shown; the condition says it in words",
    ),
    (
        "applications.argoproj.io",
        "status.resources[].requiresDeletionApproval",
        "which resources wait for approval is told by requiresDeletionConfirmation alone",
    ),
    (
        "applications.argoproj.io",
        "spec.syncPolicy.automated.enabled",
        "`automated` cannot be switched off in its place: during a rollout the whole block is taken away and put back after it",
    ),
];

pub(super) fn judge(installation: &Installation) -> Vec<Finding> {
    let mut findings = Vec::new();
    for ours in baton_api::crds() {
        let name = ours["metadata"]["name"].as_str().unwrap_or_default();
        let theirs = installation.definitions.iter().find(|one| one["metadata"]["name"] == name);
        let Some(theirs) = theirs else {
            if installation.unread.iter().all(|(what, _)| what != "CustomResourceDefinitions") {
                let object = format!("CustomResourceDefinition {name}");
                let message = "it is not there: baton crds | kubectl apply --server-side -f -";
                findings.push(Finding::new(Weight::Blocks, object, "no-definition", message));
            }
            continue;
        };
        let lost: BTreeSet<(&str, &str)> = FIELDS
            .iter()
            .filter(|(of, path, _)| *of == name && keeps(schema(&ours), path) && !keeps(schema(theirs), path))
            .map(|(_, path, what)| (*path, *what))
            .collect();
        for (path, what) in lost {
            let message = format!(
                "{path} is not kept: {what}; Baton's definition adds it: baton crds | kubectl apply --server-side -f -"
            );
            findings.push(Finding::new(Weight::Differs, called(theirs), "pruned", message));
        }
    }
    findings
}

fn schema(definition: &Value) -> &Value {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let served = versions.filter(|version| version["name"] == "v1alpha1");
    served.map(|version| &version["schema"]["openAPIV3Schema"]).next().unwrap_or(&Value::Null)
}

/// Whether what is at a path is stored.
fn keeps(schema: &Value, path: &str) -> bool {
    let mut at = schema;
    for part in path.split('.') {
        if at["x-kubernetes-preserve-unknown-fields"] == true {
            return true;
        }
        let (name, in_list) = part.strip_suffix("[]").map_or((part, false), |name| (name, true));
        at = &at["properties"][name];
        if in_list && !at.is_null() && at["x-kubernetes-preserve-unknown-fields"] != true {
            at = &at["items"];
        }
        if at.is_null() {
            return false;
        }
    }
    true
}
