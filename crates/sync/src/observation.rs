//! What the engine is told of the world for one pass.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use baton_api::Application;
use baton_api::health::Health;
use baton_api::object::{KindInfo, ResourceKey};
use jiff::Timestamp;
use serde_json::Value;

use crate::targets::{Kinds, Pair};
use crate::tracking::Tracking;

/// Whether a project permits an object; else why not.
pub type Permitted<'a> = &'a (dyn Fn(&Value, &KindInfo) -> Result<(), String> + Send + Sync);
/// The health of an object, where its kind has any.
pub type HealthOf<'a> = &'a (dyn Fn(&Value) -> Result<Option<Health>, String> + Send + Sync);
/// The live objects inside a namespace whose deletion asks for approval, of whichever Application.
pub type GuardedIn<'a> = &'a (dyn Fn(&str) -> Vec<(ResourceKey, Arc<Value>)> + Send + Sync);

/// The world as it was seen for one pass.
#[derive(Clone, Copy)]
pub struct Observation<'a> {
    /// The Application.
    pub application: &'a Application,
    /// The Application, as it is written on objects.
    pub instance: &'a str,
    /// The time.
    pub now: Timestamp,
    /// The revision that is synced; empty where there are several.
    pub revision: &'a str,
    /// Every object, as it is wanted and as it is.
    pub pairs: &'a [Pair],
    /// Hooks of a sync's phases.
    pub hooks: &'a [Arc<Value>],
    /// Live objects that no pair holds: of hooks, and the destination namespace.
    pub live: &'a BTreeMap<ResourceKey, Arc<Value>>,
    /// What the cluster serves.
    pub kinds: Kinds<'a>,
    /// What the project permits.
    pub permitted: Permitted<'a>,
    /// How an object fares.
    pub health: HealthOf<'a>,
    /// What a namespace holds that must not be deleted without approval.
    pub guarded_in_namespace: GuardedIn<'a>,
    /// That objects are shared with another Application, in words.
    pub shared: Option<&'a str>,
    /// How syncs are carried out.
    pub settings: &'a EngineSettings,
}

/// How syncs are carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineSettings {
    /// Pause after each wave but the last, for other controllers to take notice.
    pub wave_delay: Duration,
    /// What waits for approval of a deletion.
    pub gate: GateScope,
    /// How objects are marked.
    pub tracking: Tracking,
}

/// What waits until the deletion of an object is approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GateScope {
    /// Every deletion of the operation.
    #[default]
    Operation,
    /// The wave that holds the object, as Argo CD does it.
    Wave,
}

// === impl EngineSettings ===

impl Default for EngineSettings {
    fn default() -> EngineSettings {
        EngineSettings {
            wave_delay: Duration::from_secs(2),
            gate: GateScope::default(),
            tracking: Tracking::default(),
        }
    }
}
