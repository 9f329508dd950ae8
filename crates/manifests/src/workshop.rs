//! A temporary directory with what a tool needs of a repository, written by us.
//!
//! Links are written as what they lead to, so that no path in the directory leads out of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use baton_source::Astray;
use bytes::Bytes;
use tempfile::TempDir;

use crate::checkout::Checkout;
use crate::error::Fault;
use crate::settings::{Limits, Settings};

/// How many files are read at once.
const BATCH: usize = 2000;

/// A directory of one rendering, gone with this.
#[derive(Debug)]
pub(crate) struct Workshop {
    directory: TempDir,
    files: usize,
    bytes: u64,
    limits: Limits,
    written: BTreeSet<String>,
}

impl Workshop {
    /// Makes the directory, under a name nobody can guess.
    pub(crate) async fn open(settings: &Settings) -> Result<Workshop, Fault> {
        let work_dir = settings.work_dir.clone();
        let directory = blocking(move || {
            std::fs::create_dir_all(&work_dir)?;
            let work_dir = std::path::absolute(&work_dir)?;
            let directory = tempfile::Builder::new().prefix("baton-render-").tempdir_in(work_dir)?;
            for name in ["home", "tmp", "repository", "values"] {
                std::fs::create_dir(directory.path().join(name))?;
            }
            Ok(directory)
        })
        .await?;
        let limits = settings.limits.clone();
        Ok(Workshop { directory, files: 0, bytes: 0, limits, written: BTreeSet::new() })
    }

    /// The whole directory.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The directory in which a path of the repository is written.
    pub(crate) fn repository(&self, path: &str) -> PathBuf {
        self.path().join("repository").join(path)
    }

    /// Writes a directory of the repository with all beneath it. `path` has no `.` and `..` and may lead through links.
    pub(crate) async fn add(&mut self, checkout: &Checkout, path: &str) -> Result<(), Fault> {
        let real = checkout.directory(path)?;
        let mut shown = Vec::new();
        let mut refused = None;
        checkout.tree.walk(&real, |from, astray| match astray {
            None => {
                let rest = from[real.len()..].trim_start_matches('/');
                shown.push((crate::checkout::joined(path, rest), from.to_owned()));
            }
            // A tool that needs it says so.
            Some(Astray::Missing) => {}
            Some(astray) => {
                refused.get_or_insert(Fault::Link { path: from.to_owned(), why: astray.to_string() });
            }
        })?;
        if let Some(fault) = refused {
            return Err(fault);
        }
        shown.retain(|(to, _)| self.written.insert(to.clone()));
        self.files += shown.len();
        if self.files > self.limits.tree_files {
            let most = self.limits.tree_files;
            return Err(Fault::Limit(format!("the source needs more than {most} files of its repository")));
        }
        for batch in shown.chunks(BATCH) {
            let (to, from): (Vec<String>, Vec<String>) = batch.iter().cloned().unzip();
            let most = self.limits.tree_bytes.saturating_sub(self.bytes);
            let contents = checkout.read(&from, most).await?;
            self.bytes += contents.iter().map(|content| content.len() as u64).sum::<u64>();
            let root = self.repository("");
            blocking(move || write_all(&root, &to, &contents)).await?;
        }
        let made = self.repository(path);
        blocking(move || std::fs::create_dir_all(made)).await
    }

    /// Writes files by their paths.
    pub(crate) async fn unpack(&mut self, files: &BTreeMap<String, Bytes>) -> Result<(), Fault> {
        let (paths, contents): (Vec<String>, Vec<Bytes>) =
            files.iter().map(|(path, content)| (path.clone(), content.clone())).unzip();
        let root = self.repository("");
        blocking(move || write_all(&root, &paths, &contents)).await
    }

    /// Writes a file of ours beside the repository and says where.
    pub(crate) async fn put(&self, name: &str, content: impl Into<Vec<u8>>) -> Result<PathBuf, Fault> {
        let path = self.path().join(name);
        self.write(path.clone(), content).await?;
        Ok(path)
    }

    /// Writes a file of the repository anew.
    pub(crate) async fn replace(&self, path: &str, content: impl Into<Vec<u8>>) -> Result<(), Fault> {
        self.write(self.repository(path), content).await
    }

    async fn write(&self, path: PathBuf, content: impl Into<Vec<u8>>) -> Result<(), Fault> {
        let content = content.into();
        blocking(move || {
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, content)
        })
        .await
    }

    /// A text of a tool without the directory's name, which tells nobody anything.
    pub(crate) fn without_paths(&self, text: &str) -> String {
        let repository = self.repository("");
        let repository = repository.to_string_lossy();
        let shown = text.replace(&*repository, "").replace(repository.trim_end_matches('/'), ".");
        shown.replace(&*self.path().to_string_lossy(), "<temporary directory>")
    }
}

fn write_all(root: &Path, paths: &[String], contents: &[Bytes]) -> io::Result<()> {
    let mut made: Option<PathBuf> = None;
    for (path, content) in paths.iter().zip(contents) {
        let path = root.join(path);
        let parent = path.parent().unwrap_or(root);
        if made.as_deref() != Some(parent) {
            std::fs::create_dir_all(parent)?;
            made = Some(parent.to_owned());
        }
        std::fs::write(&path, content)?;
    }
    Ok(())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Fault> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Fault::Machine(format!("the temporary directory cannot be used: {error}"))),
        Err(_) => Err(Fault::Machine("the rendering was given up".to_owned())),
    }
}
