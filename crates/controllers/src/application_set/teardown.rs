//! Deleting Applications in an order: those that generators dropped, and all of them when the set goes.
//!
//! Decisions are [`baton_rollout::deletion`]'s. This module keeps what they need between passes, so that a deletion
//! costs one consistent list per step and a read and a delete per Application, however many there are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use baton_api::application_set::ApplicationSetCondition;
use baton_api::conditions::{application as application_condition, reason};
use baton_api::names::baton::SET_LABEL;
use baton_api::rollout_status::{Blocker, DeletionStatus};
use baton_rollout::deletion::{self, Decision, Doomed, Order, Progress, Wait};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;
use serde_json::Value;

use super::Reconciler;
use super::destinations::Destinations;
use super::execute::{ApplyError, Executor};
use crate::cache::{Applications, ObjectKey, Observed, Record};
use crate::rollout::label_value;

/// How many Applications one pass deletes before others have their turn.
const BURST: usize = 50;
/// How many Applications that take long are looked at and named.
const NAMED: usize = 5;
/// How many Applications under way the status lists.
const LISTED: usize = 20;
/// How many characters of an Application's own words are repeated.
const QUOTED: usize = 300;

/// Whether an Application is to go, by its name and by whether it is being deleted already.
pub(crate) type Going<'a> = dyn Fn(&str, bool) -> bool + Sync + 'a;

/// What is remembered of an ordered deletion between passes. Forgotten, it is found out again.
#[derive(Debug, Default)]
pub(crate) struct Teardown {
    order: Option<Order>,
    /// Whether all are to go, and not those alone that have left the set.
    whole: bool,
    progress: Progress,
    /// Uid and position of every Application that is to go.
    places: BTreeMap<Arc<str>, (Arc<str>, usize)>,
    left: Option<Left>,
    /// Version of the set for which it was last asked how it is deleted.
    pub(crate) asked_at: Option<String>,
    began: Option<Timestamp>,
    /// Applications that were named in an event.
    told: BTreeSet<Arc<str>>,
}

/// What is left to go. Kept up to date by looking only at those whose turn it is, so that a step of a deletion does not
/// cost more in a larger set.
#[derive(Debug, Default)]
struct Left {
    /// Names and uids by position; no position is empty.
    positions: BTreeMap<usize, BTreeMap<Arc<str>, Arc<str>>>,
    count: usize,
    /// Those of the first position that are being deleted.
    under_way: BTreeSet<Arc<str>>,
    /// What [`Applications::joined`] said when this was made.
    joined: u64,
}

/// How far an ordered deletion is.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) status: DeletionStatus,
    /// Reason and message of the condition.
    pub(crate) condition: (&'static str, String),
    /// Whether nothing is left.
    pub(crate) done: bool,
    pub(crate) wake: Option<Duration>,
    /// Applications that take long, not told of before, each with what holds it.
    pub(crate) stuck: Vec<String>,
}

