//! Containers of a Pod.

use std::collections::{HashMap, HashSet};

use baton_schema::names;
use serde_json::Value;

use super::checks::{
    Errors, amounts, duplicate, forbidden, invalid, named, not_found, not_negative, obeys, one_of, port,
    port_number, required, unique,
};
use crate::lookup::{at, int, list, text};
use crate::names::{config_key, port_name, variable_name};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

/// One container.
pub(super) fn container(errors: &mut Errors, path: &str, container: &Value, volumes: &HashSet<&str>) {
    named(errors, &format!("{path}.name"), text(container, "name"), names::dns1123_label);
    let image = text(container, "image");
    if image.is_empty() {
        required(errors, &format!("{path}.image"), "");
    } else if image.trim() != image {
        invalid(errors, &format!("{path}.image"), image, "must not have leading or trailing whitespace");
    }
    one_of(
        errors,
        &format!("{path}.terminationMessagePolicy"),
        text(container, "terminationMessagePolicy"),
        &["File", "FallbackToLogsOnError"],
    );
    one_of(
        errors,
        &format!("{path}.imagePullPolicy"),
        text(container, "imagePullPolicy"),
        &["Always", "IfNotPresent", "Never"],
    );
    ports(errors, path, container);
    environment(errors, path, container);
    mounts(errors, path, container, volumes);
    resources(errors, &format!("{path}.resources"), at(container, "resources"));
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = at(container, name) {
            self::probe(errors, &format!("{path}.{name}"), probe, name != "readinessProbe");
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(handler) = at(container, "lifecycle").and_then(|lifecycle| at(lifecycle, hook)) {
            self::handler(errors, &format!("{path}.lifecycle.{hook}"), handler);
        }
    }
}

fn ports(errors: &mut Errors, path: &str, container: &Value) {
    let ports = list(container, "ports");
    for (place, known) in ports.iter().enumerate() {
        let path = format!("{path}.ports[{place}]");
        let name = text(known, "name");
        if !name.is_empty() {
            obeys(errors, &format!("{path}.name"), name, port_name);
        }
        match int(known, "containerPort").unwrap_or(0) {
            0 => required(errors, &format!("{path}.containerPort"), ""),
            number => port_number(errors, &format!("{path}.containerPort"), number),
        }
        match int(known, "hostPort").unwrap_or(0) {
            0 => {}
            number => port_number(errors, &format!("{path}.hostPort"), number),
        }
        one_of(errors, &format!("{path}.protocol"), text(known, "protocol"), PROTOCOLS);
    }
    let names = ports.iter().enumerate();
    unique(errors, names.map(|(place, port)| (format!("{path}.ports[{place}].name"), text(port, "name"))));
}

fn environment(errors: &mut Errors, path: &str, container: &Value) {
    for (place, variable) in list(container, "env").iter().enumerate() {
        let path = format!("{path}.env[{place}]");
        named(errors, &format!("{path}.name"), text(variable, "name"), variable_name);
        let Some(source) = at(variable, "valueFrom") else { continue };
        let path = format!("{path}.valueFrom");
        if !text(variable, "value").is_empty() {
            invalid(errors, &path, "", "may not be specified when `value` is not empty");
        }
        let given =
            source.as_object().map_or(0, |fields| fields.values().filter(|value| !value.is_null()).count());
        match given {
            0 => invalid(
                errors,
                &path,
                "",
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
            ),
            1 => {}
            _ => invalid(errors, &path, "", "may not have more than one field specified at a time"),
        }
        for reference in ["configMapKeyRef", "secretKeyRef"] {
            let Some(key) = at(source, reference) else { continue };
            let path = format!("{path}.{reference}");
            obeys(errors, &format!("{path}.name"), text(key, "name"), names::dns1123_subdomain);
            named(errors, &format!("{path}.key"), text(key, "key"), config_key);
        }
        if let Some(field) = at(source, "fieldRef") {
            field_path(errors, &format!("{path}.fieldRef.fieldPath"), text(field, "fieldPath"));
        }
    }
    for (place, source) in list(container, "envFrom").iter().enumerate() {
        for reference in ["configMapRef", "secretRef"] {
            if let Some(map) = at(source, reference) {
                let path = format!("{path}.envFrom[{place}].{reference}.name");
                named(errors, &path, text(map, "name"), names::dns1123_subdomain);
            }
        }
    }
}

