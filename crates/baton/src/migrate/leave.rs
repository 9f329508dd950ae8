//! `baton migrate leave`.

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

use super::installation::{Installation, called};
use super::parting::{self, Change};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::terminal;

/// Whom to leave.
#[derive(Debug, Args)]
#[command(
    after_help = "To be run when Baton's ApplicationSet controller has stopped, and before Argo CD's starts. Nothing is deleted but what Baton
keeps beside sets, and nothing is synced: where automated sync would start at once, it stays off, and that is told (exit code 2).

Examples:
  kubectl -n argocd scale deployment baton-applicationset-controller --replicas=0
  baton migrate leave --dry-run
  baton migrate leave"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// Tell what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
}

const MANAGER: &str = "baton-migrate";

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let client = arguments.connection.client().await?;
    let namespace = arguments.connection.namespace();
    let installation = Installation::read(&client, namespace).await?;
    if let Some(holder) = installation.lease.as_ref().and_then(|lease| leader(lease, Timestamp::now())) {
        return Err(Failure::failed(format!(
            "{holder} still leads: stop the ApplicationSet controller first (kubectl -n {namespace} scale deployment … \
             --replicas=0), or it puts everything back"
        )));
    }
    let parting = parting::plan(&installation);
    let would = if arguments.dry_run { "would be changed: " } else { "" };
    for (kind, changes) in [("Application", &parting.applications), ("ApplicationSet", &parting.sets)] {
        for change in changes {
            if !arguments.dry_run {
                write(&client, kind, change).await?;
            }
            terminal::tell(&format!("{would}{}: {}", change.object, change.what.join(", ")));
        }
    }
    for (group, version, kind) in [("", "v1", "ConfigMap"), ("apps", "v1", "ControllerRevision")] {
        let api = |namespace: &str| api(&client, group, version, kind, namespace);
        for object in beside(&client, &installation, group, version, kind).await? {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            if !arguments.dry_run && is_needed(&client, &object).await? {
                terminal::tell(&format!("{} stays: an Application still depends on it", called(&object)));
                continue;
            }
            if !arguments.dry_run {
                let preconditions =
                    Preconditions { uid: Some(text("uid").to_owned()), resource_version: None };
                let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
                match api(text("namespace")).delete(text("name"), &params).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => {}
                    answer => drop(answer?),
                }
            }
            terminal::tell(&format!("{would}{}: goes", called(&object)));
        }
    }
    if parting.left.is_empty() {
        return Ok(());
    }
    parting.left.iter().for_each(|left| terminal::tell(left));
    Err(Failure::waiting(format!("{} Applications are left to you", parting.left.len())))
}

/// Who holds the lease now, if anybody does.
fn leader(lease: &Value, now: Timestamp) -> Option<&str> {
    let spec = &lease["spec"];
    let holder = spec["holderIdentity"].as_str().filter(|holder| !holder.is_empty())?;
    let renewed: Timestamp = spec["renewTime"].as_str()?.parse().ok()?;
    let lasts = SignedDuration::from_secs(spec["leaseDurationSeconds"].as_i64().unwrap_or(15));
    (renewed.checked_add(lasts).ok()? > now).then_some(holder)
}

fn api(client: &Client, group: &str, version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(client.clone(), namespace, &resource)
}

/// Writes under the version that was read. Who else has written meanwhile is told of.
async fn write(client: &Client, kind: &str, change: &Change) -> Result<(), Failure> {
    let api = api(client, "argoproj.io", "v1alpha1", kind, &change.namespace);
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    match api.patch(&change.name, &params, &Patch::Merge(&change.patch)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Err(Failure::failed(format!(
            "{} has just been changed by somebody else; what was done so far holds, run this again",
            change.object
        ))),
        Err(error) => Err(error.into()),
    }
}

/// What Baton keeps beside the sets, in the namespaces they are in.
async fn beside(
    client: &Client,
    installation: &Installation,
    group: &str,
    version: &str,
    kind: &str,
) -> Result<Vec<Value>, Failure> {
    let sets = installation.sets.iter().filter_map(|set| set["metadata"]["namespace"].as_str());
    let mut namespaces: Vec<&str> = sets.chain([installation.namespace.as_str()]).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    let mut found = Vec::new();
    for namespace in namespaces {
        let all = Installation::within(client, namespace, group, version, kind).await?;
        found.extend(all.into_iter().filter(parting::is_kept_beside));
    }
    Ok(found)
}

/// Whether an Application would go with it. Asked anew of the API each time, for what is written off here is gone for good.
async fn is_needed(client: &Client, object: &Value) -> Result<bool, Failure> {
    let uid = &object["metadata"]["uid"];
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if object["kind"] != "ConfigMap" {
        return Ok(false);
    }
    let all = Installation::within(client, namespace, "argoproj.io", "v1alpha1", "Application").await?;
    let depends = |application: &Value| {
        let owners = application["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owners.into_iter().any(|owner| owner["uid"] == *uid)
    };
    Ok(all.iter().any(|application| parting::is_guarded(application) && depends(application)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lease_is_held_until_its_time_is_over() {
        let now: Timestamp = "2026-01-01T00:00:10Z".parse().expect("a time");
        let lease = |holder: &str, renewed: &str| {
            let spec = json!({"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 8});
            json!({ "spec": spec })
        };
        for (lease, expected) in [
            (lease("one", "2026-01-01T00:00:03Z"), Some("one")),
            (lease("one", "2026-01-01T00:00:02Z"), None),
            (lease("", "2026-01-01T00:00:09Z"), None),
            (json!({}), None),
        ] {
            assert_eq!(leader(&lease, now), expected, "{lease}");
        }
    }
}
