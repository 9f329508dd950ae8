//! A temporary directory with what a tool needs of a repository, written by us.
//!
//! Links are written as what they lead to, so that no path in the directory leads out of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use baton_source::Astray;
use bytes::Bytes;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use tempfile::TempDir;

use crate::aside::aside;
use crate::checkout::{Checkout, joined};
use crate::error::Fault;
use crate::settings::{Limits, Settings};

/// How many files are read at once.
const BATCH: usize = 2000;

/// How the names of the directories begin; the process's number follows.
const PREFIX: &str = "baton-render-";

/// A directory of one rendering, gone with this.
#[derive(Debug)]
pub(crate) struct Workshop {
    /// Present until this is dropped.
    directory: Option<TempDir>,
    place: PathBuf,
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
            let prefix = format!("{PREFIX}{}-", std::process::id());
            let directory = tempfile::Builder::new().prefix(&prefix).tempdir_in(work_dir)?;
            for name in ["home/tmp", "repository", "values"] {
                std::fs::create_dir_all(directory.path().join(name))?;
            }
            Ok(directory)
        })
        .await?;
        let limits = settings.limits.clone();
        let place = directory.path().to_owned();
        let written = BTreeSet::new();
        Ok(Workshop { directory: Some(directory), place, files: 0, bytes: 0, limits, written })
    }

    /// The whole directory.
    pub(crate) fn path(&self) -> &Path {
        &self.place
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
        let most = self.limits.tree_files;
        checkout.tree.walk(&real, |from, astray| match astray {
            // One too many is enough to know.
            None if shown.len() > most => {}
            None => {
                let rest = from[real.len()..].trim_start_matches('/');
                shown.push((joined(path, rest), from.to_owned()));
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
        if self.files > most {
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

impl Drop for Workshop {
    fn drop(&mut self) {
        let directory = self.directory.take();
        // Many files take a while to remove.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn_blocking(move || drop(directory));
        }
    }
}

/// Removes what processes that were killed have left behind.
pub(crate) fn clear_remains(work_dir: &Path) {
    let Ok(entries) = std::fs::read_dir(work_dir) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'));
        let process = number.and_then(|(number, _)| Pid::from_raw(number.parse().ok()?));
        // Another user's process cannot be asked, but is there.
        let is_gone = process.is_some_and(|process| test_kill_process(process) == Err(Errno::SRCH));
        if is_gone && let Err(error) = std::fs::remove_dir_all(entry.path()) {
            tracing::warn!(path = %entry.path().display(), %error, "what a rendering left behind stays");
        }
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
    let done = aside(work).await?;
    done.map_err(|error| Fault::Machine(format!("the temporary directory cannot be used: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_dead_left_behind_is_removed() {
        let work = tempfile::tempdir().expect("a directory");
        let mut dead = std::process::Command::new("true").spawn().expect("a process");
        dead.wait().expect("it ends");
        let own = std::process::id();
        let names = [format!("{PREFIX}{}-x", dead.id()), format!("{PREFIX}{own}-x"), "other-1-x".to_owned()];
        for name in &names {
            std::fs::create_dir_all(work.path().join(name).join("deep")).expect("a directory");
        }
        clear_remains(work.path());
        assert_eq!(names.map(|name| work.path().join(name).exists()), [false, true, true]);
    }
}
