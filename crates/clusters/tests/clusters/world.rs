//! A control plane and member clusters in one process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use baton_api::application::Destination;
use baton_api::object::ResourceKey;
use baton_apiserver::{Clock, Options};
use baton_clusters::{Changed, ChangedKind, Cluster, ClusterAccess, Clusters, Connect, Settings};
use http::Request;
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::faults::Wire;

pub(crate) const TRACKING: &str = "argocd.argoproj.io/tracking-id";

/// One member cluster and the wire to it.
pub(crate) struct Member {
    pub(crate) server: baton_apiserver::Cluster,
    pub(crate) wire: Wire,
    /// Reaches it whatever the wire does.
    direct: Client,
}

/// Everything.
pub(crate) struct World {
    pub(crate) clusters: Clusters,
    members: BTreeMap<String, Arc<Member>>,
    changes: Arc<Mutex<Vec<Changed>>>,
}

struct Wires(BTreeMap<String, Arc<Member>>);

impl Connect for Wires {
    fn connect(&self, cluster: &ClusterAccess) -> Result<Client, String> {
        let member = self.0.get(&*cluster.server).ok_or("no such cluster")?;
        Ok(member.wire.client(&member.server))
    }
}

impl World {
    /// Clusters with these names at `https://<name>`, all registered.
    pub(crate) fn new(names: &[&str]) -> World {
        World::with(names, Settings::default())
    }

    pub(crate) fn with(names: &[&str], settings: Settings) -> World {
        let members: BTreeMap<String, Arc<Member>> = names
            .iter()
            .zip(1..)
            .map(|(name, seed)| (format!("https://{name}"), Arc::new(Member::new(seed))))
            .collect();
        let changes = Arc::new(Mutex::new(Vec::new()));
        let note = changes.clone();
        let on_change = Arc::new(move |change: Changed| note.lock().push(change));
        let local = Member::new(0);
        let in_cluster = local.direct.clone();
        let clusters = Clusters::new(Arc::new(Wires(members.clone())), in_cluster, settings, on_change);
        clusters.set(names.iter().map(|name| access(name)).collect());
        World { clusters, members, changes }
    }

    pub(crate) fn member(&self, name: &str) -> &Member {
        &self.members[&format!("https://{name}")]
    }

    pub(crate) fn cluster(&self, name: &str) -> Arc<Cluster> {
        let destination = Destination { name: name.to_owned(), ..Destination::default() };
        self.clusters.resolve(&destination).expect("a registered cluster")
    }

    /// What was told since this was last asked, as `managed app`, `child app` or `connection name`.
    pub(crate) fn take_changes(&self) -> Vec<String> {
        let changes = std::mem::take(&mut *self.changes.lock());
        let mut told: Vec<String> = changes
            .into_iter()
            .map(|change| match change.kind {
                ChangedKind::Managed { instance } => format!("managed {instance}"),
                ChangedKind::Child { instance } => format!("child {instance}"),
                ChangedKind::Connection => {
                    format!("connection {}", change.server.trim_start_matches("https://"))
                }
            })
            .collect();
        told.dedup();
        told
    }
}

pub(crate) fn access(name: &str) -> ClusterAccess {
    ClusterAccess {
        server: format!("https://{name}").into(),
        name: name.to_owned(),
        ..ClusterAccess::in_cluster()
    }
}

impl Member {
    fn new(seed: u64) -> Member {
        let epoch = "2026-01-01T00:00:00Z".parse().expect("a date");
        let options = Options { clock: Clock::starting_at(epoch), seed: Some(seed), ..Options::default() };
        let server = baton_apiserver::Cluster::memory(options);
        let direct = Client::new(server.service(), "default");
        Member { server, wire: Wire::default(), direct }
    }

    async fn send(&self, method: &str, path: &str, content_type: &str, body: &Value) -> Value {
        let request = Request::builder().method(method).uri(path).header("content-type", content_type);
        let request = request.body(body.to_string().into_bytes()).expect("a request");
        self.direct.request(request).await.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Writes past the wire.
    pub(crate) async fn create(&self, path: &str, object: Value) -> Value {
        self.send("POST", path, "application/json", &object).await
    }

    pub(crate) async fn patch(&self, path: &str, patch: Value) -> Value {
        self.send("PATCH", path, "application/merge-patch+json", &patch).await
    }

    pub(crate) async fn delete(&self, path: &str) {
        self.send("DELETE", path, "application/json", &json!({})).await;
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        let request = Request::get(path).body(Vec::new()).expect("a request");
        self.direct.request(request).await.ok()
    }
}

/// A ConfigMap in `default`, tracked by an Application unless that is empty.
pub(crate) fn config_map(name: &str, app: &str, data: Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"}, "data": data});
    if !app.is_empty() {
        object["metadata"]["annotations"] = json!({TRACKING: format!("{app}:/ConfigMap:default/{name}")});
    }
    object
}

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) fn key(group: &str, kind: &str, namespace: &str, name: &str) -> ResourceKey {
    ResourceKey { group: group.into(), kind: kind.into(), namespace: namespace.into(), name: name.into() }
}

pub(crate) fn kinds(kinds: &[(&str, &str)]) -> Vec<(String, String)> {
    kinds.iter().map(|(version, kind)| ((*version).to_owned(), (*kind).to_owned())).collect()
}

/// Waits, in virtual time, until something holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    const LONGEST: u32 = 3000;
    for _ in 0..LONGEST {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("never: {what}");
}

/// Lets everything that is under way come to rest.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_secs(2)).await;
}
