//! What a write does to the parts of an object its writer does not own: status and generation.

use serde_json::{Map, Value, json};

use crate::Kind;
use crate::assigned;
use crate::lookup::{annotation, at, ensure, fields, fill, flag, has_entries, list, remove, set, text};
use crate::quality::service_class;

/// The first generation of an object.
const FIRST: i64 = 1;

impl Kind {
    /// Makes a new object's status and generation what Kubernetes starts with, whatever the client sent, and adds what the
    /// server decides (all but a Service's address, which somebody has to keep a book of).
    pub fn prepare_create(&self, object: &mut Value) {
        assigned::complete(self, object, None);
        if self.counts_generation() {
            if let Some(metadata) = ensure(object, "metadata") {
                set(metadata, "generation", FIRST);
            }
        } else if let Some(metadata) = object.get_mut("metadata") {
            remove(metadata, "generation");
        }
        if let Some(status) = self.first_status(object) {
            set(object, "status", status);
        }
        match (self.group, self.plural) {
            ("", "namespaces") => add_namespace_finalizer(object),
            ("apps", "daemonsets") => count_template(object, None),
            ("batch", "jobs") => select_own_pods(object),
            _ => {}
        }
    }

    /// Keeps what an update through the object's own path must not change, and counts the generation.
    pub fn prepare_update(&self, object: &mut Value, old: &Value) {
        assigned::complete(self, object, Some(old));
        if self.has_status() {
            keep(object, old, "status");
        }
        match (self.group, self.plural) {
            // Only the `finalize` path changes these.
            ("", "namespaces") => {
                if let (Some(spec), Some(finalizers)) = (ensure(object, "spec"), at(old, "spec.finalizers")) {
                    set(spec, "finalizers", finalizers.clone());
                }
            }
            ("apps", "daemonsets") => count_template(object, Some(old)),
            _ => {}
        }
        let before = at(old, "metadata.generation").and_then(Value::as_i64);
        let Some(metadata) = object.get_mut("metadata") else { return };
        match before {
            Some(before) => set(metadata, "generation", before),
            None => drop(remove(metadata, "generation")),
        }
        if self.counts_generation() && self.counted_part_changed(object, old) {
            let next = before.unwrap_or(0).saturating_add(1);
            if let Some(metadata) = object.get_mut("metadata") {
                set(metadata, "generation", next);
            }
        }
    }

    /// Keeps everything but the status and the metadata that a status update may change.
    pub fn prepare_status(&self, object: &mut Value, old: &Value) {
        let Some(fields) = object.as_object_mut() else { return };
        let mut status = fields.remove("status").unwrap_or_default();
        if (self.group, self.plural) == ("", "pods")
            && let Some(class) = at(old, "status.qosClass")
        {
            fill(&mut status, "qosClass", class.clone());
        }
        let mut metadata = fields.remove("metadata").unwrap_or_else(|| json!({}));
        // Name, namespace, uid and resourceVersion are the request's to state (and the server's to check); the rest of the
        // metadata that describes the object itself stays.
        for name in [
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generateName",
        ] {
            keep_in(&mut metadata, at(old, "metadata"), name);
        }
        for name in self.metadata_kept_on_status() {
            keep_in(&mut metadata, at(old, "metadata"), name);
        }
        let old = old.as_object().into_iter().flatten();
        let old = old.filter(|(field, _)| !matches!(field.as_str(), "metadata" | "status"));
        let mut kept: Map<String, Value> = old.map(|(field, value)| (field.clone(), value.clone())).collect();
        kept.insert("metadata".into(), metadata);
        if !status.is_null() {
            kept.insert("status".into(), status);
        }
        *fields = kept;
    }

    /// Whether `metadata.generation` is set and counted for this kind.
    pub fn counts_generation(&self) -> bool {
        match self.group {
            "" => matches!(self.plural, "pods" | "podtemplates" | "replicationcontrollers"),
            "apps" => self.plural != "controllerrevisions",
            "batch" | "policy" | "discovery.k8s.io" | "apiextensions.k8s.io" | "scheduling.k8s.io" => true,
            "networking.k8s.io" => matches!(self.plural, "ingresses" | "ingressclasses" | "networkpolicies"),
            _ => false,
        }
    }

    /// Whether what this kind counts differs: the spec, or the whole content of kinds without one.
    fn counted_part_changed(&self, object: &Value, old: &Value) -> bool {
        match (self.group, self.plural) {
            // A priority class's generation stays at its first value.
            ("scheduling.k8s.io", _) => false,
            ("", "podtemplates") => at(object, "template") != at(old, "template"),
            ("discovery.k8s.io", _) => {
                let content = |object: &Value| {
                    let mut content = object.clone();
                    remove(&mut content, "metadata");
                    content
                };
                let label_changed = at(object, "metadata.labels") != at(old, "metadata.labels");
                label_changed || content(object) != content(old)
            }
            ("apps", "deployments") => {
                let annotations =
                    |object| fields(object, "metadata.annotations").filter(|map| !map.is_empty());
                at(object, "spec") != at(old, "spec") || annotations(object) != annotations(old)
            }
            // Being put on a node is not the user's doing.
            ("", "pods") => {
                let unbound = |object: &Value| {
                    let mut spec = at(object, "spec").cloned().unwrap_or_default();
                    remove(&mut spec, "nodeName");
                    spec
                };
                unbound(object) != unbound(old)
            }
            _ => at(object, "spec") != at(old, "spec"),
        }
    }

