//! How fast the simulated cluster is.

use crate::Kind;
use crate::behaviour::Behaviour;
use crate::object::{after, created};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// How fast the simulated cluster is, and how large it may grow.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How long after its creation an object gets ready.
    pub ready_delay: Duration,
    /// Other delays for single kinds, for example [`Kind::Job`] for the running time of its pods.
    pub kind_delays: BTreeMap<Kind, Duration>,
    /// How long a deleted pod takes to stop; never longer than its grace period.
    pub termination_delay: Duration,
    /// Pause before a Job replaces its first failed pod; it doubles with every further failure.
    pub job_backoff: Duration,
    /// Pods one owner may have, finished ones of a Job included. Beyond it no more are made; a ReplicaSet
    /// reports `ReplicaFailure`, as under a quota.
    pub max_pods_per_owner: usize,
    /// The certificate authority published in each namespace as `kube-root-ca.crt`; empty: not published.
    pub root_ca: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ready_delay: Duration::from_millis(500),
            kind_delays: BTreeMap::new(),
            termination_delay: Duration::from_millis(500),
            job_backoff: Duration::from_secs(1),
            max_pods_per_owner: 2000,
            root_ca: String::new(),
        }
    }
}

// === impl Settings ===

impl Settings {
    pub(crate) fn delay(&self, kind: Kind) -> Duration {
        self.kind_delays.get(&kind).copied().unwrap_or(self.ready_delay)
    }

    /// When `object` gets ready if nothing holds it up.
    pub(crate) fn due(&self, object: &Value, kind: Kind, behaviour: &Behaviour) -> Timestamp {
        let start = created(object).unwrap_or(Timestamp::MIN);
        after(start, behaviour.delay.unwrap_or_else(|| self.delay(kind)))
    }
}
