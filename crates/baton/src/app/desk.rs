//! What a command needs to look past an Application at its sources and its cluster: the settings, Secrets and clients
//! that the controller uses, read once.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::Application;
use baton_api::names::secret::{TYPE_CLUSTER, TYPE_LABEL, TYPE_REPO_CREDS, TYPE_REPOSITORY};
use baton_api::object::{Object, ResourceKey};
use baton_clusters::{BrokenCluster, Cluster, ClusterAccess, Clusters, Connect, OverNetwork};
use baton_diff::{Rules, SystemRules};
use baton_health::Customizations;
use baton_manifests::{Manifests, Rendered, Request};
use baton_source::{Repositories, RepositorySecret, Trust};
use baton_sync::targets::{self, Place, Targets};
use baton_sync::tracking::{Method, Tracking, instance_name};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Client;
use kube::api::{Api, ListParams};
use serde_json::Value;

use super::typed;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::repositories::MappedRepositories;

/// An Application and its surroundings.
pub(super) struct Desk {
    pub(super) application: Application,
    pub(super) cluster: Arc<Cluster>,
    /// How the Application is written on its objects.
    pub(super) instance: String,
    /// A client of the Application's cluster.
    pub(super) member: Client,
    pub(super) customizations: Customizations,
    pub(super) rules: Rules,
    tracking: Tracking,
    repositories: Vec<RepositorySecret>,
    trust: Trust,
}

impl Desk {
    pub(super) async fn open(connection: &Connection, name: &str) -> Result<Desk, Failure> {
        let control = connection.client().await?;
        let application = typed(&connection.applications().await?.get(name).await?)?;
        let maps = ConfigMaps(Api::namespaced(control.clone(), &connection.namespace));
        let settings = maps.get("argocd-cm").await?.unwrap_or_default();
        let trust = Trust::read(
            maps.get("argocd-ssh-known-hosts-cm").await?.as_ref(),
            maps.get("argocd-tls-certs-cm").await?.as_ref(),
        );
        let secrets: Api<Secret> = Api::namespaced(control.clone(), &connection.namespace);
        let of_type = |words: &str| ListParams::default().labels(&format!("{TYPE_LABEL} in ({words})"));
        let clusters = secrets.list(&of_type(TYPE_CLUSTER)).await?;
        let (clusters, broken) = read_clusters(&clusters.items);
        let repositories = secrets.list(&of_type(&format!("{TYPE_REPOSITORY},{TYPE_REPO_CREDS}"))).await?;
        let repositories = repositories.iter().filter_map(repository).collect();

        let unreadable = |error: String| Failure::failed(format!("argocd-cm cannot be used: {error}"));
        let customizations =
            Customizations::from_config_map(&settings).map_err(|error| unreadable(error.to_string()))?;
        let system =
            SystemRules::from_config_map(&settings).map_err(|error| unreadable(error.to_string()))?;
        let rules = Rules::compile(&application.spec.ignore_differences, &system)
            .map_err(|error| Failure::failed(error.to_string()))?;
        let tracking = tracking(&settings);
        let namespace = application.metadata.namespace.as_deref().unwrap_or_default();
        let controller = match application.status.controller_namespace.as_str() {
            "" => &connection.namespace,
            namespace => namespace,
        };
        let instance = instance_name(namespace, name, controller);

        // A person runs this with their own rights, on their own machine, so programs their Secrets name are theirs.
        let connect = OverNetwork { allow_exec: true };
        let member_access = |cluster: &Cluster| match cluster.server().as_ref() {
            baton_api::names::IN_CLUSTER_SERVER => Ok(control.clone()),
            _ => connect.connect(cluster.access()),
        };
        let health = customizations.clone();
        let tracked = tracking.clone();
        let settings = baton_clusters::Settings {
            instance_of: Arc::new(move |object| tracked.owner_of(object)),
            health: Arc::new(move |object| baton_health::assess(object, &health).ok().flatten()),
            ..baton_clusters::Settings::default()
        };
        let registered = Clusters::new(Arc::new(connect), control.clone(), settings, Arc::new(|_| {}));
        registered.set(clusters);
        let destination = &application.spec.destination;
        let cluster = registered.resolve(destination).map_err(|why| {
            let broken = broken.iter().find(|broken| broken.is_meant_by(destination));
            Failure::failed(broken.map_or(why, ToString::to_string))
        })?;
        let member = member_access(&cluster).map_err(Failure::failed)?;
        cluster.ready(&[]).await.map_err(|error| Failure::api(error.to_string()))?;
        Ok(Desk {
            application,
            cluster,
            instance,
            member,
            customizations,
            rules,
            tracking,
            repositories,
            trust,
        })
    }

