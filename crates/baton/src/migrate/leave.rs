//! `baton migrate leave`.

use clap::Args;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

use super::installation::{ELSEWHERE, Installation, called};
use super::lease::Leases;
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

/// What must have been seen whole before anything is written.
const NEEDED: [&str; 3] = ["Applications", "ConfigMaps", ELSEWHERE];

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let namespace = super::namespace(&arguments.connection)?;
    let client = arguments.connection.client().await?;
    let installation = Installation::read(&client, namespace).await?;
    check(&installation)?;
    // Whatever cannot be read is met here, before the first write.
    let kept = beside(&client, &installation).await?;
    let mut leases = Leases::given_up(&client, &installation.namespaces()).await?;
    let parting = parting::plan(&installation, &kept);
    let would = if arguments.dry_run { "would be changed: " } else { "" };
    for (kind, changes) in [("Application", &parting.applications), ("ApplicationSet", &parting.sets)] {
        for change in changes {
            if !arguments.dry_run {
                write(&client, kind, change).await?;
            }
            terminal::tell(&format!("{would}{}: {}", change.object, change.what.join(", ")));
        }
    }
    // The head of a rollout is lost for good: not to one that has begun to lead since.
    leases.still_nobody().await?;
    for object in &kept {
        let stays = match arguments.dry_run {
            true => installation
                .applications
                .iter()
                .any(|one| parting.leaves_guarded(one) && depends(one, object)),
            false => is_needed(&client, object).await?,
        };
        if stays {
            terminal::tell(&format!("{} stays: an Application still depends on it", called(object)));
            continue;
        }
        if !arguments.dry_run {
            delete(&client, object).await?;
        }
        terminal::tell(&format!("{would}{}: goes", called(object)));
    }
    if parting.left.is_empty() {
        return Ok(());
    }
    parting.left.iter().for_each(|left| terminal::tell(left));
    Err(Failure::waiting(format!("{} Applications are left to you", parting.left.len())))
}

/// Whether enough was seen, and whether all of it is this installation's.
fn check(installation: &Installation) -> Result<(), Failure> {
    if let Some((what, why)) = installation.unread.iter().find(|(what, _)| NEEDED.contains(&what.as_str())) {
        return Err(Failure::api(format!("the {what} cannot be listed, and nothing was changed: {why}")));
    }
    if let Some((_, why)) = installation.unread.iter().find(|(what, _)| what == "Deployments") {
        terminal::remark(&format!(
            "which namespaces sets are in is known by argocd-cmd-params-cm alone, for Deployments cannot be listed: {why}"
        ));
    }
    let namespace = installation.namespace.as_str();
    let elsewhere = installation.applications.iter().find_map(|application| {
        let by = application["status"]["controllerNamespace"].as_str()?;
        (!by.is_empty() && by != namespace).then_some((application, by))
    });
    match elsewhere {
        None => Ok(()),
        Some((application, by)) => Err(Failure::failed(format!(
            "{} belongs to the Argo CD of the namespace {by}: name that one with --namespace",
            called(application)
        ))),
    }
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
async fn beside(client: &Client, installation: &Installation) -> Result<Vec<Value>, Failure> {
    let mut found = Vec::new();
    for (group, version, kind) in [("", "v1", "ConfigMap"), ("apps", "v1", "ControllerRevision")] {
        for namespace in installation.namespaces() {
            let all =
                Installation::within(client, namespace, group, version, kind).await.map_err(|error| {
                    Failure::api(format!(
                        "the {kind}s of {namespace} cannot be listed, and nothing was changed: {error}"
                    ))
                })?;
            found.extend(all.into_iter().filter(parting::is_kept_beside));
        }
    }
    Ok(found)
}

/// Whether an Application would go with it. Asked anew of the API each time, for what is written off here is gone for good.
async fn is_needed(client: &Client, object: &Value) -> Result<bool, Failure> {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if object["kind"] != "ConfigMap" {
        return Ok(false);
    }
    let all = Installation::within(client, namespace, "argoproj.io", "v1alpha1", "Application").await?;
    Ok(all.iter().any(|application| parting::is_guarded(application) && depends(application, object)))
}

fn depends(application: &Value, object: &Value) -> bool {
    let owners = application["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.into_iter().any(|owner| owner["uid"] == object["metadata"]["uid"])
}

async fn delete(client: &Client, object: &Value) -> Result<(), Failure> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", "v1"));
    let metadata = &object["metadata"];
    let api = api(client, group, version, &text(&object["kind"]), &text(&metadata["namespace"]));
    let preconditions = Preconditions { uid: Some(text(&metadata["uid"])), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match api.delete(&text(&metadata["name"]), &params).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        answer => answer.map(drop).map_err(Failure::from),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_another_argo_cd_looks_after_is_not_left_from_here() {
        let of = |namespace: &str| Installation {
            namespace: "team".to_owned(),
            applications: vec![json!({
                "kind": "Application", "metadata": {"name": "web", "namespace": "team"},
                "status": {"controllerNamespace": namespace},
            })],
            ..Installation::default()
        };
        for own in ["team", ""] {
            assert!(check(&of(own)).is_ok(), "{own}");
        }
        let refused = check(&of("argocd")).expect_err("another's");
        assert_eq!(refused.code(), crate::failure::FAILED);
        assert!(
            refused
                .to_string()
                .starts_with("Application team/web belongs to the Argo CD of the namespace argocd"),
            "{refused}"
        );
    }

    #[test]
    fn what_could_not_be_seen_ends_it_before_the_first_write() {
        for (what, is_needed) in
            [("Applications", true), ("ConfigMaps", true), (ELSEWHERE, true), ("ClusterRoles", false)]
        {
            let unread = vec![(what.to_owned(), "forbidden".to_owned())];
            let answer = check(&Installation { unread, ..Installation::default() });
            assert_eq!(
                answer.err().map(|error| error.code()),
                is_needed.then_some(crate::failure::API),
                "{what}"
            );
        }
    }
}
