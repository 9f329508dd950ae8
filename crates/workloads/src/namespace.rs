//! What every namespace comes with: its default ServiceAccount and the cluster's certificate authority.

use crate::Kind;
use crate::decision::Decision;
use crate::family::{DEFAULT_SERVICE_ACCOUNT, Family, ROOT_CA_CONFIG_MAP};
use crate::object::{at, deleting, name, namespace, text};
use crate::settings::Settings;
use serde_json::{Value, json};

pub(crate) fn decide(space: &Value, family: &Family<'_>, settings: &Settings) -> Decision {
    let mut decision = Decision::default();
    if deleting(space) || text(space, &["status", "phase"]) == "Terminating" {
        return decision;
    }
    let find = |kind, wanted: &str| {
        family.of_kind(kind).find(|member| namespace(member) == name(space) && name(member) == wanted)
    };
    if find(Kind::ServiceAccount, DEFAULT_SERVICE_ACCOUNT).is_none() {
        decision.create(make(Kind::ServiceAccount, space, DEFAULT_SERVICE_ACCOUNT));
    }
    if settings.root_ca.is_empty() {
        return decision;
    }
    let data = json!({"ca.crt": settings.root_ca});
    match find(Kind::ConfigMap, ROOT_CA_CONFIG_MAP) {
        None => {
            let mut published = make(Kind::ConfigMap, space, ROOT_CA_CONFIG_MAP);
            published["data"] = data;
            decision.create(published);
        }
        Some(published) if at(published, &["data", "ca.crt"]) != settings.root_ca.as_str() => {
            decision.patch(published, json!({"data": data}));
        }
        Some(_) => {}
    }
    decision
}

fn make(kind: Kind, space: &Value, object_name: &str) -> Value {
    json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind(),
        "metadata": {"name": object_name, "namespace": name(space)},
    })
}
