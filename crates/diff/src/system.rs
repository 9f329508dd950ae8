//! What the operator says for all Applications: keys of the ConfigMap `argocd-cm`.

use std::collections::BTreeMap;

use baton_api::application::ResourceIgnoreDifferences;
use baton_api::names::resource::INSTANCE_LABEL;
use baton_grammar::yaml;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::rules::{Rule, RuleError};

/// Key of each kind's rules, followed by `<group>_<Kind>`, by `<Kind>` alone or by `all`.
const RULES_PREFIX: &str = "resource.customizations.ignoreDifferences.";
/// Key of everything about kinds in one text, as it once was written.
const CUSTOMIZATIONS: &str = "resource.customizations";
const COMPARE_OPTIONS: &str = "resource.compareoptions";
const SENSITIVE_ANNOTATIONS: &str = "resource.sensitive.mask.annotations";
const INSTANCE_LABEL_KEY: &str = "application.instanceLabelKey";
const TRACKING_METHOD: &str = "application.resourceTrackingMethod";

/// How objects of every Application are compared.
#[derive(Debug, Clone)]
pub struct SystemRules {
    pub(crate) rules: Vec<Rule>,
    pub(crate) status_field: StatusField,
    pub(crate) ignore_aggregated_roles: bool,
    /// Label that tracked Applications before annotations did; `None` where it still does.
    pub(crate) migrated_label: Option<String>,
    /// Annotations whose values are hidden.
    pub(crate) sensitive_annotations: Vec<String>,
    /// The settings as they are written, for digests.
    written: BTreeMap<String, String>,
}

/// Whose status does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum StatusField {
    /// That of every object.
    #[default]
    All,
    /// That of CustomResourceDefinitions.
    Definitions,
    /// Nobody's.
    None,
}

// === impl SystemRules ===

impl SystemRules {
    /// Reads the settings that concern comparing.
    ///
    /// # Errors
    /// The first key whose value cannot be used.
    pub fn from_config_map(data: &BTreeMap<String, String>) -> Result<SystemRules, RuleError> {
        let mut system = SystemRules { written: written(data), ..SystemRules::default() };
        for (key, text) in data {
            if let Some(kind) = key.strip_prefix(RULES_PREFIX) {
                let (group, kind) = group_kind(key, kind)?;
                system.add(key, &group, &kind, text)?;
            }
        }
        if let Some(text) = data.get(CUSTOMIZATIONS) {
            system.add_legacy(text)?;
        }
        if let Some(text) = data.get(COMPARE_OPTIONS) {
            let options = read(COMPARE_OPTIONS, text)?;
            system.ignore_aggregated_roles = options["ignoreAggregatedRoles"].as_bool().unwrap_or_default();
            system.status_field = match &options["ignoreResourceStatusField"] {
                Value::String(word) if word == "crd" => StatusField::Definitions,
                Value::String(word) if ["none", "off", "false"].contains(&word.as_str()) => StatusField::None,
                // Without quotes `off` is a boolean.
                Value::Bool(false) => StatusField::None,
                _ => StatusField::All,
            };
        }
        let label = data.get(INSTANCE_LABEL_KEY).map(|label| label.trim()).filter(|label| !label.is_empty());
        let by_label = data.get(TRACKING_METHOD).is_some_and(|method| method.trim() == "label");
        system.migrated_label = (!by_label).then(|| label.unwrap_or(INSTANCE_LABEL).to_owned());
        let hidden = data.get(SENSITIVE_ANNOTATIONS).map(String::as_str).unwrap_or_default().split(',');
        system.sensitive_annotations =
            hidden.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Ok(system)
    }

    fn add(&mut self, key: &str, group: &str, kind: &str, text: &str) -> Result<(), RuleError> {
        let json = read(key, text)?;
        let rule = ResourceIgnoreDifferences {
            group: group.to_owned(),
            kind: kind.to_owned(),
            json_pointers: texts(&json["jsonPointers"]),
            jq_path_expressions: texts(&json["jqPathExpressions"]),
            managed_fields_managers: texts(&json["managedFieldsManagers"]),
            ..ResourceIgnoreDifferences::default()
        };
        self.rules.push(Rule::compile(&rule, key)?);
        Ok(())
    }

    fn add_legacy(&mut self, text: &str) -> Result<(), RuleError> {
        let all = read(CUSTOMIZATIONS, text)?;
        for (name, customization) in all.as_object().into_iter().flatten() {
            let Some(text) = customization["ignoreDifferences"].as_str() else { continue };
            let (group, kind) = name.split_once('/').unwrap_or(("", name));
            self.add(&format!("{CUSTOMIZATIONS}.{name}"), group, kind, text)?;
        }
        Ok(())
    }

