//! Sync waves.

use baton_api::names::resource::{HELM_HOOK_WEIGHT, SYNC_WAVE};
use baton_api::object::Object;
use serde_json::Value;

/// The wave of an object: its annotation, else Helm's weight, else 0. What is no number does not count.
pub fn of(object: &Value) -> i64 {
    let number = |name| object.annotation(name).and_then(|text| text.parse().ok());
    number(SYNC_WAVE).or_else(|| number(HELM_HOOK_WEIGHT)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_wave_is_a_whole_number_with_helms_weight_behind_it() {
        let cases = [
            (json!({}), 0),
            (json!({SYNC_WAVE: "3"}), 3),
            (json!({SYNC_WAVE: "-3"}), -3),
            (json!({SYNC_WAVE: "+3"}), 3),
            (json!({SYNC_WAVE: " 3"}), 0),
            (json!({SYNC_WAVE: "1.5", HELM_HOOK_WEIGHT: "-7"}), -7),
            (json!({HELM_HOOK_WEIGHT: "5"}), 5),
            (json!({SYNC_WAVE: "1", HELM_HOOK_WEIGHT: "5"}), 1),
            (json!({SYNC_WAVE: "99999999999999999999"}), 0),
        ];
        for (annotations, wave) in cases {
            let object = json!({"metadata": {"annotations": annotations}});
            assert_eq!(of(&object), wave, "{object}");
        }
    }
}
