//! Field defaults that clients see: what Kubernetes fills in where a client left something out.
//!
//! Amounts are also brought to their one written form here, since Kubernetes reads and rewrites them before anything else.

mod access;
mod pods;
mod services;
mod storage;
mod workloads;

use baton_grammar::quantity::Quantity;
use serde_json::Value;

use crate::Kind;
use crate::lookup::{at_mut, ensure, fill, set, text};

impl Kind {
    /// Fills in defaults, on create and on update, before [`Kind::prepare_create`] or [`Kind::prepare_update`] and validation.
    /// Whoever writes the object owns them, so owners are to be told apart between the two.
    pub fn default(&self, object: &mut Value) {
        match (self.group, self.plural) {
            ("", "pods") => pods::pod(object),
            ("", "podtemplates") => pods::template(object, "template"),
            ("", "replicationcontrollers") => workloads::replication_controller(object),
            ("", "services") => services::service(object),
            ("", "endpoints") => services::endpoints(object),
            ("", "secrets") => access::secret(object),
            ("", "namespaces") => namespace(object),
            ("", "nodes") => node(object),
            ("", "persistentvolumes") => storage::volume(object),
            ("", "persistentvolumeclaims") => storage::claim(object),
            ("", "resourcequotas") => amounts(object, &["spec.hard", "status.hard", "status.used"]),
            ("", "limitranges") => storage::limit_range(object),
            ("apps", "deployments") => workloads::deployment(object),
            ("apps", "statefulsets") => workloads::stateful_set(object),
            ("apps", "daemonsets") => workloads::daemon_set(object),
            ("apps", "replicasets") => workloads::replica_set(object),
            ("batch", "jobs") => workloads::job(object),
            ("batch", "cronjobs") => workloads::cron_job(object),
            ("autoscaling", _) => workloads::autoscaler(object),
            ("networking.k8s.io", "networkpolicies") => services::network_policy(object),
            ("networking.k8s.io", "ingressclasses") => services::ingress_class(object),
            ("discovery.k8s.io", _) => services::endpoint_slice(object),
            ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => access::binding(object),
            ("scheduling.k8s.io", "priorityclasses") => {
                fill(object, "preemptionPolicy", "PreemptLowerPriority")
            }
            ("storage.k8s.io", "storageclasses") => storage::class(object),
            ("storage.k8s.io", "csidrivers") => storage::driver(object),
            _ => {}
        }
    }
}

fn namespace(object: &mut Value) {
    const NAME_LABEL: &str = "kubernetes.io/metadata.name";
    let name = text(object, "metadata.name").to_owned();
    let labels = ensure(object, "metadata").and_then(|metadata| ensure(metadata, "labels"));
    if let Some(labels) = labels
        && !name.is_empty()
    {
        set(labels, NAME_LABEL, name);
    }
}

fn node(object: &mut Value) {
    ensure(object, "spec");
    amounts(object, &["status.capacity", "status.allocatable"]);
    let Some(status) = at_mut(object, "status") else { return };
    // What a node can give is what it has, unless its agent says otherwise.
    if let Some(capacity) = status.get("capacity").cloned().filter(Value::is_object) {
        fill(status, "allocatable", capacity);
    }
}

/// Brings the amounts in these maps to their one written form; what is no amount is left for validation.
fn amounts(object: &mut Value, paths: &[&str]) {
    for path in paths {
        if let Some(Value::Object(map)) = at_mut(object, path) {
            map.values_mut().for_each(amount);
        }
    }
}

/// Brings one amount to its one written form.
fn amount(value: &mut Value) {
    let read = match value {
        Value::String(text) => Quantity::parse(text.trim()),
        Value::Number(number) => Quantity::parse(&number.to_string()),
        _ => None,
    };
    if let Some(read) = read {
        *value = read.canonical().into();
    }
}

#[cfg(test)]
mod tests;
