//! What the server itself decides about an object, beyond defaults: in Kubernetes this is the work of admission, of
//! allocators, and of fields that are always written. Nobody who writes the object owns it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::Kind;
use crate::lookup::{at, ensure, fill, fill_zero, flag, int, list, list_mut, remove, set, text};

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
    if let Some(before) = old.and_then(|old| at(old, "spec")) {
        drop_what_the_type_lost(spec, before);
    }
    if !has_address(spec) {
        return;
    }
    let before = old.and_then(|old| at(old, "spec")).filter(|before| has_address(before));
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
    if has_node_ports(spec) {
        node_ports(spec, &identity);
    }
}

/// A change of type takes away what only the old type had, unless the writer changed that as well (and hears of it).
fn drop_what_the_type_lost(spec: &mut Value, before: &Value) {
    for (field, has) in [
        ("clusterIP", has_address as fn(&Value) -> bool),
        ("clusterIPs", has_address),
        ("ipFamilies", has_address),
        ("ipFamilyPolicy", has_address),
        ("internalTrafficPolicy", has_address),
        ("externalTrafficPolicy", faces_outside),
        ("allocateLoadBalancerNodePorts", balances_load),
        ("loadBalancerClass", balances_load),
    ] {
        if has(before) && !has(spec) && at(spec, field) == at(before, field) {
            remove(spec, field);
        }
    }
    let ports = |spec: &Value| -> BTreeSet<i64> {
        list(spec, "ports").iter().filter_map(|port| int(port, "nodePort")).collect()
    };
    if has_node_ports(before) && !has_node_ports(spec) && ports(spec) == ports(before) {
        list_mut(spec, "ports").for_each(|port| drop(remove(port, "nodePort")));
    }
}

fn has_address(spec: &Value) -> bool {
    text(spec, "type") != "ExternalName"
}

fn balances_load(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer"
}

fn has_node_ports(spec: &Value) -> bool {
    text(spec, "type") == "NodePort" || (balances_load(spec) && flag(spec, "allocateLoadBalancerNodePorts"))
}

fn faces_outside(spec: &Value) -> bool {
    let outside = !list(spec, "externalIPs").is_empty();
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
        || (text(spec, "type") == "ClusterIP" && outside)
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
    fn a_change_of_type_takes_away_what_the_new_one_lacks() {
        let kind = crate::find_kind("", "v1", "Service").expect("served");
        let old = created(
            "Service",
            json!({"spec": {"type": "NodePort", "clusterIP": "10.0.0.9", "ports": [{"port": 1}]}}),
        );
        let become_type = |name: &str| {
            let mut next = old.clone();
            next["spec"]["type"] = name.into();
            complete(kind, &mut next, Some(&old));
            next
        };
        let inside = become_type("ClusterIP");
        assert_eq!(inside["spec"]["ports"][0].get("nodePort"), None);
        assert_eq!(inside["spec"].get("externalTrafficPolicy"), None);
        assert_eq!(inside["spec"]["clusterIP"], "10.0.0.9");
        let elsewhere = become_type("ExternalName");
        for gone in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            assert_eq!(elsewhere["spec"].get(gone), None, "{gone}");
        }
        let mut chosen = old.clone();
        chosen["spec"]["type"] = "ClusterIP".into();
        chosen["spec"]["ports"][0]["nodePort"] = 31000.into();
        complete(kind, &mut chosen, Some(&old));
        assert_eq!(chosen["spec"]["ports"][0]["nodePort"], 31000, "validation tells the writer");
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
