//! From watches to caches, and from changes to the sets they wake.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::guarded::Guarded;
use baton_api::project::SyncWindow;
use baton_api::{AppProject, ApplicationSet};
use baton_generators::demands_signatures;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Resource, ResourceExt};

use super::Shared;
use crate::application_set::{application_changed, secret_data, set_changed};
use crate::cache::{ApplicationChange, ClusterChange, Follower, ObjectKey, Observed, SetChange};

/// How late a set may list how one of its Applications is.
const LISTED_AFTER: Duration = Duration::from_secs(30);

/// Feeds the caches and wakes the sets that a change concerns.
#[derive(Clone)]
pub(super) struct Feed(pub(super) Arc<Shared>);

impl Feed {
    /// What lives in other namespaces is never known, so that nothing can act on it.
    fn may_know(&self, object: &impl Resource) -> bool {
        self.0.allowed.contains(object.meta().namespace.as_deref().unwrap_or_default())
    }

    fn wake(&self, keys: impl IntoIterator<Item = ObjectKey>) {
        keys.into_iter().for_each(|key| self.0.queue.add(key));
    }

    fn set(&self, change: Option<SetChange>) {
        let Some(change) = change else { return };
        self.0.rollout.set_changed(&change.key, change.before.as_ref(), change.after.as_ref());
        if set_changed(&change) {
            self.wake([change.key]);
        }
    }

    fn applications(&self, changes: Vec<ApplicationChange>) {
        let owners = changes.iter().filter_map(application_changed);
        self.wake(owners.cloned());
        // What a set lists of its Applications follows them, but not each of their steps.
        for change in &changes {
            if let ApplicationChange::Status { owner } = change {
                self.0.queue.add_after(owner.clone(), LISTED_AFTER);
            }
        }
    }

    /// Shows the rollout side an Application; `before` is the set it belonged to.
    fn show(&self, application: &mut Observed, before: Option<Arc<str>>) {
        let inbox = &self.0.rollout.inbox;
        let metadata = &application.metadata;
        let set = |name: &Arc<str>| ObjectKey {
            namespace: metadata.namespace.as_deref().unwrap_or_default().into(),
            name: name.clone(),
        };
        if let Some(before) = before.filter(|before| Some(before) != application.owner.as_ref()) {
            let (name, uid) = (metadata.name.as_deref(), metadata.uid.as_deref());
            inbox.gone(&set(&before), name.unwrap_or_default(), uid.unwrap_or_default());
        }
        if let (Some(owner), Some(sight)) = (&application.owner, application.sight.take()) {
            inbox.seen(&set(owner), sight);
        }
    }

    fn cluster(&self, change: Option<ClusterChange>) {
        if let Some(change) = change {
            self.wake(self.0.reconciler.touched_by_cluster(&change));
        }
    }
}

impl Follower<Guarded<ApplicationSet>> for Feed {
    fn begin(&mut self) {
        self.0.known.sets.lock().begin();
    }

    fn listed(&mut self, set: Guarded<ApplicationSet>) {
        if !self.may_know(&set) {
            return;
        }
        let change = self.0.known.sets.lock().listed(set);
        self.set(change);
    }

    fn complete(&mut self) {
        let changes = self.0.known.sets.lock().complete();
        changes.into_iter().for_each(|change| self.set(Some(change)));
    }

    fn applied(&mut self, set: Guarded<ApplicationSet>) {
        if !self.may_know(&set) {
            return;
        }
        let change = self.0.known.sets.lock().applied(set);
        self.set(change);
    }

    fn deleted(&mut self, set: Guarded<ApplicationSet>) {
        let change = self.0.known.sets.lock().deleted(set.meta());
        self.set(change);
    }
}

impl Follower<Observed> for Feed {
    fn begin(&mut self) {
        self.0.known.applications.lock().begin();
    }

    fn listed(&mut self, mut application: Observed) {
        if !self.may_know(&application) {
            return;
        }
        self.show(&mut application, None);
        let changes = self.0.known.applications.lock().listed(application);
        self.applications(changes);
    }

    fn complete(&mut self) {
        let changes = self.0.known.applications.lock().complete();
        self.applications(changes);
        self.0.rollout.inbox.interrupted();
    }

