//! Clusters against an embedded Kubernetes API, under a paused clock, with faults on the way.

mod faults;
mod network;
mod performing;
mod reaching;
mod watching;
mod world;
