//! What people read about a write.

use baton_api::object::Object;
use baton_sync::action::Verb;
use serde_json::Value;

use crate::error::ClusterError;

/// As kubectl says it: `deployment.apps/web configured`.
pub(super) fn done(object: &Value, how: &str, dry_run: bool) -> String {
    let kind = object.kind().to_ascii_lowercase();
    let group = match object.group() {
        "" => String::new(),
        group => format!(".{group}"),
    };
    let dry_run = if dry_run { " (dry run)" } else { "" };
    format!("{kind}{group}/{} {how}{dry_run}", object.name())
}

/// Why it failed, with Argo CD's advice where it gives any. `served` is the version the kind is served in, if it is.
pub(super) fn failure(error: &ClusterError, verb: &Verb, served: Option<&str>) -> String {
    let text = error.to_string();
    if let Verb::Apply(wanted) = verb {
        let object = &*wanted.object;
        if text.contains("the server could not find the requested resource") {
            return not_served(object, served);
        }
        if text.contains("metadata.annotations: Too long: must have at most 262144 bytes") {
            return format!(
                "{text} \n -Additional Info: This error usually means that you are trying to add a large resource on \
                 client side. Consider using Server-side apply or syncing with replace enabled. Note: Syncing with \
                 Replace enabled is potentially destructive as it may cause resource deletion and re-creation."
            );
        }
    }
    match error.leaves_doubt() && !matches!(verb, Verb::Look { .. }) {
        true => format!("{text} (whether it took effect is not known; the next comparison shows)"),
        false => text,
    }
}

fn not_served(object: &Value, served: Option<&str>) -> String {
    let kind = format!("{}/{}", object.group(), object.kind());
    let name = format!("{}/{}", object.namespace(), object.name());
    match served {
        Some(served) => format!(
            "The Kubernetes API could not find version {:?} of {kind} for requested resource {name}. Version {served:?} \
             of {kind} is installed on the destination cluster.",
            object.version()
        ),
        None => format!(
            "The Kubernetes API could not find {kind} for requested resource {name}. Make sure the {:?} CRD is \
             installed on the destination cluster.",
            object.kind()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_are_kubectls() {
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}});
        assert_eq!(done(&deployment, "configured", false), "deployment.apps/web configured");
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
        assert_eq!(done(&pod, "created", true), "pod/p created (dry run)");
    }
}
