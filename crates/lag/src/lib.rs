//! A proxy before any Kubernetes API that makes what its clients see late, cut and old.
//!
//! Whoever decides by what a watch or a cache tells decides by the past. This makes that past longer, in the ways a real
//! cluster does on a bad day, so that a controller can be tried against them:
//!
//! - each watch is late by a delay of its own and keeps its order, so that two watches drift apart;
//! - a watch ends in the middle, and some that would go on are refused with 410 Gone: the client lists anew, and what
//!   happened between is never seen;
//! - a list that may come from a cache (`resourceVersion=0`) is now and then an old one.
//!
//! Writes and reads of single objects pass as they are. Which stream suffers what is decided by a seed ([`Faults`]).
//! The proxy holds the credentials of the cluster, so it lets in only who has its token ([`Proxy::kubeconfig`]).

mod answer;
mod counts;
mod door;
mod fate;
mod kept;
mod proxy;
mod request;
mod serve;
mod stream;

pub use counts::Counts;
pub use fate::Faults;
pub use serve::{Proxy, ServeError, serve};
