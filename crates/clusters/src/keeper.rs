//! The task that keeps a cluster connected, knows its kinds and runs its watches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use crate::catalog::{Catalog, GroupKind, Served};
use crate::error::ClusterError;
use crate::jitter::jittered;
use crate::live::Wakes;
use crate::requests::Requests;
use crate::shared::{ChangedKind, Connection, Shared, WatchKey, WatchStatus, settings_change};
use crate::sweep::{Findings, sweep};
use crate::watch::Watch;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Changes of kinds come in bursts; this long is waited for the rest of one.
const SETTLE: Duration = Duration::from_millis(200);
/// When kinds that could not be read are tried again.
const SWEEP_AGAIN: Duration = Duration::from_secs(60);

/// How often a silent cluster is asked whether it is still there, and how long that may take.
const PROBE_EVERY: Duration = Duration::from_secs(60);
const LONGEST_PROBE: Duration = Duration::from_secs(20);

/// Makes the client of the cluster.
pub(crate) type MakeClient = Box<dyn Fn() -> Result<Client, String> + Send + Sync>;

/// Keeps one cluster. Dropping it ends every watch.
pub(crate) struct Keeper {
    shared: Arc<Shared>,
    make_client: MakeClient,
    tasks: JoinSet<Findings>,
    watches: BTreeMap<WatchKey, (Served, AbortHandle)>,
    sweeping: bool,
    next_sweep: Instant,
}

impl Keeper {
    pub(crate) fn new(shared: Arc<Shared>, make_client: MakeClient) -> Keeper {
        Keeper {
            shared,
            make_client,
            tasks: JoinSet::new(),
            watches: BTreeMap::new(),
            sweeping: false,
            next_sweep: Instant::now(),
        }
    }

