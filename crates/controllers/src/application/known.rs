//! What the Application controller knows of its own cluster, kept by watches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::guarded::Guarded;
use baton_api::application::Destination;
use baton_api::names::{DEFAULT_PROJECT, IN_CLUSTER_NAME, IN_CLUSTER_SERVER};
use baton_api::{AppProject, Application};
use baton_clusters::{BrokenCluster, ClusterAccess};
use baton_source::{RepositorySecret, Trust};
use baton_sync::project::{ProjectRules, ScopedCluster};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::{Mutex, RwLock};

use super::config::Config;
use crate::cache::{Kept, ObjectKey, Secrets, Store};

/// Argo CD's main settings.
pub(super) const ARGOCD_CM: &str = "argocd-cm";
/// Settings of Argo CD's processes.
pub(super) const PARAMS_CM: &str = "argocd-cmd-params-cm";
const KNOWN_HOSTS_CM: &str = "argocd-ssh-known-hosts-cm";
const TLS_CERTS_CM: &str = "argocd-tls-certs-cm";

/// An Application as far as it could be read.
#[derive(Debug, Clone)]
pub(super) enum Held {
    /// As a whole, without managedFields.
    Whole(Arc<Application>),
    /// Not at all: it harms nobody but itself.
    Unreadable {
        /// Why.
        error: Arc<str>,
        /// Its metadata.
        metadata: Arc<ObjectMeta>,
    },
}

impl Kept for Held {
    type Object = Guarded<Application>;

    fn keep(object: Guarded<Application>) -> Held {
        match object.0 {
            Ok(mut application) => {
                baton_sync::approval::keep_record(&mut application.metadata);
                Held::Whole(Arc::new(application))
            }
            Err(invalid) => {
                Held::Unreadable { error: invalid.error.into(), metadata: Arc::new(invalid.metadata) }
            }
        }
    }

    fn metadata(&self) -> &ObjectMeta {
        match self {
            Held::Whole(application) => &application.metadata,
            Held::Unreadable { metadata, .. } => metadata,
        }
    }
}

/// A project, or why it cannot be read.
pub(super) type Project = Result<Arc<AppProject>, Arc<str>>;

/// Rules of projects, by name.
#[derive(Default)]
struct RuleBook {
    rules: BTreeMap<String, Arc<ProjectRules>>,
    /// How often they were forgotten.
    edition: u64,
}

/// What is known. Locks are held for moments, never across a wait.
pub(super) struct Known {
    pub(super) applications: Mutex<Store<Held>>,
    pub(super) projects: Mutex<BTreeMap<String, Project>>,
    pub(super) secrets: Mutex<Secrets>,
    /// Clusters by the name of their Secret.
    pub(super) clusters: Mutex<BTreeMap<String, ClusterAccess>>,
    /// Clusters whose Secret cannot be used, likewise.
    pub(super) broken_clusters: Mutex<BTreeMap<String, BrokenCluster>>,
    /// What projects permit, read when it is first needed and forgotten when anything it depends on changes.
    rules: Mutex<RuleBook>,
    /// Argo CD's own ConfigMaps, by name.
    pub(super) config_maps: Mutex<BTreeMap<String, BTreeMap<String, String>>>,
    /// What they mean.
    pub(super) config: RwLock<Arc<Config>>,
}

impl Known {
    pub(super) fn new(config: Config) -> Known {
        Known {
            applications: Mutex::default(),
            projects: Mutex::default(),
            secrets: Mutex::default(),
            clusters: Mutex::default(),
            broken_clusters: Mutex::default(),
            rules: Mutex::default(),
            config_maps: Mutex::default(),
            config: RwLock::new(Arc::new(config)),
        }
    }

    /// The Application as last seen, if it could be read.
    pub(super) fn application(&self, key: &ObjectKey) -> Option<Arc<Application>> {
        match self.applications.lock().get(key)? {
            Held::Whole(application) => Some(application),
            Held::Unreadable { .. } => None,
        }
    }

