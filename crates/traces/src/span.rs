//! A stretch of time in which something was done.

use jiff::Timestamp;
use sha2::{Digest, Sha256};

/// A stretch of time in which something was done.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Identity of the trace.
    pub trace: [u8; 16],
    /// Identity within the trace.
    pub id: [u8; 8],
    /// What it is a part of.
    pub parent: Option<[u8; 8]>,
    /// What was done.
    pub name: String,
    /// When it began.
    pub start: Timestamp,
    /// When it ended.
    pub end: Timestamp,
    /// What else is to be known.
    pub attributes: Vec<(&'static str, Attribute)>,
    /// How it ended.
    pub outcome: Outcome,
}

/// A value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attribute {
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
    /// Whether something is so.
    Flag(bool),
    /// Several texts.
    Texts(Vec<String>),
}

/// How something ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Neither well nor badly.
    Unset,
    /// Well.
    Well,
    /// Badly: in words.
    Badly(String),
}

/// The identity of a trace: that of the set with this UID, and of its run.
pub(crate) fn trace_id(uid: &str, run: i64) -> [u8; 16] {
    digest(&["trace", uid, &run.to_string()])
}

/// The identity of what stands at a path in a trace.
pub(crate) fn span_id(trace: &[u8; 16], path: &[&str]) -> [u8; 8] {
    let trace: String = trace.iter().map(|byte| format!("{byte:02x}")).collect();
    digest(&[&["span", trace.as_str()], path].concat())
}

/// The first bytes of a digest; never all zero, which stands for no identity.
fn digest<const BYTES: usize>(parts: &[&str]) -> [u8; BYTES] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.len().to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let mut id = [0; BYTES];
    id.copy_from_slice(&hasher.finalize()[..BYTES]);
    if id.iter().all(|byte| *byte == 0) {
        id[BYTES - 1] = 1;
    }
    id
}
