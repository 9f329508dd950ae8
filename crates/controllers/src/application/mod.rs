//! The Application controller: from git to clusters, and back out again only with approval.
//!
//! Watches feed caches, changes wake Applications, workers make passes. What a pass decides is decided by pure
//! functions of `baton-sync`; this module reads for them and carries out what they say.
//!
//! # Guarantees
//! - One pass at a time works on an Application; compare, operation and deletion never race with each other.
//! - An operation's progress is written down before anything further is done, so a pass that dies loses nothing.
//! - A pass that finds nothing to do makes no request.

mod announce;
mod asks;
mod compare;
mod config;
mod delete;
mod feed;
mod guards;
mod known;
mod memory;
mod metrics;
mod operate;
mod projects;
mod reconcile;
mod refresh;
mod settings;
mod summary;
mod write;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use crate::guarded::Guarded;
use axum::Router;
use baton_api::names::secret::{TYPE_CLUSTER, TYPE_LABEL, TYPE_REPO_CREDS, TYPE_REPOSITORY};
use baton_api::{AppProject, Application};
use baton_clusters::{Changed, ChangedKind, Clusters, Connect};
use baton_manifests::Manifests;
use baton_sync::refresh::Level;
use futures::FutureExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::runtime::watcher::Config as WatchConfig;
use kube::{Api, Client};
use parking_lot::{Mutex, RwLock};
use prometheus_client::registry::Registry;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cache::{ObjectKey, Synced, follow};
use crate::client::Requests;
use crate::controller::{PassFailed, RunError, scoped};
use crate::events;
use crate::leader::Elector;
use crate::leading::{Lead, WhileLeading};
use crate::metrics::SharedRegistry;
use crate::namespaces::AllowedNamespaces;
use crate::queue::{Backoff, Queue, QueueMetrics};
use announce::Announcer;
use asks::Asks;
use config::Config;
use feed::{Feed, Names};
use known::Known;
use metrics::{ApplicationCollector, Metrics};
use reconcile::Reconciler;
pub use settings::{ApplicationSettings, Timing};

/// Lease that one controller holds; Argo CD's application controller has none, it shards.
const LEASE: &str = "baton-application-controller";
/// Who events say they come from, as with Argo CD.
const EVENT_SOURCE: &str = "argocd-application-controller";
/// Changes of managed objects come in bursts; one look serves them all.
const MANAGED_DELAY: Duration = Duration::from_millis(100);
/// The same for objects that only show in the tree.
const CHILD_DELAY: Duration = Duration::from_secs(1);

/// The Application controller. Clones share it.
#[derive(Clone)]
pub struct ApplicationController {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    allowed: AllowedNamespaces,
    settings: Arc<ApplicationSettings>,
    known: Arc<Known>,
    asks: Arc<Asks>,
    clusters: Clusters,
    reconciler: Reconciler,
    lead: Lead,
    registry: SharedRegistry,
    metrics: Metrics,
    synced: Caches,
    scribe: Mutex<Option<events::Scribe>>,
    /// A project is going, or an Application that may have used one.
    projects_changed: Notify,
}

/// Which caches were filled.
#[derive(Clone)]
struct Caches {
    applications: Synced,
    projects: Synced,
    secrets: Synced,
    config_maps: Synced,
}

// === impl ApplicationController ===

impl ApplicationController {
    /// A controller that does not run yet. Call it inside a tokio runtime.
    ///
    /// `client` reaches the cluster the Applications live in, which is also the destination
    /// `https://kubernetes.default.svc`; `connect` makes the clients of the others.
    ///
    /// # Errors
    /// If a setting cannot be used.
    pub fn new(
        client: Client,
        settings: ApplicationSettings,
        manifests: Manifests,
        connect: Arc<dyn Connect>,
    ) -> Result<ApplicationController, RunError> {
        let allowed = settings.allowed_namespaces()?;
        let requests = Requests::default();
        let (client, connect) = (requests.of_home(client), requests.of_others(connect));
        let settings = Arc::new(settings);
        let known = Arc::new(Known::new(Config::initial(&settings)));
        let mut registry = Registry::default();
        requests.registered(&mut registry);
        let lead = Lead::registered(&mut registry, "application", settings.leader_election);
        let queue_metrics = QueueMetrics::registered(&mut registry, "application", &lead);
        let queue = Queue::new(Backoff::default(), settings.seed, queue_metrics);
        let asks = Arc::new(Asks::new(queue));
        let metrics = Metrics::registered(&mut registry);
        let told = ApplicationCollector {
            known: known.clone(),
            labels: settings.metrics_labels.clone(),
            conditions: settings.metrics_conditions.clone(),
        };
        registry.register_collector(Box::new(WhileLeading { lead: lead.clone(), told }));
        let (recorder, scribe) = events::channel(client.clone(), settings.clock.clone(), EVENT_SOURCE);
        let clusters = Clusters::new(
            connect,
            client.clone(),
            known.config().cluster_settings(&settings.clock),
            wake_on_change(&known, &asks, &settings),
        );
        let reconciler = Reconciler::new(reconcile::Parts {
            client: client.clone(),
            settings: settings.clone(),
            known: known.clone(),
            asks: asks.clone(),
            clusters: clusters.clone(),
            manifests,
            announcer: Announcer::new(recorder),
            metrics: metrics.clone(),
        });
        let shared = Shared {
            client,
            allowed,
            settings,
            known,
            asks,
            clusters,
            reconciler,
            lead,
            registry: Arc::new(RwLock::new(registry)),
            metrics,
            synced: Caches::new(),
            scribe: Mutex::new(Some(scribe)),
            projects_changed: Notify::new(),
        };
        Ok(ApplicationController { shared: Arc::new(shared) })
    }

