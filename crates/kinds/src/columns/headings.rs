//! The headings of each kind's table.

use super::Column;
use crate::Kind;

pub(super) fn of(kind: &Kind) -> &'static [Column] {
    match (kind.group, kind.plural) {
        ("", "pods") => POD,
        ("", "podtemplates") => POD_TEMPLATE,
        ("", "replicationcontrollers") | ("apps", "replicasets") => REPLICAS,
        ("apps", "deployments") => DEPLOYMENT,
        ("apps", "statefulsets") => STATEFUL_SET,
        ("apps", "daemonsets") => DAEMON_SET,
        ("apps", "controllerrevisions") => REVISION,
        ("batch", "jobs") => JOB,
        ("batch", "cronjobs") => CRON_JOB,
        ("autoscaling", _) => AUTOSCALER,
        ("policy", _) => BUDGET,
        ("", "services") => SERVICE,
        ("", "endpoints") => ENDPOINTS,
        ("discovery.k8s.io", _) => ENDPOINT_SLICE,
        ("networking.k8s.io", "ingresses") => INGRESS,
        ("networking.k8s.io", "ingressclasses") => INGRESS_CLASS,
        ("networking.k8s.io", "networkpolicies") => NETWORK_POLICY,
        ("networking.k8s.io", "ipaddresses") => IP_ADDRESS,
        ("networking.k8s.io", "servicecidrs") => SERVICE_RANGE,
        ("", "nodes") => NODE,
        ("", "namespaces") => NAMESPACE,
        ("", "events") | ("events.k8s.io", _) => EVENT,
        ("", "secrets") => SECRET,
        ("", "configmaps") => CONFIG_MAP,
        ("", "serviceaccounts") => SERVICE_ACCOUNT,
        ("", "resourcequotas") => QUOTA,
        ("", "persistentvolumes") => VOLUME,
        ("", "persistentvolumeclaims") => CLAIM,
        ("storage.k8s.io", "storageclasses") => STORAGE_CLASS,
        ("storage.k8s.io", "csidrivers") => DRIVER,
        ("storage.k8s.io", "csinodes") => CSI_NODE,
        ("storage.k8s.io", "volumeattachments") => ATTACHMENT,
        ("storage.k8s.io", "volumeattributesclasses") => ATTRIBUTES_CLASS,
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => BINDING,
        ("coordination.k8s.io", _) => LEASE,
        ("scheduling.k8s.io", _) => PRIORITY_CLASS,
        _ => PLAIN,
    }
}

const fn text(name: &'static str, description: &'static str) -> Column {
    Column { name, type_: "string", format: "", description, priority: 0 }
}

impl Column {
    const fn number(mut self) -> Self {
        self.type_ = "integer";
        self
    }

    const fn flag(mut self) -> Self {
        self.type_ = "boolean";
        self
    }

    const fn wide(mut self) -> Self {
        self.priority = 1;
        self
    }
}

const NAME: Column = Column {
    name: "Name",
    type_: "string",
    format: "name",
    description: "The name of the object.",
    priority: 0,
};
const AGE: Column = text("Age", "How long ago the object was created.");

/// Kinds that print nothing of their own.
const PLAIN: &[Column] = &[
    NAME,
    Column {
        name: "Created At",
        type_: "date",
        format: "",
        description: "When the object was created.",
        priority: 0,
    },
];

const READY: Column = text("Ready", "How many are ready.");
const STATUS: Column = text("Status", "Where the object stands.");
const CONTAINERS: Column = text("Containers", "The names of the containers.").wide();
const IMAGES: Column = text("Images", "The images of the containers.").wide();
const SELECTOR: Column = text("Selector", "What selects the Pods.").wide();
const TYPE: Column = text("Type", "The type of the object.");

