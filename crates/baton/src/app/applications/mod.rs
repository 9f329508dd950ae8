//! Applications as commands read and change them: in a cluster, or at a server.

mod cluster;
mod server;

use baton_api::operation::Operation;
use clap::ValueEnum;
use futures::stream::BoxStream;
use jiff::Timestamp;
use serde_json::Value;

use crate::failure::Failure;
use crate::place::{Place, Reach};
use crate::session::Sight;
pub(super) use cluster::InCluster;
pub(super) use server::AtServer;

/// Where they are.
pub(super) enum Applications {
    Cluster(InCluster),
    Server(AtServer),
}

/// An operation that is wanted.
pub(super) enum Wish {
    Sync(Operation),
    /// Back to this entry of the history.
    Rollback(i64, Operation),
}

/// How an Application is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deletion {
    /// Whether what it deployed goes too.
    pub(super) cascade: bool,
    pub(super) policy: Option<Policy>,
}

/// Whether dependants of deleted objects go first or afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Policy {
    Foreground,
    Background,
}

/// How an Application that is there already is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Creation {
    /// It is changed.
    pub(super) upsert: bool,
    /// Everything is checked, and nothing written.
    pub(super) dry_run: bool,
}

// === impl Applications ===

impl Applications {
    pub(super) async fn at(place: &Place) -> Result<Applications, Failure> {
        Ok(match place.reach().await? {
            Reach::Server(remote) => Applications::Server(AtServer::new(remote, place.named_namespace())),
            Reach::Cluster(client) => Applications::Cluster(InCluster::new(client, place.namespace())),
        })
    }

    /// All of them, by namespace and name.
    pub(super) async fn list(&self, selector: Option<&str>, everywhere: bool) -> Result<Vec<Value>, Failure> {
        let mut found = match self {
            Applications::Cluster(there) => there.list(selector, everywhere).await?,
            Applications::Server(there) => there.list(selector, everywhere).await?,
        };
        let name = |object: &Value, field: &str| object["metadata"][field].as_str().map(str::to_owned);
        found.sort_by_key(|object| (name(object, "namespace"), name(object, "name")));
        Ok(found)
    }

    pub(super) async fn get(&self, name: &str) -> Result<Value, Failure> {
        match self {
            Applications::Cluster(there) => there.objects.get(name).await,
            Applications::Server(there) => there.get(name).await,
        }
    }

    /// Creates one, or changes the one that is there; what became of it in a word.
    pub(super) async fn create(
        &self,
        document: &Value,
        how: Creation,
    ) -> Result<(Value, &'static str), Failure> {
        match self {
            Applications::Cluster(there) => there.create(document, how).await,
            Applications::Server(there) => there.create(document, how).await,
        }
    }

    /// Changes the Application as it was seen by a JSON merge patch. `false` if it changed meanwhile.
    pub(super) async fn change(&self, name: &str, seen: &Value, patch: &Value) -> Result<bool, Failure> {
        match self {
            Applications::Cluster(there) => there.change(name, seen, patch).await,
            Applications::Server(there) => there.change(name, patch).await.map(|()| true),
        }
    }

    /// Starts an operation of the Application as it was seen. `false` if it changed meanwhile.
    pub(super) async fn start(&self, name: &str, seen: &Value, wish: &Wish) -> Result<bool, Failure> {
        match self {
            Applications::Cluster(there) => there.start(name, seen, wish).await,
            Applications::Server(there) => there.start(name, wish).await.map(|()| true),
        }
    }

    /// Ends the operation of the Application as it was seen. `false` if it changed meanwhile.
    pub(super) async fn terminate(&self, name: &str, seen: &Value) -> Result<bool, Failure> {
        match self {
            Applications::Cluster(there) => there.terminate(name, seen).await,
            Applications::Server(there) => there.terminate(name).await.map(|()| true),
        }
    }

    /// Approves what the operation or deletion that runs waits for.
    pub(super) async fn approve(&self, name: &str, seen: &Value, at: Timestamp) -> Result<(), Failure> {
        match self {
            Applications::Cluster(there) => there.approve(name, seen, at).await,
            Applications::Server(there) => there.approve(name, at).await,
        }
    }

    /// Asks for a deletion.
    pub(super) async fn delete(&self, name: &str, how: Deletion) -> Result<(), Failure> {
        match self {
            Applications::Cluster(there) => there.delete(name, how).await,
            Applications::Server(there) => there.delete(name, how).await,
        }
    }

    /// One of them as it changes.
    pub(super) fn watch(&self, name: &str) -> BoxStream<'static, Sight> {
        match self {
            Applications::Cluster(there) => there.watch(name),
            Applications::Server(there) => there.watch(name),
        }
    }

    /// Where they are looked for, in words.
    pub(super) fn whereabouts(&self, everywhere: bool) -> String {
        match self {
            Applications::Cluster(there) if !everywhere => format!("namespace {}", there.namespace),
            Applications::Cluster(_) => "any namespace".to_owned(),
            Applications::Server(_) => "what the server shows you".to_owned(),
        }
    }
}
