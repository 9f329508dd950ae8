//! From watches to what is known, and from changes to the objects they wake.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::AppProject;
use baton_notifications::{Finding, Kind};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Resource, ResourceExt as _};

use super::Shared;
use super::known::Held;
use super::raw::Raw;
use crate::cache::{Follower, ObjectKey};
use crate::namespaces::AllowedNamespaces;

/// Feeds Applications, or ApplicationSets.
pub(super) struct Subjects {
    shared: Arc<Shared>,
    kind: Kind,
    allowed: AllowedNamespaces,
    seen: BTreeSet<ObjectKey>,
}

/// Feeds projects, and outboxes.
pub(super) struct Names {
    shared: Arc<Shared>,
    seen: BTreeSet<String>,
}

/// Feeds the ConfigMap and the Secret of the configuration, each watched by its name.
pub(super) struct Sources {
    shared: Arc<Shared>,
    is_there: bool,
}

// === impl Subjects ===

impl Subjects {
    pub(super) fn new(shared: Arc<Shared>, kind: Kind, allowed: AllowedNamespaces) -> Subjects {
        Subjects { shared, kind, allowed, seen: BTreeSet::new() }
    }

    fn gone(&self, key: &ObjectKey) {
        if let Some(about) = self.shared.known.remove_subject(self.kind, key) {
            self.shared.queue.add(about);
        }
    }
}

impl<K> Follower<Raw<K>> for Subjects
where
    Raw<K>: Resource,
{
    fn begin(&mut self) {
        self.seen.clear();
    }

    fn listed(&mut self, object: Raw<K>) {
        self.seen.insert(ObjectKey::of(object.meta()));
        self.applied(object);
    }

    fn complete(&mut self) {
        let known = self.shared.known.subject_keys(self.kind);
        known.iter().filter(|key| !self.seen.contains(*key)).for_each(|key| self.gone(key));
    }

    fn applied(&mut self, object: Raw<K>) {
        // What lives in other namespaces is never known, so that nobody is told of it.
        if !self.allowed.contains(object.meta().namespace.as_deref().unwrap_or_default()) {
            return;
        }
        let known = &self.shared.known;
        let held = Held::new(self.kind, &object.object, |held| known.is_told(held));
        let about = held.about.clone();
        if let Some(before) = known.put_subject(held) {
            self.shared.queue.add(before);
        }
        self.shared.queue.add(about);
    }

    fn deleted(&mut self, object: Raw<K>) {
        self.gone(&ObjectKey::of(object.meta()));
    }
}

// === impl Names ===

impl Names {
    pub(super) fn new(shared: Arc<Shared>) -> Names {
        Names { shared, seen: BTreeSet::new() }
    }

    fn project(&self, name: &str, project: Option<Raw<AppProject>>) {
        if self.shared.known.set_project(name, project.map(|project| project.object)) {
            self.shared.wake(Some(name));
        }
    }
}

impl Follower<Raw<AppProject>> for Names {
    fn begin(&mut self) {
        self.seen.clear();
    }

    fn listed(&mut self, project: Raw<AppProject>) {
        self.seen.insert(project.name_any());
        self.applied(project);
    }

    fn complete(&mut self) {
        let known = self.shared.known.project_names();
        known.iter().filter(|name| !self.seen.contains(*name)).for_each(|name| self.project(name, None));
    }

    fn applied(&mut self, project: Raw<AppProject>) {
        self.project(&project.name_any(), Some(project));
    }

    fn deleted(&mut self, project: Raw<AppProject>) {
        self.project(&project.name_any(), None);
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
        let known = self.shared.known.outbox_names();
        let gone = known.iter().filter(|name| !self.seen.contains(*name));
        gone.for_each(|name| self.shared.known.remove_outbox(name));
    }

    fn applied(&mut self, secret: Secret) {
        if let Some(about) = self.shared.known.put_outbox(&secret) {
            self.shared.queue.add(about);
        }
    }

    fn deleted(&mut self, secret: Secret) {
        self.shared.known.remove_outbox(&secret.name_any());
    }
}

// === impl Sources ===

impl Sources {
    pub(super) fn new(shared: Arc<Shared>) -> Sources {
        Sources { shared, is_there: false }
    }

    fn configured(&self, findings: Option<Vec<Finding>>) {
        let Some(findings) = findings else { return };
        self.shared.reconciler.announcer.findings(&self.shared.settings.namespace, &findings);
        self.shared.wake(None);
    }

    fn map(&self, data: BTreeMap<String, String>) {
        self.configured(self.shared.known.set_map(data));
    }

    fn secret(&self, data: BTreeMap<String, baton_hooks::Secret>) {
        self.configured(self.shared.known.set_secrets(data));
    }
}

impl Follower<ConfigMap> for Sources {
    fn begin(&mut self) {
        self.is_there = false;
    }

    fn listed(&mut self, map: ConfigMap) {
        self.is_there = true;
        self.applied(map);
    }

    fn complete(&mut self) {
        if !self.is_there {
            self.map(BTreeMap::new());
        }
    }

    fn applied(&mut self, map: ConfigMap) {
        self.map(map.data.unwrap_or_default());
    }

    fn deleted(&mut self, _: ConfigMap) {
        self.map(BTreeMap::new());
    }
}

impl Follower<Secret> for Sources {
    fn begin(&mut self) {
        self.is_there = false;
    }

    fn listed(&mut self, secret: Secret) {
        self.is_there = true;
        self.applied(secret);
    }

    fn complete(&mut self) {
        if !self.is_there {
            self.secret(BTreeMap::new());
        }
    }

    fn applied(&mut self, secret: Secret) {
        let texts = secret.data.into_iter().flatten().filter_map(|(key, bytes)| {
            // What is no text cannot stand in a configuration either.
            Some((key, baton_hooks::Secret::new(String::from_utf8(bytes.0).ok()?)))
        });
        self.secret(texts.collect());
    }

    fn deleted(&mut self, _: Secret) {
        self.secret(BTreeMap::new());
    }
}
