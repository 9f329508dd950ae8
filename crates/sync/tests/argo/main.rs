//! What Argo CD itself decided and did, against what the crate does. See README.md beside this file.

mod decisions;
mod kinds;
mod objects;
mod table;
