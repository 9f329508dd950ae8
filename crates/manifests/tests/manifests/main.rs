//! Sources of every type, rendered from real repositories.

mod directory;
mod hostile;
mod sources;
mod support;
