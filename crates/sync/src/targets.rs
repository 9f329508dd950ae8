//! From rendered manifests to what is wanted of a cluster: namespaces, marks, doubles, hooks; and each target beside
//! its live object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::application_status::ApplicationCondition;
use baton_api::object::{KindInfo, Object, ResourceKey};
use serde_json::Value;

use crate::hooks::{self, HookType};
use crate::tracking::Tracking;

/// Looks a kind up by `apiVersion` and `kind`: `None` where the cluster does not serve it.
pub type Kinds<'a> = &'a (dyn Fn(&str, &str) -> Result<Option<KindInfo>, String> + Send + Sync);

/// Where manifests go, and whose they are.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// Namespace for objects that state none.
    pub namespace: &'a str,
    /// The Application, as it is written on objects.
    pub instance: &'a str,
    /// How it is written.
    pub tracking: &'a Tracking,
    /// What the cluster serves.
    pub kinds: Kinds<'a>,
}

/// What is wanted of a cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Targets {
    /// Objects that are no hooks; those annotated `Skip` among them.
    pub resources: Vec<Arc<Value>>,
    /// Hooks of a sync's phases.
    pub hooks: Vec<Arc<Value>>,
    /// Hooks that run before the Application's resources are deleted.
    pub pre_delete: Vec<Arc<Value>>,
    /// Hooks that run after they were deleted.
    pub post_delete: Vec<Arc<Value>>,
    /// `RepeatedResourceWarning` and `InvalidSpecError`, without times.
    pub conditions: Vec<ApplicationCondition>,
}

/// One object: as it is wanted, and as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Which object.
    pub key: ResourceKey,
    /// As it is wanted; absent where it is no longer in the source.
    pub target: Option<Arc<Value>>,
    /// As it is.
    pub live: Option<Arc<Value>>,
    /// Whether the two differ where it counts.
    pub modified: bool,
}

/// Puts manifests in place: namespaces by scope, marks of the Application, the last of doubles, hooks apart.
pub fn prepare(objects: &[Arc<Value>], place: &Place<'_>) -> Targets {
    let mut targets = Targets::default();
    let placed: Vec<Arc<Value>> =
        objects.iter().map(|object| put_in_place(object, place, &mut targets.conditions)).collect();
    for object in without_doubles(placed, &mut targets.conditions) {
        if hooks::has_type(&object, HookType::PreDelete) {
            targets.pre_delete.push(object.clone());
        }
        if hooks::has_type(&object, HookType::PostDelete) {
            targets.post_delete.push(object.clone());
        }
        if !hooks::is_hook(&object) {
            targets.resources.push(object);
        } else if !hooks::phases(&object).is_empty() {
            targets.hooks.push(object);
        }
    }
    targets
}

fn put_in_place(
    object: &Arc<Value>,
    place: &Place<'_>,
    conditions: &mut Vec<ApplicationCondition>,
) -> Arc<Value> {
    let mut object = Value::clone(object);
    // A kind the cluster does not serve yet may be either; objects with a namespace are the common case.
    let known = (place.kinds)(object.api_version(), object.kind());
    let namespaced = !matches!(known, Ok(Some(KindInfo { namespaced: false, .. })));
    let stated = !object.namespace().is_empty();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        if !namespaced {
            metadata.remove("namespace");
        } else if !stated && !place.namespace.is_empty() {
            metadata.insert("namespace".to_owned(), place.namespace.into());
        }
    }
    if matches!(known, Ok(Some(_))) && namespaced && object.namespace().is_empty() {
        let kind = format!("{}/{}, Kind={}", object.group(), object.version(), object.kind());
        conditions.push(condition(
            "InvalidSpecError",
            format!("Namespace for {} {kind} is missing.", object.name()),
        ));
    }
    place.tracking.stamp(&mut object, place.instance, place.namespace);
    Arc::new(object)
}