const POD: &[Column] = &[
    NAME,
    READY,
    STATUS,
    text("Restarts", "How often containers were restarted, and when last."),
    AGE,
    text("IP", "The address of the Pod.").wide(),
    text("Node", "The node it is bound to.").wide(),
    text("Nominated Node", "The node that is being cleared for the Pod.").wide(),
    text("Readiness Gates", "How many of the extra readiness conditions hold.").wide(),
];
const POD_TEMPLATE: &[Column] = &[
    NAME,
    text("Containers", "The names of the containers."),
    text("Images", "The images of the containers."),
    text("Pod Labels", "The labels Pods get."),
];
const REPLICAS: &[Column] = &[
    NAME,
    text("Desired", "How many are wanted.").number(),
    text("Current", "How many there are.").number(),
    text("Ready", "How many are ready.").number(),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
const DEPLOYMENT: &[Column] = &[
    NAME,
    READY,
    text("Up-to-date", "How many follow the newest template."),
    text("Available", "How many have been ready for long enough."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
const STATEFUL_SET: &[Column] = &[NAME, READY, AGE, CONTAINERS, IMAGES];
const DAEMON_SET: &[Column] = &[
    NAME,
    text("Desired", "How many are wanted.").number(),
    text("Current", "How many there are.").number(),
    text("Ready", "How many are ready.").number(),
    text("Up-to-date", "How many follow the newest template.").number(),
    text("Available", "How many have been ready for long enough.").number(),
    text("Node Selector", "What selects the nodes."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
const REVISION: &[Column] =
    &[NAME, text("Controller", "Who is in charge."), text("Revision", "The number of the revision."), AGE];
const JOB: &[Column] = &[
    NAME,
    STATUS,
    text("Completions", "How many Pods succeeded of how many must."),
    text("Duration", "How long the job took, or has been running."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
const CRON_JOB: &[Column] = &[
    NAME,
    text("Schedule", "When it runs."),
    text("Timezone", "The time zone of the schedule."),
    text("Suspend", "Whether no more runs are started.").flag(),
    text("Active", "How many runs are going on.").number(),
    text("Last Schedule", "When the last run was due."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
const AUTOSCALER: &[Column] = &[
    NAME,
    text("Reference", "What is scaled."),
    text("Targets", "Measured and wanted values."),
    text("MinPods", "The least number of Pods."),
    text("MaxPods", "The greatest number of Pods."),
    text("Replicas", "How many Pods there are."),
    AGE,
];
const BUDGET: &[Column] = &[
    NAME,
    text("Min Available", "How many Pods must stay."),
    text("Max Unavailable", "How many Pods may go."),
    text("Allowed Disruptions", "How many Pods may go right now.").number(),
    AGE,
];
const SERVICE: &[Column] = &[
    NAME,
    TYPE,
    text("Cluster-IP", "The address within the cluster."),
    text("External-IP", "The address outside of the cluster."),
    text("Port(s)", "The ports it listens on."),
    AGE,
    SELECTOR,
];
const ENDPOINTS: &[Column] = &[NAME, text("Endpoints", "Where the Pods are reached."), AGE];
const ENDPOINT_SLICE: &[Column] = &[
    NAME,
    text("AddressType", "The family of the addresses."),
    text("Ports", "The ports."),
    text("Endpoints", "Where the Pods are reached."),
    AGE,
];
const INGRESS: &[Column] = &[
    NAME,
    text("Class", "Who serves the object."),
    text("Hosts", "The host names it serves."),
    text("Address", "Where it is reached."),
    text("Ports", "The ports."),
    AGE,
];
const INGRESS_CLASS: &[Column] = &[
    NAME,
    text("Controller", "Who is in charge."),
    text("Parameters", "An object with more settings."),
    AGE,
];
const NETWORK_POLICY: &[Column] = &[NAME, text("Pod-Selector", "The Pods it holds for."), AGE];
const IP_ADDRESS: &[Column] = &[NAME, text("ParentRef", "What the address belongs to."), AGE];
const SERVICE_RANGE: &[Column] = &[NAME, text("CIDRs", "The ranges of addresses."), AGE];
const NODE: &[Column] = &[
    NAME,
    STATUS,
    text("Roles", "What the node is for."),
    AGE,
    text("Version", "The version of the node's agent."),
    text("Internal-IP", "The address within the cluster.").wide(),
    text("External-IP", "The address outside of the cluster.").wide(),
    text("OS-Image", "The operating system.").wide(),
    text("Kernel-Version", "The version of the kernel.").wide(),
    text("Container-Runtime", "What runs the containers.").wide(),
];
const NAMESPACE: &[Column] = &[NAME, STATUS, AGE];
const EVENT: &[Column] = &[
    text("Last Seen", "When it last happened."),
    TYPE,
    text("Reason", "Why."),
    text("Object", "What it happened to."),
    text("Subobject", "Which part it happened to.").wide(),
    text("Source", "Who reported it.").wide(),
    text("Message", "What happened."),
    text("First Seen", "When it first happened.").wide(),
    text("Count", "How often it happened.").wide(),
    NAME.wide(),
];
const SECRET: &[Column] = &[NAME, TYPE, text("Data", "How many entries it has."), AGE];
const CONFIG_MAP: &[Column] = &[NAME, text("Data", "How many entries it has."), AGE];
const SERVICE_ACCOUNT: &[Column] = &[NAME, AGE];
const QUOTA: &[Column] =
    &[NAME, text("Request", "Requests used and allowed."), text("Limit", "Limits used and allowed."), AGE];
const VOLUME: &[Column] = &[
    NAME,
    text("Capacity", "How much it holds."),
    text("Access Modes", "Who may use it at the same time."),
    text("Reclaim Policy", "What happens to it when it is released."),
    STATUS,
    text("Claim", "The claim it is bound to."),
    text("StorageClass", "Its class."),
    text("VolumeAttributesClass", "The class of its attributes."),
    text("Reason", "Why."),
    AGE,
    text("VolumeMode", "A file system or a block device.").wide(),
];
const CLAIM: &[Column] = &[
    NAME,
    STATUS,
    text("Volume", "The volume it is bound to."),
    text("Capacity", "How much it holds."),
    text("Access Modes", "Who may use it at the same time."),
    text("StorageClass", "Its class."),
    text("VolumeAttributesClass", "The class of its attributes."),
    AGE,
    text("VolumeMode", "A file system or a block device.").wide(),
];
const STORAGE_CLASS: &[Column] = &[
    NAME,
    text("Provisioner", "Who makes the volumes."),
    text("ReclaimPolicy", "What happens to released volumes."),
    text("VolumeBindingMode", "When volumes are bound."),
    text("AllowVolumeExpansion", "Whether volumes may grow."),
    AGE,
];
const DRIVER: &[Column] = &[
    NAME,
    text("AttachRequired", "Whether volumes are attached first.").flag(),
    text("PodInfoOnMount", "Whether the driver is told about the Pod.").flag(),
    text("StorageCapacity", "Whether the driver reports its capacity.").flag(),
    text("TokenRequests", "The audiences of tokens the driver gets."),
    text("RequiresRepublish", "Whether mounts are refreshed.").flag(),
    text("Modes", "The life cycles of its volumes."),
    AGE,
];
const CSI_NODE: &[Column] = &[NAME, text("Drivers", "How many drivers run on the node.").number(), AGE];
const ATTACHMENT: &[Column] = &[
    NAME,
    Column { format: "name", ..text("Attacher", "Who attaches the volume.") },
    text("PV", "The volume."),
    text("Node", "The node it is bound to."),
    text("Attached", "Whether it is attached.").flag(),
    AGE,
];
const ATTRIBUTES_CLASS: &[Column] = &[NAME, text("DriverName", "The driver."), AGE];
const BINDING: &[Column] = &[
    NAME,
    text("Role", "The role that is given."),
    AGE,
    text("Users", "Users who get it.").wide(),
    text("Groups", "Groups that get it.").wide(),
    text("ServiceAccounts", "Service accounts that get it.").wide(),
];
const LEASE: &[Column] = &[NAME, text("Holder", "Who holds it."), AGE];
const PRIORITY_CLASS: &[Column] = &[
    NAME,
    text("Value", "How high the priority is.").number(),
    text("Global-Default", "Whether Pods without a class get this one.").flag(),
    AGE,
    text("PreemptionPolicy", "Whether its Pods push others out."),
];
