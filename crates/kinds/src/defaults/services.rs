//! Services and what leads to Pods.

use serde_json::{Value, json};

use crate::lookup::{at, at_mut, ensure, fill, fill_zero, flag, list, list_mut, set, text};

pub(super) fn service(object: &mut Value) {
    let identity = format!("{}/{}", text(object, "metadata.namespace"), text(object, "metadata.name"));
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
    let address = text(spec, "clusterIP").to_owned();
    if list(spec, "clusterIPs").is_empty() && !address.is_empty() {
        set(spec, "clusterIPs", json!([address]));
    }
    let family = if address.contains(':') { "IPv6" } else { "IPv4" };
    if list(spec, "ipFamilies").is_empty() {
        set(spec, "ipFamilies", json!([family]));
    }
    fill(spec, "ipFamilyPolicy", "SingleStack");
    if !matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        return;
    }
    fill(spec, "externalTrafficPolicy", "Cluster");
    if kind == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
    }
    if kind == "NodePort" || flag(spec, "allocateLoadBalancerNodePorts") {
        node_ports(spec, &identity);
    }
}

/// Ports on every node from the usual range, spread by name and kept apart within the Service.
fn node_ports(spec: &mut Value, identity: &str) {
    const FIRST: i64 = 30000;
    const COUNT: i64 = 2768;
    let mut taken: Vec<i64> =
        list(spec, "ports").iter().filter_map(|port| at(port, "nodePort")?.as_i64()).collect();
    let start = i64::from(hash(identity)) % COUNT;
    for port in list_mut(spec, "ports") {
        let free = (0..COUNT).map(|step| FIRST + (start + step) % COUNT).find(|port| !taken.contains(port));
        if let Some(free) = free {
            fill_zero(port, "nodePort", free);
            taken.push(free);
        }
    }
}

/// FNV-1a: small, stable across releases, and spread well enough for names.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
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
