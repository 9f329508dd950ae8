//! One cluster: what is known of it, and how more is learnt.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use baton_api::object::{KindInfo, Object, ResourceKey, group_version};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::access::ClusterAccess;
use crate::catalog::{GroupKind, Served};
use crate::error::{ClusterError, PredictError};
use crate::keeper::{Keeper, MakeClient};
use crate::live::{Node, Packed, is_guarded};
use crate::paths;
use crate::perform;
use crate::requests::Requests;
use crate::settings::Settings;
use crate::shared::{Connection, OnChange, Shared};
use crate::sweep;

/// A kind that is not there is looked for again if the catalogue is older than this.
const CATALOG_AGE: Duration = Duration::from_secs(5);
/// A watch that fails for this long is no longer relied upon.
const WATCH_PATIENCE: Duration = Duration::from_secs(60);
/// How long the list of orphans is good for.
const ORPHANS_AGE: Duration = Duration::from_secs(120);

/// One cluster. It is connected to when it is first needed; dropping it ends its watches.
pub struct Cluster {
    pub(crate) shared: Arc<Shared>,
    keeper: Mutex<Start>,
    orphans: Mutex<BTreeMap<String, Orphans>>,
}

/// The orphans of a namespace, and when they were read.
type Orphans = (Instant, Arc<[ResourceKey]>);

enum Start {
    Waiting(MakeClient),
    Started(AbortHandle),
    Changing,
}

/// What stands in the way of an answer.
enum Verdict {
    Ready,
    Wait(String),
    Never(ClusterError),
}

impl Cluster {
    pub(crate) fn new(
        access: ClusterAccess,
        settings: watch::Receiver<Arc<Settings>>,
        on_change: OnChange,
        make_client: MakeClient,
    ) -> Cluster {
        Cluster {
            shared: Arc::new(Shared::new(access, settings, on_change)),
            keeper: Mutex::new(Start::Waiting(make_client)),
            orphans: Mutex::default(),
        }
    }

    /// How it is reached, without secrets in what it prints.
    pub fn access(&self) -> &ClusterAccess {
        &self.shared.access
    }

    /// URL of its API.
    pub fn server(&self) -> &Arc<str> {
        &self.shared.access.server
    }

    /// Whether it can be reached.
    pub fn connection(&self) -> Connection {
        self.shared.situation.lock().connection.clone()
    }

    // --- getting ready ---

    /// Waits until the cluster is connected, its kinds are known, it was searched for tracked objects once, and the
    /// objects of these kinds (`apiVersion`, kind) are known. They are watched from now on.
    ///
    /// Kinds that the cluster does not serve, or that are excluded, are not waited for; [`Cluster::kind`] tells.
    ///
    /// # Errors
    /// At once if the cluster cannot be reached or a kind may not be listed; after [`Settings::ready_wait`] if it takes
    /// longer. Then a [`crate::ChangedKind::Connection`] tells when it is worth asking again.
    pub async fn ready(&self, kinds: &[(String, String)]) -> Result<(), ClusterError> {
        self.start();
        let mut progress = self.shared.progress();
        let asked_at = self.want(kinds);
        let deadline = Instant::now() + self.shared.settings().ready_wait;
        loop {
            progress.mark_unchanged();
            let error = match self.judge(kinds, asked_at) {
                Verdict::Ready => return Ok(()),
                Verdict::Never(error) => error,
                Verdict::Wait(missing) => {
                    if tokio::time::timeout_at(deadline, progress.changed()).await.is_ok() {
                        continue;
                    }
                    let server = self.server();
                    ClusterError::NotReady(format!("cluster {server:?} is still being read: {missing}"))
                }
            };
            self.shared.situation.lock().impatient = true;
            return Err(error);
        }
    }

    fn start(&self) {
        let mut start = self.keeper.lock();
        match std::mem::replace(&mut *start, Start::Changing) {
            Start::Waiting(make_client) => {
                let keeper = Keeper::new(self.shared.clone(), make_client);
                *start = Start::Started(tokio::spawn(keeper.run()).abort_handle());
            }
            started => *start = started,
        }
    }

