//! Webhooks of source code hosts. Bodies are written after the hosts' documentation, cut down to what matters and a bit
//! around it; signatures are made here.

mod argo;
mod concerns;
mod endpoint;
mod hostile;
mod senders;
mod support;
