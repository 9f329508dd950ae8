//! One thing that a rollout or a deletion waits for.

use baton_api::rollout_status::Blocker;
use jiff::Timestamp;
use serde::Serialize;

use super::time;
use crate::blocker::Reason;

/// Something that is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Obstacle {
    /// In one word.
    pub reason: String,
    /// The Application, step or window it is about.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub object: String,
    /// In words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// What ends the wait.
    pub unblocks: String,
    /// When it is looked at again without an event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_look: Option<Timestamp>,
    /// How many objects wait for the same reason.
    pub count: i64,
}

/// A message without the colon after which nothing was said.
fn worded(message: &str) -> String {
    message.trim_end_matches([':', ' ']).to_owned()
}

/// Whether it waits for others: then how far those are says more than what it is itself.
pub(super) fn is_queueing(reason: &str) -> bool {
    [Reason::WaitingForStep, Reason::WaitingForSlot].iter().any(|queueing| queueing.as_str() == reason)
}

// === impl Obstacle ===

impl Obstacle {
    pub(super) fn new(reason: Reason, object: String, message: String) -> Obstacle {
        Obstacle {
            reason: reason.as_str().to_owned(),
            object,
            message: worded(&message),
            since: None,
            unblocks: reason.remedy().to_owned(),
            next_look: None,
            count: 1,
        }
    }

    pub(super) fn of(blocker: &Blocker) -> Obstacle {
        Obstacle {
            reason: blocker.reason.clone(),
            object: blocker.object.clone(),
            message: worded(&blocker.message),
            since: time(blocker.since.as_ref()),
            unblocks: blocker.remedy.clone(),
            next_look: time(blocker.next_check_at.as_ref()),
            count: blocker.count.max(1),
        }
    }

    pub(super) fn is_about(&self, application: &str) -> bool {
        self.object.rsplit('/').next().is_some_and(|name| name == application)
    }

    /// Whether a message says no more than this.
    pub fn says(&self, message: &str) -> bool {
        let rest = message.strip_prefix(self.reason.as_str()).and_then(|rest| rest.strip_prefix(": "));
        rest.map(worded).as_deref() == Some(self.message.as_str())
    }

    /// Whether it is a wait for others.
    pub fn is_queueing(&self) -> bool {
        is_queueing(&self.reason)
    }

    /// Whether only a person can end the wait.
    pub fn waits_for_person(&self) -> bool {
        const OF_PEOPLE: [Reason; 5] = [
            Reason::Paused,
            Reason::ApprovalRequired,
            Reason::HoldStep,
            Reason::DeletionFuse,
            Reason::InvalidRolloutConfig,
        ];
        OF_PEOPLE.iter().any(|reason| reason.as_str() == self.reason)
    }
}
