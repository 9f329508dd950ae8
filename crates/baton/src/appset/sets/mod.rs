//! ApplicationSets as commands read and change them: in a cluster, or at a server.

mod cluster;
mod server;

use std::collections::BTreeMap;

use baton_api::ApplicationSet;
use baton_rollout::head::Head;
use baton_rollout::pin::Fingerprint;
use futures::stream::BoxStream;
use serde_json::Value;

use super::manifests::Written;
use super::owned::name_of;
use crate::failure::Failure;
use crate::place::{Place, Reach};
use crate::session::Sight;
pub(super) use cluster::InCluster;
pub(super) use server::AtServer;

/// Where they are.
pub(super) enum Sets {
    Cluster(InCluster),
    Server(AtServer),
}

/// A person's word on a rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    Pause,
    Resume,
    Abort,
    /// Of these Applications, or of all that failed.
    Retry(Vec<String>),
    Advance,
    Rollback,
    RollbackAll,
    /// These Applications, each for what is asked of it as far as that is known here.
    Skip(BTreeMap<String, Option<Fingerprint>>),
}

/// How a set that is there already is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Creation {
    /// It is changed.
    pub(super) upsert: bool,
    /// Everything is checked, and nothing written.
    pub(super) dry_run: bool,
}

// === impl Sets ===

impl Sets {
    pub(super) async fn at(place: &Place) -> Result<Sets, Failure> {
        Ok(match place.reach().await? {
            Reach::Server(remote) => Sets::Server(AtServer::new(remote, place.named_namespace())),
            Reach::Cluster(client) => Sets::Cluster(InCluster::new(client, place.namespace())),
        })
    }

    /// All of them, by namespace and name.
    pub(super) async fn list(&self, selector: Option<&str>, everywhere: bool) -> Result<Vec<Value>, Failure> {
        let mut found = match self {
            Sets::Cluster(there) => there.list(selector, everywhere).await?,
            Sets::Server(there) => there.list(selector, everywhere).await?,
        };
        let name = |set: &Value, field: &str| set["metadata"][field].as_str().map(str::to_owned);
        found.sort_by_key(|set| (name(set, "namespace"), name(set, "name")));
        Ok(found)
    }

    /// One of them, whole.
    ///
    /// # Errors
    /// Also where there is none.
    pub(super) async fn get(&self, name: &str) -> Result<Value, Failure> {
        let found = match self {
            Sets::Cluster(there) => there.find(name).await?,
            Sets::Server(there) => there.find(name).await?,
        };
        found.ok_or_else(|| self.absent(name))
    }

    /// One of them as it reads.
    ///
    /// # Errors
    /// Also where there is none.
    pub(super) async fn set(&self, name: &str) -> Result<ApplicationSet, Failure> {
        read(&self.get(name).await?)
    }

    /// One of another namespace, where there is one.
    pub(super) async fn find_in(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<ApplicationSet>, Failure> {
        let found = match self {
            Sets::Cluster(there) => InCluster::new(there.client.clone(), namespace).find(name).await?,
            Sets::Server(there) => there.find(name).await?,
        };
        found.as_ref().map(read).transpose()
    }

    /// The head of its rollout, where it may be read: no server shows it.
    pub(super) async fn head(&self, set: &ApplicationSet) -> Option<Head> {
        match self {
            Sets::Cluster(there) => super::head::of(&there.client, set).await,
            Sets::Server(_) => None,
        }
    }

    /// The Applications that a set controls, by name.
    pub(super) async fn applications(&self, set: &ApplicationSet) -> Result<Vec<Value>, Failure> {
        let all = match self {
            Sets::Cluster(there) => there.applications(set).await?,
            Sets::Server(there) => there.applications(set).await?,
        };
        let uid = set.metadata.uid.as_deref().unwrap_or_default();
        let is_own = |application: &Value| {
            let mut owners = application["metadata"]["ownerReferences"].as_array().into_iter().flatten();
            owners.any(|owner| owner["controller"] == true && owner["uid"] == uid)
        };
        let mut own: Vec<Value> = all.into_iter().filter(is_own).collect();
        own.sort_by_key(name_of);
        Ok(own)
    }

    /// Creates one, or changes the one that is there; what became of it in a word.
    pub(super) async fn create(
        &self,
        written: &Written,
        how: Creation,
    ) -> Result<(Value, &'static str), Failure> {
        match self {
            Sets::Cluster(there) => there.create(written, how).await,
            Sets::Server(there) => there.create(written, how).await,
        }
    }

    /// Deletes one, and its Applications unless they are to be kept.
    pub(super) async fn delete(&self, name: &str, keep_applications: bool) -> Result<(), Failure> {
        match self {
            Sets::Cluster(there) => there.delete(name, keep_applications).await,
            Sets::Server(_) if keep_applications => Err(Failure::usage(
                "a server deletes a set with its Applications: leave --keep-applications out, or add --core",
            )),
            Sets::Server(there) => there.delete(name).await,
        }
    }

    /// Tells a rollout what a person wants. What comes of it the controller tells.
    ///
    /// # Errors
    /// It is refused, or the set is no longer the one that was read.
    pub(super) async fn tell(&self, set: &ApplicationSet, word: &Word) -> Result<Told, Failure> {
        match self {
            Sets::Cluster(there) => there.tell(set, word).await,
            Sets::Server(there) => there.tell(set, word).await,
        }
    }

    /// Lets exactly those Applications go that the fuse asks about.
    ///
    /// # Errors
    /// Something else would go by now (2), or it is refused.
    pub(super) async fn approve_deletion(&self, seen: &Value, asked: &str) -> Result<(), Failure> {
        match self {
            Sets::Cluster(there) => there.approve_deletion(seen, asked).await,
            Sets::Server(there) => there.approve_deletion(seen, asked).await,
        }
    }

    /// One of them as it changes.
    pub(super) fn watch(&self, name: &str) -> BoxStream<'static, Sight> {
        match self {
            Sets::Cluster(there) => there.watch(name),
            Sets::Server(there) => there.watch(name),
        }
    }

    /// Where they are looked for, in words.
    pub(super) fn whereabouts(&self, everywhere: bool) -> String {
        match self {
            Sets::Cluster(there) if !everywhere => format!("namespace {}", there.namespace),
            Sets::Cluster(_) => "any namespace".to_owned(),
            Sets::Server(_) => "what the server shows you".to_owned(),
        }
    }

    fn absent(&self, name: &str) -> Failure {
        match self {
            Sets::Cluster(there) => absent(&there.namespace, name),
            Sets::Server(_) => Failure::api(format!(
                "there is no ApplicationSet {name} that you may see at this server; `baton appset list` shows those there are"
            )),
        }
    }
}

/// How a word was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// It holds from now on.
    Now,
    /// It holds once the controller has seen it.
    Later,
}

/// A set as it reads.
pub(super) fn read(whole: &Value) -> Result<ApplicationSet, Failure> {
    baton_api::object::read(whole).map_err(|error| {
        let field = |name: &str| whole["metadata"][name].as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (field("namespace"), field("name"));
        Failure::failed(format!(
            "ApplicationSet {name} in namespace {namespace} cannot be read: {error}; `kubectl edit applicationset {name} -n \
             {namespace}` mends it"
        ))
    })
}

/// There is no such set in a namespace.
pub(super) fn absent(namespace: &str, name: &str) -> Failure {
    Failure::api(format!(
        "there is no ApplicationSet {name} in namespace {namespace}; `baton appset list -A` shows those there are"
    ))
}
