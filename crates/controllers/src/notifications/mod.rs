//! The notifications controller: who is told what about Applications and ApplicationSets.
//!
//! Watches feed what is known, changes wake objects, workers make passes. What is told is decided by pure functions of
//! `baton-notifications`; this module reads and stores for them, and sends what they say.
//!
//! # Guarantees
//! - One pass at a time works on an object.
//! - A pass that finds nothing to do makes no request. One that does something does it on what the API has then, not on
//!   what a cache shows.
//! - So many messages are on their way at once as there are workers, a quarter of them to one service at most; each takes
//!   at most [`baton_notifications::TIMEOUT`].
//! - A controller that is told to stop begins nothing new, and waits for what is on its way: that it has arrived is stored.
//! - What an annotation can name is bounded: services are the configuration's, and so are recipients where it says so; a
//!   project is another's if it does not list the namespace.

mod announce;
mod feed;
mod keeper;
mod known;
mod metrics;
mod post;
mod raw;
mod reconcile;
mod settings;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use baton_api::{AppProject, Application, ApplicationSet};
use baton_hooks::{AllowList, Connector, Places, SystemResolver};
use baton_notifications::{About, CONFIG_MAP, Carrier, Kind, Ledger, OUTBOX_LABEL, Post, SECRET};
use futures::FutureExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::runtime::watcher::Config as WatchConfig;
use kube::{Api, Client};
use parking_lot::{Mutex, RwLock};
use prometheus_client::registry::Registry;
use tokio::task::JoinSet;

use crate::cache::{Synced, follow};
use crate::client::Requests;
use crate::controller::{RunError, scoped};
use crate::events;
use crate::leader::Elector;
use crate::leading::Lead;
use crate::metrics::SharedRegistry;
use crate::namespaces::AllowedNamespaces;
use crate::queue::{Backoff, Queue, QueueMetrics};
use announce::Announcer;
use feed::{Names, Sources, Subjects};
use known::Known;
use metrics::Metrics;
use post::Turnstile;
use raw::Raw;
use reconcile::Reconciler;
pub use settings::NotificationSettings;

/// Lease that one controller holds; Argo CD's notifications controller has none.
const LEASE: &str = "baton-notifications-controller";
/// Who events say they come from.
const EVENT_SOURCE: &str = "argocd-notifications-controller";
/// How long what is on its way is waited for when the controller stops.
const FAREWELL: Duration = Duration::from_secs(25);
/// The same when another may lead soon: a lease is believed in for so much longer than it is renewed.
const HURRIED_FAREWELL: Duration = Duration::from_secs(4);

/// The notifications controller. Clones share it.
#[derive(Clone)]
pub struct NotificationController {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    applications: AllowedNamespaces,
    sets: AllowedNamespaces,
    settings: Arc<NotificationSettings>,
    known: Arc<Known>,
    queue: Queue<About>,
    reconciler: Reconciler,
    lead: Lead,
    registry: SharedRegistry,
    synced: Caches,
    scribe: Mutex<Option<events::Scribe>>,
}

/// Which caches were filled.
#[derive(Clone)]
struct Caches {
    applications: Synced,
    sets: Synced,
    projects: Synced,
    outboxes: Synced,
    map: Synced,
    secret: Synced,
}

// === impl NotificationController ===

impl NotificationController {
    /// A controller that does not run yet. Call it inside a tokio runtime.
    ///
    /// Services may be anywhere: whoever may write the configuration decides where messages go.
    ///
    /// # Errors
    /// If a setting cannot be used.
    pub fn new(client: Client, settings: NotificationSettings) -> Result<NotificationController, RunError> {
        let everywhere = AllowList::everything();
        let resolver = Arc::new(SystemResolver);
        let connector =
            Connector::new(everywhere, Places::default(), resolver, settings.authorities.as_deref())
                .map_err(RunError::Notifications)?;
        NotificationController::sending(client, settings, Arc::new(Carrier::new(Arc::new(connector))))
    }

