//! PersistentVolumeClaims.

use baton_api::health::Health;
use serde_json::Value;

use super::{degraded, healthy, progressing, text, unknown};

pub(super) fn claim(object: &Value) -> Health {
    match text(&object["status"]["phase"]) {
        "Lost" => degraded(""),
        "Pending" => progressing(""),
        "Bound" => healthy(""),
        _ => unknown(""),
    }
}