    /// `/metrics`, `/healthz` and `/readyz`.
    pub fn router(&self) -> Router {
        crate::metrics::router(vec![self.shared.registry.clone()], self.shared.synced.all())
    }

    /// Which caches were filled.
    pub(crate) fn caches(&self) -> Vec<Synced> {
        self.shared.synced.all()
    }

    /// Where measurements are kept, for others to add theirs.
    pub fn registry(&self) -> SharedRegistry {
        self.shared.registry.clone()
    }

    /// The clusters that are deployed to.
    pub fn clusters(&self) -> &Clusters {
        &self.shared.clusters
    }

    /// Asks for a pass over an Application now.
    pub fn wake(&self, application: &ObjectKey) {
        self.shared.asks.wake(application);
    }

    /// Whether every cache was filled and no Application waits for a pass that is due.
    pub fn is_idle(&self) -> bool {
        self.shared.synced.all().iter().all(Synced::is_synced) && self.shared.asks.queue.is_idle()
    }

    /// Runs until `shutdown` is done. Passes under way are then given up at their next wait; every write they made
    /// stands on its own.
    ///
    /// # Errors
    /// If a part of the controller ends by itself, or another controller may lead.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        let shared = &self.shared;
        let mut tasks = self.start_watches();
        if !shared.settings.leader_election {
            self.start_workers(&mut tasks);
            return self.until(shutdown, tasks).await;
        }
        let mut shutdown = std::pin::pin!(shutdown);
        let (namespace, clock) = (&shared.settings.namespace, shared.settings.clock.clone());
        let mut elector = Elector::new(&shared.client, namespace, LEASE, clock, shared.settings.lease);
        tokio::select! {
            biased;
            () = &mut shutdown => return self.until(std::future::ready(()), tasks).await,
            () = elector.win() => {}
        }
        tracing::info!("this Application controller leads");
        shared.lead.begin();
        self.start_workers(&mut tasks);
        let lost = tokio::select! {
            biased;
            ended = self.until(&mut shutdown, tasks) => {
                elector.release().await;
                return ended;
            }
            () = elector.hold() => RunError::LostLead,
        };
        shared.lead.end();
        shared.asks.queue.shut_down();
        Err(lost)
    }

    /// Keeps the caches until `shutdown` is done and makes no pass by itself; see [`ApplicationController::pass`].
    ///
    /// # Errors
    /// If a part of the controller ends by itself.
    pub async fn follow(&self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        let tasks = self.start_watches();
        self.until(shutdown, tasks).await
    }

    /// Makes one pass over an Application, once the caches are filled, and tells when it wants the next. Not to be
    /// called while [`ApplicationController::run`] makes passes over the same one.
    ///
    /// # Errors
    /// What kept the pass from its end; it is worth another try.
    pub async fn pass(&self, application: &ObjectKey) -> Result<Option<Duration>, PassFailed> {
        for synced in self.shared.synced.all() {
            synced.wait().await;
        }
        self.shared.reconciler.reconcile(application).await.map_err(|error| PassFailed(error.to_string()))
    }

    fn start_workers(&self, tasks: &mut JoinSet<&'static str>) {
        let shared = &self.shared;
        let workers = shared.settings.status_processors + shared.settings.operation_processors;
        for _ in 0..workers.max(1) {
            tasks.spawn(work(shared.clone()).map(|()| "worker"));
        }
        tasks.spawn(projects::mind(shared.clone()).map(|()| "minding of projects"));
    }

    async fn until(
        &self,
        shutdown: impl Future<Output = ()>,
        mut tasks: JoinSet<&'static str>,
    ) -> Result<(), RunError> {
        let ended = tokio::select! {
            biased;
            () = shutdown => None,
            ended = tasks.join_next() => ended,
        };
        self.shared.asks.queue.shut_down();
        tasks.shutdown().await;
        match ended {
            None => Ok(()),
            Some(Ok(what)) => Err(RunError::Ended(what)),
            Some(Err(_)) => Err(RunError::Ended("task")),
        }
    }

    fn start_watches(&self) -> JoinSet<&'static str> {
        let shared = &self.shared;
        let mut tasks: JoinSet<&'static str> = JoinSet::new();
        let scribe = shared.scribe.lock().take();
        if let Some(scribe) = scribe {
            tasks.spawn(scribe.run().map(|()| "event writer"));
        }
        let (client, own) = (&shared.client, shared.settings.namespace.as_str());
        let synced = &shared.synced;
        let feed = Feed(shared.clone());
        let applications: Api<Guarded<Application>> = scoped(client, shared.allowed.only());
        tasks.spawn(
            follow(
                "applications",
                applications,
                WatchConfig::default(),
                synced.applications.clone(),
                feed.clone(),
            )
            .map(|()| "watch of Applications"),
        );
        let kinds = format!("{TYPE_LABEL} in ({TYPE_CLUSTER},{TYPE_REPOSITORY},{TYPE_REPO_CREDS})");
        let secrets: Api<Secret> = Api::namespaced(client.clone(), own);
        tasks.spawn(
            follow(
                "secrets",
                secrets,
                WatchConfig::default().labels(&kinds),
                synced.secrets.clone(),
                Names::new(feed.clone()),
            )
            .map(|()| "watch of Secrets"),
        );
        let projects: Api<Guarded<AppProject>> = Api::namespaced(client.clone(), own);
        tasks.spawn(
            follow(
                "appprojects",
                projects,
                WatchConfig::default(),
                synced.projects.clone(),
                Names::new(feed.clone()),
            )
            .map(|()| "watch of AppProjects"),
        );
        let part_of_argocd = WatchConfig::default().labels("app.kubernetes.io/part-of=argocd");
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), own);
        tasks.spawn(
            follow("configmaps", maps, part_of_argocd, synced.config_maps.clone(), Names::new(feed))
                .map(|()| "watch of ConfigMaps"),
        );
        tasks
    }
}

