//! The watch of one kind.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use baton_api::object::Object;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::catalog::{GroupKind, Served};
use crate::error::ClusterError;
use crate::jitter::jittered;
use crate::live::{Digest, KindId, Uid, Wakes, digest};
use crate::page;
use crate::paths;
use crate::requests::{JSON, Lines, Requests};
use crate::shared::{ChangedKind, Connection, Shared, WatchKey, WatchStatus, settings_change};

/// Objects of a page of a list.
pub(crate) const PAGE: usize = 500;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long the server is asked to keep a watch open, and how much longer it is waited for.
const WATCH_SECONDS: u64 = 290;
const WATCH_GRACE: Duration = Duration::from_secs(30);
/// Everything is listed again after this time, however well the watch works.
const RELIST_AFTER: Duration = Duration::from_secs(60 * 60);
/// How often a watch may be refused before everything is listed again.
const MOST_REFUSALS: u32 = 3;
/// Objects of a page where a list was too old and is asked for anew: who simulates an API can tell it from one that fills a
/// cache.
const LARGE_PAGE: usize = 1000;

/// The watch of one kind, in one namespace or in all.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    requests: Requests,
    key: WatchKey,
    served: Served,
    path: String,
    kind: KindId,
    /// Whether the last list was older than what is known.
    doubts_lists: bool,
}

#[derive(Deserialize)]
struct Event {
    r#type: String,
    object: Value,
}

/// Why a watch ended.
enum End {
    /// It may go on where it ended.
    Resume,
    /// Everything must be listed again.
    Relist,
}

impl Watch {
    pub(crate) fn new(shared: Arc<Shared>, requests: Requests, key: WatchKey, served: Served) -> Watch {
        let path = paths::collection(&served.api_version, &served.info.plural, key.1.as_deref());
        let kind = shared.state.lock().kind_id(&key.0, &served.api_version);
        Watch { shared, requests, key, served, path, kind, doubts_lists: false }
    }

    /// Keeps the state up to date until it is dropped.
    pub(crate) async fn run(mut self) {
        let mut settings = self.shared.settings.clone();
        let mut pause = FIRST_PAUSE;
        loop {
            settings.mark_unchanged();
            let version = match self.list().await {
                Ok(version) => version,
                Err(error) => {
                    self.failed(error);
                    self.rest(&mut pause).await;
                    continue;
                }
            };
            self.works();
            let listed = Instant::now();
            tokio::select! {
                biased;
                // What is kept of an object depends on the settings.
                () = settings_change(&mut settings) => {}
                () = self.follow(version, &mut pause) => {}
            }
            // A server that refuses every watch is not listed without pause.
            match listed.elapsed() < FIRST_PAUSE {
                true => self.rest(&mut pause).await,
                false => pause = FIRST_PAUSE,
            }
        }
    }

    /// Lists everything, page by page. Returns the version the list is of.
    async fn list(&mut self) -> Result<String, ClusterError> {
        let known = self.shared.state.lock().newest(self.kind);
        let mut listed: HashSet<Uid> = HashSet::new();
        let mut more = String::new();
        let size = if self.doubts_lists { LARGE_PAGE } else { PAGE };
        loop {
            let path = match more.is_empty() {
                true => format!("{}?limit={size}", self.path),
                false => format!("{}?limit={size}&continue={}", self.path, paths::segment(&more)),
            };
            let text = self.requests.text(&path, JSON).await?;
            let mut digests = Vec::new();
            let page = page::read(&text, |object| digests.push(self.digest(object)))?;
            let version = page.resource_version;
            let number = version.parse().unwrap_or(0);
            self.check_age(number, known)?;
            listed.extend(digests.iter().map(|seen| seen.uid.clone()));
            self.take_in(digests);
            more = page.r#continue;
            if more.is_empty() {
                self.doubts_lists = false;
                let mut wakes = Wakes::default();
                // A list that tells no version is as new as can be.
                let number = if number == 0 { u64::MAX } else { number };
                let mut state = self.shared.state.lock();
                state.complete(self.kind, self.key.1.as_deref(), &listed, number, &mut wakes);
                drop(state);
                self.shared.wake(wakes);
                return Ok(version);
            }
        }
    }

    /// A list is never older than what was known before it was asked for, unless the cluster's own history went back,
    /// as after a restored backup. That is believed only when it is said again, on asking for it.
    fn check_age(&mut self, version: u64, known: u64) -> Result<(), ClusterError> {
        if version == 0 || version >= known {
            return Ok(());
        }
        if !std::mem::replace(&mut self.doubts_lists, true) {
            return Err(ClusterError::NoAnswer(format!(
                "a list of version {version}, but {known} was seen before"
            )));
        }
        tracing::warn!(server = %self.shared.access.server, kind = %self.key.0.kind, "the history of the cluster went back");
        self.shared.state.lock().forget_versions(self.kind);
        Ok(())
    }

    /// Follows what happens after `version`, until everything must be listed again.
    async fn follow(&self, mut version: String, pause: &mut Duration) {
        let mut refusals = 0;
        let (begun, relist_after) = (Instant::now(), self.jittered(RELIST_AFTER));
        loop {
            let path = format!(
                "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={}",
                self.path,
                paths::segment(&version)
            );
            let opened = Instant::now();
            let end = match self.requests.watch(&path).await {
                Ok(mut lines) => {
                    refusals = 0;
                    self.works();
                    self.read(&mut lines, &mut version).await
                }
                Err(error) => Err(error),
            };
            match end {
                Ok(End::Relist) => return,
                // A watch from a version that is yet to come stays silent, as it does after a backup was restored.
                Ok(End::Resume) if begun.elapsed() > relist_after => return,
                Ok(End::Resume) => {
                    // A server that ends watches at once is not asked without pause.
                    match opened.elapsed() < FIRST_PAUSE {
                        true => self.rest(pause).await,
                        false => *pause = FIRST_PAUSE,
                    }
                }
                Err(error) => {
                    // The API knows better where to begin, at once or after a few tries.
                    refusals += u32::from(error.code() != 0);
                    let relist = is_bad_start(&error) || refusals >= MOST_REFUSALS;
                    if !matches!(error, ClusterError::Api { code: 410, .. }) {
                        self.failed(error);
                        self.rest(pause).await;
                    }
                    if relist {
                        return;
                    }
                }
            }
        }
    }

