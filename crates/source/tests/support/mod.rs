//! Real repositories for tests, made with the installed git.
#![allow(dead_code, reason = "each test binary uses its own part")]

mod repo;
pub(crate) mod server;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use baton_source::{Access, Repositories, RepositorySecret, Settings, access};
use tempfile::TempDir;

pub(crate) use repo::Repo;

/// Repositories with a cache of their own.
pub(crate) struct World {
    pub(crate) repositories: Repositories,
    pub(crate) cache: TempDir,
}

impl World {
    pub(crate) fn new() -> World {
        World::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Settings)) -> World {
        let cache = tempfile::tempdir().expect("a directory");
        let mut settings = settings(cache.path());
        change(&mut settings);
        World { repositories: Repositories::new(settings), cache }
    }

    /// The cached repositories' directories.
    pub(crate) fn cached(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.cache.path().join("repositories"));
        entries.map_or(Vec::new(), |entries| entries.flatten().map(|entry| entry.path()).collect())
    }
}

/// Settings that depend on nothing of this machine.
pub(crate) fn settings(cache: &Path) -> Settings {
    Settings { cache_dir: cache.to_owned(), inherit_proxy: false, ..Settings::default() }
}

/// A world in which `URL` is that repository on disk.
pub(crate) const URL: &str = "https://git.example.com/team/repo.git";

pub(crate) fn mapped(repo: &Repo) -> World {
    World::with(|settings| {
        settings.local.insert(URL.to_owned(), repo.path().to_owned());
    })
}

/// The access a Secret with these fields gives to a URL.
pub(crate) fn access_with(url: &str, fields: &[(&str, &str)]) -> Access {
    let labels = BTreeMap::from([("argocd.argoproj.io/secret-type".to_owned(), "repository".to_owned())]);
    let mut data: BTreeMap<String, Vec<u8>> =
        fields.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
    data.insert("url".to_owned(), url.as_bytes().to_vec());
    let secret = RepositorySecret::read(&labels, &data, "secret").expect("it is about a repository");
    access(url, "", &[secret]).expect("the Secret is sound")
}

/// The paths `read` is asked for.
pub(crate) fn paths(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

/// Files as text.
pub(crate) fn texts(files: Vec<(String, impl AsRef<[u8]>)>) -> Vec<(String, String)> {
    let text = |content: &[u8]| String::from_utf8(content.to_vec()).expect("UTF-8");
    files.into_iter().map(|(path, content)| (path, text(content.as_ref()))).collect()
}
