//! Work that would hold up others is done aside: the disk, and texts of megabytes.

use crate::error::Fault;

/// Does work on a thread of its own.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Fault::Machine("the rendering was given up".to_owned()))
}