/// What a variable may show of its Pod.
fn field_path(errors: &mut Errors, path: &str, field: &str) {
    const KNOWN: [&str; 10] = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "metadata.labels",
        "metadata.annotations",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
    ];
    let subscript = ["metadata.labels['", "metadata.annotations['"];
    if field.is_empty() {
        required(errors, path, "");
    } else if !KNOWN.contains(&field)
        && field != "status.podIPs"
        && field != "spec.restartPolicy"
        && !subscript.iter().any(|prefix| field.starts_with(prefix) && field.ends_with("']"))
    {
        let detail = format!("error converting fieldPath: field label not supported: {field}");
        invalid(errors, path, field, detail);
    }
}

fn mounts(errors: &mut Errors, path: &str, container: &Value, volumes: &HashSet<&str>) {
    let mut paths = HashSet::new();
    for (place, mount) in list(container, "volumeMounts").iter().enumerate() {
        let path = format!("{path}.volumeMounts[{place}]");
        let (name, target) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            required(errors, &format!("{path}.name"), "");
        }
        if !volumes.contains(name) {
            not_found(errors, &format!("{path}.name"), name);
        }
        if target.is_empty() {
            required(errors, &format!("{path}.mountPath"), "");
        } else if !paths.insert(target) {
            invalid(errors, &format!("{path}.mountPath"), target, "must be unique");
        }
    }
}

/// Requests and limits.
pub(super) fn resources(errors: &mut Errors, path: &str, resources: Option<&Value>) {
    let Some(resources) = resources else { return };
    let limits = amounts(errors, &format!("{path}.limits"), at(resources, "limits"));
    let requests = amounts(errors, &format!("{path}.requests"), at(resources, "requests"));
    let limits: HashMap<String, _> = limits.into_iter().collect();
    for (name, request) in requests {
        if let Some(limit) = limits.get(&name)
            && request > *limit
        {
            let detail = format!("must be less than or equal to {name} limit of {}", limit.canonical());
            invalid(errors, &format!("{path}.requests"), request.canonical(), detail);
        }
    }
}

fn probe(errors: &mut Errors, path: &str, probe: &Value, succeeds_once: bool) {
    handler(errors, path, probe);
    let counts =
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];
    not_negative(errors, probe, path, &counts);
    if succeeds_once
        && let Some(threshold) = int(probe, "successThreshold").filter(|threshold| *threshold > 1)
    {
        invalid(errors, &format!("{path}.successThreshold"), threshold, "must be 1");
    }
}

/// Exactly one way to ask the container.
fn handler(errors: &mut Errors, path: &str, handler: &Value) {
    let mut given = 0;
    for name in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let Some(way) = at(handler, name) else { continue };
        let path = format!("{path}.{name}");
        given += 1;
        if given > 1 {
            forbidden(errors, &path, "may not specify more than 1 handler type");
            continue;
        }
        match name {
            "exec" if list(way, "command").is_empty() => required(errors, &format!("{path}.command"), ""),
            "httpGet" => {
                port(errors, &format!("{path}.port"), at(way, "port"));
                one_of(errors, &format!("{path}.scheme"), text(way, "scheme"), &["HTTP", "HTTPS"]);
            }
            "tcpSocket" | "grpc" => port(errors, &format!("{path}.port"), at(way, "port")),
            _ => {}
        }
    }
    if given == 0 {
        required(errors, path, "must specify a handler type");
    }
}

/// Names of containers must differ across all lists.
pub(super) fn unique_names(errors: &mut Errors, path: &str, spec: &Value) {
    let mut seen = HashSet::new();
    for kind in ["containers", "initContainers", "ephemeralContainers"] {
        for (place, container) in list(spec, kind).iter().enumerate() {
            let name = text(container, "name");
            if !name.is_empty() && !seen.insert(name) {
                duplicate(errors, &format!("{path}.{kind}[{place}].name"), name);
            }
        }
    }
}
