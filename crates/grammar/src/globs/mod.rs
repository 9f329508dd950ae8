//! The three glob languages of Argo CD's fields: Go's `path.Match`, doublestar and gobwas.
//!
//! # Guarantees
//! Matching takes time proportional to the pattern's length times the name's, whatever the pattern: alternatives are
//! followed side by side, never tried one after the other. Where Go's matchers miss a match because they do not go
//! back far enough (a class that matches a separator between two stars), these find it.

pub mod doublestar;
pub mod gobwas;
mod machine;
pub mod path;

/// Longest pattern that is read, in bytes.
pub const MAX_PATTERN: usize = 8 << 10;

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("syntax error in pattern {pattern:?}: {why}")]
pub struct Error {
    pattern: String,
    why: &'static str,
}

impl Error {
    fn new(pattern: &str, why: &'static str) -> Error {
        Error { pattern: pattern.chars().take(100).collect(), why }
    }
}

fn characters(pattern: &str) -> Result<Vec<char>, Error> {
    if pattern.len() > MAX_PATTERN {
        return Err(Error::new(pattern, "the pattern is too long"));
    }
    Ok(pattern.chars().collect())
}
