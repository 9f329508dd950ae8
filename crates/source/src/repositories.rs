//! The repositories as the rest of the program sees them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::access::{Access, Credentials};
use crate::cache::{Cache, Slot, Turn};
use crate::command::{Failure, Refusal, Runner};
use crate::complaint::{explain, presentable};
use crate::error::SourceError;
use crate::fetch::Conversation;
use crate::github_app::GitHubApps;
use crate::location::{Location, Remote};
use crate::memory::{Listings, Trees};
use crate::objects::{Allowance, Store};
use crate::references::{self, Commit, References, Resolved, not_found};
use crate::session::{Session, Surroundings};
use crate::settings::Settings;
use crate::snapshot;
use crate::tree::{Entry, MAX_TARGET, Object, Tree};

/// How the files begin that stand for contents kept elsewhere.
const LFS_PREFIXES: [&[u8]; 2] =
    [b"version https://git-lfs.github.com/spec/", b"version https://hawser.github.com/spec/"];

/// Reads repositories. Clones share their caches.
#[derive(Debug, Clone)]
pub struct Repositories(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: Settings,
    runner: Runner,
    surroundings: Surroundings,
    cache: Mutex<Option<Arc<Cache>>>,
    apps: GitHubApps,
    listings: Listings,
    trees: Trees,
    gates: Mutex<HashMap<Slot, Weak<tokio::sync::Mutex<()>>>>,
}

/// A repository somewhere else, and its place in the cache.
struct Distant<'a> {
    remote: Remote,
    access: &'a Access,
    slot: Slot,
    cache: Arc<Cache>,
    repository: String,
}

impl Repositories {
    /// Readies the reading of repositories. The cache directory is made when it is first needed.
    pub fn new(settings: Settings) -> Repositories {
        Repositories(Arc::new(Inner {
            runner: Runner::new(settings.git.clone(), settings.limits.processes),
            surroundings: Surroundings::new(settings.ssh.clone(), settings.inherit_proxy),
            cache: Mutex::new(None),
            apps: GitHubApps::default(),
            listings: Listings::default(),
            trees: Trees::new(settings.limits.cached_entries),
            gates: Mutex::default(),
            settings,
        }))
    }

    /// The commit a revision names: nothing and `HEAD` (the default branch), a branch, a tag, a full reference, a
    /// version range (the highest tag within it), a commit in full or its first seven digits or more.
    ///
    /// The references of a repository are believed for [`Settings::revision_cache`]; `fresh` asks the repository
    /// again. A full commit is taken at its word.
    ///
    /// # Errors
    /// The repository cannot be read, or has no such revision.
    pub async fn resolve(
        &self,
        url: &str,
        access: &Access,
        revision: &str,
        fresh: bool,
    ) -> Result<Commit, SourceError> {
        let inner = &*self.0;
        let location = Location::parse(url, &inner.settings)?;
        let repository = location.display();
        if let Some(commit) = references::check(&repository, revision)? {
            return Ok(commit);
        }
        match location {
            Location::Directory { path, .. } => inner.snapshot(&repository, &path).await,
            Location::Local { path, .. } => {
                inner.resolve_local(&repository, &Store::local(&path), &path, revision).await
            }
            Location::Remote(remote) => {
                inner.resolve_distant(&inner.distant(remote, access).await?, revision, fresh).await
            }
        }
    }

    /// The files and directories of a commit, fetched when they are not here.
    ///
    /// # Errors
    /// The repository cannot be read, has no such commit, or its tree is over a limit or none a checkout may have.
    pub async fn tree(&self, url: &str, access: &Access, commit: &Commit) -> Result<Arc<Tree>, SourceError> {
        let inner = &*self.0;
        match Location::parse(url, &inner.settings)? {
            Location::Directory { path, display } => {
                inner.local_tree(&display, &inner.snapshots_of(&path), *commit).await
            }
            Location::Local { path, display } => inner.local_tree(&display, &path, *commit).await,
            Location::Remote(remote) => inner.tree(&inner.distant(remote, access).await?, *commit).await,
        }
    }

