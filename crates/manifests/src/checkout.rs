//! One repository at one commit.

use std::sync::Arc;

use baton_source::{Access, Astray, Commit, Place, Repositories, Tree};
use bytes::Bytes;

use crate::error::Fault;

/// A repository at a commit, read with one access.
#[derive(Debug, Clone)]
pub(crate) struct Checkout {
    repositories: Repositories,
    at: Location,
    pub(crate) tree: Arc<Tree>,
}

/// Which repository is read, with what access, at which commit.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    pub(crate) url: String,
    pub(crate) access: Access,
    pub(crate) commit: Commit,
}

impl Location {
    /// Fetches what is there.
    pub(crate) async fn open(&self, repositories: &Repositories) -> Result<Checkout, Fault> {
        let tree = repositories.tree(&self.url, &self.access, &self.commit).await?;
        Ok(Checkout { repositories: repositories.clone(), at: self.clone(), tree })
    }
}

impl Checkout {
    /// The directory a source's path names, links followed.
    pub(crate) fn directory(&self, path: &str) -> Result<String, Fault> {
        let fault = |why| Fault::Path { path: path.chars().take(500).collect(), why };
        if path.starts_with('/') {
            return Err(fault("is absolute"));
        }
        match self.tree.place(path) {
            Ok(Place::Directory(directory)) => Ok(directory),
            Ok(Place::File(_)) => Err(fault("is not a directory")),
            Err(Astray::Outside) => Err(fault("outside root")),
            Err(Astray::Loop) => Err(fault("leads in a circle of links")),
            Err(_) => Err(fault("does not exist")),
        }
    }

    /// The contents of files, links followed.
    pub(crate) async fn read(&self, paths: &[String], most: u64) -> Result<Vec<Bytes>, Fault> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let Location { url, access, commit } = &self.at;
        Ok(self.repositories.read_within(url, access, commit, paths, most).await?)
    }
}

/// A path of a directory's entry; the root has no name.
pub(crate) fn joined(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

/// A path as written in a directory, without `.`, `..` and doubled slashes: from the root where it begins with a slash.
/// `None` where it leads out of the repository.
pub(crate) fn cleaned(directory: &str, path: &str) -> Option<String> {
    let directory = if path.starts_with('/') { "" } else { directory };
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            other => parts.push(other),
        }
    }
    Some(parts.join("/"))
}