    fn applied(&mut self, mut application: Observed) {
        if !self.may_know(&application) {
            return;
        }
        let before = self.0.known.applications.lock().owner_of(&ObjectKey::of(&application.metadata));
        self.show(&mut application, before);
        let changes = self.0.known.applications.lock().applied(application);
        self.applications(changes);
    }

    fn deleted(&mut self, application: Observed) {
        if let Some(owner) = &application.owner {
            let key = ObjectKey::of(&application.metadata);
            let set = ObjectKey { namespace: key.namespace, name: owner.clone() };
            let uid = application.metadata.uid.as_deref().unwrap_or_default();
            self.0.rollout.inbox.gone(&set, &key.name, uid);
        }
        let changes = self.0.known.applications.lock().deleted(&application);
        self.applications(changes);
    }
}

impl Follower<Secret> for Feed {
    fn begin(&mut self) {
        self.0.known.secrets.lock().begin();
    }

    fn listed(&mut self, secret: Secret) {
        let change = self.0.known.secrets.lock().listed(&secret);
        self.cluster(change);
    }

    fn complete(&mut self) {
        let changes = self.0.known.secrets.lock().complete();
        changes.into_iter().for_each(|change| self.cluster(Some(change)));
    }

    fn applied(&mut self, secret: Secret) {
        let change = self.0.known.secrets.lock().applied(&secret);
        self.cluster(change);
    }

    fn deleted(&mut self, secret: Secret) {
        let change = self.0.known.secrets.lock().deleted(&secret);
        self.cluster(change);
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

    /// What a project lets be synced when.
    fn windows(&self, name: &str, windows: Vec<SyncWindow>) {
        if self.feed.0.known.set_windows(name, windows) {
            self.feed.0.rollout.windows_changed();
        }
    }

    /// A project that exists, and whether it takes only signed commits; or one that is gone.
    fn project(&self, name: &str, signed: Option<bool>) {
        let shared = &self.feed.0;
        let before = match signed {
            Some(signed) => shared.known.projects.lock().insert(name.to_owned(), signed),
            None => shared.known.projects.lock().remove(name),
        };
        if before != signed {
            self.feed.wake(shared.reconciler.touched_by_project(name));
        }
    }

    fn config_map(&self, name: &str, data: Option<BTreeMap<String, String>>) {
        let shared = &self.feed.0;
        let before = shared.known.in_cluster_enabled();
        {
            let mut maps = shared.known.config_maps.lock();
            match data {
                Some(data) => drop(maps.insert(name.to_owned(), data)),
                None => drop(maps.remove(name)),
            }
        }
        if before != shared.known.in_cluster_enabled() {
            self.feed.wake(shared.reconciler.waiting_for_clusters());
        }
    }
}

impl Follower<Secret> for Names {
    fn begin(&mut self) {
        self.seen.clear();
    }

    fn listed(&mut self, secret: Secret) {
        self.seen.insert(secret.name_any());
        self.applied(secret);
    }

    fn complete(&mut self) {
        self.feed.0.known.own_secrets.lock().retain(|name, _| self.seen.contains(name));
    }

    fn applied(&mut self, secret: Secret) {
        self.feed.0.known.own_secrets.lock().insert(secret.name_any(), secret_data(secret));
    }

    fn deleted(&mut self, secret: Secret) {
        self.feed.0.known.own_secrets.lock().remove(&secret.name_any());
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
        let known = self.feed.0.known.projects.lock().clone();
        for name in known.keys().filter(|name| !self.seen.contains(*name)) {
            self.windows(name, Vec::new());
            self.project(name, None);
        }
    }

    fn applied(&mut self, project: Guarded<AppProject>) {
        // Of a project that cannot be read the strictest is believed.
        let signed = project.0.as_ref().map_or(true, |project| demands_signatures(&project.spec));
        let windows = project.0.as_ref().map(|project| project.spec.sync_windows.clone());
        self.windows(&project.name_any(), windows.unwrap_or_default());
        self.project(&project.name_any(), Some(signed));
    }

    fn deleted(&mut self, project: Guarded<AppProject>) {
        self.windows(&project.name_any(), Vec::new());
        self.project(&project.name_any(), None);
    }
}

impl Follower<ConfigMap> for Names {
    fn begin(&mut self) {
        self.seen.clear();
    }

    fn listed(&mut self, map: ConfigMap) {
        self.seen.insert(map.name_any());
        self.config_map(&map.name_any(), Some(map.data.unwrap_or_default()));
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
