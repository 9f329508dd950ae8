//! Secret values, hidden so that one still sees whether they differ.

use baton_api::names::resource::LAST_APPLIED;
use serde_json::{Map, Value};

use crate::prepare::{is_secret, join_secret_data};
use crate::rules::Rules;

/// Stands for a value, whatever its length.
const HIDDEN: &str = "++++++++";
/// Stands for the target's value where the live object has another.
const HIDDEN_OTHER: &str = "++++++++++++";

/// Both objects with the values of Secrets, and annotations the operator calls sensitive, hidden: equal values stay
/// equal, different ones different, and lengths do not show. `null` is no object.
pub fn masked(target: &Value, live: &Value, rules: &Rules) -> (Value, Value) {
    mask(target, live, &rules.system().sensitive_annotations)
}

pub(crate) fn mask(target: &Value, live: &Value, sensitive: &[String]) -> (Value, Value) {
    let (mut target, mut live) = (target.clone(), live.clone());
    if is_secret(&target) || is_secret(&live) {
        for object in [&mut target, &mut live] {
            if let Some(secret) = object.as_object_mut() {
                join_secret_data(secret);
            }
        }
        for field in ["data", "stringData"] {
            hide(target.get_mut(field), live.get_mut(field));
        }
        hide_annotation(&mut target, &mut live, LAST_APPLIED);
    }
    for name in sensitive {
        hide_annotation(&mut target, &mut live, name);
    }
    (target, live)
}

/// Hides a map value by value, and anything else as a whole.
fn hide(target: Option<&mut Value>, live: Option<&mut Value>) {
    let is_map = |value: &Option<&mut Value>| value.as_ref().is_none_or(|value| value.is_object());
    if !(is_map(&target) && is_map(&live)) {
        return hide_value(target, live);
    }
    let (mut empty, mut void) = (Map::new(), Map::new());
    let target = target.and_then(Value::as_object_mut).unwrap_or(&mut empty);
    let live = live.and_then(Value::as_object_mut).unwrap_or(&mut void);
    for (name, value) in target.iter_mut() {
        hide_value(Some(value), live.get_mut(name));
    }
    for (_, value) in live.iter_mut().filter(|(name, _)| !target.contains_key(*name)) {
        hide_value(None, Some(value));
    }
}

fn hide_value(target: Option<&mut Value>, live: Option<&mut Value>) {
    let differ = matches!((&target, &live), (Some(target), Some(live)) if target != live);
    if let Some(target) = target {
        *target = Value::from(if differ { HIDDEN_OTHER } else { HIDDEN });
    }
    if let Some(live) = live {
        *live = Value::from(HIDDEN);
    }
}

fn hide_annotation(target: &mut Value, live: &mut Value, name: &str) {
    let [target, live] = [target, live]
        .map(|object| object.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()?.get_mut(name));
    hide_value(target, live);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemRules;
    use serde_json::json;

    fn secret(data: Value) -> Value {
        let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": data.to_string()});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"annotations": annotations}, "data": data})
    }

    #[test]
    fn equality_shows_and_nothing_else() {
        let target = secret(json!({"same": "c2FtZQ==", "changed": "bmV3", "new": "bmV3ZXI="}));
        let live = secret(json!({"same": "c2FtZQ==", "changed": "b2xk", "old": "b2xkZXI="}));
        let (target, live) = masked(&target, &live, &Rules::default());
        assert_eq!(target["data"], json!({"same": HIDDEN, "changed": HIDDEN_OTHER, "new": HIDDEN}));
        assert_eq!(live["data"], json!({"same": HIDDEN, "changed": HIDDEN, "old": HIDDEN}));
        let shown = format!("{target}{live}");
        for hidden in ["c2FtZQ", "bmV3", "b2xk"] {
            assert!(!shown.contains(hidden), "{shown}");
        }
        assert_eq!(masked(&target, &live, &Rules::default()), (target, live));
    }

    #[test]
    fn a_text_is_compared_with_the_data_it_becomes() {
        let target = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "same"}});
        let live = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "c2FtZQ=="}});
        let (target, live) = masked(&target, &live, &Rules::default());
        assert_eq!(target, live);
    }

    #[test]
    fn odd_secrets_are_hidden_as_well() {
        for odd in [json!("hush"), json!(["hush"]), json!({"a": ["hush"]}), json!({"a": {"hush": "hush"}})] {
            for field in ["data", "stringData"] {
                let mut target = json!({"apiVersion": "v1", "kind": "Secret"});
                target[field] = odd.clone();
                let (target, live) = masked(&target, &Value::Null, &Rules::default());
                assert!(!target.to_string().contains("hush"), "{target}");
                assert_eq!(live, Value::Null);
            }
        }
    }

    #[test]
    fn annotations_the_operator_names_are_hidden_in_every_kind() {
        let data = [("resource.sensitive.mask.annotations".to_owned(), "a/token, b".to_owned())].into();
        let system = SystemRules::from_config_map(&data).expect("settings");
        let rules = Rules::compile(&[], &system).expect("rules");
        let object = |token: &str| json!({"kind": "ConfigMap", "metadata": {"annotations": {"a/token": token, "c": "d"}}});
        let (target, live) = masked(&object("x"), &object("y"), &rules);
        assert_eq!(target["metadata"]["annotations"], json!({"a/token": HIDDEN_OTHER, "c": "d"}));
        assert_eq!(live["metadata"]["annotations"], json!({"a/token": HIDDEN, "c": "d"}));
    }
}
