//! One process for each data directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use crate::failure::Failure;

/// Holds a data directory until it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "the lock lives as long as the open file")] File);

impl Lock {
    /// Takes the directory, which is made if absent.
    pub(crate) fn take(directory: &Path) -> Result<Lock, Failure> {
        let shown = directory.display();
        std::fs::create_dir_all(directory)
            .map_err(|error| Failure::failed(format!("cannot make {shown}: {error}")))?;
        let cannot = |error| Failure::failed(format!("cannot lock {shown}: {error}"));
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(directory.join("lock"))
            .map_err(cannot)?;
        match file.try_lock() {
            Ok(()) => Ok(Lock(file)),
            Err(TryLockError::WouldBlock) => Err(Failure::failed(format!(
                "{shown} is in use by another baton; stop that one or give another --data-dir"
            ))),
            Err(TryLockError::Error(error)) => Err(cannot(error)),
        }
    }
}
