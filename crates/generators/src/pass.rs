//! One pass over the generators of a set: what it has read, what it may still produce.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::ApplicationSet;
use baton_api::generators::{ClusterGenerator, Generator};
use baton_grammar::labels::Selector;
use baton_render::{Engine, Params};
use baton_source::{Access, Commit, RepositorySecret, Trust};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value as Json;
use tokio::sync::OnceCell;

use crate::budget::Budget;
use crate::error::Fault;
use crate::flat;
use crate::kind::Kind;
use crate::outside::Outside;
use crate::reads::Reads;
use crate::settings::Settings;
use crate::world::{ClusterSecret, ResourceChoice, SecretData, World};
use crate::{clusters, list, selector};

/// ConfigMaps in Argo CD's namespace that say whom to trust.
const KNOWN_HOSTS: &str = "argocd-ssh-known-hosts-cm";
const AUTHORITIES: &str = "argocd-tls-certs-cm";

/// Commits by URL and revision.
type Commits = BTreeMap<(String, String), Arc<OnceCell<Commit>>>;

/// A pass. What is read twice is read once, so that all generators see the same.
pub(crate) struct Pass<'a, W, O> {
    pub(crate) set: &'a ApplicationSet,
    pub(crate) engine: Engine,
    pub(crate) settings: &'a Settings,
    pub(crate) outside: &'a O,
    pub(crate) budget: Budget,
    world: &'a W,
    reads: Mutex<Reads>,
    clusters: OnceCell<Arc<Vec<ClusterSecret>>>,
    repository_secrets: OnceCell<Arc<Vec<RepositorySecret>>>,
    trust: OnceCell<Trust>,
    project: OnceCell<()>,
    commits: Mutex<Commits>,
}

impl<'a, W: World, O: Outside> Pass<'a, W, O> {
    pub(crate) fn new(
        set: &'a ApplicationSet,
        engine: Engine,
        settings: &'a Settings,
        world: &'a W,
        outside: &'a O,
    ) -> Self {
        Pass {
            set,
            engine,
            settings,
            outside,
            budget: Budget::new(settings.limits),
            world,
            reads: Mutex::default(),
            clusters: OnceCell::new(),
            repository_secrets: OnceCell::new(),
            trust: OnceCell::new(),
            project: OnceCell::new(),
            commits: Mutex::default(),
        }
    }

    /// What was read so far.
    pub(crate) fn into_reads(self) -> Reads {
        self.reads.into_inner()
    }

