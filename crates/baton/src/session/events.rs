//! What a server tells as it happens: server-sent events, each with a line of JSON.

use std::time::Duration;

use futures::stream::{BoxStream, StreamExt as _, unfold};
use reqwest::Response;
use serde_json::Value;

use super::remote::{MOST_BYTES, Remote};
use crate::failure::Failure;

/// A server says every 15 seconds that it is still there.
const SILENCE: Duration = Duration::from_secs(60);
/// How long a stream that broke is left alone at first, and at most.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(30)];

/// The events of one request.
pub(crate) struct Events {
    answer: Response,
    read: Vec<u8>,
}

/// Why nothing was told of an object.
#[derive(Debug)]
pub(crate) enum Interruption {
    /// It is asked for again.
    Lost(String),
    /// Asking again does not help.
    Refused(Failure),
}

/// One object as it changes: what it is, or nothing once it is gone.
pub(crate) type Sight = Result<Option<Value>, Interruption>;

/// Where one object is told of.
pub(crate) struct Watched {
    /// The path of the object itself.
    pub(crate) object: String,
    /// The path of the stream.
    pub(crate) stream: String,
    /// Under which name events have the object.
    pub(crate) field: &'static str,
}

// === impl Events ===

impl Events {
    pub(super) fn of(answer: Response) -> Events {
        Events { answer, read: Vec::new() }
    }

    /// The next event; none where the server has ended the stream.
    ///
    /// # Errors
    /// The stream broke, or the server says that it does not go on.
    pub(crate) async fn next(&mut self) -> Result<Option<Value>, String> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                match event(&line)? {
                    Some(event) => return Ok(Some(event)),
                    None => continue,
                }
            }
            let part = tokio::time::timeout(SILENCE, self.answer.chunk()).await;
            let part = part.map_err(|_| "the server has been silent for too long".to_owned())?;
            match part.map_err(|error| error.to_string())? {
                None => return Ok(None),
                Some(part) if self.read.len() + part.len() > MOST_BYTES => {
                    return Err("an event is far too long".to_owned());
                }
                Some(part) => self.read.extend_from_slice(&part),
            }
        }
    }
}

/// What a line of a stream says: an event, or nothing.
fn event(line: &[u8]) -> Result<Option<Value>, String> {
    let Some(data) = line.strip_prefix(b"data:") else { return Ok(None) };
    let mut event: Value =
        serde_json::from_slice(data).map_err(|error| format!("an event cannot be read: {error}"))?;
    match event["error"]["message"].as_str() {
        Some(message) => Err(message.to_owned()),
        None => Ok(Some(event["result"].take())),
    }
}

/// Follows one object for as long as somebody listens. A stream that breaks is begun anew.
pub(crate) fn follow(remote: Remote, watched: Watched) -> BoxStream<'static, Sight> {
    let follower = Follower { remote, watched, events: None, newest: 0, pause: PAUSES[0], waits: false };
    unfold(follower, |mut follower| async {
        let sight = follower.next().await;
        Some((sight, follower))
    })
    .boxed()
}

struct Follower {
    remote: Remote,
    watched: Watched,
    events: Option<Events>,
    /// The newest version that was seen: a stream may begin with an older one.
    newest: u64,
    pause: Duration,
    waits: bool,
}

// === impl Follower ===

impl Follower {
    async fn next(&mut self) -> Sight {
        loop {
            let Some(events) = &mut self.events else {
                match self.begin().await {
                    Ok(found) => return Ok(found.inspect(|object| self.newest = version(object))),
                    Err(interruption) => return Err(interruption),
                }
            };
            match events.next().await {
                Ok(Some(mut event)) => {
                    let object = event[self.watched.field].take();
                    if event["type"] == "DELETED" {
                        return Ok(None);
                    }
                    let version = version(&object);
                    if version == 0 || version > self.newest {
                        self.newest = version;
                        return Ok(Some(object));
                    }
                }
                Ok(None) => self.events = None,
                Err(why) => {
                    self.events = None;
                    return Err(Interruption::Lost(why));
                }
            }
        }
    }

    /// Listens, and only then looks: nothing falls between.
    async fn begin(&mut self) -> Result<Option<Value>, Interruption> {
        if std::mem::replace(&mut self.waits, true) {
            tokio::time::sleep(self.pause).await;
            self.pause = (self.pause * 2).min(PAUSES[1]);
        }
        let events = self.remote.events(&self.watched.stream).await.map_err(|refusal| {
            let is_final = refusal.is_final();
            let failure = Failure::from(refusal);
            if is_final { Interruption::Refused(failure) } else { Interruption::Lost(failure.to_string()) }
        })?;
        let found = self.remote.find(&self.watched.object).await;
        let found = found.map_err(|failure| Interruption::Lost(failure.to_string()))?;
        self.events = Some(events);
        self.pause = PAUSES[0];
        Ok(found)
    }
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_is_an_event_or_a_sign_of_life_or_the_end() {
        assert_eq!(event(b":\n"), Ok(None));
        assert_eq!(event(b"\n"), Ok(None));
        assert_eq!(event(b"data: {\"result\":{\"type\":\"ADDED\"}}\n"), Ok(Some(json!({"type": "ADDED"}))));
        let over = event(b"data: {\"error\":{\"message\":\"invalid session\"}}\n");
        assert_eq!(over, Err("invalid session".to_owned()));
        assert!(event(b"data: {\n").is_err());
    }
}
