//! Configuration, secrets, roles, priorities and leases.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use baton_schema::{FieldError, Problem, names};
use serde_json::{Value, json};

use super::checks::{
    Errors, forbidden, immutable, invalid, named, not_negative, obeys, one_of, present, required,
};
use crate::lookup::{annotation, at, fields, flag, int, list, text};
use crate::names::config_key;

/// Most bytes of values one ConfigMap or Secret may hold.
const LARGEST: usize = 1 << 20;
const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn config_map(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    let mut size = 0;
    for (key, value) in fields(object, "data").into_iter().flatten() {
        let path = format!("data[{key}]");
        obeys(errors, &path, key, config_key);
        if fields(object, "binaryData").is_some_and(|binary| binary.contains_key(key)) {
            invalid(errors, &path, key.as_str(), "duplicate of key present in binaryData");
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in fields(object, "binaryData").into_iter().flatten() {
        let path = format!("binaryData[{key}]");
        obeys(errors, &path, key, config_key);
        size += decoded(errors, &path, value).map_or(0, |bytes| bytes.len());
    }
    too_large(errors, "", size);
    if let Some(old) = old {
        stays_immutable(errors, object, old, &["data", "binaryData"]);
    }
}

fn too_large(errors: &mut Errors, path: &str, size: usize) {
    if size > LARGEST {
        errors.push(FieldError {
            path: path.to_owned(),
            problem: Problem::TooLong,
            detail: format!("may not be more than {LARGEST} bytes"),
        });
    }
}

fn decoded(errors: &mut Errors, path: &str, value: &Value) -> Option<Vec<u8>> {
    let bytes = value.as_str().and_then(|text| STANDARD.decode(text).ok());
    if bytes.is_none() {
        invalid(errors, path, value.clone(), "must be base64");
    }
    bytes
}

fn stays_immutable(errors: &mut Errors, object: &Value, old: &Value, parts: &[&str]) {
    const DETAIL: &str = "field is immutable when `immutable` is set";
    if !flag(old, "immutable") {
        return;
    }
    if !flag(object, "immutable") {
        forbidden(errors, "immutable", DETAIL);
    }
    for part in parts {
        let content = |object| fields(object, part).filter(|map| !map.is_empty());
        if content(object) != content(old) {
            forbidden(errors, part, DETAIL);
        }
    }
}

pub(super) fn secret(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    let mut size = 0;
    for (key, value) in fields(object, "data").into_iter().flatten() {
        let path = format!("data[{key}]");
        obeys(errors, &path, key, config_key);
        // The value itself is secret, so it is not shown.
        match value.as_str().and_then(|text| STANDARD.decode(text).ok()) {
            Some(bytes) => {
                size += bytes.len();
                let json = matches!(key.as_str(), ".dockerconfigjson" | ".dockercfg")
                    && text(object, "type").starts_with("kubernetes.io/docker");
                if json && serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_err() {
                    invalid(errors, &path, "<secret contents redacted>", "must be JSON");
                }
            }
            None => invalid(errors, &path, "<secret contents redacted>", "must be base64"),
        }
    }
    too_large(errors, "data", size);
    secret_of_type(errors, object);
    if let Some(old) = old {
        immutable(errors, object, old, "type");
        stays_immutable(errors, object, old, &["data"]);
    }
}

fn secret_of_type(errors: &mut Errors, object: &Value) {
    let has = |key: &str| fields(object, "data").is_some_and(|data| data.contains_key(key));
    let needed: &[&str] = match text(object, "type") {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        // One of the two will do.
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => &["username", "password"],
        "kubernetes.io/service-account-token" => {
            let name = "kubernetes.io/service-account.name";
            if annotation(object, name).is_empty() {
                required(errors, &format!("metadata.annotations[{name}]"), "");
            }
            &[]
        }
        _ => &[],
    };
    for key in needed.iter().filter(|key| !has(key)) {
        required(errors, &format!("data[{key}]"), "");
    }
}

pub(super) fn role(errors: &mut Errors, object: &Value, namespaced: bool) {
    for (place, rule) in list(object, "rules").iter().enumerate() {
        let path = format!("rules[{place}]");
        if list(rule, "verbs").is_empty() {
            required(errors, &format!("{path}.verbs"), "verbs must contain at least one value");
        }
        let urls = list(rule, "nonResourceURLs");
        if !urls.is_empty() {
            let url_path = format!("{path}.nonResourceURLs");
            let regular =
                ["apiGroups", "resources", "resourceNames"].iter().any(|field| !list(rule, field).is_empty());
            if namespaced {
                invalid(
                    errors,
                    &url_path,
                    urls.to_vec(),
                    "namespaced rules cannot apply to non-resource URLs",
                );
            } else if regular {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                invalid(errors, &url_path, urls.to_vec(), detail);
            }
            continue;
        }
        if list(rule, "apiGroups").is_empty() {
            let detail = "resource rules must supply at least one api group";
            required(errors, &format!("{path}.apiGroups"), detail);
        }
        if list(rule, "resources").is_empty() {
            let detail = "resource rules must supply at least one resource";
            required(errors, &format!("{path}.resources"), detail);
        }
    }
}

pub(super) fn binding(errors: &mut Errors, object: &Value, old: Option<&Value>, namespaced: bool) {
    let none = Value::Null;
    let role = at(object, "roleRef").unwrap_or(&none);
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    one_of(errors, "roleRef.apiGroup", text(role, "apiGroup"), &[RBAC]);
    match text(role, "kind") {
        "" => errors.push(FieldError::not_supported("roleRef.kind", "", kinds)),
        kind => one_of(errors, "roleRef.kind", kind, kinds),
    }
    named(errors, "roleRef.name", text(role, "name"), names::path_segment_name);
    for (place, subject) in list(object, "subjects").iter().enumerate() {
        self::subject(errors, &format!("subjects[{place}]"), subject, namespaced);
    }
    if let Some(old) = old
        && at(object, "roleRef") != at(old, "roleRef")
    {
        invalid(errors, "roleRef", role.clone(), "cannot change roleRef");
    }
}

fn subject(errors: &mut Errors, path: &str, subject: &Value, namespaced: bool) {
    let name = text(subject, "name");
    if name.is_empty() {
        required(errors, &format!("{path}.name"), "");
    }
    let (kind, group) = (text(subject, "kind"), text(subject, "apiGroup"));
    match kind {
        "ServiceAccount" => {
            if !name.is_empty() {
                obeys(errors, &format!("{path}.name"), name, names::dns1123_subdomain);
            }
            if !group.is_empty() {
                errors.push(FieldError::not_supported(format!("{path}.apiGroup"), group, &[""]));
            }
            if text(subject, "namespace").is_empty() && !namespaced {
                required(errors, &format!("{path}.namespace"), "");
            }
        }
        "User" | "Group" => one_of(errors, &format!("{path}.apiGroup"), group, &[RBAC]),
        _ => errors.push(FieldError::not_supported(
            format!("{path}.kind"),
            kind,
            &["ServiceAccount", "User", "Group"],
        )),
    }
}

pub(super) fn priority_class(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    const HIGHEST: i64 = 1_000_000_000;
    const SYSTEM: [(&str, i64); 2] =
        [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];
    let (name, value) = (text(object, "metadata.name"), int(object, "value").unwrap_or(0));
    if name.starts_with("system-") {
        if !SYSTEM.contains(&(name, value)) {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known \
                 system priority class"
            );
            forbidden(errors, "metadata.name", &detail);
        }
    } else if value > HIGHEST {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        forbidden(errors, "value", &detail);
    }
    let policies = &["PreemptLowerPriority", "Never"];
    one_of(errors, "preemptionPolicy", text(object, "preemptionPolicy"), policies);
    if let Some(old) = old {
        if int(old, "value").unwrap_or(0) != value {
            forbidden(errors, "value", "may not be changed in an update.");
        }
        immutable(errors, object, old, "preemptionPolicy");
    }
}

pub(super) fn lease(errors: &mut Errors, object: &Value) {
    let none = json!({});
    let spec = at(object, "spec").unwrap_or(&none);
    if let Some(seconds) = int(spec, "leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        invalid(errors, "spec.leaseDurationSeconds", seconds, "must be greater than 0");
    }
    not_negative(errors, spec, "spec", &["leaseTransitions"]);
}

pub(super) fn event(errors: &mut Errors, object: &Value) {
    let (about, own) = (text(object, "involvedObject.namespace"), text(object, "metadata.namespace"));
    // What has no namespace is reported in the default one.
    let fits = if about.is_empty() { matches!(own, "default" | "kube-system" | "") } else { about == own };
    if !fits && !own.is_empty() {
        invalid(errors, "involvedObject.namespace", about, "does not match event.namespace");
    }
    if at(object, "eventTime").is_some() {
        present(errors, object, "", "reason");
    }
}
