//! Directories that are no repositories: their files, as they are, stand for every revision.

use std::path::{Path, PathBuf};

use crate::command::{Bounds, Failure, Invocation, Refusal, Runner};
use crate::references::Commit;
use crate::settings::Limits;

/// Who commits a snapshot, and when: always the same, so that the same files give the same commit.
const IDENTITY: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "baton"),
    ("GIT_AUTHOR_EMAIL", "baton@localhost"),
    ("GIT_AUTHOR_DATE", "1000000000 +0000"),
    ("GIT_COMMITTER_NAME", "baton"),
    ("GIT_COMMITTER_EMAIL", "baton@localhost"),
    ("GIT_COMMITTER_DATE", "1000000000 +0000"),
];

/// What git calls a tree without entries.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// Whether a directory is neither a working tree's root nor a bare repository.
pub(crate) fn is_plain(directory: &Path) -> bool {
    // Also where its objects are away for the moment, as on a disk that is not mounted.
    let bare = || {
        let is_directory = |name: &str| directory.join(name).is_dir();
        directory.join("HEAD").is_file() && (is_directory("objects") || is_directory("refs"))
    };
    directory.is_dir() && !directory.join(".git").exists() && !bare()
}

/// The repository in which the snapshots of a directory are kept.
pub(crate) fn place(cache: &Path, directory: &Path) -> PathBuf {
    let digest = ring::digest::digest(&ring::digest::SHA256, directory.as_os_str().as_encoded_bytes());
    let name: String = digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    cache.join("snapshots").join(name)
}

/// Commits the files of a directory as they are now.
pub(crate) async fn take(
    runner: &Runner,
    limits: &Limits,
    directory: &Path,
    place: &Path,
) -> Result<Commit, Failure> {
    let above = place.parent().unwrap_or(place);
    std::fs::create_dir_all(above).map_err(Failure::Io)?;
    // Of its own, so that neither another process nor one that was killed is in the way.
    let scratch = tempfile::tempdir_in(above).map_err(Failure::Io)?;
    let (index, new) = (scratch.path().join("index"), scratch.path().join("new"));
    let git = |place| Snapshot { runner, limits, directory, place, index: &index };
    if !place.join("HEAD").is_file() {
        git(&new).run(&["init", "--quiet", "--bare"]).await?;
        // Whoever comes second finds it there, complete.
        if let Err(fault) = std::fs::rename(&new, place)
            && !place.join("HEAD").is_file()
        {
            return Err(Failure::Io(fault));
        }
    }
    let git = git(place);
    // What .gitignore names is a file like others here.
    git.run(&["add", "--all", "--force", "."]).await?;
    let tree = git.run(&["write-tree"]).await?;
    if tree.trim() == EMPTY_TREE {
        // More likely a lost mount or a copy under way than a wish to have nothing.
        return Err(Failure::Refused(Refusal::Content(format!("{} is empty", directory.display()))));
    }
    let commit = git.run(&["commit-tree", tree.trim(), "-m", "snapshot"]).await?;
    Commit::parse(commit.trim())
        .ok_or_else(|| Failure::Refused(Refusal::Content("git gave no commit for the directory".to_owned())))
}

struct Snapshot<'a> {
    runner: &'a Runner,
    limits: &'a Limits,
    directory: &'a Path,
    place: &'a Path,
    index: &'a Path,
}

impl Snapshot<'_> {
    async fn run(&self, arguments: &[&str]) -> Result<String, Failure> {
        let bounds = Bounds {
            total: self.limits.total,
            silence: self.limits.total,
            growth: Some((self.place.to_owned(), self.limits.repository_bytes)),
        };
        let mut invocation = Invocation::offline(self.directory, bounds, arguments.iter().copied());
        let path = |path: &Path| path.to_string_lossy().into_owned();
        invocation.environment.push(("GIT_DIR".into(), path(self.place)));
        invocation.environment.push(("GIT_INDEX_FILE".into(), path(self.index)));
        if arguments[0] != "init" {
            invocation.environment.push(("GIT_WORK_TREE".into(), path(self.directory)));
        }
        invocation.environment.extend(IDENTITY.map(|(name, value)| (name.to_owned(), value.to_owned())));
        invocation.config.push(("core.autocrlf".into(), "false".into()));
        let output = self.runner.output(invocation, 200).await?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_no_plain_directory_even_while_its_objects_are_away() {
        let home = tempfile::tempdir().expect("a directory");
        let at = |name: &str| home.path().join(name);
        assert!(is_plain(home.path()), "there is nothing in it");
        std::fs::write(at("HEAD"), "ref: refs/heads/main\n").expect("a file");
        assert!(is_plain(home.path()), "a file of that name makes no repository");
        std::fs::create_dir(at("refs")).expect("a directory");
        std::os::unix::fs::symlink(at("nowhere"), at("objects")).expect("a link");
        assert!(!is_plain(home.path()));
        assert!(!is_plain(&at("nowhere")), "what is not there is none");
    }
}
