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
use crate::cache::{ObjectKey, Observed, Record};
use crate::rollout::label_value;

/// How many Applications one pass deletes before others have their turn.
const BURST: usize = 50;
/// How many Applications that take long are looked at and named.
const NAMED: usize = 5;
/// How many Applications under way the status lists.
const LISTED: usize = 20;
/// How many characters of an Application's own words are repeated.
const QUOTED: usize = 300;

/// What is remembered of an ordered deletion between passes. Forgotten, it is found out again.
#[derive(Debug, Default)]
pub(crate) struct Teardown {
    order: Option<Order>,
    progress: Progress,
    /// Uid and position of every Application that is to go.
    places: BTreeMap<Arc<str>, (Arc<str>, usize)>,
    began: Option<Timestamp>,
    /// Applications that were named in an event.
    told: BTreeSet<Arc<str>>,
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
    /// Goes on with the deletion of the set's Applications for which `going` says so.
    ///
    /// # Errors
    /// The first Application by name that could not be deleted.
    pub(super) async fn tear_down(
        &self,
        executor: &Executor<'_>,
        teardown: &mut Teardown,
        order: &Order,
        going: &(dyn Fn(&str) -> bool + Sync),
        destinations: &Destinations,
    ) -> Result<Report, ApplyError> {
        let now = self.settings.clock.now_in_seconds();
        teardown.begin(order, now);
        for _ in 0..BURST {
            let owned = self.known.applications.lock().owned_by(executor.set);
            let doomed = teardown.doomed(&owned, going);
            let decision = match &doomed {
                Some(doomed) => deletion::decide(order, teardown.progress, doomed, now),
                None => Decision { read: true, ..Decision::default() },
            };
            if decision.read {
                let read = self.read_doomed(executor, order, going).await?;
                self.forget_gone(executor, &owned, going, &read).await?;
                teardown.prove(read);
                continue;
            }
            if decision.delete.is_empty() {
                return self.reported(executor, teardown, decision, now).await;
            }
            let failures = executor.delete(&decision.delete, &owned, destinations).await;
            if let Some((_, error)) = failures.into_iter().next() {
                return Err(error);
            }
        }
        // The rest has its turn after the other sets.
        let decision = Decision { wake: Some(now), ..Decision::default() };
        self.reported(executor, teardown, decision, now).await
    }

    /// Every Application that is to go, by one consistent list.
    async fn read_doomed(
        &self,
        executor: &Executor<'_>,
        order: &Order,
        going: &(dyn Fn(&str) -> bool + Sync),
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
            if observed.owner.as_deref() != Some(&*executor.set.name) || !going(&name) {
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
        going: &(dyn Fn(&str) -> bool + Sync),
        read: &[Doomed],
    ) -> Result<(), ApplyError> {
        let there: BTreeSet<&str> = read.iter().map(|doomed| &*doomed.uid).collect();
        for (name, record) in
            known.iter().filter(|(name, record)| going(name) && !there.contains(&*record.uid))
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
    fn begin(&mut self, order: &Order, now: Timestamp) {
        if self.order.as_ref() != Some(order) {
            let began = self.began.or(Some(now));
            *self = Teardown { order: Some(order.clone()), began, ..Teardown::default() };
        }
    }

    fn prove(&mut self, read: Vec<Doomed>) {
        self.progress = Progress::proved(&read);
        self.places = read.into_iter().map(|doomed| (doomed.name, (doomed.uid, doomed.position))).collect();
    }

    /// The Applications that are to go as far as they are known; none if the place of one is not.
    fn doomed(
        &self,
        owned: &BTreeMap<Arc<str>, Arc<Record>>,
        going: &(dyn Fn(&str) -> bool + Sync),
    ) -> Option<Vec<Doomed>> {
        let doomed = owned.iter().filter(|(name, _)| going(name)).map(|(name, record)| {
            let (uid, position) = self.places.get(name).filter(|(uid, _)| **uid == *record.uid)?;
            Some(Doomed {
                name: name.clone(),
                uid: uid.clone(),
                position: *position,
                terminating: record.deleting,
                held_by: None,
            })
        });
        doomed.collect()
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