    /// The contents of files, in the order asked for. Links are followed within the repository.
    ///
    /// # Errors
    /// As for [`Repositories::tree`]; and a path that leads to no regular file, out of the repository, to a pointer
    /// of git LFS, or to more bytes than the limits allow. Then nothing is given at all.
    pub async fn read(
        &self,
        url: &str,
        access: &Access,
        commit: &Commit,
        paths: &[String],
    ) -> Result<Vec<(String, Bytes)>, SourceError> {
        let inner = &*self.0;
        let location = Location::parse(url, &inner.settings)?;
        let repository = location.display();
        let allowance =
            Allowance { each: inner.settings.limits.file_bytes, all: inner.settings.limits.read_bytes };
        let fault = |path: &str, why: String| SourceError::File {
            repository: repository.clone(),
            commit: commit.to_string(),
            path: path.to_owned(),
            why,
        };
        let objects_of = |tree: &Tree| -> Result<Vec<Object>, SourceError> {
            let object =
                |path: &String| tree.file(path).map_err(|astray| fault(path, astray.why().to_owned()));
            paths.iter().map(object).collect()
        };
        let contents = match location {
            Location::Directory { path, display } | Location::Local { path, display } => {
                let path = if snapshot::is_plain(&path) { inner.snapshots_of(&path) } else { path };
                let objects = objects_of(&*inner.local_tree(&display, &path, *commit).await?)?;
                let store = Store::local(&path);
                let here = store.contents(&inner.runner, &inner.settings.limits, &objects, allowance).await;
                here.map_err(|failure| large(failure, paths, &fault, &repository))?
            }
            Location::Remote(remote) => {
                let distant = inner.distant(remote, access).await?;
                let objects = objects_of(&*inner.tree(&distant, *commit).await?)?;
                inner.contents(&distant, *commit, &objects, allowance).await.map_err(
                    |failure| match failure {
                        Unread::Failure(failure) => large(failure, paths, &fault, &repository),
                        Unread::Source(error) => error,
                    },
                )?
            }
        };
        let mut files = Vec::with_capacity(paths.len());
        for (path, content) in paths.iter().zip(contents) {
            let content = content.ok_or_else(|| fault(path, "its content is not there".to_owned()))?;
            if LFS_PREFIXES.iter().any(|prefix| content.starts_with(prefix)) {
                return Err(fault(path, "it is a pointer of git LFS, which is not followed".to_owned()));
            }
            files.push((path.clone(), content));
        }
        Ok(files)
    }
}

/// Why contents were not read.
enum Unread {
    Failure(Failure),
    Source(SourceError),
}

/// Says which file was too large, where it was one.
fn large(
    failure: Failure,
    paths: &[String],
    fault: &impl Fn(&str, String) -> SourceError,
    repository: &str,
) -> SourceError {
    match failure {
        Failure::Refused(Refusal::Large { place, bytes }) => {
            let path = paths.get(place).map_or("", String::as_str);
            fault(path, format!("it has {bytes} bytes, more than is allowed"))
        }
        other => explain(repository, other, &[]),
    }
}

impl Inner {
    fn snapshots_of(&self, directory: &Path) -> PathBuf {
        snapshot::place(&self.settings.cache_dir, directory)
    }

    async fn snapshot(&self, repository: &str, directory: &Path) -> Result<Commit, SourceError> {
        let place = self.snapshots_of(directory);
        let taken = snapshot::take(&self.runner, &self.settings.limits, directory, &place).await;
        taken.map_err(|failure| explain_local(repository, directory, failure))
    }

    async fn resolve_local(
        &self,
        repository: &str,
        store: &Store,
        path: &Path,
        revision: &str,
    ) -> Result<Commit, SourceError> {
        let limits = &self.settings.limits;
        let references = match store.references(&self.runner, limits).await {
            Ok(references) => references,
            // Without any reference, git says nothing and fails.
            Err(Failure::Exit(complaint)) if complaint.trim().is_empty() => References::default(),
            Err(failure) => return Err(explain_local(repository, path, failure)),
        };
        match references.resolve(repository, revision)? {
            Resolved::Commit(commit) => Ok(commit),
            Resolved::Abbreviated(digits) => {
                let found = store.abbreviated(&self.runner, limits, &digits).await;
                abbreviation(repository, revision, found, |failure| explain_local(repository, path, failure))
            }
        }
    }

