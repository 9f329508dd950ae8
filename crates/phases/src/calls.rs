//! One call: what tells it from others, what it is made with, and what came of it.

use std::sync::Arc;
use std::time::Duration;

use baton_hooks::{Outcome, Role};
use baton_rollout::pin::Fingerprint;

/// Tells one attempt at one call from all others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey {
    /// The rollout it belongs to. What comes back for another is of no use.
    pub rollout: Arc<str>,
    /// Place of the generator in the set.
    pub generator: usize,
    /// Place of the phase in the generator's, counted from 0.
    pub phase: usize,
    /// What it is in the phase.
    pub role: Role,
    /// Place of the hook or check in its list, counted from 0.
    pub place: usize,
    /// The Application it is made for; empty where it is made for the phase.
    pub target: Arc<str>,
    /// Number of the attempt, from 1.
    pub attempt: u32,
}

/// A call to make now. Its intent is in the stored status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Which it is.
    pub key: CallKey,
    /// Name of the phase.
    pub phase: Arc<str>,
    /// Name of the hook or check.
    pub name: Arc<str>,
    /// The same for every attempt at it in this rollout.
    pub idempotency_key: String,
    /// How long it may take.
    pub limit: Duration,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallResult {
    /// Which it was.
    pub key: CallKey,
    /// What came of it.
    pub outcome: Outcome,
}

/// The key sent with every attempt at a call, so that a receiver can tell a repetition. The rollout's identity is part
/// of it: a later rollout of the same content is not a repetition.
pub fn idempotency_key(
    set: &str,
    rollout: &str,
    generator: usize,
    phase: &str,
    role: Role,
    name: &str,
    target: &str,
) -> String {
    let generator = generator.to_string();
    let role = match role {
        Role::PreHook => "pre",
        Role::PostHook => "post",
        Role::Check => "check",
    };
    Fingerprint::of([set, rollout, &generator, phase, role, name, target]).to_string()
}
