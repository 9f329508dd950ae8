//! The resources of an Application: what is in its cluster, and what is wanted there.

use std::collections::BTreeMap;

use baton_api::object::{Object as _, ResourceKey};
use baton_clusters::Node;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::applications::{Found, Named, deed};
use crate::approvals;
use crate::error::{Code, Error};
use crate::fleet::Place;
use crate::server::{Context, Server};

/// Kinds whose objects are made by those of others.
const CHILDREN: [(&str, &str); 5] = [
    ("apps/v1", "ReplicaSet"),
    ("v1", "Pod"),
    ("batch/v1", "Job"),
    ("v1", "PersistentVolumeClaim"),
    ("discovery.k8s.io/v1", "EndpointSlice"),
];

/// Which resource of an Application is meant.
#[derive(Debug, Clone, Default, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Resource {
    /// Its API group.
    pub group: String,
    /// Its API version inside the group.
    pub version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub resource_name: String,
}

impl Server {
    /// The resources of an Application with what belongs to them.
    ///
    /// # Errors
    /// The caller may not see it, or its cluster cannot be asked.
    pub async fn resource_tree(&self, context: &Context, at: &Named) -> Result<Value, Error> {
        let found = self.find(context, at, "get").await?;
        let place = self.place(context, &found).await?;
        let nodes = self.nodes(&found, &place).await?;
        let known: BTreeMap<&ResourceKey, &Node> = nodes.iter().map(|node| (&node.key, node)).collect();
        let nodes: Vec<Value> = nodes.iter().map(|one| node(one, &known)).collect();
        Ok(json!({"nodes": nodes, "orphanedNodes": [], "hosts": [], "shardsCount": 1}))
    }

    /// What is in the cluster beside what is wanted, resource by resource.
    ///
    /// # Errors
    /// The caller may not see it, or its cluster cannot be asked.
    pub async fn managed_resources(
        &self,
        context: &Context,
        at: &Named,
        which: &Resource,
    ) -> Result<Value, Error> {
        let found = self.find(context, at, "get").await?;
        let place = self.place(context, &found).await?;
        let targets = match &self.0.sources {
            Some(sources) => sources.targets(&found.typed).await.map_err(Error::precondition)?,
            None => Vec::new(),
        };
        let mut wanted: BTreeMap<ResourceKey, Value> =
            targets.into_iter().map(|target| (target.key(), target)).collect();
        let holds = |asked: &str, is: &str| asked.is_empty() || asked == is;
        let mut items = Vec::new();
        for row in &found.typed.status.resources {
            let key = approvals::key(row);
            let asked = holds(&which.group, &key.group)
                && holds(&which.kind, &key.kind)
                && holds(&which.namespace, &key.namespace)
                && holds(&which.resource_name, &key.name)
                && holds(&which.version, &row.version);
            let target = wanted.remove(&key);
            if !asked {
                continue;
            }
            let live = place.fetch(&api_version(&row.group, &row.version), &key).await?;
            let live = live.as_deref().cloned().unwrap_or_default();
            items.push(managed(&key, target.unwrap_or_default(), live, row.hook, &place));
        }
        Ok(json!({"items": items}))
    }

    /// What is wanted of an Application, as its sources give it now.
    ///
    /// # Errors
    /// The caller may not see it, another revision is meant, or its sources cannot be read.
    pub async fn manifests(&self, context: &Context, at: &Named, revision: &str) -> Result<Value, Error> {
        let found = self.find(context, at, "get").await?;
        let (spec, status) = (&found.typed.spec, &found.typed.status);
        let target = spec.source.as_ref().map_or("", |source| source.target_revision.as_str());
        if !["", target, &status.sync.revision].contains(&revision) {
            return Err(Error::invalid("only what is wanted now can be shown: leave the revision out"));
        }
        let sources = self.0.sources.as_ref();
        let sources =
            sources.ok_or_else(|| Error::new(Code::Unimplemented, "this server reads no sources"))?;
        let targets = sources.targets(&found.typed).await.map_err(Error::precondition)?;
        let manifests: Vec<String> = targets.iter().map(ToString::to_string).collect();
        let destination = &spec.destination;
        Ok(json!({
            "manifests": manifests, "namespace": destination.namespace, "server": destination.server,
            "revision": status.sync.revision,
        }))
    }

