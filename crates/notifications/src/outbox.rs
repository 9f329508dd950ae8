//! What is to be sent: entries that are stored before they are sent, and stay until they are known to have arrived.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::config::Patience;
use crate::message::Message;
use crate::notified::DedupKey;
use crate::subject::About;

/// Most entries of one object, and most bytes of their messages: well under what a Kubernetes object may hold. What
/// people are waited for with may use all of it, everything else three quarters.
const MOST_ENTRIES: usize = 64;
const MOST_BYTES: usize = 512 << 10;

/// How long an entry is tried that nobody waits for.
const GIVE_UP_AFTER: SignedDuration = SignedDuration::from_hours(72);

/// Longest text of a failure that is kept, in characters.
const LONGEST_FAULT: usize = 512;

/// The same for every attempt at a delivery, and for no other delivery.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeliveryId(String);

/// One delivery that is to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// What receivers can tell a repetition by.
    pub id: DeliveryId,
    /// The occasion.
    pub key: DedupKey,
    /// What it is about.
    pub about: About,
    /// The trigger it comes from.
    pub trigger: String,
    /// The service.
    pub service: String,
    /// Whom it goes to.
    pub recipient: String,
    /// When it was stored first.
    pub queued_at: Timestamp,
    /// How often it was tried in vain.
    pub attempts: u32,
    /// When it is tried next.
    pub next_at: Timestamp,
    /// How far it is.
    pub progress: Progress,
    /// Whether its condition was not met any more since: the next occasion is another.
    pub rearmed: bool,
    /// Tried for as long as its condition is met.
    pub until_delivered: bool,
    /// What went wrong last, without secrets.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_fault: String,
    /// What is told: the same at every attempt.
    pub message: Message,
}

/// How far a delivery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Progress {
    /// It is to be sent.
    Queued,
    /// It has arrived.
    Sent,
    /// It is not tried any more.
    GivenUp,
}

/// The deliveries of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Outbox {
    entries: Vec<Entry>,
}