    /// Has these kinds watched. Returns how often the catalogue had been read by then.
    fn want(&self, kinds: &[(String, String)]) -> u64 {
        let mut situation = self.shared.situation.lock();
        let before = situation.wanted.len();
        for (api_version, kind) in kinds {
            let kind = GroupKind::new(group_version(api_version).0, kind);
            if !situation.wanted.contains(&kind) {
                situation.wanted.insert(kind);
            }
        }
        if situation.wanted.len() != before {
            self.shared.work.notify_one();
        }
        situation.discovered
    }

    fn judge(&self, kinds: &[(String, String)], asked_at: u64) -> Verdict {
        if let Some(error) = self.shared.lost() {
            return Verdict::Never(error);
        }
        let situation = self.shared.situation.lock();
        if situation.connection != Connection::Connected {
            return Verdict::Wait("not connected yet".to_owned());
        }
        let catalog = situation.catalog.clone();
        let fresh = situation.discovered > asked_at
            || situation.discovered_at.is_some_and(|time| time.elapsed() < CATALOG_AGE);
        let (swept, found) = (situation.swept, situation.found.clone());
        drop(situation);
        let mut asked = Vec::new();
        for (api_version, kind) in kinds {
            let key = GroupKind::new(group_version(api_version).0, kind);
            let served = catalog.served(&key);
            if catalog.kind(api_version, kind).is_none() && !fresh {
                self.shared.rediscover();
                return Verdict::Wait(format!("whether {api_version} {kind} exists"));
            }
            if let Some(served) = served {
                asked.push((key, served, true));
            }
        }
        if !swept {
            return Verdict::Wait("not searched for tracked objects yet".to_owned());
        }
        asked.extend(found.iter().filter_map(|key| Some((key.clone(), catalog.served(key)?, false))));
        for (key, served, wanted) in asked {
            match self.judge_watches(&key, served, wanted) {
                Verdict::Ready => {}
                verdict => return verdict,
            }
        }
        Verdict::Ready
    }

    /// Whether the objects of a kind are known. One that is only `found` does not hold anybody up when it fails.
    fn judge_watches(&self, kind: &GroupKind, served: &Served, wanted: bool) -> Verdict {
        if !self.shared.is_visible(kind, served) {
            return Verdict::Ready;
        }
        let name = format!("{} {}", served.api_version, kind.kind);
        for namespace in self.shared.scopes(served) {
            let status = self.shared.situation.lock().watches.get(&(kind.clone(), namespace)).cloned();
            let Some(status) = status else { return Verdict::Wait(format!("{name} is not watched yet")) };
            match status.failing {
                None if status.filled => {}
                None => return Verdict::Wait(format!("{name} is being listed")),
                Some(_) if !wanted => {}
                Some((ClusterError::Forbidden(why), _)) => {
                    if !self.shared.settings().respect_rbac {
                        return Verdict::Never(ClusterError::Forbidden(why));
                    }
                }
                Some((_, since)) if status.filled && since.elapsed() < WATCH_PATIENCE => {}
                Some((error, _)) if status.filled => {
                    return Verdict::Never(ClusterError::NotReady(format!(
                        "{name} cannot be watched: {error}"
                    )));
                }
                Some((error, _)) => return Verdict::Wait(format!("{name} cannot be listed: {error}")),
            }
        }
        Verdict::Ready
    }

    /// Keeps these objects whole for an Application even if they are not tracked: its targets, its hooks, its
    /// namespace. Replaces the keys given before. Their kinds must be [`Cluster::ready`].
    ///
    /// # Errors
    /// If one that is there could not be read.
    pub async fn hold(&self, instance: &str, keys: &[ResourceKey]) -> Result<(), ClusterError> {
        let lacking = self.shared.state.lock().hold(instance, keys);
        for key in lacking {
            let Some(served) = self.shared.watched(&GroupKind::new(&key.group, &key.kind)) else { continue };
            // Reading folds it in, whole because it is held now.
            self.fetch(&served.api_version, &key).await?;
        }
        Ok(())
    }

    /// The Application is gone, or lives elsewhere now.
    pub fn forget(&self, instance: &str) {
        self.shared.state.lock().hold(instance, &[]);
    }

    // --- what is known ---

    /// A kind as the cluster serves it; `None` if it does not.
    ///
    /// # Errors
    /// If it is not known, because the cluster was never reached.
    pub fn kind(&self, api_version: &str, kind: &str) -> Result<Option<KindInfo>, ClusterError> {
        let situation = self.shared.situation.lock();
        if situation.discovered > 0 {
            return Ok(situation.catalog.kind(api_version, kind).cloned());
        }
        drop(situation);
        Err(self.shared.lost().unwrap_or_else(|| self.unknown()))
    }

