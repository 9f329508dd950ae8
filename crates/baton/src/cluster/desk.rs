//! Clusters at a desk: read, registered, changed, taken off the list.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_api::names::secret::{TYPE_CLUSTER, TYPE_LABEL};
use baton_server::handlers::clusters::ClusterQuery;
use k8s_openapi::api::core::v1::Secret;
use reqwest::{Method, Url};
use serde_json::{Value, json};

use crate::desk::{Core, Desk, found, items, refused};
use crate::failure::Failure;
use crate::objects::text;
use crate::registry::{Entry, Registry, Texts, named, texts};
use crate::session::{query, segment};

/// How long Applications are counted.
const PATIENCE: Duration = Duration::from_secs(3);
/// What a server without these calls does not do.
const REGISTERS: &str = "registers clusters";

/// What became of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Registered {
    Added,
    Changed,
    /// It was so already.
    Unchanged,
}

// === impl Desk ===

impl Desk {
    /// All clusters that the caller may see, by name.
    pub(super) async fn clusters(&self) -> Result<Vec<Value>, Failure> {
        let answer = match self {
            Desk::Server(remote) => remote.get("api/v1/clusters").await?,
            Desk::Core(core) => {
                core.count().await;
                core.server.clusters(&core.context, &ClusterQuery::default()).await.map_err(refused)?
            }
        };
        let mut clusters = items(answer);
        clusters.sort_by_key(|cluster| text(cluster, "/name"));
        Ok(clusters)
    }

    /// One cluster, by its URL or name.
    ///
    /// # Errors
    /// Also where there is none.
    pub(super) async fn cluster(&self, id: &str) -> Result<Value, Failure> {
        let cluster = match self {
            Desk::Server(remote) => remote.find(&path(id, &[])).await?,
            Desk::Core(core) => {
                core.count().await;
                found(core.server.cluster(&core.context, id, kind(id)).await)?
            }
        };
        cluster.ok_or_else(|| absent(id))
    }

    /// Registers a cluster, in the words of Argo CD's API; with `upsert` in the place of one that has its URL.
    pub(super) async fn add_cluster(&self, cluster: &Value, upsert: bool) -> Result<Registered, Failure> {
        match self {
            Desk::Core(core) => core.add_cluster(cluster, upsert).await,
            Desk::Server(remote) => {
                let existed = remote.find(&path(&text(cluster, "/server"), &[])).await?.is_some();
                let upsert = if upsert { "?upsert=true" } else { "" };
                let path = format!("api/v1/clusters{upsert}");
                let sent = remote.send(Method::POST, &path, Some(cluster)).await;
                sent.map_err(|refusal| refusal.of_call(REGISTERS))?;
                Ok(if existed { Registered::Changed } else { Registered::Added })
            }
        }
    }

    /// Changes what is said of a cluster, and not what opens it. `fields` are those of Argo CD's API that change.
    pub(super) async fn set_cluster(
        &self,
        id: &str,
        cluster: &Value,
        fields: &[&str],
    ) -> Result<(), Failure> {
        match self {
            Desk::Core(core) => core.set_cluster(id, cluster, fields).await,
            Desk::Server(remote) => {
                let fields: Vec<(&str, &str)> =
                    fields.iter().map(|field| ("updatedFields", *field)).collect();
                let sent = remote.send(Method::PUT, &path(id, &fields), Some(cluster)).await;
                sent.map(drop).map_err(|refusal| refusal.of_call(REGISTERS))
            }
        }
    }

    /// Takes a cluster off the list.
    pub(super) async fn remove_cluster(&self, id: &str) -> Result<(), Failure> {
        match self {
            Desk::Core(core) => {
                let (registry, secret) = core.secret_of(id).await?;
                registry.delete(&secret).await
            }
            Desk::Server(remote) => {
                let sent = remote.send(Method::DELETE, &path(id, &[]), None).await;
                sent.map(drop).map_err(|refusal| refusal.of_call(REGISTERS))
            }
        }
    }
}

