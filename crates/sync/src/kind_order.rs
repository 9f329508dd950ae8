//! In which order kinds are applied inside a wave.

/// Kinds that go before all others, in order. The group does not count.
const FIRST: [&str; 35] = [
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
];

/// The rank of a kind: lower goes first, and all unknown kinds go last together.
pub fn rank(kind: &str) -> usize {
    FIRST.iter().position(|first| *first == kind).unwrap_or(FIRST.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_need_goes_first_and_the_unknown_last() {
        assert!(rank("Namespace") < rank("CustomResourceDefinition"));
        assert!(rank("ServiceAccount") < rank("Pod"));
        assert!(rank("APIService") < rank("Widget"));
        assert_eq!(rank("Widget"), rank("Gadget"));
    }
}