/// The last of each key, in the place of the last. Objects whose name is yet to be made are all different.
fn without_doubles(objects: Vec<Arc<Value>>, conditions: &mut Vec<ApplicationCondition>) -> Vec<Arc<Value>> {
    let mut counts: BTreeMap<ResourceKey, usize> = BTreeMap::new();
    for object in objects.iter().filter(|object| !object.name().is_empty()) {
        *counts.entry(object.key()).or_default() += 1;
    }
    for (key, count) in counts.iter().filter(|(_, count)| **count > 1) {
        conditions.push(condition(
            "RepeatedResourceWarning",
            format!("Resource {key} appeared {count} times among application resources."),
        ));
    }
    let mut seen = BTreeSet::new();
    let mut kept: Vec<Arc<Value>> = objects
        .into_iter()
        .rev()
        .filter(|object| object.name().is_empty() || seen.insert(object.key()))
        .collect();
    kept.reverse();
    kept
}

fn condition(kind: &str, message: String) -> ApplicationCondition {
    ApplicationCondition { kind: kind.to_owned(), message, last_transition_time: None }
}

/// Puts each target beside its live object, and the managed objects that have no target behind them, sorted by key.
///
/// `managed` are the live objects marked as the Application's own; `get` finds any other by key. Whether a pair differs
/// is not judged here: `modified` says whether either side is missing.
pub fn pair(
    targets: &[Arc<Value>],
    managed: &[Arc<Value>],
    get: &dyn Fn(&ResourceKey) -> Option<Arc<Value>>,
    kinds: Kinds<'_>,
) -> Vec<Pair> {
    let mut left: BTreeMap<ResourceKey, Arc<Value>> =
        managed.iter().map(|live| (live.key(), live.clone())).collect();
    let mut pairs = Vec::with_capacity(targets.len());
    let mut paired = BTreeSet::new();
    for target in targets {
        let found = keys(target, kinds)
            .into_iter()
            .find_map(|key| left.remove(&key).or_else(|| get(&key)).map(|live| (key, live)));
        let (key, live) = match found {
            Some((key, live)) => (key, Some(live)),
            None => (target.key(), None),
        };
        paired.extend(live.iter().map(|live| live.uid().to_owned()).filter(|uid| !uid.is_empty()));
        pairs.push(Pair { key, target: Some(target.clone()), modified: live.is_none(), live });
    }
    // One object may be served under two groups; where one of them is wanted, the other is no leftover.
    for (key, live) in left {
        if live.uid().is_empty() || paired.insert(live.uid().to_owned()) {
            pairs.push(Pair { key, target: None, live: Some(live), modified: true });
        }
    }
    pairs.sort_by(|a, b| a.key.cmp(&b.key));
    pairs
}

