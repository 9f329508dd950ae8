//! The documents: commands that are run as they stand there, links that lead somewhere, symptoms that are all told of.

mod commands;
mod links;
mod page;
#[path = "../process/mod.rs"]
mod process;
mod reader;
mod symptoms;

use std::path::PathBuf;

/// The root of the repository.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the root of the repository")
}

/// A document, by its path from the root.
fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
