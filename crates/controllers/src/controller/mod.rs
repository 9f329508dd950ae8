//! Running the ApplicationSet controller: watches feed caches, changes wake sets, workers make passes.

mod feed;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use crate::guarded::Guarded;
use axum::Router;
use baton_api::names::APPLICATION_SET_LEASE;
use baton_api::names::baton::{GUARD_SUFFIX, SET_LABEL, WITNESS_SUFFIX};
use baton_api::names::secret::{TYPE_CLUSTER, TYPE_LABEL, TYPE_REPO_CREDS, TYPE_REPOSITORY};
use baton_api::{AppProject, ApplicationSet};
use baton_generators::Generators;
use futures::FutureExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::ListParams;
use kube::runtime::watcher::Config;
use kube::{Api, Client, ResourceExt as _};
use parking_lot::RwLock;
use prometheus_client::registry::Registry;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::application_set::Reconciler;
use crate::cache::{Known, ObjectKey, Observed, Synced, follow};
use crate::client::Requests;
use crate::events;
use crate::leader::Elector;
use crate::leading::Lead;
use crate::metrics::{self, PassMetrics, SharedRegistry};
use crate::namespaces::AllowedNamespaces;
use crate::phases::{CallMetrics, Caller, HookCaller, PhaseParts, Phases};
use crate::queue::{Backoff, Queue, QueueMetrics};
use crate::rollout::{self, Board, Resolver, RolloutMetrics};
use crate::settings::{Settings, SettingsError};
use crate::webhook::{Candidate, Refresh, WebhookSecrets};
use feed::{Feed, Names};

/// Who events say they come from.
const EVENT_SOURCE: &str = "applicationset-controller";

