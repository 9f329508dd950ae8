//! Secrets that hold clusters and repositories, trimmed to what is needed of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_generators::ClusterSecret;
use baton_source::RepositorySecret;
use k8s_openapi::api::core::v1::Secret;

/// What changed: a cluster before and after. Repositories wake nobody; they are read when they are needed.
#[derive(Debug)]
pub(crate) struct ClusterChange {
    pub(crate) before: Option<ClusterSecret>,
    pub(crate) after: Option<ClusterSecret>,
}

/// Clusters without their credentials, and repositories with theirs.
#[derive(Default)]
pub(crate) struct Secrets {
    /// In the order of the Secrets' names; copied on a change only while a pass reads them.
    clusters: Arc<Vec<ClusterSecret>>,
    /// How often they changed.
    cluster_changes: u64,
    repositories: BTreeMap<String, RepositorySecret>,
    seen: Option<BTreeSet<String>>,
    repository_list: Option<Arc<Vec<RepositorySecret>>>,
}

impl Secrets {
    /// Every cluster, in the order of the Secrets' names.
    pub(crate) fn clusters(&self) -> Arc<Vec<ClusterSecret>> {
        self.clusters.clone()
    }

    /// A number that is another one after each change of a cluster.
    pub(crate) fn cluster_changes(&self) -> u64 {
        self.cluster_changes
    }

    /// Every repository and set of credentials, in the order of the Secrets' names.
    pub(crate) fn repositories(&mut self) -> Arc<Vec<RepositorySecret>> {
        let repositories = &self.repositories;
        let list = || Arc::new(repositories.values().cloned().collect());
        self.repository_list.get_or_insert_with(list).clone()
    }

    pub(crate) fn begin(&mut self) {
        self.seen = Some(BTreeSet::new());
    }

    pub(crate) fn listed(&mut self, secret: &Secret) -> Option<ClusterChange> {
        if let Some(seen) = &mut self.seen {
            seen.insert(secret.metadata.name.clone().unwrap_or_default());
        }
        self.applied(secret)
    }

    pub(crate) fn complete(&mut self) -> Vec<ClusterChange> {
        let Some(seen) = self.seen.take() else { return Vec::new() };
        let known = self.clusters.iter().map(|cluster| &cluster.secret_name).chain(self.repositories.keys());
        let lost: Vec<String> = known.filter(|name| !seen.contains(*name)).cloned().collect();
        lost.iter().filter_map(|name| self.remove(name)).collect()
    }

    pub(crate) fn applied(&mut self, secret: &Secret) -> Option<ClusterChange> {
        let name = secret.metadata.name.as_deref().unwrap_or_default();
        let (none, no_data) = (BTreeMap::new(), BTreeMap::new());
        let labels = secret.metadata.labels.as_ref().unwrap_or(&none);
        let annotations = secret.metadata.annotations.as_ref().unwrap_or(&none);
        let data = secret.data.as_ref().unwrap_or(&no_data);
        let data: BTreeMap<String, Vec<u8>> =
            data.iter().map(|(key, value)| (key.clone(), value.0.clone())).collect();
        match RepositorySecret::read(labels, &data, name) {
            Some(repository) => drop(self.repositories.insert(name.to_owned(), repository)),
            None => drop(self.repositories.remove(name)),
        }
        self.repository_list = None;
        let after = ClusterSecret::read(name, labels, annotations, &data);
        self.set_cluster(name, after)
    }

    pub(crate) fn deleted(&mut self, secret: &Secret) -> Option<ClusterChange> {
        self.remove(secret.metadata.name.as_deref().unwrap_or_default())
    }

    fn remove(&mut self, name: &str) -> Option<ClusterChange> {
        self.repositories.remove(name);
        self.repository_list = None;
        self.set_cluster(name, None)
    }

    fn set_cluster(&mut self, name: &str, after: Option<ClusterSecret>) -> Option<ClusterChange> {
        let place = self.clusters.binary_search_by(|cluster| cluster.secret_name.as_str().cmp(name));
        let before = place.ok().map(|place| self.clusters[place].clone());
        if before == after {
            return None;
        }
        self.cluster_changes += 1;
        let clusters = Arc::make_mut(&mut self.clusters);
        match (place, after.clone()) {
            (Ok(place), Some(cluster)) => clusters[place] = cluster,
            (Ok(place), None) => drop(clusters.remove(place)),
            (Err(place), Some(cluster)) => clusters.insert(place, cluster),
            (Err(_), None) => {}
        }
        Some(ClusterChange { before, after })
    }
}
