//! Who led when, by the Lease.

use std::sync::Arc;

use baton_api::names::APPLICATION_SET_LEASE;
use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::Api;
use kube::runtime::watcher::{Config, Event, watcher};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::recorder::CONTROL_NAMESPACE;

/// Follows the Lease until dropped.
pub(crate) struct Turns {
    seen: Arc<Mutex<Seen>>,
    _following: JoinSet<()>,
}

#[derive(Default)]
struct Seen {
    holder: String,
    /// When the holder was last heard of.
    heard: Option<Timestamp>,
    /// From then to when the next one led, in milliseconds.
    gaps: Vec<i64>,
}

impl Turns {
    pub(crate) fn follow(client: &Client) -> Turns {
        let leases: Api<Lease> = Api::namespaced(client.clone(), CONTROL_NAMESPACE);
        let seen = Arc::<Mutex<Seen>>::default();
        let shared = seen.clone();
        let mut following = JoinSet::new();
        following.spawn(async move {
            let named = Config::default().fields(&format!("metadata.name={APPLICATION_SET_LEASE}"));
            let mut events = watcher(leases, named).boxed();
            while let Some(event) = events.next().await {
                if let Ok(Event::Apply(lease) | Event::InitApply(lease)) = event {
                    shared.lock().note(&lease);
                }
            }
        });
        Turns { seen, _following: following }
    }

    /// How long nobody led, each time that the lead changed.
    pub(crate) fn gaps(&self) -> Vec<SignedDuration> {
        self.seen.lock().gaps.iter().map(|gap| SignedDuration::from_millis(*gap)).collect()
    }

    /// How often the lead changed, and how long nobody led then.
    pub(crate) fn told(&self) -> String {
        let seen = self.seen.lock();
        let longest = seen.gaps.iter().max().copied().unwrap_or_default();
        format!(
            "the lead changed {} times; after {longest} ms at most another led: {:?}",
            seen.gaps.len(),
            seen.gaps
        )
    }
}

impl Seen {
    fn note(&mut self, lease: &Lease) {
        let Some(spec) = &lease.spec else { return };
        let holder = spec.holder_identity.clone().unwrap_or_default();
        let renewed = spec.renew_time.as_ref().map(|time| time.0);
        if holder.is_empty() {
            return;
        }
        if holder != self.holder && !self.holder.is_empty() {
            let gap = self.heard.zip(renewed).map(|(heard, renewed)| renewed.duration_since(heard));
            self.gaps.extend(gap.map(|gap| gap.as_millis() as i64));
        }
        (self.holder, self.heard) = (holder, renewed);
    }
}
