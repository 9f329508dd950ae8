//! What a machine is told, and what it tells.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::blocker::Blocker;
use crate::head::{Change, Intent};
use crate::pin::{Fingerprint, SourceKey};
use crate::stamp::Stamp;
use crate::steps::Steps;

/// What a set wants.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// UID of the set.
    pub set: Arc<str>,
    /// Generation of the set that this is of: a run for a newer one is not given up for it.
    pub generation: i64,
    /// The steps.
    pub steps: Steps,
    /// The Applications by name.
    pub members: BTreeMap<Arc<str>, Member>,
    /// Why it is not known what the set wants, where it is not: members stay as they were, and nothing is started.
    pub frozen: Option<Arc<str>>,
    /// Why Applications that left may not be deleted yet, where a mass deletion waits for approval.
    pub fuse: Option<Arc<str>>,
    /// Whether Applications that left stay, since the set's policy deletes none: then nobody waits for them to go.
    pub keeps_leavers: bool,
    /// What people ask for.
    pub control: Control,
}

/// One Application a set wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its step, counted from 0; none where no step holds it.
    pub step: Option<usize>,
    /// Of the wanted specification, made comparable as [`Live::spec`](crate::live::Live::spec); none where the live one is wanted, since the
    /// set's policy allows no update.
    pub spec: Option<Fingerprint>,
    /// The sources, in order.
    pub sources: Vec<SourceKey>,
    /// Whether drift is healed.
    pub self_heal: bool,
    /// Why it is not there, where it could not be created or must not be.
    pub fault: Option<Arc<str>>,
    /// What it goes back to, where it does, instead of what is wanted.
    pub back: Option<Back>,
}

/// What an Application was when it was good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Back {
    /// Of the specification, made comparable.
    pub spec: Fingerprint,
    /// Revisions, one per source.
    pub revisions: Vec<Arc<str>>,
}

/// What people ask for, by annotations on the set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Control {
    /// Nothing more is written.
    pub paused: bool,
    /// A request to end the run, told from others by its text.
    pub abort: Option<Arc<str>>,
    /// A request to try again what failed, told from others by its text.
    pub retry: Option<Arc<str>>,
    /// Applications that count as done at this pin.
    pub skip: BTreeMap<Arc<str>, Fingerprint>,
    /// Whether a run is finished before a newer one begins.
    pub finish: bool,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    /// Revisions to resolve anew; answer each with [`Machine::resolved`](super::Machine::resolved).
    pub resolve: Vec<SourceKey>,
    /// Whether a consistent list of the set's Applications is needed; answer with
    /// [`Machine::listed`](super::Machine::listed).
    pub list: bool,
    /// What to change in the head; answer with [`Machine::stored`](super::Machine::stored), or
    /// [`Machine::reload`](super::Machine::reload) where it was changed by somebody else.
    pub change: Option<Change>,
    /// What to write; answer each with [`Machine::saw`](super::Machine::saw) and the state the API answered with, or
    /// [`Machine::failed`](super::Machine::failed).
    pub writes: Vec<Write>,
    /// When to ask again though nothing was seen.
    pub wake: Option<Timestamp>,
}

/// One write to an Application, under its UID and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Its name.
    pub name: Arc<str>,
    /// Its UID.
    pub uid: Arc<str>,
    /// The version it was decided on.
    pub version: u64,
    /// What to write.
    pub what: Intent,
    /// The stamp that goes with it.
    pub stamp: Stamp,
    /// Whether the wanted specification is written too.
    pub spec: bool,
    /// Revisions of the operation, one per source.
    pub revisions: Vec<Arc<str>>,
    /// Value for `refresh-timestamp`, where a comparison is asked for.
    pub nonce: Option<Arc<str>>,
}

/// How far an Application is, in Argo CD's words and in ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Its step, counted from 0.
    pub step: Option<usize>,
    /// How far it is.
    pub status: Status,
    /// In words.
    pub message: String,
    /// The revisions it is to have.
    pub revisions: Vec<Arc<str>>,
    /// Version of the object that the last transition rests on.
    pub version: u64,
    /// When it came to this status.
    pub since: Timestamp,
    /// What it waits for.
    pub blocker: Option<Blocker>,
    /// Its pin.
    pub pin: Option<Fingerprint>,
    /// Why it failed, where it did: it will not get there by itself.
    pub failure: Option<Blocker>,
    /// Why it is no longer done, where it was.
    pub regressed: Option<Blocker>,
    /// The newest run that has brought it to its pin, or is about to.
    pub touched: Option<u64>,
    /// Whether it counts as done because a person said so.
    pub skipped: bool,
    /// Whether what is on record of it is of something else than it is to be, and is about to be amended.
    pub outdated: bool,
}

/// Argo CD's four words for how far an Application is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Its turn has not come.
    Waiting,
    /// Its turn has come; its operation is about to begin.
    Pending,
    /// It is under way.
    Progressing,
    /// It is done.
    Healthy,
}
