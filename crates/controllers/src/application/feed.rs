//! From watches to caches, and from changes to the Applications they wake.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::guarded::Guarded;
use baton_api::names::DEFAULT_PROJECT;
use baton_api::names::secret::{TYPE_CLUSTER, TYPE_LABEL};
use baton_api::{AppProject, Application};
use baton_clusters::{BrokenCluster, ClusterAccess};
use baton_sync::refresh::Level;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Resource, ResourceExt};

use super::Shared;
use super::config::Config;
use super::known::Held;
use crate::cache::{Change, Follower, ObjectKey};

/// Feeds the cache of Applications.
#[derive(Clone)]
pub(super) struct Feed(pub(super) Arc<Shared>);

impl Feed {
    /// What lives in other namespaces is never known, so that nothing can act on it.
    fn may_know(&self, object: &impl Resource) -> bool {
        self.0.allowed.contains(object.meta().namespace.as_deref().unwrap_or_default())
    }

    fn application(&self, change: Option<Change<Held>>) {
        let Some(change) = change else { return };
        match &change.after {
            None => {
                self.0.forget(&change.key);
            }
            Some(Held::Unreadable { error, .. }) => {
                tracing::warn!(application = %change.key, %error, "the Application cannot be read and is left alone");
            }
            Some(Held::Whole(after)) => {
                let before = match &change.before {
                    Some(Held::Whole(before)) => Some(before),
                    _ => None,
                };
                if before.is_some_and(|before| before.spec.project != after.spec.project) {
                    self.0.projects_changed.notify_one();
                }
                if before.is_some_and(|before| !before.spec.auto_syncs() && after.spec.auto_syncs()) {
                    // What it differs in was found when nobody was to sync it.
                    self.0.asks.compare(&change.key, Level::Latest, Duration::ZERO);
                } else if before.is_none_or(|before| concerns_us(before, after)) {
                    self.0.asks.wake(&change.key);
                }
            }
        }
    }

    /// Everything is looked at again, not all at once.
    fn wake_all(&self, concerned: impl Fn(&Application) -> bool, level: Level) {
        let keys: Vec<ObjectKey> = {
            let applications = self.0.known.applications.lock();
            let concerned = applications.all().filter(|(_, held)| match held {
                Held::Whole(application) => concerned(application),
                Held::Unreadable { .. } => false,
            });
            concerned.map(|(key, _)| key.clone()).collect()
        };
        for key in keys {
            self.0.asks.compare(&key, level, Duration::ZERO);
        }
    }
}

/// Whether a change is more than an echo of what this controller wrote itself: that is in the cache already.
fn concerns_us(before: &Application, after: &Application) -> bool {
    let meta = |application: &Application| {
        let metadata = &application.metadata;
        (
            metadata.uid.clone(),
            metadata.deletion_timestamp.clone(),
            metadata.annotations.clone(),
            metadata.labels.clone(),
            metadata.finalizers.clone(),
        )
    };
    before.spec != after.spec
        || before.operation != after.operation
        || before.status != after.status
        || meta(before) != meta(after)
}

impl Follower<Guarded<Application>> for Feed {
    fn begin(&mut self) {
        self.0.known.applications.lock().begin();
    }

    fn listed(&mut self, application: Guarded<Application>) {
        if !self.may_know(&application) {
            return;
        }
        let change = self.0.known.applications.lock().listed(application);
        self.application(change);
    }

    fn complete(&mut self) {
        let changes = self.0.known.applications.lock().complete();
        changes.into_iter().for_each(|change| self.application(Some(change)));
    }

    fn applied(&mut self, application: Guarded<Application>) {
        if !self.may_know(&application) {
            return;
        }
        let change = self.0.known.applications.lock().applied(application);
        self.application(change);
    }

    fn deleted(&mut self, application: Guarded<Application>) {
        let change = self.0.known.applications.lock().deleted(application.meta());
        self.application(change);
    }
}

/// Feeds caches that need to know what a list did not show.
pub(super) struct Names {
    feed: Feed,
    seen: BTreeSet<String>,
}

