//! The head of a set's rollout, where the controller keeps it: in a ConfigMap beside the set, or in an annotation of the
//! set where it may not write ConfigMaps.

use std::collections::BTreeMap;

use baton_api::ApplicationSet;
use baton_api::names::baton::{GUARD_SUFFIX, ROLLOUT, SET_LABEL};
use baton_rollout::head::Head;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::objects::MANAGER;

/// How often a head that changes meanwhile is read again.
const ATTEMPTS: usize = 20;
/// Under which key the run is told.
const RUN: &str = "run";

type Texts = BTreeMap<String, String>;

/// A head as it is kept.
enum Kept {
    Nowhere,
    Map { uid: Option<String>, version: Option<String>, texts: Texts },
    Annotation(Texts),
}

/// The head of a set's rollout, where there is one that may be read and can be.
pub(super) async fn of(client: &Client, set: &ApplicationSet) -> Option<Head> {
    let texts = match kept(client, set).await {
        Ok(Kept::Map { texts, .. } | Kept::Annotation(texts)) => texts,
        Ok(Kept::Nowhere) => return None,
        Err(error) => {
            tracing::info!(%error, "the head of the rollout is not read");
            return None;
        }
    };
    match Head::read(&texts) {
        Ok(head) => Some(head),
        Err(error) => {
            tracing::info!(%error, "the head of the rollout is not used");
            None
        }
    }
}

/// Writes the pause into the head of a set's rollout, or takes it away. Tells whether it stands there.
pub(super) async fn hold(client: &Client, set: &ApplicationSet, paused: bool) -> Result<bool, Failure> {
    let (namespace, name) = (namespace(set), name(set));
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let sets: Api<ApplicationSet> = Api::namespaced(client.clone(), namespace);
    let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    for _ in 0..ATTEMPTS {
        // The annotation is part of the set, whose version changes with it.
        let Some(now) = sets.get_opt(name).await?.filter(|now| now.metadata.uid == set.metadata.uid) else {
            return Err(Failure::api(format!("{name} is no longer the set it was: look at it again")));
        };
        let written = match kept(client, &now).await? {
            Kept::Nowhere => return Ok(false),
            Kept::Map { uid, version, texts } => {
                let Some(run) = texts.get(RUN) else { return Ok(false) };
                let Some(run) = held(run, paused) else { return Ok(true) };
                let patch = json!({"metadata": {"uid": uid, "resourceVersion": version}, "data": {RUN: run}});
                maps.patch(&format!("{name}{GUARD_SUFFIX}"), &parameters, &Patch::Merge(&patch))
                    .await
                    .map(drop)
            }
            Kept::Annotation(mut texts) => {
                let Some(run) = texts.get(RUN) else { return Ok(false) };
                let Some(run) = held(run, paused) else { return Ok(true) };
                texts.insert(RUN.to_owned(), run);
                let patch = json!({"metadata": {
                    "uid": now.metadata.uid, "resourceVersion": now.metadata.resource_version,
                    "annotations": {ROLLOUT: json!(texts).to_string()},
                }});
                sets.patch(name, &parameters, &Patch::Merge(&patch)).await.map(drop)
            }
        };
        match written {
            Ok(()) => return Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            // Whoever may annotate the set need not be allowed to write the head.
            Err(error) if is_refused(&error) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failure::api(format!(
        "the head of the rollout of {name} changed {ATTEMPTS} times while it was written: try again"
    )))
}

async fn kept(client: &Client, set: &ApplicationSet) -> Result<Kept, kube::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace(set));
    let map = match maps.get_opt(&format!("{}{GUARD_SUFFIX}", name(set))).await {
        Ok(map) => map,
        Err(error) if is_refused(&error) => None,
        Err(error) => return Err(error),
    };
    Ok(match map {
        // One without the label is somebody else's.
        Some(map) if map.metadata.labels.iter().flatten().any(|(key, _)| key == SET_LABEL) => {
            let (uid, version) = (map.metadata.uid, map.metadata.resource_version);
            Kept::Map { uid, version, texts: map.data.unwrap_or_default() }
        }
        _ => annotated(set).map_or(Kept::Nowhere, Kept::Annotation),
    })
}

fn annotated(set: &ApplicationSet) -> Option<Texts> {
    let text = set.metadata.annotations.as_ref()?.get(ROLLOUT)?;
    serde_json::from_str(text).ok().filter(|texts: &Texts| !texts.is_empty())
}

fn is_refused(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 401 | 403))
}

fn namespace(set: &ApplicationSet) -> &str {
    set.metadata.namespace.as_deref().unwrap_or_default()
}

fn name(set: &ApplicationSet) -> &str {
    set.metadata.name.as_deref().unwrap_or_default()
}

/// The text of a head's run with the pause set or taken away; none where it is so already.
fn held(run: &str, paused: bool) -> Option<String> {
    let mut run: Value = serde_json::from_str(run).ok()?;
    let fields = run.as_object_mut()?;
    let before = fields.insert("paused".to_owned(), paused.into());
    (before.unwrap_or(Value::Bool(false)) != Value::Bool(paused)).then(|| run.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_is_written_beside_what_else_the_run_says() {
        assert_eq!(
            held(r#"{"seq":3,"new":[1]}"#, true).as_deref(),
            Some(r#"{"new":[1],"paused":true,"seq":3}"#)
        );
        assert_eq!(held(r#"{"seq":3,"paused":true}"#, true), None);
        assert_eq!(held(r#"{"seq":3,"paused":true}"#, false).as_deref(), Some(r#"{"paused":false,"seq":3}"#));
        assert_eq!(held(r#"{"seq":3}"#, false), None);
        assert_eq!(held("[]", true), None);
        assert_eq!(held("", true), None);
    }
}