/// An outbox that cannot be read. It is not taken for an empty one: what it holds would be sent twice, or never.
#[derive(Debug, thiserror::Error)]
#[error("the outbox cannot be read, so nothing is sent about this object; repair or delete it: {0}")]
pub struct Unreadable(#[source] serde_json::Error);

// === impl Unreadable ===

impl Unreadable {
    pub(crate) fn new(error: serde_json::Error) -> Unreadable {
        Unreadable(error)
    }
}

// === impl DeliveryId ===

impl DeliveryId {
    /// The id of an occasion. With `oncePer` it follows from object and key alone, so that a receiver knows it even
    /// if everything stored here is lost; without, occasions differ by their time.
    pub fn new(about: &About, key: &DedupKey, occasion: Option<Timestamp>) -> DeliveryId {
        let mut hash = Sha256::new();
        for part in [about.uid.as_str(), key.as_str()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        if let Some(occasion) = occasion {
            hash.update(occasion.as_millisecond().to_be_bytes());
        }
        DeliveryId(URL_SAFE_NO_PAD.encode(hash.finalize()))
    }

    /// Its text: letters, digits, `-` and `_`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A number from 0 to 255 that differs between deliveries.
    fn spread(&self) -> u32 {
        u32::from(Sha256::digest(self.0.as_bytes())[0])
    }
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl Entry ===

impl Entry {
    fn is_waiting(&self) -> bool {
        self.progress == Progress::Queued
    }

    /// Whether it has been tried for long enough. What people are waited for with is tried for as long as they are.
    fn is_exhausted(&self, still_met: bool, patience: &Patience, now: Timestamp) -> bool {
        if self.until_delivered && still_met {
            return false;
        }
        let out_of_attempts = patience.attempts.is_some_and(|most| self.attempts >= most);
        let out_of_time = self.attempts > 0 && now.duration_since(self.queued_at) >= GIVE_UP_AFTER;
        !self.until_delivered && out_of_attempts || out_of_time
    }
}

// === impl Outbox ===

impl Outbox {
    /// Reads what [`Outbox::to_text`] has written.
    ///
    /// # Errors
    /// Anything else.
    pub fn parse(text: &str) -> Result<Outbox, Unreadable> {
        serde_json::from_str(text).map_err(Unreadable)
    }

    /// The text it is stored as. It may hold secrets that templates have written into messages, so it belongs into a
    /// Secret.
    pub fn to_text(&self) -> String {
        // Maps here have plain names as keys, so this is always JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// All entries, the oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Those that are due, first what people are waited for with, then the oldest.
    pub fn due(&self, now: Timestamp) -> Vec<&Entry> {
        let mut due: Vec<&Entry> =
            self.entries.iter().filter(|entry| entry.is_waiting() && entry.next_at <= now).collect();
        due.sort_by_key(|entry| (!entry.until_delivered, entry.queued_at));
        due
    }

    /// When the next one is due.
    pub fn next_at(&self) -> Option<Timestamp> {
        self.entries.iter().filter(|entry| entry.is_waiting()).map(|entry| entry.next_at).min()
    }

    /// Whether this occasion is in here.
    pub(crate) fn holds(&self, key: &DedupKey) -> bool {
        self.entries.iter().any(|entry| entry.key == *key && !entry.rearmed)
    }

    /// Puts an entry in, if there is room.
    pub(crate) fn push(&mut self, entry: Entry) -> bool {
        let bytes: usize = self.entries.iter().map(|entry| entry.message.bytes()).sum();
        let share = |most: usize| if entry.until_delivered { most } else { most / 4 * 3 };
        let fits =
            self.entries.len() < share(MOST_ENTRIES) && bytes + entry.message.bytes() <= share(MOST_BYTES);
        if fits {
            self.entries.push(entry);
        }
        fits
    }

    /// The occasion of a key is over: what is still to be sent about it is sent, and the next is another.
    pub(crate) fn rearm(&mut self, key: &DedupKey) {
        self.entries.iter_mut().filter(|entry| entry.key == *key).for_each(|entry| entry.rearmed = true);
    }

    /// Gives up what has been tried for long enough.
    pub(crate) fn give_up(
        &mut self,
        now: Timestamp,
        still_met: impl Fn(&DedupKey) -> bool,
        patience: impl Fn(&str) -> Patience,
    ) -> Vec<Entry> {
        let mut given_up = Vec::new();
        for entry in &mut self.entries {
            if entry.is_waiting() && entry.is_exhausted(still_met(&entry.key), &patience(&entry.service), now)
            {
                entry.progress = Progress::GivenUp;
                given_up.push(entry.clone());
            }
        }
        given_up
    }

    /// Notes that a delivery has arrived.
    pub(crate) fn mark_sent(&mut self, id: &DeliveryId) {
        let found = self.entries.iter_mut().find(|entry| entry.id == *id);
        if let Some(entry) = found {
            entry.progress = Progress::Sent;
        }
    }

    /// Notes that a delivery has failed, and when it is tried again.
    pub(crate) fn mark_failed(
        &mut self,
        id: &DeliveryId,
        fault: &str,
        wait: Wait,
        patience: &Patience,
        now: Timestamp,
    ) {
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == *id) else { return };
        entry.attempts = entry.attempts.saturating_add(1);
        entry.last_fault = fault.chars().take(LONGEST_FAULT).collect();
        let doubled = patience.first.saturating_mul(1 << (entry.attempts - 1).min(24)).min(patience.longest);
        let wait = match wait {
            Wait::Usual => doubled,
            Wait::Longest => patience.longest,
            Wait::AtLeast(least) => doubled.max(least.min(Duration::from_secs(24 * 3600))),
        };
        // Many deliveries to one service fail together; they are not to come back together.
        let spread = wait / 8 * entry.id.spread() / 255;
        let wait = SignedDuration::try_from(wait + spread).unwrap_or(SignedDuration::from_hours(24));
        entry.next_at = now.checked_add(wait).unwrap_or(Timestamp::MAX);
    }

    /// Entries that are done with: what has to be noted as told before they are taken out.
    pub(crate) fn finished(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.is_waiting())
    }

    /// Takes out what is done with.
    pub(crate) fn clear_finished(&mut self) {
        self.entries.retain(Entry::is_waiting);
    }
}

/// How long to wait after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// As the number of attempts says.
    Usual,
    /// As long as the service is ever waited for: only a change of the configuration can help.
    Longest,
    /// As the receiver has asked for, or longer.
    AtLeast(Duration),
}