impl Reconciler {
    /// Goes on with the deletion of the set's Applications for which `going` says so; without it, of all.
    ///
    /// # Errors
    /// The first Application by name that could not be deleted.
    pub(super) async fn tear_down(
        &self,
        executor: &Executor<'_>,
        teardown: &mut Teardown,
        order: &Order,
        going: Option<&Going<'_>>,
        destinations: &Destinations,
    ) -> Result<Report, ApplyError> {
        let now = self.settings.clock.now_in_seconds();
        teardown.begin(order, going.is_none(), now);
        if going.is_some() {
            // Who is to go may be others than before.
            teardown.left = None;
        }
        let going = going.unwrap_or(&|_, _| true);
        let mut step = 0;
        for _ in 0..BURST {
            let mut decision = {
                let known = self.known.applications.lock();
                match teardown.next(order, executor.set, &known, going) {
                    Some(next) => deletion::decide(order, teardown.progress, &next, now),
                    None => Decision { read: true, ..Decision::default() },
                }
            };
            if decision.read {
                let owned = self.known.applications.lock().owned_by(executor.set);
                let read = self.read_doomed(executor, order, going).await?;
                self.forget_gone(executor, &owned, going, &read).await?;
                teardown.prove(read);
                continue;
            }
            decision.remaining = teardown.left.as_ref().map_or(0, |left| left.count);
            step = decision.step;
            if decision.delete.is_empty() {
                return self.reported(executor, teardown, decision, now).await;
            }
            let record = |name: &Arc<str>| {
                let record = self.known.applications.lock().one_of(executor.set, name)?;
                Some((name.clone(), record))
            };
            let owned: BTreeMap<Arc<str>, Arc<Record>> = decision.delete.iter().filter_map(record).collect();
            let failures = executor.delete(&decision.delete, &owned, destinations).await;
            if let Some((_, error)) = failures.into_iter().next() {
                return Err(error);
            }
        }
        // The rest has its turn after the other sets.
        let remaining = teardown.left.as_ref().map_or(0, |left| left.count);
        let decision = Decision { step, remaining, wake: Some(now), ..Decision::default() };
        self.reported(executor, teardown, decision, now).await
    }

    /// Every Application that is to go, by one consistent list.
    async fn read_doomed(
        &self,
        executor: &Executor<'_>,
        order: &Order,
        going: &Going<'_>,
    ) -> Result<Vec<Doomed>, ApplyError> {
        let owned = self.known.applications.lock().owned_by(executor.set);
        // Applications of before the set had an order do not have the label yet.
        let selector = owned
            .values()
            .all(|record| record.marked)
            .then(|| format!("{SET_LABEL}={}", label_value(&executor.set.name)));
        let mut read = Vec::new();
        let each = |live: Value| {
            let Ok(observed) = Observed::deserialize(&live) else { return };
            let name: Arc<str> = observed.metadata.name.as_deref().unwrap_or_default().into();
            if observed.owner.as_deref() != Some(&*executor.set.name)
                || !going(&name, observed.metadata.deletion_timestamp.is_some())
            {
                return;
            }
            let labels = live.pointer("/metadata/labels").cloned().unwrap_or_default();
            let labels: BTreeMap<String, String> = serde_json::from_value(labels).unwrap_or_default();
            read.push(Doomed {
                name,
                uid: observed.metadata.uid.as_deref().unwrap_or_default().into(),
                position: order.position(&labels),
                terminating: observed.metadata.deletion_timestamp.as_ref().map(|time| time.0),
                held_by: None,
            });
            self.known.applications.lock().fold(observed);
        };
        executor.objects.each(selector.as_deref(), each).await?;
        Ok(read)
    }

    /// Forgets Applications that were known before a consistent list and are not in it. The label may have been taken
    /// from one, so each is looked at.
    async fn forget_gone(
        &self,
        executor: &Executor<'_>,
        known: &BTreeMap<Arc<str>, Arc<Record>>,
        going: &Going<'_>,
        read: &[Doomed],
    ) -> Result<(), ApplyError> {
        let there: BTreeSet<&str> = read.iter().map(|doomed| &*doomed.uid).collect();
        for (name, record) in known
            .iter()
            .filter(|(name, record)| going(name, record.deleting.is_some()) && !there.contains(&*record.uid))
        {
            let live = executor.objects.get(name).await?;
            let uid = live.as_ref().and_then(|live| live.pointer("/metadata/uid")).and_then(Value::as_str);
            match live.as_ref().filter(|_| uid == Some(&record.uid)) {
                Some(live) => executor.fold(live),
                None => {
                    let key = ObjectKey { namespace: executor.set.namespace.clone(), name: name.clone() };
                    self.known.applications.lock().evict(&key, &record.uid);
                }
            }
        }
        Ok(())
    }

