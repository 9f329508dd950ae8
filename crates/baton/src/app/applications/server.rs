//! Applications at a server, as far as it lets the caller see and change them.

use std::sync::Arc;

use baton_api::application::RetryStrategy;
use baton_api::application_status::ResourceStatus;
use baton_api::names::application::DELETION_APPROVED;
use baton_api::object::ResourceKey;
use baton_api::operation::Operation;
use futures::stream::BoxStream;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Creation, Deletion, Policy, Wish};
use crate::desk::items;
use crate::failure::Failure;
use crate::objects::text;
use crate::session::{Remote, Sight, Watched, follow, query, segment};

/// The Applications of one server.
pub(in crate::app) struct AtServer {
    remote: Remote,
    /// Empty is the control plane's.
    namespace: String,
}

/// A resource as it is wanted and as it is; `null` is not there.
pub(in crate::app) struct Managed {
    pub(in crate::app) key: ResourceKey,
    pub(in crate::app) target: Value,
    pub(in crate::app) live: Arc<Value>,
    pub(in crate::app) hook: bool,
}

// === impl AtServer ===

impl AtServer {
    pub(super) fn new(remote: Remote, namespace: &str) -> AtServer {
        AtServer { remote, namespace: namespace.to_owned() }
    }

    pub(super) async fn list(&self, selector: Option<&str>, everywhere: bool) -> Result<Vec<Value>, Failure> {
        let namespace = if everywhere { "" } else { &self.namespace };
        let query = query(&[("selector", selector.unwrap_or_default()), ("appNamespace", namespace)]);
        let found = self.remote.get(&format!("api/v1/applications{query}")).await?;
        Ok(items(found).into_iter().map(whole).collect())
    }

    pub(super) async fn get(&self, name: &str) -> Result<Value, Failure> {
        let found = self.remote.find(&self.path(name, "", &[])).await?;
        found.map(whole).ok_or_else(|| absent(name))
    }

    /// As it is after a comparison.
    pub(in crate::app) async fn refreshed(&self, name: &str, kind: &str) -> Result<Value, Failure> {
        self.get(name).await?;
        self.remote.get_patiently(&self.path(name, "", &[("refresh", kind)])).await.map(whole)
    }

    pub(super) async fn create(
        &self,
        document: &Value,
        how: Creation,
    ) -> Result<(Value, &'static str), Failure> {
        if how.dry_run {
            return Err(Failure::usage(
                "a server creates Applications and does not check them alone: leave --dry-run out, or have the Kubernetes \
                 API check it with --core",
            ));
        }
        let mut document = document.clone();
        if text(&document, "/metadata/namespace").is_empty() && !self.namespace.is_empty() {
            document["metadata"]["namespace"] = self.namespace.as_str().into();
        }
        let (name, namespace) = (text(&document, "/metadata/name"), text(&document, "/metadata/namespace"));
        let at = AtServer { remote: self.remote.clone(), namespace };
        let existed = at.remote.find(&at.path(&name, "", &[])).await?.is_some();
        let upsert = if how.upsert { "?upsert=true" } else { "" };
        let made = self.remote.post(&format!("api/v1/applications{upsert}"), &document).await?;
        let verb = match (existed, how.upsert) {
            (false, _) => "created",
            (true, true) => "configured",
            (true, false) => "unchanged",
        };
        Ok((whole(made), verb))
    }

    pub(super) async fn start(&self, name: &str, wish: &Wish) -> Result<(), Failure> {
        let (rest, body) = match wish {
            Wish::Sync(operation) => ("/sync", sync_request(operation)),
            Wish::Rollback(id, operation) => {
                let sync = operation.sync.as_ref();
                let (dry_run, prune) = sync.map(|sync| (sync.dry_run, sync.prune)).unwrap_or_default();
                ("/rollback", json!({"id": id, "dryRun": dry_run, "prune": prune}))
            }
        };
        self.remote.post(&self.path(name, rest, &[]), &body).await.map(drop)
    }

    pub(super) async fn terminate(&self, name: &str) -> Result<(), Failure> {
        self.remote.delete(&self.path(name, "/operation", &[])).await.map(drop)
    }

    pub(super) async fn approve(&self, name: &str, at: Timestamp) -> Result<(), Failure> {
        self.change(name, &json!({"metadata": {"annotations": {DELETION_APPROVED: at.to_string()}}})).await
    }

    /// Changes one by a JSON merge patch.
    pub(super) async fn change(&self, name: &str, patch: &Value) -> Result<(), Failure> {
        let body = json!({"patch": patch.to_string(), "patchType": "merge"});
        let path = self.path(name, "", &[]);
        self.remote.send(reqwest::Method::PATCH, &path, Some(&body)).await?;
        Ok(())
    }

    pub(super) async fn delete(&self, name: &str, how: Deletion) -> Result<(), Failure> {
        let policy = match how.policy {
            None => "",
            Some(Policy::Foreground) => "foreground",
            Some(Policy::Background) => "background",
        };
        let cascade = if how.cascade { "true" } else { "false" };
        let path = self.path(name, "", &[("cascade", cascade), ("propagationPolicy", policy)]);
        self.remote.delete(&path).await.map(drop)
    }