/// Why a controller cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A setting cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The file of further certificate authorities for hooks cannot be used.
    #[error("cannot use the certificate authorities for hooks: {0}")]
    Hooks(#[source] std::io::Error),
    /// The file of further certificate authorities for notifications cannot be used.
    #[error("cannot use the certificate authorities for notifications: {0}")]
    Notifications(#[source] std::io::Error),
    /// This controller led and no longer knows that no other does.
    #[error("another controller may lead: the lease could not be renewed")]
    LostLead,
    /// A task of the controller ended, which none does by itself.
    #[error("the controller's {0} ended unexpectedly")]
    Ended(&'static str),
}

/// A pass that did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PassFailed(pub(crate) String);

/// The ApplicationSet controller. Clones share it.
#[derive(Clone)]
pub struct Controller {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    allowed: AllowedNamespaces,
    settings: Arc<Settings>,
    known: Arc<Known>,
    queue: Queue<ObjectKey>,
    reconciler: Reconciler,
    rollout: rollout::Reconciler,
    lead: Lead,
    registry: SharedRegistry,
    passes: PassMetrics,
    synced: Caches,
    scribe: parking_lot::Mutex<Option<events::Scribe>>,
}

/// Which caches were filled.
#[derive(Clone)]
struct Caches {
    sets: Synced,
    applications: Synced,
    secrets: Synced,
    projects: Synced,
    config_maps: Synced,
    own_secrets: Synced,
}

/// Runs the ApplicationSet controller until `shutdown` is done.
///
/// # Errors
/// If a setting cannot be used. Trouble with the Kubernetes API is no error: it is tried again.
pub async fn run(
    client: Client,
    settings: Settings,
    generators: Generators,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    Controller::new(client, settings, generators)?.run(shutdown).await
}

// === impl Controller ===

impl Controller {
    /// A controller that does not run yet. Call it inside a tokio runtime.
    ///
    /// # Errors
    /// If a setting cannot be used.
    pub fn new(client: Client, settings: Settings, generators: Generators) -> Result<Controller, RunError> {
        let requests = Requests::default();
        let client = requests.of_home(client);
        let caller = HookCaller::new(client.clone(), &settings.hooks, settings.clock.clone());
        let caller = Arc::new(caller.map_err(RunError::Hooks)?);
        Controller::assembled(client, settings, generators, caller, &requests)
    }

    /// A controller whose hooks and checks are called by somebody else.
    ///
    /// # Errors
    /// If a setting cannot be used.
    pub fn calling(
        client: Client,
        settings: Settings,
        generators: Generators,
        caller: Arc<dyn Caller>,
    ) -> Result<Controller, RunError> {
        let requests = Requests::default();
        Controller::assembled(requests.of_home(client), settings, generators, caller, &requests)
    }

    /// A controller of a client whose requests are counted already.
    fn assembled(
        client: Client,
        settings: Settings,
        generators: Generators,
        caller: Arc<dyn Caller>,
        requests: &Requests,
    ) -> Result<Controller, RunError> {
        let allowed = settings.allowed_namespaces()?;
        let settings = Arc::new(settings);
        let known = Arc::new(Known::default());
        let mut registry = Registry::default();
        requests.registered(&mut registry);
        let lead = Lead::registered(&mut registry, "applicationset", settings.leader_election);
        let queue_metrics = QueueMetrics::registered(&mut registry, "applicationset", &lead);
        let queue = Queue::new(Backoff::default(), settings.seed, queue_metrics);
        let passes = PassMetrics::registered(&mut registry);
        metrics::register_sets(
            &mut registry,
            known.clone(),
            allowed.clone(),
            settings.metrics_labels.clone(),
            &lead,
        );
        rollout::register_standing(&mut registry, known.clone(), allowed.clone(), &lead);
        // A dry run must not leave events of things that did not happen.
        let (recorder, scribe) = events::channel(client.clone(), settings.clock.clone(), EVENT_SOURCE);
        let (recorder, scribe) = if settings.dry_run { (None, None) } else { (Some(recorder), Some(scribe)) };
        let queue_metrics = QueueMetrics::registered(&mut registry, "rollout", &lead);
        let rollout_queue = Queue::new(Backoff::default(), settings.seed, queue_metrics);
        let board = Arc::new(Board::new(rollout_queue.clone()));
        let phases = Phases::new(PhaseParts {
            client: client.clone(),
            settings: settings.clone(),
            recorder: recorder.clone(),
            caller,
            calls: CallMetrics::registered(&mut registry),
            wake: rollout_queue.clone(),
        });
        let hangup = phases.hangup();
        let rollout = rollout::Reconciler::new(rollout::Parts {
            phases,
            board: board.clone(),
            queue: rollout_queue.clone(),
            generation: queue.clone(),
            client: client.clone(),
            settings: settings.clone(),
            known: known.clone(),
            resolver: Resolver::new(generators.repositories().clone(), known.clone(), rollout_queue),
            metrics: RolloutMetrics::registered(&mut registry),
        });
        let (api, wanted) = (client.clone(), settings.clone());
        let reconciler = Reconciler::new(api, wanted, generators, known.clone(), recorder, board, hangup);
        let shared = Shared {
            client,
            allowed,
            settings,
            known,
            queue,
            reconciler,
            rollout,
            lead,
            registry: Arc::new(RwLock::new(registry)),
            passes,
            synced: Caches::new(),
            scribe: parking_lot::Mutex::new(scribe),
        };
        Ok(Controller { shared: Arc::new(shared) })
    }

    /// `/metrics`, `/healthz` and `/readyz`.
    pub fn router(&self) -> Router {
        metrics::router(vec![self.shared.registry.clone()], self.shared.synced.all())
    }

    /// Which caches were filled.
    pub(crate) fn caches(&self) -> Vec<Synced> {
        self.shared.synced.all()
    }

    /// Where measurements are kept, for others to add theirs.
    pub fn registry(&self) -> SharedRegistry {
        self.shared.registry.clone()
    }

    /// Asks for a pass over a set now.
    pub fn wake(&self, set: ObjectKey) {
        self.shared.queue.add(set);
    }

    /// Every ApplicationSet that could be read, as last seen.
    pub fn application_sets(&self) -> Vec<Arc<ApplicationSet>> {
        self.shared.known.sets.lock().whole().collect()
    }

    /// How many Applications belong to sets.
    pub fn owned_applications(&self) -> usize {
        self.shared.known.applications.lock().len()
    }

    /// How many Applications were rendered since the start.
    pub fn renders(&self) -> u64 {
        self.shared.reconciler.renders()
    }

    /// Whether every cache was filled and no set waits for a pass that is due.
    pub fn is_idle(&self) -> bool {
        let shared = &self.shared;
        shared.synced.all().iter().all(Synced::is_synced)
            && shared.queue.is_idle()
            && shared.rollout.is_idle()
    }

    /// Runs until `shutdown` is done. Passes under way are then given up at their next wait; every write they made
    /// stands on its own.
    ///
    /// # Errors
    /// If a part of the controller ends by itself.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        let shared = &self.shared;
        let mut tasks = self.start_watches();
        if !shared.settings.leader_election {
            self.start_workers(&mut tasks);
            return self.until(shutdown, tasks).await;
        }
        let mut shutdown = std::pin::pin!(shutdown);
        let mut elector = Elector::new(
            &shared.client,
            &shared.settings.namespace,
            APPLICATION_SET_LEASE,
            shared.settings.clock.clone(),
            shared.settings.lease,
        );
        tokio::select! {
            biased;
            () = &mut shutdown => return self.until(std::future::ready(()), tasks).await,
            () = elector.win() => {}
        }
        tracing::info!("this controller leads");
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
        shared.queue.shut_down();
        shared.rollout.queue.shut_down();
        shared.rollout.phases.stop();
        Err(lost)
    }

    fn start_workers(&self, tasks: &mut JoinSet<&'static str>) {
        let shared = &self.shared;
        for _ in 0..shared.settings.concurrent_reconciliations.max(1) {
            tasks.spawn(work(shared.clone()).map(|()| "worker"));
            tasks.spawn(roll_out(shared.clone()).map(|()| "rollout worker"));
        }
        tasks.spawn(look_for_remains(shared.clone()).map(|()| "look for remains"));
        if !shared.settings.cache_sync_period.is_zero() {
            tasks.spawn(look_again(shared.clone()).map(|()| "periodic look"));
        }
    }

    /// Keeps the caches until `shutdown` is done and makes no pass by itself; see [`Controller::pass`].
    ///
    /// # Errors
    /// If a part of the controller ends by itself.
    pub async fn follow(&self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        let tasks = self.start_watches();
        self.until(shutdown, tasks).await
    }

    /// Makes one pass over a set, once the caches are filled, and tells when it wants the next. Not to be called
    /// while [`Controller::run`] makes passes over the same set.
    ///
    /// # Errors
    /// What kept the pass from its end; it is worth another try.
    pub async fn pass(&self, set: &ObjectKey) -> Result<Option<Duration>, PassFailed> {
        for synced in self.shared.synced.all() {
            synced.wait().await;
        }
        let outcome = self.shared.reconciler.reconcile(set).await;
        self.shared.rollout.reconcile(set).await.map_err(|error| PassFailed(error.to_string()))?;
        outcome.map_err(|error| PassFailed(error.to_string()))
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
        self.shared.queue.shut_down();
        self.shared.rollout.queue.shut_down();
        tasks.shutdown().await;
        // Before somebody else may lead.
        self.shared.rollout.phases.stop();
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
        let watched = shared.allowed.only();
        let sets: Api<Guarded<ApplicationSet>> = scoped(client, watched);
        let feed = Feed(shared.clone());
        tasks.spawn(
            follow("applicationsets", sets, Config::default(), synced.sets.clone(), feed.clone())
                .map(|()| "watch of ApplicationSets"),
        );
        let applications: Api<Observed> = scoped(client, watched);
        tasks.spawn(
            follow(
                "applications",
                applications,
                Config::default(),
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
                Config::default().labels(&kinds),
                synced.secrets.clone(),
                feed.clone(),
            )
            .map(|()| "watch of Secrets"),
        );
        let projects: Api<Guarded<AppProject>> = Api::namespaced(client.clone(), own);
        tasks.spawn(
            follow(
                "appprojects",
                projects,
                Config::default(),
                synced.projects.clone(),
                Names::new(feed.clone()),
            )
            .map(|()| "watch of AppProjects"),
        );
        let part_of_argocd = Config::default().labels("app.kubernetes.io/part-of=argocd");
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), own);
        let names = Names::new(feed.clone());
        tasks.spawn(
            follow("configmaps", maps, part_of_argocd.clone(), synced.config_maps.clone(), names)
                .map(|()| "watch of ConfigMaps"),
        );
        let secrets: Api<Secret> = Api::namespaced(client.clone(), own);
        tasks.spawn(
            follow("own secrets", secrets, part_of_argocd, synced.own_secrets.clone(), Names::new(feed))
                .map(|()| "watch of Argo CD's Secrets"),
        );
        tasks
    }
}

