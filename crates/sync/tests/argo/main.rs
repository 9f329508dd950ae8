//! What Argo CD itself decided and did, against what the crate does. See README.md beside this file.

mod cluster;
mod decisions;
mod deletions;
mod kinds;
mod objects;
mod operations;
mod play;
mod rows;
mod stories;
mod table;
