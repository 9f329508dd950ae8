//! Whether the references of a repository on the local disk are still what they were, told without running git.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How many files, and how many bytes of all of them, are looked at. Beyond that git is asked.
const MOST_FILES: usize = 500;
const MOST_BYTES: u64 = 1 << 20;
/// How deep names of references may go.
const MOST_DEPTH: usize = 16;

/// All files that name references, each with the time it was written and its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Footprint(BTreeMap<PathBuf, (SystemTime, Vec<u8>)>);

impl Footprint {
    /// The footprint of the repository in a directory; none where its references may be told elsewhere too.
    pub(crate) fn of(directory: &Path) -> Option<Footprint> {
        let inside = directory.join(".git");
        let root = if inside.exists() { inside } else { directory.to_owned() };
        // References in tables, and those of a worktree, are elsewhere.
        if root.join("reftable").exists() || root.join("commondir").exists() {
            return None;
        }
        let mut found = Footprint(BTreeMap::new());
        let mut left = MOST_BYTES;
        found.add(root.join("HEAD"), &mut left)?;
        if root.join("packed-refs").exists() {
            found.add(root.join("packed-refs"), &mut left)?;
        }
        found.search(&root.join("refs"), MOST_DEPTH, &mut left)?;
        Some(found)
    }

    fn search(&mut self, directory: &Path, depth: usize, left: &mut u64) -> Option<()> {
        for entry in fs::read_dir(directory).ok()? {
            let entry = entry.ok()?;
            let kind = entry.file_type().ok()?;
            match () {
                () if kind.is_dir() => self.search(&entry.path(), depth.checked_sub(1)?, left)?,
                () if kind.is_file() => self.add(entry.path(), left)?,
                () => return None,
            }
        }
        Some(())
    }

    fn add(&mut self, path: PathBuf, left: &mut u64) -> Option<()> {
        let mut content = Vec::new();
        let file = fs::File::open(&path).ok().filter(|_| self.0.len() < MOST_FILES)?;
        let written = file.metadata().and_then(|data| data.modified()).ok()?;
        file.take(*left + 1).read_to_end(&mut content).ok()?;
        *left = left.checked_sub(content.len() as u64)?;
        // A symbolic reference may lead to any name, which is among these files too.
        self.0.insert(path, (written, content));
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(directory.path().join("refs/heads/team")).expect("a directory");
        fs::write(directory.path().join("HEAD"), "ref: refs/heads/main\n").expect("a file");
        fs::write(directory.path().join("refs/heads/team/main"), "1\n").expect("a file");
        directory
    }

    #[test]
    fn whatever_may_change_a_reference_changes_it() {
        let directory = repository();
        let seen = || Footprint::of(directory.path()).expect("a footprint");
        let mut before = seen();
        assert_eq!(before, seen());
        for (name, content) in [
            ("refs/heads/team/main", "2\n"),
            ("refs/tags", "3\n"),
            ("packed-refs", "4 refs/heads/x\n"),
            ("HEAD", "ref: refs/heads/team/main\n"),
        ] {
            fs::write(directory.path().join(name), content).expect("a file");
            assert_ne!(before, seen(), "{name}");
            before = seen();
        }
        fs::remove_file(directory.path().join("refs/heads/team/main")).expect("a file");
        assert_ne!(before, seen());
    }

    #[test]
    fn what_cannot_be_told_by_files_is_left_to_git() {
        let directory = repository();
        let here = |name: &str| directory.path().join(name);
        fs::write(here("commondir"), "..\n").expect("a file");
        assert_eq!(Footprint::of(directory.path()), None, "a worktree");
        fs::remove_file(here("commondir")).expect("a file");
        fs::create_dir(here("reftable")).expect("a directory");
        assert_eq!(Footprint::of(directory.path()), None, "tables");
        fs::remove_dir(here("reftable")).expect("a directory");
        fs::write(here("packed-refs"), vec![b'x'; MOST_BYTES as usize]).expect("a file");
        assert_eq!(Footprint::of(directory.path()), None, "too large");
        assert_eq!(Footprint::of(&here("nowhere")), None);
    }
}
