//! Apply as kubectl does it without the server's help: what was applied last, what is there and what is wanted give
//! a patch.
//!
//! Custom kinds get a merge patch, in which a list that differs is replaced. Built-in kinds get a strategic merge
//! patch, whose lists the server merges by key; the keys that decide what was removed stand in a table here. A list
//! that is not in the table is sent whole, and the server does with it what its schema says.

use baton_api::names::resource::LAST_APPLIED;
use baton_api::object::{Object, annotations_mut};
use baton_sync::action::Outcome;
use http::Method;
use serde_json::{Map, Value, json};

use super::apply::Task;
use super::{CONFLICT_TRIES, applied, message};
use crate::error::ClusterError;
use crate::requests::{MERGE_PATCH, STRATEGIC_PATCH};

/// Deeper objects are not compared field by field.
const DEEPEST: usize = 64;

/// Lists of built-in kinds that are merged by a key. Of several keys the first that all items have is it.
const KEYED: &[(&str, &[&str])] = &[
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("ephemeralContainers", &["name"]),
    ("env", &["name"]),
    ("volumes", &["name"]),
    ("volumeMounts", &["mountPath"]),
    ("volumeDevices", &["devicePath"]),
    ("ports", &["containerPort", "port"]),
    ("imagePullSecrets", &["name"]),
    ("secrets", &["name"]),
    ("hostAliases", &["ip"]),
    ("topologySpreadConstraints", &["topologyKey"]),
    ("resourceClaims", &["name"]),
    ("webhooks", &["name"]),
];

/// Applies the object; on a conflict it looks again.
pub(super) async fn apply(task: &Task<'_>) -> Result<Outcome, ClusterError> {
    let wanted = with_last_applied(&task.object)?;
    let strategic = is_built_in(task.object.group());
    let content_type = if strategic { STRATEGIC_PATCH } else { MERGE_PATCH };
    let path = task.write_path(&task.path()?, "");
    let mut last = None;
    for _ in 0..CONFLICT_TRIES {
        let Some(live) = task.live().await? else {
            match task.create_as(&wanted).await {
                Err(error) if error.is_already_exists() => continue,
                outcome => return outcome,
            }
        };
        let before = live.annotation(LAST_APPLIED).and_then(|text| serde_json::from_str(text).ok());
        let mut patch = difference(&before.unwrap_or(Value::Null), &wanted, &live, strategic);
        if patch.as_object().is_none_or(Map::is_empty) {
            return Ok(applied(message::done(&live, "unchanged", task.wanted.dry_run), live));
        }
        patch["metadata"]["resourceVersion"] = live.resource_version().into();
        patch["metadata"]["uid"] = live.uid().into();
        match task.requests.write(Method::PATCH, &path, content_type, &patch).await {
            Ok(answer) => {
                return Ok(applied(
                    message::done(&answer.object, "configured", task.wanted.dry_run),
                    answer.object,
                ));
            }
            Err(error) if error.is_conflict() => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| ClusterError::NoAnswer("it was created and deleted meanwhile".to_owned())))
}

/// The object with its own text in the annotation that the next apply compares with.
fn with_last_applied(object: &Value) -> Result<Value, ClusterError> {
    let mut plain = object.clone();
    // kubectl writes the map even where it is empty.
    if let Some(annotations) = annotations_mut(&mut plain) {
        annotations.remove(LAST_APPLIED);
    }
    let text = serde_json::to_string(&plain).map_err(|error| ClusterError::NoAnswer(error.to_string()))?;
    if let Some(annotations) = annotations_mut(&mut plain) {
        annotations.insert(LAST_APPLIED.to_owned(), (text + "\n").into());
    }
    Ok(plain)
}

