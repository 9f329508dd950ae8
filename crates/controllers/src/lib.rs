//! Reconcilers: what watches and writes Kubernetes.

pub mod webhook;