    pub(super) fn config(&self) -> Arc<Config> {
        self.config.read().clone()
    }

    /// What the project of this name permits; an empty name is the default project. `None` where there is no such
    /// project, an error where it cannot be read.
    pub(super) fn project(&self, name: &str) -> Option<Result<Arc<ProjectRules>, Arc<str>>> {
        let name = if name.is_empty() { DEFAULT_PROJECT } else { name };
        let edition = {
            let book = self.rules.lock();
            if let Some(rules) = book.rules.get(name) {
                return Some(Ok(rules.clone()));
            }
            book.edition
        };
        let project = match self.projects.lock().get(name)? {
            Ok(project) => project.clone(),
            Err(error) => return Some(Err(error.clone())),
        };
        let rules = Arc::new(self.read_rules(name, &project));
        let mut book = self.rules.lock();
        // What changed while they were read may not be in them.
        if book.edition == edition {
            book.rules.insert(name.to_owned(), rules.clone());
        }
        Some(Ok(rules))
    }

    /// Something that projects' rules depend on changed.
    pub(super) fn forget_rules(&self) {
        let mut book = self.rules.lock();
        book.edition += 1;
        book.rules.clear();
    }

    fn read_rules(&self, name: &str, project: &AppProject) -> ProjectRules {
        let clusters: Vec<ScopedCluster> = {
            let clusters = self.clusters.lock();
            let scoped = clusters.values().filter(|cluster| cluster.project == name);
            let scope = |cluster: &ClusterAccess| ScopedCluster {
                server: cluster.server.to_string(),
                name: cluster.name.clone(),
                namespaces: cluster.namespaces.clone(),
            };
            scoped.map(scope).collect()
        };
        let secrets = self.repositories();
        let scoped = secrets.iter().filter(|secret| secret.project() == name);
        let repositories: Vec<String> = scoped.map(|secret| secret.url().to_owned()).collect();
        let labels = project.metadata.labels.as_ref();
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).map(String::as_str);
        let config = self.config();
        let projects = self.projects.lock();
        let globals: Vec<Arc<AppProject>> = config
            .global_projects
            .iter()
            .filter(|(_, selector)| selector.matches(label))
            .filter_map(|(global, _)| projects.get(global)?.as_ref().ok().cloned())
            .collect();
        let globals: Vec<&AppProject> = globals.iter().map(Arc::as_ref).collect();
        ProjectRules::new(project, &clusters, &repositories, &globals)
    }

    pub(super) fn repositories(&self) -> Arc<Vec<RepositorySecret>> {
        self.secrets.lock().repositories()
    }

    /// Whose keys and certificates repositories are believed by.
    pub(super) fn trust(&self) -> Trust {
        let maps = self.config_maps.lock();
        Trust::read(maps.get(KNOWN_HOSTS_CM), maps.get(TLS_CERTS_CM))
    }

    /// Why the Secret of the cluster that a destination means cannot be used, if that is so.
    pub(super) fn broken_cluster(&self, destination: &Destination) -> Option<String> {
        let broken = self.broken_clusters.lock();
        broken.values().find(|cluster| cluster.is_meant_by(destination)).map(ToString::to_string)
    }

    /// The Applications whose destination is this cluster, by server or by one of its names.
    pub(super) fn deployed_to(&self, server: &str) -> Vec<ObjectKey> {
        let mut names: BTreeSet<String> = {
            let clusters = self.clusters.lock();
            let of_server = clusters.values().filter(|cluster| &*cluster.server == server);
            of_server.map(|cluster| cluster.name.clone()).collect()
        };
        if server == IN_CLUSTER_SERVER {
            names.insert(IN_CLUSTER_NAME.to_owned());
        }
        let applications = self.applications.lock();
        let meant = applications.all().filter(|(_, held)| match held {
            Held::Whole(application) => {
                let destination = &application.spec.destination;
                destination.server.trim_end_matches('/') == server || names.contains(&destination.name)
            }
            Held::Unreadable { .. } => false,
        });
        meant.map(|(key, _)| key.clone()).collect()
    }
}
