//! What revisions are, asked of the repositories.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use baton_api::source::{HelmSource, Source};
use baton_manifests::{Manifests, Request, Revision};
use baton_rollout::pin::{Resolution, SourceKey};
use baton_source::{Commit, Repositories, Trust};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::cache::{Known, ObjectKey};
use crate::queue::Queue;

/// How many revisions are asked for at once, of all sets.
const AT_ONCE: usize = 8;
/// ConfigMaps that say whom to trust.
const KNOWN_HOSTS: &str = "argocd-ssh-known-hosts-cm";
const CERTIFICATES: &str = "argocd-tls-certs-cm";

/// Resolves revisions in the background. Clones share it.
#[derive(Clone)]
pub(crate) struct Resolver(Arc<Inner>);

struct Inner {
    manifests: Manifests,
    known: Arc<Known>,
    places: Semaphore,
    queue: Queue<ObjectKey>,
    answers: Mutex<BTreeMap<ObjectKey, Answers>>,
}

#[derive(Default)]
struct Answers {
    under_way: BTreeSet<SourceKey>,
    known: Vec<(SourceKey, Result<Resolution, String>)>,
}

/// Whose source a revision belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    project: Arc<str>,
    source: Source,
}

// === impl Asked ===

impl Asked {
    /// A source without what does not decide about its revision.
    pub(crate) fn new(project: Arc<str>, source: &Source) -> Asked {
        let helm = source
            .helm
            .as_ref()
            .map(|helm| HelmSource { pass_credentials: helm.pass_credentials, ..HelmSource::default() });
        let source = Source {
            repo_url: source.repo_url.clone(),
            target_revision: source.target_revision.clone(),
            chart: source.chart.clone(),
            tag_prefix: source.tag_prefix.clone(),
            helm,
            ..Source::default()
        };
        Asked { project, source }
    }
}

// === impl Resolver ===

impl Resolver {
    /// Resolves with these repositories; answers wake the keys of the queue.
    pub(crate) fn new(repositories: Repositories, known: Arc<Known>, queue: Queue<ObjectKey>) -> Resolver {
        // Nothing is rendered here, so nothing is ever written there.
        let settings = baton_manifests::Settings { work_dir: PathBuf::new(), ..Default::default() };
        Resolver(Arc::new(Inner {
            manifests: Manifests::new(repositories, settings),
            known,
            places: Semaphore::new(AT_ONCE),
            queue,
            answers: Mutex::default(),
        }))
    }

    /// Asks for a revision unless that is being done. The set is woken when it is known.
    pub(crate) fn ask(&self, set: &ObjectKey, key: SourceKey, asked: Option<Asked>) {
        if !self.0.answers.lock().entry(set.clone()).or_default().under_way.insert(key.clone()) {
            return;
        }
        let (inner, set) = (self.0.clone(), set.clone());
        tokio::spawn(async move {
            let outcome = match &asked {
                Some(asked) => inner.resolve(asked).await,
                None => Err("no Application asks for it any more".to_owned()),
            };
            let mut answers = inner.answers.lock();
            let Some(all) = answers.get_mut(&set) else { return };
            all.under_way.remove(&key);
            all.known.push((key, outcome));
            drop(answers);
            inner.queue.add(set);
        });
    }

    /// What became known for a set.
    pub(crate) fn take(&self, set: &ObjectKey) -> Vec<(SourceKey, Result<Resolution, String>)> {
        let mut answers = self.0.answers.lock();
        answers.get_mut(set).map(|all| std::mem::take(&mut all.known)).unwrap_or_default()
    }

    /// Nobody waits for answers for this set any more.
    pub(crate) fn forget(&self, set: &ObjectKey) {
        self.0.answers.lock().remove(set);
    }

    /// Whether something is being asked for.
    pub(crate) fn is_busy(&self) -> bool {
        self.0.answers.lock().values().any(|answers| !answers.under_way.is_empty())
    }
}

impl Inner {
    async fn resolve(&self, asked: &Asked) -> Result<Resolution, String> {
        let _place = self.places.acquire().await.map_err(|error| error.to_string())?;
        let secrets = self.known.secrets.lock().repositories();
        let trust = {
            let maps = self.known.config_maps.lock();
            Trust::read(maps.get(KNOWN_HOSTS), maps.get(CERTIFICATES))
        };
        let request = Request {
            name: "",
            instance: "",
            namespace: "",
            project: &asked.project,
            sources: std::slice::from_ref(&asked.source),
            revisions: &[],
            fresh: true,
            ignore_cache: false,
            generate_paths: None,
            previous: None,
            secrets: &secrets,
            trust: &trust,
            kube_version: "",
            api_versions: &[],
        };
        let found = self.manifests.resolve(&request).await.map_err(|error| error.to_string())?;
        let found = found.into_iter().next().ok_or_else(|| "nothing was found".to_owned())?;
        Ok(resolution(&asked.source, found))
    }
}

/// A revision with all that may be reported for it. Several sources may report an annotated tag's own object instead of
/// its commit, and a short commit as it was asked for.
fn resolution(source: &Source, found: Revision) -> Resolution {
    let target = source.target_revision.as_str();
    let is_hex = target.len() >= 7 && target.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut resolution = Resolution::exact(found.name.as_str());
    if is_hex && source.chart.is_empty() && Commit::parse(&found.name).is_some() {
        resolution.accept.insert(target.into());
    }
    resolution.accept.extend(found.tag.map(Into::into));
    resolution
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(target: &str, chart: &str) -> Source {
        Source { target_revision: target.into(), chart: chart.into(), ..Source::default() }
    }

    fn found(name: &str, tag: Option<&str>) -> Revision {
        Revision { name: name.to_owned(), tag: tag.map(str::to_owned) }
    }

    #[test]
    fn an_annotated_tag_may_be_reported_by_its_own_object() {
        let resolution = resolution(&source("v1", ""), found("commit", Some("tag")));
        assert_eq!(&*resolution.sync, "commit");
        assert_eq!(resolution.accept, BTreeSet::from(["commit".into(), "tag".into()]));
    }

    #[test]
    fn a_short_commit_may_be_reported_as_it_was_asked_for() {
        let commit = "0123456789abcdef0123456789abcdef01234567".to_owned();
        let accepted = |source: &Source, name: String| resolution(source, found(&name, None)).accept.len();
        assert_eq!(accepted(&source("0123456", ""), commit.clone()), 2);
        assert_eq!(accepted(&source("main", ""), commit.clone()), 1);
        assert_eq!(accepted(&source(&commit, ""), commit.clone()), 1);
        assert_eq!(accepted(&source("1234567", "chart"), "1234567".to_owned()), 1);
    }
}