    pub(crate) fn hash_into(&self, hash: &mut Sha256) {
        hash.update(serde_json::to_vec(&self.written).unwrap_or_default());
    }
}

impl Default for SystemRules {
    fn default() -> SystemRules {
        SystemRules {
            rules: Vec::new(),
            status_field: StatusField::All,
            ignore_aggregated_roles: false,
            migrated_label: Some(INSTANCE_LABEL.to_owned()),
            sensitive_annotations: Vec::new(),
            written: BTreeMap::new(),
        }
    }
}

/// The settings that are read here.
fn written(data: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let exact = [CUSTOMIZATIONS, COMPARE_OPTIONS, SENSITIVE_ANNOTATIONS, INSTANCE_LABEL_KEY, TRACKING_METHOD];
    let concerns = |key: &str| key.starts_with(RULES_PREFIX) || exact.contains(&key);
    let concerning = data.iter().filter(|(key, _)| concerns(key));
    concerning.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Group and kind of a key, as patterns.
fn group_kind(key: &str, text: &str) -> Result<(String, String), RuleError> {
    if text == "all" {
        return Ok(("*".to_owned(), "*".to_owned()));
    }
    let parts: Vec<&str> = text.split('_').collect();
    match parts.as_slice() {
        [kind] if !kind.is_empty() => Ok((String::new(), (*kind).to_owned())),
        [group, kind] => Ok(((*group).to_owned(), (*kind).to_owned())),
        _ => Err(RuleError::Setting {
            key: key.to_owned(),
            why: "must end in <group>_<Kind> or <Kind>".to_owned(),
        }),
    }
}

fn read(key: &str, text: &str) -> Result<Value, RuleError> {
    yaml::first(text).map_err(|why| RuleError::Setting { key: key.to_owned(), why: why.to_string() })
}

fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().map_or(&[][..], Vec::as_slice);
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rules, compare, subset};
    use serde_json::json;

    fn rules(settings: &[(&str, &str)]) -> Rules {
        let data = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Rules::compile(&[], &SystemRules::from_config_map(&data).expect("settings")).expect("rules")
    }

    #[test]
    fn the_status_counts_where_the_operator_says_so() {
        let object = |group: &str, kind: &str, status: i64| {
            json!({"apiVersion": format!("{group}/v1"), "kind": kind, "status": status, "metadata": {"managedFields": [
                {"manager": "argocd-controller", "operation": "Apply", "fieldsV1": {"f:status": {}}}]}})
        };
        let counts = |setting: &str, group: &str, kind: &str| {
            let settings = format!("ignoreResourceStatusField: {setting}");
            let rules = rules(&[(COMPARE_OPTIONS, &settings)]);
            compare(&json!({}), &object(group, kind, 1), &object(group, kind, 2), &rules, false).modified
        };
        for (setting, of_definitions, of_others) in [
            ("all", false, false),
            ("crd", false, true),
            ("none", true, true),
            ("off", true, true),
            ("'off'", true, true),
            ("false", true, true),
            ("whatever", false, false),
            ("", false, false),
        ] {
            let found = (
                counts(setting, "apiextensions.k8s.io", "CustomResourceDefinition"),
                counts(setting, "apps", "Deployment"),
            );
            assert_eq!(found, (of_definitions, of_others), "{setting}");
        }
    }

    #[test]
    fn the_annotation_is_filled_in_for_the_label_that_tracked_before() {
        let target = json!({"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": "shop:a/B:c/d"}}});
        let labelled = |label: &str| json!({"metadata": {"labels": {label: "shop"}}});
        let method = "application.resourceTrackingMethod";
        let key = "application.instanceLabelKey";
        for (settings, label, differs) in [
            (&[][..], "app.kubernetes.io/instance", false),
            (&[(method, "annotation+label")], "app.kubernetes.io/instance", false),
            (&[(method, "label")], "app.kubernetes.io/instance", true),
            (&[(key, "own/label")], "own/label", false),
            (&[(key, "own/label")], "app.kubernetes.io/instance", true),
        ] {
            let difference = subset(&target, &labelled(label), &rules(settings));
            assert_eq!(difference.modified, differs, "{settings:?} {label}");
        }
    }

    #[test]
    fn settings_of_other_parts_do_not_change_the_digest() {
        assert_eq!(rules(&[("url", "https://example.com")]).digest(), Rules::default().digest());
        assert_ne!(rules(&[(COMPARE_OPTIONS, "{}")]).digest(), Rules::default().digest());
    }
}
