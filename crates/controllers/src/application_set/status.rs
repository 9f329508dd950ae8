//! What a pass leaves in a set's status, as a patch of what changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::ApplicationSet;
use baton_api::application_status::{HealthStatus, ResourceStatus};
use baton_api::names::{GROUP, VERSION};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::conditions::{self, Verdict};
use crate::cache::Record;

/// What a pass found out.
pub(crate) struct Findings<'a> {
    pub(crate) verdict: &'a Verdict,
    /// The set's Applications; none where the pass did not get that far.
    pub(crate) applications: Option<&'a BTreeMap<Arc<str>, Arc<Record>>>,
    /// How many of them are listed; 0 is all.
    pub(crate) listed_at_most: usize,
    /// Whether entries of a rollout are stale and go.
    pub(crate) clear_rollout: bool,
}

/// The merge patch of the set's status, or none if it says all this already.
pub(crate) fn patch(set: &ApplicationSet, findings: &Findings<'_>, now: Timestamp) -> Option<Value> {
    let status = &set.status;
    let mut changes = Map::new();
    let conditions = conditions::after(set, findings.verdict, now);
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
        if !lists(&status.resources, applications, namespace, most) {
            let listed = applications.iter().take(most);
            let resources: Vec<_> = listed.map(|(name, record)| resource(name, namespace, record)).collect();
            changes.insert("resources".to_owned(), or_null(resources.is_empty(), json!(resources)));
        }
        let count = i64::try_from(applications.len()).unwrap_or(i64::MAX);
        if status.resources_count != count {
            changes.insert("resourcesCount".to_owned(), or_null(count == 0, json!(count)));
        }
    }
    if findings.clear_rollout && !status.application_status.is_empty() {
        changes.insert("applicationStatus".to_owned(), Value::Null);
    }
    (!changes.is_empty()).then(|| json!({ "status": changes }))
}

/// What is zero is not written.
fn or_null(is_zero: bool, value: Value) -> Value {
    if is_zero { Value::Null } else { value }
}

/// Whether the list shows these Applications as they are.
fn lists(
    resources: &[ResourceStatus],
    applications: &BTreeMap<Arc<str>, Arc<Record>>,
    namespace: &str,
    most: usize,
) -> bool {
    let shows = |(shown, (name, record)): (&ResourceStatus, (&Arc<str>, &Arc<Record>))| {
        let health = shown.health.as_ref().map(|health| &health.status);
        *shown.name == **name
            && shown.namespace == namespace
            && shown.status == record.sync
            && health.map_or_else(|| record.health.is_unset(), |health| *health == record.health)
            && (shown.group.as_str(), shown.version.as_str(), shown.kind.as_str())
                == (GROUP, VERSION, "Application")
    };
    resources.len() == applications.len().min(most) && resources.iter().zip(applications).all(shows)
}

fn resource(name: &str, namespace: &str, record: &Record) -> ResourceStatus {
    ResourceStatus {
        group: GROUP.to_owned(),
        version: VERSION.to_owned(),
        kind: "Application".to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        status: record.sync.clone(),
        health: Some(HealthStatus { status: record.health.clone(), ..HealthStatus::default() }),
        ..ResourceStatus::default()
    }
}
