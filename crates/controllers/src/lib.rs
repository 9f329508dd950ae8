//! Reconcilers: what watches and writes Kubernetes.
