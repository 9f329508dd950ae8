//! Generating with what a cluster holds: each object is read when a generator asks for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::AppProject;
use baton_api::names::secret::{TYPE_CLUSTER, TYPE_LABEL, TYPE_REPO_CREDS, TYPE_REPOSITORY};
use baton_generators::{ClusterSecret, ResourceChoice, SecretData, World, demands_signatures};
use baton_source::RepositorySecret;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Client, ResourceExt as _};
use serde_json::Value;
use tokio::sync::OnceCell;

/// A cluster as generators see it.
pub(crate) struct Live {
    client: Client,
    namespace: String,
    clusters: OnceCell<Arc<Vec<ClusterSecret>>>,
    repositories: OnceCell<Arc<Vec<RepositorySecret>>>,
}

impl Live {
    pub(crate) fn new(client: Client, namespace: &str) -> Live {
        Live {
            client,
            namespace: namespace.to_owned(),
            clusters: OnceCell::new(),
            repositories: OnceCell::new(),
        }
    }

    async fn secrets_labelled(&self, selector: String) -> Result<Vec<Secret>, String> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let list = api.list(&ListParams::default().labels(&selector)).await;
        list.map(|list| list.items)
            .map_err(|error| format!("cannot list Secrets in {}: {error}", self.namespace))
    }
}

fn data(secret: &Secret) -> BTreeMap<String, Vec<u8>> {
    secret.data.iter().flatten().map(|(key, value)| (key.clone(), value.0.clone())).collect()
}

impl World for Live {
    async fn clusters(&self) -> Result<Arc<Vec<ClusterSecret>>, String> {
        let read = || async {
            let secrets = self.secrets_labelled(format!("{TYPE_LABEL}={TYPE_CLUSTER}")).await?;
            let clusters = secrets.iter().filter_map(|secret| {
                ClusterSecret::read(&secret.name_any(), secret.labels(), secret.annotations(), &data(secret))
            });
            Ok(Arc::new(clusters.collect()))
        };
        self.clusters.get_or_try_init(read).await.cloned()
    }

    async fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, String>>, String> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        match api.get_opt(name).await {
            Ok(found) => Ok(found.map(|map| map.data.unwrap_or_default())),
            Err(error) => Err(format!("cannot read ConfigMap {namespace}/{name}: {error}")),
        }
    }

    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<SecretData>, String> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        match api.get_opt(name).await {
            Ok(found) => {
                Ok(found.map(|secret| SecretData { labels: secret.labels().clone(), data: data(&secret) }))
            }
            Err(error) => Err(format!("cannot read Secret {namespace}/{name}: {error}")),
        }
    }

    async fn resources(
        &self,
        api_version: &str,
        plural: &str,
        namespace: &str,
        choice: &ResourceChoice,
    ) -> Result<Vec<Value>, String> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, plural), plural);
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &kind);
        let found = match choice {
            ResourceChoice::Name(name) => api.get_opt(name).await.map(|found| found.into_iter().collect()),
            ResourceChoice::Labels(selector) => {
                let parameters = ListParams::default().labels(&selector.to_string());
                api.list(&parameters).await.map(|list| list.items)
            }
        };
        let objects: Vec<DynamicObject> =
            found.map_err(|error| format!("cannot read {plural}.{api_version} in {namespace}: {error}"))?;
        objects.iter().map(|object| serde_json::to_value(object).map_err(|error| error.to_string())).collect()
    }

    async fn project_exists(&self, name: &str) -> Result<bool, String> {
        let api: Api<AppProject> = Api::namespaced(self.client.clone(), &self.namespace);
        match api.get_metadata_opt(name).await {
            Ok(found) => Ok(found.is_some()),
            Err(error) => Err(format!("cannot read AppProject {}/{name}: {error}", self.namespace)),
        }
    }

    async fn project_demands_signatures(&self, name: &str) -> Result<bool, String> {
        let api: Api<AppProject> = Api::namespaced(self.client.clone(), &self.namespace);
        match api.get_opt(name).await {
            Ok(found) => Ok(found.is_some_and(|project| demands_signatures(&project.spec))),
            Err(error) => Err(format!("cannot read AppProject {}/{name}: {error}", self.namespace)),
        }
    }

    async fn repository_secrets(&self) -> Result<Arc<Vec<RepositorySecret>>, String> {
        let read = || async {
            let selector = format!("{TYPE_LABEL} in ({TYPE_REPOSITORY},{TYPE_REPO_CREDS})");
            let mut read = Vec::new();
            for secret in self.secrets_labelled(selector).await? {
                if let Some(repository) =
                    RepositorySecret::read(secret.labels(), &data(&secret), &secret.name_any())
                {
                    read.push(repository);
                }
            }
            Ok(Arc::new(read))
        };
        self.repositories.get_or_try_init(read).await.cloned()
    }
}
