//! Pods, their templates, and the nodes they run on.

use std::collections::HashSet;

use baton_schema::names;
use serde_json::Value;

use super::checks::{Errors, forbidden, invalid, labels, named, obeys, one_of, required, unique};
use super::containers::{container, resources, unique_names};
use crate::lookup::{at, int, list, remove, text};

const RESTART_POLICIES: &[&str] = &["Always", "OnFailure", "Never"];

/// A Pod of its own.
pub(super) fn pod(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    let none = Value::Null;
    let spec = at(object, "spec").unwrap_or(&none);
    pod_spec(errors, "spec", spec, RESTART_POLICIES, &[]);
    if let Some(old) = old {
        pod_update(errors, spec, at(old, "spec").unwrap_or(&none));
    }
}

/// The Pod template at a path. `claims` are volumes that the controller adds to each Pod.
pub(super) fn template(errors: &mut Errors, object: &Value, path: &str, claims: &[&str]) {
    template_with(errors, object, path, &["Always"], claims);
}

/// A Pod template whose Pods may restart in these ways.
pub(super) fn template_with(
    errors: &mut Errors,
    object: &Value,
    path: &str,
    restart_policies: &[&str],
    claims: &[&str],
) {
    let none = Value::Null;
    // A template nobody wrote is an empty one, which lacks what an empty one lacks.
    let template = at(object, path).unwrap_or(&none);
    labels(errors, &format!("{path}.labels"), at(template, "metadata.labels"));
    let spec = at(template, "spec").unwrap_or(&none);
    pod_spec(errors, &format!("{path}.spec"), spec, restart_policies, claims);
}

fn pod_spec(errors: &mut Errors, path: &str, spec: &Value, restart_policies: &[&str], claims: &[&str]) {
    let volumes = volumes(errors, path, spec);
    let volumes = volumes.into_iter().chain(claims.iter().copied()).collect();
    if list(spec, "containers").is_empty() {
        required(errors, &format!("{path}.containers"), "");
    }
    for kind in ["containers", "initContainers"] {
        for (place, known) in list(spec, kind).iter().enumerate() {
            container(errors, &format!("{path}.{kind}[{place}]"), known, &volumes);
        }
    }
    unique_names(errors, path, spec);
    resources(errors, &format!("{path}.resources"), at(spec, "resources"));
    one_of(errors, &format!("{path}.restartPolicy"), text(spec, "restartPolicy"), restart_policies);
    one_of(
        errors,
        &format!("{path}.dnsPolicy"),
        text(spec, "dnsPolicy"),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
    );
    if let Some(seconds) = int(spec, "activeDeadlineSeconds")
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let detail = "must be between 1 and 2147483647, inclusive";
        invalid(errors, &format!("{path}.activeDeadlineSeconds"), seconds, detail);
    }
    for (field, rule) in [
        ("nodeName", names::dns1123_subdomain as names::NameRule),
        ("serviceAccountName", names::dns1123_subdomain),
        ("hostname", names::dns1123_label),
        ("subdomain", names::dns1123_label),
        ("priorityClassName", names::dns1123_subdomain),
    ] {
        let name = text(spec, field);
        if !name.is_empty() {
            obeys(errors, &format!("{path}.{field}"), name, rule);
        }
    }
    labels(errors, &format!("{path}.nodeSelector"), at(spec, "nodeSelector"));
    for (place, toleration) in list(spec, "tolerations").iter().enumerate() {
        self::toleration(errors, &format!("{path}.tolerations[{place}]"), toleration);
    }
}

/// Checks volumes and yields their names.
fn volumes<'a>(errors: &mut Errors, path: &str, spec: &'a Value) -> HashSet<&'a str> {
    let all = list(spec, "volumes");
    for (place, volume) in all.iter().enumerate() {
        let path = format!("{path}.volumes[{place}]");
        named(errors, &format!("{path}.name"), text(volume, "name"), names::dns1123_label);
        source(errors, &path, volume);
    }
    unique(
        errors,
        all.iter()
            .enumerate()
            .map(|(place, known)| (format!("{path}.volumes[{place}].name"), text(known, "name"))),
    );
    all.iter().map(|volume| text(volume, "name")).filter(|name| !name.is_empty()).collect()
}

