//! What is to be told: from an object, the configuration, the time and what is stored, to what is stored next.
//!
//! Pure. Nothing decided here is sent before it is stored; [`crate::pass`] keeps the order.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use crate::config::{Condition, Config, Patience};
use crate::notified::{DedupKey, Notified};
use crate::outbox::{DeliveryId, Entry, Outbox, Progress};
use crate::render;
use crate::subject::Subject;
use crate::subscription::{Destination, subscribed};

/// How often conditions that depend on the time are looked at.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_mins(1);

/// What is stored about an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// What has been told.
    pub notified: Notified,
    /// What is to be sent.
    pub outbox: Outbox,
}

/// What comes of a look at an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// What is stored next: the outbox first, then what has been told.
    pub state: State,
    /// What could not be evaluated, filled in or queued, and what was given up. No text of it holds a value of the
    /// Secret.
    pub complaints: Vec<String>,
    /// The triggers that were evaluated, and whether they were met.
    pub evaluated: Vec<(String, bool)>,
    /// When to look again without an event, beside what the outbox says.
    pub wake: Option<Timestamp>,
}

/// Decides about an object. Without one (it is gone) nothing new is told, and what is queued goes out.
pub fn decide(subject: Option<&Subject<'_>>, config: &Config, state: &State, now: Timestamp) -> Decision {
    let mut looking = Looking { config, now, live: BTreeSet::new(), decision: Decision::default() };
    looking.decision.state = state.clone();
    // While the status is older than the operation it tells of, nothing is known to be over.
    let is_known = !subject.is_some_and(Subject::is_stale);
    if let Some(subject) = subject
        && is_known
    {
        looking.look(subject);
    }
    looking.give_up(is_known);
    let live = std::mem::take(&mut looking.live);
    let mut decision = looking.decision;
    decision.state.notified.forget_oldest(&live);
    decision
}

/// Notes what has arrived as told, so that it can be taken out of the outbox. What was re-armed meanwhile is not
/// noted: the next occasion is another.
pub fn settle(state: &State, now: Timestamp) -> Notified {
    let mut notified = state.notified.clone();
    for entry in state.outbox.finished().filter(|entry| !entry.rearmed) {
        if !notified.contains(&entry.key) {
            notified.insert(entry.key.clone(), now);
        }
    }
    notified
}

struct Looking<'c> {
    config: &'c Config,
    now: Timestamp,
    /// The occasions there are now.
    live: BTreeSet<DedupKey>,
    decision: Decision,
}

// === impl Looking ===

impl Looking<'_> {
    fn look(&mut self, subject: &Subject<'_>) {
        let config = self.config;
        let subscribed = subscribed(subject, config);
        self.decision.complaints.extend(subscribed.complaints);
        for (trigger, destinations) in &subscribed.destinations {
            let Some(conditions) = config.triggers.get(trigger) else {
                self.decision.complaints.push(format!("there is no trigger {trigger}"));
                continue;
            };
            for condition in conditions.iter().filter(|condition| condition.kind == subject.kind) {
                self.judge(subject, trigger, condition, destinations);
            }
        }
    }

    fn judge(
        &mut self,
        subject: &Subject<'_>,
        trigger: &str,
        condition: &Condition,
        destinations: &BTreeSet<Destination>,
    ) {
        if condition.depends_on_time {
            self.decision.wake = self.now.checked_add(LOOK_AGAIN).ok();
        }
        let variables = self.config.surroundings.of_expressions(subject);
        let met = condition.when.holds(&variables, self.now).unwrap_or_else(|error| {
            self.complain(&format!("trigger {trigger}: when: {error}"));
            false
        });
        self.decision.evaluated.push((trigger.to_owned(), met));
        let once_per = match condition.once_per.as_ref().filter(|_| met) {
            None => String::new(),
            Some(once_per) => match once_per.evaluate(&variables, self.now) {
                Ok(value) => bounded(value.to_string()),
                Err(error) => {
                    self.complain(&format!("trigger {trigger}: oncePer: {error}"));
                    String::new()
                }
            },
        };
        for destination in destinations {
            let key = DedupKey::new(&once_per, trigger, &condition.key, destination);
            if met {
                self.live.insert(key.clone());
                self.queue(subject, trigger, condition, destination, key, once_per.is_empty());
            } else if condition.once_per.is_none() {
                self.decision.state.notified.remove(&key);
                self.decision.state.outbox.rearm(&key);
            }
        }
    }

    fn queue(
        &mut self,
        subject: &Subject<'_>,
        trigger: &str,
        condition: &Condition,
        to: &Destination,
        key: DedupKey,
        is_occasion_by_time: bool,
    ) {
        let state = &self.decision.state;
        if state.notified.contains(&key) || state.outbox.holds(&key) {
            return;
        }
        let message = match render::message(condition, subject, to, self.config, self.now) {
            Ok(message) => message,
            Err(why) => {
                self.complain(&format!("trigger {trigger} for {}: {why}", to.service));
                if !condition.until_delivered {
                    return;
                }
                render::fallback(trigger, condition, subject, &self.config.redactor.redact(&why))
            }
        };
        let about = subject.about();
        let entry = Entry {
            id: DeliveryId::new(&about, &key, is_occasion_by_time.then_some(self.now)),
            key,
            about,
            trigger: trigger.to_owned(),
            service: to.service.clone(),
            recipient: to.recipient.clone(),
            queued_at: self.now,
            attempts: 0,
            next_at: self.now,
            progress: Progress::Queued,
            rearmed: false,
            until_delivered: condition.until_delivered,
            last_fault: String::new(),
            message,
        };
        if !self.decision.state.outbox.push(entry) {
            self.complain(&format!(
                "trigger {trigger} for {}: the outbox is full, so it has to wait",
                to.service
            ));
        }
    }

    fn give_up(&mut self, is_known: bool) {
        let (live, config) = (&self.live, self.config);
        let patience = |service: &str| {
            config.services.get(service).map_or_else(Patience::default, |service| service.patience)
        };
        let still_met = |key: &DedupKey| !is_known || live.contains(key);
        let given_up = self.decision.state.outbox.give_up(self.now, still_met, patience);
        for entry in given_up {
            let Entry { trigger, service, attempts, last_fault, .. } = entry;
            self.complain(&format!(
                "{trigger} for {service} is given up after {attempts} attempts: {last_fault}"
            ));
        }
    }

    fn complain(&mut self, text: &str) {
        self.decision.complaints.push(self.config.redactor.redact(text));
    }
}

/// Longest value of `oncePer` that stands in a key as it is, in bytes. A revision, an identity or a time is far shorter;
/// of anything longer the hash does as well, and the annotation stays small.
const LONGEST_ONCE_PER: usize = 128;

fn bounded(once_per: String) -> String {
    if once_per.len() <= LONGEST_ONCE_PER {
        return once_per;
    }
    format!("sha256-{}", URL_SAFE_NO_PAD.encode(Sha256::digest(once_per.as_bytes())))
}
