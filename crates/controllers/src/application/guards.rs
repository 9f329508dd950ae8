//! What a namespace holds that must not go with it unapproved.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::object::{Object, ResourceKey};
use baton_clusters::{Cluster, ClusterError};
use baton_sync::approval;
use baton_sync::options::Defaults;
use serde_json::Value;

use super::config::Config;
use super::reconcile::Reconciler;

/// The guarded objects of namespaces that are about to be deleted, read past every cache.
pub(super) struct Guards(BTreeMap<String, Vec<(ResourceKey, Arc<Value>)>>);

impl Guards {
    /// The guarded objects of a namespace; of one that was not searched, those that are known.
    pub(super) fn inside(&self, cluster: &Cluster, namespace: &str) -> Vec<(ResourceKey, Arc<Value>)> {
        match self.0.get(namespace) {
            Some(guarded) => guarded.clone(),
            None => cluster.guarded_in_namespace(namespace),
        }
    }
}

impl Reconciler {
    /// Searches those of these objects that are namespaces for what they hold.
    ///
    /// # Errors
    /// If anything in them could not be read: then nobody knows what would be lost.
    pub(super) async fn guards<'v>(
        &self,
        cluster: &Cluster,
        config: &Config,
        going: impl Iterator<Item = &'v Value> + Send,
    ) -> Result<Guards, ClusterError> {
        let namespaces: BTreeSet<String> = going
            .filter(|object| object.kind() == "Namespace" && object.group().is_empty())
            .map(|object| object.name().to_owned())
            .collect();
        let mut found = BTreeMap::new();
        for namespace in namespaces {
            let objects = cluster.search_namespace(&namespace).await?;
            let guarded = objects.into_iter().filter(|object| self.is_guarded(config, object));
            let guarded = guarded.map(|object| (object.key(), Arc::new(object))).collect();
            found.insert(namespace, guarded);
        }
        Ok(Guards(found))
    }

    /// Whether an object asks for approval by its own word or by that of its Application.
    fn is_guarded(&self, config: &Config, object: &Value) -> bool {
        let owner = config.tracking.owner_of(object);
        let owner = owner.and_then(|instance| super::named(&self.known, &self.settings, &instance));
        match owner.and_then(|key| self.known.application(&key)) {
            Some(owner) => approval::guarded(Some(object), None, &approval::spec_defaults(&owner)),
            None => approval::guarded(Some(object), None, &Defaults { prune: None, delete: None }),
        }
    }
}
