//! Pods and the templates of Pods.

use serde_json::{Value, json};

use super::{amount, amounts, storage};
use crate::lookup::{at, at_mut, ensure, fields, fill, fill_zero, flag, list_mut, set, text};

const DEFAULT_MODE: i64 = 0o644;
const LISTS_OF_CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// A Pod: everything a template gets, and what is only decided for a Pod that is going to run.
pub(super) fn pod(object: &mut Value) {
    let Some(spec) = ensure(object, "spec") else { return };
    for containers in ["initContainers", "containers"] {
        list_mut(spec, containers).for_each(request_what_is_limited);
    }
    fill(spec, "enableServiceLinks", true);
    pod_spec(spec);
}

/// The Pod template at a path.
pub(super) fn template(object: &mut Value, path: &str) {
    let Some(template) = at_mut(object, path) else { return };
    if let Some(spec) = ensure(template, "spec") {
        pod_spec(spec);
    }
    ensure(template, "metadata");
}

fn pod_spec(spec: &mut Value) {
    fill(spec, "dnsPolicy", "ClusterFirst");
    fill(spec, "restartPolicy", "Always");
    fill(spec, "schedulerName", "default-scheduler");
    fill(spec, "terminationGracePeriodSeconds", 30);
    ensure(spec, "securityContext");
    mirror_service_account(spec);
    amounts(spec, &["overhead", "resources.limits", "resources.requests"]);
    list_mut(spec, "volumes").for_each(volume);
    let host_network = flag(spec, "hostNetwork");
    for containers in LISTS_OF_CONTAINERS {
        for each in list_mut(spec, containers) {
            container(each, host_network);
            if containers == "ephemeralContainers" {
                continue;
            }
            ensure(each, "resources");
        }
    }
}

/// The field's first name is kept alive for old clients.
fn mirror_service_account(spec: &mut Value) {
    if text(spec, "serviceAccountName").is_empty() {
        let old = text(spec, "serviceAccount").to_owned();
        if !old.is_empty() {
            set(spec, "serviceAccountName", old);
        }
    }
    let name = text(spec, "serviceAccountName").to_owned();
    if !name.is_empty() {
        set(spec, "serviceAccount", name);
    }
}

fn request_what_is_limited(container: &mut Value) {
    let Some(limits) = fields(container, "resources.limits").cloned() else { return };
    let Some(requests) = ensure(container, "resources").and_then(|resources| ensure(resources, "requests"))
    else {
        return;
    };
    for (name, limit) in limits {
        fill(requests, &name, limit);
    }
}

fn container(container: &mut Value, host_network: bool) {
    let policy = pull_policy(text(container, "image"));
    fill(container, "imagePullPolicy", policy);
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    amounts(container, &["resources.limits", "resources.requests"]);
    for port in list_mut(container, "ports") {
        fill(port, "protocol", "TCP");
        if host_network && let Some(number) = at(port, "containerPort").cloned() {
            fill_zero(port, "hostPort", number);
        }
    }
    for variable in list_mut(container, "env") {
        if let Some(source) = at_mut(variable, "valueFrom") {
            field_source(source);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = at_mut(container, name) {
            self::probe(probe);
        }
    }
    for hook in ["lifecycle.postStart.httpGet", "lifecycle.preStop.httpGet"] {
        if let Some(get) = at_mut(container, hook) {
            http_get(get);
        }
    }
}

/// `IfNotPresent`, except for images whose tag moves.
fn pull_policy(image: &str) -> &'static str {
    if image.contains('@') {
        return "IfNotPresent";
    }
    let name = image.rsplit('/').next().unwrap_or(image);
    match name.rsplit_once(':') {
        Some((_, tag)) if tag != "latest" => "IfNotPresent",
        _ => "Always",
    }
}

fn probe(probe: &mut Value) {
    fill_zero(probe, "timeoutSeconds", 1);
    fill_zero(probe, "periodSeconds", 10);
    fill_zero(probe, "successThreshold", 1);
    fill_zero(probe, "failureThreshold", 3);
    if let Some(get) = at_mut(probe, "httpGet") {
        http_get(get);
    }
    if let Some(grpc) = at_mut(probe, "grpc") {
        fill(grpc, "service", "");
    }
}

fn http_get(get: &mut Value) {
    fill(get, "path", "/");
    fill(get, "scheme", "HTTP");
}

fn field_source(source: &mut Value) {
    if let Some(field) = at_mut(source, "fieldRef") {
        fill(field, "apiVersion", "v1");
    }
    if let Some(resource) = at_mut(source, "resourceFieldRef") {
        fill(resource, "divisor", "0");
        if let Some(divisor) = resource.get_mut("divisor") {
            amount(divisor);
        }
    }
}

fn volume(volume: &mut Value) {
    let sources =
        volume.as_object().map_or(0, |fields| fields.values().filter(|value| value.is_object()).count());
    if sources == 0 {
        set(volume, "emptyDir", json!({}));
    }
    if let Some(limit) = at_mut(volume, "emptyDir.sizeLimit") {
        amount(limit);
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = at_mut(volume, source) {
            fill(source, "defaultMode", DEFAULT_MODE);
        }
    }
    list_mut(volume, "downwardAPI.items").for_each(field_source);
    for projected in list_mut(volume, "projected.sources") {
        if let Some(token) = at_mut(projected, "serviceAccountToken") {
            fill(token, "expirationSeconds", 3600);
        }
        list_mut(projected, "downwardAPI.items").for_each(field_source);
    }
    if let Some(path) = at_mut(volume, "hostPath")
        && at(path, "type").is_none()
    {
        set(path, "type", "");
    }
    if let Some(claim) = at_mut(volume, "ephemeral.volumeClaimTemplate") {
        if let Some(spec) = ensure(claim, "spec") {
            storage::claim_spec(spec);
        }
        ensure(claim, "metadata");
    }
    let policy = pull_policy(text(volume, "image.reference"));
    if let Some(image) = at_mut(volume, "image") {
        fill(image, "pullPolicy", policy);
    }
    storage::source(volume);
}