    async fn reported(
        &self,
        executor: &Executor<'_>,
        teardown: &mut Teardown,
        mut decision: Decision,
        now: Timestamp,
    ) -> Result<Report, ApplyError> {
        for wait in decision.waits.iter_mut().filter(|wait| wait.slow).take(NAMED) {
            wait.held_by = executor.objects.get(&wait.name).await?.as_ref().map(holders);
        }
        Ok(teardown.report(&decision, now))
    }
}

// === impl Teardown ===

impl Teardown {
    fn begin(&mut self, order: &Order, whole: bool, now: Timestamp) {
        // What was proved of those that leave says nothing of the others, once all are to go.
        if self.order.as_ref() != Some(order) || self.whole != whole {
            let (began, asked_at) = (self.began.or(Some(now)), self.asked_at.take());
            *self = Teardown { order: Some(order.clone()), whole, began, asked_at, ..Teardown::default() };
        }
    }

    fn prove(&mut self, read: Vec<Doomed>) {
        self.progress = Progress::proved(&read);
        self.places = read.into_iter().map(|doomed| (doomed.name, (doomed.uid, doomed.position))).collect();
        self.left = None;
    }

    /// Those whose turn it is: under way in the first position, and the next ones. None if the place of one that is to
    /// go is not known.
    fn next(
        &mut self,
        order: &Order,
        set: &ObjectKey,
        known: &Applications,
        going: &Going<'_>,
    ) -> Option<Vec<Doomed>> {
        let joined = known.joined(set);
        let left = match self.left.take() {
            Some(left) if left.joined == joined => left,
            _ => Left::new(&self.places, known.owned_by(set), joined, going)?,
        };
        let left = self.left.insert(left);
        let size = self.progress.size();
        Some(
            left.next(order, size, |name, uid| known.one_of(set, name).filter(|record| *record.uid == **uid)),
        )
    }

    fn report(&mut self, decision: &Decision, now: Timestamp) -> Report {
        let order = self.order.as_ref().map_or("", Order::as_str);
        let steps = self.order.as_ref().map_or(0, Order::positions);
        let slow: Vec<&Wait> = decision.waits.iter().filter(|wait| wait.slow).collect();
        let place =
            format!("Applications are deleted in the order {order}: step {} of {steps}", decision.step);
        let condition = match slow.is_empty() {
            true => (reason::ORDERED_DELETION, place),
            false => {
                let named: Vec<String> = slow.iter().take(NAMED).map(|wait| told(wait)).collect();
                let more = match slow.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    more => format!("; and {more} more"),
                };
                (reason::APPLICATION_STUCK, format!("{place}, which waits for {}{more}", named.join("; ")))
            }
        };
        let fresh: Vec<&&Wait> = slow.iter().filter(|wait| !self.told.contains(&wait.name)).collect();
        let stuck = fresh.iter().take(NAMED).map(|wait| told(wait)).collect();
        let names: Vec<Arc<str>> = fresh.iter().map(|wait| wait.name.clone()).collect();
        self.told.extend(names);
        let blocker = |wait: &&Wait| Blocker {
            reason: "Leaving".to_owned(),
            object: wait.name.to_string(),
            message: wait.held_by.clone().unwrap_or_default(),
            since: Some(Time(wait.since)),
            remedy: "what holds it to be mended, or its finalizers to be removed".to_owned(),
            ..Blocker::default()
        };
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        Report {
            status: DeletionStatus {
                order: order.to_owned(),
                step: number(decision.step),
                total_steps: number(steps),
                remaining: number(decision.remaining),
                deleting: decision.waits.iter().take(LISTED).map(|wait| wait.name.to_string()).collect(),
                started_at: self.began.map(Time),
                blockers: slow.iter().take(NAMED).map(blocker).collect(),
            },
            condition,
            done: decision.done,
            wake: decision.wake.and_then(|at| Duration::try_from(at.duration_since(now)).ok()),
            stuck,
        }
    }
}

// === impl Left ===

