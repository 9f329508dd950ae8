//! Renders all sources of an Application.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::application_status::SourceType;
use baton_api::source::Source;
use baton_source::{
    Access, Commit, Names, Repositories, RepositorySecret, SourceError, Target, Trust, access,
};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::aside::aside;
use crate::cache::{Cache, Key, Outcome, Part};
use crate::changes::Watched;
use crate::checkout::Location;
use crate::description::{ChartDetails, Described};
use crate::environment::{Environment, Facts};
use crate::error::{Fault, ManifestError};
use crate::ground::Ground;
use crate::helm::{self, Chart, ChartRepositories, Wanted};
use crate::request::{Rendered, Request};
use crate::settings::Settings;
use crate::tools::Tools;
use crate::{detection, directory, documents, kustomize, overrides, workshop};

/// Renders sources. Clones share their caches.
#[derive(Debug, Clone)]
pub struct Manifests(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    repositories: Repositories,
    settings: Settings,
    cache: Cache,
    tools: Tools,
    charts: ChartRepositories,
}

/// A source, and where it is read.
#[derive(Debug, Clone)]
struct Resolved<'a> {
    source: &'a Source,
    at: At,
    /// The object of the annotated tag that led there.
    tag: Option<Commit>,
}

/// What a source would be rendered at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// A commit, or the version of a chart.
    pub name: String,
    /// The object of the annotated tag that was asked for, by which some call the commit.
    pub tag: Option<String>,
}

/// Where a source is read.
#[derive(Debug, Clone)]
enum At {
    /// A commit of a git repository.
    Commit(Location),
    /// A version of a chart.
    Version { access: Access, version: String },
}

impl At {
    fn access(&self) -> &Access {
        match self {
            At::Commit(location) => &location.access,
            At::Version { access, .. } => access,
        }
    }

    fn revision(&self) -> &str {
        match self {
            At::Commit(location) => location.commit.as_str(),
            At::Version { version, .. } => version,
        }
    }
}

impl Resolved<'_> {
    /// Whether it is only there to be referred to.
    fn is_reference_only(&self) -> bool {
        !self.source.reference.is_empty() && self.source.path.is_empty() && self.source.chart.is_empty()
    }
}

impl Manifests {
    /// Readies the rendering of sources.
    pub fn new(repositories: Repositories, settings: Settings) -> Manifests {
        let cache = Cache::new(settings.limits.cached_bytes);
        let tools = Tools::new(&settings.limits);
        workshop::clear_remains(&settings.work_dir);
        Manifests(Arc::new(Inner {
            repositories,
            settings,
            cache,
            tools,
            charts: ChartRepositories::default(),
        }))
    }