/// Where a target's live object may be. With the scope unknown it is looked for both ways, for what is not found is
/// pruned.
fn keys(target: &Value, kinds: Kinds<'_>) -> Vec<ResourceKey> {
    let key = target.key();
    match kinds(target.api_version(), target.kind()) {
        Ok(Some(info)) if info.namespaced => vec![key],
        Ok(Some(_)) => vec![key.in_namespace("")],
        Ok(None) | Err(_) => vec![key.in_namespace(""), key].into_iter().rev().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_api::names::resource::{HOOK, TRACKING_ID};
    use serde_json::json;

    fn kinds(_: &str, kind: &str) -> Result<Option<KindInfo>, String> {
        let info = |namespaced| Ok(Some(KindInfo { plural: String::new(), namespaced }));
        match kind {
            "ConfigMap" | "Job" => info(true),
            "ClusterRole" | "Namespace" => info(false),
            "Broken" => Err("no answer".to_owned()),
            _ => Ok(None),
        }
    }

    fn object(kind: &str, namespace: &str, name: &str) -> Arc<Value> {
        let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = json!(namespace);
        }
        Arc::new(object)
    }

    fn prepared(objects: &[Arc<Value>], namespace: &str) -> Targets {
        let tracking = Tracking::default();
        prepare(objects, &Place { namespace, instance: "a", tracking: &tracking, kinds: &kinds })
    }

    #[test]
    fn namespaces_follow_the_scope_of_the_kind() {
        let objects =
            ["ConfigMap", "ClusterRole", "Widget", "Broken"].map(|kind| object(kind, "", "x")).to_vec();
        let targets = prepared(&objects, "shop");
        let namespaces: Vec<&str> = targets.resources.iter().map(|object| object.namespace()).collect();
        assert_eq!(namespaces, ["shop", "", "shop", "shop"]);
        let stated =
            prepared(&[object("ConfigMap", "other", "x"), object("ClusterRole", "other", "x")], "shop");
        let namespaces: Vec<&str> = stated.resources.iter().map(|object| object.namespace()).collect();
        assert_eq!(namespaces, ["other", ""]);
        assert_eq!(stated.resources[1].annotation(TRACKING_ID), Some("a:/ClusterRole:shop/x"));
    }

    #[test]
    fn an_object_without_any_namespace_is_an_error() {
        let targets = prepared(&[object("ConfigMap", "", "x")], "");
        assert_eq!(targets.conditions.len(), 1);
        assert_eq!(targets.conditions[0].kind, "InvalidSpecError");
        assert_eq!(targets.conditions[0].message, "Namespace for x /v1, Kind=ConfigMap is missing.");
    }

    #[test]
    fn of_doubles_the_last_one_counts() {
        let mut last = Value::clone(&object("ConfigMap", "shop", "x"));
        last["data"] = json!({"a": "b"});
        let targets =
            prepared(&[object("ConfigMap", "", "x"), object("ConfigMap", "", "y"), Arc::new(last)], "shop");
        assert_eq!(targets.resources.len(), 2);
        assert_eq!(targets.resources[1]["data"]["a"], "b");
        assert_eq!(
            targets.conditions[0].message,
            "Resource /ConfigMap/shop/x appeared 2 times among application resources."
        );
    }

    #[test]
    fn hooks_are_told_apart_by_when_they_run() {
        let hook = |types: &str| {
            let mut hook = Value::clone(&object("Job", "", types));
            hook["metadata"]["annotations"] = json!({HOOK: types});
            Arc::new(hook)
        };
        let all = ["PreSync", "Skip", "Never", "PreDelete", "PostDelete,PostSync"].map(hook);
        let targets = prepared(&all, "shop");
        let names = |objects: &[Arc<Value>]| -> Vec<String> {
            objects.iter().map(|object| object.name().to_owned()).collect()
        };
        assert_eq!(names(&targets.hooks), ["PreSync", "PostDelete,PostSync"]);
        assert_eq!(names(&targets.resources), ["Skip"]);
        assert_eq!(names(&targets.pre_delete), ["PreDelete"]);
        assert_eq!(names(&targets.post_delete), ["PostDelete,PostSync"]);
    }

    #[test]
    fn targets_stand_beside_their_live_objects_and_leftovers_behind() {
        let targets = [
            object("ConfigMap", "shop", "a"),
            object("Widget", "shop", "w"),
            object("ConfigMap", "shop", "new"),
        ];
        let managed =
            [object("ConfigMap", "shop", "a"), object("Widget", "", "w"), object("ConfigMap", "shop", "old")];
        let pairs = pair(&targets, &managed, &|_| None, &kinds);
        let told: Vec<(&str, bool, bool)> = pairs
            .iter()
            .map(|pair| (pair.key.name.as_str(), pair.target.is_some(), pair.live.is_some()))
            .collect();
        assert_eq!(told, [("a", true, true), ("new", true, false), ("old", false, true), ("w", true, true)]);
    }

    #[test]
    fn an_object_of_nobody_is_found_by_key() {
        let live = object("ConfigMap", "shop", "a");
        let pairs =
            pair(std::slice::from_ref(&live), &[], &|key| (key.name == "a").then(|| live.clone()), &kinds);
        assert!(pairs[0].live.is_some() && !pairs[0].modified);
    }

    #[test]
    fn one_object_under_two_groups_is_no_leftover() {
        let with_uid = |api_version: &str| {
            Arc::new(json!({"apiVersion": api_version, "kind": "ConfigMap",
                "metadata": {"name": "i", "namespace": "shop", "uid": "u1"}}))
        };
        let managed = [with_uid("extensions/v1"), with_uid("v1")];
        let pairs = pair(&[object("ConfigMap", "shop", "i")], &managed, &|_| None, &kinds);
        assert_eq!(pairs.len(), 1);
        assert!(pairs[0].target.is_some());
        let alone = pair(&[], &managed, &|_| None, &kinds);
        assert_eq!(alone.len(), 1, "one object is deleted once");
    }
}
