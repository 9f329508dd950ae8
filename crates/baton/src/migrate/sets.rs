//! What will be different for each ApplicationSet.

use baton_api::ApplicationSet;
use baton_lint::Severity;
use serde_json::{Value, json};

use super::controller::Settings;
use super::finding::{Finding, Weight};
use super::installation::{Installation, called};

pub(super) fn judge(installation: &Installation, settings: &Settings) -> Vec<Finding> {
    installation.sets.iter().flat_map(|set| Judged { set, installation, settings }.findings()).collect()
}

struct Judged<'a> {
    set: &'a Value,
    installation: &'a Installation,
    settings: &'a Settings,
}

impl Judged<'_> {
    fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        if let Err(error) = serde_json::from_value::<ApplicationSet>(self.set.clone()) {
            let message = format!("cannot be read, and is left alone: {error}");
            return vec![self.finding(Weight::Blocks, "unreadable", message)];
        }
        self.text(&mut findings);
        self.rollout(&mut findings);
        self.deletion(&mut findings);
        self.fields(&mut findings);
        self.standing(&mut findings);
        findings
    }

    fn finding(&self, weight: Weight, rule: &'static str, message: impl Into<String>) -> Finding {
        Finding::new(weight, called(self.set), rule, message)
    }

    /// What the linter finds, which reads a set as the controller does.
    fn text(&self, findings: &mut Vec<Finding>) {
        let metadata = &self.set["metadata"];
        let text = json!({
            "apiVersion": self.set["apiVersion"], "kind": "ApplicationSet",
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]}, "spec": self.set["spec"],
        });
        let (_, found) = baton_lint::read(&text.to_string());
        for one in found {
            let weight = match one.severity {
                Severity::Error => Weight::Blocks,
                Severity::Warning => Weight::Note,
            };
            findings.push(self.finding(weight, one.rule, format!("{}: {}", one.path, one.message)));
        }
        if has_key(&self.set["spec"]["generators"], "awsCodeCommit", 0) {
            let message = "AWS CodeCommit is not supported: the generator fails, and nothing of this set is changed or deleted";
            findings.push(self.finding(Weight::Blocks, "unsupported-generator", message));
        }
    }

    fn rollout(&self, findings: &mut Vec<Finding>) {
        let strategy = &self.set["spec"]["strategy"];
        if strategy["type"] != "RollingSync" || strategy["rollingSync"].is_null() {
            return;
        }
        if !self.settings.progressive_syncs {
            let message = "progressive syncs are off, so its steps mean nothing, now and with Baton; \
                           applicationsetcontroller.enable.progressive.syncs: \"true\" in argocd-cmd-params-cm switches them on";
            findings.push(self.finding(Weight::Note, "progressive-syncs-off", message));
            return;
        }
        let message = "each Application gets the template and the commit of a rollout at its own step, and is done only at that \
                       commit; Argo CD writes the template to all at once, and any green is enough for it";
        findings.push(self.finding(Weight::Differs, "rolling-sync", message));
        let steps = strategy["rollingSync"]["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
        if steps.iter().any(|step| step["matchExpressions"].as_array().is_none_or(Vec::is_empty)) {
            let message = "a step without matchExpressions is of all Applications that no earlier step has";
            findings.push(self.finding(Weight::Note, "step-of-all", message));
        }
    }

    fn deletion(&self, findings: &mut Vec<Finding>) {
        let order = self.set["spec"]["strategy"]["deletionOrder"].as_str().unwrap_or_default();
        if order.eq_ignore_ascii_case("Reverse") {
            let message = "the order also holds for Applications that generators drop; Argo CD deletes those all at once";
            findings.push(self.finding(Weight::Differs, "deletion-order", message));
        } else if !order.is_empty() && order != "AllAtOnce" && order != "Custom" {
            let message = format!(
                "deletionOrder {order:?} is AllAtOnce to Argo CD; Baton deletes nothing until it is a known word"
            );
            findings.push(self.finding(Weight::Blocks, "deletion-order", message));
        }
    }

    /// Fields that Argo CD's controller does not know, for whoever thinks of going back.
    fn fields(&self, findings: &mut Vec<Finding>) {
        let (generators, strategy) = (&self.set["spec"]["generators"], &self.set["spec"]["strategy"]);
        let steps = strategy["rollingSync"]["steps"].as_array().into_iter().flatten();
        let mut own: Vec<&str> = Vec::new();
        own.extend(Some("deploymentStrategy").filter(|field| has_key(generators, field, 0)));
        own.extend(Some("deletionSync").filter(|field| !strategy[*field].is_null()));
        let of_step = |field: &str| steps.clone().any(|step| !step[field].is_null());
        own.extend(
            ["waitDuration", "progressDeadline", "maxFailures"].into_iter().filter(|field| of_step(field)),
        );
        if !own.is_empty() {
            let message = format!(
                "uses {}, which Argo CD's controller does not know and its definitions drop: see \"Feature by feature\" in \
                 docs/upgrade.md before going back",
                own.join(", ")
            );
            findings.push(self.finding(Weight::Note, "own-fields", message));
        }
        let is_custom =
            strategy["deletionOrder"].as_str().is_some_and(|order| order.eq_ignore_ascii_case("Custom"));
        if is_custom && !self.set["metadata"]["deletionTimestamp"].is_null() {
            let message = "is being deleted in an order that Argo CD's controller does not know: under that one all that is left \
                           goes at once, so let the deletion come to its end first";
            findings.push(self.finding(Weight::Note, "custom-deletion", message));
        }
    }

    /// Where a rollout stands, which is gone on with.
    fn standing(&self, findings: &mut Vec<Finding>) {
        if !self.settings.progressive_syncs {
            return;
        }
        let entries = self.set["status"]["applicationStatus"].as_array().into_iter().flatten();
        let under_way: Vec<String> = entries
            .filter(|entry| matches!(entry["status"].as_str(), Some("Pending" | "Progressing" | "Waiting")))
            .map(|entry| {
                let text = |field: &str| entry[field].as_str().unwrap_or_default();
                format!("{} ({}, step {})", text("application"), text("status"), text("step"))
            })
            .collect();
        if !under_way.is_empty() {
            const SHOWN: usize = 5;
            let more = under_way.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let message = format!(
                "a rollout is under way and will be gone on with; nothing that is done is synced again: {}{more}",
                under_way.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ")
            );
            findings.push(self.finding(Weight::Note, "under-way", message));
        }
        let name = &self.set["metadata"]["name"];
        let is_owned = |one: &&Value| {
            let owners = one["metadata"]["ownerReferences"].as_array().into_iter().flatten();
            one["metadata"]["namespace"] == self.set["metadata"]["namespace"]
                && owners.into_iter().any(|owner| owner["kind"] == "ApplicationSet" && owner["name"] == *name)
        };
        let going = self.installation.applications.iter().filter(is_owned);
        let going = going.filter(|one| !one["metadata"]["deletionTimestamp"].is_null()).count();
        if going > 0 {
            let message = format!("{going} of its Applications are being deleted, and are left to that");
            findings.push(self.finding(Weight::Note, "going", message));
        }
    }
}

/// Whether a key stands anywhere in a value. What is deeper than any generator is not looked at.
fn has_key(value: &Value, key: &str, depth: usize) -> bool {
    const DEEPEST: usize = 32;
    match value {
        _ if depth > DEEPEST => false,
        Value::Object(fields) => {
            fields.contains_key(key) || fields.values().any(|below| has_key(below, key, depth + 1))
        }
        Value::Array(items) => items.iter().any(|below| has_key(below, key, depth + 1)),
        _ => false,
    }
}
