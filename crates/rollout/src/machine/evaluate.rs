//! What one Application's newest version means for the run: whether it is done, what it waits for, what to write next.

use std::sync::Arc;

use baton_api::application_status::{HealthCode, SyncCode};
use baton_rules::{Rule, holds};
use jiff::{SignedDuration, Timestamp};

use crate::blocker::Reason;
use crate::head::{Done, Intent, Row};
use crate::live::{Live, Operation};
use crate::pin::{Fingerprint, Pin};

/// How long drift is given to turn out to be none before it is healed.
const GRACE: SignedDuration = SignedDuration::from_secs(2);
/// How long an Application controller is given to look by itself when an operation has ended.
const PROMPT: SignedDuration = SignedDuration::from_millis(500);
/// How long a mismatch or an unknown state is borne before the Application controller is asked again; twice as long each
/// time.
const ASK_AGAIN: SignedDuration = SignedDuration::from_secs(30);
/// How often it is asked before it is left to itself: what has not come by then comes with its own next look.
const ASKS: u32 = 4;
/// How long an Application controller may stay silent before that is called by its name.
const SILENCE: SignedDuration = SignedDuration::from_secs(120);
/// The first wait before drift is healed again; each further one is twice as long.
const FIRST_HEAL_PAUSE: SignedDuration = SignedDuration::from_secs(2);
const LONGEST_HEAL_PAUSE: SignedDuration = SignedDuration::from_secs(300);

/// All that one judgement rests on.
pub(super) struct Case<'a> {
    pub(super) live: &'a Live,
    pub(super) row: &'a Row,
    pub(super) pin: &'a Pin,
    pub(super) run: u64,
    pub(super) set: &'a str,
    /// Whether people sync its step by hand.
    pub(super) held: bool,
    /// Whether it is in a step at all.
    pub(super) ordered: bool,
    pub(super) self_heal: bool,
    /// Whether the run is to be finished and the Application controller compares with a newer revision already: what it
    /// says of differences is then of no use to this run.
    pub(super) overtaken: bool,
    /// Whether a person said that it counts as done at this pin.
    pub(super) skipped: bool,
    /// Whether its operation is to be ended.
    pub(super) ends: bool,
    /// Specification our own write came back with, if it was another; believed once.
    pub(super) adopted: Option<Fingerprint>,
    /// What was known when the last comparison was asked for.
    pub(super) asked: Option<&'a Asked>,
    /// How often one was asked for since something was written that may change what is found.
    pub(super) asks: u32,
    /// How often its drift was healed in this run, and when last.
    pub(super) heals: (u32, Option<Timestamp>),
    /// Since when the present outcome has lasted.
    pub(super) since: Timestamp,
    pub(super) now: Timestamp,
}

/// What an Application said when a comparison was asked for. What it says then may be of before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    /// Number of the write that asked.
    pub(super) n: u64,
    /// The last operation then; none where it was another leader that asked.
    last: Option<Option<Operation>>,
    /// When the last comparison told of began, by the Application controller's own clock.
    began: Option<i64>,
    /// What it told of itself then.
    told: Told,
    /// Whether it has told the same ever since.
    steady: bool,
}

/// What an Application tells of itself, as far as it decides whether it is done.
type Told = (Fingerprint, bool, SyncCode, HealthCode, Vec<Arc<str>>, bool);

fn told(live: &Live) -> Told {
    (
        live.spec,
        live.compared,
        live.sync.clone(),
        live.health.clone(),
        live.reported.clone(),
        live.error.is_some(),
    )
}

impl Asked {
    /// What is known where it is asked for, at the version that the request is bound to.
    pub(super) fn at(live: &Live, n: u64) -> Asked {
        let last = Some(live.last.clone());
        Asked { n, last, began: live.reconciled, told: told(live), steady: true }
    }

    /// What is known where a request of another leader is seen, or its answer: what came after it cannot be told from
    /// what was before.
    pub(super) fn by_another(live: &Live, n: u64) -> Asked {
        Asked { n, last: None, began: live.reconciled, told: told(live), steady: false }
    }