    pub(crate) fn reads(&self) -> MutexGuard<'_, Reads> {
        self.reads.lock()
    }

    /// The sets of each generator an entry holds, in the order of [`Kind::all`], without those its selector rejects.
    pub(crate) fn entry<'p>(
        &'p self,
        entry: &'p Generator,
        place: &'p str,
    ) -> BoxFuture<'p, Result<Vec<Vec<Params>>, Fault>> {
        async move {
            let selector = entry
                .selector
                .as_ref()
                .map(selector::of_parameters)
                .transpose()
                .map_err(|message| Fault::at(&format!("{place}.selector"), message))?;
            let mut results = Vec::new();
            for kind in Kind::all(entry) {
                let place = format!("{place}.{}", kind.name());
                let mut sets = self.run(kind, &place).await?;
                if let Some(selector) = &selector {
                    sets.retain(|set| matches(selector, set));
                }
                results.push(sets);
            }
            Ok(results)
        }
        .boxed()
    }

    /// The sets of a child of matrix or merge, which holds exactly one generator.
    pub(crate) async fn child(&self, entry: &Generator, place: &str) -> Result<Vec<Params>, Fault> {
        match Kind::all(entry).len() {
            0 => {
                return Err(Fault::at(
                    place,
                    "child generator generated no parameters: it holds no generator",
                ));
            }
            1 => {}
            _ => return Err(Fault::at(place, "found more than one generator in matrix.Generators")),
        }
        Ok(self.entry(entry, place).await?.pop().unwrap_or_default())
    }

    async fn run(&self, kind: Kind<'_>, place: &str) -> Result<Vec<Params>, Fault> {
        let sets = match kind {
            // These pay for their sets as they make them, and name their children's places.
            Kind::Matrix(matrix) => return self.matrix(matrix, place).await,
            Kind::Merge(merge) => return self.merge(merge, place).await,
            Kind::List(list) => list::generate(list, &self.engine, &self.budget),
            Kind::Clusters(generator) => self.registered_clusters(generator).await,
            Kind::Git(git) => self.git(git).await,
            Kind::ScmProvider(scm) => self.scm_provider(scm).await,
            Kind::ClusterDecisionResource(decision) => self.decision(decision).await,
            Kind::PullRequest(pull_request) => self.pull_request(pull_request).await,
            Kind::Plugin(plugin) => self.plugin(plugin).await,
        };
        let paid = sets.and_then(|sets| {
            self.budget.sets(sets.len())?;
            sets.iter().try_for_each(|set| self.budget.pay(set))?;
            Ok(sets)
        });
        paid.map_err(|message| Fault::at(place, message))
    }

    async fn registered_clusters(&self, generator: &ClusterGenerator) -> Result<Vec<Params>, String> {
        let question = clusters::question(generator)?;
        self.reads().add_clusters(&question);
        let secrets = self.clusters().await?;
        clusters::generate(generator, &question, &secrets, &self.engine, &self.budget)
    }

    pub(crate) async fn clusters(&self) -> Result<Arc<Vec<ClusterSecret>>, String> {
        let listed = self.clusters.get_or_try_init(|| self.world.clusters()).await;
        listed.cloned().map_err(|error| format!("error getting cluster secrets: {error}"))
    }

    pub(crate) async fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, String>>, String> {
        self.reads().config_maps.insert((namespace.to_owned(), name.to_owned()));
        let read = self.world.config_map(namespace, name).await;
        read.map_err(|error| format!("error reading ConfigMap {namespace}/{name}: {error}"))
    }

    pub(crate) async fn secret(&self, namespace: &str, name: &str) -> Result<Option<SecretData>, String> {
        self.reads().secrets.insert((namespace.to_owned(), name.to_owned()));
        let read = self.world.secret(namespace, name).await;
        read.map_err(|error| format!("error reading Secret {namespace}/{name}: {error}"))
    }

    pub(crate) async fn resources(
        &self,
        api_version: &str,
        plural: &str,
        namespace: &str,
        choice: &ResourceChoice,
    ) -> Result<Vec<Json>, String> {
        let key = (api_version.to_owned(), plural.to_owned(), namespace.to_owned());
        self.reads().resources.insert(key);
        let read = self.world.resources(api_version, plural, namespace, choice).await;
        read.map_err(|error| format!("failed to get dynamic resources {plural} {api_version}: {error}"))
    }

    /// Fails unless the project exists and takes commits without a signature.
    pub(crate) async fn project_must_allow(&self, name: &str) -> Result<(), String> {
        let look = || async {
            self.reads().projects.insert(name.to_owned());
            if !self.world.project_exists(name).await? {
                return Err(format!("AppProject {name:?} not found"));
            }
            if self.world.project_demands_signatures(name).await? {
                return Err("it takes only signed commits, and signatures cannot be verified".to_owned());
            }
            Ok(())
        };
        let looked = self.project.get_or_try_init(look).await;
        looked.copied().map_err(|error| format!("error getting project {name}: {error}"))
    }

    pub(crate) async fn repository_secrets(&self) -> Result<Arc<Vec<RepositorySecret>>, String> {
        let listed = self.repository_secrets.get_or_try_init(|| self.world.repository_secrets()).await;
        listed.cloned().map_err(|error| format!("error getting repository secrets: {error}"))
    }

    /// Which hosts of repositories are to be believed.
    pub(crate) async fn trust(&self) -> Result<&Trust, String> {
        let look = || async {
            let namespace = &self.settings.argocd_namespace;
            let known_hosts = self.config_map(namespace, KNOWN_HOSTS).await?;
            let authorities = self.config_map(namespace, AUTHORITIES).await?;
            Ok(Trust::read(known_hosts.as_ref(), authorities.as_ref()))
        };
        self.trust.get_or_try_init(look).await
    }

    /// The commit of a revision, the same one throughout the pass.
    pub(crate) async fn commit(
        &self,
        url: &str,
        access: &Access,
        revision: &str,
        fresh: bool,
    ) -> Result<Commit, String> {
        let key = (url.to_owned(), revision.to_owned());
        self.reads().repositories.insert(key.clone());
        let cell = self.commits.lock().entry(key).or_default().clone();
        let resolved = cell.get_or_try_init(|| self.outside.resolve(url, access, revision, fresh)).await;
        resolved.cloned().map_err(|error| error.to_string())
    }
}

fn matches(selector: &Selector, params: &Params) -> bool {
    if selector.is_empty() {
        return true;
    }
    let flat = flat::flatten(params);
    selector.matches(|key| flat.get(key).map(String::as_str))
}
