//! A repository somewhere else, read through its place in the cache.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use crate::access::{Access, Credentials};
use crate::cache::{Cache, Lease, Slot, Turn};
use crate::command::{Failure, Refusal};
use crate::complaint::{explain, presentable};
use crate::description::Description;
use crate::error::SourceError;
use crate::fetch::Conversation;
use crate::location::Remote;
use crate::memory::Listing;
use crate::objects::{Allowance, Store};
use crate::references::{Commit, Names, References, Resolved, Target, not_found};
use crate::repositories::{Inner, abbreviation, refused_tree, speaks_of_missing, target_allowance};
use crate::session::Session;
use crate::settings::Limits;
use crate::tree::{Entry, Object, Tree};

/// One repository, with the access it is read with.
pub(crate) struct Distant<'a> {
    inner: &'a Inner,
    remote: Remote,
    access: &'a Access,
    cache: Arc<Cache>,
    slot: Slot,
    store: Store,
    repository: String,
}

/// Why contents were not read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// Reading what is here failed.
    Failure(Failure),
    /// Getting what is not here failed.
    Source(SourceError),
}

impl From<SourceError> for Unread {
    fn from(error: SourceError) -> Self {
        Unread::Source(error)
    }
}

impl<'a> Distant<'a> {
    pub(crate) async fn open(
        inner: &'a Inner,
        remote: Remote,
        access: &'a Access,
    ) -> Result<Distant<'a>, SourceError> {
        let cache = inner.cache(&remote.url).await?;
        let mut identity = access.identity();
        if let Some((user, password)) = &remote.user_info {
            identity.extend([user.as_bytes(), b"\0", password.expose().as_bytes()].concat());
        }
        let slot = cache.slot(&remote.url, &identity);
        Ok(Distant::at(inner, remote, access, cache, slot))
    }

    fn at(
        inner: &'a Inner,
        remote: Remote,
        access: &'a Access,
        cache: Arc<Cache>,
        slot: Slot,
    ) -> Distant<'a> {
        let store = Store::bare(&slot.directory);
        let repository = remote.url.clone();
        Distant { inner, remote, access, cache, slot, store, repository }
    }

    /// The names of its branches and tags, asked for anew.
    pub(crate) async fn names(&self) -> Result<Names, SourceError> {
        let asked = self.inner.listings.number();
        self.references(Some(asked)).await.map(|references| references.names())
    }

    pub(crate) async fn resolve(
        &self,
        revision: &str,
        tag_prefix: &str,
        fresh: bool,
    ) -> Result<Target, SourceError> {
        let asked = self.inner.listings.number();
        let references = self.references(fresh.then_some(asked)).await?;
        let resolved = match references.resolve(&self.repository, revision, tag_prefix) {
            // What a remembered listing does not have may have come since.
            Err(SourceError::NotFound { .. }) if !fresh => {
                self.references(Some(asked)).await?.resolve(&self.repository, revision, tag_prefix)?
            }
            other => other?,
        };
        match resolved {
            Resolved::Target(target) => Ok(target),
            Resolved::Abbreviated(digits) => self.abbreviated(revision, &digits).await.map(Target::from),
        }
    }

    /// The references; remembered ones when they are not too old and, if that is wanted, asked for `since` then.
    async fn references(&self, since: Option<u64>) -> Result<Arc<References>, SourceError> {
        let place = self.inner.listings.place(&self.slot);
        let mut listing = place.lock().await;
        if let Some(known) = &*listing {
            let believed = known.begun.elapsed() <= self.inner.settings.revision_cache;
            if since.map_or(believed, |since| known.number > since) {
                return Ok(known.references.clone());
            }
        }
        let (begun, number) = (Instant::now(), self.inner.listings.number());
        let session = self.session().await?;
        let references = self.conversation(&session).references(&self.inner.settings.cache_dir).await;
        let references = Arc::new(references?);
        *listing = Some(Listing { begun, number, references: references.clone() });
        Ok(references)
    }

    /// Looks for a commit among all of the repository's; they are kept apart from those whose trees are read.
    async fn abbreviated(&self, revision: &str, digits: &str) -> Result<Commit, SourceError> {
        let slot = self.cache.slot(&format!("commits of {}", self.slot.directory.display()), b"");
        let commits = Distant::at(self.inner, self.remote.clone(), self.access, self.cache.clone(), slot);
        let find = async || {
            let _lease = commits.lease().await?;
            Ok::<_, SourceError>(
                commits.store.abbreviated(&self.inner.runner, commits.limits(), digits).await,
            )
        };
        let gate = self.inner.gate(&commits.slot);
        let _one = gate.lock().await;
        if commits.slot.directory.exists()
            && let Ok(Some(commit)) = find().await?
        {
            return Ok(commit);
        }
        let session = commits.session().await?;
        let turn = commits.turn().await?;
        let fetched = commits.conversation(&session).commits(&commits.slot).await;
        commits.settle(turn).await;
        fetched?;
        let found = find().await?;
        abbreviation(&self.repository, revision, found, |failure| explain(&self.repository, failure, &[]))
    }

    pub(crate) async fn tree(&self, commit: Commit) -> Result<Arc<Tree>, SourceError> {
        let key = (self.slot.directory.clone(), commit);
        if let Some(tree) = self.inner.trees.get(&key) {
            return Ok(tree);
        }
        let gate = self.inner.gate(&self.slot);
        let _one = gate.lock().await;
        // Another who wanted the same may have had the gate before.
        if let Some(tree) = self.inner.trees.get(&key) {
            return Ok(tree);
        }
        let mut entries = self.entries(commit).await?;
        let targets = self.contents_gated(commit, &Tree::link_objects(&entries), target_allowance()).await;
        let targets = targets.map_err(|unread| match unread {
            Unread::Failure(failure) => explain(&self.repository, failure, &[]),
            Unread::Source(error) => error,
        })?;
        Tree::set_targets(&mut entries, &targets);
        Ok(self.inner.keep_tree(key, &self.repository, entries))
    }

    /// What a commit says of itself, fetched when it is not here. Where tags cannot be asked for, none are told.
    pub(crate) async fn describe(&self, commit: Commit) -> Result<Description, SourceError> {
        let raw = {
            let gate = self.inner.gate(&self.slot);
            let _one = gate.lock().await;
            self.entries(commit).await?;
            let _lease = self.lease().await?;
            let raw = self.store.commit(&self.inner.runner, self.limits(), commit).await;
            raw.map_err(|failure| explain(&self.repository, failure, &[]))?
        };
        let described = Description::read(&raw);
        Ok(match self.references(None).await {
            Ok(references) => described.tagged(&references, commit),
            Err(_) => described,
        })
    }

    /// The entries of a commit's tree, fetched when they are not here. A cache that is broken is thrown away once.
    async fn entries(&self, commit: Commit) -> Result<Vec<Entry>, SourceError> {
        if self.slot.directory.exists()
            && let Ok(entries) = self.entries_here(commit).await?
        {
            return Ok(entries);
        }
        let session = self.session().await?;
        let conversation = self.conversation(&session);
        let mut complaint = String::new();
        for attempt in 0..2 {
            if attempt > 0 {
                self.discard(&complaint).await?;
            }
            let turn = self.turn().await?;
            let fetched = conversation.commit(&self.slot, commit).await;
            self.settle(turn).await;
            match fetched {
                // A fetch that trips over a broken cache cannot be told from one that meets a broken server.
                Err(SourceError::Network { why, .. }) if attempt == 0 && speaks_of_damage(&why) => {
                    complaint = why;
                    continue;
                }
                other => other?,
            }
            match self.entries_here(commit).await? {
                Ok(entries) => return Ok(entries),
                Err(why) => complaint = presentable(&why, &[]),
            }
            // A name that stands for something else says nothing about the state of the cache.
            if let Ok(Some(kind)) = self.store.kind(&self.inner.runner, self.limits(), commit).await
                && kind != "commit"
            {
                return Err(not_found(
                    &self.repository,
                    commit.as_str(),
                    format!("it names a {kind}, not a commit"),
                ));
            }
        }
        if speaks_of_missing(&complaint) {
            return Err(not_found(&self.repository, commit.as_str(), "the repository has no such commit"));
        }
        Err(SourceError::Local { repository: self.repository.clone(), why: complaint })
    }

    /// The entries of a commit's tree, or what `git` says when the commit or part of it is not here.
    async fn entries_here(&self, commit: Commit) -> Result<Result<Vec<Entry>, String>, SourceError> {
        let _lease = self.lease().await?;
        match self.store.entries(&self.inner.runner, self.limits(), commit).await {
            Ok(entries) => Ok(Ok(entries)),
            Err(Failure::Exit(complaint)) => Ok(Err(complaint)),
            Err(Failure::Refused(Refusal::Content(why))) => Err(refused_tree(&self.repository, commit, why)),
            Err(other) => Err(explain(&self.repository, other, &[])),
        }
    }

    /// The contents of objects, in their order.
    pub(crate) async fn contents(
        &self,
        commit: Commit,
        objects: &[Object],
        allowance: Allowance,
    ) -> Result<Vec<Option<Bytes>>, Unread> {
        let here = self.contents_here(objects, allowance).await?;
        if let Some(contents) = here.filter(|contents| contents.iter().all(Option::is_some)) {
            return Ok(contents);
        }
        let gate = self.inner.gate(&self.slot);
        let _one = gate.lock().await;
        self.contents_gated(commit, objects, allowance).await
    }

    /// Reads contents, fetching those that are missing. The repository's gate is held.
    async fn contents_gated(
        &self,
        commit: Commit,
        objects: &[Object],
        allowance: Allowance,
    ) -> Result<Vec<Option<Bytes>>, Unread> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        for _ in 0..2 {
            let missing = match self.contents_here(objects, allowance).await? {
                Some(contents) if contents.iter().all(Option::is_some) => return Ok(contents),
                Some(contents) => {
                    let missing = objects.iter().zip(&contents).filter(|(_, content)| content.is_none());
                    missing.map(|(object, _)| *object).collect()
                }
                // The cached repository went away or broke since its tree was read.
                None => {
                    self.discard("its contents cannot be read").await?;
                    self.entries(commit).await?;
                    objects.to_vec()
                }
            };
            self.fetch_contents(missing).await?;
        }
        let contents = self.contents_here(objects, allowance).await?;
        Ok(contents.unwrap_or_else(|| vec![None; objects.len()]))
    }

    async fn fetch_contents(&self, mut missing: Vec<Object>) -> Result<(), SourceError> {
        missing.sort_unstable();
        missing.dedup();
        let session = self.session().await?;
        let conversation = self.conversation(&session);
        let turn = self.turn().await?;
        let given = conversation.contents(&self.slot, &missing).await;
        self.settle(turn).await;
        if given? {
            return Ok(());
        }
        self.discard("its server gives no single objects").await?;
        let turn = self.turn().await?;
        let fetched = conversation.whole(&self.slot).await;
        self.settle(turn).await;
        fetched
    }

    /// Contents that are in the cache; `None` when the cached repository cannot be read.
    async fn contents_here(
        &self,
        objects: &[Object],
        allowance: Allowance,
    ) -> Result<Option<Vec<Option<Bytes>>>, Unread> {
        let _lease = self.lease().await?;
        if !self.slot.directory.exists() {
            return Ok(None);
        }
        match self.store.contents(&self.inner.runner, self.limits(), objects, allowance).await {
            Ok(contents) => Ok(Some(contents)),
            Err(Failure::Exit(_)) => Ok(None),
            Err(other) => Err(Unread::Failure(other)),
        }
    }

    /// Throws the cached repository away.
    async fn discard(&self, why: &str) -> Result<(), SourceError> {
        if self.slot.directory.exists() {
            tracing::warn!(repository = self.repository, why, "the cached repository is thrown away");
        }
        let (cache, slot, patience) = (self.cache.clone(), self.slot.clone(), self.limits().total);
        self.inner.disk(&self.repository, move || cache.remove(&slot, patience)).await
    }

    async fn session(&self) -> Result<Session, SourceError> {
        let token = match &self.access.credentials {
            Credentials::GitHubApp(app) => {
                let patience = self.limits().silence;
                Some(self.inner.apps.token(&self.repository, self.access, app, patience).await?)
            }
            _ => None,
        };
        let (remote, access) = (self.remote.clone(), self.access.clone());
        let surroundings = self.inner.surroundings.clone();
        let open = move || Session::open(&remote, &access, token, &surroundings);
        self.inner.disk(&self.repository, open).await
    }

    fn conversation<'s>(&'s self, session: &'s Session) -> Conversation<'s> {
        Conversation {
            runner: &self.inner.runner,
            limits: self.limits(),
            session,
            access: self.access,
            repository: &self.repository,
        }
    }

    fn limits(&self) -> &Limits {
        &self.inner.settings.limits
    }

    /// Waits for the turn to fetch, and readies the slot.
    async fn turn(&self) -> Result<Turn, SourceError> {
        let (cache, slot) = (self.cache.clone(), self.slot.clone());
        let (patience, most) = (self.limits().total, self.limits().repository_bytes);
        let wait = move || {
            let Some(turn) = cache.turn(&slot, patience)? else { return Ok(None) };
            cache.prepare(&slot, &turn, most, patience)?;
            Ok(Some(turn))
        };
        let turn = self.inner.disk(&self.repository, wait).await?;
        turn.ok_or_else(|| SourceError::Timeout {
            repository: self.repository.clone(),
            after: patience,
            why: "another process keeps its cache busy",
        })
    }

    /// After a fetch: notes the use, and makes room.
    async fn settle(&self, turn: Turn) {
        let (cache, slot) = (self.cache.clone(), self.slot.clone());
        let (most, bytes) = (self.limits().cached_repositories, self.limits().cached_bytes);
        let settle = move || {
            cache.end(&slot, turn)?;
            cache.evict(&slot, most, bytes)
        };
        if let Err(fault) = self.inner.disk(&self.repository, settle).await {
            tracing::warn!(%fault, "the cache of repositories could not be put in order");
        }
    }

    async fn lease(&self) -> Result<Lease, SourceError> {
        let (cache, slot) = (self.cache.clone(), self.slot.clone());
        self.inner.disk(&self.repository, move || cache.lease(&slot)).await
    }
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