impl Left {
    /// Everything that is to go, or none if the place of one is not known.
    fn new(
        places: &BTreeMap<Arc<str>, (Arc<str>, usize)>,
        owned: BTreeMap<Arc<str>, Arc<Record>>,
        joined: u64,
        going: &Going<'_>,
    ) -> Option<Left> {
        let mut left = Left { joined, ..Left::default() };
        let mut deleting = Vec::new();
        for (name, record) in
            owned.into_iter().filter(|(name, record)| going(name, record.deleting.is_some()))
        {
            let (uid, position) = places.get(&name).filter(|(uid, _)| **uid == *record.uid)?;
            left.positions.entry(*position).or_default().insert(name.clone(), uid.clone());
            left.count += 1;
            if record.deleting.is_some() {
                deleting.push((*position, name));
            }
        }
        let first = left.positions.keys().next().copied();
        let here = deleting.into_iter().filter(|(position, _)| Some(*position) == first);
        left.under_way = here.map(|(_, name)| name).collect();
        Some(left)
    }

    /// Those of the first position that are under way, and as many more as may be. What is gone is forgotten.
    fn next(
        &mut self,
        order: &Order,
        size: usize,
        record: impl Fn(&Arc<str>, &Arc<str>) -> Option<Arc<Record>>,
    ) -> Vec<Doomed> {
        loop {
            let Some(mut first) = self.positions.first_entry() else { return Vec::new() };
            let position = *first.key();
            let names = first.get_mut();
            let most = order.limit(position, size.max(names.len()));
            let turn = self.under_way.iter().filter_map(|name| names.get_key_value(name));
            let others = names.iter().filter(|(name, _)| !self.under_way.contains(*name)).take(most);
            let mut next = Vec::new();
            let mut gone = Vec::new();
            for (name, uid) in turn.chain(others) {
                match record(name, uid) {
                    None => gone.push(name.clone()),
                    Some(record) => next.push(Doomed {
                        name: name.clone(),
                        uid: uid.clone(),
                        position,
                        terminating: record.deleting,
                        held_by: None,
                    }),
                }
            }
            self.under_way =
                next.iter().filter(|one| one.terminating.is_some()).map(|one| one.name.clone()).collect();
            if gone.is_empty() {
                return next;
            }
            self.count -= gone.len();
            gone.iter().for_each(|name| drop(names.remove(name)));
            if names.is_empty() {
                first.remove();
            }
        }
    }
}

/// A wait in words.
fn told(wait: &Wait) -> String {
    let held = wait.held_by.as_deref().filter(|held| !held.is_empty());
    let held = held.map(|held| format!(", {held}")).unwrap_or_default();
    format!("Application {} (being deleted since {}{held})", wait.name, wait.since)
}

/// What holds an Application that is being deleted, in words: its finalizers, and what it says about it.
fn holders(live: &Value) -> String {
    let finalizers = live.pointer("/metadata/finalizers").and_then(Value::as_array);
    let names: Vec<&str> = finalizers.into_iter().flatten().filter_map(Value::as_str).collect();
    let conditions = live.pointer("/status/conditions").cloned().unwrap_or_default();
    let conditions: Vec<ApplicationSetCondition> = serde_json::from_value(conditions).unwrap_or_default();
    let about_deletion = [
        application_condition::DELETION_ERROR,
        application_condition::DELETION_WAITING_INFO,
        application_condition::DELETION_APPROVAL_REQUIRED_INFO,
    ];
    let mut parts = vec![match names[..] {
        [] => "held by nothing that it names".to_owned(),
        [one] => format!("held by the finalizer {one}"),
        _ => format!("held by the finalizers {}", names.join(", ")),
    }];
    for condition in conditions.iter().filter(|condition| about_deletion.contains(&condition.kind.as_str())) {
        let message: String = condition.message.chars().take(QUOTED).collect();
        parts.push(format!("{}: {message}", condition.kind));
    }
    parts.join(", ")
}
