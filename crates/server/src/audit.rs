//! Who did what: a line of the log and an Event beside the object, for every call that changes something, and for every one
//! that was denied, as many as whoever may do nothing can be let write.

use std::hash::{BuildHasher as _, RandomState};

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::error::{Code, Error};
use crate::objects::{EVENTS, Objects};

/// Annotations of the Events, by which they are read again.
pub(crate) const ACTOR: &str = "baton.dev/actor";
pub(crate) const VERB: &str = "baton.dev/verb";
pub(crate) const OUTCOME: &str = "baton.dev/outcome";
pub(crate) const WHY: &str = "baton.dev/reason";
pub(crate) const PROJECT: &str = "baton.dev/project";
pub(crate) const RIGHT: &str = "baton.dev/right";
const REQUEST: &str = "baton.dev/request";
const PROOF: &str = "baton.dev/proof";
/// Longest text of an Event.
const LONGEST: usize = 900;
/// How many denied calls of somebody are written down in [`WINDOW`]; of the rest only the number.
const MOST_DENIED: u32 = 20;
const WINDOW: SignedDuration = SignedDuration::from_mins(5);
/// Places in which callers are counted.
const CALLERS: usize = 1024;

/// What is recorded of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Deed {
    /// What was done, in one word such as `sync`.
    pub(crate) verb: &'static str,
    /// What the Event is told under: Argo CD's reason where it has one.
    pub(crate) reason: &'static str,
    /// What it was done to.
    pub(crate) object: Affected,
    /// Why, in the words of whoever did it.
    pub(crate) why: String,
    /// What exactly, where the verb does not say it.
    pub(crate) detail: String,
    /// Whoever may get this, by resource and object, is told of it, where its kind does not say who.
    pub(crate) right: Option<(&'static str, String)>,
}

/// What something was done to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Affected {
    /// Its kind.
    pub(crate) kind: &'static str,
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// Its uid.
    pub(crate) uid: String,
    /// Its project; empty where it has none.
    pub(crate) project: String,
}

/// Counts denied calls. The table has a fixed size: callers who share a place share what is written of them.
pub(crate) struct Denials {
    hash: RandomState,
    places: Mutex<Vec<Counted>>,
}

#[derive(Clone, Copy)]
struct Counted {
    since: Timestamp,
    count: u32,
}

/// Whether a call failed because the caller may not make it.
pub(crate) fn is_denial(error: &Error) -> bool {
    matches!(error.code, Code::PermissionDenied | Code::Unauthenticated)
}

/// Writes a deed down. The call does not fail with it: what was done was done.
pub(crate) async fn record(
    client: &Client,
    now: Timestamp,
    caller: &Caller,
    request: &str,
    deed: &Deed,
    outcome: &Result<(), Error>,
) {
    let (word, told) = match outcome {
        Ok(()) => ("done", ""),
        Err(error) if is_denial(error) => ("denied", ""),
        Err(error) => ("failed", error.message.as_str()),
    };
    let Affected { kind, namespace, name, project, .. } = &deed.object;
    tracing::info!(
        target: "baton::audit",
        actor = caller.actor(), proof = caller.proof.as_str(), issuer = caller.issuer, request,
        verb = deed.verb, kind, namespace, name, project, outcome = word, error = told,
        why = deed.why, detail = deed.detail,
    );
    // An Event is about something: where there is nothing, or nothing that is known of it, the log says all.
    if deed.object.name.is_empty() || (word == "denied" && deed.object.uid.is_empty()) {
        return;
    }
    let event = event(now, caller, request, deed, word, told);
    if let Err(error) = Objects::new(client, EVENTS, namespace).create(&event, false).await {
        tracing::warn!(target: "baton::audit", request, error = %error, "the Event of a call could not be written");
    }
}

// === impl Denials ===

impl Default for Denials {
    fn default() -> Denials {
        let never = Counted { since: Timestamp::MIN, count: 0 };
        Denials { hash: RandomState::new(), places: Mutex::new(vec![never; CALLERS]) }
    }
}

