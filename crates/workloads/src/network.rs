//! Addresses from outside: load balancers for Services and Ingresses.

use crate::Kind;
use crate::behaviour::Behaviour;
use crate::decision::Decision;
use crate::naming::address;
use crate::object::{deleting, items, map, name, namespace, text, uid};
use crate::settings::Settings;
use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) fn decide_service(service: &Value, settings: &Settings, now: Timestamp) -> Decision {
    if text(service, &["spec", "type"]) == "LoadBalancer" {
        let asked = text(service, &["spec", "loadBalancerIP"]);
        let ip = if asked.is_empty() { external(service, "198.18") } else { asked.to_owned() };
        return expose(service, Kind::Service, json!([{"ip": ip, "ipMode": "VIP"}]), settings, now);
    }
    let mut decision = Decision::default();
    if !deleting(service) && !items(service, &["status", "loadBalancer", "ingress"]).is_empty() {
        let mut status = map(service, &["status"]);
        status.insert("loadBalancer".into(), json!({}));
        decision.status(service, status);
    }
    decision
}

pub(crate) fn decide_ingress(ingress: &Value, settings: &Settings, now: Timestamp) -> Decision {
    expose(ingress, Kind::Ingress, json!([{"ip": external(ingress, "198.19")}]), settings, now)
}

/// Addresses from the block reserved for benchmarks: they lead nowhere by accident.
fn external(object: &Value, block: &str) -> String {
    address(block, &[namespace(object), name(object), uid(object)])
}

fn expose(object: &Value, kind: Kind, ingress: Value, settings: &Settings, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    let served = !items(object, &["status", "loadBalancer", "ingress"]).is_empty();
    let behaviour = Behaviour::of(object);
    if served || deleting(object) || behaviour.stuck {
        return decision;
    }
    let due = settings.due(object, kind, &behaviour);
    if due > now {
        return Decision::wake(due);
    }
    let mut status = map(object, &["status"]);
    let mut balancer = map(object, &["status", "loadBalancer"]);
    balancer.insert("ingress".into(), ingress);
    status.insert("loadBalancer".into(), Value::Object(balancer));
    decision.status(object, status);
    decision
}