/// Webhooks refresh the sets of this controller: `webhooks(Arc::new(controller), …)`.
impl Refresh for Controller {
    fn secrets(&self) -> Arc<WebhookSecrets> {
        Arc::new(self.shared.known.webhook_secrets())
    }

    async fn sets(&self) -> Result<Vec<Candidate>, String> {
        if !self.shared.synced.sets.is_synced() {
            return Err("ApplicationSets are not known yet".to_owned());
        }
        let allowed = |set: &ApplicationSet| {
            self.shared.allowed.contains(set.metadata.namespace.as_deref().unwrap_or_default())
        };
        let candidates = self.shared.reconciler.candidates().into_iter();
        Ok(candidates.filter(|candidate| allowed(&candidate.set)).collect())
    }

    async fn refresh(&self, namespace: &str, name: &str) -> Result<(), String> {
        let key = ObjectKey::new(namespace, name);
        self.shared.reconciler.ask_for_refresh(&key).await.map_err(|error| error.to_string())
    }
}

pub(crate) fn scoped<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// Makes passes until the queue is shut down.
async fn work(shared: Arc<Shared>) {
    for synced in shared.synced.all() {
        synced.wait().await;
    }
    while let Some(work) = shared.queue.next().await {
        let key = work.key();
        let began = Instant::now();
        // A pass that panics is a failed pass of one set, not the end of the controller.
        let pass = AssertUnwindSafe(shared.reconciler.reconcile(key)).catch_unwind().await;
        shared.passes.observe(key, began.elapsed());
        match pass {
            Ok(Ok(look_again)) => {
                shared.queue.forget(key);
                if let Some(delay) = look_again {
                    shared.queue.add_after(key.clone(), delay);
                }
                if shared.known.sets.lock().get(key).is_none() {
                    shared.passes.forget(key);
                }
            }
            Ok(Err(error)) => {
                let delay = shared.queue.retry(key.clone());
                tracing::warn!(application_set = %key, %error, retry_ms = delay.as_millis() as u64, "pass failed");
            }
            Err(_) => {
                let delay = shared.queue.retry(key.clone());
                tracing::error!(application_set = %key, retry_ms = delay.as_millis() as u64, "pass panicked");
            }
        }
    }
}

