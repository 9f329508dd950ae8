//! The repositories as the rest of the program sees them.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::access::Access;
use crate::cache::{Cache, Slot};
use crate::command::{Failure, Refusal, Runner};
use crate::complaint::{explain, presentable};
use crate::description::Description;
use crate::distant::{Distant, Unread};
use crate::error::SourceError;
use crate::footprint::Footprint;
use crate::github_app::GitHubApps;
use crate::location::Location;
use crate::memory::{Listings, Trees};
use crate::objects::{Allowance, Store};
use crate::references::{self, Commit, Names, References, Resolved, Target, not_found};
use crate::session::Surroundings;
use crate::settings::Settings;
use crate::snapshot;
use crate::tree::{Entry, MAX_TARGET, Object, Tree};
use crate::web::Download;

/// How the files begin that stand for contents kept elsewhere.
const LFS_PREFIXES: [&[u8]; 2] =
    [b"version https://git-lfs.github.com/spec/", b"version https://hawser.github.com/spec/"];

/// Of how many repositories on the local disk references are remembered.
const MOST_READ: usize = 100;

/// Reads repositories. Clones share their caches.
#[derive(Debug, Clone)]
pub struct Repositories(Arc<Inner>);

/// What clones share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) settings: Settings,
    /// Mapped directories that are no repositories.
    plain: BTreeSet<PathBuf>,
    pub(crate) runner: Runner,
    pub(crate) surroundings: Surroundings,
    cache: Mutex<Option<Arc<Cache>>>,
    pub(crate) apps: GitHubApps,
    pub(crate) listings: Listings,
    pub(crate) trees: Trees,
    gates: Mutex<HashMap<Slot, Weak<tokio::sync::Mutex<()>>>>,
    /// By directory: references that were read, and from which files.
    read: Mutex<HashMap<PathBuf, (Footprint, Arc<References>)>>,
}

