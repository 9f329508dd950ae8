//! All caches together.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::project::SyncWindow;
use baton_generators::SecretData;
use parking_lot::Mutex;

use crate::webhook::WebhookSecrets;

use super::{Applications, Secrets, Sets};

/// Argo CD's main settings.
const ARGOCD_CM: &str = "argocd-cm";
/// Argo CD's main secrets.
const ARGOCD_SECRET: &str = "argocd-secret";

/// What is known of the cluster. Locks are held for moments, never across a wait.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) sets: Mutex<Sets>,
    pub(crate) applications: Mutex<Applications>,
    pub(crate) secrets: Mutex<Secrets>,
    /// Projects by name, and whether each takes only signed commits.
    pub(crate) projects: Mutex<BTreeMap<String, bool>>,
    /// Sync windows of projects that have any, by name.
    pub(crate) windows: Mutex<Arc<BTreeMap<String, Vec<SyncWindow>>>>,
    /// Argo CD's own ConfigMaps, by name.
    pub(crate) config_maps: Mutex<BTreeMap<String, BTreeMap<String, String>>>,
    /// Argo CD's own Secrets, by name.
    pub(crate) own_secrets: Mutex<BTreeMap<String, SecretData>>,
}

impl Known {
    /// A project has these sync windows now. Tells whether it had others.
    pub(crate) fn set_windows(&self, project: &str, windows: Vec<SyncWindow>) -> bool {
        let mut all = self.windows.lock();
        if all.get(project).map(Vec::as_slice).unwrap_or_default() == windows {
            return false;
        }
        let all = Arc::make_mut(&mut all);
        match windows.is_empty() {
            true => drop(all.remove(project)),
            false => drop(all.insert(project.to_owned(), windows)),
        }
        true
    }

    /// Whether Applications may be deployed to the cluster Argo CD runs in.
    pub(crate) fn in_cluster_enabled(&self) -> bool {
        let maps = self.config_maps.lock();
        let value = maps.get(ARGOCD_CM).and_then(|data| data.get("cluster.inClusterEnabled"));
        value.is_none_or(|value| value != "false")
    }

    /// What webhooks are signed with.
    pub(crate) fn webhook_secrets(&self) -> WebhookSecrets {
        let secrets = self.own_secrets.lock();
        let Some(main) = secrets.get(ARGOCD_SECRET) else { return WebhookSecrets::default() };
        WebhookSecrets::read(&main.data, |name, key| secrets.get(name)?.data.get(key).cloned())
    }
}
