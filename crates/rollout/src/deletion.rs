//! In which order Applications go: when their set goes, and when its generators drop them.
//!
//! The order is a list of positions. Every Application has one; the next is begun only when a consistent read showed
//! that every Application of those before is gone. Applications that no step holds have the last position.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use baton_api::strategy::{DeletionOrder, Strategy, StrategyType};
use baton_rules::{Rule, holds};
use jiff::Timestamp;

use crate::steps::{Issue, Share, Steps};

/// How long an Application may take to go before it is named as one that is waited for.
pub const SLOW_AFTER: Duration = Duration::from_secs(10);
/// When a deletion under way is looked at though nothing was seen.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// In which order Applications are deleted.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// All together.
    AllAtOnce,
    /// Position by position.
    Steps(Positions),
}

/// The positions of an ordered deletion.
#[derive(Debug, Clone, PartialEq)]
pub struct Positions {
    steps: Steps,
    reverse: bool,
}

/// An order that is asked for and makes no sense: nothing is deleted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A word that names no order.
    #[error("deletionOrder {0:?} is none of AllAtOnce, Reverse and Custom")]
    Unknown(String),
    /// There is nothing to reverse.
    #[error("deletionOrder Reverse needs strategy type RollingSync with rollingSync.steps")]
    ReverseWithoutSteps,
    /// There are no steps.
    #[error("deletionOrder Custom needs deletionSync.steps")]
    CustomWithoutSteps,
}

/// One Application that is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doomed {
    /// Its name.
    pub name: Arc<str>,
    /// Its UID.
    pub uid: Arc<str>,
    /// Its place in the order: see [`Order::position`].
    pub position: usize,
    /// Since when it is being deleted, if it is.
    pub terminating: Option<Timestamp>,
    /// What holds it, in words, as far as it is known.
    pub held_by: Option<String>,
}

/// How far a deletion is known to be. It may be forgotten: one more consistent read then tells it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// The position that a consistent read showed to be the first that is left.
    open: Option<usize>,
    /// How many Applications it held then.
    size: usize,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    /// Applications to delete now, in the order of their names.
    pub delete: Vec<Arc<str>>,
    /// Whether a consistent read must come before anything else: see [`Progress::proved`].
    pub read: bool,
    /// Whether nothing is left.
    pub done: bool,
    /// What is waited for.
    pub waits: Vec<Wait>,
    /// The position at work, counted from 1; 0 where there is none.
    pub step: usize,
    /// How many Applications are left.
    pub remaining: usize,
    /// When to look again though nothing was seen.
    pub wake: Option<Timestamp>,
}

/// An Application whose deletion has not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Its name.
    pub name: Arc<str>,
    /// Since when it is being deleted.
    pub since: Timestamp,
    /// What holds it, in words, as far as it is known.
    pub held_by: Option<String>,
    /// Whether it takes so long that somebody should know.
    pub slow: bool,
}

/// Decides what to delete next. `apps` are those that are to go and are not known to be gone.
///
/// # Guarantees
/// - Nothing is deleted while an Application of an earlier position exists: neither one of `apps`, nor one that the
///   consistent read behind `progress` showed.
/// - In one position no more are under way than its limit, in the order of names.
pub fn decide(order: &Order, progress: Progress, apps: &[Doomed], now: Timestamp) -> Decision {
    let first = apps.iter().map(|app| app.position).min();
    let remaining = apps.len();
    let Some(first) = first else {
        // What was never seen may be there nevertheless.
        let done = progress.open == Some(usize::MAX);
        return Decision { done, read: !done, ..Decision::default() };
    };
    let step = first + 1;
    if !holds(Rule::DeletionOrder) {
        let delete =
            apps.iter().filter(|app| app.terminating.is_none()).map(|app| app.name.clone()).collect();
        let wake = now.checked_add(LOOK_AGAIN).ok();
        return Decision { delete, step, remaining, wake, ..Decision::default() };
    }
    if progress.open != Some(first) {
        return Decision { read: true, step, remaining, ..Decision::default() };
    }
    let mut here: Vec<&Doomed> = apps.iter().filter(|app| app.position == first).collect();
    here.sort_by(|a, b| a.name.cmp(&b.name));
    let waits: Vec<Wait> = here.iter().filter_map(|app| Wait::of(app, now)).collect();
    let free = order.limit(first, progress.size.max(here.len())).saturating_sub(waits.len());
    let next = here.iter().filter(|app| app.terminating.is_none()).take(free);
    let wake = now.checked_add(LOOK_AGAIN).ok();
    Decision {
        delete: next.map(|app| app.name.clone()).collect(),
        waits,
        step,
        remaining,
        wake,
        ..Decision::default()
    }
}

