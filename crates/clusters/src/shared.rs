//! What a cluster's handle, its keeper and its watches share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::object::{Object, ResourceKey};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::access::ClusterAccess;
use crate::catalog::{Catalog, GroupKind, Served};
use crate::children::Children;
use crate::error::ClusterError;
use crate::live::{State, Uid, Wakes, digest};
use crate::requests::Requests;
use crate::settings::Settings;

/// Who is to be told that something changed.
pub(crate) type OnChange = Arc<dyn Fn(Changed) + Send + Sync>;

/// Something that happened to a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// URL of the cluster.
    pub server: Arc<str>,
    /// What happened.
    pub kind: ChangedKind,
}

/// What happened to a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangedKind {
    /// An object that the Application tracks or holds came, went or changed; a comparison is due.
    Managed {
        /// The Application, as its objects name it.
        instance: Arc<str>,
    },
    /// A child of the Application's objects came, went or fares differently.
    Child {
        /// The Application, as its objects name it.
        instance: Arc<str>,
    },
    /// The cluster was lost, is back, or can answer what it could not before. Concerns all its Applications.
    Connection,
}

/// Whether a cluster can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// Nobody asked for it yet.
    Idle,
    /// It is being connected to for the first time.
    Connecting,
    /// It answers.
    Connected,
    /// It does not answer, or does not let us in.
    Lost {
        /// Why.
        reason: String,
        /// Since when.
        since: Timestamp,
    },
}

/// One watch: a kind, in one namespace or in all.
pub(crate) type WatchKey = (GroupKind, Option<String>);

/// How a watch fares.
#[derive(Debug, Clone)]
pub(crate) struct WatchStatus {
    /// Whether its list was complete once.
    pub(crate) filled: bool,
    /// Why it does not work, and since when.
    pub(crate) failing: Option<(ClusterError, Instant)>,
}

pub(crate) struct Shared {
    pub(crate) access: ClusterAccess,
    pub(crate) settings: watch::Receiver<Arc<Settings>>,
    on_change: OnChange,
    pub(crate) state: Mutex<State>,
    pub(crate) situation: Mutex<Situation>,
    /// Changes whenever the situation does, for those who wait for something of it.
    progress: watch::Sender<u64>,
    /// Tells the keeper to look at the situation.
    pub(crate) work: Notify,
}

/// All that is known of a cluster but its objects.
pub(crate) struct Situation {
    pub(crate) connection: Connection,
    pub(crate) requests: Option<Requests>,
    /// The Kubernetes version.
    pub(crate) version: String,
    pub(crate) catalog: Arc<Catalog>,
    /// How often the catalogue was read, and when last.
    pub(crate) discovered: u64,
    pub(crate) discovered_at: Option<Instant>,
    /// Whether it must be read again.
    pub(crate) rediscover: bool,
    /// Whether the connection must be tried.
    pub(crate) suspect: bool,
    /// Kinds that Applications want.
    pub(crate) wanted: BTreeSet<GroupKind>,
    /// Kinds that a sweep found tracked objects of.
    pub(crate) found: BTreeSet<GroupKind>,
    pub(crate) children: Children,
    pub(crate) watches: BTreeMap<WatchKey, WatchStatus>,
    /// Whether a sweep has been through once.
    pub(crate) swept: bool,
    /// Whether somebody gave up waiting and must be told when there is more.
    pub(crate) impatient: bool,
}

/// Waits until the settings are others. Those of a cluster whose [`crate::Clusters`] are gone stay as they are.
pub(crate) async fn settings_change(settings: &mut watch::Receiver<Arc<Settings>>) {
    if settings.changed().await.is_err() {
        std::future::pending().await
    }
}

// === impl Shared ===

