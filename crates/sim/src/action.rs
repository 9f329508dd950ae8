//! What people do, and what befalls members, git and the head of the rollout.

use std::time::Duration;

use serde_json::Value;

use crate::fleet::{Deletion, Slip, Step};
use crate::wire::Fault;

/// Something that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// The next commit of a branch is pushed; these Applications are asked to look at it at once.
    Push {
        branch: usize,
        noticed: Vec<String>,
    },
    /// The template chooses the other directory.
    Variant,
    /// The template's sync options change.
    Option,
    Relabel {
        app: String,
        tier: usize,
    },
    Join {
        app: String,
        tier: usize,
    },
    Leave {
        app: String,
    },
    Pause,
    Resume,
    /// People end the run.
    Abort,
    /// People ask to try again what failed: everywhere, or here.
    Retry {
        app: Option<String>,
    },
    /// People say that an Application counts as done.
    Skip {
        app: String,
    },
    /// People end a wait, or go on after a failure.
    Advance,
    /// People have a phase put back, or all of them.
    Rollback {
        all: bool,
    },
    /// The set has phases no longer.
    DropPhases,
    /// Its phases are others.
    Rephase {
        strategy: Value,
    },
    Strategy {
        steps: Vec<Step>,
    },
    DeletionOrder(Deletion),
    /// The pods of an Application go away and come back.
    Flap {
        app: String,
    },
    /// Somebody changes or deletes a resource of an Application.
    Drift {
        app: String,
        deletes: bool,
    },
    /// What every member shows of the fleet is edited.
    Storm,
    /// All but one leave the set at once, as by a slip.
    Exodus,
    /// They come back.
    Return,
    /// The set cannot be generated any more.
    Break {
        slip: Slip,
    },
    /// It can again.
    Mend,
    /// The project lets nothing sync for a while.
    Window {
        time: Duration,
    },
    /// Somebody edits the specification of an Application.
    EditSpec {
        app: String,
        path: bool,
    },
    /// Somebody edits the label of an Application that its step depends on.
    EditLabel {
        app: String,
        tier: usize,
    },
    /// Somebody edits the stamp of an Application.
    EditStamp {
        app: String,
        how: Edit,
    },
    /// Somebody writes an operation into an Application.
    Operate {
        app: String,
        how: Operation,
        over: bool,
    },
    /// Somebody switches automatic sync on.
    SwitchOn {
        app: String,
    },
    /// Somebody moves an Application into a project that does not exist.
    Misplace {
        app: String,
    },
    /// An operation that waits is wiped, as by a completion that is written twice.
    Wipe {
        app: String,
    },
    /// An operation of a rollout that waits is made one of resources by name, all of them: such run no hooks.
    Trim {
        app: String,
    },
    /// Somebody deletes an Application that the set wants.
    Recreate {
        app: String,
    },
    /// People sync what a held step leaves to them.
    SyncByHand,
    /// People approve what waits for it.
    Approve,
    DeleteSet {
        cascade: &'static str,
    },
    /// A member cannot be reached for a while.
    MemberAway {
        member: String,
        time: Duration,
    },
    /// A repository cannot be read for a while.
    GitAway {
        branch: usize,
        time: Duration,
    },
    /// The head of the rollout is lost.
    Head(Edit),
}

/// How something is spoilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edit {
    /// It is taken away.
    Delete,
    /// It is emptied, or told to be older than it is.
    Reset,
    /// It is made unreadable.
    Garble,
}

/// What somebody syncs by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// What the Application follows.
    Target,
    /// Some commit that was pushed before.
    Earlier,
    /// One resource of several.
    Partial,
}

/// What people do to phases beside.
pub(crate) const PHASE_ACTIONS: [&str; 4] = ["Advance", "Rollback", "DropPhases", "Rephase"];

/// What people do, one word each.
pub(crate) const ACTIONS: [&str; 33] = [
    "Push",
    "Variant",
    "Option",
    "Relabel",
    "Join",
    "Leave",
    "Pause",
    "Resume",
    "Abort",
    "Retry",
    "Skip",
    "Strategy",
    "DeletionOrder",
    "Flap",
    "Drift",
    "Storm",
    "Exodus",
    "Return",
    "Break",
    "Mend",
    "Window",
    "EditSpec",
    "EditLabel",
    "EditStamp",
    "Operate",
    "SwitchOn",
    "Misplace",
    "Wipe",
    "Recreate",
    "SyncByHand",
    "Approve",
    "DeleteSet",
    "Trim",
];

impl Action {
    /// The word for it.
    pub(crate) fn word(&self) -> String {
        format!("{self:?}").split([' ', '(']).next().unwrap_or_default().to_owned()
    }

    /// In words, by what branches are called.
    pub(crate) fn told(&self, branch: impl Fn(usize) -> String) -> String {
        match self {
            Action::Push { branch: number, noticed } => {
                let seen = match noticed.len() {
                    0 => "nobody looks at once".to_owned(),
                    1 => "one Application looks at once".to_owned(),
                    some => format!("{some} Applications look at once"),
                };
                format!("a commit to {}; {seen}", branch(*number))
            }
            Action::MemberAway { member, time } => {
                format!("{member} cannot be reached for {} s", time.as_secs())
            }
            Action::GitAway { branch: number, time } => {
                format!("{} cannot be read for {} s", branch(*number), time.as_secs())
            }
            Action::Head(Edit::Delete) => "the head of the rollout is deleted".to_owned(),
            Action::Head(Edit::Reset) => "the head of the rollout is emptied".to_owned(),
            Action::Head(Edit::Garble) => "the head of the rollout is made unreadable".to_owned(),
            Action::Approve => "what waits for approval is approved".to_owned(),
            Action::SyncByHand => "what is left to people to sync is synced".to_owned(),
            Action::Retry { app: None } => "what has failed is to be tried again".to_owned(),
            Action::Advance => "the rollout is to go on".to_owned(),
            Action::DeleteSet { .. } => "the set is deleted".to_owned(),
            other => format!("{other:?}"),
        }
    }

    /// The fault it is, where it is one.
    pub(crate) fn fault(&self) -> Option<Fault> {
        match self {
            Action::MemberAway { .. } => Some(Fault::MemberAway),
            Action::GitAway { .. } => Some(Fault::GitAway),
            Action::Head(Edit::Delete) => Some(Fault::HeadDeleted),
            Action::Head(Edit::Reset) => Some(Fault::HeadWiped),
            Action::Head(Edit::Garble) => Some(Fault::HeadGarbled),
            _ => None,
        }
    }
}
