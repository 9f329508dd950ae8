//! Whether a set's Applications change in an order. The one place where the ordered rollout comes in.

use baton_api::ApplicationSet;
use baton_api::strategy::DeletionOrder;

use super::conditions;
use crate::settings::Settings;

/// In which order a set's Applications change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// All together.
    AllAtOnce,
}

/// The order for a set.
///
/// This version has no ordered rollout. It acts as Argo CD does with progressive syncs off, whatever the setting: all
/// Applications change together, and what a rollout left in the status is cleared.
pub(crate) fn of(_set: &ApplicationSet, _settings: &Settings) -> Order {
    Order::AllAtOnce
}

/// Whether changes of an Application's verdicts matter to its set.
pub(crate) fn follows_verdicts(_settings: &Settings) -> bool {
    false
}

/// What a user must be told about an order that is asked for and not kept.
pub(crate) fn unkept(set: &ApplicationSet, settings: &Settings) -> Option<&'static str> {
    let strategy = set.spec.strategy.as_ref()?;
    let deletes_in_order =
        matches!(strategy.deletion_order(), Ok(DeletionOrder::Reverse | DeletionOrder::Custom));
    if settings.progressive_syncs && conditions::rolls(set) {
        Some("RollingSync is not available in this version: all Applications change together")
    } else if deletes_in_order && set.metadata.deletion_timestamp.is_some() {
        Some("ordered deletion is not available in this version: all Applications go together")
    } else {
        None
    }
}