    async fn resolve_distant(
        &self,
        distant: &Distant<'_>,
        revision: &str,
        fresh: bool,
    ) -> Result<Commit, SourceError> {
        let asked = Instant::now();
        let references = self.references(distant, fresh, asked).await?;
        let resolved = match references.resolve(&distant.repository, revision) {
            // What a remembered listing does not have may have come since.
            Err(SourceError::NotFound { .. }) if !fresh => {
                let references = self.references(distant, true, asked).await?;
                references.resolve(&distant.repository, revision)?
            }
            other => other?,
        };
        match resolved {
            Resolved::Commit(commit) => Ok(commit),
            Resolved::Abbreviated(digits) => self.abbreviated(distant, revision, &digits).await,
        }
    }

    async fn references(
        &self,
        distant: &Distant<'_>,
        fresh: bool,
        asked: Instant,
    ) -> Result<Arc<References>, SourceError> {
        let oldest = if fresh { Some(asked) } else { asked.checked_sub(self.settings.revision_cache) };
        let place = self.listings.place(&distant.slot);
        let mut listing = place.lock().await;
        if let Some((begun, references)) = &*listing
            && oldest.is_none_or(|oldest| *begun >= oldest)
        {
            return Ok(references.clone());
        }
        let begun = Instant::now();
        let session = self.session(distant).await?;
        let conversation = self.conversation(distant, &session);
        let references = Arc::new(conversation.references(&self.settings.cache_dir).await?);
        *listing = Some((begun, references.clone()));
        Ok(references)
    }

    /// Looks for a commit among all of a repository's; they are kept apart from those whose trees are read.
    async fn abbreviated(
        &self,
        distant: &Distant<'_>,
        revision: &str,
        digits: &str,
    ) -> Result<Commit, SourceError> {
        let commits = Distant {
            slot: distant
                .cache
                .slot(&format!("commits of {}", distant.remote.url), &distant.access.identity()),
            remote: distant.remote.clone(),
            access: distant.access,
            cache: distant.cache.clone(),
            repository: distant.repository.clone(),
        };
        let gate = self.gate(&commits.slot);
        let _one = gate.lock().await;
        let store = Store::bare(&commits.slot.directory);
        if let Ok(Some(commit)) = store.abbreviated(&self.runner, &self.settings.limits, digits).await {
            return Ok(commit);
        }
        let turn = self.turn(&commits).await?;
        let session = self.session(&commits).await?;
        let fetched = self.conversation(&commits, &session).commits(&commits.slot).await;
        self.settle(&commits, turn).await;
        fetched?;
        let found = store.abbreviated(&self.runner, &self.settings.limits, digits).await;
        abbreviation(&commits.repository, revision, found, |failure| {
            explain(&commits.repository, failure, &[])
        })
    }

    async fn local_tree(
        &self,
        repository: &str,
        path: &Path,
        commit: Commit,
    ) -> Result<Arc<Tree>, SourceError> {
        let key = (path.to_owned(), commit);
        if let Some(tree) = self.trees.get(&key) {
            return Ok(tree);
        }
        let store = Store::local(path);
        let limits = &self.settings.limits;
        let missing = |failure| match failure {
            Failure::Exit(complaint) if speaks_of_missing(&complaint) => {
                not_found(repository, commit.as_str(), "the repository has no such commit")
            }
            Failure::Refused(Refusal::Content(why)) => refused_tree(repository, commit, why),
            other => explain_local(repository, path, other),
        };
        let mut entries = store.entries(&self.runner, limits, commit).await.map_err(&missing)?;
        let links = Tree::links(&entries);
        let objects: Vec<Object> = links.iter().map(|(_, object)| *object).collect();
        let targets = store.contents(&self.runner, limits, &objects, targets()).await.map_err(missing)?;
        set_targets(&mut entries, &links, &targets);
        Ok(self.keep_tree(key, repository, entries))
    }