/// The patch from what is there to what is wanted, which removes what was applied before and is wanted no more.
fn difference(before: &Value, wanted: &Value, live: &Value, strategic: bool) -> Value {
    let empty = Map::new();
    let map = |value: &'_ Value| value.as_object().cloned().unwrap_or_else(|| empty.clone());
    let mut patch = fields(&map(before), &map(wanted), &map(live), strategic, 0);
    // What identifies the object is in the path, and its status is not ours.
    for field in ["apiVersion", "kind", "status"] {
        patch.remove(field);
    }
    Value::Object(patch)
}

fn fields(
    before: &Map<String, Value>,
    wanted: &Map<String, Value>,
    live: &Map<String, Value>,
    strategic: bool,
    depth: usize,
) -> Map<String, Value> {
    let mut patch = Map::new();
    for name in before.keys().filter(|name| !wanted.contains_key(*name) && live.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in wanted {
        // A null in a manifest is as good as nothing.
        let Some(there) = live.get(name) else {
            if !value.is_null() {
                patch.insert(name.clone(), value.clone());
            }
            continue;
        };
        let past = before.get(name).unwrap_or(&Value::Null);
        match (value, there) {
            _ if value == there => {}
            (Value::Object(value), Value::Object(there)) if depth < DEEPEST => {
                let none = Map::new();
                let past = past.as_object().unwrap_or(&none);
                let inner = fields(past, value, there, strategic, depth + 1);
                if !inner.is_empty() {
                    patch.insert(name.clone(), Value::Object(inner));
                }
            }
            (Value::Array(value), Value::Array(there)) if strategic && depth < DEEPEST => {
                list(name, past, value, there, depth, &mut patch);
            }
            _ => drop(patch.insert(name.clone(), value.clone())),
        }
    }
    patch
}

fn list(
    name: &str,
    past: &Value,
    wanted: &[Value],
    live: &[Value],
    depth: usize,
    patch: &mut Map<String, Value>,
) {
    let past = past.as_array().map_or(&[][..], Vec::as_slice);
    if name == "finalizers" {
        let gone: Vec<&Value> =
            past.iter().filter(|item| !wanted.contains(item) && live.contains(item)).collect();
        let new: Vec<&Value> = wanted.iter().filter(|item| !live.contains(item)).collect();
        if !gone.is_empty() {
            patch.insert("$deleteFromPrimitiveList/finalizers".to_owned(), json!(gone));
        }
        if !new.is_empty() {
            patch.insert(name.to_owned(), json!(new));
        }
        return;
    }
    let Some(key) = key_of(name, wanted, live) else {
        patch.insert(name.to_owned(), Value::Array(wanted.to_vec()));
        return;
    };
    let with_key = |items: &'_ [Value], id: &Value| items.iter().find(|item| item[key] == *id).cloned();
    let mut items = Vec::new();
    for item in wanted {
        let there = with_key(live, &item[key]);
        let (Some(wanted_fields), Some(there)) =
            (item.as_object(), there.as_ref().and_then(Value::as_object))
        else {
            items.push(item.clone());
            continue;
        };
        let past = with_key(past, &item[key]).and_then(|past| past.as_object().cloned()).unwrap_or_default();
        let mut inner = fields(&past, wanted_fields, there, true, depth + 1);
        if !inner.is_empty() {
            inner.insert(key.to_owned(), item[key].clone());
            items.push(Value::Object(inner));
        }
    }
    for item in past.iter().filter(|item| with_key(wanted, &item[key]).is_none()) {
        if with_key(live, &item[key]).is_some() {
            items.push(json!({"$patch": "delete", key: item[key]}));
        }
    }
    if !items.is_empty() {
        patch.insert(name.to_owned(), Value::Array(items));
    }
}

/// The key a list is merged by, if every item has one and no two the same.
fn key_of(name: &str, wanted: &[Value], live: &[Value]) -> Option<&'static str> {
    let (_, keys) = KEYED.iter().find(|(list, _)| *list == name)?;
    let is_key = |items: &[Value], key: &str| {
        let ids: Vec<&Value> = items.iter().map(|item| &item[key]).collect();
        let distinct = ids.iter().enumerate().all(|(place, id)| !ids[..place].contains(id));
        distinct && ids.iter().all(|id| !id.is_null())
    };
    keys.iter().find(|key| is_key(wanted, key) && is_key(live, key)).copied()
}