    /// The Kubernetes version without a `v`; empty until the cluster was reached.
    pub fn version(&self) -> String {
        self.shared.situation.lock().version.clone()
    }

    /// `apiVersion` and `apiVersion/Kind` of all kinds.
    pub fn api_versions(&self) -> Arc<[String]> {
        self.shared.situation.lock().catalog.names()
    }

    /// Whether the operator excluded objects of this kind.
    pub fn is_excluded(&self, group: &str, kind: &str) -> bool {
        self.shared.settings.borrow().exclusions.excludes(group, kind, self.server())
    }

    /// Whether objects of this kind in this namespace may be looked at and written.
    ///
    /// # Errors
    /// Why not, in Argo CD's words.
    pub fn check_scope(&self, key: &ResourceKey, info: &KindInfo) -> Result<(), String> {
        let access = self.access();
        match info.namespaced {
            true if access.namespaces.is_empty() || access.namespaces.contains(&key.namespace) => Ok(()),
            true => {
                Err(format!("namespace {:?} for {} {:?} is not managed", key.namespace, key.kind, key.name))
            }
            false if access.sees_cluster_scope() => Ok(()),
            false => Err(format!(
                "cluster level {} {:?} can not be managed when in namespaced mode",
                key.kind, key.name
            )),
        }
    }

    /// The tracked roots of an Application.
    pub fn managed(&self, instance: &str) -> Vec<Arc<Value>> {
        let packed = self.shared.state.lock().managed(instance);
        packed.iter().map(|object| object.open()).collect()
    }

    /// A tracked, guarded or held object. Others are there without their contents: see [`Cluster::hold`].
    pub fn get(&self, key: &ResourceKey) -> Option<Arc<Value>> {
        let packed: Arc<Packed> = self.shared.state.lock().find(key)?.whole.clone()?;
        Some(packed.open())
    }

    /// These objects and all that belongs to them, parents first.
    pub fn tree(&self, roots: &[ResourceKey]) -> Vec<Node> {
        self.shared.state.lock().tree(roots)
    }

    /// The objects of a namespace that say a person must approve their deletion, whosoever they are.
    pub fn guarded_in_namespace(&self, namespace: &str) -> Vec<(ResourceKey, Arc<Value>)> {
        let packed = self.shared.state.lock().guarded_in(namespace);
        packed.into_iter().map(|(key, object)| (key, object.open())).collect()
    }

    /// The tracked roots of a namespace, with their Applications.
    pub fn managed_in_namespace(&self, namespace: &str) -> Vec<(Arc<str>, Arc<Value>)> {
        let packed = self.shared.state.lock().managed_in(namespace);
        packed.into_iter().map(|(instance, object)| (instance, object.open())).collect()
    }

    /// How many objects are known.
    pub fn object_count(&self) -> usize {
        self.shared.state.lock().count()
    }

    // --- asking the cluster ---