/// Rolls sets out until the queue is shut down.
async fn roll_out(shared: Arc<Shared>) {
    for synced in shared.synced.all() {
        synced.wait().await;
    }
    let rollout = &shared.rollout;
    while let Some(work) = rollout.queue.next().await {
        let key = work.key();
        match AssertUnwindSafe(rollout.reconcile(key)).catch_unwind().await {
            Ok(Ok(look_again)) => {
                rollout.queue.forget(key);
                if let Some(delay) = look_again {
                    rollout.queue.add_after(key.clone(), delay);
                }
            }
            Ok(Err(error)) => {
                let delay = rollout.queue.retry(key.clone());
                tracing::warn!(application_set = %key, %error, retry_ms = delay.as_millis() as u64, "rollout failed");
            }
            Err(_) => {
                let delay = rollout.queue.retry(key.clone());
                tracing::error!(application_set = %key, retry_ms = delay.as_millis() as u64, "rollout panicked");
            }
        }
    }
}

/// Looks once for guards of sets that went while no controller ran. What they guard would otherwise stay for ever.
async fn look_for_remains(shared: Arc<Shared>) {
    for synced in shared.synced.all() {
        synced.wait().await;
    }
    let maps: Api<ConfigMap> = scoped(&shared.client, shared.allowed.only());
    let labelled = ListParams::default().labels(SET_LABEL);
    match maps.list_metadata(&labelled).await {
        Ok(found) => {
            for map in found {
                let (namespace, name) = (map.namespace().unwrap_or_default(), map.name_any());
                let set = name.strip_suffix(GUARD_SUFFIX).or_else(|| name.strip_suffix(WITNESS_SUFFIX));
                let Some(set) = set.filter(|_| shared.allowed.contains(&namespace)) else { continue };
                let key = ObjectKey::new(namespace.as_str(), set);
                if shared.known.sets.lock().get(&key).is_none() {
                    shared.reconciler.note_left(&key);
                    shared.queue.add(key);
                }
            }
        }
        // Without the right to look there are no guards either.
        Err(error) => tracing::debug!(%error, "guards of ApplicationSets cannot be listed"),
    }
    std::future::pending().await
}

/// Looks at every set from time to time.
async fn look_again(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(shared.settings.cache_sync_period.max(Duration::from_secs(1))).await;
        let keys: Vec<ObjectKey> = shared.known.sets.lock().all().map(|(key, _)| key.clone()).collect();
        keys.into_iter().for_each(|key| shared.queue.add(key));
    }
}

// === impl Caches ===

impl Caches {
    fn new() -> Caches {
        Caches {
            sets: Synced::new(),
            applications: Synced::new(),
            secrets: Synced::new(),
            projects: Synced::new(),
            config_maps: Synced::new(),
            own_secrets: Synced::new(),
        }
    }

    fn all(&self) -> Vec<Synced> {
        let Caches { sets, applications, secrets, projects, config_maps, own_secrets } = self.clone();
        vec![sets, applications, secrets, projects, config_maps, own_secrets]
    }
}
