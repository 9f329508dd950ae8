//! The rules that keep the order, by name.
//!
//! A checker of the order is worth what it can catch. Each rule that protects it is asked for here, where it stands in
//! the code, and a test can switch one off and see whether the checker notices. In a build without the feature
//! `mutants`, which only tests have, every rule holds: [`holds`] is a constant, and the compiler takes it out.

/// Rules that protect the order, the budget, deletions, approvals, progress and quiet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A step begins when every Application of all steps before it is done.
    StepsAreReached,
    /// No more of a step are under way than its `maxUpdate`.
    Limit,
    /// A step held with `maxUpdate: 0` is left to people.
    HeldSteps,
    /// A slot is held until its Application is done, whatever supersedes its run.
    SlotsAreKept,
    /// What heals drift takes a slot too.
    HealsTakeSlots,
    /// What heals drift before a step has come brings back what was, not what is to come.
    HealsBringBack,
    /// Drift of what is done is healed.
    DriftIsHealed,
    /// What was intended and may still land is made impossible before the run is said to be held, or another begins.
    Fencing,
    /// No run opens before automatic sync is off everywhere.
    Arming,
    /// An operation names the commit it is for.
    PinnedOperations,
    /// One run is at one revision of each repository.
    OneRevision,
    /// Nothing is written over an operation that waits or runs.
    BusyIsLeftAlone,
    /// Every run has a number of its own.
    RunNumbers,
    /// A success counts if it was of the whole, and at the pin.
    WholeSyncs,
    /// A comparison that was asked for is waited for.
    Barrier,
    /// A request that was taken away counts as answered only where the answer is known to have been written.
    AnswersAreWritten,
    /// What is believed after an operation was found after it.
    ComparedAfter,
    /// What is believed was the same when the comparison was asked for, and ever since.
    SteadyAnswers,
    /// What an Application reports must be its pin's.
    PinIsReported,
    /// What an Application says must be said of the specification that it is to have.
    ComparedToSpec,
    /// Another specification than what was written is believed once.
    AdoptedOnce,
    /// An operation that was wiped is written again.
    LostOperations,
    /// A consistent list comes before a step opens.
    ConsistentList,
    /// What is known of an Application is known of its UID.
    Uids,
    /// An older version never replaces a newer one, and a write is refused where the object has moved on.
    NewestVersion,
    /// A specification that was invalid is mended before it is synced.
    InvalidFirst,
    /// Where a comparison does not come by itself, it is asked for.
    AskedForComparison,
    /// What has succeeded is not begun again.
    BegunOnce,
    /// Every change of an Application is looked at.
    Triggers,
    /// A step that somebody joins or is moved to closes those after it.
    LaterStepsClose,
    /// What is being deleted is not synced.
    TerminatingIsLeftAlone,
    /// The guard holds Applications back from the garbage collector.
    Guard,
    /// Applications go in their order.
    DeletionOrder,
    /// What is guarded goes when it is approved.
    Approval,
    /// Whom its phase holds is not changed.
    PhasesAreGated,
    /// Whom its phase holds is not made.
    MakingIsGated,
    /// A call that is on record as passed is not made again in that rollout.
    PassedOnce,
    /// A phase that has failed does what it says is to be done then.
    FailuresAreAnswered,
    /// What is put back is said to be back when it is well there.
    BackIsProved,
    /// A phase is over when its checks and hooks have passed.
    CallsAreWaitedFor,
    /// What is waited for is told.
    Blockers,
    /// What is shown is written when it has changed.
    QuietViews,
    /// Where what is to be shown cannot be written, the rollout goes on.
    ViewsBlockNothing,
}

impl Rule {
    /// Every one.
    pub const ALL: [Rule; 43] = [
        Rule::StepsAreReached,
        Rule::Limit,
        Rule::HeldSteps,
        Rule::SlotsAreKept,
        Rule::HealsTakeSlots,
        Rule::HealsBringBack,
        Rule::DriftIsHealed,
        Rule::Fencing,
        Rule::Arming,
        Rule::PinnedOperations,
        Rule::OneRevision,
        Rule::BusyIsLeftAlone,
        Rule::RunNumbers,
        Rule::WholeSyncs,
        Rule::Barrier,
        Rule::AnswersAreWritten,
        Rule::ComparedAfter,
        Rule::SteadyAnswers,
        Rule::PinIsReported,
        Rule::ComparedToSpec,
        Rule::AdoptedOnce,
        Rule::LostOperations,
        Rule::ConsistentList,
        Rule::Uids,
        Rule::NewestVersion,
        Rule::InvalidFirst,
        Rule::AskedForComparison,
        Rule::BegunOnce,
        Rule::Triggers,
        Rule::LaterStepsClose,
        Rule::TerminatingIsLeftAlone,
        Rule::Guard,
        Rule::DeletionOrder,
        Rule::Approval,
        Rule::PhasesAreGated,
        Rule::MakingIsGated,
        Rule::PassedOnce,
        Rule::FailuresAreAnswered,
        Rule::BackIsProved,
        Rule::CallsAreWaitedFor,
        Rule::Blockers,
        Rule::QuietViews,
        Rule::ViewsBlockNothing,
    ];
}

/// Whether a rule holds.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub const fn holds(_: Rule) -> bool {
    true
}

#[cfg(feature = "mutants")]
pub use mutants::{WITHOUT, holds, without};

#[cfg(feature = "mutants")]
mod mutants {
    use std::cell::Cell;
    use std::sync::LazyLock;

    use super::Rule;

    thread_local! {
        static OFF: Cell<Option<Rule>> = const { Cell::new(None) };
    }

    /// Environment variable that names rules, with commas between them, to be off in a whole process.
    pub const WITHOUT: &str = "BATON_WITHOUT_RULE";

    static EVERYWHERE: LazyLock<Vec<Rule>> = LazyLock::new(|| {
        let named = std::env::var(WITHOUT).unwrap_or_default();
        let is_named = |rule: &Rule| named.split(',').any(|name| name == format!("{rule:?}"));
        Rule::ALL.into_iter().filter(is_named).collect()
    });

    /// Whether a rule holds on this thread.
    pub fn holds(rule: Rule) -> bool {
        OFF.get() != Some(rule) && !EVERYWHERE.contains(&rule)
    }

    /// Does something on this thread without a rule.
    pub fn without<T>(rule: Rule, work: impl FnOnce() -> T) -> T {
        /// Switches on again, whatever happens.
        struct Off;
        impl Drop for Off {
            fn drop(&mut self) {
                OFF.set(None);
            }
        }
        OFF.set(Some(rule));
        let _off = Off;
        work()
    }
}

#[cfg(all(test, feature = "mutants"))]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_off_only_where_and_while_it_was_switched_off() {
        assert!(holds(Rule::Limit));
        without(Rule::Limit, || {
            assert!(!holds(Rule::Limit) && holds(Rule::Fencing));
            std::thread::spawn(|| assert!(holds(Rule::Limit))).join().expect("no panic");
        });
        assert!(holds(Rule::Limit));
        assert!(std::panic::catch_unwind(|| without(Rule::Limit, || panic!("on purpose"))).is_err());
        assert!(holds(Rule::Limit));
    }
}
