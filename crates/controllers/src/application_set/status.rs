//! What a pass leaves in a set's status, as a patch of what changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::rollout_status::{DeletionStatus, RolloutStatus};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::conditions::{self, Standing, Verdict};
use crate::cache::{Listed, Record, Whole, written};

/// What a pass found out. What is none is left as it is.
#[derive(Default)]
pub(crate) struct Findings<'a> {
    pub(crate) verdict: Option<&'a Verdict>,
    /// What stands in the way of deletions.
    pub(crate) standing: Option<&'a Standing>,
    /// How far an ordered deletion is, if there is one.
    pub(crate) deletion: Option<Option<&'a DeletionStatus>>,
    /// The set's Applications; none where the pass did not get that far.
    pub(crate) applications: Option<&'a BTreeMap<Arc<str>, Arc<Record>>>,
    /// How many of them are listed; 0 is all.
    pub(crate) listed_at_most: usize,
}

/// The merge patch of the set's status, or none if it says all this already.
pub(crate) fn patch(set: &Whole, findings: &Findings<'_>, now: Timestamp) -> Option<Value> {
    let status = &set.status;
    let mut changes = Map::new();
    let conditions = conditions::after(set, findings.verdict, findings.standing, now);
    let health = conditions::health(&conditions);
    if !conditions::say_the_same(&conditions, &status.conditions) {
        changes.insert("conditions".to_owned(), json!(conditions));
    }
    if (&health.status, &health.message) != (&status.health.status, &status.health.message) {
        changes.insert("health".to_owned(), json!(health));
    }
    if let Some(applications) = findings.applications {
        let most = match findings.listed_at_most {
            0 => usize::MAX,
            most => most,
        };
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let listed = || applications.iter().take(most);
        let entries = listed().map(|(name, record)| (&**name, record.sync.as_str(), record.health.as_str()));
        if Listed::of(entries) != set.listed {
            let resource = |(name, record): (&Arc<str>, &Arc<Record>)| {
                written(name, namespace, record.sync.clone(), record.health.clone())
            };
            let resources: Vec<_> = listed().map(resource).collect();
            changes.insert("resources".to_owned(), or_null(resources.is_empty(), json!(resources)));
        }
        let count = i64::try_from(applications.len()).unwrap_or(i64::MAX);
        if status.resources_count != count {
            changes.insert("resourcesCount".to_owned(), or_null(count == 0, json!(count)));
        }
    }
    let rollout = status.rollout.as_ref();
    let known = rollout.and_then(|rollout| rollout.deletion.as_ref());
    match findings.deletion {
        Some(deletion) if deletion != known => {
            let only = rollout.is_none_or(|rollout| {
                RolloutStatus { deletion: None, ..rollout.clone() } == RolloutStatus::default()
            });
            let change = match deletion {
                None if only => Value::Null,
                deletion => json!({ "deletion": deletion }),
            };
            changes.insert("rollout".to_owned(), change);
        }
        _ => {}
    }
    (!changes.is_empty()).then(|| json!({ "status": changes }))
}

/// What is zero is not written.
fn or_null(is_zero: bool, value: Value) -> Value {
    if is_zero { Value::Null } else { value }
}