/// Makes passes until the queue is shut down.
async fn work(shared: Arc<Shared>) {
    for synced in shared.synced.all() {
        synced.wait().await;
    }
    let queue = &shared.asks.queue;
    while let Some(work) = queue.next().await {
        let key = work.key();
        let began = Instant::now();
        // A pass that panics is a failed pass of one Application, not the end of the controller.
        let pass = AssertUnwindSafe(shared.reconciler.reconcile(key)).catch_unwind().await;
        if let Some(application) = shared.known.application(key) {
            shared.metrics.observe_pass(&application, began.elapsed());
        }
        match pass {
            Ok(Ok(look_again)) => {
                queue.forget(key);
                if let Some(delay) = look_again {
                    queue.add_after(key.clone(), delay);
                }
            }
            Ok(Err(error)) if error.is_overtaken() => {
                let delay = queue.retry(key.clone());
                tracing::debug!(application = %key, %error, retry_ms = delay.as_millis() as u64, "overtaken");
            }
            Ok(Err(error)) => {
                let delay = queue.retry(key.clone());
                tracing::warn!(application = %key, %error, retry_ms = delay.as_millis() as u64, "pass failed");
            }
            Err(_) => {
                let delay = queue.retry(key.clone());
                tracing::error!(application = %key, retry_ms = delay.as_millis() as u64, "pass panicked");
            }
        }
    }
}

/// Tells which Applications a change in a cluster wakes, and how closely they are to be looked at.
fn wake_on_change(
    known: &Arc<Known>,
    asks: &Arc<Asks>,
    settings: &Arc<ApplicationSettings>,
) -> Arc<dyn Fn(Changed) + Send + Sync> {
    let (known, asks, settings) = (known.clone(), asks.clone(), settings.clone());
    Arc::new(move |changed: Changed| match &changed.kind {
        ChangedKind::Managed { instance } => {
            if let Some(key) = named(&known, &settings, instance) {
                asks.compare(&key, Level::Recent, MANAGED_DELAY);
            }
        }
        ChangedKind::Child { instance } => {
            if let Some(key) = named(&known, &settings, instance) {
                asks.compare(&key, Level::Tree, CHILD_DELAY);
            }
        }
        ChangedKind::Connection => {
            for key in known.deployed_to(&changed.server) {
                asks.compare(&key, Level::Recent, Duration::ZERO);
            }
        }
    })
}

/// The Application that tracking calls by this name: the plain name in the own namespace, `<namespace>_<name>`
/// elsewhere.
fn named(known: &Known, settings: &ApplicationSettings, instance: &str) -> Option<ObjectKey> {
    let key = match instance.split_once('_') {
        Some((namespace, name)) => ObjectKey::new(namespace, name),
        None => ObjectKey::new(settings.namespace.as_str(), instance),
    };
    known.application(&key).map(|_| key)
}

// === impl Shared ===

impl Shared {
    fn set_clusters(&self) {
        let clusters = self.known.clusters.lock().values().cloned().collect();
        self.clusters.set(clusters);
    }

    fn configure_clusters(&self, config: &Config) {
        self.clusters.configure(config.cluster_settings(&self.settings.clock));
    }

    /// An Application is gone.
    fn forget(&self, key: &ObjectKey) {
        self.asks.take(key);
        self.reconciler.forget(key);
        self.projects_changed.notify_one();
    }
}

// === impl Caches ===

impl Caches {
    fn new() -> Caches {
        Caches {
            applications: Synced::new(),
            projects: Synced::new(),
            secrets: Synced::new(),
            config_maps: Synced::new(),
        }
    }

    fn all(&self) -> Vec<Synced> {
        let Caches { applications, projects, secrets, config_maps } = self.clone();
        vec![applications, projects, secrets, config_maps]
    }
}