// === impl Order ===

impl Order {
    /// The order a strategy asks for, with what is wrong about its steps.
    ///
    /// # Errors
    /// If it asks for one that makes no sense.
    pub fn of(strategy: Option<&Strategy>) -> Result<(Order, Vec<Issue>), Invalid> {
        let Some(strategy) = strategy else { return Ok((Order::AllAtOnce, Vec::new())) };
        let word = strategy.deletion_order().map_err(|word| Invalid::Unknown(word.to_owned()))?;
        let (steps, reverse) = match word {
            DeletionOrder::AllAtOnce => return Ok((Order::AllAtOnce, Vec::new())),
            DeletionOrder::Reverse => {
                let rolling =
                    strategy.rolling_sync.as_ref().filter(|_| strategy.kind == StrategyType::RollingSync);
                let steps = rolling.map(|rolling| &rolling.steps[..]).unwrap_or_default();
                (Some(steps).filter(|steps| !steps.is_empty()).ok_or(Invalid::ReverseWithoutSteps)?, true)
            }
            DeletionOrder::Custom => {
                let steps = strategy.deletion_sync.as_ref().map(|deletion| &deletion.steps[..]);
                (steps.filter(|steps| !steps.is_empty()).ok_or(Invalid::CustomWithoutSteps)?, false)
            }
        };
        let (steps, issues) = Steps::read(steps);
        Ok((Order::Steps(Positions { steps, reverse }), issues))
    }

    /// As it is written in a strategy.
    pub fn as_str(&self) -> &'static str {
        match self {
            Order::AllAtOnce => "AllAtOnce",
            Order::Steps(Positions { reverse: true, .. }) => "Reverse",
            Order::Steps(Positions { reverse: false, .. }) => "Custom",
        }
    }

    /// How many positions there are, that of Applications in no step among them.
    pub fn positions(&self) -> usize {
        match self {
            Order::AllAtOnce => 1,
            Order::Steps(positions) => positions.steps.len() + 1,
        }
    }

    /// The position of an Application with these labels, counted from 0.
    pub fn position(&self, labels: &BTreeMap<String, String>) -> usize {
        match self {
            Order::AllAtOnce => 0,
            Order::Steps(Positions { steps, reverse }) => match steps.place(labels) {
                Some(place) if *reverse => steps.len() - 1 - place,
                Some(place) => place,
                None => steps.len(),
            },
        }
    }

    /// How many of the `total` Applications in a position may be under way at once.
    pub fn limit(&self, position: usize, total: usize) -> usize {
        match self {
            Order::AllAtOnce => usize::MAX,
            Order::Steps(Positions { steps, reverse }) => {
                let place = if *reverse { steps.len().checked_sub(position + 1) } else { Some(position) };
                let stated = place.and_then(|place| steps.get(place)).and_then(|step| step.max_update);
                stated.unwrap_or(Share::Count(1)).of(total).max(1)
            }
        }
    }
}

// === impl Invalid ===

impl Invalid {
    /// What is wrong, what it means, and how to get out.
    pub fn advice(&self) -> String {
        let remedy = match self {
            Invalid::Unknown(_) => "correct the word",
            Invalid::ReverseWithoutSteps => "add the steps",
            Invalid::CustomWithoutSteps => "add the steps under strategy.deletionSync.steps",
        };
        format!(
            "{self}: no Application of this set is deleted; {remedy}, or set strategy.deletionOrder: AllAtOnce"
        )
    }
}

// === impl Progress ===

impl Progress {
    /// A consistent read showed exactly these.
    pub fn proved(apps: &[Doomed]) -> Progress {
        let first = apps.iter().map(|app| app.position).min();
        let size = apps.iter().filter(|app| Some(app.position) == first).count();
        Progress { open: Some(first.unwrap_or(usize::MAX)), size }
    }

    /// How many Applications the open position held when it was opened.
    pub fn size(self) -> usize {
        self.size
    }
}

// === impl Wait ===

impl Wait {
    fn of(app: &Doomed, now: Timestamp) -> Option<Wait> {
        let since = app.terminating?;
        let slow = Duration::try_from(now.duration_since(since)).is_ok_and(|waited| waited >= SLOW_AFTER);
        Some(Wait { name: app.name.clone(), since, held_by: app.held_by.clone(), slow })
    }
}

#[cfg(test)]
mod tests;
