//! `-o tree`: what belongs to what.

use baton_api::Application;
use baton_api::object::ResourceKey;
use serde_json::Value;

use super::applications::{Applications, AtServer, InCluster};
use super::desk::Desk;
use super::{typed, view};
use crate::failure::Failure;
use crate::objects::text as field;

/// An object of a tree.
struct Node {
    key: ResourceKey,
    parents: Vec<ResourceKey>,
    health: String,
}

/// The resources of an Application, each with what it owns below it.
pub(super) async fn tree(applications: &Applications, name: &str) -> Result<String, Failure> {
    let (application, nodes) = match applications {
        Applications::Cluster(there) => in_cluster(there, name).await?,
        Applications::Server(there) => {
            (typed(&applications.get(name).await?)?, at_server(there, name).await?)
        }
    };
    Ok(drawn(&application, &nodes))
}

async fn in_cluster(there: &InCluster, name: &str) -> Result<(Application, Vec<Node>), Failure> {
    let desk = Desk::open(there, name).await?;
    desk.live().await?;
    // Children come with their parents, but later; these are the usual ones.
    let usual = [
        ("apps/v1", "ReplicaSet"),
        ("v1", "Pod"),
        ("batch/v1", "Job"),
        ("v1", "PersistentVolumeClaim"),
        ("discovery.k8s.io/v1", "EndpointSlice"),
    ];
    let usual = usual.map(|(version, kind)| (version.to_owned(), kind.to_owned()));
    desk.cluster.ready(&usual).await.map_err(|error| Failure::api(error.to_string()))?;
    let roots: Vec<ResourceKey> = desk.application.status.resources.iter().map(view::key).collect();
    let node = |node: baton_clusters::Node| Node {
        health: node.health.map(|health| health.code.as_str().to_owned()).unwrap_or_default(),
        key: node.key,
        parents: node.parents,
    };
    let nodes = desk.cluster.tree(&roots).into_iter().map(node).collect();
    Ok((desk.application, nodes))
}

async fn at_server(there: &AtServer, name: &str) -> Result<Vec<Node>, Failure> {
    let key = |told: &Value| {
        let [group, kind, namespace, name] =
            ["/group", "/kind", "/namespace", "/name"].map(|pointer| field(told, pointer));
        ResourceKey { group, kind, namespace, name }
    };
    let node = |told: &Value| Node {
        key: key(told),
        parents: told["parentRefs"].as_array().into_iter().flatten().map(key).collect(),
        health: field(told, "/health/status"),
    };
    Ok(there.tree(name).await?.iter().map(node).collect())
}

fn drawn(application: &Application, nodes: &[Node]) -> String {
    let rows = &application.status.resources;
    let mut text = format!(
        "Application {} ({}, {})\n",
        application.metadata.name.as_deref().unwrap_or_default(),
        application.status.sync.status.as_str(),
        application.status.health.status.as_str()
    );
    for (place, row) in rows.iter().enumerate() {
        let key = view::key(row);
        let last = place + 1 == rows.len();
        let (branch, below) = if last { ("└─", "  ") } else { ("├─", "│ ") };
        let (health, _) = view::health(row.health.as_ref());
        let words: Vec<String> = [row.status.as_str().to_owned(), health, view::marks(row)]
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect();
        text.push_str(&format!("{branch} {}  {}\n", view::resource_name(row), words.join(", ")));
        branches(nodes, &key, below, 0, &mut text);
    }
    text
}

/// Deeper than any real ownership, so that a cycle ends.
const DEEPEST: usize = 16;

fn branches(nodes: &[Node], parent: &ResourceKey, indent: &str, depth: usize, text: &mut String) {
    if depth == DEEPEST {
        return;
    }
    let mut children: Vec<&Node> = nodes.iter().filter(|node| node.parents.contains(parent)).collect();
    children.sort_by(|left, right| left.key.cmp(&right.key));
    for (place, node) in children.iter().enumerate() {
        let last = place + 1 == children.len();
        let (branch, below) = if last { ("└─", "  ") } else { ("├─", "│ ") };
        let group = if node.key.group.is_empty() { String::new() } else { format!("{}/", node.key.group) };
        let line = format!("{indent}{branch} {group}{} {}  {}", node.key.kind, node.key.name, node.health);
        text.push_str(line.trim_end());
        text.push('\n');
        branches(nodes, &node.key, &format!("{indent}{below}"), depth + 1, text);
    }
}
