//! Events about an object, for people to read with `kubectl describe`.
//!
//! Writing them never holds up a reconcile: they go through a bounded channel and are dropped when it is full.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use serde_json::json;
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::objects::Objects;

/// Events that may wait to be written.
const WAITING: usize = 1000;

/// Hands over events.
#[derive(Clone)]
pub(crate) struct Recorder {
    sender: mpsc::Sender<Note>,
}

/// Writes events until every [`Recorder`] is gone.
pub(crate) struct Scribe {
    receiver: mpsc::Receiver<Note>,
    client: Client,
    clock: Clock,
    source: &'static str,
}

struct Note {
    about: ObjectReference,
    kind: &'static str,
    reason: &'static str,
    message: String,
}

/// A recorder, and the scribe that writes for it in the name of `source`.
pub(crate) fn channel(client: Client, clock: Clock, source: &'static str) -> (Recorder, Scribe) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Recorder { sender }, Scribe { receiver, client, clock, source })
}

impl Recorder {
    /// Notes that something normal happened.
    pub(crate) fn normal(&self, about: &ObjectReference, reason: &'static str, message: String) {
        self.note(Note { about: about.clone(), kind: "Normal", reason, message });
    }

    /// Notes that something went wrong.
    pub(crate) fn warning(&self, about: &ObjectReference, reason: &'static str, message: String) {
        self.note(Note { about: about.clone(), kind: "Warning", reason, message });
    }

    fn note(&self, note: Note) {
        if self.sender.try_send(note).is_err() {
            tracing::debug!("an event was dropped: too many wait to be written");
        }
    }
}

impl Scribe {
    /// Writes what is handed over. A failure is logged: an event is not worth a retry.
    pub(crate) async fn run(mut self) {
        let mut number: u64 = 0;
        while let Some(note) = self.receiver.recv().await {
            number += 1;
            if let Err(error) = self.write(&note, number).await {
                tracing::warn!(%error, reason = note.reason, "an event could not be written");
            }
        }
    }

    async fn write(&self, note: &Note, number: u64) -> Result<(), crate::objects::ApiError> {
        let now = self.clock.now();
        let namespace = note.about.namespace.as_deref().unwrap_or_default();
        let name = note.about.name.as_deref().unwrap_or_default();
        // Room for the rest of the event's own name.
        let name: String = name.chars().take(200).collect();
        // Several events of one moment are told apart by their number.
        let stamp = now.as_nanosecond().unsigned_abs() as u64;
        let time = self.clock.now_in_seconds().to_string();
        let event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": format!("{name}.{:x}", stamp.wrapping_add(number)), "namespace": namespace},
            "involvedObject": note.about,
            "type": note.kind,
            "reason": note.reason,
            "message": note.message,
            "source": {"component": self.source},
            "reportingComponent": self.source,
            "reportingInstance": "",
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
        });
        Objects::new(self.client.clone(), "v1", "events", namespace, false).create(&event).await.map(drop)
    }
}
