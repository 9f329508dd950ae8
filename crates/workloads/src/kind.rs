//! The kinds the simulator reads or writes.

use serde_json::Value;

/// A kind the simulator reads or writes, always at its one current version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each variant is the kind it is named after")]
pub enum Kind {
    ConfigMap,
    ControllerRevision,
    DaemonSet,
    Deployment,
    Ingress,
    Job,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    Service,
    ServiceAccount,
    StatefulSet,
}

// === impl Kind ===

impl Kind {
    /// The kinds whose changes matter: watch these, and feed each change to
    /// [`affected_by`](crate::affected_by).
    pub const WATCHED: [Self; 16] = [
        Self::ConfigMap,
        Self::ControllerRevision,
        Self::DaemonSet,
        Self::Deployment,
        Self::Ingress,
        Self::Job,
        Self::Namespace,
        Self::Node,
        Self::PersistentVolume,
        Self::PersistentVolumeClaim,
        Self::Pod,
        Self::PodDisruptionBudget,
        Self::ReplicaSet,
        Self::Service,
        Self::ServiceAccount,
        Self::StatefulSet,
    ];

    /// The kind of a stored object, by its `apiVersion` and `kind`.
    pub fn of(object: &Value) -> Option<Self> {
        Self::parse(object["apiVersion"].as_str()?, object["kind"].as_str()?)
    }

    /// The kind called `kind` in `api_version` (as in an owner reference).
    pub fn parse(api_version: &str, kind: &str) -> Option<Self> {
        let known = match kind {
            "ConfigMap" => Self::ConfigMap,
            "ControllerRevision" => Self::ControllerRevision,
            "DaemonSet" => Self::DaemonSet,
            "Deployment" => Self::Deployment,
            "Ingress" => Self::Ingress,
            "Job" => Self::Job,
            "Namespace" => Self::Namespace,
            "Node" => Self::Node,
            "PersistentVolume" => Self::PersistentVolume,
            "PersistentVolumeClaim" => Self::PersistentVolumeClaim,
            "Pod" => Self::Pod,
            "PodDisruptionBudget" => Self::PodDisruptionBudget,
            "ReplicaSet" => Self::ReplicaSet,
            "Service" => Self::Service,
            "ServiceAccount" => Self::ServiceAccount,
            "StatefulSet" => Self::StatefulSet,
            _ => return None,
        };
        (known.api_version() == api_version).then_some(known)
    }

    /// The `kind` field of its objects.
    pub fn kind(self) -> &'static str {
        self.names().0
    }

    /// The plural under which the API serves it.
    pub fn resource(self) -> &'static str {
        self.names().1
    }

    /// The API group, empty for the core group.
    pub fn group(self) -> &'static str {
        self.api_version().rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// The `apiVersion` field of its objects.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::DaemonSet
            | Self::Deployment
            | Self::ReplicaSet
            | Self::StatefulSet
            | Self::ControllerRevision => "apps/v1",
            Self::Job => "batch/v1",
            Self::Ingress => "networking.k8s.io/v1",
            Self::PodDisruptionBudget => "policy/v1",
            _ => "v1",
        }
    }

    /// Whether its objects live in a namespace.
    pub fn namespaced(self) -> bool {
        !matches!(self, Self::Namespace | Self::Node | Self::PersistentVolume)
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::ConfigMap => ("ConfigMap", "configmaps"),
            Self::ControllerRevision => ("ControllerRevision", "controllerrevisions"),
            Self::DaemonSet => ("DaemonSet", "daemonsets"),
            Self::Deployment => ("Deployment", "deployments"),
            Self::Ingress => ("Ingress", "ingresses"),
            Self::Job => ("Job", "jobs"),
            Self::Namespace => ("Namespace", "namespaces"),
            Self::Node => ("Node", "nodes"),
            Self::PersistentVolume => ("PersistentVolume", "persistentvolumes"),
            Self::PersistentVolumeClaim => ("PersistentVolumeClaim", "persistentvolumeclaims"),
            Self::Pod => ("Pod", "pods"),
            Self::PodDisruptionBudget => ("PodDisruptionBudget", "poddisruptionbudgets"),
            Self::ReplicaSet => ("ReplicaSet", "replicasets"),
            Self::Service => ("Service", "services"),
            Self::ServiceAccount => ("ServiceAccount", "serviceaccounts"),
            Self::StatefulSet => ("StatefulSet", "statefulsets"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_under_its_own_names_only() {
        for kind in Kind::WATCHED {
            assert_eq!(Kind::parse(kind.api_version(), kind.kind()), Some(kind));
            assert_eq!(Kind::parse("example.com/v1", kind.kind()), None);
        }
        assert_eq!(Kind::Ingress.group(), "networking.k8s.io");
        assert_eq!(Kind::Pod.group(), "");
    }
}