    /// Another version is seen. Tells whether it says something new.
    pub(super) fn sees(&mut self, live: &Live) -> bool {
        let news = self.steady && told(live) != self.told;
        self.steady &= !news;
        news
    }
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is done, and nothing is wrong with it.
    Done(Done),
    /// It was done and is no longer; with what would mend it, if something does.
    Regressed(Reason, String, Option<Ready>),
    /// Something is to be written.
    Ready(Ready),
    /// An intended write has not been seen to land.
    Unsettled,
    /// It waits.
    Wait(Wait),
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) reason: Reason,
    pub(super) message: String,
    /// Whether it counts as failed.
    pub(super) failed: bool,
    /// When to look again though nothing is seen.
    pub(super) wake: Option<Timestamp>,
}

/// What is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) intent: Intent,
    /// Why, in words.
    pub(super) why: String,
    /// Whether it is to be put off until then.
    pub(super) not_before: Option<Timestamp>,
}

impl Ready {
    fn now(intent: Intent, why: impl Into<String>) -> Ready {
        Ready { intent, why: why.into(), not_before: None }
    }

    /// Whether it takes one of the step's slots.
    pub(super) fn takes_slot(&self) -> bool {
        matches!(self.intent, Intent::Start | Intent::Heal)
    }
}

fn wait(reason: Reason, message: impl Into<String>) -> Outcome {
    Outcome::Wait(Wait { reason, message: message.into(), failed: false, wake: None })
}

fn wait_until(reason: Reason, message: impl Into<String>, wake: Timestamp) -> Outcome {
    Outcome::Wait(Wait { reason, message: message.into(), failed: false, wake: Some(wake) })
}

fn ready(intent: Intent, why: impl Into<String>) -> Outcome {
    Outcome::Ready(Ready::now(intent, why))
}

