//! Sources of every type, rendered from real repositories.

mod argo;
mod charts;
mod directory;
mod helm;
mod hostile;
mod kustomize;
mod sources;
mod support;
