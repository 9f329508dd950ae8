//! Git repositories: revisions, trees and files, read without a checkout.
//!
//! Commits are fetched into a bare cache by the installed `git`, which is run without the machine's configuration,
//! without hooks, helpers or prompts, and only over the protocols a repository's URL names. Trees and files are read
//! from the objects themselves: nothing of a repository is ever written out as a file, so a repository cannot place
//! a link or a name on the disk.
//!
//! # Guarantees
//! - An answer is whole or it is an error: no listing is cut short, no file left out because it could not be read.
//! - What one set of credentials has fetched is never read with another.
//! - No secret stands on a command line, in an error or in a log.
//! - Time, disk, entries and bytes are bounded ([`Limits`]).

mod access;
mod cache;
mod command;
mod complaint;
mod description;
mod distant;
mod error;
mod fetch;
mod footprint;
mod github_app;
mod location;
mod memory;
mod objects;
mod pathspec;
mod references;
mod repositories;
mod secret;
mod session;
mod settings;
mod snapshot;
mod tree;
mod web;

pub use access::{Access, RepositorySecret, Trust, access};
pub use description::Description;
pub use error::SourceError;
pub use references::{Commit, Names, Target};
pub use repositories::Repositories;
pub use secret::Secret;
pub use settings::{Limits, Settings};
pub use tree::{Astray, Entry, Kind, Place, Tree};