    /// What every source would be rendered at.
    ///
    /// # Errors
    /// A repository cannot be read or has no such revision.
    pub async fn resolve(&self, request: &Request<'_>) -> Result<Vec<Revision>, ManifestError> {
        let resolved = self.0.resolve(request).await?;
        let revision = |one: &Resolved<'_>| Revision {
            name: one.at.revision().to_owned(),
            tag: one.tag.map(|tag| tag.to_string()),
        };
        Ok(resolved.iter().map(revision).collect())
    }

    /// What the revision of one source says of itself: the one that is stated for it, or the one it would be rendered at.
    ///
    /// # Errors
    /// There is no such source, or its repository cannot be read or has no such revision.
    pub async fn describe(&self, request: &Request<'_>, at: usize) -> Result<Described, ManifestError> {
        let inner = &*self.0;
        let fault = |fault: Fault| located(request, at, fault);
        let source = request.sources.get(at);
        let source = source.ok_or_else(|| fault(Fault::Options("there is no such source".to_owned())))?;
        let exact = request.revisions.get(at).map_or("", String::as_str);
        let resolved = inner.resolve_one(request, source, exact).await.map_err(fault)?;
        match &resolved.at {
            At::Commit(Location { url, access, commit }) => {
                let described = inner.repositories.describe(url, access, commit).await;
                described.map(Described::Commit).map_err(|error| fault(error.into()))
            }
            At::Version { access, version } => {
                let wanted = inner.wanted(source, access);
                let files =
                    inner.charts.fetch(wanted, version, &inner.settings.limits).await.map_err(fault)?;
                Ok(Described::Chart(ChartDetails::read(&files)))
            }
        }
    }

    /// The names of the branches and tags of a git repository, asked with the credentials that are registered for it in a
    /// project.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub async fn names(
        &self,
        url: &str,
        project: &str,
        secrets: &[RepositorySecret],
        trust: &Trust,
    ) -> Result<Names, SourceError> {
        let access = access(url, project, secrets)?.trusting(url, trust);
        self.0.repositories.names(url, &access).await
    }

    /// The objects of all sources. Nothing is added to them: no namespace, no mark of who they belong to.
    ///
    /// # Errors
    /// Any of the sources cannot be resolved, read or rendered.
    pub async fn render(&self, request: &Request<'_>) -> Result<Arc<Rendered>, ManifestError> {
        let inner = &*self.0;
        let resolved = inner.resolve(request).await?;
        if !request.ignore_cache
            && let Some((before, previous)) = request.previous
            && inner.is_untouched(request, before, &resolved).await
        {
            return Ok(Arc::new(Rendered { revisions: revisions(&resolved), ..Rendered::clone(previous) }));
        }
        let mut rendered = Rendered {
            objects: Vec::new(),
            revisions: revisions(&resolved),
            source_types: Vec::new(),
            digest: [0; 32],
        };
        let mut digest = Sha256::new();
        for (at, one) in resolved.iter().enumerate() {
            let part =
                inner.part(request, one, &resolved).await.map_err(|fault| located(request, at, fault))?;
            let Some(part) = part else {
                rendered.source_types.push(SourceType::Directory);
                continue;
            };
            rendered.objects.extend(part.objects.iter().cloned());
            rendered.source_types.push(part.source_type.clone());
            digest.update(part.digest);
        }
        rendered.digest = digest.finalize().into();
        Ok(Arc::new(rendered))
    }
}