    async fn tree(&self, distant: &Distant<'_>, commit: Commit) -> Result<Arc<Tree>, SourceError> {
        let key = (distant.slot.directory.clone(), commit);
        if let Some(tree) = self.trees.get(&key) {
            return Ok(tree);
        }
        let gate = self.gate(&distant.slot);
        let _one = gate.lock().await;
        if let Some(tree) = self.trees.get(&key) {
            return Ok(tree);
        }
        let mut entries = self.entries(distant, commit).await?;
        let links = Tree::links(&entries);
        let objects: Vec<Object> = links.iter().map(|(_, object)| *object).collect();
        let targets = self.contents_gated(distant, commit, &objects, targets()).await;
        let targets = targets.map_err(|unread| match unread {
            Unread::Failure(failure) => explain(&distant.repository, failure, &[]),
            Unread::Source(error) => error,
        })?;
        set_targets(&mut entries, &links, &targets);
        Ok(self.keep_tree(key, &distant.repository, entries))
    }

    fn keep_tree(
        &self,
        key: (std::path::PathBuf, Commit),
        repository: &str,
        entries: Vec<Entry>,
    ) -> Arc<Tree> {
        let (hidden, most) = (self.settings.include_hidden_directories, self.settings.limits.entries);
        let tree = Arc::new(Tree::new(repository, key.1, entries, hidden, most));
        self.trees.insert(key, tree.clone());
        tree
    }

    /// The entries of a commit's tree, fetched when they are not here. A cache that is broken is thrown away once.
    async fn entries(&self, distant: &Distant<'_>, commit: Commit) -> Result<Vec<Entry>, SourceError> {
        let store = Store::bare(&distant.slot.directory);
        let limits = &self.settings.limits;
        let read = async || {
            let _lease = self.lease(distant).await?;
            let entries = store.entries(&self.runner, limits, commit).await;
            match entries {
                Ok(entries) => Ok(Ok(entries)),
                Err(Failure::Exit(complaint)) => Ok(Err(complaint)),
                Err(Failure::Refused(Refusal::Content(why))) => {
                    Err(refused_tree(&distant.repository, commit, why))
                }
                Err(other) => Err(explain(&distant.repository, other, &[])),
            }
        };
        if distant.slot.directory.exists()
            && let Ok(entries) = read().await?
        {
            return Ok(entries);
        }
        let session = self.session(distant).await?;
        let conversation = self.conversation(distant, &session);
        let mut complaint = String::new();
        for attempt in 0..2 {
            if attempt > 0 {
                tracing::warn!(
                    repository = distant.repository,
                    complaint,
                    "the cached repository is thrown away"
                );
                let (cache, slot) = (distant.cache.clone(), distant.slot.clone());
                self.disk(&distant.repository, move || cache.remove(&slot)).await?;
            }
            let turn = self.turn(distant).await?;
            let fetched = conversation.commit(&distant.slot, commit).await;
            self.settle(distant, turn).await;
            match fetched {
                // A fetch that trips over a broken cache cannot be told from one that meets a broken server.
                Err(SourceError::Network { why, .. }) if attempt == 0 && speaks_of_damage(&why) => {
                    complaint = why;
                    continue;
                }
                other => other?,
            }
            match read().await? {
                Ok(entries) => return Ok(entries),
                Err(why) => complaint = presentable(&why, &[]),
            }
        }
        if speaks_of_missing(&complaint) {
            return Err(not_found(&distant.repository, commit.as_str(), "the repository has no such commit"));
        }
        Err(SourceError::Local { repository: distant.repository.clone(), why: complaint })
    }

    async fn contents(
        &self,
        distant: &Distant<'_>,
        commit: Commit,
        objects: &[Object],
        allowance: Allowance,
    ) -> Result<Vec<Option<Bytes>>, Unread> {
        let here = self.contents_here(distant, objects, allowance).await?;
        if let Some(contents) = here.filter(|contents| contents.iter().all(Option::is_some)) {
            return Ok(contents);
        }
        let gate = self.gate(&distant.slot);
        let _one = gate.lock().await;
        self.contents_gated(distant, commit, objects, allowance).await
    }