    /// What git describes, at these revisions or those the Application names.
    pub(super) async fn rendered(
        &self,
        repositories: &MappedRepositories,
        revisions: &[String],
    ) -> Result<Arc<Rendered>, Failure> {
        let cache = tempfile::tempdir()
            .map_err(|error| Failure::failed(format!("cannot make a temporary directory: {error}")))?;
        // The command reads what its user can read anyway.
        let settings = repositories.settings(cache.path().join("repositories"), true);
        let manifests = Manifests::new(Repositories::new(settings), baton_manifests::Settings::default());
        let spec = &self.application.spec;
        let version = self.cluster.version();
        let request = Request {
            name: self.application.metadata.name.as_deref().unwrap_or_default(),
            instance: &self.instance,
            namespace: &spec.destination.namespace,
            project: &spec.project,
            sources: spec.effective_sources(),
            revisions,
            fresh: true,
            ignore_cache: false,
            generate_paths: None,
            previous: None,
            secrets: &self.repositories,
            trust: &self.trust,
            kube_version: &version,
            api_versions: &self.cluster.api_versions(),
        };
        manifests.render(&request).await.map_err(|error| {
            Failure::failed(format!(
                "{error} (this command reads sources itself: --repo URL=PATH names a directory that stands for one)"
            ))
        })
    }

    /// What is wanted of the cluster.
    pub(super) fn targets(&self, rendered: &Rendered) -> Targets {
        let kinds = |api_version: &str, kind: &str| {
            self.cluster.kind(api_version, kind).map_err(|error| error.to_string())
        };
        let place = Place {
            namespace: &self.application.spec.destination.namespace,
            instance: &self.instance,
            tracking: &self.tracking,
            kinds: &kinds,
        };
        targets::prepare(&rendered.objects, &place)
    }

    /// The Application's objects as they are.
    pub(super) async fn live(&self) -> Result<Vec<Arc<Value>>, Failure> {
        let kinds: Vec<(String, String)> = self
            .application
            .status
            .resources
            .iter()
            .map(|row| {
                let version = match row.group.as_str() {
                    "" => row.version.clone(),
                    group => format!("{group}/{}", row.version),
                };
                (version, row.kind.clone())
            })
            .collect();
        self.cluster.ready(&kinds).await.map_err(|error| Failure::api(error.to_string()))?;
        let mut live = self.cluster.managed(&self.instance);
        live.sort_by_key(|object| object.key());
        Ok(live)
    }

    /// One object as it is now, past every cache.
    pub(super) async fn fetch(
        &self,
        api_version: &str,
        key: &ResourceKey,
    ) -> Result<Option<Arc<Value>>, Failure> {
        self.cluster.fetch(api_version, key).await.map_err(|error| Failure::api(error.to_string()))
    }
}

struct ConfigMaps(Api<ConfigMap>);

impl ConfigMaps {
    async fn get(&self, name: &str) -> Result<Option<BTreeMap<String, String>>, Failure> {
        Ok(self.0.get_opt(name).await?.map(|map| map.data.unwrap_or_default()))
    }
}

/// The registered clusters, and those whose Secrets cannot be used.
fn read_clusters(secrets: &[Secret]) -> (Vec<ClusterAccess>, Vec<BrokenCluster>) {
    let (mut usable, mut broken) = (Vec::new(), Vec::new());
    for read in secrets.iter().filter_map(ClusterAccess::read) {
        match read {
            Ok(access) => usable.push(access),
            Err(fault) => broken.push(fault),
        }
    }
    (usable, broken)
}

fn repository(secret: &Secret) -> Option<RepositorySecret> {
    let data = secret.data.iter().flatten().map(|(key, value)| (key.clone(), value.0.clone())).collect();
    let labels = secret.metadata.labels.clone().unwrap_or_default();
    RepositorySecret::read(&labels, &data, secret.metadata.name.as_deref().unwrap_or_default())
}

fn tracking(settings: &BTreeMap<String, String>) -> Tracking {
    let text = |key: &str| settings.get(key).map_or("", String::as_str);
    let mut tracking = Tracking {
        method: Method::read(text("application.resourceTrackingMethod")),
        installation: text("installationID").to_owned(),
        ..Tracking::default()
    };
    if !text("application.instanceLabelKey").is_empty() {
        tracking.label = text("application.instanceLabelKey").to_owned();
    }
    tracking
}
