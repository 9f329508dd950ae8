//! The default catalog: triggers and templates under Argo CD's names, and those for approvals, rollouts and phases.
//!
//! It is a ConfigMap, made from what stands here ([`catalog`]), and is read by the same reader as anybody's. The texts
//! are for people who did not ask: what happened, to what, and what they can do.

mod applications;
mod sets;
mod template;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value as Json, json};

use crate::config::CONFIG_MAP;

/// A trigger of the catalog: conditions that each send one template.
struct Trigger {
    name: &'static str,
    conditions: &'static [Condition],
}

/// A condition of the catalog.
struct Condition {
    when: &'static str,
    once_per: &'static str,
    send: &'static str,
    description: &'static str,
    until_delivered: bool,
}

/// The catalog, as the ConfigMap of the configuration.
pub fn catalog() -> ConfigMap {
    let triggers = applications::TRIGGERS.iter().chain(sets::TRIGGERS);
    let templates = applications::TEMPLATES.iter().chain(sets::TEMPLATES);
    let triggers = triggers.map(|trigger| (format!("trigger.{}", trigger.name), yaml(&trigger.to_json())));
    let templates =
        templates.map(|template| (format!("template.{}", template.name), yaml(&template.to_json())));
    let labels = [("app.kubernetes.io/name", CONFIG_MAP), ("app.kubernetes.io/part-of", "argocd")];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(CONFIG_MAP.to_owned()),
            labels: Some(BTreeMap::from(labels)),
            ..ObjectMeta::default()
        },
        data: Some(triggers.chain(templates).collect()),
        ..ConfigMap::default()
    }
}

/// The catalog as an object that can be applied in a namespace. It has no service and no subscription, so that nobody is
/// told of anything yet.
pub fn object(namespace: &str) -> Json {
    let ConfigMap { metadata, data, .. } = catalog();
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": metadata.name, "namespace": namespace, "labels": metadata.labels},
        "data": data,
    })
}

fn yaml(value: &Json) -> String {
    baton_grammar::yaml::to_string(value)
}

// === impl Trigger ===

impl Trigger {
    fn to_json(&self) -> Json {
        let condition = |condition: &Condition| {
            let mut item = json!({
                "when": condition.when,
                "send": [condition.send],
                "description": condition.description,
            });
            if !condition.once_per.is_empty() {
                item["oncePer"] = condition.once_per.into();
            }
            if condition.until_delivered {
                item["untilDelivered"] = true.into();
            }
            item
        };
        self.conditions.iter().map(condition).collect()
    }
}
