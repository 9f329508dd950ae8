//! What is new in a rollout since somebody saw it last.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::board::{Lane, Rollout, Target};

/// The event that tells somebody of a rollout they have not seen.
pub fn added(rollout: &Rollout) -> Value {
    json!({"type": "ADDED", "rollout": rollout})
}

/// The event that tells that a rollout is gone.
pub fn deleted(name: &str, namespace: &str) -> Value {
    json!({"type": "DELETED", "rollout": {"name": name, "namespace": namespace}})
}

/// The event that tells somebody who wants a line of each rollout, where the line is new or another.
pub fn brief(before: Option<&Rollout>, after: &Rollout) -> Option<Value> {
    let word = match before {
        None => "ADDED",
        Some(before) if before.summary != after.summary => "MODIFIED",
        Some(_) => return None,
    };
    Some(json!({"type": word, "rollout": after.summary}))
}

/// The event that makes what somebody saw into what is; none where nothing changed.
///
/// Only Applications that changed are in it, each with its lane; one that moves is told in its new lane.
pub fn modified(before: &Rollout, after: &Rollout) -> Option<Value> {
    if before == after {
        return None;
    }
    let (old, new) = (targets(before), targets(after));
    let changed = new.iter().filter(|(name, now)| old.get(*name) != Some(now)).map(|(_, (lane, target))| {
        let mut told = json!(target);
        told["lane"] = (*lane).into();
        told
    });
    let changed: Vec<Value> = changed.collect();
    let removed: Vec<&str> = old.keys().filter(|name| !new.contains_key(*name)).copied().collect();
    let lanes = after.lanes.iter().map(|lane| Lane { targets: None, ..lane.clone() }).collect();
    let rollout = Rollout { lanes, ..after.clone() };
    Some(json!({"type": "MODIFIED", "rollout": rollout, "targets": changed, "removed": removed}))
}

fn targets(rollout: &Rollout) -> BTreeMap<&str, (&str, &Target)> {
    let lanes = rollout.lanes.iter();
    lanes
        .flat_map(|lane| {
            lane.targets.iter().flatten().map(|target| (target.name.as_str(), (lane.id.as_str(), target)))
        })
        .collect()
}
