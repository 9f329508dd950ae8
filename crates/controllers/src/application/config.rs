//! What argocd-cm and argocd-cmd-params-cm say, read once for all Applications.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_clusters::Exclusions;
use baton_diff::SystemRules;
use baton_grammar::labels::Selector;
use baton_health::Customizations;
use baton_sync::tracking::{Method, Tracking};
use serde_json::{Map, Value};

use super::known::{ARGOCD_CM, PARAMS_CM};
use super::settings::{ApplicationSettings, Maps, Timing};
use crate::clock::Clock;
use crate::digest::{Digest, Hasher};

/// The settings that hold now.
pub(super) struct Config {
    pub(super) tracking: Tracking,
    pub(super) customizations: Customizations,
    pub(super) rules: Arc<SystemRules>,
    pub(super) exclusions: Exclusions,
    pub(super) timing: Timing,
    pub(super) in_cluster_enabled: bool,
    /// Syncs are to run as accounts that projects name, which is not supported: nothing is done with more rights than
    /// the operator meant to give.
    pub(super) impersonation: bool,
    /// Why the settings cannot be used, where none ever could.
    pub(super) fault: Option<String>,
    pub(super) respect_rbac: bool,
    /// Projects whose rules hold for every project that the selector chooses.
    pub(super) global_projects: Vec<(String, Selector)>,
    /// Of the maps it was read from.
    pub(super) digest: Digest,
}

impl Config {
    /// Before any ConfigMap was seen.
    pub(super) fn initial(settings: &ApplicationSettings) -> Config {
        let none = BTreeMap::new();
        let (timing, _) = settings.timing(&Maps { main: &none, params: &none });
        Config {
            tracking: Tracking::default(),
            customizations: settings.customizations.clone(),
            rules: Arc::new(SystemRules::default()),
            exclusions: Exclusions::default(),
            timing,
            in_cluster_enabled: true,
            impersonation: false,
            fault: None,
            respect_rbac: false,
            global_projects: Vec::new(),
            digest: Hasher::new().finish(),
        }
    }

    /// The settings before, while new ones cannot be used. Where none ever could, nothing is done by guesswork: that
    /// might undo what a rule protects.
    pub(super) fn kept(settings: &ApplicationSettings, before: &Arc<Config>, error: String) -> Arc<Config> {
        let initial = Config::initial(settings);
        match before.fault.is_some() || before.digest == initial.digest {
            true => Arc::new(Config { fault: Some(error), ..initial }),
            false => before.clone(),
        }
    }

    /// Reads Argo CD's ConfigMaps.
    ///
    /// # Errors
    /// Rules or scripts that cannot be used: to go on without them would change what Applications look like.
    pub(super) fn read(
        settings: &ApplicationSettings,
        maps: &BTreeMap<String, BTreeMap<String, String>>,
    ) -> Result<Config, String> {
        let none = BTreeMap::new();
        let main = maps.get(ARGOCD_CM).unwrap_or(&none);
        let params = maps.get(PARAMS_CM).unwrap_or(&none);
        let (timing, faults) = settings.timing(&Maps { main, params });
        for fault in faults {
            tracing::warn!(%fault, "a setting cannot be read and counts as unset");
        }
        let text = |key: &str| main.get(key).map_or("", String::as_str);
        let mut tracking = Tracking {
            method: Method::read(text("application.resourceTrackingMethod")),
            installation: text("installationID").to_owned(),
            ..Tracking::default()
        };
        if let Some(label) = main.get("application.instanceLabelKey").filter(|label| !label.is_empty()) {
            tracking.label = label.clone();
        }
        let customizations = Customizations::from_config_map(main).map_err(|error| error.to_string())?;
        let rules = SystemRules::from_config_map(main).map_err(|error| error.to_string())?;
        let mut hasher = Hasher::new();
        for (key, value) in main.iter().chain(params) {
            hasher.str(key);
            hasher.str(value);
        }
        Ok(Config {
            tracking,
            customizations: customizations.with_fallback(settings.customizations.clone()),
            rules: Arc::new(rules),
            exclusions: Exclusions::read(main)?,
            timing,
            in_cluster_enabled: text("cluster.inClusterEnabled") != "false",
            impersonation: text("application.sync.impersonation.enabled") == "true",
            fault: None,
            respect_rbac: !matches!(text("resource.respectRBAC"), "" | "false" | "off"),
            global_projects: global_projects(text("globalProjects"))?,
            digest: hasher.finish(),
        })
    }