impl Names {
    pub(super) fn new(feed: Feed) -> Names {
        Names { feed, seen: BTreeSet::new() }
    }

    fn project(&self, name: &str, project: Option<Guarded<AppProject>>) {
        let shared = &self.feed.0;
        let after = project.map(|project| match project.0 {
            Ok(project) => Ok(Arc::new(project)),
            Err(invalid) => Err(Arc::from(invalid.error)),
        });
        if matches!(&after, Some(Ok(project)) if project.metadata.deletion_timestamp.is_some()) {
            shared.projects_changed.notify_one();
        }
        let changed = {
            let mut projects = shared.known.projects.lock();
            let before = match after.clone() {
                Some(after) => projects.insert(name.to_owned(), after),
                None => projects.remove(name),
            };
            let rules = |project: &super::known::Project| match project {
                Ok(project) => Ok(project.spec.clone()),
                Err(error) => Err(error.clone()),
            };
            before.as_ref().map(rules) != after.as_ref().map(rules)
        };
        if changed {
            shared.known.forget_rules();
            let named = |application: &Application| {
                let project = application.spec.project.as_str();
                project == name || (project.is_empty() && name == DEFAULT_PROJECT)
            };
            self.feed.wake_all(named, Level::Recent);
        }
    }

    fn config_map(&self, name: &str, data: Option<BTreeMap<String, String>>) {
        let shared = &self.feed.0;
        let config = {
            let mut maps = shared.known.config_maps.lock();
            let before = maps.get(name).cloned();
            if before == data {
                return;
            }
            match data {
                Some(data) => drop(maps.insert(name.to_owned(), data)),
                None => drop(maps.remove(name)),
            }
            Config::read(&shared.settings, &maps)
        };
        let before = shared.known.config();
        let after = match config {
            Ok(config) => Arc::new(config),
            Err(error) => {
                tracing::error!(config_map = name, %error, "the settings cannot be used; the ones before stay");
                Config::kept(&shared.settings, &before, error)
            }
        };
        *shared.known.config.write() = after.clone();
        shared.known.forget_rules();
        shared.configure_clusters(&after);
        if before.digest != after.digest || before.fault != after.fault {
            self.feed.wake_all(|_| true, Level::Recent);
        }
    }

    fn secret(&self, secret: &Secret) {
        let shared = &self.feed.0;
        shared.known.secrets.lock().applied(secret);
        shared.known.forget_rules();
        let is_cluster = secret.labels().get(TYPE_LABEL).is_some_and(|kind| kind == TYPE_CLUSTER);
        let access = if is_cluster { ClusterAccess::read(secret) } else { None };
        let name = secret.name_any();
        let (access, broken) = match access {
            Some(Err(broken)) => {
                tracing::warn!(secret = name, error = %broken, "the cluster's Secret cannot be used");
                (None, Some(broken))
            }
            usable => (usable.and_then(Result::ok), None),
        };
        self.broken(&name, broken);
        self.cluster(&name, access);
    }

    /// Notes what is wrong with a cluster's Secret; those who wait for the cluster are to say so.
    fn broken(&self, secret: &str, fault: Option<BrokenCluster>) {
        let shared = &self.feed.0;
        let changed = {
            let mut all = shared.known.broken_clusters.lock();
            let before = match fault.clone() {
                Some(fault) => all.insert(secret.to_owned(), fault),
                None => all.remove(secret),
            };
            before != fault
        };
        if changed && shared.synced.secrets.is_synced() {
            self.feed.wake_all(|_| true, Level::Recent);
        }
    }

    fn cluster(&self, secret: &str, access: Option<ClusterAccess>) {
        let shared = &self.feed.0;
        {
            let mut clusters = shared.known.clusters.lock();
            if access.is_some() && clusters.get(secret) == access.as_ref() {
                return;
            }
            match access {
                Some(access) => drop(clusters.insert(secret.to_owned(), access)),
                None if clusters.remove(secret).is_none() => return,
                None => {}
            }
        }
        self.clusters_changed();
    }

