//! Services and what leads to Pods.

use std::collections::HashSet;
use std::net::IpAddr;

use baton_schema::names;
use serde_json::{Value, json};

use super::checks::{
    Errors, address, duplicate, forbidden, immutable, invalid, labels, named, obeys, one_of, port,
    port_number, required, unique,
};
use super::selectors::selector;
use crate::lookup::{at, int, list, text};
use crate::names::port_name;

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const TRAFFIC: &[&str] = &["Cluster", "Local"];
const NOTHING: &Value = &Value::Null;

pub(super) fn service(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    let spec = at(object, "spec").unwrap_or(NOTHING);
    let kind = text(spec, "type");
    let headless = text(spec, "clusterIP") == "None";
    let ports = list(spec, "ports");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        required(errors, "spec.ports", "");
    }
    if headless && matches!(kind, "NodePort" | "LoadBalancer") {
        let detail = format!("may not be set to 'None' for {kind} services");
        invalid(errors, "spec.clusterIPs[0]", "None", detail);
    }
    if kind == "ExternalName" {
        match text(spec, "externalName").trim_end_matches('.') {
            "" => required(errors, "spec.externalName", ""),
            name => obeys(errors, "spec.externalName", name, names::dns1123_subdomain),
        }
    }
    service_ports(errors, ports, kind);
    labels(errors, "spec.selector", at(spec, "selector"));
    let affinities = &["ClientIP", "None"];
    one_of(errors, "spec.sessionAffinity", text(spec, "sessionAffinity"), affinities);
    let kinds = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    one_of(errors, "spec.type", kind, kinds);
    service_addresses(errors, spec);
    let external = text(spec, "externalTrafficPolicy");
    if matches!(kind, "NodePort" | "LoadBalancer") {
        one_of(errors, "spec.externalTrafficPolicy", external, TRAFFIC);
    } else if !external.is_empty() && list(spec, "externalIPs").is_empty() {
        let detail = "may only be set for externally-accessible services";
        invalid(errors, "spec.externalTrafficPolicy", external, detail);
    }
    one_of(errors, "spec.internalTrafficPolicy", text(spec, "internalTrafficPolicy"), TRAFFIC);
    if let Some(old) = old {
        keeps_address(errors, spec, at(old, "spec").unwrap_or(NOTHING));
    }
}

fn service_ports(errors: &mut Errors, ports: &[Value], kind: &str) {
    let mut taken = HashSet::new();
    for (place, known) in ports.iter().enumerate() {
        let path = format!("spec.ports[{place}]");
        match text(known, "name") {
            "" if ports.len() > 1 => required(errors, &format!("{path}.name"), ""),
            "" => {}
            name => obeys(errors, &format!("{path}.name"), name, names::dns1123_label),
        }
        let number = int(known, "port").unwrap_or(0);
        port_number(errors, &format!("{path}.port"), number);
        let protocol = text(known, "protocol");
        one_of(errors, &format!("{path}.protocol"), protocol, PROTOCOLS);
        port(errors, &format!("{path}.targetPort"), at(known, "targetPort"));
        if !matches!(kind, "NodePort" | "LoadBalancer") && int(known, "nodePort").unwrap_or(0) != 0 {
            let detail = format!("may not be used when `type` is '{kind}'");
            forbidden(errors, &format!("{path}.nodePort"), &detail);
        }
        if !taken.insert((protocol, number)) {
            duplicate(errors, &path, json!({"port": number, "protocol": protocol}));
        }
    }
    let all = ports.iter().enumerate();
    unique(errors, all.map(|(place, known)| (format!("spec.ports[{place}].name"), text(known, "name"))));
}

fn service_addresses(errors: &mut Errors, spec: &Value) {
    for (place, known) in list(spec, "clusterIPs").iter().enumerate() {
        let known = known.as_str().unwrap_or_default();
        if !matches!(known, "None" | "") {
            address(errors, &format!("spec.clusterIPs[{place}]"), known);
        }
    }
    for (place, known) in list(spec, "externalIPs").iter().enumerate() {
        address(errors, &format!("spec.externalIPs[{place}]"), known.as_str().unwrap_or_default());
    }
}

