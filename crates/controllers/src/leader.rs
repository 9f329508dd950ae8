//! One controller acts at a time: a Lease, held as client-go holds it.
//!
//! A lease is believed to be given up when it has not changed for its duration as measured here, so that clocks of
//! different machines need not agree.

use std::time::Duration;

use kube::Client;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::objects::{ApiError, Objects, Seen};

/// How long others believe in a lease that does not change.
const DURATION: Duration = Duration::from_secs(15);
/// How long a leader goes on without having renewed.
const DEADLINE: Duration = Duration::from_secs(10);
/// Between two tries.
const RETRY: Duration = Duration::from_secs(2);

/// Wants to lead.
pub(crate) struct Elector {
    leases: Objects,
    name: &'static str,
    identity: String,
    clock: Clock,
    /// The lease as last seen to change, and when.
    seen: Option<(Value, Instant)>,
}

impl Elector {
    /// For the Lease of this name, in Argo CD's namespace.
    pub(crate) fn new(client: &Client, namespace: &str, name: &'static str, clock: Clock) -> Elector {
        let leases = Objects::new(client.clone(), "coordination.k8s.io/v1", "leases", namespace, false);
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "baton".to_owned());
        let identity = format!("{host}_{:016x}", rand::random::<u64>());
        Elector { leases, name, identity, clock, seen: None }
    }

    /// Returns once this controller leads.
    pub(crate) async fn win(&mut self) {
        loop {
            match self.try_lead().await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "the lease could not be taken"),
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Renews the lease. Returns once it could not be renewed for so long that another may soon lead.
    pub(crate) async fn hold(&mut self) {
        let mut renewed = Instant::now();
        while renewed.elapsed() < DEADLINE {
            tokio::time::sleep(RETRY).await;
            let left = DEADLINE.saturating_sub(renewed.elapsed());
            match tokio::time::timeout(left, self.try_lead()).await {
                Ok(Ok(true)) => renewed = Instant::now(),
                Ok(Ok(false)) if self.is_held_by_another() => return,
                Ok(Ok(false)) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the lease could not be renewed"),
                Err(_) => return,
            }
        }
    }

    /// Gives the lease up, so that another need not wait.
    pub(crate) async fn release(&mut self) {
        let Ok(Some(lease)) = self.leases.get(self.name).await else { return };
        if lease["spec"]["holderIdentity"] == self.identity.as_str() {
            let patch = json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}});
            if let Err(error) = self.leases.patch(self.name, patch, Seen::of(&lease)).await {
                tracing::warn!(%error, "the lease could not be given up");
            }
        }
    }

    /// Takes or renews the lease, unless another holds it.
    async fn try_lead(&mut self) -> Result<bool, ApiError> {
        let now = self.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        let mut spec = json!({
            "holderIdentity": self.identity,
            "leaseDurationSeconds": DURATION.as_secs(),
            "renewTime": now,
        });
        let Some(lease) = self.leases.get(self.name).await? else {
            spec["acquireTime"] = spec["renewTime"].clone();
            spec["leaseTransitions"] = 0.into();
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": self.name}, "spec": spec,
            });
            return self.written(self.leases.create(&lease).await);
        };
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        if self.seen.as_ref().is_none_or(|(seen, _)| *seen != lease["spec"]) {
            self.seen = Some((lease["spec"].clone(), Instant::now()));
        }
        if holder != self.identity {
            let lasts = lease["spec"]["leaseDurationSeconds"].as_u64().map_or(DURATION, Duration::from_secs);
            let expired = self.seen.as_ref().is_some_and(|(_, since)| since.elapsed() >= lasts);
            if !holder.is_empty() && !expired {
                return Ok(false);
            }
            let transitions = lease["spec"]["leaseTransitions"].as_i64().unwrap_or(0);
            spec["acquireTime"] = spec["renewTime"].clone();
            spec["leaseTransitions"] = transitions.saturating_add(1).into();
        }
        let patch = json!({ "spec": spec });
        self.written(self.leases.patch(self.name, patch, Seen::of(&lease)).await)
    }

    fn is_held_by_another(&self) -> bool {
        self.seen.as_ref().is_some_and(|(spec, _)| spec["holderIdentity"] != self.identity.as_str())
    }

    /// Whoever was faster leads.
    fn written(&self, answer: Result<Value, ApiError>) -> Result<bool, ApiError> {
        match answer {
            Ok(_) => Ok(true),
            Err(error) if error.is_conflict() || error.is_already_exists() => Ok(false),
            Err(error) => Err(error),
        }
    }
}
