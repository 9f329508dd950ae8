//! All clusters.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::application::Destination;
use baton_api::names::IN_CLUSTER_SERVER;
use kube::Client;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::access::{ClusterAccess, ClusterConfig};
use crate::cluster::Cluster;
use crate::connect::Connect;
use crate::destinations::Destinations;
use crate::keeper::MakeClient;
use crate::settings::Settings;
use crate::shared::{Changed, OnChange};

/// The registered clusters. Clones are the same ones. A cluster is connected to when it is first needed.
#[derive(Clone)]
pub struct Clusters(Arc<Inner>);

struct Inner {
    connect: Arc<dyn Connect>,
    in_cluster: Client,
    settings: watch::Sender<Arc<Settings>>,
    on_change: OnChange,
    /// By server.
    clusters: Mutex<Registry>,
}

#[derive(Default)]
struct Registry {
    destinations: Destinations,
    clusters: BTreeMap<Arc<str>, Arc<Cluster>>,
}

impl Clusters {
    /// No cluster yet but the one `in_cluster` speaks to. `on_change` is told what happens to objects; it must be quick
    /// and must not call back.
    pub fn new(
        connect: Arc<dyn Connect>,
        in_cluster: Client,
        settings: Settings,
        on_change: Arc<dyn Fn(Changed) + Send + Sync>,
    ) -> Clusters {
        let settings = watch::Sender::new(Arc::new(settings));
        let clusters = Mutex::default();
        Clusters(Arc::new(Inner { connect, in_cluster, settings, on_change, clusters }))
    }

    /// Sets the registered clusters, in the order of their Secrets. One whose access changed is connected to anew, one
    /// that is gone is let go; the others are left as they are. Of several with one server the first counts.
    pub fn set(&self, clusters: Vec<ClusterAccess>) {
        let mut registry = self.0.clusters.lock();
        let mut before = std::mem::take(&mut registry.clusters);
        registry.destinations =
            Destinations::new(clusters.iter().map(|access| (access.name.as_str(), &*access.server)));
        for access in clusters {
            let server = access.server.clone();
            if registry.clusters.contains_key(&server) {
                continue;
            }
            let kept = before.remove(&server).filter(|cluster| *cluster.access() == access);
            let cluster = kept.unwrap_or_else(|| self.open(access));
            registry.clusters.insert(server, cluster);
        }
        // The local cluster needs no Secret; what is known of it outlives changes of the others.
        if let Some(local) = before.remove(IN_CLUSTER_SERVER)
            && *local.access() == ClusterAccess::in_cluster()
        {
            registry.clusters.entry(IN_CLUSTER_SERVER.into()).or_insert(local);
        }
        drop(registry);
        // Ending watches takes no lock of the registry.
        drop(before);
    }

    /// Forgets what is known of a cluster: it is read anew when it is next set or asked for.
    pub fn forget(&self, server: &str) {
        let gone = self.0.clusters.lock().clusters.remove(server);
        // Ending watches takes no lock of the registry.
        drop(gone);
    }

    /// Exchanges the settings. Watches list anew; what they know stays meanwhile.
    pub fn configure(&self, settings: Settings) {
        self.0.settings.send_replace(Arc::new(settings));
    }

    /// The cluster a destination means.
    ///
    /// # Errors
    /// Why it means none, in Argo CD's words.
    pub fn resolve(&self, destination: &Destination) -> Result<Arc<Cluster>, String> {
        let mut registry = self.0.clusters.lock();
        let enabled = self.0.settings.borrow().in_cluster_enabled;
        let server = registry.destinations.resolve(destination, enabled)?;
        let open = || self.open(ClusterAccess::in_cluster());
        Ok(registry.clusters.entry(server).or_insert_with(open).clone())
    }

    /// Every cluster that is registered or was ever meant.
    pub fn all(&self) -> Vec<Arc<Cluster>> {
        self.0.clusters.lock().clusters.values().cloned().collect()
    }

    fn open(&self, access: ClusterAccess) -> Arc<Cluster> {
        let inner = &self.0;
        let make_client: MakeClient = match is_local(&access) {
            true => {
                let client = inner.in_cluster.clone();
                Box::new(move || Ok(client.clone()))
            }
            false => {
                let (connect, access) = (inner.connect.clone(), access.clone());
                Box::new(move || connect.connect(&access))
            }
        };
        Arc::new(Cluster::new(access, inner.settings.subscribe(), inner.on_change.clone(), make_client))
    }
}

/// Whether it is the cluster of the controllers, reached as they themselves reach it.
fn is_local(access: &ClusterAccess) -> bool {
    let ClusterConfig { username, password, bearer_token, exec_provider_config, aws_auth_config, .. } =
        &access.config;
    &*access.server == IN_CLUSTER_SERVER
        && [username, password, bearer_token].iter().all(|text| text.is_empty())
        && exec_provider_config.is_none()
        && aws_auth_config.is_none()
}
