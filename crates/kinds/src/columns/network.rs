//! Services and what leads to Pods.

use std::collections::BTreeSet;

use serde_json::Value;

use super::selectors::{labels, or_none, selector};
use super::{Row, shortened};
use crate::lookup::{annotation, at, int, list, text};

/// How many addresses, ports or hosts a cell shows.
const MOST: usize = 3;

pub(super) fn service(row: Row<'_>) -> Vec<Value> {
    let addresses = list(row.object, "spec.clusterIPs");
    let address = addresses.first().and_then(Value::as_str).unwrap_or_default();
    let ports: Vec<String> = list(row.object, "spec.ports").iter().map(service_port).collect();
    vec![
        row.name(),
        row.text("spec.type"),
        or_none(address.to_owned()),
        external_address(row.object).into(),
        or_none(ports.join(",")),
        row.age(),
        labels(row.object, "spec.selector"),
    ]
}

fn service_port(port: &Value) -> String {
    let (number, protocol) = (int(port, "port").unwrap_or(0), text(port, "protocol"));
    match int(port, "nodePort").unwrap_or(0) {
        0 => format!("{number}/{protocol}"),
        node => format!("{number}:{node}/{protocol}"),
    }
}

fn external_address(service: &Value) -> String {
    let stated: Vec<String> =
        list(service, "spec.externalIPs").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    match text(service, "spec.type") {
        "ClusterIP" | "NodePort" if stated.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => stated.join(","),
        "LoadBalancer" => {
            let given = load_balancer(service);
            let all: Vec<String> = (!given.is_empty()).then_some(given).into_iter().chain(stated).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ExternalName" => text(service, "spec.externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn load_balancer(object: &Value) -> String {
    let points: BTreeSet<&str> = list(object, "status.loadBalancer.ingress")
        .iter()
        .map(|point| match text(point, "ip") {
            "" => text(point, "hostname"),
            address => address,
        })
        .filter(|point| !point.is_empty())
        .collect();
    points.into_iter().collect::<Vec<_>>().join(",")
}

pub(super) fn endpoints(row: Row<'_>) -> Vec<Value> {
    let subsets = list(row.object, "subsets");
    let mut all = Vec::new();
    for subset in subsets {
        let addresses = list(subset, "addresses").iter().map(|address| text(address, "ip"));
        let ports = list(subset, "ports");
        if ports.is_empty() {
            all.extend(addresses.map(str::to_owned));
            continue;
        }
        for port in ports {
            let number = int(port, "port").unwrap_or(0);
            all.extend(addresses.clone().map(|address| match address.contains(':') {
                true => format!("[{address}]:{number}"),
                false => format!("{address}:{number}"),
            }));
        }
    }
    let cell = if subsets.is_empty() { "<none>".to_owned() } else { shortened(&all, MOST) };
    vec![row.name(), cell.into(), row.age()]
}

pub(super) fn endpoint_slice(row: Row<'_>) -> Vec<Value> {
    let ports: Vec<String> = list(row.object, "ports")
        .iter()
        .map(|port| match (int(port, "port"), at(port, "name").and_then(Value::as_str)) {
            (Some(number), _) => number.to_string(),
            (None, Some(name)) => name.to_owned(),
            (None, None) => "*".to_owned(),
        })
        .collect();
    let addresses: Vec<String> = list(row.object, "endpoints")
        .iter()
        .flat_map(|endpoint| list(endpoint, "addresses"))
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let cell = |all: &[String]| match shortened(all, MOST) {
        text if text.is_empty() => Value::from("<unset>"),
        text => text.into(),
    };
    vec![row.name(), row.text("addressType"), cell(&ports), cell(&addresses), row.age()]
}

pub(super) fn ingress(row: Row<'_>) -> Vec<Value> {
    let rules = list(row.object, "spec.rules");
    let hosts: Vec<String> =
        rules.iter().map(|rule| text(rule, "host").to_owned()).filter(|host| !host.is_empty()).collect();
    let hosts = if hosts.is_empty() { "*".to_owned() } else { shortened(&hosts, MOST) };
    let ports = if list(row.object, "spec.tls").is_empty() { "80" } else { "80, 443" };
    vec![
        row.name(),
        row.text_or("spec.ingressClassName", "<none>"),
        hosts.into(),
        load_balancer(row.object).into(),
        ports.into(),
        row.age(),
    ]
}

pub(super) fn ingress_class(row: Row<'_>) -> Vec<Value> {
    let mut name = text(row.object, "metadata.name").to_owned();
    if annotation(row.object, "ingressclass.kubernetes.io/is-default-class") == "true" {
        name.push_str(" (default)");
    }
    let parameters = at(row.object, "spec.parameters").map(|parameters| {
        let group = text(parameters, "apiGroup");
        let dot = if group.is_empty() { "" } else { "." };
        format!("{}{dot}{group}/{}", text(parameters, "kind"), text(parameters, "name"))
    });
    vec![name.into(), row.text("spec.controller"), or_none(parameters.unwrap_or_default()), row.age()]
}

pub(super) fn policy(row: Row<'_>) -> Vec<Value> {
    vec![row.name(), selector(row.object, "spec.podSelector"), row.age()]
}

pub(super) fn address(row: Row<'_>) -> Vec<Value> {
    let parent = at(row.object, "spec.parentRef").map(|parent| {
        let (group, namespace) = (text(parent, "group"), text(parent, "namespace"));
        let mut path = text(parent, "resource").to_lowercase();
        if !group.is_empty() {
            path = format!("{path}.{}", group.to_lowercase());
        }
        if !namespace.is_empty() {
            path = format!("{path}/{namespace}");
        }
        format!("{path}/{}", text(parent, "name"))
    });
    vec![row.name(), or_none(parent.unwrap_or_default()), row.age()]
}

pub(super) fn range(row: Row<'_>) -> Vec<Value> {
    let ranges: Vec<&str> = list(row.object, "spec.cidrs").iter().filter_map(Value::as_str).collect();
    vec![row.name(), ranges.join(",").into(), row.age()]
}
