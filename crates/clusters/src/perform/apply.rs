//! Making an object be as it is written.

use std::time::Duration;

use baton_api::names::FIELD_MANAGER;
use baton_api::object::{Object, ResourceKey};
use baton_diff::{TAKEN_OVER, takeover};
use baton_sync::action::{Apply, Outcome, ServerSide};
use http::Method;
use serde_json::Value;
use tokio::time::Instant;

use super::replace::{changes_role, live_of, recreate, replace};
use super::{CONFLICT_TRIES, applied, client_side, message};
use crate::cluster::{Cluster, no_such_kind};
use crate::error::ClusterError;
use crate::paths;
use crate::requests::{APPLY_PATCH, Answer, JSON, JSON_PATCH, Requests};

/// How long it is waited for a new kind to be served, and how often it is looked.
const ESTABLISHED_PATIENCE: Duration = Duration::from_secs(3);
const ESTABLISHED_LOOK: Duration = Duration::from_millis(100);
/// How long it is waited for the kind of an object to be known.
const KIND_PATIENCE: Duration = Duration::from_secs(10);

/// An object on its way to a cluster.
pub(super) struct Task<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) wanted: &'a Apply,
    /// As it is sent.
    pub(super) object: Value,
    pub(super) key: ResourceKey,
    pub(super) requests: Requests,
    collection: String,
}

/// Makes the object be as it is written.
pub(super) async fn apply(cluster: &Cluster, wanted: &Apply) -> Result<Outcome, ClusterError> {
    let task = Task::new(cluster, wanted).await?;
    let outcome = match task.object.name().is_empty() {
        true => task.create("created").await,
        false => task.run().await,
    };
    if !wanted.dry_run && matches!(outcome, Ok(Outcome::Applied { .. })) && is_definition(&task.object) {
        task.wait_until_established().await;
    }
    outcome
}

