//! Volumes, claims, classes, and limits on what may be asked for.

use baton_grammar::quantity::Quantity;
use baton_schema::FieldError;
use baton_schema::names;
use serde_json::Value;

use super::checks::{
    Errors, amounts, duplicate, forbidden, immutable, invalid, named, obeys, one_of, required,
};
use crate::lookup::{at, fields, list, remove, text};

const MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const NOTHING: &Value = &Value::Null;

pub(super) fn volume(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    let spec = at(object, "spec").unwrap_or(NOTHING);
    if list(spec, "accessModes").is_empty() {
        required(errors, "spec.accessModes", "");
    }
    access_modes(errors, spec);
    match fields(spec, "capacity").filter(|capacity| !capacity.is_empty()) {
        None => {
            required(errors, "spec.capacity", "");
            errors.push(FieldError::not_supported("spec.capacity", Value::Null, &["storage"]));
        }
        Some(capacity) => {
            for (name, amount) in capacity {
                positive(errors, &format!("spec.capacity[{name}]"), amount);
            }
        }
    }
    let policies = &["Delete", "Recycle", "Retain"];
    one_of(
        errors,
        "spec.persistentVolumeReclaimPolicy",
        text(spec, "persistentVolumeReclaimPolicy"),
        policies,
    );
    one_of(errors, "spec.volumeMode", text(spec, "volumeMode"), &["Block", "Filesystem"]);
    let sources = sources(spec);
    if sources.is_empty() {
        required(errors, "spec", "must specify a volume type");
    }
    for (name, _) in sources.iter().skip(1) {
        forbidden(errors, &format!("spec.{name}"), "may not specify more than 1 volume type");
    }
    if let Some(old) = old
        && sources != self::sources(at(old, "spec").unwrap_or(NOTHING))
    {
        let path = "spec.persistentvolumesource";
        forbidden(errors, path, "spec.persistentvolumesource is immutable after creation");
    }
}

/// The fields of a volume that say where its bytes are.
fn sources(spec: &Value) -> Vec<(&String, &Value)> {
    const OTHERS: [&str; 3] = ["capacity", "claimRef", "nodeAffinity"];
    let fields = spec.as_object().into_iter().flatten();
    fields.filter(|(name, value)| value.is_object() && !OTHERS.contains(&name.as_str())).collect()
}

fn access_modes(errors: &mut Errors, spec: &Value) {
    let modes: Vec<&str> = list(spec, "accessModes").iter().filter_map(Value::as_str).collect();
    for mode in &modes {
        one_of(errors, "spec.accessModes", mode, MODES);
    }
    if modes.contains(&"ReadWriteOncePod") && modes.len() > 1 {
        forbidden(errors, "spec.accessModes", "may not use ReadWriteOncePod with other access modes");
    }
}

fn positive(errors: &mut Errors, path: &str, amount: &Value) {
    match amount.as_str().and_then(Quantity::parse) {
        None => invalid(errors, path, amount.clone(), "must be a valid resource quantity"),
        Some(read) if read.is_negative() || read.is_zero() => {
            if read.is_negative() {
                invalid(errors, path, Value::from(-1), "must be a valid resource quantity");
            }
            invalid(errors, path, read.canonical(), "must be greater than zero");
        }
        Some(_) => {}
    }
}

pub(super) fn claim(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    let spec = at(object, "spec").unwrap_or(NOTHING);
    if list(spec, "accessModes").is_empty() {
        required(errors, "spec.accessModes", "at least 1 access mode is required");
    }
    access_modes(errors, spec);
    let path = "spec.resources[storage]";
    match at(spec, "resources.requests.storage") {
        None => required(errors, path, ""),
        Some(amount) => match amount.as_str().and_then(Quantity::parse) {
            None => invalid(errors, path, amount.clone(), "must be a valid resource quantity"),
            Some(read) if read.is_negative() || read.is_zero() => {
                invalid(errors, path, read.canonical(), "must be greater than zero");
            }
            Some(_) => {}
        },
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        obeys(errors, "spec.storageClassName", class, names::dns1123_subdomain);
    }
    one_of(errors, "spec.volumeMode", text(spec, "volumeMode"), &["Block", "Filesystem"]);
    if let Some(old) = old {
        claim_update(errors, object, old);
    }
}