    pub(super) fn watch(&self, name: &str) -> BoxStream<'static, Sight> {
        let query = query(&[("name", name), ("appNamespace", &self.namespace)]);
        let watched = Watched {
            object: self.path(name, "", &[]),
            stream: format!("api/v1/stream/applications{query}"),
            field: "application",
        };
        follow(self.remote.clone(), watched)
    }

    /// What belongs to what.
    pub(in crate::app) async fn tree(&self, name: &str) -> Result<Vec<Value>, Failure> {
        let mut answer = self.remote.get(&self.path(name, "/resource-tree", &[])).await?;
        Ok(match answer["nodes"].take() {
            Value::Array(nodes) => nodes,
            _ => Vec::new(),
        })
    }

    /// What is wanted of each resource, and what is there.
    pub(in crate::app) async fn managed(&self, name: &str) -> Result<Vec<Managed>, Failure> {
        let answer = self.remote.get(&self.path(name, "/managed-resources", &[])).await?;
        items(answer)
            .iter()
            .map(|item| {
                let field = |name: &str| text(item, &format!("/{name}"));
                let [group, kind, namespace, name] = ["group", "kind", "namespace", "name"].map(field);
                Ok(Managed {
                    key: ResourceKey { group, kind, namespace, name },
                    target: state(item, "targetState")?,
                    live: Arc::new(state(item, "liveState")?),
                    hook: item["hook"] == true,
                })
            })
            .collect()
    }

    /// What git describes.
    pub(in crate::app) async fn manifests(&self, name: &str) -> Result<Vec<Value>, Failure> {
        let answer = self.remote.get_patiently(&self.path(name, "/manifests", &[])).await?;
        let all = answer["manifests"].as_array().into_iter().flatten().filter_map(Value::as_str);
        all.map(read).collect()
    }

    /// The actions that a resource offers: names, and whether each is disabled.
    pub(in crate::app) async fn actions(
        &self,
        name: &str,
        row: &ResourceStatus,
    ) -> Result<Vec<(String, bool)>, Failure> {
        let which = [
            ("group", row.group.as_str()),
            ("version", &row.version),
            ("kind", &row.kind),
            ("namespace", &row.namespace),
            ("resourceName", &row.name),
        ];
        // A resource that is not there offers nothing.
        let answer =
            self.remote.find(&self.path(name, "/resource/actions", &which)).await?.unwrap_or_default();
        let all = answer["actions"].as_array().into_iter().flatten();
        Ok(all.map(|action| (text(action, "/name"), action["disabled"] == true)).collect())
    }

    pub(in crate::app) async fn run_action(
        &self,
        name: &str,
        row: &ResourceStatus,
        action: &str,
        parameters: &[(String, String)],
    ) -> Result<(), Failure> {
        let parameters: Vec<Value> =
            parameters.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        let body = json!({
            "group": row.group, "version": row.version, "kind": row.kind, "namespace": row.namespace,
            "resourceName": row.name, "action": action, "resourceActionParameters": parameters,
        });
        self.remote.post(&self.path(name, "/resource/actions/v2", &[]), &body).await.map(drop)
    }

    fn path(&self, name: &str, rest: &str, parameters: &[(&str, &str)]) -> String {
        let mut all = vec![("appNamespace", self.namespace.as_str())];
        all.extend_from_slice(parameters);
        format!("api/v1/applications/{}{rest}{}", segment(name), query(&all))
    }
}

fn absent(name: &str) -> Failure {
    Failure::api(format!(
        "there is no Application {name} that you may see at this server; `baton app list` shows those there are"
    ))
}

/// An object with what a server leaves out, as everybody knows it.
fn whole(mut object: Value) -> Value {
    if object["kind"].is_null() && object.is_object() {
        object["apiVersion"] = baton_api::names::API_VERSION.into();
        object["kind"] = "Application".into();
    }
    object
}

fn sync_request(operation: &Operation) -> Value {
    let sync = operation.sync.clone().unwrap_or_default();
    let mut request = json!({
        "revision": sync.revision, "revisions": sync.revisions, "dryRun": sync.dry_run, "prune": sync.prune,
        "strategy": sync.sync_strategy, "resources": sync.resources, "infos": operation.info,
        "syncOptions": {"items": sync.sync_options},
    });
    if operation.retry != RetryStrategy::default() {
        request["retryStrategy"] = json!(operation.retry);
    }
    request
}

/// An object that is told as a text; `null` where there is none.
fn state(item: &Value, field: &str) -> Result<Value, Failure> {
    match item[field].as_str() {
        None | Some("") => Ok(Value::Null),
        Some(text) => read(text),
    }
}

fn read(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text)
        .map_err(|error| Failure::api(format!("the server told an object that cannot be read: {error}")))
}
