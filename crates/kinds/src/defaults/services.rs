//! Services and what leads to Pods.

use serde_json::{Value, json};

use crate::lookup::{at, at_mut, ensure, fill, fill_zero, list, list_mut, set, text};

pub(super) fn service(object: &mut Value) {
    let Some(spec) = ensure(object, "spec") else { return };
    fill(spec, "sessionAffinity", "None");
    fill(spec, "type", "ClusterIP");
    if text(spec, "sessionAffinity") == "ClientIP"
        && let Some(client) =
            ensure(spec, "sessionAffinityConfig").and_then(|config| ensure(config, "clientIP"))
    {
        fill(client, "timeoutSeconds", 10800);
    }
    for port in list_mut(spec, "ports") {
        fill(port, "protocol", "TCP");
        if let Some(number) = at(port, "port").cloned() {
            fill_zero(port, "targetPort", number);
        }
    }
    let kind = text(spec, "type").to_owned();
    if kind == "ExternalName" {
        return;
    }
    fill(spec, "internalTrafficPolicy", "Cluster");
    if !matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        return;
    }
    fill(spec, "externalTrafficPolicy", "Cluster");
    if kind == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
    }
}

pub(super) fn endpoints(object: &mut Value) {
    for subset in list_mut(object, "subsets") {
        for port in list_mut(subset, "ports") {
            fill(port, "protocol", "TCP");
        }
    }
}

pub(super) fn endpoint_slice(object: &mut Value) {
    for endpoint in list_mut(object, "endpoints") {
        ensure(endpoint, "conditions");
    }
    for port in list_mut(object, "ports") {
        fill(port, "name", "");
        fill(port, "protocol", "TCP");
    }
}

pub(super) fn network_policy(object: &mut Value) {
    let Some(spec) = ensure(object, "spec") else { return };
    if list(spec, "policyTypes").is_empty() {
        let egress = !list(spec, "egress").is_empty();
        set(spec, "policyTypes", if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
    }
    for direction in ["ingress", "egress"] {
        for rule in list_mut(spec, direction) {
            for port in list_mut(rule, "ports") {
                fill(port, "protocol", "TCP");
            }
        }
    }
}

pub(super) fn ingress_class(object: &mut Value) {
    if let Some(parameters) = at_mut(object, "spec.parameters") {
        fill(parameters, "scope", "Cluster");
    }
}
