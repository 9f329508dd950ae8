//! What Argo CD itself decided and did, against what the crate does. See README.md beside this file.

mod cluster;
mod decisions;
mod kinds;
mod objects;
mod stories;
mod table;