    /// Reads contents, fetching those that are missing. The repository's gate is held.
    async fn contents_gated(
        &self,
        distant: &Distant<'_>,
        commit: Commit,
        objects: &[Object],
        allowance: Allowance,
    ) -> Result<Vec<Option<Bytes>>, Unread> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let contents = match self.contents_here(distant, objects, allowance).await? {
            Some(contents) => contents,
            None => {
                // The cached repository went away or broke since its tree was read.
                self.entries(distant, commit).await.map_err(Unread::Source)?;
                vec![None; objects.len()]
            }
        };
        let mut missing: Vec<Object> = objects
            .iter()
            .zip(&contents)
            .filter_map(|(object, content)| content.is_none().then_some(*object))
            .collect();
        if missing.is_empty() {
            return Ok(contents);
        }
        missing.sort_unstable();
        missing.dedup();
        let session = self.session(distant).await.map_err(Unread::Source)?;
        let turn = self.turn(distant).await.map_err(Unread::Source)?;
        let conversation = self.conversation(distant, &session);
        let fetched = conversation.contents(&distant.slot, commit, &missing).await;
        self.settle(distant, turn).await;
        fetched.map_err(Unread::Source)?;
        let contents = self.contents_here(distant, objects, allowance).await?;
        Ok(contents.unwrap_or_else(|| vec![None; objects.len()]))
    }

    /// Contents that are in the cache; `None` when the cached repository cannot be read.
    async fn contents_here(
        &self,
        distant: &Distant<'_>,
        objects: &[Object],
        allowance: Allowance,
    ) -> Result<Option<Vec<Option<Bytes>>>, Unread> {
        let _lease = self.lease(distant).await.map_err(Unread::Source)?;
        let store = Store::bare(&distant.slot.directory);
        if !distant.slot.directory.exists() {
            return Ok(None);
        }
        match store.contents(&self.runner, &self.settings.limits, objects, allowance).await {
            Ok(contents) => Ok(Some(contents)),
            Err(Failure::Exit(_)) => Ok(None),
            Err(other) => Err(Unread::Failure(other)),
        }
    }

    async fn distant<'a>(&self, remote: Remote, access: &'a Access) -> Result<Distant<'a>, SourceError> {
        let repository = remote.url.clone();
        let cache = self.cache(&repository).await?;
        let mut identity = access.identity();
        if let Some((user, password)) = &remote.user_info {
            identity.extend([user.as_bytes(), b"\0", password.expose().as_bytes()].concat());
        }
        let slot = cache.slot(&remote.url, &identity);
        Ok(Distant { remote, access, slot, cache, repository })
    }

    async fn cache(&self, repository: &str) -> Result<Arc<Cache>, SourceError> {
        if let Some(cache) = self.cache.lock().clone() {
            return Ok(cache);
        }
        let root = self.settings.cache_dir.clone();
        let opened = Arc::new(self.disk(repository, move || Cache::open(&root)).await?);
        Ok(self.cache.lock().get_or_insert(opened).clone())
    }

    async fn session(&self, distant: &Distant<'_>) -> Result<Session, SourceError> {
        let patience = self.settings.limits.silence;
        let token = match &distant.access.credentials {
            Credentials::GitHubApp(app) => {
                Some(self.apps.token(&distant.repository, distant.access, app, patience).await?)
            }
            _ => None,
        };
        let (remote, access) = (distant.remote.clone(), distant.access.clone());
        let surroundings = self.surroundings.clone();
        self.disk(&distant.repository, move || Session::open(&remote, &access, token, &surroundings)).await
    }

    fn conversation<'a>(&'a self, distant: &'a Distant<'a>, session: &'a Session) -> Conversation<'a> {
        Conversation {
            runner: &self.runner,
            limits: &self.settings.limits,
            session,
            access: distant.access,
            repository: &distant.repository,
        }
    }

    /// Waits for the turn to fetch, and readies the slot.
    async fn turn(&self, distant: &Distant<'_>) -> Result<Turn, SourceError> {
        let (cache, slot) = (distant.cache.clone(), distant.slot.clone());
        let patience = self.settings.limits.total;
        let turn = self
            .disk(&distant.repository, move || {
                let Some(turn) = cache.turn(&slot, patience)? else { return Ok(None) };
                cache.prepare(&slot, &turn)?;
                Ok(Some(turn))
            })
            .await?;
        turn.ok_or_else(|| SourceError::Timeout {
            repository: distant.repository.clone(),
            after: patience,
            why: "another process keeps its cache busy",
        })
    }

    /// After a fetch: notes the use, and makes room.
    async fn settle(&self, distant: &Distant<'_>, turn: Turn) {
        let (cache, slot) = (distant.cache.clone(), distant.slot.clone());
        let (most, bytes) = (self.settings.limits.cached_repositories, self.settings.limits.cached_bytes);
        let settled = self.disk(&distant.repository, move || {
            cache.end(&slot, turn)?;
            cache.evict(&slot, most, bytes)
        });
        if let Err(fault) = settled.await {
            tracing::warn!(%fault, "old repositories could not be removed from the cache");
        }
    }

    async fn lease(&self, distant: &Distant<'_>) -> Result<crate::cache::Lease, SourceError> {
        let (cache, slot) = (distant.cache.clone(), distant.slot.clone());
        self.disk(&distant.repository, move || cache.lease(&slot)).await
    }

    /// Does what waits for the disk where it holds nobody up.
    async fn disk<T: Send + 'static>(
        &self,
        repository: &str,
        work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, SourceError> {
        let fault = |why: String| SourceError::Local { repository: repository.to_owned(), why };
        match tokio::task::spawn_blocking(work).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(fault(format!("the cache cannot be used: {error}"))),
            Err(_) => Err(fault("the request was given up".to_owned())),
        }
    }

    /// The lock that lets one at a time work on a cached repository.
    fn gate(&self, slot: &Slot) -> Arc<tokio::sync::Mutex<()>> {
        let mut gates = self.gates.lock();
        if let Some(gate) = gates.get(slot).and_then(Weak::upgrade) {
            return gate;
        }
        gates.retain(|_, gate| gate.strong_count() > 0);
        let gate = Arc::new(tokio::sync::Mutex::new(()));
        gates.insert(slot.clone(), Arc::downgrade(&gate));
        gate
    }
}

