//! The configuration: the ConfigMap `argocd-notifications-cm` and the Secret `argocd-notifications-secret`.
//!
//! Each key is read by itself. One that is wrong is reported and left out; the rest counts.

mod document;
mod secrets;
mod service;
mod subscription;
mod template;
mod trigger;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use baton_hooks::{Redactor, Secret};
use serde_json::{Map as JsonMap, Value as Json};

use crate::variables::Surroundings;
use document::Document;
pub use service::{
    AllowedRecipients, Card, EmailConfig, Patience, Security, ServiceConfig, ServiceKind, SlackConfig,
    TeamsConfig, WebhookConfig,
};
pub use subscription::DefaultSubscription;
pub use template::MessageTemplate;
pub use trigger::Condition;

/// Name of the ConfigMap.
pub const CONFIG_MAP: &str = "argocd-notifications-cm";
/// Name of the Secret.
pub const SECRET: &str = "argocd-notifications-secret";

/// Most keys of the ConfigMap that are read.
const MOST_KEYS: usize = 2048;

/// What is told, when, how and to whom.
#[derive(Default)]
pub struct Config {
    /// Services by name.
    pub services: BTreeMap<String, ServiceConfig>,
    /// Templates by name.
    pub templates: BTreeMap<String, MessageTemplate>,
    /// Triggers by name.
    pub triggers: BTreeMap<String, Vec<Condition>>,
    /// The triggers of a subscription that names none.
    pub default_triggers: Vec<String>,
    /// The same for subscriptions of a service.
    pub service_default_triggers: BTreeMap<String, Vec<String>>,
    /// Subscriptions of everybody.
    pub subscriptions: Vec<DefaultSubscription>,
    pub(crate) surroundings: Surroundings,
    pub(crate) redactor: Redactor,
}

/// Something wrong with the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The key of the ConfigMap.
    pub key: String,
    /// The line of the key's value, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong. It holds no value of the Secret.
    pub message: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It works, but hardly as meant.
    Warning,
    /// The key is left out.
    Error,
}

// === impl Config ===

impl Config {
    /// Reads the data of the ConfigMap and of the Secret. What is wrong is reported beside what is left.
    pub fn read(
        data: &BTreeMap<String, String>,
        secrets: &BTreeMap<String, Secret>,
    ) -> (Config, Vec<Finding>) {
        let mut config =
            Config { redactor: Redactor::new(secrets.values().map(Secret::expose)), ..Config::default() };
        let mut findings = Vec::new();
        let mut context = JsonMap::new();
        for (key, text) in data.iter().take(MOST_KEYS) {
            if let Err(finding) = config.read_key(key, text, secrets, &mut context, &mut findings) {
                findings.push(finding);
            }
        }
        config.surroundings = Surroundings::new(context, secrets);
        config.check_references(data, &mut findings);
        for finding in &mut findings {
            finding.message = config.redactor.redact(&finding.message);
        }
        (config, findings)
    }

    fn read_key(
        &mut self,
        key: &str,
        text: &str,
        secrets: &BTreeMap<String, Secret>,
        context: &mut JsonMap<String, Json>,
        findings: &mut Vec<Finding>,
    ) -> Result<(), Finding> {
        let (group, name) = key.split_once('.').unwrap_or((key, ""));
        match (group, name) {
            ("service", name) if !name.is_empty() => {
                let mut document = Document::read(key, text)?;
                let mut missing = Vec::new();
                secrets::replace(&mut document.value, secrets, &mut missing);
                for name in missing {
                    findings.push(document.warning("", format!("${name} is not in the Secret {SECRET}")));
                }
                let (kind, name) = match name.split('.').collect::<Vec<_>>().as_slice() {
                    [kind] => (*kind, *kind),
                    [kind, name] => (*kind, *name),
                    _ => {
                        return Err(
                            document.error("", "the key must be service.<type> or service.<type>.<name>")
                        );
                    }
                };
                self.services.insert(name.to_owned(), service::service(&document, kind)?);
            }
            ("template", name) if !name.is_empty() => {
                let document = Document::read(key, text)?;
                let template = template::message_template(&document, findings)?;
                self.templates.insert(name.to_owned(), template);
            }
            ("trigger", name) if !name.is_empty() => {
                let document = Document::read(key, text)?;
                self.triggers.insert(name.to_owned(), trigger::conditions(&document)?);
            }
            ("defaultTriggers", "") => self.default_triggers = Document::read(key, text)?.texts()?,
            ("defaultTriggers", service) => {
                let triggers = Document::read(key, text)?.texts()?;
                self.service_default_triggers.insert(service.to_owned(), triggers);
            }
            ("subscriptions", "") => {
                let document = Document::read(key, text)?;
                self.subscriptions = subscription::subscriptions(&document, findings)?;
            }
            ("context", "") => {
                let document = Document::read(key, text)?;
                if !document.value.is_null() {
                    context.clone_from(document.map()?);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Names that lead nowhere.
    fn check_references(&self, data: &BTreeMap<String, String>, findings: &mut Vec<Finding>) {
        let mut warn = |key: String, message: String| {
            findings.push(Finding { key, line: 1, column: 1, severity: Severity::Warning, message });
        };
        for (trigger, conditions) in &self.triggers {
            for template in conditions.iter().flat_map(|condition| &condition.send) {
                if !self.templates.contains_key(template) {
                    warn(format!("trigger.{trigger}"), format!("there is no template {template}"));
                }
            }
        }
        let defaults = self.default_triggers.iter().map(|trigger| ("defaultTriggers".to_owned(), trigger));
        let of_services = self.service_default_triggers.iter().flat_map(|(service, triggers)| {
            triggers.iter().map(move |trigger| (format!("defaultTriggers.{service}"), trigger))
        });
        for (key, trigger) in defaults.chain(of_services) {
            if !self.triggers.contains_key(trigger) {
                warn(key, format!("there is no trigger {trigger}"));
            }
        }
        if data.len() > MOST_KEYS {
            warn(String::new(), format!("only the first {MOST_KEYS} keys are read"));
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("services", &self.services)
            .field("templates", &self.templates.keys())
            .field("triggers", &self.triggers.keys())
            .field("subscriptions", &self.subscriptions)
            .finish_non_exhaustive()
    }
}

// === impl Finding ===

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{CONFIG_MAP}: {}, line {}, column {}: {}", self.key, self.line, self.column, self.message)
    }
}
