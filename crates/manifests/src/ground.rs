//! The files of a chart: of a repository at a commit, or of an archive.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_grammar::globs::doublestar;
use baton_source::{Astray, Place};
use bytes::Bytes;

use crate::checkout::Checkout;
use crate::error::Fault;
use crate::workshop::Workshop;

/// Files to render from.
#[derive(Debug, Clone)]
pub(crate) enum Ground {
    /// A repository at a commit.
    Repository(Arc<Checkout>),
    /// What an archive holds, by path.
    Archive(BTreeMap<String, Bytes>),
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
            Ground::Archive(files) => Ok(files.contains_key(path)),
        }
    }

    /// The content of a file.
    pub(crate) async fn read(&self, path: &str, most: u64) -> Result<Bytes, Fault> {
        match self {
            Ground::Repository(checkout) => {
                let contents = checkout.read(&[path.to_owned()], most).await?;
                Ok(contents.into_iter().next().unwrap_or_default())
            }
            Ground::Archive(files) => {
                let content = files.get(path).cloned().unwrap_or_default();
                if content.len() as u64 > most {
                    return Err(Fault::Limit(format!(
                        "file {path:?} of the chart has more than {most} bytes"
                    )));
                }
                Ok(content)
            }
        }
    }

    /// The files a doublestar pattern matches, in order of their paths.
    pub(crate) fn matching(&self, pattern: &str) -> Result<Vec<String>, Fault> {
        match self {
            Ground::Repository(checkout) => Ok(checkout.tree.files_like_doublestar(pattern)?),
            Ground::Archive(files) => {
                let glob =
                    doublestar::Pattern::new(pattern).map_err(|error| Fault::Options(error.to_string()))?;
                Ok(files.keys().filter(|path| glob.matches(path)).cloned().collect())
            }
        }
    }

    /// Writes a directory with all beneath it.
    pub(crate) async fn write(&self, workshop: &mut Workshop, directory: &str) -> Result<(), Fault> {
        match self {
            Ground::Repository(checkout) => workshop.add(checkout, directory).await,
            Ground::Archive(files) => workshop.unpack(files).await,
        }
    }
}