// === impl Core ===

impl Core {
    /// Waits until it is known how many Applications live where. Whoever may not list them sees clusters all the same.
    async fn count(&self) {
        let _ = tokio::time::timeout(PATIENCE, self.server.ready()).await;
    }

    async fn add_cluster(&self, cluster: &Value, upsert: bool) -> Result<Registered, Failure> {
        let registry = Registry::new(&self.client, &self.namespace, TYPE_CLUSTER);
        let server = text(cluster, "/server");
        let there = registry.all().await?.into_iter().find(|secret| field(secret, "server") == server);
        let entry = Entry {
            name: secret_name(&server),
            texts: written(cluster),
            labels: texts_of(&cluster["labels"]),
            annotations: texts_of(&cluster["annotations"]),
        };
        let Some(there) = there else {
            registry.create(entry).await?;
            return Ok(Registered::Added);
        };
        if texts(&there) == entry.texts && has(&there.metadata.labels, &entry.labels) {
            return Ok(Registered::Unchanged);
        }
        if !upsert {
            return Err(Failure::usage(format!(
                "{server} is registered already, as {:?}: add --upsert to put this in its place",
                field(&there, "name")
            )));
        }
        registry.replace(there, entry).await?;
        Ok(Registered::Changed)
    }

    async fn set_cluster(&self, id: &str, cluster: &Value, fields: &[&str]) -> Result<(), Failure> {
        let (registry, mut secret) = self.secret_of(id).await?;
        let mut texts = texts(&secret);
        let said = written(cluster);
        for key in ["name", "namespaces", "clusterResources"] {
            if !fields.contains(&key) {
                continue;
            }
            match said.get(key) {
                Some(text) => texts.insert(key.to_owned(), text.clone()),
                None => texts.remove(key),
            };
        }
        let mut entry =
            Entry { name: String::new(), texts, labels: BTreeMap::new(), annotations: BTreeMap::new() };
        if fields.contains(&"labels") {
            entry.labels = texts_of(&cluster["labels"]);
            let kept = |key: &String| key == TYPE_LABEL || entry.labels.contains_key(key);
            secret.metadata.labels.get_or_insert_default().retain(|key, _| kept(key));
        }
        if fields.contains(&"annotations") {
            entry.annotations = texts_of(&cluster["annotations"]);
        }
        registry.replace(secret, entry).await
    }

    async fn secret_of(&self, id: &str) -> Result<(Registry, Secret), Failure> {
        let registry = Registry::new(&self.client, &self.namespace, TYPE_CLUSTER);
        let key = if kind(id) == "name" { "name" } else { "server" };
        let wanted = id.trim_end_matches('/');
        let mut all = registry.all().await?.into_iter();
        let secret = all.find(|secret| field(secret, key) == wanted).ok_or_else(|| absent(id))?;
        Ok((registry, secret))
    }
}

fn path(id: &str, parameters: &[(&str, &str)]) -> String {
    let mut all = vec![("id.type", if kind(id) == "name" { "name" } else { "" })];
    all.extend_from_slice(parameters);
    format!("api/v1/clusters/{}{}", segment(id), query(&all))
}

/// Whether an id is a URL or a name.
fn kind(id: &str) -> &'static str {
    if id.contains("://") { "url" } else { "name" }
}

fn absent(id: &str) -> Failure {
    Failure::api(format!(
        "there is no cluster {id} that you may see; `baton cluster list` shows those there are"
    ))
}

fn field(secret: &Secret, key: &str) -> String {
    let text = secret.data.as_ref().and_then(|data| data.get(key));
    let text = text.map(|text| String::from_utf8_lossy(&text.0).into_owned()).unwrap_or_default();
    if key == "server" { text.trim_end_matches('/').to_owned() } else { text }
}

