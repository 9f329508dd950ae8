//! A set in a cluster, its Applications, and the head of its rollout.

use std::collections::BTreeMap;

use baton_api::{Application, ApplicationSet};
use baton_rollout::head::Head;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject};
use serde_json::Value;

use crate::failure::Failure;

/// How many objects are asked for at once.
const PAGE: u32 = 500;

pub(super) async fn find(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Option<ApplicationSet>, Failure> {
    let api: Api<ApplicationSet> = Api::namespaced(client.clone(), namespace);
    Ok(api.get_opt(name).await?)
}

/// # Errors
/// Also where there is none.
pub(super) async fn set(client: &Client, namespace: &str, name: &str) -> Result<ApplicationSet, Failure> {
    let found = find(client, namespace, name).await?;
    found.ok_or_else(|| absent(namespace, name))
}

pub(super) fn absent(namespace: &str, name: &str) -> Failure {
    Failure::api(format!(
        "there is no ApplicationSet {name} in namespace {namespace}; `baton appset list` shows those there are"
    ))
}

/// The Applications that a set controls, by name.
pub(super) async fn applications(client: &Client, set: &ApplicationSet) -> Result<Vec<Value>, Failure> {
    let kind = ApiResource::erase::<Application>(&());
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let uid = set.metadata.uid.as_deref().unwrap_or_default();
    let mut found = Vec::new();
    let mut parameters = ListParams::default().limit(PAGE);
    loop {
        let page = api.list(&parameters).await?;
        for object in &page.items {
            let mut owners = object.metadata.owner_references.iter().flatten();
            if owners.any(|owner| owner.controller == Some(true) && owner.uid == uid) {
                let whole =
                    serde_json::to_value(object).map_err(|error| Failure::failed(error.to_string()))?;
                found.push(whole);
            }
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => break,
        }
    }
    found.sort_by_key(name_of);
    Ok(found)
}

pub(super) fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// UIDs of Applications by name.
pub(super) fn uids(applications: &[Value]) -> BTreeMap<String, String> {
    let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    applications.iter().map(|object| (name_of(object), uid(object))).collect()
}

/// The name of the object that holds the head of a set's rollout.
pub(super) fn head_name(set: &str) -> String {
    format!("{set}.baton-rollout")
}

/// The head of a set's rollout, where there is one that may be read and can be.
pub(super) async fn head(client: &Client, namespace: &str, set: &str) -> Option<Head> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let map = match maps.get_opt(&head_name(set)).await {
        Ok(map) => map?,
        Err(error) => {
            tracing::info!(%error, "the head of the rollout is not read");
            return None;
        }
    };
    match Head::read(&map.data.unwrap_or_default()) {
        Ok(head) => Some(head),
        Err(error) => {
            tracing::info!(%error, "the head of the rollout is not used");
            None
        }
    }
}
