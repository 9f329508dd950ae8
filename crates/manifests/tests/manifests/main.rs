//! Sources of every type, rendered from real repositories.

mod argo;
mod charts;
mod directory;
mod helm;
mod hostile;
mod kustomize;
#[path = "../../../source/tests/support/repo.rs"]
mod repo;
mod sources;
mod support;