/// A cluster in the words of its Secret.
fn written(cluster: &Value) -> Texts {
    let mut texts = Texts::new();
    for key in ["name", "server", "project"] {
        texts.insert(key.to_owned(), text(cluster, &format!("/{key}")));
    }
    let namespaces = cluster["namespaces"].as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.insert("namespaces".to_owned(), namespaces.collect::<Vec<_>>().join(","));
    if cluster["clusterResources"] == true {
        texts.insert("clusterResources".to_owned(), "true".to_owned());
    }
    if let Some(shard) = cluster["shard"].as_i64() {
        texts.insert("shard".to_owned(), shard.to_string());
    }
    if cluster["config"].is_object() {
        texts.insert("config".to_owned(), cluster["config"].to_string());
    }
    texts.retain(|_, text| !text.is_empty());
    texts
}

/// The name of a cluster's Secret, as Argo CD names it.
fn secret_name(server: &str) -> String {
    let host =
        Url::parse(server).ok().and_then(|url| url.host_str().map(str::to_lowercase)).unwrap_or_default();
    let host: String = host
        .chars()
        .map(|mark| if mark.is_ascii_alphanumeric() || mark == '.' { mark } else { '-' })
        .collect();
    named(&format!("cluster-{}", host.trim_matches(['-', '.'])), &[server])
}

fn texts_of(map: &Value) -> BTreeMap<String, String> {
    let pairs = map.as_object().into_iter().flatten();
    let own = pairs.filter(|(key, _)| *key != TYPE_LABEL);
    own.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

fn has(all: &Option<BTreeMap<String, String>>, wanted: &BTreeMap<String, String>) -> bool {
    wanted.iter().all(|(key, value)| all.as_ref().and_then(|all| all.get(key)) == Some(value))
}

/// Labels or annotations as they are written on a command line: `NAME=VALUE`, or `NAME-` to take one away.
pub(super) fn marked(before: &Value, given: &[String]) -> Result<Value, Failure> {
    let mut marks = texts_of(before);
    for mark in given {
        match (mark.split_once('='), mark.strip_suffix('-')) {
            (Some((name, value)), _) if !name.is_empty() => {
                drop(marks.insert(name.to_owned(), value.to_owned()))
            }
            (None, Some(name)) if !name.is_empty() => drop(marks.remove(name)),
            _ => return Err(Failure::usage(format!("{mark:?}: write it as NAME=VALUE"))),
        }
    }
    Ok(json!(marks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_written_as_argo_cd_reads_it() {
        let cluster = json!({
            "name": "eu", "server": "https://eu.example.com:6443", "namespaces": ["a", "b"], "clusterResources": true,
            "project": "", "config": {"bearerToken": "t"}, "shard": 2,
        });
        let texts = written(&cluster);
        let expected = [
            ("clusterResources", "true"),
            ("config", "{\"bearerToken\":\"t\"}"),
            ("name", "eu"),
            ("namespaces", "a,b"),
            ("server", "https://eu.example.com:6443"),
            ("shard", "2"),
        ];
        assert_eq!(texts, expected.map(|(key, text)| (key.to_owned(), text.to_owned())).into());
        let name = secret_name("https://eu.example.com:6443");
        assert!(name.starts_with("cluster-eu.example.com-"), "{name}");
        assert!(secret_name("https://[::1]:6443").starts_with("cluster-1-"), "only what a name may hold");
    }

    #[test]
    fn marks_are_added_changed_and_taken_away() {
        let before = json!({"env": "dev", "team": "web", TYPE_LABEL: "cluster"});
        let given = ["env=prod".to_owned(), "team-".to_owned(), "tier=".to_owned()];
        assert_eq!(marked(&before, &given).expect("marks"), json!({"env": "prod", "tier": ""}));
        for odd in ["word", "=x", "-"] {
            assert!(marked(&before, &[odd.to_owned()]).is_err(), "{odd}");
        }
    }
}
