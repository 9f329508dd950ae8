//! The tasks that keep a cluster in order, driven by its own history: garbage collection, namespaces and definitions
//! that are going away, and the simulated workloads.

mod garbage;
mod removal;
mod workloads;

use std::sync::Arc;

use baton_store::Key;
use tokio::task::JoinSet;

use crate::cluster::Core;
use crate::failure::Failure;
use crate::object;
use crate::write::{Part, Proposal, WriteOptions};

/// Starts the tasks; dropping the set stops them.
pub(crate) fn start(core: &Arc<Core>, settings: Option<baton_workloads::Settings>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(garbage::run(core.clone()));
    tasks.spawn(removal::run(core.clone()));
    if let Some(settings) = settings {
        tasks.spawn(workloads::run(core.clone(), settings));
    }
    tasks
}

impl Core {
    /// Takes a finalizer off an object, which lets it go if it was the last.
    async fn drop_finalizer(&self, key: &Key, finalizer: &str, manager: &str) {
        let Some(resource) = self.catalog().by_storage(&key.resource) else { return };
        let options = WriteOptions::internal(manager);
        let outcome = self
            .modify(&resource, &key.namespace, &key.name, Part::Other(""), &options, |current| {
                let mut next = current.clone();
                object::set_finalizer(&mut next, finalizer, false);
                Ok(Proposal::Object(next))
            })
            .await;
        report(outcome, manager, key);
    }
}

/// An object that went away, or that somebody else wrote meanwhile, needs no attention: its next event brings it back.
/// Anything else deserves a line in the log.
fn report<T>(outcome: Result<T, Failure>, who: &str, key: &Key) {
    if let Err(failure) = outcome
        && !matches!(failure.reason, "NotFound" | "Conflict" | "AlreadyExists")
    {
        let Key { resource, namespace, name, .. } = key;
        tracing::warn!(%resource, %namespace, %name, "{who}: {}", failure.message);
    }
}
