//! Real repositories for tests, made with the installed git.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod server;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use baton_source::{Access, Commit, Repositories, RepositorySecret, Settings, access};
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
