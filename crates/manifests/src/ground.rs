//! The files of a chart.

use baton_source::{Astray, Place};
use bytes::Bytes;

use crate::checkout::Checkout;
use crate::error::Fault;
use crate::workshop::Workshop;

/// Files to render from.
#[derive(Debug, Clone)]
pub(crate) enum Ground {
    /// A repository at a commit.
    Repository(Checkout),
}

impl Ground {
    /// Whether a file is at a path without `.` and `..`; links are followed.
    pub(crate) fn holds(&self, path: &str) -> Result<bool, Astray> {
        match self {
            Ground::Repository(checkout) => match checkout.tree.place(path) {
                Ok(Place::File(_)) => Ok(true),
                Ok(Place::Directory(_)) | Err(Astray::Missing) => Ok(false),
                Err(astray) => Err(astray),
            },
        }
    }

    /// The content of a file.
    pub(crate) async fn read(&self, path: &str, most: u64) -> Result<Bytes, Fault> {
        match self {
            Ground::Repository(checkout) => {
                let contents = checkout.read(&[path.to_owned()], most).await?;
                Ok(contents.into_iter().next().unwrap_or_default())
            }
        }
    }

    /// The files a doublestar pattern matches, in order of their paths.
    pub(crate) fn matching(&self, pattern: &str) -> Result<Vec<String>, Fault> {
        match self {
            Ground::Repository(checkout) => Ok(checkout.tree.files_like_doublestar(pattern)?),
        }
    }

    /// Writes a directory with all beneath it.
    pub(crate) async fn write(&self, workshop: &mut Workshop, directory: &str) -> Result<(), Fault> {
        match self {
            Ground::Repository(checkout) => workshop.add(checkout, directory).await,
        }
    }
}
