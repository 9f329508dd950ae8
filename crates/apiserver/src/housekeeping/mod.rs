//! The tasks that keep a cluster in order, driven by its own history: garbage collection, namespaces and definitions
//! that are going away, and the simulated workloads.

mod garbage;
mod removal;
mod workloads;

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::cluster::Core;

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
