//! A set in a cluster and its Applications.

use std::collections::BTreeMap;

use baton_api::{Application, ApplicationSet};
use baton_rollout::explain::Known;
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
    let kind = ApiResource::erase::<ApplicationSet>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let Some(found) = api.get_opt(name).await? else { return Ok(None) };
    let whole = serde_json::to_value(found).map_err(|error| Failure::failed(error.to_string()))?;
    baton_api::object::read(&whole).map(Some).map_err(|error| {
        Failure::failed(format!(
            "ApplicationSet {name} in namespace {namespace} cannot be read: {error}; `kubectl edit applicationset {name} -n \
             {namespace}` mends it"
        ))
    })
}

/// # Errors
/// Also where there is none.
pub(super) async fn set(client: &Client, namespace: &str, name: &str) -> Result<ApplicationSet, Failure> {
    let found = find(client, namespace, name).await?;
    found.ok_or_else(|| absent(namespace, name))
}

pub(super) fn absent(namespace: &str, name: &str) -> Failure {
    Failure::api(format!(
        "there is no ApplicationSet {name} in namespace {namespace}; `baton appset list -A` shows those there are"
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

/// What an explanation needs to know of Applications, by name.
pub(super) fn known(applications: &[Value]) -> BTreeMap<String, Known> {
    let one = |object: &Value| {
        let metadata = &object["metadata"];
        let finalizers = metadata["finalizers"].as_array().into_iter().flatten();
        Known {
            uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
            labels: labels(object),
            terminating: metadata["deletionTimestamp"].as_str().and_then(|time| time.parse().ok()),
            finalizers: finalizers.filter_map(|name| name.as_str().map(str::to_owned)).collect(),
        }
    };
    applications.iter().map(|object| (name_of(object), one(object))).collect()
}

pub(super) fn labels(application: &Value) -> BTreeMap<String, String> {
    let labels = application["metadata"]["labels"].as_object();
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    labels.into_iter().flatten().filter_map(text).collect()
}
