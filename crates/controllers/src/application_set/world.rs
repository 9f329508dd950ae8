//! What generators see of the cluster: caches where there are some, the API elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_generators::{ClusterSecret, ResourceChoice, SecretData, World};
use baton_source::RepositorySecret;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use serde_json::Value;

use crate::cache::Known;
use crate::objects::Objects;

/// What generators may read of a Secret.
pub(crate) fn secret_data(secret: Secret) -> SecretData {
    SecretData {
        labels: secret.metadata.labels.unwrap_or_default(),
        data: secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect(),
    }
}

/// The cluster a controller runs in.
pub(crate) struct ClusterWorld {
    pub(crate) client: Client,
    pub(crate) known: Arc<Known>,
    /// Argo CD's namespace.
    pub(crate) namespace: String,
}

impl World for ClusterWorld {
    async fn clusters(&self) -> Result<Arc<Vec<ClusterSecret>>, String> {
        Ok(self.known.secrets.lock().clusters())
    }

    async fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, String>>, String> {
        if namespace == self.namespace
            && let Some(data) = self.known.config_maps.lock().get(name)
        {
            return Ok(Some(data.clone()));
        }
        let found = Api::<ConfigMap>::namespaced(self.client.clone(), namespace).get_opt(name).await;
        let found = found.map_err(|error| format!("cannot read ConfigMap {namespace}/{name}: {error}"))?;
        Ok(found.map(|map| map.data.unwrap_or_default()))
    }

    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<SecretData>, String> {
        if namespace == self.namespace
            && let Some(secret) = self.known.own_secrets.lock().get(name)
        {
            return Ok(Some(secret.clone()));
        }
        let found = Api::<Secret>::namespaced(self.client.clone(), namespace).get_opt(name).await;
        let found = found.map_err(|error| format!("cannot read Secret {namespace}/{name}: {error}"))?;
        Ok(found.map(secret_data))
    }

    async fn resources(
        &self,
        api_version: &str,
        plural: &str,
        namespace: &str,
        choice: &ResourceChoice,
    ) -> Result<Vec<Value>, String> {
        // These three become part of a path.
        let is_plain = |text: &str| {
            let fits = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '/');
            !text.is_empty() && text.chars().all(fits) && !text.contains("..")
        };
        for part in [api_version, plural, namespace] {
            if !is_plain(part) {
                return Err(format!("{part:?} cannot be part of a resource's path"));
            }
        }
        let objects = Objects::new(self.client.clone(), api_version, plural, namespace, false);
        let failed = |error| format!("cannot read {plural}.{api_version} in {namespace}: {error}");
        match choice {
            ResourceChoice::Name(name) => {
                let found = objects.get(name).await.map_err(failed)?;
                Ok(found.into_iter().collect())
            }
            ResourceChoice::Labels(selector) => {
                let mut found = Vec::new();
                objects
                    .each(Some(&selector.to_string()), |object| found.push(object))
                    .await
                    .map_err(failed)?;
                Ok(found)
            }
        }
    }

    async fn project_exists(&self, name: &str) -> Result<bool, String> {
        Ok(self.known.projects.lock().contains_key(name))
    }

    async fn project_demands_signatures(&self, name: &str) -> Result<bool, String> {
        Ok(self.known.projects.lock().get(name).copied().unwrap_or(false))
    }

    async fn repository_secrets(&self) -> Result<Arc<Vec<RepositorySecret>>, String> {
        Ok(self.known.secrets.lock().repositories())
    }
}
