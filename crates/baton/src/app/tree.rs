//! `-o tree`: what belongs to what.

use baton_api::object::ResourceKey;
use baton_clusters::Node;

use super::desk::Desk;
use super::view;
use crate::failure::Failure;

/// The resources of an Application, each with what it owns below it.
pub(super) async fn tree(desk: &Desk) -> Result<String, Failure> {
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
    let rows = &desk.application.status.resources;
    let mut text = format!(
        "Application {} ({}, {})\n",
        desk.application.metadata.name.as_deref().unwrap_or_default(),
        desk.application.status.sync.status.as_str(),
        desk.application.status.health.status.as_str()
    );
    for (place, row) in rows.iter().enumerate() {
        let key = ResourceKey {
            group: row.group.clone(),
            kind: row.kind.clone(),
            namespace: row.namespace.clone(),
            name: row.name.clone(),
        };
        let last = place + 1 == rows.len();
        let (branch, below) = if last { ("└─", "  ") } else { ("├─", "│ ") };
        let (health, _) = view::health(row.health.as_ref());
        let words: Vec<String> = [row.status.as_str().to_owned(), health, view::marks(row)]
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect();
        text.push_str(&format!("{branch} {}  {}\n", view::resource_name(row), words.join(", ")));
        let nodes = desk.cluster.tree(std::slice::from_ref(&key));
        branches(&nodes, &key, below, 0, &mut text);
    }
    Ok(text)
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
        let health = node.health.as_ref().map_or("", |health| health.code.as_str());
        let group = if node.key.group.is_empty() { String::new() } else { format!("{}/", node.key.group) };
        let line = format!("{indent}{branch} {group}{} {}  {health}", node.key.kind, node.key.name);
        text.push_str(line.trim_end());
        text.push('\n');
        branches(nodes, &node.key, &format!("{indent}{below}"), depth + 1, text);
    }
}
