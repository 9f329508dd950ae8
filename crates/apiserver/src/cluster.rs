//! One cluster: its store, what it serves, its clock, and the tasks that keep house.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_store::{CommitError, Key, Record, Store, Write};
use futures::FutureExt;
use jiff::Timestamp;
use parking_lot::RwLock;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::authorization::{Authority, Authorization};
use crate::catalog::{Catalog, Resource};
use crate::clock::{Clock, Identities};
use crate::failure::Failure;
use crate::housekeeping;
use crate::service_ips::ServiceIps;
use crate::write::WriteOptions;
use crate::{definitions, object};

/// How a cluster behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// How much history is kept.
    pub store: baton_store::Options,
    /// Where time comes from.
    pub clock: Clock,
    /// Makes uids and generated names repeatable.
    pub seed: Option<u64>,
    /// Moves workloads to their ready status; `None` leaves them as written.
    pub workloads: Option<baton_workloads::Settings>,
    /// How many Ready nodes the cluster starts with.
    pub nodes: usize,
    /// Who may do what.
    pub authorization: Authorization,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            store: baton_store::Options::default(),
            clock: Clock::System,
            seed: None,
            workloads: Some(baton_workloads::Settings::default()),
            nodes: 1,
            authorization: Authorization::default(),
        }
    }
}

/// A cluster that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store on disk cannot be read.
    #[error(transparent)]
    Store(#[from] baton_store::OpenError),
    /// The objects every cluster has could not be written.
    #[error("cannot write the cluster's first objects: {0}")]
    Bootstrap(String),
}

/// One embedded Kubernetes API. Clones share the same cluster; dropping the last one stops its housekeeping.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) core: Arc<Core>,
    /// Aborts the housekeeping tasks when the last handle goes.
    _tasks: Arc<JoinSet<()>>,
}

/// What requests and housekeeping share.
pub(crate) struct Core {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) identities: Identities,
    pub(crate) service_ips: ServiceIps,
    /// What decides who may do what, where anybody asks.
    pub(crate) authority: Option<Authority>,
    catalog: RwLock<Arc<Catalog>>,
    /// Set for good once the store refuses writes.
    failed: AtomicBool,
}

impl Cluster {
    /// A new cluster in memory. Call it inside a tokio runtime, which runs its housekeeping.
    pub fn memory(options: Options) -> Cluster {
        let store = Store::memory(options.store);
        Cluster::start(store, options)
            .now_or_never()
            .expect("an in-memory store never waits")
            .expect("an empty store takes the first objects")
    }

    /// A cluster whose objects live in `directory`, made if absent.
    pub async fn open(directory: &Path, options: Options) -> Result<Cluster, OpenError> {
        let store = Store::open(directory, options.store)?;
        Cluster::start(store, options).await
    }

    async fn start(store: Store, options: Options) -> Result<Cluster, OpenError> {
        let core = Arc::new(Core {
            store,
            clock: options.clock.clone(),
            identities: Identities::new(options.seed),
            service_ips: ServiceIps::default(),
            authority: options.authorization.authority(),
            catalog: RwLock::new(Arc::new(Catalog::built_in())),
            failed: AtomicBool::new(false),
        });
        core.restore();
        core.bootstrap(options.nodes).await.map_err(|failure| OpenError::Bootstrap(failure.message))?;
        let tasks = housekeeping::start(&core, options.workloads);
        Ok(Cluster { core, _tasks: Arc::new(tasks) })
    }

    /// The linear history of every write, for tests and checkers to read.
    pub fn store(&self) -> &Store {
        &self.core.store
    }

    /// The cluster's present time.
    pub fn now(&self) -> Timestamp {
        self.core.clock.now()
    }
}

impl Core {
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.read().clone()
    }

    /// Whether the store has stopped taking writes.
    pub(crate) fn store_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Serves what the store's definition of this name says now.
    pub(crate) fn refresh_definition(&self, name: &str) {
        let mut catalog = self.catalog.write();
        let key = Key::new(DEFINITIONS, "", name);
        let resources = self
            .store
            .get(&key)
            .map(|record| definitions::resources(&object::read(&record)))
            .unwrap_or_default();
        Arc::make_mut(&mut catalog).set_custom(name, resources);
    }

    /// Reads back what a store on disk knows: definitions and allocated addresses.
    fn restore(&self) {
        for record in self.everything(DEFINITIONS) {
            self.refresh_definition(&record.key.name);
        }
        for record in self.everything("services") {
            self.service_ips.reserve(&object::read(&record));
        }
    }

    /// Every object of a resource now.
    pub(crate) fn everything(&self, storage: &str) -> Vec<Arc<Record>> {
        self.store
            .list(storage, None, baton_store::Page::default())
            .map(|listing| listing.records)
            .expect("the present revision can always be listed")
    }

    pub(crate) async fn commit(&self, resource: &Resource, write: Write) -> Result<Arc<Record>, CommitError> {
        let outcome = self.store.commit(write).await;
        if matches!(outcome, Err(CommitError::Storage(_))) {
            self.failed.store(true, Ordering::Relaxed);
        }
        let record = outcome?;
        if &*resource.storage == DEFINITIONS {
            self.refresh_definition(&record.key.name);
        }
        if resource.group == baton_access::GROUP {
            self.forget_policy();
        }
        Ok(record)
    }

    /// The namespaces, the `kubernetes` Service and the Nodes that every cluster has.
    async fn bootstrap(&self, nodes: usize) -> Result<(), Failure> {
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            self.ensure("v1", "Namespace", json!({"metadata": {"name": name}})).await?;
        }
        let service = json!({
            "metadata": {"name": "kubernetes", "namespace": "default", "labels": {
                "component": "apiserver", "provider": "kubernetes",
            }},
            "spec": {"clusterIP": "10.96.0.1", "ports": [
                {"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443},
            ]},
        });
        self.ensure("v1", "Service", service).await?;
        for index in 1..=nodes {
            let name = format!("node-{index}");
            let node = json!({"metadata": {"name": name, "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
            }}});
            self.ensure("v1", "Node", node).await?;
        }
        match self.authority {
            Some(_) => self.bootstrap_rights().await,
            None => Ok(()),
        }
    }

    /// Creates an object unless one of its name is there.
    pub(crate) async fn ensure(
        &self,
        api_version: &str,
        kind: &str,
        mut object: Value,
    ) -> Result<(), Failure> {
        let resource = self
            .catalog()
            .find_kind(api_version, kind)
            .ok_or_else(|| Failure::internal(format!("{api_version} {kind} is not served")))?;
        let namespace = object::namespace(&object).to_owned();
        let key = Key::new(resource.storage.clone(), namespace.as_str(), object::name(&object));
        if self.store.get(&key).is_some() {
            return Ok(());
        }
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        let options = WriteOptions::internal("baton-apiserver");
        match self.create(&resource, &namespace, object, &options).await {
            Err(failure) if failure.reason == "AlreadyExists" => Ok(()),
            other => other.map(|_| ()),
        }
    }
}

/// The storage name of CustomResourceDefinitions.
pub(crate) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";
