//! What a round is told, and what it rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::ApplicationSet;
use baton_phases::{Gate, Hold, Notice, Outlook, Progress, Requests, Target, Wait};
use baton_template::Map;
use jiff::Timestamp;
use serde_json::Value;

use crate::objects::ApiError;

/// What is known of a set when a round begins.
pub(crate) struct Round<'a> {
    /// The set as last read.
    pub(crate) set: &'a ApplicationSet,
    /// Number of the rollout's run.
    pub(crate) run: u64,
    /// The Applications of every generator that [`phased`](super::phased) names, by its place.
    pub(crate) targets: &'a BTreeMap<usize, Vec<Target>>,
    /// Per Application: what the template wants.
    pub(crate) pins: &'a BTreeMap<Arc<str>, Arc<str>>,
    /// Per Application: how far it is.
    pub(crate) seen: &'a BTreeMap<Arc<str>, SeenApp>,
    /// Per Application: the specification that belongs to its current pin, with resolved revisions.
    pub(crate) specs: &'a (dyn Fn(&str) -> Option<Value> + Sync),
    /// Per Application: its generator's parameters as a Go template sees them; none has them made of the flat ones.
    pub(crate) params: &'a (dyn Fn(&str) -> Option<Map> + Sync),
    /// The step of each Application, counted from 0, where the set goes in steps as well. Who is in none is not there.
    pub(crate) steps: &'a BTreeMap<Arc<str>, usize>,
    /// What people ask for.
    pub(crate) requests: Requests,
    /// Whether nothing new may begin.
    pub(crate) hold: Hold,
    /// Whether `seen` is no older than a consistent list made since [`Ruling::list`] asked for one.
    pub(crate) consistent: bool,
    /// The time.
    pub(crate) now: Timestamp,
}

/// How far an Application is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenApp {
    /// How far it is on its way to `pin`.
    pub(crate) progress: Progress,
    /// What it is on its way to.
    pub(crate) pin: Arc<str>,
    /// The newest run that has brought it to its pin, or is about to.
    pub(crate) touched: Option<u64>,
    /// Whether it counts as done because a person said so.
    pub(crate) skipped: bool,
}

/// What follows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ruling {
    /// Whether an Application may be changed. Who is not there has no phases to mind.
    pub(crate) gates: BTreeMap<Arc<str>, Ruled>,
    /// How many Applications of a generator and phase may be under way at once, where that is limited.
    pub(crate) limits: BTreeMap<(usize, usize), usize>,
    /// The resourceVersion of the set that the gates follow from, as a number.
    pub(crate) version: u64,
    /// What those are put back to whose gate says so.
    pub(crate) back: BTreeMap<Arc<str>, Arc<Value>>,
    /// Applications whose operation is to be ended.
    pub(crate) terminate: Vec<Arc<str>>,
    /// Whether a consistent list is wanted before the next round.
    pub(crate) list: bool,
    /// Whether the status was written or has changed: another round is wanted at once, with the set as it is now.
    pub(crate) again: bool,
    /// The newest the API has told of the set, where that is newer than what the round was told.
    pub(crate) set: Option<Value>,
    /// What is waited for, the first first.
    pub(crate) waits: Vec<Wait>,
    /// How the phases stand together; none where they were not looked at.
    pub(crate) outlook: Option<Outlook>,
    /// What people should know.
    pub(crate) notices: Vec<Notice>,
    /// When another round is wanted though nothing happens.
    pub(crate) wake: Option<Timestamp>,
}

/// Whether an Application may be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ruled {
    /// Whether it may.
    pub(crate) gate: Gate,
    /// Place of its generator, and of its phase; as many as there are where it is in none that has begun.
    pub(crate) group: (usize, usize),
}

/// Why a round did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PhaseError {
    #[error("cannot read the ApplicationSet: {0}")]
    Set(#[source] ApiError),
    #[error("cannot read the details of phases (ConfigMaps): {0}")]
    ReadDetails(#[source] ApiError),
    #[error("cannot read the good states (ControllerRevisions): {0}")]
    ReadGood(#[source] ApiError),
    #[error("cannot keep good states (ControllerRevisions): {0}")]
    KeepGood(#[source] ApiError),
    #[error("cannot keep the details of phases (ConfigMaps): {0}")]
    KeepDetails(#[source] ApiError),
    #[error("cannot store status.phases: {0}")]
    Status(#[source] ApiError),
    #[error(
        "cannot store status.phases, which takes {bytes} bytes beside the rest of the set: spread the generators with \
         phases over several ApplicationSets ({why})"
    )]
    TooLarge { bytes: usize, why: ApiError },
    #[error(
        "the API does not keep status.phases, so nothing can be begun: install Baton's definition of ApplicationSets \
         (`baton crds | kubectl apply --server-side -f -`)"
    )]
    NotKept,
}

// === impl Ruling ===

impl Ruling {
    /// Everybody is held.
    pub(super) fn held(round: &Round<'_>, version: u64, why: &str) -> Ruling {
        let each = round.targets.iter().flat_map(|(generator, targets)| {
            let ruled = Ruled { gate: Gate::Held(why.to_owned()), group: (*generator, 0) };
            targets.iter().map(move |target| (target.name.clone(), ruled.clone()))
        });
        Ruling { gates: each.collect(), version, waits: vec![Wait::of_phase(why)], ..Ruling::default() }
    }

    /// Adds what one generator rules. Where two give the same Application, both must let it through.
    pub(super) fn rule(&mut self, name: Arc<str>, ruled: Ruled) {
        match self.gates.get(&name) {
            Some(known) if !known.gate.is_open() => {}
            _ => drop(self.gates.insert(name, ruled)),
        }
    }
}

/// The newest run that phases are on record for.
pub(crate) fn newest_run(set: &ApplicationSet) -> u64 {
    let runs =
        set.status.phases.iter().filter_map(|phases| baton_phases::identity::run_of(&phases.rollout_id));
    runs.max().unwrap_or_default()
}