impl Inner {
    async fn resolve<'a>(&self, request: &Request<'a>) -> Result<Vec<Resolved<'a>>, ManifestError> {
        let (count, most) = (request.sources.len(), self.settings.limits.sources);
        if count > most {
            let fault = Fault::Limit(format!("the application has more than {most} sources"));
            return Err(located(request, most, fault));
        }
        check_references(request)?;
        let mut resolved = Vec::with_capacity(count);
        for (at, source) in request.sources.iter().enumerate() {
            let exact = request.revisions.get(at).map_or("", String::as_str);
            let one = self.resolve_one(request, source, exact).await;
            resolved.push(one.map_err(|fault| located(request, at, fault))?);
        }
        Ok(resolved)
    }

    async fn resolve_one<'a>(
        &self,
        request: &Request<'_>,
        source: &'a Source,
        exact: &str,
    ) -> Result<Resolved<'a>, Fault> {
        let url = &source.repo_url;
        let access = access(url, request.project, request.secrets)?.trusting(url, request.trust);
        let revision = if exact.is_empty() { &source.target_revision } else { exact };
        if !source.chart.is_empty() {
            if !source.reference.is_empty() {
                return Err(Fault::Options("a chart cannot be referred to by `ref`".to_owned()));
            }
            let version = self.charts.resolve(self.wanted(source, &access), revision, request.fresh).await?;
            return Ok(Resolved { source, at: At::Version { access, version }, tag: None });
        }
        let prefix = &source.tag_prefix;
        let resolved = self.repositories.resolve_tagged(url, &access, revision, prefix, request.fresh);
        let Target { commit, tag } = resolved.await?;
        Ok(Resolved { source, at: At::Commit(Location { url: url.clone(), access, commit }), tag })
    }

    fn wanted<'a>(&'a self, source: &'a Source, access: &'a Access) -> Wanted<'a> {
        Wanted {
            repositories: &self.repositories,
            url: &source.repo_url,
            access,
            chart: &source.chart,
            pass_credentials: source.helm.as_ref().is_some_and(|helm| helm.pass_credentials),
        }
    }

    /// Whether no source has changed where the Application is generated from.
    async fn is_untouched(&self, request: &Request<'_>, before: &[String], now: &[Resolved<'_>]) -> bool {
        let Some(annotation) = request.generate_paths else { return false };
        if before.len() != now.len() {
            return false;
        }
        let all_paths: Vec<&str> =
            now.iter().filter(|one| !one.is_reference_only()).map(|one| one.source.path.as_str()).collect();
        for (one, before) in now.iter().zip(before) {
            if one.at.revision() == before {
                continue;
            }
            let (At::Commit(after), Some(commit)) = (&one.at, Commit::parse(before)) else { return false };
            let own_path = [one.source.path.as_str()];
            // What others take from a repository is named from where they are.
            let paths = if one.is_reference_only() { &all_paths[..] } else { &own_path[..] };
            let Some(watched) = Watched::read(annotation, paths) else { return false };
            let before = Location { commit, ..after.clone() };
            // A commit that is gone is no ground to stand on.
            let (Ok(before), Ok(after)) =
                (before.open(&self.repositories).await, after.open(&self.repositories).await)
            else {
                return false;
            };
            if watched.touched(&before.tree, &after.tree) {
                return false;
            }
        }
        true
    }

    async fn part(
        &self,
        request: &Request<'_>,
        one: &Resolved<'_>,
        all: &[Resolved<'_>],
    ) -> Result<Option<Arc<Part>>, Fault> {
        if one.is_reference_only() {
            return Ok(None);
        }
        let key = key(request, one, all);
        let rendering = self.render_one(request, one, all);
        self.cache.part(key, request.ignore_cache, rendering).await.map(Some)
    }

    async fn render_one(&self, request: &Request<'_>, one: &Resolved<'_>, all: &[Resolved<'_>]) -> Outcome {
        match &one.at {
            At::Commit(location) => self.render_commit(request, one, location, all).await,
            At::Version { access, version } => {
                let limits = &self.settings.limits;
                let files = self.charts.fetch(self.wanted(one.source, access), version, limits).await?;
                let ground = Ground::Archive(files);
                let source = overrides::applied(&ground, "", request.instance, one.source).await?;
                if !matches!(detection::explicit(&source)?, None | Some(SourceType::Helm)) {
                    return Err(Fault::Options("a chart is rendered by Helm and by nothing else".to_owned()));
                }
                let objects = self.render_chart(request, one, all, ground, "", source).await?;
                self.finished(objects, SourceType::Helm).await
            }
        }
    }

    async fn render_commit(
        &self,
        request: &Request<'_>,
        one: &Resolved<'_>,
        location: &Location,
        all: &[Resolved<'_>],
    ) -> Outcome {
        let (tools, settings) = (&self.tools, &self.settings);
        let checkout = Arc::new(location.open(&self.repositories).await?);
        let directory = checkout.directory(&one.source.path)?;
        let ground = Ground::Repository(checkout.clone());
        let source = overrides::applied(&ground, &directory, request.instance, one.source).await?;
        let source_type = match detection::explicit(&source)? {
            Some(explicit) => explicit,
            None => detection::detected(&checkout.tree, &directory),
        };
        let objects = match source_type {
            SourceType::Directory => {
                // Plain files are the same whoever deploys them: a fleet reads and holds them once.
                let key = directory_key(&source, one);
                let options = source.directory.unwrap_or_default();
                let reading = async {
                    let limits = &settings.limits;
                    let objects = directory::render(&checkout, &directory, &options, limits).await?;
                    self.finished(objects, SourceType::Directory).await
                };
                return self.cache.part(key, request.ignore_cache, reading).await;
            }
            SourceType::Kustomize => {
                let options = source.kustomize.unwrap_or_default();
                let environment = environment(request, one);
                kustomize::render(tools, settings, &checkout, &directory, &options, &environment).await?
            }
            SourceType::Helm => self.render_chart(request, one, all, ground, &directory, source).await?,
            // A type of the future is no more supported than a plugin.
            SourceType::Plugin | SourceType::Other(_) => {
                return Err(Fault::Unsupported(
                    "config management plugins are not supported: commit what the plugin generates, or use Kustomize, \
                     Helm or plain manifests"
                        .to_owned(),
                ));
            }
        };
        self.finished(objects, source_type).await
    }

    async fn finished(&self, objects: Vec<Value>, source_type: SourceType) -> Outcome {
        let most = self.settings.limits.objects;
        let part = aside(move || Ok(Part::new(documents::exploded(objects, most)?, source_type)));
        part.await?.map(Arc::new).map_err(Fault::Options)
    }

    async fn render_chart(
        &self,
        request: &Request<'_>,
        one: &Resolved<'_>,
        all: &[Resolved<'_>],
        ground: Ground,
        directory: &str,
        source: Source,
    ) -> Result<Vec<Value>, Fault> {
        let chart = Chart {
            ground,
            directory,
            options: &source.helm.unwrap_or_default(),
            environment: &environment(request, one),
            request,
            references: &references(all),
            repositories: &self.repositories,
        };
        helm::render(&self.tools, &self.settings, &chart).await
    }
}

fn revisions(resolved: &[Resolved<'_>]) -> Vec<String> {
    resolved.iter().map(|one| one.at.revision().to_owned()).collect()
}

/// The repositories that sources refer to by name.
fn references<'a>(all: &'a [Resolved<'_>]) -> BTreeMap<&'a str, Location> {
    let mut named = BTreeMap::new();
    for one in all.iter().filter(|one| !one.source.reference.is_empty()) {
        if let At::Commit(location) = &one.at {
            named.insert(one.source.reference.as_str(), location.clone());
        }
    }
    named
}

/// Refuses names of references that contradict each other or could not be written in a path.
fn check_references(request: &Request<'_>) -> Result<(), ManifestError> {
    let mut seen = BTreeSet::new();
    for (at, source) in request.sources.iter().enumerate().filter(|(_, source)| !source.reference.is_empty())
    {
        let name = source.reference.as_str();
        let is_plain = name.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-'));
        let why = if !is_plain {
            format!("sources.ref {name} cannot contain any special characters except '_' and '-'")
        } else if !seen.insert(name) {
            "invalid sources: multiple sources had the same `ref` key".to_owned()
        } else {
            continue;
        };
        return Err(located(request, at, Fault::Options(why)));
    }
    Ok(())
}

fn environment(request: &Request<'_>, one: &Resolved<'_>) -> Environment {
    Environment::new(Facts {
        instance: request.instance,
        namespace: request.namespace,
        project: request.project,
        revision: one.at.revision(),
        repo_url: &one.source.repo_url,
        path: &one.source.path,
        target_revision: &one.source.target_revision,
    })
}

/// Digests everything plain files depend on. `source` is the source with what the repository overrides in it.
fn directory_key(source: &Source, one: &Resolved<'_>) -> Key {
    let mut hash = Sha256::new();
    hash.update(b"directory");
    let source = serde_json::to_vec(source).unwrap_or_default();
    for bytes in [&source[..], one.at.revision().as_bytes(), &one.at.access().fingerprint()] {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    }
    hash.finalize().into()
}

/// Digests everything the objects of a source depend on.
fn key(request: &Request<'_>, one: &Resolved<'_>, all: &[Resolved<'_>]) -> Key {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    add(&serde_json::to_vec(one.source).unwrap_or_default());
    add(one.at.revision().as_bytes());
    add(&one.at.access().fingerprint());
    for text in [request.name, request.instance, request.namespace, request.project, request.kube_version] {
        add(text.as_bytes());
    }
    for version in request.api_versions {
        add(version.as_bytes());
    }
    for other in all.iter().filter(|other| !other.source.reference.is_empty()) {
        add(other.source.reference.as_bytes());
        add(other.source.repo_url.as_bytes());
        add(other.at.revision().as_bytes());
        add(&other.at.access().fingerprint());
    }
    hash.finalize().into()
}

fn located(request: &Request<'_>, at: usize, fault: Fault) -> ManifestError {
    ManifestError { place: at + 1, count: request.sources.len(), fault }
}
