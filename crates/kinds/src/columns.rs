//! Tables: the columns `kubectl get` prints, and their cells.

mod access;
mod headings;
mod network;
mod nodes;
mod pods;
mod selectors;
mod storage;
mod workloads;

use jiff::Timestamp;
use serde_json::Value;

use crate::Kind;
use crate::age::since;
use crate::lookup::{at, fields, int, text};

/// One column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub name: &'static str,
    /// OpenAPI type of the cells.
    pub type_: &'static str,
    /// OpenAPI format of the cells; `name` marks the object's name.
    pub format: &'static str,
    /// What the column tells.
    pub description: &'static str,
    /// 0 is always shown; larger ones with `-o wide`.
    pub priority: i32,
}

impl Kind {
    /// The columns of a table of this kind.
    pub fn columns(&self) -> &'static [Column] {
        headings::of(self)
    }

    /// One row: a cell for each column.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let row = Row { object, now };
        match (self.group, self.plural) {
            ("", "pods") => pods::pod(row),
            ("", "podtemplates") => pods::template(row),
            ("", "replicationcontrollers") | ("apps", "replicasets") => workloads::replica_set(row),
            ("apps", "deployments") => workloads::deployment(row),
            ("apps", "statefulsets") => workloads::stateful_set(row),
            ("apps", "daemonsets") => workloads::daemon_set(row),
            ("apps", "controllerrevisions") => workloads::revision(row),
            ("batch", "jobs") => workloads::job(row),
            ("batch", "cronjobs") => workloads::cron_job(row),
            ("autoscaling", _) => workloads::autoscaler(row),
            ("policy", _) => workloads::disruption_budget(row),
            ("", "services") => network::service(row),
            ("", "endpoints") => network::endpoints(row),
            ("discovery.k8s.io", _) => network::endpoint_slice(row),
            ("networking.k8s.io", "ingresses") => network::ingress(row),
            ("networking.k8s.io", "ingressclasses") => network::ingress_class(row),
            ("networking.k8s.io", "networkpolicies") => network::policy(row),
            ("networking.k8s.io", "ipaddresses") => network::address(row),
            ("networking.k8s.io", "servicecidrs") => network::range(row),
            ("", "nodes") => nodes::node(row),
            ("", "namespaces") => vec![row.name(), row.text("status.phase"), row.age()],
            ("", "events") => nodes::event(row),
            ("events.k8s.io", _) => {
                nodes::event(Row { object: &crate::events::event_to_core(object), ..row })
            }
            ("", "secrets") => vec![row.name(), row.text("type"), row.count("data").into(), row.age()],
            ("", "configmaps") => {
                vec![row.name(), (row.count("data") + row.count("binaryData")).into(), row.age()]
            }
            ("", "serviceaccounts") => vec![row.name(), row.age()],
            ("", "resourcequotas") => nodes::quota(row),
            ("", "persistentvolumes") => storage::volume(row),
            ("", "persistentvolumeclaims") => storage::claim(row),
            ("storage.k8s.io", "storageclasses") => storage::class(row),
            ("storage.k8s.io", "csidrivers") => storage::driver(row),
            ("storage.k8s.io", "csinodes") => {
                vec![row.name(), row.length("spec.drivers").into(), row.age()]
            }
            ("storage.k8s.io", "volumeattachments") => storage::attachment(row),
            ("storage.k8s.io", "volumeattributesclasses") => {
                vec![row.name(), row.text("driverName"), row.age()]
            }
            ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => access::binding(row),
            ("coordination.k8s.io", _) => vec![row.name(), row.text("spec.holderIdentity"), row.age()],
            ("scheduling.k8s.io", _) => access::priority_class(row),
            _ => vec![row.name(), row.text("metadata.creationTimestamp")],
        }
    }
}

/// An object on its way to becoming a row.
#[derive(Clone, Copy)]
struct Row<'a> {
    object: &'a Value,
    now: Timestamp,
}

impl Row<'_> {
    fn name(&self) -> Value {
        self.text("metadata.name")
    }

    fn text(&self, path: &str) -> Value {
        text(self.object, path).into()
    }

    /// A text, or what stands for its absence.
    fn text_or(&self, path: &str, absent: &str) -> Value {
        match text(self.object, path) {
            "" => absent.into(),
            text => text.into(),
        }
    }

    fn int(&self, path: &str) -> i64 {
        int(self.object, path).unwrap_or(0)
    }

    fn length(&self, path: &str) -> usize {
        at(self.object, path).and_then(Value::as_array).map_or(0, Vec::len)
    }

    fn count(&self, path: &str) -> usize {
        fields(self.object, path).map_or(0, serde_json::Map::len)
    }

    fn age(&self) -> Value {
        self.since("metadata.creationTimestamp")
    }

    fn since(&self, path: &str) -> Value {
        since(at(self.object, path), self.now).into()
    }

    fn deleted(&self) -> bool {
        at(self.object, "metadata.deletionTimestamp").is_some()
    }
}

/// At most so many of a list, and how many more there are.
fn shortened(all: &[String], most: usize) -> String {
    let shown = all.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(",");
    if all.len() > most { format!("{shown} + {} more...", all.len() - most) } else { shown }
}

#[cfg(test)]
mod tests;