impl Case<'_> {
    pub(super) fn judge(&self) -> Outcome {
        let live = self.live;
        if live.terminating && holds(Rule::TerminatingIsLeftAlone) {
            return wait(Reason::Leaving, "it is being deleted");
        }
        if let Some(done) = self.row.done {
            return self.still(done);
        }
        if self.skipped {
            return Outcome::Done(Done::Skipped);
        }
        if !self.is_settled() {
            return self.kept_waiting().unwrap_or(Outcome::Unsettled);
        }
        if live.automatic && holds(Rule::Arming) {
            return match live.is_busy() {
                true => wait(Reason::Arming, "an operation must end before automatic sync is switched off"),
                false => ready(Intent::Arm, "automatic sync is on"),
            };
        }
        if let Some(outcome) = self.barrier() {
            return outcome;
        }
        if live.is_busy() && holds(Rule::BusyIsLeftAlone) {
            return self.under_way();
        }
        match self.has_spec() {
            false => self.without_spec(),
            true => self.with_spec(),
        }
    }

    /// What keeps the write that is intended from being made: an operation that somebody else has begun meanwhile.
    fn kept_waiting(&self) -> Option<Outcome> {
        let waits = self.row.intent.is_some_and(Intent::waits_for_operations) && !self.row.fence;
        let busy = waits && self.live.is_busy() && holds(Rule::BusyIsLeftAlone);
        busy.then(|| self.under_way()).filter(|outcome| matches!(outcome, Outcome::Wait(_)))
    }

    /// Whether the last intended write has landed, or never can.
    pub(super) fn is_settled(&self) -> bool {
        is_settled(self.row, self.live, self.set)
    }

    /// A done Application: is it still?
    fn still(&self, done: Done) -> Outcome {
        if matches!(done, Done::Skipped | Done::Tolerated) {
            return Outcome::Done(done);
        }
        let live = self.live;
        if live.automatic && !live.is_busy() && self.is_settled() && holds(Rule::Arming) {
            return ready(Intent::Arm, "automatic sync was switched on");
        }
        let busy = || match self.under_way() {
            Outcome::Wait(wait) if live.is_busy() => Some((wait.reason, wait.message)),
            _ => None,
        };
        let Some((reason, message)) = self.misfit().or_else(busy) else { return Outcome::Done(done) };
        if self.skipped {
            return Outcome::Done(Done::Skipped);
        }
        let mend = match reason {
            _ if live.is_busy() || !self.is_settled() => None,
            Reason::OutOfSyncAfterSync => self.heal(done),
            Reason::SpecRewritten => self.rewrite(),
            _ => None,
        };
        Outcome::Regressed(reason, message, mend)
    }

    /// A specification that somebody changed since is written over and synced, where nothing speaks against it.
    fn rewrite(&self) -> Option<Ready> {
        let may = self.ordered && !self.held && self.live.closed.is_none() && self.barrier().is_none();
        may.then(|| Ready { intent: Intent::Start, ..self.healing("its specification was changed") })
    }

    /// Whether its last write asked for a comparison, and has landed.
    pub(super) fn asks(&self) -> bool {
        let asked = self.row.intent.is_some_and(Intent::asks_for_comparison);
        asked
            && self.live.stamp.as_ref().is_some_and(|stamp| stamp.n == self.row.n && *stamp.set == *self.set)
    }

    /// A comparison that was asked for and has not been made yet.
    fn barrier(&self) -> Option<Outcome> {
        let live = self.live;
        if !self.asks() || !holds(Rule::Barrier) {
            return None;
        }
        if !live.refresh {
            // What cannot be compared has no clock.
            let believed = self.is_answered() || self.is_told_since_asked() || live.error.is_some();
            return (!believed).then(|| {
                self.again(
                    Reason::WaitingForRefresh,
                    "the comparison it was asked for may have begun before, or not have been written",
                    (Intent::Refresh, GRACE),
                )
            });
        }
        let silent = self.now.duration_since(self.since) >= SILENCE;
        Some(match silent {
            true => {
                wait(Reason::NoReport, "the application controller has not compared it as it was asked to")
            }
            false => wait_until(
                Reason::WaitingForRefresh,
                "the application controller has not compared it yet",
                self.since.saturating_add(SILENCE).unwrap_or(self.now),
            ),
        })
    }

    fn under_way(&self) -> Outcome {
        let live = self.live;
        let Some(last) = live.last.as_ref().filter(|last| last.is_running()) else {
            return wait(Reason::Progressing, "an operation waits to be begun");
        };
        if live.operation.is_none() {
            return wait(Reason::OrphanedOperation, "an operation is said to run that nobody carries out");
        }
        let stale =
            last.stamp.as_ref().is_some_and(|stamp| *stamp.set == *self.set && stamp.pin != self.row.pin);
        if self.ends && !is_terminating(last) {
            return ready(Intent::Terminate, "its phase was aborted");
        }
        if stale && (last.retrying || last.awaits_approval) && !is_terminating(last) {
            return ready(Intent::Terminate, "an operation of an earlier run would never end by itself");
        }
        if last.awaits_approval {
            return wait(Reason::ApprovalRequired, last.message.to_string());
        }
        wait(Reason::Progressing, said("an operation is under way", &last.message))
    }

    /// Whether its specification is the wanted one. Where the set's policy allows no update, any is.
    fn has_spec(&self) -> bool {
        let any = self.pin.spec == Fingerprint::default() || !holds(Rule::ComparedToSpec);
        any || self.live.spec == self.pin.spec || self.adopted == Some(self.live.spec)
    }

    /// Whether the comparison that follows the switching off of automatic sync has not been made yet.
    pub(super) fn is_arming(&self) -> bool {
        self.row.intent == Some(Intent::Arm) && (!self.is_settled() || self.barrier().is_some())
    }

    /// It took longer than its step allows.
    pub(super) fn late(&self, judged: Outcome) -> Outcome {
        let what = match judged {
            Outcome::Done(done) => return Outcome::Done(done),
            Outcome::Wait(wait) => wait.message,
            Outcome::Regressed(_, message, _) => message,
            Outcome::Ready(ready) => ready.why,
            Outcome::Unsettled => "it was not written".to_owned(),
        };
        let message = format!("it is not done within the step's progressDeadline: {what}");
        Outcome::Wait(Wait { reason: Reason::SyncFailed, message, failed: true, wake: None })
    }

    fn without_spec(&self) -> Outcome {
        let written = matches!(self.row.intent, Some(Intent::Start | Intent::Spec));
        if written && self.adopted.is_some() {
            return wait(
                Reason::SpecRewritten,
                "its specification comes back different from what was written",
            );
        }
        if !self.ordered || self.held {
            return ready(Intent::Spec, "its specification changes");
        }
        if let Some(reason) = &self.live.closed {
            return wait(Reason::SyncWindow, reason.to_string());
        }
        let invalid = self.live.error.as_ref().is_some_and(|(kind, _)| &**kind == "InvalidSpecError");
        match invalid {
            // What made it invalid may be mended by the new specification; an operation would fail on the old error.
            true if holds(Rule::InvalidFirst) => ready(Intent::Spec, "its specification was invalid"),
            _ => ready(Intent::Start, "its specification changes"),
        }
    }

    fn with_spec(&self) -> Outcome {
        let live = self.live;
        if !self.ordered {
            return match self.misfit() {
                None if !self.is_told() && holds(Rule::Barrier) => self.ask_first(),
                None => Outcome::Done(Done::Unchanged),
                Some(_) => wait(Reason::HoldStep, "no step holds it: it is synced by hand"),
            };
        }
        // A request to try again clears the intent: what was before then counts no more, unless it fits.
        let own = live.last.as_ref().filter(|last| self.is_own(last));
        match own.filter(|_| self.row.intent.is_some()) {
            None if self.row.intent == Some(Intent::Start) && !holds(Rule::LostOperations) => {
                return wait(Reason::Progressing, "its operation is to begin");
            }
            None if self.row.intent == Some(Intent::Start) => {
                return ready(Intent::Start, "its operation was lost");
            }
            Some(last) if self.row.intent == Some(Intent::Start) && !self.is_newest(last) => {
                return ready(Intent::Start, "its operation was lost");
            }
            Some(last) if self.ended_badly(last) => return self.failed(last),
            Some(_) if !holds(Rule::BegunOnce) => return ready(Intent::Start, "it was synced"),
            Some(_) => return self.succeeded(),
            None => {}
        }
        if own.is_some_and(|last| !last.has_failed() && self.ended_badly(last)) {
            // Somebody asked to try it again: however it is found, the whole of it was not synced.
            return match self.misfit() {
                Some((reason @ Reason::InvalidApplication, message)) => wait(reason, message),
                _ => self.out_of_sync(),
            };
        }
        if self.overtaken {
            return self.out_of_sight();
        }
        let Some((reason, message)) = self.misfit() else {
            // It may have been found so before the run began, or before an operation made it something else.
            if !self.is_told() && holds(Rule::Barrier) {
                return self.ask_first();
            }
            return Outcome::Done(match own {
                Some(last) if !self.ended_badly(last) => Done::Synced,
                _ if self.held && self.pin.accepts(&live.deployed) => Done::Override,
                _ => Done::Unchanged,
            });
        };
        match reason {
            Reason::InvalidApplication => wait(reason, message),
            Reason::RevisionMismatch | Reason::WaitingForRefresh | Reason::Unknown => {
                self.ask(reason, message)
            }
            Reason::OutOfSyncAfterSync => self.out_of_sync(),
            _ => wait(reason, message),
        }
    }

    /// Whether it is as its pin says cannot be seen any more: its operation will tell, or that of a person.
    fn out_of_sight(&self) -> Outcome {
        match self.misfit() {
            None if self.held && self.pin.accepts(&self.live.deployed) => match self.is_told() {
                false if holds(Rule::Barrier) => self.ask_first(),
                _ => Outcome::Done(Done::Override),
            },
            Some((reason @ Reason::InvalidApplication, message)) => wait(reason, message),
            Some((Reason::WaitingForRefresh, message)) => self.ask(Reason::WaitingForRefresh, message),
            _ => self.out_of_sync(),
        }
    }

    /// It differs at its pin, and no operation of this run is under way or has been.
    fn out_of_sync(&self) -> Outcome {
        if self.held {
            return wait(Reason::HoldStep, "the step is synced by hand");
        }
        match &self.live.closed {
            Some(reason) => wait(Reason::SyncWindow, reason.to_string()),
            None => ready(Intent::Start, "it is OutOfSync"),
        }
    }

    /// Whether an operation of this run is no success: it failed, or somebody made it sync something else.
    fn ended_badly(&self, last: &Operation) -> bool {
        let whole = last.full && self.pin.accepts(&last.revisions);
        last.has_failed() || (!last.is_running() && !whole && holds(Rule::WholeSyncs))
    }

    fn failed(&self, last: &Operation) -> Outcome {
        let message = match last.has_failed() {
            true => format!("its sync failed: {}", last.message),
            false => "its operation was changed, and synced something else than it was told to".to_owned(),
        };
        Outcome::Wait(Wait { reason: Reason::SyncFailed, message, failed: true, wake: None })
    }

    /// Its operation in this run ended well.
    fn succeeded(&self) -> Outcome {
        let live = self.live;
        let misfit = self.misfit();
        // Whatever it says may have been found before the operation ended, or in part.
        let believed = if misfit.is_none() { self.is_told() } else { self.is_asked() };
        if !believed && holds(Rule::ComparedAfter) {
            let why = "the state after its sync has not been told yet";
            // Application controllers look by themselves when an operation ends: what is asked for then is what tells.
            let soon = self.since.saturating_add(PROMPT).unwrap_or(self.now);
            return match holds(Rule::AskedForComparison) {
                true if misfit.is_none() || self.now >= soon => ready(Intent::Refresh, why),
                true => wait_until(Reason::WaitingForRefresh, why, soon),
                false => wait(Reason::WaitingForRefresh, why),
            };
        }
        let Some((reason, message)) = misfit else { return Outcome::Done(Done::Synced) };
        match reason {
            Reason::OutOfSyncAfterSync if live.prune_only => {
                wait(Reason::PruneOnly, "only resources to prune keep it from being Synced")
            }
            Reason::RevisionMismatch | Reason::WaitingForRefresh | Reason::Unknown => {
                self.ask(reason, message)
            }
            _ => wait(reason, message),
        }
    }

    /// Whether all that it says was found by a comparison that this run asked for after its last operation had ended.
    ///
    /// Nothing less will do. Application controllers write what differs from what they read a while ago, and in parts:
    /// neither when a comparison is said to have begun, nor that what is said has changed, tells what it is about. But
    /// what they read was no older than the request: where it said the same ever since, an answer that differs shows.
    fn is_told(&self) -> bool {
        self.is_asked() && (self.asked.is_some_and(|asked| asked.steady) || !holds(Rule::SteadyAnswers))
    }

    /// Whether a comparison was asked for after its last operation had ended.
    fn is_asked(&self) -> bool {
        let before = |last: &Operation| match last.stamp.as_ref().filter(|stamp| *stamp.set == *self.set) {
            Some(stamp) if stamp.n < self.row.n => true,
            // One of somebody else may have come since: what was seen when it was asked for tells.
            _ => self
                .asked
                .is_some_and(|asked| asked.last.as_ref().is_some_and(|then| then.as_ref() == Some(last))),
        };
        self.asks()
            && self.asked.is_some_and(|asked| asked.n == self.row.n)
            && self.live.last.as_ref().is_none_or(before)
    }

    /// Whether the Application controller says that the comparison it was asked for is what is told of.
    fn is_answered(&self) -> bool {
        let live = self.live;
        live.nonce.is_none() && (live.answered || !holds(Rule::AnswersAreWritten))
    }

    /// Whether the comparison told of began, by the clock of who made it, after all that was told when it was asked for.
    ///
    /// Argo CD's controllers say no more than that. Older ones do not know the nonce, and leave it: what they took away may
    /// have been asked for before, and answered from what they read before then. Newer ones take it away also where what
    /// they found could not be written, and what is told is of before.
    fn is_told_since_asked(&self) -> bool {
        let live = self.live;
        let ended = live.last.as_ref().and_then(|last| last.finished);
        let Some(asked) = self.asked.filter(|asked| asked.n == self.row.n) else { return false };
        live.compared && live.reconciled > asked.began.max(ended)
    }

    /// Whether, by the clock of who made it, the comparison told of began after an operation had ended.
    fn is_later_by_clock(&self, last: &Operation) -> bool {
        let times = self.live.reconciled.zip(last.finished);
        self.is_asked() || times.is_some_and(|(began, ended)| began > ended)
    }

    /// Asks for a comparison, and again where it did not help.
    fn ask(&self, reason: Reason, message: String) -> Outcome {
        let asked = self.row.intent.filter(|intent| intent.asks_for_comparison());
        match asked {
            None => ready(Intent::Refresh, message),
            Some(Intent::Refresh | Intent::Arm | Intent::Spec) if reason == Reason::RevisionMismatch => {
                ready(Intent::HardRefresh, message)
            }
            Some(_) => self.again(reason, &message, (Intent::HardRefresh, ASK_AGAIN)),
        }
    }

    /// Asks for a comparison before what fits is believed.
    fn ask_first(&self) -> Outcome {
        ready(Intent::Refresh, "what it says may be of before this run, or of before it was synced")
    }

    /// Asks once more after a while, and less and less often.
    fn again(&self, reason: Reason, message: &str, (intent, first): (Intent, SignedDuration)) -> Outcome {
        if self.asks >= ASKS {
            return wait(reason, message);
        }
        let pause = first.checked_mul(1 << self.asks.saturating_sub(1)).unwrap_or(first);
        let end = self.since.saturating_add(pause).unwrap_or(self.now);
        match self.now >= end {
            true => ready(intent, message),
            false => wait_until(reason, message, end),
        }
    }

    /// What keeps it from being as its pin says, told by the object alone.
    fn misfit(&self) -> Option<(Reason, String)> {
        let live = self.live;
        if let Some((kind, message)) = &live.error {
            return Some((Reason::InvalidApplication, format!("{kind}: {message}")));
        }
        if !self.has_spec() {
            return Some((Reason::SpecRewritten, "its specification was changed".to_owned()));
        }
        if !live.compared && holds(Rule::ComparedToSpec) {
            return Some((
                Reason::WaitingForRefresh,
                "it was not compared with its present specification".to_owned(),
            ));
        }
        if !self.pin.accepts(&live.reported) && !self.overtaken && holds(Rule::PinIsReported) {
            let reported =
                live.reported.iter().map(|revision| short(revision)).collect::<Vec<_>>().join(", ");
            let wanted =
                self.pin.sources.iter().map(|source| short(&source.sync)).collect::<Vec<_>>().join(", ");
            let reported = if reported.is_empty() { "nothing".to_owned() } else { reported };
            return Some((Reason::RevisionMismatch, format!("it reports {reported}, not {wanted}")));
        }
        match live.sync {
            SyncCode::Synced => {}
            SyncCode::OutOfSync if self.overtaken => {}
            SyncCode::OutOfSync => {
                return Some((Reason::OutOfSyncAfterSync, "it differs from its manifests".to_owned()));
            }
            _ => return Some((Reason::Unknown, "its sync status is not known".to_owned())),
        }
        let (reason, message) = match live.health {
            HealthCode::Healthy => return None,
            HealthCode::Progressing => (Reason::Progressing, "it is not healthy yet"),
            HealthCode::Suspended => (Reason::Suspended, "it is suspended"),
            HealthCode::Missing => (Reason::Missing, "resources of it are missing"),
            HealthCode::Degraded => (Reason::Degraded, "it is degraded"),
            _ => (Reason::Unknown, "its health is not known"),
        };
        Some((reason, said(message, live.ailing.as_deref().unwrap_or_default())))
    }

    fn is_own(&self, last: &Operation) -> bool {
        last.stamp.as_ref().is_some_and(|stamp| {
            *stamp.set == *self.set
                && stamp.run == self.run
                && stamp.pin == self.row.pin
                && stamp.n <= self.row.n
        })
    }

    /// Whether it is being synced, or was in this run.
    pub(super) fn has_entered(&self) -> bool {
        let intended = matches!(self.row.intent, Some(Intent::Start | Intent::Heal));
        // One that failed and is to be tried again has ended, and begins anew.
        let own = self.live.last.as_ref().filter(|last| self.is_own(last));
        intended
            || self.live.is_busy()
            || own.is_some_and(|last| !self.ended_badly(last) || self.row.intent.is_some())
    }

    /// Whether it is the operation of the last intended write.
    fn is_newest(&self, last: &Operation) -> bool {
        last.stamp.as_ref().is_some_and(|stamp| stamp.n == self.row.n)
    }

    /// Brings drift back to the pin it was done at.
    fn heal(&self, done: Done) -> Option<Ready> {
        let live = self.live;
        // What was found to be at its pin without a sync is brought there, if nobody has synced it since.
        let unchanged = done == Done::Unchanged && self.is_asked();
        let at_pin = self.pin.accepts(&live.deployed) || unchanged;
        if !(self.self_heal
            && holds(Rule::DriftIsHealed)
            && at_pin
            && !live.heals_in_order
            && live.closed.is_none()
            && self.barrier().is_none()
            && !self.held)
        {
            return None;
        }
        let mut healing = self.healing("it drifted");
        if live.last.as_ref().is_some_and(|last| !self.is_later_by_clock(last)) {
            // It may have differed only before it was synced, and somebody else has seen since that it is done.
            healing.not_before = healing.not_before.max(self.since.checked_add(GRACE).ok());
        }
        Some(healing)
    }

    /// Brings drift back to the pin of before, where its step has not come yet. The old pin is the stamp's: the live
    /// specification and the revisions of the last full sync must be it. And the last operation must have been one for it:
    /// where a step leaves syncs to people, a specification is stamped that nobody has synced.
    pub(super) fn heal_as_before(&self) -> Option<Ready> {
        let live = self.live;
        let before = live.last_pin();
        let drifted = live.sync == SyncCode::OutOfSync && live.compared && live.reported == live.deployed;
        let same =
            live.stamp.as_ref().is_some_and(|stamp| *stamp.set == *self.set && stamp.pin == before.hash);
        let synced = live.last.as_ref().and_then(|last| last.stamp.as_ref());
        let same = same
            && (synced.is_some_and(|stamp| *stamp.set == *self.set && stamp.pin == before.hash)
                || !holds(Rule::HealsBringBack));
        let free = !live.is_busy() && self.is_settled() && live.error.is_none() && live.closed.is_none();
        let free = free && self.barrier().is_none();
        let open = self.self_heal && !live.heals_in_order && !live.automatic && !live.terminating;
        // What differed before its last operation ended may not differ any more.
        let open = open && live.last.as_ref().is_none_or(|last| self.is_later_by_clock(last));
        (drifted && same && free && open && !live.deployed.is_empty() && before.hash != self.row.pin)
            .then(|| self.healing("it drifted from what it was synced to before"))
    }

    fn healing(&self, why: &str) -> Ready {
        let (count, last) = self.heals;
        let pause = FIRST_HEAL_PAUSE
            .checked_mul(1 << count.min(12))
            .map_or(LONGEST_HEAL_PAUSE, |pause| pause.min(LONGEST_HEAL_PAUSE));
        let end = last.and_then(|last| last.checked_add(pause).ok()).filter(|end| *end > self.now);
        Ready { intent: Intent::Heal, why: why.to_owned(), not_before: end }
    }
}

/// Whether the last intended write of a row has landed on the Application.
pub(super) fn is_settled(row: &Row, live: &Live, set: &str) -> bool {
    let landed = live.stamps().any(|stamp| *stamp.set == *set && stamp.n >= row.n);
    // A start whose slot is free again was seen to land, whatever became of the stamp since.
    let over = match row.intent {
        None => true,
        Some(Intent::Start | Intent::Heal) => !row.slot,
        Some(_) => false,
    };
    (over && !row.fence) || landed
}

fn is_terminating(last: &Operation) -> bool {
    last.phase == baton_api::application_status::OperationPhase::Terminating
}

/// What is the case, and what is told of it, if anything.
fn said(what: &str, detail: &str) -> String {
    if detail.is_empty() { what.to_owned() } else { format!("{what}: {detail}") }
}

/// A revision as people write it.
pub(super) fn short(revision: &str) -> &str {
    let is_commit = revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_commit { &revision[..7] } else { revision }
}