    async fn read(&self, lines: &mut Lines, version: &mut String) -> Result<End, ClusterError> {
        let patience = Duration::from_secs(WATCH_SECONDS) + WATCH_GRACE;
        loop {
            let line = match tokio::time::timeout(patience, lines.next()).await {
                Ok(Ok(Some(line))) => line,
                // A cut is the usual end of a watch; whether more is wrong shows when it is opened again.
                Ok(Ok(None) | Err(_)) | Err(_) => return Ok(End::Resume),
            };
            let Ok(event) = serde_json::from_slice::<Event>(&line) else { return Ok(End::Relist) };
            match event.r#type.as_str() {
                "ERROR" => {
                    let code = event.object["code"].as_u64().unwrap_or(500);
                    let message = event.object["message"].as_str().unwrap_or_default().to_owned();
                    if code == 410 {
                        return Ok(End::Relist);
                    }
                    let reason = event.object["reason"].as_str().unwrap_or_default().to_owned();
                    return Err(ClusterError::Api { code: code.try_into().unwrap_or(500), reason, message });
                }
                kind => {
                    let next = event.object.resource_version().to_owned();
                    match kind {
                        "ADDED" | "MODIFIED" => self.take_in(vec![self.digest(event.object)]),
                        "DELETED" => self.gone(&event.object),
                        _ => {}
                    }
                    if kind != "BOOKMARK" && defines_kinds(&self.key.0) {
                        self.shared.rediscover();
                    }
                    if is_older(&next, version) {
                        return Ok(End::Relist);
                    }
                    if !next.is_empty() {
                        *version = next;
                    }
                }
            }
        }
    }

    fn digest(&self, mut object: Value) -> Digest {
        self.name(&mut object);
        let held = self.shared.state.lock().is_held(&object.key());
        digest(&object, held, &self.shared.settings())
    }

    fn take_in(&self, digests: Vec<Digest>) {
        let mut wakes = Wakes::default();
        let mut state = self.shared.state.lock();
        for seen in digests {
            state.apply(self.kind, seen, &mut wakes);
        }
        drop(state);
        self.shared.wake(wakes);
    }

    fn gone(&self, object: &Value) {
        let mut wakes = Wakes::default();
        let mut state = self.shared.state.lock();
        state.remove(self.kind, object.namespace(), object.name(), &Uid::new(object.uid()), &mut wakes);
        drop(state);
        self.shared.wake(wakes);
    }

    /// Items of lists do not say what they are.
    fn name(&self, object: &mut Value) {
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".to_owned(), (*self.served.api_version).into());
            fields.insert("kind".to_owned(), self.key.0.kind.as_str().into());
        }
    }

    fn works(&self) {
        let mut situation = self.shared.situation.lock();
        let Some(status) = situation.watches.get_mut(&self.key) else { return };
        let news = !status.filled || status.failing.is_some();
        *status = WatchStatus { filled: true, failing: None };
        let tell = news && std::mem::take(&mut situation.impatient);
        drop(situation);
        if news {
            self.shared.tick();
        }
        if tell {
            self.shared.tell(ChangedKind::Connection);
        }
    }

    fn failed(&self, error: ClusterError) {
        tracing::debug!(server = %self.shared.access.server, kind = %self.key.0.kind, %error, "watch failed");
        if error.is_connection() {
            self.shared.suspect();
        }
        let mut situation = self.shared.situation.lock();
        if let Some(status) = situation.watches.get_mut(&self.key) {
            let since = status.failing.take().map_or_else(Instant::now, |(_, since)| since);
            status.failing = Some((error, since));
        }
        drop(situation);
        self.shared.tick();
    }

    fn jittered(&self, pause: Duration) -> Duration {
        jittered(pause, (&*self.shared.access.server, &self.path))
    }

    /// Waits longer each time, and as long as the cluster is lost.
    async fn rest(&self, pause: &mut Duration) {
        tokio::time::sleep(self.jittered(*pause)).await;
        *pause = (*pause * 2).min(LONGEST_PAUSE);
        let mut progress = self.shared.progress();
        while matches!(self.shared.situation.lock().connection, Connection::Lost { .. }) {
            if progress.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Whether a watch cannot begin where it was asked to.
fn is_bad_start(error: &ClusterError) -> bool {
    match error {
        ClusterError::Api { code, message, .. } => {
            matches!(code, 400..=428 | 430..=499) || message.contains("Too large resource version")
        }
        ClusterError::Forbidden(_) => true,
        _ => false,
    }
}

/// Whether a watch went back, which it does only if the history of the cluster did.
fn is_older(version: &str, known: &str) -> bool {
    match (version.parse::<u64>(), known.parse::<u64>()) {
        (Ok(version), Ok(known)) => version < known,
        _ => false,
    }
}

/// Whether objects of this kind say what kinds there are.
pub(crate) fn defines_kinds(kind: &GroupKind) -> bool {
    matches!(
        (kind.group.as_str(), kind.kind.as_str()),
        ("apiextensions.k8s.io", "CustomResourceDefinition") | ("apiregistration.k8s.io", "APIService")
    )
}