    /// One resource of an Application as it is.
    ///
    /// # Errors
    /// The caller may not see it, or it is none of the Application's.
    pub async fn resource(&self, context: &Context, at: &Named, which: &Resource) -> Result<Value, Error> {
        let found = self.find(context, at, "get").await?;
        let place = self.place(context, &found).await?;
        let live = self.own(&found, &place, which).await?;
        Ok(json!({"manifest": place.shown(&live).to_string()}))
    }

    /// Changes a resource of an Application by a patch.
    ///
    /// # Errors
    /// The caller may not, or it is none of the Application's.
    pub async fn patch_resource(
        &self,
        context: &Context,
        at: &Named,
        which: &Resource,
        kind: &str,
        patch: &str,
    ) -> Result<Value, Error> {
        let right =
            format!("update/{}/{}/{}/{}", which.group, which.kind, which.namespace, which.resource_name);
        let found = self.find(context, at, &right).await?;
        let content = match kind {
            "" | "application/json-patch+json" => "application/json-patch+json",
            "application/merge-patch+json" => "application/merge-patch+json",
            "application/strategic-merge-patch+json" => "application/strategic-merge-patch+json",
            other => return Err(Error::invalid(format!("{other:?} is no kind of patch"))),
        };
        let patch: Value = serde_json::from_str(patch)
            .map_err(|error| Error::invalid(format!("the patch cannot be read: {error}")))?;
        let place = self.place(context, &found).await?;
        let live = self.own(&found, &place, which).await?;
        let record = super::applications::deed("patch resource", "ResourceUpdated", &found);
        let record = crate::audit::Deed { detail: live.key().to_string(), ..record };
        // What approves a deletion is approved by the action alone, and by nobody who may merely change things.
        let approves = patch.to_string().contains(baton_api::names::resource::DELETION_APPROVED)
            || patch.to_string().contains(baton_api::names::baton::APPROVAL);
        let written = match approves {
            true => Err(Error::new(
                Code::PermissionDenied,
                "a deletion is approved by the action approve-deletion",
            )),
            false => place.send(http::Method::PATCH, live.api_version(), &live.key(), &patch, content).await,
        };
        let shown = written.map(|object| json!({"manifest": place.shown(&object).to_string()}));
        self.audited(context, record, shown).await
    }

    /// Deletes a resource of an Application.
    ///
    /// # Errors
    /// The caller may not, it is none of the Application's, or its deletion needs approval.
    pub async fn delete_resource(
        &self,
        context: &Context,
        at: &Named,
        which: &Resource,
        orphan: bool,
    ) -> Result<Value, Error> {
        let right =
            format!("delete/{}/{}/{}/{}", which.group, which.kind, which.namespace, which.resource_name);
        let found = self.find(context, at, &right).await?;
        let place = self.place(context, &found).await?;
        let live = self.own(&found, &place, which).await?;
        let record = crate::audit::Deed {
            detail: live.key().to_string(),
            ..deed("delete resource", "ResourceDeleted", &found)
        };
        let inside = match live.kind() {
            "Namespace" => place.cluster.guarded_in_namespace(live.name()),
            _ => Vec::new(),
        };
        let judged = baton_sync::approval::delete_of_resource(&live, &inside, &found.typed, self.now());
        let result = match judged {
            Err(missing) => {
                let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
                Err(Error::precondition(format!(
                    "these must be approved for deletion first: {}",
                    names.join(", ")
                )))
            }
            Ok(()) => {
                let options = json!({
                    "kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": live.uid()},
                    "propagationPolicy": if orphan { "Orphan" } else { "Background" },
                });
                let key = live.key();
                let sent =
                    place.send(http::Method::DELETE, live.api_version(), &key, &options, "application/json");
                // What went meanwhile is none of the Application's, as if it had been seen to be gone.
                sent.await.map_err(|error| match error.code {
                    Code::NotFound => strange(&found, which),
                    _ => error,
                })
            }
        };
        self.audited(context, record, result.map(|_| json!({}))).await
    }

    /// The resources of an Application and what belongs to them.
    pub(crate) async fn nodes(&self, found: &Found, place: &Place) -> Result<Vec<Node>, Error> {
        let mut kinds = kinds(found);
        kinds.extend(CHILDREN.map(|(version, kind)| (version.to_owned(), kind.to_owned())));
        let ready = place.cluster.ready(&kinds).await;
        ready.map_err(|error| Error::new(Code::Unavailable, error.to_string()))?;
        let roots: Vec<ResourceKey> = found.typed.status.resources.iter().map(approvals::key).collect();
        Ok(place.cluster.tree(&roots))
    }

    pub(crate) async fn place(&self, context: &Context, found: &Found) -> Result<Place, Error> {
        self.0.fleet.place(&context.configuration, &found.typed).await
    }

    /// A live object, if it belongs to the Application.
    pub(crate) async fn own(&self, found: &Found, place: &Place, which: &Resource) -> Result<Value, Error> {
        let key = ResourceKey {
            group: which.group.clone(),
            kind: which.kind.clone(),
            namespace: which.namespace.clone(),
            name: which.resource_name.clone(),
        };
        let roots: Vec<ResourceKey> = found.typed.status.resources.iter().map(approvals::key).collect();
        if !roots.contains(&key) {
            place
                .cluster
                .ready(&kinds(found))
                .await
                .map_err(|error| Error::new(Code::Unavailable, error.to_string()))?;
        }
        let listed = found.typed.status.resources.iter().find(|row| approvals::key(row) == key);
        let version = match (which.version.as_str(), listed) {
            ("", Some(row)) => row.version.as_str(),
            ("", None) => return Err(Error::invalid("version is required")),
            (version, _) => version,
        };
        let live = place.fetch(&api_version(&which.group, version), &key).await?;
        let live = live.ok_or_else(|| strange(found, which))?;
        match place.owns(&live, &roots) {
            true => Ok(live.as_ref().clone()),
            false => Err(strange(found, which)),
        }
    }
}

