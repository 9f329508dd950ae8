//! Whether a set's Applications change and go in an order. The one place where the ordered rollout comes in.

use baton_api::ApplicationSet;
use baton_rollout::deletion::{self, Invalid};

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

/// In which order a set's Applications go.
///
/// # Errors
/// If it asks for one that makes no sense: nothing of it may be deleted.
pub(crate) fn deletion(set: &ApplicationSet) -> Result<deletion::Order, Invalid> {
    deletion::Order::of(set.spec.strategy.as_ref()).map(|(order, _)| order)
}

/// Whether a set's Applications are guarded against going out of order: an order of deletion is asked for, whether it
/// makes sense or not.
pub(crate) fn is_guarded(set: &ApplicationSet) -> bool {
    !matches!(deletion(set), Ok(deletion::Order::AllAtOnce))
}

/// Whether a set's Applications change in the order of steps.
pub(crate) fn rolls(set: &ApplicationSet, settings: &Settings) -> bool {
    settings.progressive_syncs && conditions::rolls(set)
}

/// The value of the label by which the Applications of a set with an order are found.
pub(crate) fn mark(set: &ApplicationSet, settings: &Settings) -> Option<String> {
    let name = set.metadata.name.as_deref().unwrap_or_default();
    (is_guarded(set) || rolls(set, settings)).then(|| label_value(name))
}

/// Whether changes of an Application's verdicts matter to its set.
pub(crate) fn follows_verdicts(_settings: &Settings) -> bool {
    false
}

/// What a user must be told about an order that is asked for and not kept.
pub(crate) fn unkept(set: &ApplicationSet, settings: &Settings) -> Option<&'static str> {
    rolls(set, settings)
        .then_some("RollingSync is not available in this version: all Applications change together")
}

pub(crate) fn label_value(set: &str) -> String {
    set.to_owned()
}
