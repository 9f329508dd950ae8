//! The children of objects.

use std::collections::HashSet;

use baton_api::health::Health;
use baton_api::object::{Object, ResourceKey};
use jiff::Timestamp;

use super::entry::{Entry, Uid};
use super::state::State;

/// Most objects of one tree.
const LARGEST: usize = 100_000;

/// An object of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The object.
    pub key: ResourceKey,
    /// Its API version inside the group.
    pub version: String,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub resource_version: String,
    /// The objects it belongs to, as far as they are in the tree.
    pub parents: Vec<ResourceKey>,
    /// How it fares, if that can be said.
    pub health: Option<Health>,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Images of its containers.
    pub images: Vec<String>,
}

impl State {
    /// These objects and all that belongs to them, parents first.
    pub(crate) fn tree(&self, roots: &[ResourceKey]) -> Vec<Node> {
        let mut nodes = Vec::new();
        let mut seen: HashSet<Uid> = HashSet::new();
        let roots = roots.iter().filter_map(|key| self.find(key));
        let mut level: Vec<(&Entry, Option<ResourceKey>)> = roots.map(|entry| (entry, None)).collect();
        while !level.is_empty() && nodes.len() < LARGEST {
            let mut below = Vec::new();
            for (entry, set) in level {
                if !seen.insert(entry.uid.clone()) {
                    continue;
                }
                let mut node = self.node(entry);
                node.parents.extend(set);
                below.extend(self.children_of(&entry.uid).map(|child| (child, None)));
                below.extend(self.claims_of(entry).into_iter().map(|claim| (claim, Some(node.key.clone()))));
                nodes.push(node);
            }
            level = below;
        }
        nodes
    }

    fn node(&self, entry: &Entry) -> Node {
        let parents = entry.owners.iter().filter_map(|uid| self.by_uid(uid)).map(|owner| self.key_of(owner));
        let version = self.api_version_of(entry);
        Node {
            key: self.key_of(entry),
            version: version.rsplit('/').next().unwrap_or_default().to_owned(),
            uid: entry.uid.to_string(),
            resource_version: entry.version.to_string(),
            parents: parents.collect(),
            health: entry.health.as_deref().cloned(),
            created: entry.created,
            images: entry.images.iter().map(|image| image.to_string()).collect(),
        }
    }

    /// The volume claims of a StatefulSet, which bear no owner: `<template>-<set>-<ordinal>`.
    fn claims_of(&self, entry: &Entry) -> Vec<&Entry> {
        let key = self.key_of(entry);
        let Some(whole) = entry.whole.as_ref().filter(|_| key.group == "apps" && key.kind == "StatefulSet")
        else {
            return Vec::new();
        };
        let set = whole.open();
        let templates = set["spec"]["volumeClaimTemplates"].as_array().map_or(&[][..], Vec::as_slice);
        let prefixes: Vec<String> =
            templates.iter().map(|template| format!("{}-{}-", template.name(), key.name)).collect();
        let is_claim = |name: &str| {
            let ordinals = prefixes.iter().filter_map(|prefix| name.strip_prefix(prefix.as_str()));
            ordinals
                .into_iter()
                .any(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
        };
        self.in_namespace("", "PersistentVolumeClaim", &key.namespace)
            .filter(|claim| claim.owners.is_empty() && is_claim(&claim.name))
            .collect()
    }
}
