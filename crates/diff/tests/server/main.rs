//! Verdicts checked against what a server does: the embedded one in process, or the cluster that
//! `BATON_TEST_KUBECONFIG` names.

mod adoption;
mod ignoring;
mod objects;
mod ownership;
mod properties;
mod unchanged;
mod world;
