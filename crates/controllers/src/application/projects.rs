//! Projects: the default one is made where there is none, and one that is being deleted goes once nobody uses it.

use std::sync::Arc;
use std::time::Duration;

use baton_api::names::{API_VERSION, DEFAULT_PROJECT};
use baton_api::{AppProject, Application};
use baton_sync::project::released;
use serde_json::json;

use super::Shared;
use crate::objects::{ApiError, Objects, Seen};

/// How soon a write that failed is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// Minds projects until dropped.
pub(super) async fn mind(shared: Arc<Shared>) {
    for synced in shared.synced.all() {
        synced.wait().await;
    }
    if let Err(error) = make_default(&shared).await {
        tracing::warn!(%error, "the default project could not be made");
    }
    loop {
        if let Err(error) = release(&shared).await {
            tracing::warn!(%error, "a project could not be released");
            tokio::time::sleep(AGAIN).await;
            continue;
        }
        shared.projects_changed.notified().await;
    }
}

async fn make_default(shared: &Shared) -> Result<(), ApiError> {
    if shared.known.projects.lock().contains_key(DEFAULT_PROJECT) {
        return Ok(());
    }
    let project = json!({
        "apiVersion": API_VERSION, "kind": "AppProject",
        "metadata": {"name": DEFAULT_PROJECT, "namespace": shared.settings.namespace},
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    });
    match projects(shared).create(&project).await {
        Err(error) if !error.is_already_exists() => Err(error),
        _ => Ok(()),
    }
}

/// Takes the finalizer off projects that nobody uses any more.
async fn release(shared: &Shared) -> Result<(), ApiError> {
    let going: Vec<Arc<AppProject>> = {
        let projects = shared.known.projects.lock();
        let readable = projects.values().filter_map(|project| project.as_ref().ok());
        readable.filter(|project| project.metadata.deletion_timestamp.is_some()).cloned().collect()
    };
    if going.is_empty() {
        return Ok(());
    }
    // That nobody uses a project is not believed of a cache.
    let applications = applications(shared).await?;
    for project in going {
        let Some(left) = released(&project, &applications, &shared.settings.namespace) else { continue };
        let seen = Seen {
            uid: project.metadata.uid.as_deref().unwrap_or_default(),
            version: project.metadata.resource_version.as_deref(),
        };
        let name = project.metadata.name.as_deref().unwrap_or_default();
        let patch = json!({"metadata": {"finalizers": left}});
        match projects(shared).patch(name, patch, seen).await {
            // News of what changed it will come.
            Err(error) if !error.is_not_found() && !error.is_conflict() => return Err(error),
            _ => tracing::info!(project = name, "the project is no longer used and goes"),
        }
    }
    Ok(())
}

async fn applications(shared: &Shared) -> Result<Vec<Application>, ApiError> {
    let namespace = shared.allowed.only().unwrap_or_default();
    let objects = Objects::new(shared.client.clone(), API_VERSION, "applications", namespace, false);
    let (mut found, mut unreadable) = (Vec::new(), false);
    let read = |object| match serde_json::from_value::<Application>(object) {
        Ok(application) => found.push(application),
        Err(_) => unreadable = true,
    };
    objects.each(None, read).await?;
    match unreadable {
        true => Err(ApiError::NoAnswer("an Application that cannot be read may use it".to_owned())),
        false => Ok(found),
    }
}

fn projects(shared: &Shared) -> Objects {
    Objects::new(shared.client.clone(), API_VERSION, "appprojects", &shared.settings.namespace, false)
        .managed_by(super::EVENT_SOURCE)
}