impl<'a> Task<'a> {
    async fn new(cluster: &'a Cluster, wanted: &'a Apply) -> Result<Task<'a>, ClusterError> {
        let object = baton_diff::prepare(&wanted.object);
        wait_for_kind(cluster, &object).await?;
        let key = cluster.key_of(&object);
        let (requests, collection) = cluster.collection_of(object.api_version(), &key)?;
        Ok(Task { cluster, wanted, object, key, requests, collection })
    }

    async fn run(&self) -> Result<Outcome, ClusterError> {
        let wanted = self.wanted;
        if wanted.create_only {
            return match self.create("created").await {
                Err(error) if error.is_already_exists() => match self.live().await? {
                    Some(live) => Ok(Outcome::Exists(live.into())),
                    None => Err(error),
                },
                outcome => outcome,
            };
        }
        if wanted.replace {
            return self.in_missing_namespace(replace(self).await);
        }
        let changes_role = wanted.live.as_deref().is_some_and(|live| changes_role(&self.object, live));
        if changes_role && wanted.server_side != ServerSide::Asked {
            return recreate(self, "configured").await;
        }
        let outcome = match wanted.server_side {
            ServerSide::Refused => client_side::apply(self).await,
            ServerSide::Asked | ServerSide::Default => self.server_side().await,
        };
        match outcome {
            // As kubectl does it with `--force`.
            Err(error) if wanted.force && matches!(error.code(), 409 | 422) => {
                recreate(self, "configured").await
            }
            outcome => self.in_missing_namespace(outcome),
        }
    }

    async fn server_side(&self) -> Result<Outcome, ClusterError> {
        if !self.wanted.dry_run {
            self.migrate().await?;
        }
        let path = self.write_path(&self.path()?, "&force=true");
        match self.send_apply(&path).await {
            Ok(answer) => Ok(applied(self.say(&answer), answer.object)),
            Err(error) if self.wanted.server_side == ServerSide::Default && self.is_beyond_apply(&error) => {
                client_side::apply(self).await
            }
            Err(error) => Err(error),
        }
    }

    /// Sends the object to be applied. Where somebody created it at the same moment, as Applications that share a
    /// namespace do, it is applied to what is there now.
    async fn send_apply(&self, path: &str) -> Result<Answer, ClusterError> {
        let mut left = CONFLICT_TRIES;
        loop {
            left -= 1;
            match self.requests.write(Method::PATCH, path, APPLY_PATCH, &self.object).await {
                Err(error) if error.is_already_exists() && left > 0 => {}
                outcome => return outcome,
            }
        }
    }

    /// Whether the server cannot apply what it would take otherwise: it knows no apply at all, or the object has fields
    /// that are not declared, which the user wants to be passed over.
    fn is_beyond_apply(&self, error: &ClusterError) -> bool {
        error.code() == 415
            || (!self.wanted.validate && error.to_string().contains("field not declared in schema"))
    }

    /// Takes over the fields of client-side apply.
    async fn migrate(&self) -> Result<(), ClusterError> {
        let Some(from) = &self.wanted.migrate_from else { return Ok(()) };
        let Some(seen) = &self.wanted.live else { return Ok(()) };
        // Whatever the user names, what Argo CD itself wrote before server-side apply is ours.
        let mut managers = TAKEN_OVER;
        managers[0] = from;
        if takeover(seen, &managers).is_none() {
            return Ok(());
        }
        let path = self.path()?;
        for _ in 0..CONFLICT_TRIES {
            let Some(live) = self.live().await? else { return Ok(()) };
            let Some(patch) = takeover(&live, &managers) else { return Ok(()) };
            match self.requests.write(Method::PATCH, &path, JSON_PATCH, &patch).await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_conflict() => {}
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) => {
                    let message =
                        format!("Failed to perform client-side apply migration for {}: {error}", self.key);
                    return Err(ClusterError::Api { code: error.code(), reason: String::new(), message });
                }
            }
        }
        Ok(())
    }

    fn say(&self, answer: &Answer) -> String {
        let before = self.wanted.live.as_deref().map(Object::resource_version);
        let how = match self.wanted.server_side {
            ServerSide::Asked => "serverside-applied",
            _ if answer.created => "created",
            _ if before == Some(answer.object.resource_version()) && !self.wanted.dry_run => "unchanged",
            _ => "configured",
        };
        message::done(&answer.object, how, self.wanted.dry_run)
    }

    /// A dry run in a namespace that is not there yet says nothing against the object: the namespace may be one of the
    /// objects that are applied before it.
    fn in_missing_namespace(&self, outcome: Result<Outcome, ClusterError>) -> Result<Outcome, ClusterError> {
        match outcome {
            Err(error)
                if self.wanted.dry_run
                    && error.is_not_found()
                    && error.to_string() == format!("namespaces {:?} not found", self.key.namespace) =>
            {
                Ok(applied(message::done(&self.object, "created", true), self.object.clone()))
            }
            outcome => outcome,
        }
    }

    // --- parts of all ways ---

    /// The object that is there now.
    pub(super) async fn live(&self) -> Result<Option<Value>, ClusterError> {
        live_of(self).await
    }

    pub(super) async fn create(&self, how: &str) -> Result<Outcome, ClusterError> {
        let created = self.post(&self.object, self.wanted.dry_run).await;
        let created = created
            .map(|answer| applied(message::done(&answer.object, how, self.wanted.dry_run), answer.object));
        self.in_missing_namespace(created)
    }

    /// Creates another form of the object.
    pub(super) async fn create_as(&self, object: &Value) -> Result<Outcome, ClusterError> {
        let answer = self.post(object, self.wanted.dry_run).await?;
        Ok(applied(message::done(&answer.object, "created", self.wanted.dry_run), answer.object))
    }

    /// Has the API check whether it would take the object. Where one is there, "already exists" is a yes.
    pub(super) async fn try_create(&self) -> Result<Answer, ClusterError> {
        self.post(&self.object, true).await
    }

    async fn post(&self, object: &Value, dry_run: bool) -> Result<Answer, ClusterError> {
        let dry_run = if dry_run { "&dryRun=All" } else { "" };
        let path = format!(
            "{}?fieldManager={FIELD_MANAGER}&fieldValidation={}{dry_run}",
            self.collection,
            self.validation()
        );
        self.requests.write(Method::POST, &path, JSON, object).await
    }

    pub(super) fn path(&self) -> Result<String, ClusterError> {
        paths::object(&self.collection, &self.key.name)
    }

    pub(super) fn write_path(&self, path: &str, more: &str) -> String {
        let dry_run = if self.wanted.dry_run { "&dryRun=All" } else { "" };
        format!("{path}?fieldManager={FIELD_MANAGER}&fieldValidation={}{more}{dry_run}", self.validation())
    }

    fn validation(&self) -> &'static str {
        if self.wanted.validate { "Strict" } else { "Ignore" }
    }

    /// Waits until the API serves a new kind; that it does not yet is no failure.
    async fn wait_until_established(&self) {
        let deadline = Instant::now() + ESTABLISHED_PATIENCE;
        while Instant::now() < deadline {
            match self.live().await {
                Ok(Some(live)) if is_established(&live) => break,
                Ok(None) => break,
                _ => tokio::time::sleep(ESTABLISHED_LOOK).await,
            }
        }
        self.cluster.shared.rediscover();
    }
}

/// Waits until it is known whether the cluster serves the kind of an object, which may be a new one.
async fn wait_for_kind(cluster: &Cluster, object: &Value) -> Result<(), ClusterError> {
    if cluster.kind(object.api_version(), object.kind())?.is_some() {
        return Ok(());
    }
    let mut progress = cluster.shared.progress();
    let before = cluster.shared.situation.lock().discovered;
    cluster.shared.rediscover();
    let deadline = Instant::now() + KIND_PATIENCE;
    while cluster.shared.situation.lock().discovered == before && cluster.shared.lost().is_none() {
        if tokio::time::timeout_at(deadline, progress.changed()).await.is_err() {
            break;
        }
    }
    match cluster.kind(object.api_version(), object.kind())? {
        Some(_) => Ok(()),
        None => Err(no_such_kind()),
    }
}

fn is_definition(object: &Value) -> bool {
    object.group() == "apiextensions.k8s.io" && object.kind() == "CustomResourceDefinition"
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}
