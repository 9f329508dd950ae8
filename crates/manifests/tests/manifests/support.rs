//! Real repositories, and one place to render them.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock};

use baton_api::source::Source;
use baton_manifests::{ManifestError, Manifests, Rendered, Request, Settings};
use baton_source::{Repositories, Trust};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The URL of the repository most tests have.
pub(crate) const URL: &str = "https://git.example.com/team/repo.git";

static TRUST: LazyLock<Trust> = LazyLock::new(Trust::default);

/// A repository with a working tree.
pub(crate) struct Repo {
    directory: TempDir,
}

impl Repo {
    /// An empty repository whose default branch is `main`.
    pub(crate) fn new() -> Repo {
        let repo = Repo { directory: tempfile::tempdir().expect("a directory") };
        repo.git(&["init", "-q", "-b", "main"]);
        repo
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

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs git in the repository and gives what it prints.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_with_input(arguments, b"")
    }

    pub(crate) fn git_with_input(&self, arguments: &[&str], input: &[u8]) -> String {
        let mut child = Command::new("git")
            .args(["-c", "user.name=Test", "-c", "user.email=test@example.com"])
            .args(arguments)
            .current_dir(self.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
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

    /// Commits all that was written and gives the commit.
    pub(crate) fn commit(&self) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "change"]);
        self.git(&["rev-parse", "HEAD"])
    }
}

/// A renderer of some repositories.
pub(crate) struct World {
    pub(crate) manifests: Manifests,
    _cache: TempDir,
}

impl World {
    /// Knows one repository as [`URL`].
    pub(crate) fn new(repo: &Repo) -> World {
        World::with(&[(URL, repo)], |_| {})
    }

    pub(crate) fn with(repos: &[(&str, &Repo)], change: impl FnOnce(&mut Settings)) -> World {
        let cache = tempfile::tempdir().expect("a directory");
        let local = |(url, repo): &(&str, &Repo)| ((*url).to_owned(), repo.path().to_owned());
        let repositories = Repositories::new(baton_source::Settings {
            cache_dir: cache.path().to_owned(),
            local: repos.iter().map(local).collect::<BTreeMap<_, _>>(),
            ..baton_source::Settings::default()
        });
        let mut settings = Settings { work_dir: cache.path().to_owned(), ..Settings::default() };
        change(&mut settings);
        World { manifests: Manifests::new(repositories, settings), _cache: cache }
    }

    pub(crate) async fn render(&self, sources: &[Source]) -> Result<Arc<Rendered>, ManifestError> {
        self.ask(sources, |_| {}).await
    }

    pub(crate) async fn ask<'a>(
        &self,
        sources: &'a [Source],
        change: impl FnOnce(&mut Request<'a>),
    ) -> Result<Arc<Rendered>, ManifestError> {
        let mut request = Request {
            name: "shop",
            instance: "shop",
            namespace: "prod",
            project: "team",
            sources,
            revisions: &[],
            fresh: false,
            ignore_cache: false,
            generate_paths: None,
            previous: None,
            secrets: &[],
            trust: &TRUST,
            kube_version: "1.33.1",
            api_versions: &[],
        };
        change(&mut request);
        self.manifests.render(&request).await
    }

    /// The names of the objects of one source, in order.
    pub(crate) async fn names(&self, source: Value) -> Result<Vec<String>, String> {
        let rendered = self.render(&[self::source(source)]).await.map_err(|error| error.to_string())?;
        Ok(names(&rendered))
    }
}

/// The names of objects, in order.
pub(crate) fn names(rendered: &Rendered) -> Vec<String> {
    let name = |object: &Arc<Value>| object["metadata"]["name"].as_str().expect("a name").to_owned();
    rendered.objects.iter().map(name).collect()
}

/// A source of [`URL`], with more fields.
pub(crate) fn source(fields: Value) -> Source {
    let mut source = json!({"repoURL": URL});
    for (key, value) in fields.as_object().expect("fields") {
        source[key] = value.clone();
    }
    serde_json::from_value(source).expect("a source")
}

/// A ConfigMap of that name.
pub(crate) fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n")
}

/// A program that runs a shell script.
pub(crate) fn program(directory: &Path, name: &str, script: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = directory.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a program");
    path
}
