//! A real repository, made with the installed git; tests of other crates use it too.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use baton_source::Commit;
use tempfile::TempDir;

/// A repository with a working tree.
pub(crate) struct Repo {
    directory: TempDir,
}

impl Repo {
    /// An empty repository whose default branch is `main`.
    pub(crate) fn new() -> Repo {
        let repo = Repo { directory: tempfile::tempdir().expect("a directory") };
        repo.git(&["init", "-q", "-b", "main"]);
        repo.git(&["config", "uploadpack.allowFilter", "true"]);
        repo
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs git in the repository and gives what it prints.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_with_input(arguments, b"")
    }

    pub(crate) fn git_with_input(&self, arguments: &[&str], input: &[u8]) -> String {
        let mut child = Command::new("git")
            .args([
                "-c",
                "user.name=Test",
                "-c",
                "user.email=test@example.com",
                "-c",
                "protocol.file.allow=always",
            ])
            .args(arguments)
            .current_dir(self.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z")
            .env("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("git runs");
        child.stdin.take().expect("piped").write_all(input).expect("git reads");
        let output = child.wait_with_output().expect("git ends");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {complaint}");
        String::from_utf8(output.stdout).expect("UTF-8").trim_end().to_owned()
    }

    /// Writes a file without committing it.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().expect("it is in the repository")).expect("a directory");
        std::fs::write(path, content).expect("written");
    }

    /// Makes a symbolic link without committing it.
    pub(crate) fn link(&self, path: &str, target: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().expect("it is in the repository")).expect("a directory");
        std::os::unix::fs::symlink(target, path).expect("linked");
    }

    /// Commits all that was written.
    pub(crate) fn commit(&self) -> Commit {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "change"]);
        Commit::parse(&self.git(&["rev-parse", "HEAD"])).expect("a commit")
    }

    /// A repository with these files, committed.
    pub(crate) fn with(files: &[(&str, &str)]) -> Repo {
        let repo = Repo::new();
        for (path, content) in files {
            repo.write(path, content);
        }
        repo.commit();
        repo
    }

    /// A repository with a few files, committed.
    pub(crate) fn filled() -> (Repo, Commit) {
        let repo = Repo::new();
        repo.write("apps/a/config.yaml", "name: a\n");
        repo.write("apps/b/config.yaml", "name: b\n");
        repo.write("README.md", "read me\n");
        let commit = repo.commit();
        (repo, commit)
    }
}