impl Denials {
    /// Whether another denied call of somebody is written down. What was left out is told of with the next that is.
    pub(crate) fn admit(&self, actor: &str, now: Timestamp) -> bool {
        let mut places = self.places.lock();
        let place = &mut places[self.hash.hash_one(actor) as usize % CALLERS];
        if now.duration_since(place.since) >= WINDOW {
            let left_out = place.count.saturating_sub(MOST_DENIED);
            if left_out > 0 {
                tracing::info!(target: "baton::audit", actor, outcome = "denied", left_out, "more calls were denied");
            }
            *place = Counted { since: now, count: 0 };
        }
        place.count = place.count.saturating_add(1);
        place.count <= MOST_DENIED
    }
}

fn event(now: Timestamp, caller: &Caller, request: &str, deed: &Deed, outcome: &str, told: &str) -> Value {
    let Affected { kind, namespace, name, uid, project } = &deed.object;
    let api_version = match *kind {
        "Secret" | "ConfigMap" => "v1",
        _ => baton_api::names::API_VERSION,
    };
    let mut message = format!("{} {}", caller.actor(), deed.verb);
    for (before, text) in [(" ", &*deed.detail), (": ", &*deed.why), (" failed: ", told)] {
        if !text.is_empty() {
            message.push_str(before);
            message.push_str(text);
        }
    }
    if outcome == "denied" {
        message.push_str(" denied");
    }
    message.truncate(message.floor_char_boundary(LONGEST));
    let time = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let short: String = name.chars().take(200).collect();
    let mut annotations = json!({
        ACTOR: caller.actor(), VERB: deed.verb, OUTCOME: outcome, REQUEST: request, PROOF: caller.proof.as_str(),
        "user": caller.actor(),
    });
    for (key, text) in [(WHY, &deed.why), (PROJECT, project)] {
        if !text.is_empty() {
            annotations[key] = text.as_str().into();
        }
    }
    if let Some((resource, object)) = &deed.right {
        annotations[RIGHT] = format!("{resource} {}", crate::masking::without_credentials(object)).into();
    }
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {
            "name": format!("{short}.{:x}{:04x}", now.as_nanosecond(), u16::from_be_bytes(crate::auth::password::random())),
            "namespace": namespace, "annotations": annotations,
        },
        "involvedObject": {
            "apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name, "uid": uid,
        },
        "type": if outcome == "done" { "Normal" } else { "Warning" },
        "reason": deed.reason,
        "message": message,
        "source": {"component": "baton-server"},
        "reportingComponent": "baton-server",
        "reportingInstance": "",
        "firstTimestamp": time, "lastTimestamp": time, "count": 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_denied_calls_some_are_written_down_and_the_rest_counted() {
        let denials = Denials::default();
        let at = |second| Timestamp::from_second(second).expect("a second");
        let admitted = (0..1000).filter(|_| denials.admit("mallory", at(0))).count();
        assert_eq!(admitted, MOST_DENIED as usize);
        assert!(!denials.admit("mallory", at(299)));
        assert!(denials.admit("mallory", at(300)), "after a while it is told again");
    }

    #[test]
    fn an_event_tells_who_did_what_and_why() {
        let mut caller = Caller::anonymous();
        caller.username = "alice".to_owned();
        let object = Affected { kind: "ApplicationSet", name: "web".to_owned(), ..Affected::default() };
        let deed = Deed {
            verb: "pause",
            reason: "BatonPaused",
            object,
            why: "it smells".to_owned(),
            ..Deed::default()
        };
        let told = event(Timestamp::UNIX_EPOCH, &caller, "r1", &deed, "done", "");
        assert_eq!(told["message"], "alice pause: it smells");
        assert_eq!(told["metadata"]["annotations"][WHY], "it smells");
        let told = event(Timestamp::UNIX_EPOCH, &caller, "r1", &deed, "failed", &"ö".repeat(2000));
        assert_eq!(told["type"], "Warning");
        assert!(told["message"].as_str().is_some_and(|text| text.len() <= LONGEST));
    }
}
