//! One repository at one commit.

use std::sync::Arc;

use baton_source::{Access, Astray, Commit, Place, Repositories, Tree};
use bytes::Bytes;

use crate::error::Fault;

/// A repository at a commit, read with one access.
#[derive(Debug, Clone)]
pub(crate) struct Checkout {
    repositories: Repositories,
    url: String,
    access: Access,
    commit: Commit,
    pub(crate) tree: Arc<Tree>,
}

impl Checkout {
    pub(crate) async fn open(
        repositories: &Repositories,
        url: &str,
        access: Access,
        commit: Commit,
    ) -> Result<Checkout, Fault> {
        let tree = repositories.tree(url, &access, &commit).await?;
        Ok(Checkout { repositories: repositories.clone(), url: url.to_owned(), access, commit, tree })
    }

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
        Ok(self.repositories.read_within(&self.url, &self.access, &self.commit, paths, most).await?)
    }
}

/// A path of a directory's entry; the root has no name.
pub(crate) fn joined(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}
