//! YAML as Go's `sigs.k8s.io/yaml` reads it, into JSON values, and writes it ([`to_string`]).
//!
//! Manifests are written for that reader, and it is neither YAML 1.1 nor 1.2: `on` and `y` are booleans, also as
//! keys; `0777` is octal, `08` is eight; `123e4567` and dates stay text; `1.0` becomes `1`; a merge (`<<`) acts where
//! it stands.
//!
//! # Guarantees
//! Work and memory are bounded: text beyond [`MAX_BYTES`], nesting beyond [`MAX_DEPTH`] and documents that are mostly
//! aliases are refused.

mod build;
mod compose;
mod emit;
mod places;
mod resolve;

pub use places::{Place, Places};
use serde_json::Value;

pub use emit::to_string;

/// Longest text that is read.
pub const MAX_BYTES: usize = 16 << 20;

/// Deepest nesting that is read, aliases expanded. Go stops at 10,000; whatever walks the value later recurses.
pub const MAX_DEPTH: usize = 512;

/// Most duplicates reported for one document.
const MOST_DUPLICATES: usize = 100;

/// Why a text is not YAML, or not what JSON can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("yaml: line {line}, column {column}: {message}")]
pub struct Error {
    /// Line of the problem, from 1.
    pub line: u64,
    /// Column of the problem, from 1.
    pub column: u64,
    /// What is wrong.
    pub message: String,
}

/// A key that was already set in its map. A key that overrides a merged one counts, as it does for Go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: key {key} already set in map")]
pub struct Duplicate {
    /// Line of the later value, from 1.
    pub line: u64,
    /// The key as Go writes it: text in quotes, numbers and booleans bare.
    pub key: String,
}

/// Reads the first document, as `YAMLToJSON` does: what follows it is not looked at, an empty stream is `null`, and
/// of duplicate keys the last wins.
///
/// # Errors
/// Text that is not YAML, values or keys JSON cannot hold (`.inf`, a list as a key), and what the limits refuse.
pub fn first(text: &str) -> Result<Value, Error> {
    first_with_duplicates(text).map(|(value, _)| value)
}

/// Reads the first document like [`first`] and tells which keys were set again (at most a hundred of them).
///
/// # Errors
/// As [`first`]; duplicates are no error here.
pub fn first_with_duplicates(text: &str) -> Result<(Value, Vec<Duplicate>), Error> {
    let mut composer = compose::Composer::new(text)?;
    match composer.next_document()? {
        Some(document) => build::build(&document),
        None => Ok((Value::Null, Vec::new())),
    }
}

/// Reads every document of a stream. Empty documents are `null`; an empty stream has none.
///
/// # Errors
/// As [`first`], for any of the documents.
pub fn documents(text: &str) -> Result<Vec<Value>, Error> {
    let mut composer = compose::Composer::new(text)?;
    let mut values = Vec::new();
    while let Some(document) = composer.next_document()? {
        values.push(build::build(&document)?.0);
    }
    Ok(values)
}

/// Reads every document of a stream like [`documents`], with the places of its values.
///
/// # Errors
/// As [`documents`].
pub fn located(text: &str) -> Result<Vec<(Value, Places)>, Error> {
    let mut composer = compose::Composer::new(text)?;
    let mut values = Vec::new();
    while let Some(document) = composer.next_document()? {
        values.push((build::build(&document)?.0, Places::of(&document)));
    }
    Ok(values)
}
