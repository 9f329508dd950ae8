//! Fields that field selectors may name.

use serde_json::Value;

use crate::Kind;
use crate::lookup::{at, flag, int, list, text};

/// What a kind without fields of its own can be selected by, cluster-wide ones included.
const USUAL: &[&str] = &["metadata.name", "metadata.namespace"];

const POD: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
];

const EVENT: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

const NEW_EVENT: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
];

impl Kind {
    /// The paths a field selector may name; anything else is a bad request.
    pub fn field_selectors(&self) -> &'static [&'static str] {
        match (self.group, self.plural) {
            ("", "pods") => POD,
            ("", "nodes") => &["metadata.name", "spec.unschedulable"],
            ("", "namespaces") => &["metadata.name", "status.phase"],
            ("", "secrets") => &["metadata.name", "metadata.namespace", "type"],
            ("", "services") => &["metadata.name", "metadata.namespace", "spec.clusterIP", "spec.type"],
            ("", "replicationcontrollers") | ("apps", "replicasets") => {
                &["metadata.name", "metadata.namespace", "status.replicas"]
            }
            ("batch", "jobs") => &["metadata.name", "metadata.namespace", "status.successful"],
            ("", "events") => EVENT,
            ("events.k8s.io", "events") => NEW_EVENT,
            _ => USUAL,
        }
    }

    /// The value a field selector compares with, in Kubernetes' text form; `None` where the path cannot be selected by.
    ///
    /// An absent field is an empty string (or its zero value), as in Kubernetes.
    pub fn field_value(&self, object: &Value, path: &str) -> Option<String> {
        if !self.field_selectors().contains(&path) {
            return None;
        }
        Some(match (self.group, self.plural, path) {
            ("", "nodes", "spec.unschedulable") | ("", "pods", "spec.hostNetwork") => {
                flag(object, path).to_string()
            }
            (_, "replicationcontrollers" | "replicasets", "status.replicas") => {
                int(object, path).unwrap_or(0).to_string()
            }
            ("batch", "jobs", "status.successful") => {
                int(object, "status.succeeded").unwrap_or(0).to_string()
            }
            ("", "pods", "status.podIPs") => list(object, path)
                .iter()
                .map(|address| text(address, "ip"))
                .find(|address| !address.is_empty())
                .unwrap_or_default()
                .to_owned(),
            ("", "events", "source") => match text(object, "source.component") {
                "" => text(object, "reportingComponent").to_owned(),
                component => component.to_owned(),
            },
            _ => match at(object, path) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Bool(flag)) => flag.to_string(),
                Some(Value::Number(number)) => number.to_string(),
                _ => String::new(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::find;

    #[test]
    fn only_known_paths_have_values_and_absent_ones_are_zero() {
        let pod = json!({"metadata": {"name": "a", "namespace": "b"}, "spec": {"nodeName": "n"},
            "status": {"podIPs": [{"ip": "10.0.0.1"}]}});
        let pods = find("", "v1", "pods").expect("pods");
        for (path, expected) in [
            ("metadata.name", Some("a")),
            ("metadata.namespace", Some("b")),
            ("spec.nodeName", Some("n")),
            ("spec.hostNetwork", Some("false")),
            ("status.phase", Some("")),
            ("status.podIPs", Some("10.0.0.1")),
            ("spec.containers", None),
        ] {
            assert_eq!(pods.field_value(&pod, path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn each_kind_selects_by_what_clients_of_it_ask_for() {
        for (group, plural, object, path, expected) in [
            ("", "nodes", json!({"spec": {"unschedulable": true}}), "spec.unschedulable", "true"),
            ("", "namespaces", json!({"status": {"phase": "Active"}}), "status.phase", "Active"),
            ("", "secrets", json!({"type": "Opaque"}), "type", "Opaque"),
            ("", "services", json!({"spec": {"type": "ClusterIP"}}), "spec.type", "ClusterIP"),
            ("", "replicationcontrollers", json!({}), "status.replicas", "0"),
            ("apps", "replicasets", json!({"status": {"replicas": 2}}), "status.replicas", "2"),
            ("batch", "jobs", json!({"status": {"succeeded": 1}}), "status.successful", "1"),
            ("", "events", json!({"involvedObject": {"uid": "u"}}), "involvedObject.uid", "u"),
            ("", "events", json!({"reportingComponent": "c"}), "source", "c"),
            ("events.k8s.io", "events", json!({"regarding": {"name": "n"}}), "regarding.name", "n"),
            ("apps", "deployments", json!({"metadata": {"name": "d"}}), "metadata.name", "d"),
        ] {
            let kind = find(group, "v1", plural).expect(plural);
            assert_eq!(kind.field_value(&object, path).as_deref(), Some(expected), "{plural} {path}");
        }
        let nodes = find("", "v1", "nodes").expect("nodes");
        assert_eq!(nodes.field_value(&json!({}), "metadata.namespace"), None);
    }
}
