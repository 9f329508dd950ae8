//! `add-source`, `add-destination`, `allow-cluster-resource` and the like: what the Applications of a project may use.

use baton_api::application::Destination;
use baton_api::project::{AppProjectSpec, ClusterResourceItem, GroupKind};
use clap::{Args, ValueEnum};

use super::desk::arrange;
use super::say;
use crate::failure::Failure;
use crate::place::Place;

#[derive(Debug, Args)]
pub(super) struct Source {
    /// The project.
    project: String,
    /// URL of the repository, a glob; one that begins with ! is refused.
    url: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
pub(super) struct Target {
    /// The project.
    project: String,
    /// URL of the cluster, or with --name its name; a glob.
    #[arg(value_name = "SERVER")]
    cluster: String,
    /// Namespace, a glob.
    #[arg(value_name = "NAMESPACE")]
    of: String,
    /// SERVER is the name of the cluster.
    #[arg(long)]
    name: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
pub(super) struct Namespace {
    /// The project.
    project: String,
    /// The namespace, a glob.
    #[arg(value_name = "NAMESPACE")]
    of: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
pub(super) struct OfCluster {
    /// The project.
    project: String,
    /// API group, a glob; '' is that of Namespaces and Nodes.
    group: String,
    /// Kind, a glob.
    kind: String,
    /// Only of this name, a glob.
    #[arg(value_name = "NAME")]
    only: Option<String>,
    /// Which list is changed.
    #[arg(short, long, value_enum, default_value_t = List::Allow)]
    list: List,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
pub(super) struct OfNamespace {
    /// The project.
    project: String,
    /// API group, a glob; '' is that of Pods and Services.
    group: String,
    /// Kind, a glob.
    kind: String,
    /// Which list is changed.
    #[arg(short, long, value_enum, default_value_t = List::Deny)]
    list: List,
    #[command(flatten)]
    place: Place,
}

/// A list of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum List {
    /// Of what is allowed.
    Allow,
    /// Of what is refused.
    Deny,
}

// === impl Source ===

impl Source {
    pub(super) async fn add(self) -> Result<(), Failure> {
        let change = |spec: &mut AppProjectSpec| put(&mut spec.source_repos, self.url.clone());
        let outcome = arrange(&self.place, &self.project, change).await?;
        say(&self.project, outcome, "source added", &format!("{} is a source already", self.url))
    }

    pub(super) async fn remove(self) -> Result<(), Failure> {
        let change = |spec: &mut AppProjectSpec| spec.source_repos.retain(|known| *known != self.url);
        let outcome = arrange(&self.place, &self.project, change).await?;
        say(&self.project, outcome, "source removed", &format!("{} is no source of it", self.url))
    }
}

// === impl Target ===

impl Target {
    fn destination(&self) -> Destination {
        let (server, name) = match self.name {
            true => (String::new(), self.cluster.clone()),
            false => (self.cluster.clone(), String::new()),
        };
        Destination { server, name, namespace: self.of.clone() }
    }

    pub(super) async fn add(self) -> Result<(), Failure> {
        let change = |spec: &mut AppProjectSpec| put(&mut spec.destinations, self.destination());
        let outcome = arrange(&self.place, &self.project, change).await?;
        say(&self.project, outcome, "destination added", "it is a destination already")
    }

    pub(super) async fn remove(self) -> Result<(), Failure> {
        let gone = self.destination();
        let change = |spec: &mut AppProjectSpec| spec.destinations.retain(|known| *known != gone);
        let outcome = arrange(&self.place, &self.project, change).await?;
        say(&self.project, outcome, "destination removed", "it is no destination of it")
    }
}

// === impl Namespace ===

impl Namespace {
    pub(super) async fn add(self) -> Result<(), Failure> {
        let change = |spec: &mut AppProjectSpec| put(&mut spec.source_namespaces, self.of.clone());
        let outcome = arrange(&self.place, &self.project, change).await?;
        say(&self.project, outcome, "source namespace added", "it is a source namespace already")
    }

    pub(super) async fn remove(self) -> Result<(), Failure> {
        let change = |spec: &mut AppProjectSpec| spec.source_namespaces.retain(|known| *known != self.of);
        let outcome = arrange(&self.place, &self.project, change).await?;
        say(&self.project, outcome, "source namespace removed", "it is no source namespace of it")
    }
}

// === impl OfCluster ===

impl OfCluster {
    pub(super) async fn allow(self) -> Result<(), Failure> {
        self.change(true, "allowed").await
    }

    pub(super) async fn deny(self) -> Result<(), Failure> {
        self.change(false, "denied").await
    }

    async fn change(self, allows: bool, done: &str) -> Result<(), Failure> {
        let item = ClusterResourceItem {
            group: self.group.clone(),
            kind: self.kind.clone(),
            name: self.only.clone().unwrap_or_default(),
        };
        let change = |spec: &mut AppProjectSpec| match self.list {
            List::Allow => list(&mut spec.cluster_resource_whitelist, &item, allows),
            List::Deny => list(&mut spec.cluster_resource_blacklist, &item, !allows),
        };
        let outcome = arrange(&self.place, &self.project, change).await?;
        let kind = named(&self.group, &self.kind);
        say(&self.project, outcome, &format!("{kind} {done}"), &format!("the list says so of {kind} already"))
    }
}

// === impl OfNamespace ===

impl OfNamespace {
    pub(super) async fn allow(self) -> Result<(), Failure> {
        self.change(true, "allowed").await
    }

    pub(super) async fn deny(self) -> Result<(), Failure> {
        self.change(false, "denied").await
    }

    async fn change(self, allows: bool, done: &str) -> Result<(), Failure> {
        let item = GroupKind { group: self.group.clone(), kind: self.kind.clone() };
        let change = |spec: &mut AppProjectSpec| {
            match self.list {
                // A list that is not there allows everything, so taking something off it makes none.
                List::Allow if !allows && spec.namespace_resource_whitelist.is_none() => {}
                List::Allow => list(spec.namespace_resource_whitelist.get_or_insert_default(), &item, allows),
                List::Deny => list(&mut spec.namespace_resource_blacklist, &item, !allows),
            }
        };
        let outcome = arrange(&self.place, &self.project, change).await?;
        let kind = named(&self.group, &self.kind);
        say(&self.project, outcome, &format!("{kind} {done}"), &format!("the list says so of {kind} already"))
    }
}

/// Puts something on a list, or takes it off.
fn list<T: PartialEq + Clone>(all: &mut Vec<T>, item: &T, on: bool) {
    match on {
        true => put(all, item.clone()),
        false => all.retain(|known| known != item),
    }
}

/// Adds something to a list that does not have it.
fn put<T: PartialEq>(all: &mut Vec<T>, item: T) {
    if !all.contains(&item) {
        all.push(item);
    }
}

fn named(group: &str, kind: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{group}/{kind}") }
}