fn source(errors: &mut Errors, path: &str, volume: &Value) {
    let sources = volume.as_object().into_iter().flatten().filter(|(_, value)| value.is_object());
    for (place, (name, source)) in sources.enumerate() {
        let path = format!("{path}.{name}");
        if place > 0 {
            forbidden(errors, &path, "may not specify more than 1 volume type");
            continue;
        }
        let field = match name.as_str() {
            "secret" => "secretName",
            "configMap" => "name",
            "persistentVolumeClaim" => "claimName",
            "hostPath" => "path",
            _ => continue,
        };
        if text(source, field).is_empty() {
            required(errors, &format!("{path}.{field}"), "");
        }
    }
}

fn toleration(errors: &mut Errors, path: &str, toleration: &Value) {
    let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
    let operator_path = format!("{path}.operator");
    if !key.is_empty() {
        obeys(errors, &format!("{path}.key"), key, names::qualified_name);
    } else if operator != "Exists" {
        let detail =
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        invalid(errors, &operator_path, operator, detail);
    }
    if operator == "Exists" && !text(toleration, "value").is_empty() {
        let value = text(toleration, "value");
        invalid(errors, &operator_path, value, "value must be empty when `operator` is 'Exists'");
    }
    one_of(errors, &operator_path, operator, &["Equal", "Exists"]);
    let effects = &["NoSchedule", "PreferNoSchedule", "NoExecute"];
    one_of(errors, &format!("{path}.effect"), text(toleration, "effect"), effects);
}

/// A running Pod changes little: images, a shorter deadline, more tolerations. A Pod without a node may get one, which is how
/// binding works here.
fn pod_update(errors: &mut Errors, spec: &Value, old: &Value) {
    for kind in ["containers", "initContainers"] {
        if list(spec, kind).len() != list(old, kind).len() {
            let path = format!("spec.{kind}");
            return forbidden(errors, &path, "pod updates may not add or remove containers");
        }
    }
    if fixed_part(spec, old) != fixed_part(old, old) {
        forbidden(
            errors,
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
             `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
             `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
        );
    }
}

fn fixed_part(spec: &Value, old: &Value) -> Value {
    let mut spec = spec.clone();
    for kind in ["containers", "initContainers"] {
        for container in crate::lookup::list_mut(&mut spec, kind) {
            remove(container, "image");
        }
    }
    let kept = |toleration: &Value| list(old, "tolerations").contains(toleration);
    if let Some(Value::Array(tolerations)) = spec.get_mut("tolerations") {
        tolerations.retain(kept);
    }
    remove(&mut spec, "activeDeadlineSeconds");
    // Containers may be added on the side through a path of their own.
    remove(&mut spec, "ephemeralContainers");
    // Lifting the last gate is what lets a Pod be scheduled.
    remove(&mut spec, "schedulingGates");
    if text(old, "nodeName").is_empty() {
        remove(&mut spec, "nodeName");
    }
    spec
}

/// A node's taints. Kubernetes reports them under metadata.
pub(super) fn node(errors: &mut Errors, object: &Value) {
    for (place, taint) in list(object, "spec.taints").iter().enumerate() {
        let path = format!("metadata.taints[{place}]");
        obeys(errors, &format!("{path}.key"), text(taint, "key"), names::qualified_name);
        let effects = &["NoSchedule", "PreferNoSchedule", "NoExecute"];
        match text(taint, "effect") {
            "" => required(errors, &format!("{path}.effect"), ""),
            effect => one_of(errors, &format!("{path}.effect"), effect, effects),
        }
    }
}
