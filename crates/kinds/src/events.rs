//! The two shapes of an Event: core/v1 and `events.k8s.io/v1` serve the same stored objects.

use serde_json::Value;

/// Fields that have another name in the other shape: core first.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Always written in the core shape, left out where empty in the other.
const INSTANCE: &str = "reportingInstance";

/// Turns a core/v1 Event into the `events.k8s.io/v1` shape.
pub fn event_to_new(event: &Value) -> Value {
    let mut event = renamed(event, "events.k8s.io/v1", &RENAMED);
    if let Some(fields) = event.as_object_mut()
        && fields.get(INSTANCE).is_some_and(|instance| instance == "")
    {
        fields.remove(INSTANCE);
    }
    event
}

/// Turns an `events.k8s.io/v1` Event into the core/v1 shape.
pub fn event_to_core(event: &Value) -> Value {
    let mut event = renamed(event, "v1", &RENAMED.map(|(core, new)| (new, core)));
    if let Some(fields) = event.as_object_mut() {
        fields.entry(INSTANCE).or_insert_with(|| "".into());
    }
    event
}

fn renamed(event: &Value, api_version: &str, names: &[(&str, &str)]) -> Value {
    let Some(fields) = event.as_object() else { return event.clone() };
    fields
        .iter()
        .map(|(name, value)| {
            let to = names.iter().find(|(from, _)| from == name).map_or(name.as_str(), |(_, to)| to);
            let value = if name == "apiVersion" { api_version.into() } else { value.clone() };
            (to.to_owned(), value)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_shapes_hold_the_same() {
        let core = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "Started", "type": "Normal",
            "involvedObject": {"name": "p"}, "message": "m", "source": {"component": "c"}, "count": 2,
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:01Z",
            "reportingComponent": "r", "reportingInstance": "i",
        });
        let new = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "Started",
            "type": "Normal", "regarding": {"name": "p"}, "note": "m", "deprecatedSource": {"component": "c"},
            "deprecatedCount": 2, "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z",
            "deprecatedLastTimestamp": "2026-01-01T00:00:01Z", "reportingController": "r", "reportingInstance": "i",
        });
        assert_eq!(event_to_new(&core), new);
        assert_eq!(event_to_core(&new), core);
    }

    #[test]
    fn only_the_core_shape_writes_an_empty_instance() {
        let new = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}});
        let core =
            json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reportingInstance": ""});
        assert_eq!(event_to_core(&new), core);
        assert_eq!(event_to_new(&core), new);
    }

    #[test]
    fn a_value_that_is_no_object_stays() {
        assert_eq!(event_to_core(&json!(1)), json!(1));
    }
}
