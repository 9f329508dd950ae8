//! A Pod's quality-of-service class.

use baton_grammar::quantity::Quantity;
use serde_json::Value;

use crate::lookup::{at, list};

/// `Guaranteed` when every container's CPU and memory limits are set and equal its requests, `BestEffort` when nothing is set,
/// `Burstable` between.
pub(crate) fn service_class(pod: &Value) -> &'static str {
    const COUNTED: [&str; 2] = ["cpu", "memory"];
    let amount = |container: &Value, path: &str| {
        at(container, path)
            .and_then(Value::as_str)
            .and_then(Quantity::parse)
            .filter(|amount| !amount.is_zero())
    };
    let mut any = false;
    let mut guaranteed = true;
    for container in list(pod, "spec.initContainers").iter().chain(list(pod, "spec.containers")) {
        for name in COUNTED {
            let request = amount(container, &format!("resources.requests.{name}"));
            let limit = amount(container, &format!("resources.limits.{name}"));
            any |= request.is_some() || limit.is_some();
            guaranteed &= match (request, limit) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(request), Some(limit)) => request.cmp(&limit).is_eq(),
            };
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_class_follows_requests_and_limits() {
        let full = json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}});
        for (containers, expected) in [
            (json!([{}]), "BestEffort"),
            (json!([{"resources": full}]), "Guaranteed"),
            (json!([{"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]), "Guaranteed"),
            (json!([{"resources": full}, {}]), "Burstable"),
            (json!([{"resources": {"requests": {"cpu": "1"}}}]), "Burstable"),
            (json!([{"resources": {"requests": {"cpu": "0"}}}]), "BestEffort"),
            (json!("nonsense"), "BestEffort"),
        ] {
            assert_eq!(service_class(&json!({"spec": {"containers": containers}})), expected);
        }
    }
}
