//! Doing to a cluster what a sync decided.

mod apply;
mod client_side;
mod delete;
mod message;
mod replace;

use std::sync::Arc;

use baton_api::names::FIELD_MANAGER;
use baton_api::names::resource::HOOK_FINALIZER;
use baton_api::object::{Object, ResourceKey, group_version};
use baton_sync::action::{Outcome, Verb};
use http::Method;
use serde_json::{Value, json};

use crate::catalog::GroupKind;
use crate::cluster::Cluster;
use crate::error::{ClusterError, PredictError};
use crate::requests::{APPLY_PATCH, MERGE_PATCH};

/// How often a write is tried again that somebody else's came before.
const CONFLICT_TRIES: u32 = 5;

/// Does what is asked, and takes in what came of it.
pub(crate) async fn perform(cluster: &Cluster, verb: &Verb) -> Outcome {
    let outcome = match verb {
        Verb::Apply(wanted) => apply::apply(cluster, wanted).await,
        Verb::Delete(wanted) => delete::delete(cluster, wanted).await,
        Verb::ReleaseHook { key, api_version } => release_hook(cluster, api_version, key).await,
        Verb::Revoke { key, api_version, uid, resource_version } => {
            revoke(cluster, api_version, key, [uid, resource_version]).await
        }
        Verb::Look { key, api_version } => look(cluster, api_version, key).await,
    };
    let outcome = outcome.unwrap_or_else(|error| {
        if error.is_connection() {
            cluster.shared.suspect();
        }
        Outcome::Failed { message: message::failure(&error, verb, served(cluster, verb).as_deref()) }
    });
    fold(cluster, &outcome, verb).await;
    outcome
}

/// What the object would be after it was applied.
pub(crate) async fn predict(cluster: &Cluster, target: &Value) -> Result<Value, PredictError> {
    let target = baton_diff::prepare(target);
    let key = cluster.key_of(&target);
    let (requests, path) = cluster.path_of(target.api_version(), &key)?;
    let path = format!("{path}?fieldManager={FIELD_MANAGER}&force=true&dryRun=All");
    let answer = requests.write(Method::PATCH, &path, APPLY_PATCH, &target).await;
    if let Err(error) = &answer
        && error.is_connection()
    {
        cluster.shared.suspect();
    }
    Ok(answer?.object)
}

/// The version that the kind of an object to be applied is served in.
fn served(cluster: &Cluster, verb: &Verb) -> Option<String> {
    let Verb::Apply(wanted) = verb else { return None };
    let kind = GroupKind::new(wanted.object.group(), wanted.object.kind());
    let catalog = cluster.shared.situation.lock().catalog.clone();
    catalog.served(&kind).map(|served| group_version(&served.api_version).1.to_owned())
}

/// Takes an outcome into what is known, so that nothing older is shown from now on.
async fn fold(cluster: &Cluster, outcome: &Outcome, verb: &Verb) {
    if matches!(verb, Verb::Apply(wanted) if wanted.dry_run) {
        return;
    }
    match (outcome, verb) {
        (Outcome::Applied { object, .. } | Outcome::Found(object) | Outcome::Exists(object), _) => {
            cluster.shared.fold(object);
            let kind = GroupKind::new(object.group(), object.kind());
            let seen_as = cluster.shared.watched(&kind).map(|served| served.api_version);
            if seen_as.as_deref().is_some_and(|version| version != object.api_version()) {
                // It is watched in another version, in which it has to be read to be known. Should that fail, its
                // watch tells later.
                let _ = cluster.fetch(seen_as.as_deref().unwrap_or_default(), &object.key()).await;
            }
        }
        (Outcome::Gone, Verb::Delete(wanted)) => cluster.shared.fold_gone(&wanted.key, &wanted.uid),
        _ => {}
    }
}

async fn look(cluster: &Cluster, api_version: &str, key: &ResourceKey) -> Result<Outcome, ClusterError> {
    Ok(match cluster.fetch(api_version, key).await? {
        Some(object) => Outcome::Found(object),
        None => Outcome::Gone,
    })
}

/// Takes an approval back, from the version it was judged on.
async fn revoke(
    cluster: &Cluster,
    api_version: &str,
    key: &ResourceKey,
    [uid, resource_version]: [&str; 2],
) -> Result<Outcome, ClusterError> {
    let (requests, path) = cluster.path_of(api_version, key)?;
    let annotations = baton_sync::approval::revocation();
    let patch =
        json!({"metadata": {"uid": uid, "resourceVersion": resource_version, "annotations": annotations}});
    let path = format!("{path}?fieldManager={FIELD_MANAGER}");
    match requests.write(Method::PATCH, &path, MERGE_PATCH, &patch).await {
        Ok(answer) => {
            cluster.shared.fold(&answer.object);
            Ok(Outcome::Done)
        }
        Err(error) if error.is_not_found() => Ok(Outcome::Gone),
        Err(error) if error.is_conflict() => Ok(Outcome::Changed),
        Err(error) => Err(error),
    }
}

async fn release_hook(
    cluster: &Cluster,
    api_version: &str,
    key: &ResourceKey,
) -> Result<Outcome, ClusterError> {
    let (requests, path) = cluster.path_of(api_version, key)?;
    let mut last = None;
    for _ in 0..CONFLICT_TRIES {
        let Some(hook) = found(requests.get(&path).await)? else { return Ok(Outcome::Done) };
        let finalizers = hook.finalizers();
        if !finalizers.contains(&HOOK_FINALIZER) {
            cluster.shared.fold(&hook);
            return Ok(Outcome::Done);
        }
        let rest: Vec<&str> =
            finalizers.into_iter().filter(|finalizer| *finalizer != HOOK_FINALIZER).collect();
        let patch = json!({"metadata": {
            "uid": hook.uid(), "resourceVersion": hook.resource_version(), "finalizers": rest,
        }});
        let path = format!("{path}?fieldManager={FIELD_MANAGER}");
        match requests.write(Method::PATCH, &path, MERGE_PATCH, &patch).await {
            Ok(answer) if rest.is_empty() && hook.deletion_timestamp().is_some() => {
                // It was waiting for this finalizer only.
                cluster.shared.fold_gone(&answer.object.key(), answer.object.uid());
                return Ok(Outcome::Done);
            }
            Ok(answer) => {
                cluster.shared.fold(&answer.object);
                return Ok(Outcome::Done);
            }
            Err(error) if error.is_not_found() => return Ok(Outcome::Done),
            Err(error) if error.is_conflict() => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| ClusterError::NoAnswer("no try was made".to_owned())))
}

/// An answer in which "not found" is an answer.
fn found(answer: Result<Value, ClusterError>) -> Result<Option<Value>, ClusterError> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

fn applied(message: String, object: Value) -> Outcome {
    Outcome::Applied { message, object: Arc::new(object) }
}