impl Repositories {
    /// Readies the reading of repositories. The cache directory is made when it is first needed.
    ///
    /// Which of the mapped directories are repositories is decided here, once: a repository that loses its objects is
    /// an error later, not a directory of other files.
    pub fn new(mut settings: Settings) -> Repositories {
        // `git` runs in other directories than this process.
        if let Ok(absolute) = std::path::absolute(&settings.cache_dir) {
            settings.cache_dir = absolute;
        }
        Repositories(Arc::new(Inner {
            runner: Runner::new(settings.git.clone(), settings.limits.processes),
            surroundings: Surroundings::new(settings.ssh.clone(), settings.inherit_proxy),
            cache: Mutex::new(None),
            apps: GitHubApps::new(settings.inherit_proxy),
            listings: Listings::default(),
            trees: Trees::new(settings.limits.cached_entries),
            gates: Mutex::default(),
            read: Mutex::default(),
            plain: settings.local.values().filter(|path| snapshot::is_plain(path)).cloned().collect(),
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
        self.resolve_tagged(url, access, revision, "", fresh).await.map(|target| target.commit)
    }

    /// What a revision names, like [`Repositories::resolve`]; of tags a version range looks only at those that
    /// begin with `tag_prefix`, and at what follows it.
    ///
    /// # Errors
    /// As for [`Repositories::resolve`].
    pub async fn resolve_tagged(
        &self,
        url: &str,
        access: &Access,
        revision: &str,
        tag_prefix: &str,
        fresh: bool,
    ) -> Result<Target, SourceError> {
        let inner = &*self.0;
        let location = inner.locate(url)?;
        let repository = location.display();
        if let Some(commit) = references::check(&repository, revision)? {
            return Ok(commit.into());
        }
        match location {
            Location::Directory { path, .. } => inner.snapshot(&repository, &path).await.map(Target::from),
            Location::Local { path, .. } => {
                inner.resolve_local(&repository, &Store::local(&path), &path, (revision, tag_prefix)).await
            }
            Location::Remote(remote) => {
                Distant::open(inner, remote, access).await?.resolve(revision, tag_prefix, fresh).await
            }
        }
    }

    /// The names of all branches and tags. The repository is asked, whatever is remembered of it.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub async fn names(&self, url: &str, access: &Access) -> Result<Names, SourceError> {
        let inner = &*self.0;
        let location = inner.locate(url)?;
        let repository = location.display();
        match location {
            Location::Directory { path, .. } => {
                inner.snapshot(&repository, &path).await.map(|_| Names::default())
            }
            Location::Local { path, .. } => {
                let references = inner.local_references(&repository, &Store::local(&path), &path).await?;
                Ok(references.names())
            }
            Location::Remote(remote) => Distant::open(inner, remote, access).await?.names().await,
        }
    }

    /// The files and directories of a commit, fetched when they are not here.
    ///
    /// # Errors
    /// The repository cannot be read, has no such commit, or its tree is over a limit or none a checkout may have.
    pub async fn tree(&self, url: &str, access: &Access, commit: &Commit) -> Result<Arc<Tree>, SourceError> {
        let inner = &*self.0;
        match inner.locate(url)? {
            Location::Directory { path, display } => {
                inner.local_tree(&display, &inner.snapshots_of(&path), *commit).await
            }
            Location::Local { path, display } => inner.local_tree(&display, &path, *commit).await,
            Location::Remote(remote) => Distant::open(inner, remote, access).await?.tree(*commit).await,
        }
    }

    /// What a commit says of itself, fetched when it is not here.
    ///
    /// # Errors
    /// The repository cannot be read, or has no such commit.
    pub async fn describe(
        &self,
        url: &str,
        access: &Access,
        commit: &Commit,
    ) -> Result<Description, SourceError> {
        let inner = &*self.0;
        let location = inner.locate(url)?;
        let (path, display, place) = match location {
            Location::Remote(remote) => {
                return Distant::open(inner, remote, access).await?.describe(*commit).await;
            }
            Location::Directory { path, display } => (inner.snapshots_of(&path), display, None),
            Location::Local { path, display } => (path.clone(), display, Some(path)),
        };
        let store = Store::local(&path);
        let raw = store.commit(&inner.runner, &inner.settings.limits, *commit).await;
        let raw = raw.map_err(|failure| match failure {
            Failure::Exit(complaint) if speaks_of_missing(&complaint) => {
                not_found(&display, commit.as_str(), "the repository has no such commit")
            }
            other => explain_local(&display, &path, other),
        })?;
        let described = Description::read(&raw);
        Ok(match place {
            Some(place) => {
                described.tagged(&*inner.local_references(&display, &store, &place).await?, *commit)
            }
            None => described,
        })
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
        let limits = &self.0.settings.limits;
        let allowance = Allowance { each: limits.file_bytes, all: limits.read_bytes };
        let contents = self.contents(url, access, commit, paths, allowance).await?;
        let is_pointer = |content: &Bytes| LFS_PREFIXES.iter().any(|prefix| content.starts_with(prefix));
        if let Some(at) = contents.iter().position(is_pointer) {
            let repository = self.0.locate(url)?.display();
            let (commit, path) = (commit.to_string(), paths[at].clone());
            let why = "it is a pointer of git LFS, which is not followed".to_owned();
            return Err(SourceError::File { repository, commit, path, why });
        }
        Ok(paths.iter().cloned().zip(contents).collect())
    }

    /// The contents of files as a checkout would have them: like [`Repositories::read`], but no more than `most`
    /// bytes together, and a pointer of git LFS is a file like others.
    ///
    /// # Errors
    /// As for [`Repositories::read`], pointers aside.
    pub async fn read_within(
        &self,
        url: &str,
        access: &Access,
        commit: &Commit,
        paths: &[String],
        most: u64,
    ) -> Result<Vec<Bytes>, SourceError> {
        self.contents(url, access, commit, paths, Allowance { each: most, all: most }).await
    }

    /// What an https or http address gives, up to `most` bytes: an index of charts, a chart. `home` is the address of the
    /// repository the access is for, the only one that is told who asks.
    ///
    /// # Errors
    /// The address is none, cannot be reached, refuses access or sends too much.
    pub async fn download(
        &self,
        address: &str,
        home: &str,
        access: &Access,
        most: u64,
    ) -> Result<Bytes, SourceError> {
        let settings = &self.0.settings;
        let (patience, inherit_proxy) = (settings.limits.total, settings.inherit_proxy);
        Download { access, home, most, patience, inherit_proxy }.get(address).await
    }

    async fn contents(
        &self,
        url: &str,
        access: &Access,
        commit: &Commit,
        paths: &[String],
        allowance: Allowance,
    ) -> Result<Vec<Bytes>, SourceError> {
        let inner = &*self.0;
        let location = inner.locate(url)?;
        let repository = location.display();
        let fault = |path: &str, why: String| SourceError::File {
            repository: repository.clone(),
            commit: commit.to_string(),
            path: path.to_owned(),
            why,
        };
        let objects_of = |tree: &Tree| -> Result<Vec<Object>, SourceError> {
            let object = |path: &String| tree.file(path).map_err(|astray| fault(path, astray.to_string()));
            paths.iter().map(object).collect()
        };
        let plain = matches!(location, Location::Directory { .. });
        let contents = match location {
            Location::Directory { path, display } | Location::Local { path, display } => {
                inner.delay().await;
                let path = if plain { inner.snapshots_of(&path) } else { path };
                let objects = objects_of(&*inner.local_tree(&display, &path, *commit).await?)?;
                let store = Store::local(&path);
                let here = store.contents(&inner.runner, &inner.settings.limits, &objects, allowance).await;
                here.map_err(|failure| large(failure, paths, &fault, &repository))?
            }
            Location::Remote(remote) => {
                let distant = Distant::open(inner, remote, access).await?;
                let objects = objects_of(&*distant.tree(*commit).await?)?;
                distant.contents(*commit, &objects, allowance).await.map_err(|failure| match failure {
                    Unread::Failure(failure) => large(failure, paths, &fault, &repository),
                    Unread::Source(error) => error,
                })?
            }
        };
        let there = |(path, content): (&String, Option<Bytes>)| {
            content.ok_or_else(|| fault(path, "its content is not there".to_owned()))
        };
        paths.iter().zip(contents).map(there).collect()
    }
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
    fn locate(&self, url: &str) -> Result<Location, SourceError> {
        Ok(match Location::parse(url, &self.settings)? {
            Location::Local { path, display } if self.plain.contains(&path) => {
                Location::Directory { path, display }
            }
            other => other,
        })
    }

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
        (revision, tag_prefix): (&str, &str),
    ) -> Result<Target, SourceError> {
        self.delay().await;
        let limits = &self.settings.limits;
        let references = self.local_references(repository, store, path).await?;
        match references.resolve(repository, revision, tag_prefix)? {
            Resolved::Target(target) => Ok(target),
            Resolved::Abbreviated(digits) => {
                let found = store.abbreviated(&self.runner, limits, &digits).await;
                abbreviation(repository, revision, found, |failure| explain_local(repository, path, failure))
                    .map(Target::from)
            }
        }
    }

    /// Lets pass what a look at a repository of this machine takes at least.
    async fn delay(&self) {
        if !self.settings.local_delay.is_zero() {
            tokio::time::sleep(self.settings.local_delay).await;
        }
    }

    /// The references of a repository on the local disk. While its files are the same, git is not run again.
    async fn local_references(
        &self,
        repository: &str,
        store: &Store,
        path: &Path,
    ) -> Result<Arc<References>, SourceError> {
        let look = || {
            let directory = path.to_owned();
            self.disk(repository, move || Ok(Footprint::of(&directory)))
        };
        let found = look().await?;
        let same = |(footprint, _): &&(Footprint, Arc<References>)| Some(footprint) == found.as_ref();
        if let Some((_, known)) = self.read.lock().get(path).filter(same) {
            return Ok(known.clone());
        }
        let references = match store.references(&self.runner, &self.settings.limits).await {
            Ok(references) => Arc::new(references),
            // Without any reference, git says nothing and fails.
            Err(Failure::Exit(complaint)) if complaint.trim().is_empty() => Arc::default(),
            Err(failure) => return Err(explain_local(repository, path, failure)),
        };
        // What changed while git ran may be in what it read, or not.
        if let Some(footprint) = found
            && look().await?.as_ref() == Some(&footprint)
        {
            let mut read = self.read.lock();
            if read.len() >= MOST_READ {
                read.clear();
            }
            read.insert(path.to_owned(), (footprint, references.clone()));
        }
        Ok(references)
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
        let links = Tree::link_objects(&entries);
        let targets =
            store.contents(&self.runner, limits, &links, target_allowance()).await.map_err(missing)?;
        Tree::set_targets(&mut entries, &targets);
        Ok(self.keep_tree(key, repository, entries))
    }

    /// Remembers a tree.
    pub(crate) fn keep_tree(
        &self,
        key: (PathBuf, Commit),
        repository: &str,
        entries: Vec<Entry>,
    ) -> Arc<Tree> {
        let (hidden, most) = (self.settings.include_hidden_directories, self.settings.limits.entries);
        let tree = Arc::new(Tree::new(repository, key.1, entries, hidden, most));
        self.trees.insert(key, tree.clone());
        tree
    }

    /// The cache, opened when it is first needed.
    pub(crate) async fn cache(&self, repository: &str) -> Result<Arc<Cache>, SourceError> {
        if let Some(cache) = self.cache.lock().clone()
            // Whoever cleans up temporary files may have taken it away.
            && self.settings.cache_dir.is_dir()
        {
            return Ok(cache);
        }
        let root = self.settings.cache_dir.clone();
        let opened = Arc::new(self.disk(repository, move || Cache::open(&root)).await?);
        *self.cache.lock() = Some(opened.clone());
        Ok(opened)
    }

    /// Does what waits for the disk where it holds nobody up.
    pub(crate) async fn disk<T: Send + 'static>(
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
    pub(crate) fn gate(&self, slot: &Slot) -> Arc<tokio::sync::Mutex<()>> {
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
pub(crate) fn target_allowance() -> Allowance {
    Allowance { each: MAX_TARGET, all: 64 << 20 }
}

/// What looking for the beginning of a commit's name gave.
pub(crate) fn abbreviation(
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

/// The error for a tree no checkout may have.
pub(crate) fn refused_tree(repository: &str, commit: Commit, why: String) -> SourceError {
    SourceError::Tree { repository: repository.to_owned(), commit: commit.to_string(), why }
}

/// Whether `git` says that a commit is not there.
pub(crate) fn speaks_of_missing(complaint: &str) -> bool {
    ["Not a valid object name", "not a tree object", "bad object", "expected commit type"]
        .iter()
        .any(|sign| complaint.contains(sign))
}