    /// Reads an object past everything that is known.
    ///
    /// # Errors
    /// If the cluster does not answer or refuses.
    pub async fn fetch(
        &self,
        api_version: &str,
        key: &ResourceKey,
    ) -> Result<Option<Arc<Value>>, ClusterError> {
        let (requests, path) = match self.path_of(api_version, key) {
            // With its kind every object of it is gone.
            Err(error) if error.is_not_found() => return Ok(None),
            place => place?,
        };
        match requests.get(&path).await {
            Ok(object) => {
                self.shared.fold(&object);
                Ok(Some(Arc::new(object)))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => {
                if error.is_connection() {
                    self.shared.suspect();
                }
                Err(error)
            }
        }
    }

    /// The roots of a namespace that no Application tracks. Read from the cluster, but not every time.
    ///
    /// # Errors
    /// If the cluster does not answer.
    pub async fn orphans(&self, namespace: &str) -> Result<Arc<[ResourceKey]>, ClusterError> {
        if let Some((time, keys)) = self.orphans.lock().get(namespace)
            && time.elapsed() < ORPHANS_AGE
        {
            return Ok(keys.clone());
        }
        let requests = self.requests()?;
        let instance_of = self.shared.settings().instance_of.clone();
        let is_orphan = |object: &Value| object.owners().is_empty() && instance_of(object).is_none();
        let (objects, unread) = sweep::read_namespace(&self.shared, &requests, namespace, is_orphan).await;
        // What may not be seen, or whose own server is down, is passed over.
        if let Some((_, error)) =
            unread.into_iter().find(|(_, error)| matches!(error, ClusterError::NoAnswer(_)))
        {
            return Err(error);
        }
        let mut keys: Vec<ResourceKey> = objects.iter().map(Object::key).collect();
        keys.sort();
        let keys: Arc<[ResourceKey]> = keys.into();
        let mut known = self.orphans.lock();
        known.retain(|_, (time, _)| time.elapsed() < ORPHANS_AGE);
        known.insert(namespace.to_owned(), (Instant::now(), keys.clone()));
        Ok(keys)
    }

    /// The metadata of every root of a namespace that some Application tracks or that is guarded, of whatever kind, read
    /// past everything that is known. For whoever is about to delete the namespace.
    ///
    /// # Errors
    /// If any kind could not be read: then nothing is known of what would be lost.
    pub async fn search_namespace(&self, namespace: &str) -> Result<Vec<Value>, ClusterError> {
        let requests = self.requests()?;
        let instance_of = self.shared.settings().instance_of.clone();
        let counts = |object: &Value| {
            is_guarded(object) || (object.owners().is_empty() && instance_of(object).is_some())
        };
        let (objects, unread) = sweep::read_namespace(&self.shared, &requests, namespace, counts).await;
        match unread.into_iter().next() {
            None => Ok(objects),
            Some((kind, error)) => Err(ClusterError::NotReady(format!(
                "it is not known what namespace {namespace:?} holds: {} cannot be read: {error}",
                kind.kind
            ))),
        }
    }

    /// What the object would be after it was applied.
    ///
    /// # Errors
    /// Why that cannot be said.
    pub async fn predict(&self, target: &Value) -> Result<Value, PredictError> {
        perform::predict(self, target).await
    }

    /// Does what is asked, and takes in what came of it.
    pub async fn perform(&self, verb: &baton_sync::action::Verb) -> baton_sync::action::Outcome {
        perform::perform(self, verb).await
    }

    pub(crate) fn requests(&self) -> Result<Requests, ClusterError> {
        // Nobody need wait for what the keeper finds out anyway.
        if let Some(lost) = self.shared.lost() {
            return Err(lost);
        }
        let requests = self.shared.situation.lock().requests.clone();
        requests.ok_or_else(|| self.unknown())
    }

    /// The path of an object, with what sends requests there.
    pub(crate) fn path_of(
        &self,
        api_version: &str,
        key: &ResourceKey,
    ) -> Result<(Requests, String), ClusterError> {
        let (requests, collection) = self.collection_of(api_version, key)?;
        Ok((requests, paths::object(&collection, &key.name)?))
    }

    pub(crate) fn collection_of(
        &self,
        api_version: &str,
        key: &ResourceKey,
    ) -> Result<(Requests, String), ClusterError> {
        let info = self.kind(api_version, &key.kind)?.ok_or_else(no_such_kind)?;
        self.check_scope(key, &info).map_err(ClusterError::Forbidden)?;
        let namespace = info.namespaced.then_some(key.namespace.as_str());
        if namespace == Some("") {
            return Err(ClusterError::Api {
                code: 400,
                reason: "BadRequest".to_owned(),
                message: format!("{} {:?} needs a namespace", key.kind, key.name),
            });
        }
        Ok((self.requests()?, paths::collection(api_version, &info.plural, namespace)))
    }

    /// The key of an object as the cluster knows it: without namespace where its kind has none.
    pub(crate) fn key_of(&self, object: &Value) -> ResourceKey {
        let key = object.key();
        match self.kind(object.api_version(), object.kind()) {
            Ok(Some(info)) if !info.namespaced => key.in_namespace(""),
            _ => key,
        }
    }

    fn unknown(&self) -> ClusterError {
        ClusterError::NotReady(format!("cluster {:?} was not reached yet", self.server()))
    }
}

/// What the API says of a path it does not serve.
pub(crate) fn no_such_kind() -> ClusterError {
    ClusterError::Api {
        code: 404,
        reason: "NotFound".to_owned(),
        message: "the server could not find the requested resource".to_owned(),
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Start::Started(keeper) = &*self.keeper.lock() {
            keeper.abort();
        }
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("server", self.server()).finish_non_exhaustive()
    }
}