/// `apiVersion` of a group and version.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn kinds(found: &Found) -> Vec<(String, String)> {
    let rows = found.typed.status.resources.iter();
    rows.map(|row| (api_version(&row.group, &row.version), row.kind.clone())).collect()
}

fn managed(key: &ResourceKey, target: Value, live: Value, hook: bool, place: &Place) -> Value {
    let (target, live) = baton_diff::masked(&target, &live, &place.rules);
    let text = |object: &Value| if object.is_null() { "null".to_owned() } else { strip(object).to_string() };
    let (normalized, predicted, modified) = match (target.is_null(), live.is_null()) {
        (true, _) => (live.clone(), Value::Null, false),
        (false, true) => (Value::Null, target.clone(), true),
        // Lists by what names their items, so that what the API has set in one is no difference.
        (false, false) => {
            let difference = baton_diff::subset(&baton_diff::prepare(&target), &live, &place.rules);
            let [normalized, predicted] =
                [difference.live, difference.predicted].map(|one| as_stored(one, &live));
            (normalized, predicted, difference.modified)
        }
    };
    json!({
        "group": key.group, "kind": key.kind, "namespace": key.namespace, "name": key.name,
        "targetState": text(&target), "liveState": text(&live),
        "normalizedLiveState": text(&normalized), "predictedLiveState": text(&predicted),
        "resourceVersion": live.resource_version(), "modified": modified, "hook": hook,
    })
}

/// What was left out of a comparison, since it belongs to being stored, put back.
fn as_stored(mut object: Value, live: &Value) -> Value {
    let stored = live["metadata"].as_object();
    if let (Some(fields), Some(stored)) = (object["metadata"].as_object_mut(), stored) {
        for name in ["creationTimestamp", "generation", "resourceVersion", "uid"] {
            fields.extend(stored.get(name).map(|value| (name.to_owned(), value.clone())));
        }
    }
    object
}

fn strip(object: &Value) -> Value {
    crate::server::plain(object.clone())
}

fn node(node: &Node, known: &BTreeMap<&ResourceKey, &Node>) -> Value {
    let parents = node.parents.iter().map(|parent| {
        let uid = known.get(parent).map(|node| node.uid.as_str()).unwrap_or_default();
        json!({"group": parent.group, "kind": parent.kind, "namespace": parent.namespace, "name": parent.name, "uid": uid})
    });
    let mut shown = json!({
        "group": node.key.group, "version": node.version, "kind": node.key.kind,
        "namespace": node.key.namespace, "name": node.key.name, "uid": node.uid,
        "resourceVersion": node.resource_version,
        "parentRefs": parents.collect::<Vec<_>>(),
        "images": node.images,
    });
    if let Some(health) = &node.health {
        shown["health"] = json!({"status": health.code.as_str(), "message": health.message});
    }
    if let Some(created) = node.created {
        shown["createdAt"] = json!(created);
    }
    shown
}

/// What is said of a resource that is none of an Application's.
fn strange(found: &Found, which: &Resource) -> Error {
    Error::invalid(format!(
        "{} {} {} not found as part of application {}",
        which.kind,
        which.group,
        which.resource_name,
        found.typed.metadata.name.as_deref().unwrap_or_default()
    ))
}
