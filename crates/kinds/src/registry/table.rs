//! The table of kinds.

use super::{Kind, Subresource, Verbs};

const CREATE: &[&str] = &["create"];
const GET: &[&str] = &["get"];
const UPDATE: &[&str] = &["update"];

const STATUS: &[Subresource] = &[Subresource::Status];
const SCALED: &[Subresource] = &[
    Subresource::Scale { spec: ".spec.replicas", status: ".status.replicas", selector: ".spec.selector" },
    Subresource::Status,
];
const NAMESPACE: &[Subresource] = &[
    Subresource::Own { name: "finalize", group: "", version: "v1", kind: "Namespace", verbs: UPDATE },
    Subresource::Status,
];
const POD: &[Subresource] = &[
    Subresource::Own { name: "binding", group: "", version: "v1", kind: "Binding", verbs: CREATE },
    Subresource::Own { name: "eviction", group: "policy", version: "v1", kind: "Eviction", verbs: CREATE },
    Subresource::Own { name: "log", group: "", version: "v1", kind: "Pod", verbs: GET },
    Subresource::Status,
];
const SERVICE_ACCOUNT: &[Subresource] = &[Subresource::Own {
    name: "token",
    group: "authentication.k8s.io",
    version: "v1",
    kind: "TokenRequest",
    verbs: CREATE,
}];

