//! What traffic reaches: Services, Ingresses, APIServices.

use baton_api::health::Health;
use serde_json::Value;

use super::{condition, healthy, holds, list, progressing, text};

pub(super) fn service(object: &Value) -> Health {
    if text(&object["spec"]["type"]) == "LoadBalancer" { ingress(object) } else { healthy("") }
}

pub(super) fn ingress(object: &Value) -> Health {
    let addresses = list(&object["status"]["loadBalancer"]["ingress"]);
    if addresses.is_empty() { progressing("") } else { healthy("") }
}

pub(super) fn api_service(object: &Value) -> Health {
    let Some(available) = condition(object, "Available") else {
        return progressing("Waiting to be processed");
    };
    let message = format!("{}: {}", text(&available["reason"]), text(&available["message"]));
    if holds(available) { healthy(message) } else { progressing(message) }
}