    /// A controller whose messages are sent by somebody else.
    ///
    /// # Errors
    /// If a setting cannot be used.
    pub fn sending(
        client: Client,
        settings: NotificationSettings,
        post: Arc<dyn Post>,
    ) -> Result<NotificationController, RunError> {
        let [applications, sets] = settings.allowed()?;
        let requests = Requests::default();
        let client = requests.of_home(client);
        let settings = Arc::new(settings);
        let known = Arc::new(Known::new(&settings.namespace));
        let mut registry = Registry::default();
        requests.registered(&mut registry);
        let lead = Lead::registered(&mut registry, "notifications", settings.leader_election);
        let queue_metrics = QueueMetrics::registered(&mut registry, "notifications", &lead);
        let queue = Queue::new(Backoff::default(), settings.seed, queue_metrics);
        let (recorder, scribe) = events::channel(client.clone(), settings.clock.clone(), EVENT_SOURCE);
        let reconciler = Reconciler {
            client: client.clone(),
            settings: settings.clone(),
            known: known.clone(),
            post: Turnstile::new(post, settings.processors),
            ledger: Ledger::default(),
            announcer: Announcer::new(recorder),
            metrics: Metrics::registered(&mut registry),
        };
        let shared = Shared {
            client,
            applications,
            sets,
            settings,
            known,
            queue,
            reconciler,
            lead,
            registry: Arc::new(RwLock::new(registry)),
            synced: Caches::new(),
            scribe: Mutex::new(Some(scribe)),
        };
        Ok(NotificationController { shared: Arc::new(shared) })
    }

    /// `/metrics`, `/healthz` and `/readyz`.
    pub fn router(&self) -> Router {
        crate::metrics::router(vec![self.shared.registry.clone()], self.caches())
    }

    /// Which caches were filled.
    pub(crate) fn caches(&self) -> Vec<Synced> {
        self.shared.synced.all()
    }

    /// Where measurements are kept.
    pub fn registry(&self) -> SharedRegistry {
        self.shared.registry.clone()
    }

    /// Whether every cache was filled and no object waits for a pass that is due.
    pub fn is_idle(&self) -> bool {
        self.caches().iter().all(Synced::is_synced) && self.shared.queue.is_idle()
    }