    pub(crate) async fn run(mut self) {
        let mut settings = self.shared.settings.clone();
        loop {
            let requests = self.connected().await;
            self.start_watches(&requests);
            self.start_sweep(&requests);
            let shared = self.shared.clone();
            tokio::select! {
                biased;
                Some(found) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    // Watches never end, and those that were stopped have nothing to say.
                    if let Ok(found) = found {
                        self.swept(&requests, found).await;
                    }
                }
                () = shared.work.notified() => tokio::time::sleep(SETTLE).await,
                () = tokio::time::sleep_until(self.next_sweep), if !self.sweeping => {}
                // An open watch does not notice that the network is gone.
                () = tokio::time::sleep(PROBE_EVERY) => self.shared.situation.lock().suspect = true,
                () = settings_change(&mut settings) => self.next_sweep = Instant::now(),
            }
        }
    }

    // --- connection ---

    /// Tries and reads until the cluster answers and its kinds are known.
    async fn connected(&self) -> Requests {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.look().await {
                Ok(requests) => return requests,
                Err(reason) => self.lose(&reason),
            }
            tokio::time::sleep(jittered(pause, &*self.shared.access.server)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn look(&self) -> Result<Requests, String> {
        let (known, lost, suspect, rediscover) = {
            let mut situation = self.shared.situation.lock();
            let lost = matches!(situation.connection, Connection::Lost { .. });
            if situation.connection == Connection::Idle {
                situation.connection = Connection::Connecting;
            }
            let asked = (std::mem::take(&mut situation.suspect), std::mem::take(&mut situation.rediscover));
            (situation.requests.clone(), lost, asked.0, asked.1)
        };
        let read = async {
            let requests = match known {
                Some(requests) => requests,
                None => Requests::new((self.make_client)()?),
            };
            if lost || suspect || rediscover {
                self.probe(&requests).await?;
            }
            if lost || rediscover {
                let catalog = Catalog::discover(&requests).await.map_err(|error| error.to_string())?;
                self.learnt(catalog, &requests);
            }
            Ok(requests)
        };
        let read = read.await;
        if read.is_err() && rediscover {
            self.shared.situation.lock().rediscover = true;
        }
        if read.is_ok() {
            self.found_again();
        }
        read
    }

    async fn probe(&self, requests: &Requests) -> Result<(), String> {
        let version = tokio::time::timeout(LONGEST_PROBE, requests.get("/version")).await;
        let version = version.map_err(|_| format!("no answer within {} s", LONGEST_PROBE.as_secs()))?;
        let version = version.map_err(|error| error.to_string())?;
        let version = version["gitVersion"].as_str().unwrap_or_default().trim_start_matches('v').to_owned();
        self.shared.situation.lock().version = version;
        Ok(())
    }

    fn learnt(&self, mut catalog: Catalog, requests: &Requests) {
        let mut situation = self.shared.situation.lock();
        catalog.fill_gaps(&situation.catalog);
        for (version, why) in &catalog.gaps {
            tracing::warn!(server = %self.shared.access.server, version, why, "kinds of a version cannot be read");
        }
        situation.catalog = Arc::new(catalog);
        situation.requests = Some(requests.clone());
        situation.discovered += 1;
        situation.discovered_at = Some(Instant::now());
        drop(situation);
        self.shared.tick();
    }

    fn lose(&self, reason: &str) {
        let mut situation = self.shared.situation.lock();
        let news = match &mut situation.connection {
            Connection::Lost { reason: known, .. } => {
                reason.clone_into(known);
                false
            }
            connection => {
                let since = (self.shared.settings.borrow().now)();
                *connection = Connection::Lost { reason: reason.to_owned(), since };
                true
            }
        };
        drop(situation);
        self.shared.tick();
        if news {
            tracing::warn!(server = %self.shared.access.server, reason, "cluster lost");
            self.shared.tell(ChangedKind::Connection);
        }
    }

    fn found_again(&self) {
        let mut situation = self.shared.situation.lock();
        let before = std::mem::replace(&mut situation.connection, Connection::Connected);
        drop(situation);
        if before == Connection::Connected {
            return;
        }
        self.shared.tick();
        if matches!(before, Connection::Lost { .. }) {
            tracing::info!(server = %self.shared.access.server, "cluster is back");
            self.shared.tell(ChangedKind::Connection);
        }
    }

    // --- watches ---

    /// Runs a watch for each kind that is wanted, and for no other.
    fn start_watches(&mut self, requests: &Requests) {
        let wanted = self.wanted();
        let gone: Vec<WatchKey> = self
            .watches
            .iter()
            .filter(|(key, (served, _))| wanted.get(*key) != Some(served))
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            self.stop(&key, wanted.contains_key(&key));
        }
        for (key, served) in wanted {
            if self.watches.contains_key(&key) {
                continue;
            }
            let status = WatchStatus { filled: false, failing: None };
            self.shared.situation.lock().watches.insert(key.clone(), status);
            let watch = Watch::new(self.shared.clone(), requests.clone(), key.clone(), served.clone());
            let task = self.tasks.spawn(async move {
                watch.run().await;
                Findings::default()
            });
            self.watches.insert(key, (served, task));
        }
        self.shared.tick();
    }

    fn wanted(&self) -> BTreeMap<WatchKey, Served> {
        let situation = self.shared.situation.lock();
        let asked: BTreeSet<GroupKind> = situation.wanted.union(&situation.found).cloned().collect();
        let mut kinds = situation.children.closure(&asked);
        kinds.insert(GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition"));
        kinds.insert(GroupKind::new("apiregistration.k8s.io", "APIService"));
        let catalog = situation.catalog.clone();
        drop(situation);
        let mut wanted = BTreeMap::new();
        for kind in kinds {
            let Some(served) = catalog.served(&kind).filter(|served| self.shared.is_visible(&kind, served))
            else {
                continue;
            };
            for namespace in self.shared.scopes(served) {
                wanted.insert((kind.clone(), namespace), served.clone());
            }
        }
        wanted
    }

    /// Ends a watch. What it knew is dropped unless another takes its place.
    fn stop(&mut self, key: &WatchKey, replaced: bool) {
        if let Some((_, task)) = self.watches.remove(key) {
            task.abort();
        }
        self.shared.situation.lock().watches.remove(key);
        if !replaced {
            let mut wakes = Wakes::default();
            self.shared.state.lock().drop_kind(&key.0, key.1.as_deref(), &mut wakes);
            self.shared.wake(wakes);
        }
    }

    // --- sweep ---

    fn start_sweep(&mut self, requests: &Requests) {
        if self.sweeping || Instant::now() < self.next_sweep {
            return;
        }
        self.sweeping = true;
        let (shared, requests) = (self.shared.clone(), requests.clone());
        self.tasks.spawn(async move { sweep(&shared, &requests).await });
    }

    async fn swept(&mut self, requests: &Requests, found: Findings) {
        self.sweeping = false;
        let silent = found.unread.iter().any(|(_, error)| matches!(error, ClusterError::NoAnswer(_)));
        if silent && let Err(reason) = self.probe(requests).await {
            self.next_sweep = Instant::now();
            self.lose(&reason);
            return;
        }
        for (kind, error) in &found.unread {
            tracing::info!(server = %self.shared.access.server, group = %kind.group, kind = %kind.kind, %error, "kind passed over");
        }
        let failing = found.unread.iter().any(|(_, error)| error.is_connection());
        let again = if failing { SWEEP_AGAIN } else { self.shared.settings.borrow().sweep_every };
        self.next_sweep = Instant::now() + again;
        let mut situation = self.shared.situation.lock();
        for (parent, child) in found.families {
            situation.children.learn(parent, child);
        }
        situation.found.extend(found.kinds);
        let first = !std::mem::replace(&mut situation.swept, true);
        let tell = first && std::mem::take(&mut situation.impatient);
        drop(situation);
        self.shared.tick();
        if tell {
            self.shared.tell(ChangedKind::Connection);
        }
    }
}
