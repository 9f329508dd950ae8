//! What is the same for all clusters.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use baton_api::health::Health;
use baton_api::names::resource::TRACKING_ID;
use baton_api::object::Object;
use serde_json::Value;

use crate::exclusions::Exclusions;

/// Says which Application an object belongs to, if any.
pub type InstanceOf = Arc<dyn Fn(&Value) -> Option<String> + Send + Sync>;
/// Says how an object fares, if that can be said of its kind.
pub type HealthOf = Arc<dyn Fn(&Value) -> Option<Health> + Send + Sync>;

/// What is the same for all clusters. May be exchanged while they are watched ([`crate::Clusters::configure`]).
#[derive(Clone)]
pub struct Settings {
    /// Which Application an object belongs to.
    pub instance_of: InstanceOf,
    /// How an object fares. Called for every event of tracked objects and their children, so it must be quick.
    pub health: HealthOf,
    /// Kinds that are not looked at.
    pub exclusions: Exclusions,
    /// Whether a kind that an Application wants, and that may not be listed, is passed over instead of being an error.
    pub respect_rbac: bool,
    /// Whether the cluster of the controllers is a destination.
    pub in_cluster_enabled: bool,
    /// How long [`crate::Cluster::ready`] waits.
    pub ready_wait: Duration,
    /// The present time.
    pub now: Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>,
    /// How often all kinds are searched for tracked objects nobody asked for.
    pub sweep_every: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            instance_of: Arc::new(|object| {
                let id = object.annotation(TRACKING_ID)?;
                id.split_once(':').map(|(instance, _)| instance.to_owned())
            }),
            health: Arc::new(|_| None),
            exclusions: Exclusions::default(),
            respect_rbac: false,
            in_cluster_enabled: true,
            ready_wait: Duration::from_secs(20),
            now: Arc::new(jiff::Timestamp::now),
            sweep_every: Duration::from_secs(30 * 60),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("exclusions", &self.exclusions)
            .field("respect_rbac", &self.respect_rbac)
            .field("in_cluster_enabled", &self.in_cluster_enabled)
            .finish_non_exhaustive()
    }
}