pub(super) const KINDS: &[Kind] = &[
    kind("", "v1", "Binding", "bindings", "binding", "bindings").with(Verbs::CreateOnly),
    kind("", "v1", "ConfigMap", "configmaps", "configmap", "configmaps").short(&["cm"]),
    kind("", "v1", "Endpoints", "endpoints", "endpoints", "endpoints").short(&["ep"]),
    kind("", "v1", "Event", "events", "event", "events").short(&["ev"]),
    kind("", "v1", "LimitRange", "limitranges", "limitrange", "limitranges").short(&["limits"]),
    kind("", "v1", "Namespace", "namespaces", "namespace", "namespaces")
        .short(&["ns"])
        .cluster_wide()
        .with(Verbs::NoDeleteCollection)
        .below(NAMESPACE),
    kind("", "v1", "Node", "nodes", "node", "nodes").short(&["no"]).cluster_wide().below(STATUS),
    kind(
        "",
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        "persistentvolumeclaim",
        "persistentvolumeclaims",
    )
    .short(&["pvc"])
    .below(STATUS),
    kind("", "v1", "PersistentVolume", "persistentvolumes", "persistentvolume", "persistentvolumes")
        .short(&["pv"])
        .cluster_wide()
        .below(STATUS),
    kind("", "v1", "Pod", "pods", "pod", "pods").short(&["po"]).in_categories(&["all"]).below(POD),
    kind("", "v1", "PodTemplate", "podtemplates", "podtemplate", "podtemplates"),
    kind(
        "",
        "v1",
        "ReplicationController",
        "replicationcontrollers",
        "replicationcontroller",
        "replicationcontrollers",
    )
    .short(&["rc"])
    .in_categories(&["all"])
    .below(SCALED),
    kind("", "v1", "ResourceQuota", "resourcequotas", "resourcequota", "resourcequotas")
        .short(&["quota"])
        .below(STATUS),
    kind("", "v1", "Secret", "secrets", "secret", "secrets"),
    kind("", "v1", "ServiceAccount", "serviceaccounts", "serviceaccount", "serviceaccounts")
        .short(&["sa"])
        .below(SERVICE_ACCOUNT),
    kind("", "v1", "Service", "services", "service", "services")
        .short(&["svc"])
        .in_categories(&["all"])
        .below(STATUS),
    kind(
        "apps",
        "v1",
        "ControllerRevision",
        "controllerrevisions",
        "controllerrevision",
        "controllerrevisions.apps",
    ),
    kind("apps", "v1", "DaemonSet", "daemonsets", "daemonset", "daemonsets.apps")
        .short(&["ds"])
        .in_categories(&["all"])
        .below(STATUS),
    kind("apps", "v1", "Deployment", "deployments", "deployment", "deployments.apps")
        .short(&["deploy"])
        .in_categories(&["all"])
        .below(SCALED),
    kind("apps", "v1", "ReplicaSet", "replicasets", "replicaset", "replicasets.apps")
        .short(&["rs"])
        .in_categories(&["all"])
        .below(SCALED),
    kind("apps", "v1", "StatefulSet", "statefulsets", "statefulset", "statefulsets.apps")
        .short(&["sts"])
        .in_categories(&["all"])
        .below(SCALED),
    kind("events.k8s.io", "v1", "Event", "events", "event", "events").short(&["ev"]),
    kind(
        "authentication.k8s.io",
        "v1",
        "SelfSubjectReview",
        "selfsubjectreviews",
        "selfsubjectreview",
        "selfsubjectreviews.authentication.k8s.io",
    )
    .cluster_wide()
    .with(Verbs::CreateOnly),
    kind(
        "authentication.k8s.io",
        "v1",
        "TokenReview",
        "tokenreviews",
        "tokenreview",
        "tokenreviews.authentication.k8s.io",
    )
    .cluster_wide()
    .with(Verbs::CreateOnly),
    kind(
        "authorization.k8s.io",
        "v1",
        "LocalSubjectAccessReview",
        "localsubjectaccessreviews",
        "localsubjectaccessreview",
        "localsubjectaccessreviews.authorization.k8s.io",
    )
    .with(Verbs::CreateOnly),
    kind(
        "authorization.k8s.io",
        "v1",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        "selfsubjectaccessreview",
        "selfsubjectaccessreviews.authorization.k8s.io",
    )
    .cluster_wide()
    .with(Verbs::CreateOnly),
    kind(
        "authorization.k8s.io",
        "v1",
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
        "selfsubjectrulesreview",
        "selfsubjectrulesreviews.authorization.k8s.io",
    )
    .cluster_wide()
    .with(Verbs::CreateOnly),
    kind(
        "authorization.k8s.io",
        "v1",
        "SubjectAccessReview",
        "subjectaccessreviews",
        "subjectaccessreview",
        "subjectaccessreviews.authorization.k8s.io",
    )
    .cluster_wide()
    .with(Verbs::CreateOnly),
    kind(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "horizontalpodautoscaler",
        "horizontalpodautoscalers.autoscaling",
    )
    .short(&["hpa"])
    .in_categories(&["all"])
    .below(STATUS),
    kind("batch", "v1", "CronJob", "cronjobs", "cronjob", "cronjobs.batch")
        .short(&["cj"])
        .in_categories(&["all"])
        .below(STATUS),
    kind("batch", "v1", "Job", "jobs", "job", "jobs.batch").in_categories(&["all"]).below(STATUS),
    kind(
        "networking.k8s.io",
        "v1",
        "IngressClass",
        "ingressclasses",
        "ingressclass",
        "ingressclasses.networking.k8s.io",
    )
    .cluster_wide(),
    kind("networking.k8s.io", "v1", "Ingress", "ingresses", "ingress", "ingresses.networking.k8s.io")
        .short(&["ing"])
        .below(STATUS),
    kind("networking.k8s.io", "v1", "IPAddress", "ipaddresses", "ipaddress", "ipaddresses.networking.k8s.io")
        .short(&["ip"])
        .cluster_wide(),
    kind(
        "networking.k8s.io",
        "v1",
        "NetworkPolicy",
        "networkpolicies",
        "networkpolicy",
        "networkpolicies.networking.k8s.io",
    )
    .short(&["netpol"]),
    kind(
        "networking.k8s.io",
        "v1",
        "ServiceCIDR",
        "servicecidrs",
        "servicecidr",
        "servicecidrs.networking.k8s.io",
    )
    .cluster_wide()
    .below(STATUS),
    kind(
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        "poddisruptionbudget",
        "poddisruptionbudgets.policy",
    )
    .short(&["pdb"])
    .below(STATUS),
    kind(
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
        "clusterrolebinding",
        "clusterrolebindings.rbac.authorization.k8s.io",
    )
    .cluster_wide(),
    kind(
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRole",
        "clusterroles",
        "clusterrole",
        "clusterroles.rbac.authorization.k8s.io",
    )
    .cluster_wide(),
    kind(
        "rbac.authorization.k8s.io",
        "v1",
        "RoleBinding",
        "rolebindings",
        "rolebinding",
        "rolebindings.rbac.authorization.k8s.io",
    ),
    kind("rbac.authorization.k8s.io", "v1", "Role", "roles", "role", "roles.rbac.authorization.k8s.io"),
    kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers", "csidriver", "csidrivers.storage.k8s.io")
        .cluster_wide(),
    kind("storage.k8s.io", "v1", "CSINode", "csinodes", "csinode", "csinodes.storage.k8s.io").cluster_wide(),
    kind(
        "storage.k8s.io",
        "v1",
        "CSIStorageCapacity",
        "csistoragecapacities",
        "csistoragecapacity",
        "csistoragecapacities.storage.k8s.io",
    ),
    kind(
        "storage.k8s.io",
        "v1",
        "StorageClass",
        "storageclasses",
        "storageclass",
        "storageclasses.storage.k8s.io",
    )
    .short(&["sc"])
    .cluster_wide(),
    kind(
        "storage.k8s.io",
        "v1",
        "VolumeAttachment",
        "volumeattachments",
        "volumeattachment",
        "volumeattachments.storage.k8s.io",
    )
    .cluster_wide()
    .below(STATUS),
    kind(
        "storage.k8s.io",
        "v1",
        "VolumeAttributesClass",
        "volumeattributesclasses",
        "volumeattributesclass",
        "volumeattributesclasses.storage.k8s.io",
    )
    .short(&["vac"])
    .cluster_wide(),
    kind(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "customresourcedefinition",
        "customresourcedefinitions.apiextensions.k8s.io",
    )
    .short(&["crd", "crds"])
    .in_categories(&["api-extensions"])
    .cluster_wide()
    .below(STATUS),
    kind(
        "scheduling.k8s.io",
        "v1",
        "PriorityClass",
        "priorityclasses",
        "priorityclass",
        "priorityclasses.scheduling.k8s.io",
    )
    .short(&["pc"])
    .cluster_wide(),
    kind("coordination.k8s.io", "v1", "Lease", "leases", "lease", "leases.coordination.k8s.io"),
    kind(
        "discovery.k8s.io",
        "v1",
        "EndpointSlice",
        "endpointslices",
        "endpointslice",
        "endpointslices.discovery.k8s.io",
    ),
];

const fn kind(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    resource: &'static str,
) -> Kind {
    Kind {
        group,
        version,
        kind,
        plural,
        singular,
        short_names: &[],
        categories: &[],
        namespaced: true,
        verbs: Verbs::All,
        subresources: &[],
        resource,
    }
}

impl Kind {
    const fn short(mut self, names: &'static [&'static str]) -> Self {
        self.short_names = names;
        self
    }

    const fn in_categories(mut self, categories: &'static [&'static str]) -> Self {
        self.categories = categories;
        self
    }

    const fn cluster_wide(mut self) -> Self {
        self.namespaced = false;
        self
    }

    const fn with(mut self, verbs: Verbs) -> Self {
        self.verbs = verbs;
        self
    }

    const fn below(mut self, subresources: &'static [Subresource]) -> Self {
        self.subresources = subresources;
        self
    }
}