/// Whether a group is one of Kubernetes' own, whose lists the server can merge.
fn is_built_in(group: &str) -> bool {
    match group {
        "" | "apps" | "batch" | "autoscaling" | "policy" | "extensions" => true,
        group => {
            group.ends_with(".k8s.io")
                && matches!(
                    group.trim_end_matches(".k8s.io"),
                    "admissionregistration"
                        | "apiextensions"
                        | "apiregistration"
                        | "authentication"
                        | "authorization"
                        | "certificates"
                        | "coordination"
                        | "discovery"
                        | "events"
                        | "flowcontrol.apiserver"
                        | "internal.apiserver"
                        | "networking"
                        | "node"
                        | "rbac.authorization"
                        | "resource"
                        | "scheduling"
                        | "storage"
                        | "storagemigration"
                )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_left_the_manifest_goes_and_what_others_added_stays() {
        let before = json!({"spec": {"a": 1, "gone": 1}, "data": {"x": "1"}});
        let wanted = json!({"spec": {"a": 2}, "data": {"x": "1"}});
        let live = json!({"spec": {"a": 1, "gone": 1, "others": 1}, "data": {"x": "1"}, "status": {"s": 1}});
        assert_eq!(difference(&before, &wanted, &live, false), json!({"spec": {"a": 2, "gone": null}}));
        assert_eq!(
            difference(&wanted, &wanted, &json!({"spec": {"a": 2, "d": 0}, "data": {"x": "1"}}), true),
            json!({})
        );
    }

    #[test]
    fn lists_are_merged_by_key_in_built_in_kinds_and_replaced_in_others() {
        let before =
            json!({"containers": [{"name": "a", "image": "1", "tty": true}, {"name": "b", "image": "1"}]});
        let wanted = json!({"containers": [{"name": "a", "image": "2"}, {"name": "c", "image": "1"}]});
        let live = json!({"containers": [{"name": "a", "image": "1", "tty": true, "policy": "Always"},
            {"name": "b", "image": "1"}, {"name": "injected", "image": "9"}]});
        assert_eq!(
            difference(&before, &wanted, &live, true),
            json!({"containers": [{"name": "a", "image": "2", "tty": null}, {"name": "c", "image": "1"},
                {"name": "b", "$patch": "delete"}]})
        );
        assert_eq!(difference(&before, &wanted, &live, false), wanted);
    }

    #[test]
    fn a_list_whose_keys_are_not_plain_is_sent_whole() {
        let wanted = json!({"ports": [{"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP"}]});
        let live = json!({"ports": [{"port": 80, "protocol": "TCP"}]});
        assert_eq!(difference(&Value::Null, &wanted, &live, true), wanted);
    }

    #[test]
    fn finalizers_of_others_stay() {
        let before = json!({"metadata": {"finalizers": ["old", "ours"]}});
        let wanted = json!({"metadata": {"finalizers": ["ours", "new"]}});
        let live = json!({"metadata": {"finalizers": ["old", "ours", "theirs"]}});
        assert_eq!(
            difference(&before, &wanted, &live, true),
            json!({"metadata": {"finalizers": ["new"], "$deleteFromPrimitiveList/finalizers": ["old"]}})
        );
    }

    #[test]
    fn the_annotation_holds_the_object_without_itself() {
        let object = json!({"kind": "A", "metadata": {"name": "a"}});
        let once = with_last_applied(&object).expect("an object");
        let twice = with_last_applied(&once).expect("an object");
        assert_eq!(once, twice);
        let text = once.annotation(LAST_APPLIED).expect("the annotation");
        let back: Value = serde_json::from_str(text).expect("an object");
        assert_eq!((back.kind(), back.annotation(LAST_APPLIED)), ("A", None));
    }
}