/// A claim that has its volume may ask for more; one that has none may be given one.
fn claim_update(errors: &mut Errors, object: &Value, old: &Value) {
    let bound = text(old, "status.phase") == "Bound";
    let fixed = |object: &Value| {
        let mut spec = at(object, "spec").cloned().unwrap_or_default();
        if bound {
            if let Some(resources) = spec.get_mut("resources") {
                remove(resources, "requests");
            }
            remove(&mut spec, "volumeAttributesClassName");
        }
        if text(old, "spec.volumeName").is_empty() {
            remove(&mut spec, "volumeName");
        }
        // A default class may be filled in later.
        if at(old, "spec.storageClassName").is_none() {
            remove(&mut spec, "storageClassName");
        }
        spec
    };
    if fixed(object) != fixed(old) {
        forbidden(
            errors,
            "spec",
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        );
        return;
    }
    let request = |object| text(object, "spec.resources.requests.storage");
    let (now, before) = (Quantity::parse(request(object)), Quantity::parse(request(old)));
    if let (Some(now), Some(before)) = (now, before)
        && now < before
    {
        let path = "spec.resources.requests.storage";
        forbidden(errors, path, "field can not be less than status.capacity");
    }
}

pub(super) fn class(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    named(errors, "provisioner", text(object, "provisioner"), |_| Vec::new());
    one_of(errors, "reclaimPolicy", text(object, "reclaimPolicy"), &["Delete", "Retain"]);
    let modes = &["Immediate", "WaitForFirstConsumer"];
    one_of(errors, "volumeBindingMode", text(object, "volumeBindingMode"), modes);
    if let Some(old) = old {
        for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            immutable(errors, object, old, field);
        }
    }
}

pub(super) fn attachment(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    named(errors, "spec.attacher", text(object, "spec.attacher"), |_| Vec::new());
    let given = ["spec.source.inlineVolumeSpec", "spec.source.persistentVolumeName"];
    if given.iter().filter(|path| at(object, path).is_some()).count() != 1 {
        let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
        required(errors, "spec.source", detail);
    }
    obeys(errors, "spec.nodeName", text(object, "spec.nodeName"), names::dns1123_subdomain);
    if let Some(old) = old {
        immutable(errors, object, old, "spec");
    }
}

pub(super) fn quota(errors: &mut Errors, object: &Value) {
    const SCOPES: [&str; 7] = [
        "BestEffort",
        "CrossNamespacePodAffinity",
        "NotBestEffort",
        "NotTerminating",
        "PriorityClass",
        "Terminating",
        "VolumeAttributesClass",
    ];
    for (name, amount) in amounts(errors, "spec.hard", at(object, "spec.hard")) {
        let counted = name.starts_with("count/")
            || matches!(
                name.as_str(),
                "pods"
                    | "services"
                    | "secrets"
                    | "configmaps"
                    | "persistentvolumeclaims"
                    | "replicationcontrollers"
                    | "resourcequotas"
                    | "services.loadbalancers"
                    | "services.nodeports"
            );
        if counted && amount.milli() % 1000 != 0 {
            invalid(errors, &format!("spec.hard[{name}]"), amount.canonical(), "must be an integer");
        }
    }
    let scopes = list(object, "spec.scopes");
    if scopes.iter().any(|scope| !SCOPES.contains(&scope.as_str().unwrap_or_default())) {
        invalid(errors, "spec.scopes", scopes.to_vec(), "unsupported scope");
    }
}

pub(super) fn limit_range(errors: &mut Errors, object: &Value) {
    let mut kinds = Vec::new();
    for (place, limit) in list(object, "spec.limits").iter().enumerate() {
        let path = format!("spec.limits[{place}]");
        let kind = text(limit, "type");
        if kinds.contains(&kind) {
            duplicate(errors, &format!("{path}.type"), kind);
        }
        kinds.push(kind);
        if kind == "Pod" {
            for field in ["default", "defaultRequest"] {
                if fields(limit, field).is_some_and(|map| !map.is_empty()) {
                    forbidden(
                        errors,
                        &format!("{path}.{field}"),
                        "may not be specified when `type` is 'Pod'",
                    );
                }
            }
        }
        let least = amounts(errors, &format!("{path}.min"), at(limit, "min"));
        let read =
            |field: &str, name: &str| fields(limit, field)?.get(name)?.as_str().and_then(Quantity::parse);
        for (name, least) in least {
            for (field, word) in
                [("max", "max"), ("defaultRequest", "default request"), ("default", "default")]
            {
                let Some(other) = read(field, &name).filter(|other| least > *other) else {
                    continue;
                };
                let (low, high) = (least.canonical(), other.canonical());
                let (place, shown) = match field {
                    "max" => ("min", &low),
                    "default" => ("default", &low),
                    _ => (field, &high),
                };
                let detail = format!("min value {low} is greater than {word} value {high}");
                invalid(errors, &format!("{path}.{place}[{name}]"), shown.as_str(), detail);
            }
        }
    }
}
