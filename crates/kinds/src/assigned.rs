//! What the server itself decides about an object, beyond defaults: in Kubernetes this is the work of admission, of
//! allocators, and of fields that are always written. Nobody who writes the object owns it.

use serde_json::{Value, json};

use crate::Kind;
use crate::lookup::{at, ensure, fill, fill_zero, flag, list, list_mut, set, text};

/// Completes a new object (`old` is `None`) or a new version of one.
pub(crate) fn complete(kind: &Kind, object: &mut Value, old: Option<&Value>) {
    match (kind.group, kind.plural) {
        ("", "pods") => pod(object, old),
        ("", "services") => service(object, old),
        ("", "events") => {
            ["reportingComponent", "reportingInstance"].into_iter().for_each(|name| fill(object, name, ""));
            ["eventTime", "firstTimestamp", "lastTimestamp"]
                .into_iter()
                .for_each(|name| always_written(object, name));
            ensure(object, "source");
        }
        ("events.k8s.io", _) => {
            fill(object, "reportingController", "");
            ["deprecatedFirstTimestamp", "deprecatedLastTimestamp", "eventTime"]
                .into_iter()
                .for_each(|name| always_written(object, name));
            ensure(object, "deprecatedSource");
        }
        ("discovery.k8s.io", _) => {
            ["endpoints", "ports"].into_iter().for_each(|name| always_written(object, name));
        }
        ("rbac.authorization.k8s.io", "roles" | "clusterroles") => always_written(object, "rules"),
        ("storage.k8s.io", "csinodes") => {
            if let Some(spec) = ensure(object, "spec") {
                always_written(spec, "drivers");
            }
        }
        _ => {}
    }
}

/// A list or time that shows as `null` where it is empty.
fn always_written(object: &mut Value, name: &str) {
    let empty = list(object, name).is_empty() && at(object, name).is_none_or(Value::is_array);
    if empty {
        set(object, name, Value::Null);
    }
}

fn pod(object: &mut Value, old: Option<&Value>) {
    let Some(spec) = ensure(object, "spec") else { return };
    if old.is_none() && text(spec, "serviceAccountName").is_empty() {
        set(spec, "serviceAccountName", "default");
        set(spec, "serviceAccount", "default");
    }
    fill(spec, "priority", 0);
    fill(spec, "preemptionPolicy", "PreemptLowerPriority");
    tolerate_short_outages(spec);
}

/// Without a toleration of its own a Pod stays five minutes on a node that is not ready or out of reach.
fn tolerate_short_outages(spec: &mut Value) {
    const OUTAGES: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
    const SECONDS: i64 = 300;
    for key in OUTAGES {
        let tolerated = list(spec, "tolerations").iter().any(|toleration| {
            let (known, effect) = (text(toleration, "key"), text(toleration, "effect"));
            (known == key || known.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        });
        if tolerated {
            continue;
        }
        fill(spec, "tolerations", json!([]));
        if let Some(Value::Array(tolerations)) = spec.get_mut("tolerations") {
            tolerations.push(
                json!({"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": SECONDS}),
            );
        }
    }
}

/// Families of addresses and ports on nodes; the address itself somebody has to keep a book of.
fn service(object: &mut Value, old: Option<&Value>) {
    let identity = format!("{}/{}", text(object, "metadata.namespace"), text(object, "metadata.name"));
    let Some(spec) = ensure(object, "spec") else { return };
    let kind = text(spec, "type").to_owned();
    if kind == "ExternalName" {
        return;
    }
    let before = old.and_then(|old| at(old, "spec")).filter(|before| text(before, "type") != "ExternalName");
    if let Some(before) = before {
        keep_allocated(spec, before);
    }
    let address = text(spec, "clusterIP").to_owned();
    if list(spec, "clusterIPs").is_empty() && !address.is_empty() {
        set(spec, "clusterIPs", json!([address]));
    }
    // Somebody else says where a headless Service without a selector leads to, in whatever family.
    let any_family = address == "None" && at(spec, "selector").is_none();
    if list(spec, "ipFamilies").is_empty() {
        let family = if address.contains(':') { "IPv6" } else { "IPv4" };
        let both = any_family && matches!(text(spec, "ipFamilyPolicy"), "" | "RequireDualStack");
        set(spec, "ipFamilies", if both { json!(["IPv4", "IPv6"]) } else { json!([family]) });
    }
    fill(spec, "ipFamilyPolicy", if any_family { "RequireDualStack" } else { "SingleStack" });
    if kind == "NodePort" || (kind == "LoadBalancer" && flag(spec, "allocateLoadBalancerNodePorts")) {
        node_ports(spec, &identity);
    }
}

/// An update that leaves out what was allocated means what the Service has.
fn keep_allocated(spec: &mut Value, before: &Value) {
    if text(spec, "clusterIP").is_empty()
        && let (Some(address), Some(addresses)) = (at(before, "clusterIP"), at(before, "clusterIPs"))
    {
        set(spec, "clusterIP", address.clone());
        set(spec, "clusterIPs", addresses.clone());
    }
    for field in ["ipFamilies", "ipFamilyPolicy"] {
        if let (None, Some(known)) = (at(spec, field), at(before, field)) {
            set(spec, field, known.clone());
        }
    }
    if !matches!(text(spec, "type"), "NodePort" | "LoadBalancer") {
        return;
    }
    for port in list_mut(spec, "ports") {
        let same = list(before, "ports").iter().find(|known| text(known, "name") == text(port, "name"));
        if let Some(known) = same.and_then(|known| at(known, "nodePort")).cloned() {
            fill_zero(port, "nodePort", known);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn created(kind: &str, object: Value) -> Value {
        let mut object = object;
        let kind = crate::find_kind("", "v1", kind).expect("served");
        kind.default(&mut object);
        complete(kind, &mut object, None);
        object
    }

    #[test]
    fn a_headless_service_without_a_selector_has_every_family() {
        let plain = created("Service", json!({"spec": {"clusterIP": "None"}}));
        assert_eq!(plain["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
        assert_eq!(plain["spec"]["ipFamilyPolicy"], "RequireDualStack");
        let selecting = created("Service", json!({"spec": {"clusterIP": "None", "selector": {"a": "b"}}}));
        assert_eq!(selecting["spec"]["ipFamilies"], json!(["IPv4"]));
        assert_eq!(selecting["spec"]["ipFamilyPolicy"], "SingleStack");
    }

    #[test]
    fn an_update_keeps_what_was_allocated() {
        let old = json!({"metadata": {"name": "a"}, "spec": {
            "type": "NodePort", "clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9"], "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack", "ports": [{"name": "x", "port": 80, "nodePort": 30001}]}});
        let mut next = json!({"metadata": {"name": "a"}, "spec": {
            "type": "NodePort", "ports": [{"name": "y", "port": 81}, {"name": "x", "port": 82}]}});
        complete(crate::find_kind("", "v1", "Service").expect("served"), &mut next, Some(&old));
        assert_eq!(next["spec"]["clusterIPs"], json!(["10.0.0.9"]));
        assert_eq!(next["spec"]["ports"][1]["nodePort"], 30001);
        assert_ne!(next["spec"]["ports"][0]["nodePort"], 30001);
    }

    #[test]
    fn node_ports_differ_within_a_service() {
        let service =
            created("Service", json!({"spec": {"type": "NodePort", "ports": [{"port": 1}, {"port": 2}]}}));
        let ports = list(&service, "spec.ports");
        assert!(ports.iter().all(|port| port["nodePort"].is_i64()));
        assert_ne!(ports[0]["nodePort"], ports[1]["nodePort"]);
    }
}