    /// Runs until `shutdown` is done and what is on its way then has arrived or failed.
    ///
    /// # Errors
    /// If a part of the controller ends by itself, or another controller may lead.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        let shared = &self.shared;
        let mut watches = self.start_watches();
        let mut shutdown = std::pin::pin!(shutdown);
        let (namespace, clock) = (&shared.settings.namespace, shared.settings.clock.clone());
        let times = shared.settings.lease;
        let elector = || Elector::new(&shared.client, namespace, LEASE, clock, times);
        let mut elector = shared.settings.leader_election.then(elector);
        if let Some(elector) = &mut elector {
            tokio::select! {
                biased;
                () = &mut shutdown => return Ok(()),
                () = elector.win() => tracing::info!("this notifications controller leads"),
            }
            shared.lead.begin();
        }
        let mut workers = JoinSet::new();
        for _ in 0..shared.settings.processors.max(1) {
            workers.spawn(work(shared.clone()));
        }
        let leads = async {
            match &mut elector {
                Some(elector) => elector.hold().await,
                None => std::future::pending().await,
            }
        };
        let (ended, farewell) = tokio::select! {
            biased;
            () = &mut shutdown => (Ok(()), FAREWELL),
            () = leads => (Err(RunError::LostLead), HURRIED_FAREWELL),
            _ = workers.join_next() => (Err(RunError::Ended("worker")), FAREWELL),
            ended = watches.join_next() => {
                let what = ended.and_then(Result::ok).unwrap_or("watch");
                (Err(RunError::Ended(what)), FAREWELL)
            }
        };
        shared.lead.end();
        shared.reconciler.post.close();
        shared.queue.shut_down();
        let finished = async { while workers.join_next().await.is_some() {} };
        if tokio::time::timeout(farewell, finished).await.is_err() {
            tracing::warn!("messages were still on their way when the controller stopped");
        }
        workers.shutdown().await;
        watches.shutdown().await;
        if let Some(elector) = elector.as_mut().filter(|_| !matches!(ended, Err(RunError::LostLead))) {
            elector.release().await;
        }
        ended
    }

    fn start_watches(&self) -> JoinSet<&'static str> {
        let shared = &self.shared;
        let (client, own) = (&shared.client, shared.settings.namespace.as_str());
        let synced = &shared.synced;
        let mut tasks: JoinSet<&'static str> = JoinSet::new();
        let scribe = shared.scribe.lock().take();
        if let Some(scribe) = scribe {
            tasks.spawn(scribe.run().map(|()| "event writer"));
        }
        let applications: Api<Raw<Application>> = scoped(client, shared.applications.only());
        let feed = Subjects::new(shared.clone(), Kind::Application, shared.applications.clone());
        let all = WatchConfig::default;
        tasks.spawn(
            follow("applications", applications, all(), synced.applications.clone(), feed)
                .map(|()| "watch of Applications"),
        );
        let sets: Api<Raw<ApplicationSet>> = scoped(client, shared.sets.only());
        let feed = Subjects::new(shared.clone(), Kind::ApplicationSet, shared.sets.clone());
        tasks.spawn(
            follow("applicationsets", sets, all(), synced.sets.clone(), feed)
                .map(|()| "watch of ApplicationSets"),
        );
        let projects: Api<Raw<AppProject>> = Api::namespaced(client.clone(), own);
        let names = Names::new(shared.clone());
        tasks.spawn(
            follow("appprojects", projects, all(), synced.projects.clone(), names)
                .map(|()| "watch of AppProjects"),
        );
        let secrets: Api<Secret> = Api::namespaced(client.clone(), own);
        let outboxes = all().labels(&format!("{OUTBOX_LABEL}=true"));
        let names = Names::new(shared.clone());
        tasks.spawn(
            follow("outboxes", secrets.clone(), outboxes, synced.outboxes.clone(), names)
                .map(|()| "watch of outboxes"),
        );
        let named = |name: &str| WatchConfig::default().fields(&format!("metadata.name={name}"));
        let sources = || Sources::new(shared.clone());
        tasks.spawn(
            follow("notifications secret", secrets, named(SECRET), synced.secret.clone(), sources())
                .map(|()| "watch of the Secret"),
        );
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), own);
        tasks.spawn(
            follow("notifications configmap", maps, named(CONFIG_MAP), synced.map.clone(), sources())
                .map(|()| "watch of the ConfigMap"),
        );
        tasks
    }
}

/// Makes passes until the queue is shut down.
async fn work(shared: Arc<Shared>) {
    for synced in shared.synced.all() {
        synced.wait().await;
    }
    let queue = &shared.queue;
    while let Some(work) = queue.next().await {
        let about = work.key();
        // A pass that panics is a failed pass of one object, not the end of the controller.
        let pass = AssertUnwindSafe(shared.reconciler.reconcile(about)).catch_unwind().await;
        match pass {
            Ok(Ok(look_again)) => {
                queue.forget(about);
                if let Some(delay) = look_again {
                    queue.add_after(about.clone(), delay);
                }
            }
            Ok(Err(error)) => {
                let delay = queue.retry(about.clone());
                tracing::warn!(%about, %error, retry_ms = delay.as_millis() as u64, "pass failed");
            }
            Err(_) => {
                let delay = queue.retry(about.clone());
                tracing::error!(%about, retry_ms = delay.as_millis() as u64, "pass panicked");
            }
        }
    }
}

// === impl Shared ===

impl Shared {
    /// Wakes all objects, or those of a project.
    fn wake(&self, project: Option<&str>) {
        self.known.subjects(project).into_iter().for_each(|about| self.queue.add(about));
    }
}

// === impl Caches ===

impl Caches {
    fn new() -> Caches {
        Caches {
            applications: Synced::new(),
            sets: Synced::new(),
            projects: Synced::new(),
            outboxes: Synced::new(),
            map: Synced::new(),
            secret: Synced::new(),
        }
    }

    fn all(&self) -> Vec<Synced> {
        let Caches { applications, sets, projects, outboxes, map, secret } = self.clone();
        vec![applications, sets, projects, outboxes, map, secret]
    }
}
