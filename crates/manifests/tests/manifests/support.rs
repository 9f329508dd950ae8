//! Real repositories, and one place to render them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use baton_api::source::Source;
use baton_manifests::{ManifestError, Manifests, Rendered, Request, Settings};
use baton_source::{Repositories, Trust};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use crate::repo::Repo;

/// The URL of the repository most tests have.
pub(crate) const URL: &str = "https://git.example.com/team/repo.git";

static TRUST: LazyLock<Trust> = LazyLock::new(Trust::default);

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

/// A tool of this machine, or else the one that was built for tests.
pub(crate) fn tool(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/bin");
    let mut places = std::env::split_paths(&path).chain([built]).map(|directory| directory.join(name));
    let found = places.find(|place| place.is_file());
    found.unwrap_or_else(|| panic!("{name} is missing: install it, or run `make tools`, which builds it"))
}

/// A program that runs a shell script.
pub(crate) fn program(directory: &Path, name: &str, script: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = directory.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a program");
    path
}
