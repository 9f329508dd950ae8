//! Rollouts as people see them: from a set and its Applications to lanes, gates and what can be asked for.

pub(crate) mod action;
mod aggregate;
mod board;
pub mod changes;
mod lanes;
mod past;
mod preview;
mod target;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use baton_api::{Application, ApplicationSet};
use parking_lot::RwLock;
use serde::Deserialize as _;
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

pub use action::Action;
pub use aggregate::{owned, rollout, sort};
pub use board::{
    Blocker, Condition, Counts, Gate, Lane, LaneState, Offer, Revision, Rollout, Run, State, Summary, Target,
    TargetState,
};
pub use preview::preview;

use crate::error::{Code, Error};
use crate::mirror::{Change, Key, Mirror, key};
use crate::server::Settings;

/// How often a set is told of at most.
const TICK: Duration = Duration::from_secs(1);
/// How long the first reading is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// The rollouts of all sets, put together once for everybody who watches. Clones are the same.
#[derive(Clone)]
pub(crate) struct Boards {
    boards: Arc<RwLock<BTreeMap<Key, Arc<Rollout>>>>,
    round: Arc<watch::Sender<u64>>,
}

// === impl Boards ===

impl Default for Boards {
    fn default() -> Boards {
        Boards { boards: Arc::default(), round: Arc::new(watch::Sender::new(0)) }
    }
}

impl Boards {
    /// Every rollout, by namespace and name.
    pub(crate) fn all(&self) -> BTreeMap<Key, Arc<Rollout>> {
        self.boards.read().clone()
    }

    /// Waits until they were put together once.
    ///
    /// # Errors
    /// It takes too long.
    pub(crate) async fn synced(&self) -> Result<(), Error> {
        let mut rounds = self.round.subscribe();
        match tokio::time::timeout(PATIENCE, rounds.wait_for(|round| *round > 0)).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(Error::new(Code::Unavailable, "the server has not read everything yet: try again")),
        }
    }

    /// Says when something changed.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.round.subscribe()
    }

    /// Puts together what changes, at most once a second, until dropped.
    pub(crate) async fn run(&self, sets: &Mirror, applications: &Mirror, settings: &Settings) {
        let (mut of_sets, mut of_applications) = (sets.subscribe(), applications.subscribe());
        let mut stale = Stale::All;
        loop {
            if sets.synced().await.is_ok() && applications.synced().await.is_ok() {
                self.refresh(&std::mem::take(&mut stale), sets, applications, settings);
            }
            tokio::select! {
                change = of_sets.recv() => stale.note_set(change),
                change = of_applications.recv() => stale.note_application(change),
            }
            tokio::time::sleep(TICK).await;
            while let Some(change) = pending(&mut of_sets) {
                stale.note_set(change);
            }
            while let Some(change) = pending(&mut of_applications) {
                stale.note_application(change);
            }
        }
    }

    fn refresh(&self, stale: &Stale, sets: &Mirror, applications: &Mirror, settings: &Settings) {
        let now = (settings.now)();
        let mut members: BTreeMap<Key, Vec<Arc<Value>>> = BTreeMap::new();
        for application in applications.all() {
            if let Some(set) = set_of(&application) {
                members.entry(set).or_default().push(application);
            }
        }
        let sets: BTreeMap<Key, Arc<Value>> = sets.all().into_iter().map(|set| (key(&set), set)).collect();
        let mut boards = self.boards.read().clone();
        let mut changed = false;
        for (key, set) in sets.iter().filter(|(key, _)| stale.holds(key) && settings.allows(&key.0)) {
            let own = members.get(key).map(Vec::as_slice).unwrap_or_default();
            let Some(board) = of_objects(set, own, now) else { continue };
            if boards.get(key).is_none_or(|known| **known != board) {
                boards.insert(key.clone(), Arc::new(board));
                changed = true;
            }
        }
        let before = boards.len();
        boards.retain(|key, _| sets.contains_key(key));
        let first = *self.round.borrow() == 0;
        if changed || first || boards.len() != before {
            *self.boards.write() = boards;
            self.round.send_modify(|round| *round += 1);
        }
    }
}

/// The rollout of a set and its Applications as they are stored; none where the set cannot be read.
pub(crate) fn of_objects(set: &Value, applications: &[Arc<Value>], now: jiff::Timestamp) -> Option<Rollout> {
    let set = ApplicationSet::deserialize(set).ok()?;
    let read = |value: &Arc<Value>| Application::deserialize(&**value).ok();
    let applications: Vec<Application> = applications.iter().filter_map(read).collect();
    Some(rollout(&set, &owned(&set, &applications), now))
}

/// The set that controls an Application.
pub(crate) fn set_of(application: &Value) -> Option<Key> {
    let owners = application["metadata"]["ownerReferences"].as_array()?;
    let owner =
        owners.iter().find(|owner| owner["controller"] == true && owner["kind"] == "ApplicationSet")?;
    Some((application["metadata"]["namespace"].as_str()?.to_owned(), owner["name"].as_str()?.to_owned()))
}

fn pending(receiver: &mut broadcast::Receiver<Change>) -> Option<Result<Change, RecvError>> {
    use tokio::sync::broadcast::error::TryRecvError;
    match receiver.try_recv() {
        Ok(change) => Some(Ok(change)),
        Err(TryRecvError::Lagged(count)) => Some(Err(RecvError::Lagged(count))),
        Err(TryRecvError::Empty | TryRecvError::Closed) => None,
    }
}

/// Which rollouts are to be put together anew.
enum Stale {
    All,
    Some(BTreeSet<Key>),
}

// === impl Stale ===

impl Default for Stale {
    fn default() -> Stale {
        Stale::Some(BTreeSet::new())
    }
}

impl Stale {
    fn holds(&self, key: &Key) -> bool {
        match self {
            Stale::All => true,
            Stale::Some(keys) => keys.contains(key),
        }
    }

    fn note_set(&mut self, change: Result<Change, RecvError>) {
        self.note(change, |object| Some(key(object)));
    }

    fn note_application(&mut self, change: Result<Change, RecvError>) {
        self.note(change, set_of);
    }

    fn note(&mut self, change: Result<Change, RecvError>, set: impl Fn(&Value) -> Option<Key>) {
        match (change, self) {
            (_, Stale::All) => {}
            (Ok(change), Stale::Some(keys)) => keys.extend(set(change.object())),
            (Err(_), all) => *all = Stale::All,
        }
    }
}