/// A Service may lose its address by becoming a name for something else, but not change it.
fn keeps_address(errors: &mut Errors, spec: &Value, old: &Value) {
    let (before, after) = (text(old, "clusterIP"), text(spec, "clusterIP"));
    let external = |spec: &Value| text(spec, "type") == "ExternalName";
    if external(spec) || external(old) || before.is_empty() || before == after {
        return;
    }
    let shown = at(spec, "clusterIPs").cloned().unwrap_or_else(|| json!([after]));
    invalid(errors, "spec.clusterIPs[0]", shown, "may not change once set");
}

pub(super) fn endpoints(errors: &mut Errors, object: &Value) {
    for (place, subset) in list(object, "subsets").iter().enumerate() {
        let path = format!("subsets[{place}]");
        if list(subset, "addresses").is_empty() && list(subset, "notReadyAddresses").is_empty() {
            required(errors, &path, "must specify `addresses` or `notReadyAddresses`");
        }
        for kind in ["addresses", "notReadyAddresses"] {
            for (place, known) in list(subset, kind).iter().enumerate() {
                address(errors, &format!("{path}.{kind}[{place}].ip"), text(known, "ip"));
            }
        }
        for (place, known) in list(subset, "ports").iter().enumerate() {
            let path = format!("{path}.ports[{place}]");
            port_number(errors, &format!("{path}.port"), int(known, "port").unwrap_or(0));
            one_of(errors, &format!("{path}.protocol"), text(known, "protocol"), PROTOCOLS);
        }
    }
}

pub(super) fn endpoint_slice(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    let kinds = &["FQDN", "IPv4", "IPv6"];
    let kind = text(object, "addressType");
    if kind.is_empty() {
        required(errors, "addressType", "");
    }
    one_of(errors, "addressType", kind, kinds);
    for (place, known) in list(object, "ports").iter().enumerate() {
        one_of(errors, &format!("ports[{place}].protocol"), text(known, "protocol"), PROTOCOLS);
    }
    for (place, endpoint) in list(object, "endpoints").iter().enumerate() {
        let path = format!("endpoints[{place}].addresses");
        let addresses = list(endpoint, "addresses");
        if addresses.is_empty() {
            required(errors, &path, "must contain at least 1 address");
        }
        for (place, known) in addresses.iter().enumerate() {
            let known = known.as_str().unwrap_or_default();
            match kind {
                "FQDN" => obeys(errors, &format!("{path}[{place}]"), known, names::dns1123_subdomain),
                "IPv4" | "IPv6" => address(errors, &format!("{path}[{place}]"), known),
                _ => {}
            }
        }
    }
    if let Some(old) = old {
        immutable(errors, object, old, "addressType");
    }
}

pub(super) fn ingress(errors: &mut Errors, object: &Value) {
    let spec = at(object, "spec").unwrap_or(NOTHING);
    let rules = list(spec, "rules");
    let default = at(spec, "defaultBackend");
    if rules.is_empty() && default.is_none() {
        invalid(errors, "spec", Value::Null, "either `defaultBackend` or `rules` must be specified");
    }
    if let Some(default) = default {
        backend(errors, "spec.defaultBackend", default);
    }
    for (place, rule) in rules.iter().enumerate() {
        let path = format!("spec.rules[{place}]");
        host(errors, &format!("{path}.host"), text(rule, "host"));
        if let Some(http) = at(rule, "http") {
            let paths = list(http, "paths");
            if paths.is_empty() {
                required(errors, &format!("{path}.http.paths"), "");
            }
            for (place, known) in paths.iter().enumerate() {
                ingress_path(errors, &format!("{path}.http.paths[{place}]"), known);
            }
        }
    }
    for (place, tls) in list(spec, "tls").iter().enumerate() {
        for (nth, name) in list(tls, "hosts").iter().enumerate() {
            let name = name.as_str().unwrap_or_default();
            let rule =
                if name.contains('*') { names::wildcard_dns1123_subdomain } else { names::dns1123_subdomain };
            obeys(errors, &format!("spec.tls[{place}].hosts[{nth}]"), name, rule);
        }
    }
    let class = text(spec, "ingressClassName");
    if !class.is_empty() {
        obeys(errors, "spec.ingressClassName", class, names::dns1123_subdomain);
    }
}

fn host(errors: &mut Errors, path: &str, host: &str) {
    if host.is_empty() {
        return;
    }
    if host.parse::<IpAddr>().is_ok() {
        return invalid(errors, path, host, "must be a DNS name, not an IP address");
    }
    let rule = if host.contains('*') { names::wildcard_dns1123_subdomain } else { names::dns1123_subdomain };
    obeys(errors, path, host, rule);
}