/// How much of links' targets is read.
fn targets() -> Allowance {
    Allowance { each: MAX_TARGET, all: 64 << 20 }
}

fn set_targets(entries: &mut [Entry], links: &[(usize, Object)], targets: &[Option<Bytes>]) {
    for ((at, _), target) in links.iter().zip(targets) {
        if let (Some(entry), Some(target)) = (entries.get_mut(*at), target) {
            Tree::set_target(entry, target);
        }
    }
}

fn abbreviation(
    repository: &str,
    revision: &str,
    found: Result<Option<Commit>, Failure>,
    explain: impl FnOnce(Failure) -> SourceError,
) -> Result<Commit, SourceError> {
    match found {
        Ok(Some(commit)) => Ok(commit),
        Err(Failure::Exit(complaint)) if complaint.contains("ambiguous") => {
            Err(not_found(repository, revision, "several commits begin with these digits"))
        }
        Ok(None) | Err(Failure::Exit(_)) => {
            Err(not_found(repository, revision, "it has no branch, tag or commit of that name"))
        }
        Err(other) => Err(explain(other)),
    }
}

fn explain_local(repository: &str, path: &Path, failure: Failure) -> SourceError {
    let why = match &failure {
        Failure::Exit(complaint) if complaint.contains("not a git repository") => format!(
            "{} is not a git repository; what is committed in one is read, not the files themselves",
            path.display()
        ),
        Failure::Exit(complaint) => presentable(complaint, &[]),
        Failure::Io(_) if !path.is_dir() => format!("{} is no directory", path.display()),
        _ => return explain(repository, failure, &[]),
    };
    SourceError::Local { repository: repository.to_owned(), why }
}

fn refused_tree(repository: &str, commit: Commit, why: String) -> SourceError {
    SourceError::Tree { repository: repository.to_owned(), commit: commit.to_string(), why }
}

fn speaks_of_missing(complaint: &str) -> bool {
    ["Not a valid object name", "not a tree object", "bad object", "expected commit type"]
        .iter()
        .any(|sign| complaint.contains(sign))
}

/// Whether `git` complains about the cached repository rather than about the remote.
fn speaks_of_damage(complaint: &str) -> bool {
    const SIGNS: [&str; 9] = [
        "not a git repository",
        "corrupt",
        "packfile",
        "bad object",
        "unable to read",
        "missing necessary objects",
        "not a valid object",
        "index file",
        "bad config",
    ];
    SIGNS.iter().any(|sign| complaint.contains(sign))
}