    /// What the watching of clusters needs of it.
    pub(super) fn cluster_settings(&self, clock: &Clock) -> baton_clusters::Settings {
        let clock = clock.clone();
        let tracking = self.tracking.clone();
        let customizations = self.customizations.clone();
        baton_clusters::Settings {
            instance_of: Arc::new(move |object| tracking.owner_of(object)),
            health: Arc::new(move |object| baton_health::assess(object, &customizations).ok().flatten()),
            exclusions: self.exclusions.clone(),
            respect_rbac: self.respect_rbac,
            in_cluster_enabled: self.in_cluster_enabled,
            now: Arc::new(move || clock.now()),
            ..baton_clusters::Settings::default()
        }
    }
}

fn global_projects(text: &str) -> Result<Vec<(String, Selector)>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let fault = |why: &dyn std::fmt::Display| format!("globalProjects: {why}");
    let list = baton_grammar::yaml::first(text).map_err(|error| fault(&error))?;
    let items = list.as_array().ok_or_else(|| fault(&"must be a list"))?;
    let read = |item: &Value| {
        let name = item["projectName"].as_str().unwrap_or_default().to_owned();
        let none = Value::Object(Map::new());
        let selector = item.get("labelSelector").unwrap_or(&none);
        Ok((name, Selector::from_object(selector).map_err(|error| fault(&error))?))
    };
    items.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(main: &[(&str, &str)]) -> Result<Config, String> {
        let main = main.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Config::read(&ApplicationSettings::new("argocd"), &BTreeMap::from([(ARGOCD_CM.to_owned(), main)]))
    }

    #[test]
    fn argocd_cm_says_how_objects_are_marked_and_which_projects_are_global() {
        let config = read(&[
            ("application.resourceTrackingMethod", "annotation+label"),
            ("application.instanceLabelKey", "example.com/instance"),
            ("installationID", "blue"),
            ("cluster.inClusterEnabled", "false"),
            ("globalProjects", "- projectName: rules\n  labelSelector: {matchLabels: {tier: prod}}\n"),
        ])
        .expect("settings");
        let tracking = Tracking {
            method: Method::AnnotationAndLabel,
            label: "example.com/instance".to_owned(),
            installation: "blue".to_owned(),
        };
        assert_eq!(config.tracking, tracking);
        assert!(!config.in_cluster_enabled && !config.impersonation);
        let (project, selector) = &config.global_projects[0];
        assert_eq!(project, "rules");
        assert!(selector.matches(|key| (key == "tier").then_some("prod")));
        assert!(!selector.matches(|_| None));
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_the_settings_before_stay() {
        for (key, value) in [
            ("globalProjects", "projectName: rules"),
            ("globalProjects", "- projectName: [\n"),
            ("resource.exclusions", "- apiGroups: {"),
        ] {
            assert!(read(&[(key, value)]).is_err(), "{key}");
        }
        let settings = ApplicationSettings::new("argocd");
        let initial = Arc::new(Config::initial(&settings));
        let faulty = Config::kept(&settings, &initial, "why".to_owned());
        assert_eq!(faulty.fault.as_deref(), Some("why"), "without any settings nothing is done");
        let good = Arc::new(read(&[("installationID", "blue")]).expect("settings"));
        let kept = Config::kept(&settings, &good, "why".to_owned());
        assert_eq!((kept.fault.as_deref(), kept.tracking.installation.as_str()), (None, "blue"));
    }
}