fn ingress_path(errors: &mut Errors, path: &str, known: &Value) {
    const KINDS: &[&str] = &["Exact", "ImplementationSpecific", "Prefix"];
    let (target, kind) = (text(known, "path"), text(known, "pathType"));
    let target_path = format!("{path}.path");
    match kind {
        "" => required(errors, &format!("{path}.pathType"), "pathType must be specified"),
        "Exact" | "Prefix" => {
            if !target.starts_with('/') {
                invalid(errors, &target_path, target, "must be an absolute path");
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"] {
                if target.contains(part) {
                    invalid(errors, &target_path, target, format!("must not contain '{part}'"));
                }
            }
            for end in ["/..", "/."] {
                if target.ends_with(end) {
                    invalid(errors, &target_path, target, format!("cannot end with '{end}'"));
                }
            }
        }
        "ImplementationSpecific" if !target.is_empty() && !target.starts_with('/') => {
            invalid(errors, &target_path, target, "must be an absolute path");
        }
        _ => one_of(errors, &format!("{path}.pathType"), kind, KINDS),
    }
    backend(errors, &format!("{path}.backend"), at(known, "backend").unwrap_or(NOTHING));
}

fn backend(errors: &mut Errors, path: &str, backend: &Value) {
    match (at(backend, "resource"), at(backend, "service")) {
        (Some(_), Some(_)) => invalid(errors, path, "", "cannot set both resource and service backends"),
        (Some(_), None) => {}
        (None, None) => invalid(errors, path, "", "resource or service backend is required"),
        (None, Some(service)) => {
            named(errors, &format!("{path}.service.name"), text(service, "name"), names::dns1035_label);
            let (name, number) = (text(service, "port.name"), int(service, "port.number").unwrap_or(0));
            match (name.is_empty(), number) {
                (true, 0) => required(errors, path, "port name or number is required"),
                (false, 0) => obeys(errors, &format!("{path}.service.port.name"), name, port_name),
                (true, number) => port_number(errors, &format!("{path}.service.port.number"), number),
                (false, _) => invalid(errors, path, "", "cannot set both port name & port number"),
            }
        }
    }
}

pub(super) fn ingress_class(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    let controller = text(object, "spec.controller");
    if controller.is_empty() {
        required(errors, "spec.controller", "");
    } else if !controller.contains('/') {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        invalid(errors, "spec.controller", controller, detail);
    }
    if let Some(old) = old {
        immutable(errors, object, old, "spec.controller");
    }
}

pub(super) fn policy(errors: &mut Errors, object: &Value) {
    let spec = at(object, "spec").unwrap_or(NOTHING);
    if let Some(pods) = at(spec, "podSelector") {
        selector(errors, "spec.podSelector", pods);
    }
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (place, rule) in list(spec, direction).iter().enumerate() {
            let path = format!("spec.{direction}[{place}]");
            for (place, known) in list(rule, "ports").iter().enumerate() {
                let path = format!("{path}.ports[{place}]");
                let protocols = &["TCP", "UDP", "SCTP"];
                one_of(errors, &format!("{path}.protocol"), text(known, "protocol"), protocols);
                if at(known, "port").is_some() {
                    port(errors, &format!("{path}.port"), at(known, "port"));
                }
            }
            for (place, known) in list(rule, peers).iter().enumerate() {
                peer(errors, &format!("{path}.{peers}[{place}]"), known);
            }
        }
    }
    for (place, kind) in list(spec, "policyTypes").iter().enumerate() {
        let kind = kind.as_str().unwrap_or_default();
        one_of(errors, &format!("spec.policyTypes[{place}]"), kind, &["Ingress", "Egress"]);
    }
}

fn peer(errors: &mut Errors, path: &str, peer: &Value) {
    let mut given = false;
    for kind in ["podSelector", "namespaceSelector"] {
        if let Some(known) = at(peer, kind) {
            given = true;
            selector(errors, &format!("{path}.{kind}"), known);
        }
    }
    if let Some(block) = at(peer, "ipBlock") {
        if given {
            forbidden(errors, path, "may not specify both ipBlock and another peer");
        }
        given = true;
        let range = text(block, "cidr");
        if !is_range(range) {
            let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            invalid(errors, &format!("{path}.ipBlock.cidr"), range, detail);
        }
    }
    if !given {
        required(errors, path, "must specify a peer");
    }
}

fn is_range(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}