    /// Newer kinds keep all their metadata through a status update; older ones let most of it change.
    fn metadata_kept_on_status(&self) -> &'static [&'static str] {
        match (self.group, self.plural) {
            ("apiextensions.k8s.io" | "storage.k8s.io", _) | ("networking.k8s.io", "servicecidrs") => {
                &["labels", "annotations", "finalizers", "ownerReferences"]
            }
            ("", "pods") => &["ownerReferences"],
            ("apps", "deployments") => &["labels"],
            _ => &[],
        }
    }

    /// The status of a new object; `None` where the client's own stays (Nodes register with theirs) or there is none.
    fn first_status(&self, object: &Value) -> Option<Value> {
        Some(match (self.group, self.plural) {
            ("", "pods") => json!({"phase": "Pending", "qosClass": service_class(object)}),
            ("", "namespaces") => json!({"phase": "Active"}),
            ("", "persistentvolumes" | "persistentvolumeclaims") => json!({"phase": "Pending"}),
            ("", "services") | ("networking.k8s.io", "ingresses") => json!({"loadBalancer": {}}),
            ("", "replicationcontrollers") | ("apps", "replicasets") => json!({"replicas": 0}),
            ("apps", "statefulsets") => json!({"availableReplicas": 0, "replicas": 0}),
            ("apps", "daemonsets") => json!({
                "currentNumberScheduled": 0,
                "desiredNumberScheduled": 0,
                "numberMisscheduled": 0,
                "numberReady": 0,
            }),
            ("autoscaling", _) => json!({"currentMetrics": null, "desiredReplicas": 0}),
            ("policy", _) => json!({
                "currentHealthy": 0,
                "desiredHealthy": 0,
                "disruptionsAllowed": 0,
                "expectedPods": 0,
            }),
            ("storage.k8s.io", "volumeattachments") => json!({"attached": false}),
            ("", "nodes") => return None,
            _ if self.has_status() => json!({}),
            _ => return None,
        })
    }
}

fn add_namespace_finalizer(object: &mut Value) {
    const FINALIZER: &str = "kubernetes";
    let present = list(object, "spec.finalizers").iter().any(|name| name == FINALIZER);
    let Some(spec) = ensure(object, "spec") else { return };
    if present {
        return;
    }
    match spec.get_mut("finalizers") {
        Some(Value::Array(finalizers)) => finalizers.push(FINALIZER.into()),
        _ => set(spec, "finalizers", json!([FINALIZER])),
    }
}

/// Clients of the first DaemonSet API read a count of template changes here.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn count_template(object: &mut Value, old: Option<&Value>) {
    let before = old.map(|old| annotation(old, TEMPLATE_GENERATION));
    let count = match (before.and_then(|before| before.parse::<i64>().ok()), old) {
        (None, _) | (_, None) => FIRST,
        (Some(before), Some(old)) if at(object, "spec.template") == at(old, "spec.template") => before,
        (Some(before), Some(_)) => before.saturating_add(1),
    };
    let annotations = ensure(object, "metadata").and_then(|metadata| ensure(metadata, "annotations"));
    if let Some(annotations) = annotations {
        set(annotations, TEMPLATE_GENERATION, count.to_string());
    }
}

/// A Job without a selector of its own gets one by its uid, and its Pods the labels for it. The uid must be set by now.
fn select_own_pods(object: &mut Value) {
    const UID_LABEL: &str = "batch.kubernetes.io/controller-uid";
    let (uid, name) = (text(object, "metadata.uid").to_owned(), text(object, "metadata.name").to_owned());
    if flag(object, "spec.manualSelector") || at(object, "spec.selector").is_some() || uid.is_empty() {
        return;
    }
    let labels = ensure(object, "spec")
        .and_then(|spec| ensure(spec, "template"))
        .and_then(|template| ensure(template, "metadata"))
        .and_then(|metadata| ensure(metadata, "labels"));
    let Some(labels) = labels else { return };
    for (label, value) in [
        (UID_LABEL, &uid),
        ("controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("job-name", &name),
    ] {
        set(labels, label, value.clone());
    }
    let all = labels.clone();
    if let Some(spec) = ensure(object, "spec") {
        set(spec, "selector", json!({"matchLabels": {UID_LABEL: uid}}));
    }
    // Kubernetes copies the template's labels after this one has put its own there.
    if !has_entries(object, "metadata.labels")
        && let Some(metadata) = ensure(object, "metadata")
    {
        set(metadata, "labels", all);
    }
}

fn keep(object: &mut Value, old: &Value, name: &str) {
    keep_in(object, Some(old), name);
}

fn keep_in(object: &mut Value, old: Option<&Value>, name: &str) {
    match old.and_then(|old| old.get(name)) {
        Some(value) => set(object, name, value.clone()),
        None => drop(remove(object, name)),
    }
}

#[cfg(test)]
mod tests;
