//! What is known of a cluster's objects, kept by watches and by the answers to own writes.
//!
//! # Guarantees
//! - An object never goes back to an older version than one that was seen, nor comes back after its deletion was.
//! - While a watch starts anew, what was known stays; what the new list lacks goes only once the list is complete.
//!
//! Tracked roots, and objects somebody holds, are kept whole ([`Packed`]); all others as small nodes.

mod digest;
mod entry;
mod packed;
mod state;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use digest::{Digest, digest, is_guarded};
pub(crate) use entry::Uid;
pub(crate) use packed::Packed;
pub(crate) use state::{KindId, State, Wakes};
pub use tree::Node;
