//! Replacing objects: in place, or by deleting and creating them anew.

use std::time::Duration;

use baton_api::object::Object;
use baton_sync::action::Outcome;
use http::Method;
use serde_json::{Value, json};

use super::apply::Task;
use super::{CONFLICT_TRIES, applied, delete, found, message};
use crate::error::ClusterError;
use crate::live::is_guarded;
use crate::requests::JSON;

/// How long an object that is deleted to be created anew may take to go.
const DELETION_PATIENCE: Duration = Duration::from_secs(30);

/// Puts the object in the place of the one that is there, or creates it.
pub(super) async fn replace(task: &Task<'_>) -> Result<Outcome, ClusterError> {
    let kept = is_kept(&task.object);
    if task.wanted.force && !kept && task.live().await?.is_some() {
        return recreate(task, "replaced").await;
    }
    let mut last = None;
    for _ in 0..CONFLICT_TRIES {
        let Some(live) = task.live().await? else {
            match task.create("created").await {
                Err(error) if error.is_already_exists() => {
                    last = Some(error);
                    continue;
                }
                outcome => return outcome,
            }
        };
        let mut object = task.object.clone();
        object["metadata"]["resourceVersion"] = live.resource_version().into();
        object["metadata"]["uid"] = live.uid().into();
        let path = task.write_path(&task.path()?, "");
        match task.requests.write(Method::PUT, &path, JSON, &object).await {
            Ok(answer) => {
                let message = match kept {
                    true => format!("{}/{} updated", object.kind(), object.name()),
                    false => message::done(&object, "replaced", task.wanted.dry_run),
                };
                return Ok(applied(message, answer.object));
            }
            Err(error) if error.is_conflict() => last = Some(error),
            Err(ClusterError::Api { code, reason, message }) if kept => {
                return Err(ClusterError::Api {
                    code,
                    reason,
                    message: format!("error when updating: {message}"),
                });
            }
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| ClusterError::NoAnswer("no try was made".to_owned())))
}

/// Deletes the object that is there and creates it anew.
///
/// Nothing is deleted before the API has said that it would take the new one, nor without approval where it is needed.
pub(super) async fn recreate(task: &Task<'_>, how: &str) -> Result<Outcome, ClusterError> {
    let wanted = task.wanted;
    if wanted.guarded {
        return Ok(Outcome::NeedsApproval);
    }
    let path = task.path()?;
    let Some(live) = task.live().await? else { return task.create("created").await };
    // It may have become guarded after it was judged.
    let was_guarded = wanted.live.as_deref().is_some_and(is_guarded);
    if is_guarded(&live) && !was_guarded {
        return Ok(Outcome::NeedsApproval);
    }
    match task.try_create().await {
        Err(error) if !error.is_already_exists() => return Err(error),
        _ => {}
    }
    if wanted.dry_run {
        return Ok(applied(message::done(&task.object, how, true), task.object.clone()));
    }
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground",
        "preconditions": {"uid": live.uid(), "resourceVersion": live.resource_version()},
    });
    match task.requests.write(Method::DELETE, &path, JSON, &options).await {
        Ok(_) => {}
        Err(error) if error.is_not_found() => {}
        Err(error) if error.is_conflict() => return Ok(Outcome::Changed),
        Err(error) => return Err(error),
    }
    delete::wait_until_gone(&task.requests, &path, live.uid(), DELETION_PATIENCE).await?;
    task.cluster.shared.fold_gone(&task.key, live.uid());
    task.create(how).await
}

/// Whether deleting the object would take others with it that nobody spoke of.
fn is_kept(object: &Value) -> bool {
    matches!(
        (object.group(), object.kind()),
        ("apiextensions.k8s.io", "CustomResourceDefinition") | ("", "Namespace")
    )
}

/// Whether the object binds a role that differs from that of the live one, which the API lets nobody change.
pub(super) fn changes_role(object: &Value, live: &Value) -> bool {
    let binding = object.group() == "rbac.authorization.k8s.io"
        && matches!(object.kind(), "RoleBinding" | "ClusterRoleBinding");
    let role = |object: &Value| {
        let role = &object["roleRef"];
        ["kind", "name"].map(|field| role[field].as_str().unwrap_or_default().to_owned())
    };
    binding && role(object) != role(live)
}

/// An answer in which "not found" is an answer, for the live object of a task.
pub(super) async fn live_of(task: &Task<'_>) -> Result<Option<Value>, ClusterError> {
    found(task.requests.get(&task.path()?).await)
}
