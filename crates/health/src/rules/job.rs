//! Jobs.

use baton_api::health::Health;
use serde_json::Value;

use super::{condition, degraded, healthy, holds, progressing, suspended, text};

/// A condition counts while it holds: a Job that was resumed keeps `Suspended` with the status `False`.
pub(super) fn job(object: &Value) -> Health {
    let message = |kind| condition(object, kind).filter(|it| holds(it)).map(|it| text(&it["message"]));
    if let Some(message) = message("Failed") {
        return degraded(message);
    }
    if let Some(message) = message("Suspended") {
        return suspended(message);
    }
    match message("Complete") {
        Some(message) => healthy(message),
        None => progressing(""),
    }
}
