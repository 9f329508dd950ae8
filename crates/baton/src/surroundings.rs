//! What is read of a control plane to look past an Application at its sources and its cluster: the settings and Secrets
//! that the controller uses.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::Application;
use baton_api::names::secret::{TYPE_CLUSTER, TYPE_LABEL, TYPE_REPO_CREDS, TYPE_REPOSITORY};
use baton_clusters::{BrokenCluster, Cluster, ClusterAccess, Clusters};
use baton_manifests::{Described, ManifestError, Manifests, Rendered, Request};
use baton_source::{Names, RepositorySecret, SourceError, Trust};
use baton_sync::targets::{self, Place, Targets};
use baton_sync::tracking::{Method, Tracking, instance_name};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Client;
use kube::api::{Api, ListParams};

use crate::failure::Failure;

/// What a control plane says about its clusters and repositories.
pub(crate) struct Surroundings {
    /// `argocd-cm`.
    pub(crate) settings: BTreeMap<String, String>,
    namespace: String,
    clusters: Vec<ClusterAccess>,
    broken: Vec<BrokenCluster>,
    repositories: Vec<RepositorySecret>,
    trust: Trust,
}

// === impl Surroundings ===

impl Surroundings {
    /// Reads them anew.
    pub(crate) async fn read(control: &Client, namespace: &str) -> Result<Surroundings, Failure> {
        let maps: Api<ConfigMap> = Api::namespaced(control.clone(), namespace);
        let data = async |name: &str| -> Result<Option<BTreeMap<String, String>>, Failure> {
            Ok(maps.get_opt(name).await?.map(|map| map.data.unwrap_or_default()))
        };
        let settings = data("argocd-cm").await?.unwrap_or_default();
        let trust = Trust::read(
            data("argocd-ssh-known-hosts-cm").await?.as_ref(),
            data("argocd-tls-certs-cm").await?.as_ref(),
        );
        let secrets: Api<Secret> = Api::namespaced(control.clone(), namespace);
        let of_type = |words: &str| ListParams::default().labels(&format!("{TYPE_LABEL} in ({words})"));
        let clusters = secrets.list(&of_type(TYPE_CLUSTER)).await?;
        let (clusters, broken) = read_clusters(&clusters.items);
        let repositories = secrets.list(&of_type(&format!("{TYPE_REPOSITORY},{TYPE_REPO_CREDS}"))).await?;
        let repositories = repositories.iter().filter_map(repository).collect();
        Ok(Surroundings { settings, namespace: namespace.to_owned(), clusters, broken, repositories, trust })
    }

    /// How Applications are written on their objects.
    pub(crate) fn tracking(&self) -> Tracking {
        let text = |key: &str| self.settings.get(key).map_or("", String::as_str);
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

    /// How an Application is written on its objects.
    pub(crate) fn instance(&self, application: &Application) -> String {
        let controller = match application.status.controller_namespace.as_str() {
            "" => &self.namespace,
            namespace => namespace,
        };
        let namespace = application.metadata.namespace.as_deref().unwrap_or_default();
        instance_name(namespace, application.metadata.name.as_deref().unwrap_or_default(), controller)
    }

    /// The cluster of an Application among the registered ones, connected.
    pub(crate) async fn cluster(
        &self,
        registered: &Clusters,
        application: &Application,
    ) -> Result<Arc<Cluster>, Failure> {
        registered.set(self.clusters.clone());
        let destination = &application.spec.destination;
        let cluster = registered.resolve(destination).map_err(|why| {
            let broken = self.broken.iter().find(|broken| broken.is_meant_by(destination));
            Failure::failed(broken.map_or(why, ToString::to_string))
        })?;
        cluster.ready(&[]).await.map_err(|error| Failure::api(error.to_string()))?;
        Ok(cluster)
    }

    /// What git describes, at these revisions or those the Application names; `fresh` asks repositories once more what
    /// their branches are at.
    pub(crate) async fn rendered(
        &self,
        manifests: &Manifests,
        application: &Application,
        cluster: &Cluster,
        revisions: &[String],
        fresh: bool,
    ) -> Result<Arc<Rendered>, ManifestError> {
        let spec = &application.spec;
        let version = cluster.version();
        let request = Request {
            name: application.metadata.name.as_deref().unwrap_or_default(),
            instance: &self.instance(application),
            namespace: &spec.destination.namespace,
            project: &spec.project,
            sources: spec.effective_sources(),
            revisions,
            fresh,
            ignore_cache: false,
            generate_paths: None,
            previous: None,
            secrets: &self.repositories,
            trust: &self.trust,
            kube_version: &version,
            api_versions: &cluster.api_versions(),
        };
        manifests.render(&request).await
    }

    /// What a revision of the first source of an Application says of itself.
    pub(crate) async fn described(
        &self,
        manifests: &Manifests,
        application: &Application,
        revision: &str,
    ) -> Result<Described, ManifestError> {
        let spec = &application.spec;
        let request = Request {
            name: application.metadata.name.as_deref().unwrap_or_default(),
            instance: "",
            namespace: "",
            project: &spec.project,
            sources: spec.effective_sources(),
            revisions: &[revision.to_owned()],
            fresh: false,
            ignore_cache: false,
            generate_paths: None,
            previous: None,
            secrets: &self.repositories,
            trust: &self.trust,
            kube_version: "",
            api_versions: &[],
        };
        manifests.describe(&request, 0).await
    }

    /// The branches and tags of a git repository of a project, read with what is registered for it, or as these fields of a
    /// Secret say.
    pub(crate) async fn names(
        &self,
        manifests: &Manifests,
        url: &str,
        project: &str,
        fields: Option<&BTreeMap<String, String>>,
    ) -> Result<Names, SourceError> {
        let given = fields.and_then(|fields| {
            let labels = [(TYPE_LABEL.to_owned(), TYPE_REPOSITORY.to_owned())].into();
            let data = fields.iter().map(|(key, text)| (key.clone(), text.clone().into_bytes())).collect();
            RepositorySecret::read(&labels, &data, "what was sent")
        });
        let given: Vec<RepositorySecret> = given.into_iter().collect();
        let secrets = if given.is_empty() { &self.repositories } else { &given };
        manifests.names(url, project, secrets, &self.trust).await
    }

    /// What is wanted of the cluster.
    pub(crate) fn targets(
        &self,
        rendered: &Rendered,
        application: &Application,
        cluster: &Cluster,
    ) -> Targets {
        let kinds = |api_version: &str, kind: &str| {
            cluster.kind(api_version, kind).map_err(|error| error.to_string())
        };
        let place = Place {
            namespace: &application.spec.destination.namespace,
            instance: &self.instance(application),
            tracking: &self.tracking(),
            kinds: &kinds,
        };
        targets::prepare(&rendered.objects, &place)
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