    fn clusters_changed(&self) {
        let shared = &self.feed.0;
        // A part of the first list is not all clusters.
        if shared.synced.secrets.is_synced() {
            shared.set_clusters();
            self.feed.wake_all(|_| true, Level::Recent);
        }
    }
}

impl Follower<Secret> for Names {
    fn begin(&mut self) {
        self.seen.clear();
        self.feed.0.known.secrets.lock().begin();
    }

    fn listed(&mut self, secret: Secret) {
        self.seen.insert(secret.name_any());
        self.feed.0.known.secrets.lock().listed(&secret);
        self.secret(&secret);
    }

    fn complete(&mut self) {
        let shared = &self.feed.0;
        shared.known.secrets.lock().complete();
        shared.known.clusters.lock().retain(|name, _| self.seen.contains(name));
        shared.known.broken_clusters.lock().retain(|name, _| self.seen.contains(name));
        shared.known.forget_rules();
        shared.set_clusters();
        self.feed.wake_all(|_| true, Level::Recent);
    }

    fn applied(&mut self, secret: Secret) {
        self.secret(&secret);
    }

    fn deleted(&mut self, secret: Secret) {
        self.feed.0.known.secrets.lock().deleted(&secret);
        self.feed.0.known.forget_rules();
        self.broken(&secret.name_any(), None);
        self.cluster(&secret.name_any(), None);
    }
}

impl Follower<Guarded<AppProject>> for Names {
    fn begin(&mut self) {
        self.seen.clear();
    }

    fn listed(&mut self, project: Guarded<AppProject>) {
        self.seen.insert(project.name_any());
        self.applied(project);
    }

    fn complete(&mut self) {
        let known: Vec<String> = self.feed.0.known.projects.lock().keys().cloned().collect();
        known.iter().filter(|name| !self.seen.contains(*name)).for_each(|name| self.project(name, None));
    }

    fn applied(&mut self, project: Guarded<AppProject>) {
        self.project(&project.name_any(), Some(project));
    }

    fn deleted(&mut self, project: Guarded<AppProject>) {
        self.project(&project.name_any(), None);
    }
}

impl Follower<ConfigMap> for Names {
    fn begin(&mut self) {
        self.seen.clear();
    }

    fn listed(&mut self, map: ConfigMap) {
        self.seen.insert(map.name_any());
        self.applied(map);
    }

    fn complete(&mut self) {
        let known: Vec<String> = self.feed.0.known.config_maps.lock().keys().cloned().collect();
        known.iter().filter(|name| !self.seen.contains(*name)).for_each(|name| self.config_map(name, None));
    }

    fn applied(&mut self, map: ConfigMap) {
        self.config_map(&map.name_any(), Some(map.data.unwrap_or_default()));
    }

    fn deleted(&mut self, map: ConfigMap) {
        self.config_map(&map.name_any(), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn application(change: Value) -> Application {
        let mut object = json!({
            "metadata": {"name": "web", "uid": "u", "resourceVersion": "1", "annotations": {"a": "b"}},
            "spec": {"project": "default"}, "status": {"sync": {"status": "Synced"}},
        });
        for (key, value) in change.as_object().into_iter().flatten() {
            for (field, value) in value.as_object().into_iter().flatten() {
                object[key][field] = value.clone();
            }
        }
        serde_json::from_value(object).expect("an Application")
    }

    #[test]
    fn an_echo_of_our_own_write_wakes_nobody_and_everything_else_does() {
        let before = application(json!({}));
        assert!(!concerns_us(
            &before,
            &application(json!({"metadata": {"resourceVersion": "2", "generation": 7}}))
        ));
        for change in [
            json!({"spec": {"project": "other"}}),
            json!({"operation": {"sync": {}}}),
            json!({"status": {"sync": {"status": "Unknown"}}}),
            json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "hard"}}}),
            json!({"metadata": {"finalizers": ["x"]}}),
            json!({"metadata": {"labels": {"x": "y"}}}),
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            json!({"metadata": {"uid": "another"}}),
        ] {
            assert!(concerns_us(&before, &application(change.clone())), "{change}");
        }
    }
}
