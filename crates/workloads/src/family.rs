//! Which objects a rule needs to see, and which objects a change concerns.

use crate::Kind;
use crate::object::{controller, name, namespace, text, uid};
use serde_json::Value;

/// The objects a decision depends on, in any order; [`relatives`] says which.
#[derive(Debug, Clone, Default)]
pub struct Family<'a> {
    /// The objects.
    pub members: Vec<&'a Value>,
}

/// One thing to look up for a [`Family`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// Objects of this kind and namespace whose controller reference has this uid, or that have no
    /// controller at all (they may be adopted).
    Controlled {
        /// Kind of the children.
        kind: Kind,
        /// Namespace of the owner.
        namespace: String,
        /// uid of the owner.
        uid: String,
    },
    /// All objects of this kind in this namespace (empty: cluster-scoped).
    All {
        /// Kind to list.
        kind: Kind,
        /// Namespace to list.
        namespace: String,
    },
    /// One object, if it exists.
    Named {
        /// Its kind.
        kind: Kind,
        /// Its namespace; empty for cluster-scoped kinds.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// Objects to decide again after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Affected {
    /// This object, if it exists.
    One {
        /// Its kind.
        kind: Kind,
        /// Its namespace; empty for cluster-scoped kinds.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Every object of this kind, in this namespace or (`None`) in all.
    Every {
        /// The kind.
        kind: Kind,
        /// The namespace, if limited to one.
        namespace: Option<String>,
    },
    /// Every pod without `spec.nodeName`.
    UnscheduledPods,
}

pub(crate) const ROOT_CA_CONFIG_MAP: &str = "kube-root-ca.crt";
pub(crate) const DEFAULT_SERVICE_ACCOUNT: &str = "default";

// === impl Family ===

impl<'a> Family<'a> {
    pub(crate) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &'a Value> {
        self.members.iter().copied().filter(move |member| Kind::of(member) == Some(kind))
    }
}

/// What to look up before deciding on `object`.
pub fn relatives(object: &Value) -> Vec<Lookup> {
    let controlled = |kind| Lookup::Controlled {
        kind,
        namespace: namespace(object).to_owned(),
        uid: uid(object).to_owned(),
    };
    let nodes = || Lookup::All { kind: Kind::Node, namespace: String::new() };
    let named = |kind, namespace: &str, name: &str| Lookup::Named {
        kind,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    match Kind::of(object) {
        Some(Kind::Deployment) => vec![controlled(Kind::ReplicaSet)],
        Some(Kind::ReplicaSet | Kind::Job) => vec![controlled(Kind::Pod)],
        Some(Kind::StatefulSet) => vec![controlled(Kind::Pod), controlled(Kind::ControllerRevision)],
        Some(Kind::DaemonSet) => {
            vec![controlled(Kind::Pod), controlled(Kind::ControllerRevision), nodes()]
        }
        Some(Kind::Pod) if text(object, &["spec", "nodeName"]).is_empty() => vec![nodes()],
        Some(Kind::PodDisruptionBudget) => {
            vec![Lookup::All { kind: Kind::Pod, namespace: namespace(object).to_owned() }]
        }
        Some(Kind::PersistentVolume) => {
            let claim = &object["spec"]["claimRef"];
            vec![named(Kind::PersistentVolumeClaim, text(claim, &["namespace"]), text(claim, &["name"]))]
        }
        Some(Kind::Namespace) => vec![
            named(Kind::ServiceAccount, name(object), DEFAULT_SERVICE_ACCOUNT),
            named(Kind::ConfigMap, name(object), ROOT_CA_CONFIG_MAP),
        ],
        _ => Vec::new(),
    }
}

/// What to decide again after `object` was created, changed or deleted (then give its last state).
pub fn affected_by(object: &Value) -> Vec<Affected> {
    let Some(kind) = Kind::of(object) else { return Vec::new() };
    let one = |kind, namespace: &str, name: &str| Affected::One {
        kind,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    let mut affected = Vec::new();
    if !matches!(kind, Kind::ConfigMap | Kind::ServiceAccount | Kind::ControllerRevision) {
        affected.push(one(kind, namespace(object), name(object)));
    }
    let owner = controller(object).and_then(|owner| {
        let kind = Kind::parse(text(owner, &["apiVersion"]), text(owner, &["kind"]))?;
        Some(one(kind, namespace(object), text(owner, &["name"])))
    });
    affected.extend(owner);
    match kind {
        Kind::Pod => affected.push(Affected::Every {
            kind: Kind::PodDisruptionBudget,
            namespace: Some(namespace(object).to_owned()),
        }),
        Kind::Node => {
            affected.push(Affected::Every { kind: Kind::DaemonSet, namespace: None });
            affected.push(Affected::UnscheduledPods);
        }
        Kind::PersistentVolumeClaim => {
            let volume = text(object, &["spec", "volumeName"]);
            if !volume.is_empty() {
                affected.push(one(Kind::PersistentVolume, "", volume));
            }
        }
        Kind::ServiceAccount if name(object) == DEFAULT_SERVICE_ACCOUNT => {
            affected.push(one(Kind::Namespace, "", namespace(object)));
        }
        Kind::ConfigMap if name(object) == ROOT_CA_CONFIG_MAP => {
            affected.push(one(Kind::Namespace, "", namespace(object)));
        }
        _ => {}
    }
    affected
}
