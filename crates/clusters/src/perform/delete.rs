//! Deletion.

use std::time::Duration;

use baton_api::object::Object;
use baton_sync::action::{Delete, Outcome};
use http::Method;
use serde_json::json;
use tokio::time::Instant;

use super::found;
use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::requests::{JSON, Requests};

/// How often it is looked whether an object is gone.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Deletes an object if it is still the one, and in the state, that was judged.
pub(super) async fn delete(cluster: &Cluster, wanted: &Delete) -> Result<Outcome, ClusterError> {
    let (requests, path) = cluster.path_of(&wanted.api_version, &wanted.key)?;
    let mut preconditions = json!({"uid": wanted.uid});
    if let Some(version) = &wanted.resource_version {
        preconditions["resourceVersion"] = version.as_str().into();
    }
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions",
        "propagationPolicy": wanted.propagation.as_str(), "preconditions": preconditions,
    });
    match requests.write(Method::DELETE, &path, JSON, &options).await {
        Ok(answer) if answer.object.deletion_timestamp().is_some() => {
            cluster.shared.fold(&answer.object);
            Ok(Outcome::Terminating)
        }
        Ok(_) => Ok(Outcome::Gone),
        Err(error) if error.is_not_found() => Ok(Outcome::Gone),
        Err(error) if error.is_conflict() => {
            // The API says only in words which condition was not met.
            let Some(live) = found(requests.get(&path).await)? else { return Ok(Outcome::Gone) };
            cluster.shared.fold(&live);
            match (live.uid() == wanted.uid, wanted.resource_version.is_some()) {
                (false, _) => Ok(Outcome::Gone),
                (true, true) => Ok(Outcome::Changed),
                (true, false) => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

/// Waits until no object with this uid is at the path.
///
/// # Errors
/// If it is still there after `patience`.
pub(super) async fn wait_until_gone(
    requests: &Requests,
    path: &str,
    uid: &str,
    patience: Duration,
) -> Result<(), ClusterError> {
    let deadline = Instant::now() + patience;
    loop {
        let Some(live) = found(requests.get(path).await)? else { return Ok(()) };
        if live.uid() != uid {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let name = live.name();
            return Err(ClusterError::NotReady(format!(
                "{} {name:?} is being deleted to be created anew, but is still there after {} s",
                live.kind(),
                patience.as_secs()
            )));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