impl Shared {
    pub(crate) fn new(
        access: ClusterAccess,
        settings: watch::Receiver<Arc<Settings>>,
        on_change: OnChange,
    ) -> Shared {
        Shared {
            access,
            settings,
            on_change,
            state: Mutex::default(),
            situation: Mutex::new(Situation::new()),
            progress: watch::Sender::new(0),
            work: Notify::new(),
        }
    }

    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.borrow().clone()
    }

    pub(crate) fn progress(&self) -> watch::Receiver<u64> {
        self.progress.subscribe()
    }

    /// Wakes those who wait for something of the situation.
    pub(crate) fn tick(&self) {
        self.progress.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(crate) fn tell(&self, kind: ChangedKind) {
        (self.on_change)(Changed { server: self.access.server.clone(), kind });
    }

    pub(crate) fn wake(&self, wakes: Wakes) {
        for instance in wakes.children.difference(&wakes.managed) {
            self.tell(ChangedKind::Child { instance: instance.clone() });
        }
        for instance in wakes.managed {
            self.tell(ChangedKind::Managed { instance });
        }
    }

    /// The error that tells of the lost connection, if it is lost.
    pub(crate) fn lost(&self) -> Option<ClusterError> {
        match &self.situation.lock().connection {
            Connection::Lost { reason, since } => Some(ClusterError::Unreachable {
                server: self.access.server.to_string(),
                reason: reason.clone(),
                since: *since,
            }),
            _ => None,
        }
    }

    /// Asks the keeper to try the connection.
    pub(crate) fn suspect(&self) {
        self.situation.lock().suspect = true;
        self.work.notify_one();
    }

    /// Asks the keeper to read again what kinds there are.
    pub(crate) fn rediscover(&self) {
        self.situation.lock().rediscover = true;
        self.work.notify_one();
    }

    /// Takes in an object as the API gave it, in answer to a write or a read by name.
    pub(crate) fn fold(&self, object: &Value) {
        let group_kind = GroupKind::new(object.group(), object.kind());
        let Some(served) = self.watched(&group_kind) else { return };
        if *served.api_version != *object.api_version() {
            return;
        }
        let held = self.state.lock().is_held(&object.key());
        let seen = digest(object, held, &self.settings());
        let mut wakes = Wakes::default();
        {
            let mut state = self.state.lock();
            let kind = state.kind_id(&group_kind, &served.api_version);
            state.apply(kind, seen, &mut wakes);
        }
        self.wake(wakes);
    }

    /// Takes in that an object is gone.
    pub(crate) fn fold_gone(&self, key: &ResourceKey, uid: &str) {
        let group_kind = GroupKind::new(&key.group, &key.kind);
        let Some(served) = self.watched(&group_kind) else { return };
        let mut wakes = Wakes::default();
        {
            let mut state = self.state.lock();
            let kind = state.kind_id(&group_kind, &served.api_version);
            state.remove(kind, &key.namespace, &key.name, &Uid::new(uid), &mut wakes);
        }
        self.wake(wakes);
    }

    /// The kind as it is watched, if it is.
    pub(crate) fn watched(&self, group_kind: &GroupKind) -> Option<Served> {
        let situation = self.situation.lock();
        let watched = situation.watches.keys().any(|(kind, _)| kind == group_kind);
        situation.catalog.served(group_kind).filter(|_| watched).cloned()
    }

    /// Whether objects of this kind are looked at, by the operator's rules and the Secret's.
    pub(crate) fn is_visible(&self, kind: &GroupKind, served: &Served) -> bool {
        let excluded =
            self.settings.borrow().exclusions.excludes(&kind.group, &kind.kind, &self.access.server);
        !excluded && served.watchable && (served.info.namespaced || self.access.sees_cluster_scope())
    }

    /// The namespaces a kind is looked at in; `None` are all.
    pub(crate) fn scopes(&self, served: &Served) -> Vec<Option<String>> {
        match served.info.namespaced && !self.access.namespaces.is_empty() {
            true => self.access.namespaces.iter().cloned().map(Some).collect(),
            false => vec![None],
        }
    }
}

// === impl Situation ===

impl Situation {
    fn new() -> Situation {
        Situation {
            connection: Connection::Idle,
            requests: None,
            version: String::new(),
            catalog: Arc::default(),
            discovered: 0,
            discovered_at: None,
            rediscover: true,
            suspect: false,
            wanted: BTreeSet::new(),
            found: BTreeSet::new(),
            children: Children::default(),
            watches: BTreeMap::new(),
            swept: false,
            impatient: false,
        }
    }
}
