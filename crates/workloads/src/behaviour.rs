//! The `sim.baton.dev/` annotations: how one object is told to be slow, stuck or failing.

use crate::object::{at, text};
use serde_json::{Map, Value};
use std::time::Duration;

/// Prefix of every annotation the simulator reads.
pub const PREFIX: &str = "sim.baton.dev/";

/// Written by the simulator on children: the annotations of their owners, as a JSON object. Not for users.
pub const INHERITED: &str = "sim.baton.dev/inherited";

/// Longer delays than this read as this: a year is as good as stuck, and keeps time arithmetic in range.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// What the annotations on one object (its own first, then its owners') ask for.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Behaviour {
    pub(crate) delay: Option<Duration>,
    pub(crate) stuck: bool,
    pub(crate) fail: Option<String>,
    pub(crate) deletion_delay: Option<Duration>,
}

// === impl Behaviour ===

impl Behaviour {
    pub(crate) fn of(object: &Value) -> Self {
        let wishes = wishes(object);
        let get = |key: &str| wishes.get(key).and_then(Value::as_str).map(str::trim);
        Self {
            delay: get("delay").and_then(parse_duration),
            stuck: get("stuck").is_some_and(says_yes),
            fail: get("fail").filter(|reason| says_yes(reason)).map(str::to_owned),
            deletion_delay: get("deletion-delay").and_then(parse_duration),
        }
    }
}

/// The value of [`INHERITED`] for the children of `owner`; `None` when there is nothing to hand down.
pub(crate) fn inheritance(owner: &Value) -> Option<String> {
    let wishes = wishes(owner);
    if wishes.is_empty() {
        return None;
    }
    // Sorted by hand: the map's own order depends on a feature another crate may switch on.
    let mut entries: Vec<_> = wishes.into_iter().collect();
    entries.sort_by(|left, right| left.0.cmp(&right.0));
    Some(Value::Object(entries.into_iter().collect()).to_string())
}

/// Wishes by short key, the object's own over the inherited ones.
fn wishes(object: &Value) -> Map<String, Value> {
    let mut wishes: Map<String, Value> =
        serde_json::from_str(text(object, &["metadata", "annotations", INHERITED])).unwrap_or_default();
    wishes.retain(|_, value| value.is_string());
    for (key, value) in at(object, &["metadata", "annotations"]).as_object().into_iter().flatten() {
        let Some(short) = key.strip_prefix(PREFIX) else { continue };
        if key != INHERITED && value.is_string() {
            wishes.insert(short.to_owned(), value.clone());
        }
    }
    wishes
}

fn says_yes(value: &str) -> bool {
    !matches!(value, "" | "false" | "no" | "0")
}

/// A Go-style duration (`1m30s`, `500ms`, `0`), never negative; anything else is `None`.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let read: baton_grammar::duration::Duration = text.parse().ok()?;
    read.to_std().map(|duration| duration.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        for (text, expected) in [
            ("30s", Some(30_000)),
            ("1m30s", Some(90_000)),
            ("1.5s", Some(1500)),
            ("250ms", Some(250)),
            ("0", Some(0)),
            ("999999h", Some(365 * 24 * 3_600_000)),
            ("", None),
            ("5", None),
            ("-5s", None),
            ("1d", None),
            (".s", None),
            ("µ", None),
        ] {
            let parsed = parse_duration(text).map(|duration| duration.as_millis());
            assert_eq!(parsed, expected, "{text:?}");
        }
    }

    #[test]
    fn an_own_annotation_wins_over_an_inherited_one() {
        let pod = json!({"metadata": {"annotations": {
            INHERITED: r#"{"stuck":"true","delay":"1s","fail":7}"#, "sim.baton.dev/stuck": "false"}}});
        let behaviour = Behaviour::of(&pod);
        assert!(!behaviour.stuck);
        assert_eq!(behaviour.delay, Some(Duration::from_secs(1)));
        assert_eq!(behaviour.fail, None);
    }

    #[test]
    fn inheritance_passes_on_what_was_itself_inherited() {
        let set =
            json!({"metadata": {"annotations": {INHERITED: r#"{"fail":"x"}"#, "sim.baton.dev/delay": "2s"}}});
        assert_eq!(inheritance(&set).as_deref(), Some(r#"{"delay":"2s","fail":"x"}"#));
        assert_eq!(inheritance(&json!({"metadata": {}})), None);
    }
}
