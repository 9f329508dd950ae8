//! Whether the account of Argo CD's controller may do what Baton does in its place.

use std::collections::BTreeMap;

use baton_access::{Caller, Policy, Rule, uncovered};
use serde_json::Value;

use super::controller::Settings;
use super::finding::{Finding, Weight};
use super::installation::Installation;
use crate::install;

/// What is lost without the right to a kind.
const LOST: [(&str, &str); 4] = [
    ("controllerrevisions", "phased deployments keep no good states, so nothing can be put back"),
    ("configmaps", "the head of a rollout is kept in an annotation of its set, and deletions have no guard"),
    ("leases", "leader election does not work: run one replica without --leader-elect"),
    ("events", "events are not written"),
];

pub(super) fn judge(installation: &Installation, settings: &Settings) -> Vec<Finding> {
    let (Some(rights), Some(account)) = (&installation.rights, &settings.account) else { return Vec::new() };
    let policy = Policy::read(rights);
    let namespace = installation.namespace.as_str();
    let name = format!("system:serviceaccount:{namespace}:{account}");
    let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    let caller = Caller { name: &name, groups: &groups };
    let held = policy.rules(&caller, namespace);
    let single: Vec<Rule> = install::rules("applicationset").iter().flat_map(apart).collect();
    let mut missing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for rule in uncovered(&held, &single) {
        let rule = rule.to_value();
        let text = |field: &str| rule[field][0].as_str().unwrap_or_default().to_owned();
        missing.entry(text("resources")).or_default().push(text("verbs"));
    }
    let object = format!("ServiceAccount {namespace}/{account}");
    let told = missing.into_iter().map(|(resource, verbs)| {
        let lost = LOST.iter().find(|(kind, _)| *kind == resource).map(|(_, lost)| *lost);
        let weight = if lost.is_some() { Weight::Differs } else { Weight::Blocks };
        let message = format!(
            "may not {} {resource}: with this account {}; the one that `baton install --only applicationset` brings may",
            verbs.join(", "),
            lost.unwrap_or("Baton cannot do its work")
        );
        Finding::new(weight, object.as_str(), "missing-right", message)
    });
    told.collect()
}

/// One rule for each verb on each resource, so that only what is missing is told.
fn apart(rule: &Value) -> Vec<Rule> {
    let all = |field: &str| rule[field].as_array().cloned().unwrap_or_default();
    let one = |resource: &Value, verb: &Value| {
        let mut rule = rule.clone();
        rule["resources"] = Value::Array(vec![resource.clone()]);
        rule["verbs"] = Value::Array(vec![verb.clone()]);
        Rule::read(&rule)
    };
    let (resources, verbs) = (all("resources"), all("verbs"));
    resources.iter().flat_map(|resource| verbs.iter().map(move |verb| one(resource, verb))).collect()
}
