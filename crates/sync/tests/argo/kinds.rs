//! The kinds that the clusters of the goldens serve.

/// A kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
}

const NAMESPACED: [(&str, &str, &str); 22] = [
    ("v1", "ConfigMap", "configmaps"),
    ("v1", "Secret", "secrets"),
    ("v1", "Service", "services"),
    ("v1", "Pod", "pods"),
    ("v1", "ServiceAccount", "serviceaccounts"),
    ("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("v1", "LimitRange", "limitranges"),
    ("v1", "ResourceQuota", "resourcequotas"),
    ("apps/v1", "Deployment", "deployments"),
    ("apps/v1", "StatefulSet", "statefulsets"),
    ("apps/v1", "DaemonSet", "daemonsets"),
    ("apps/v1", "ReplicaSet", "replicasets"),
    ("batch/v1", "Job", "jobs"),
    ("batch/v1", "CronJob", "cronjobs"),
    ("rbac.authorization.k8s.io/v1", "Role", "roles"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
    ("networking.k8s.io/v1", "Ingress", "ingresses"),
    ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    ("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    ("story.test/v1", "Widget", "widgets"),
    ("story.test/v1", "Gadget", "gadgets"),
];

const OF_THE_CLUSTER: [(&str, &str, &str); 9] = [
    ("v1", "Namespace", "namespaces"),
    ("v1", "PersistentVolume", "persistentvolumes"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions"),
    ("networking.k8s.io/v1", "IngressClass", "ingressclasses"),
    ("storage.k8s.io/v1", "StorageClass", "storageclasses"),
    ("apiregistration.k8s.io/v1", "APIService", "apiservices"),
    ("story.test/v1", "Zebra", "zebras"),
];

/// Every kind of the tables.
fn all() -> impl Iterator<Item = Kind> {
    let namespaced = NAMESPACED.into_iter().map(|kind| (kind, true));
    namespaced.chain(OF_THE_CLUSTER.into_iter().map(|kind| (kind, false))).map(
        |((api_version, kind, plural), namespaced)| Kind {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            namespaced,
        },
    )
}

/// The kind of a name.
pub(crate) fn of(kind: &str) -> Option<Kind> {
    all().find(|known| known.kind == kind)
}

/// What a cluster serves before any definition is made.
pub(crate) fn built_in() -> Vec<Kind> {
    all().filter(|kind| !kind.api_version.starts_with("story.test/")).collect()
}
