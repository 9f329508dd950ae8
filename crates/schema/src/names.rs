//! Names, labels, annotations and object metadata: what Kubernetes permits, in its words.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::error::{FieldError, Problem};

/// A rule for names: the complaints about one, empty when it is fine.
pub type NameRule = fn(&str) -> Vec<String>;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const KEY_NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const KEY_NAME_TEXT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

const LABEL_LONGEST: usize = 63;
/// Most bytes of a subdomain, and of names with the same limit.
pub const SUBDOMAIN_LONGEST: usize = 253;

/// Most bytes all annotations of an object may take together.
pub const ANNOTATIONS_LARGEST: usize = 256 * 1024;

/// An RFC 1123 label: namespaces, ports, containers.
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut wrong = longer_than(value, LABEL_LONGEST);
    if !is_label(value) {
        wrong.push(if is_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            pattern_text(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    wrong
}

/// An RFC 1123 subdomain: most object names.
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    let mut wrong = longer_than(value, SUBDOMAIN_LONGEST);
    if !is_subdomain(value) {
        wrong.push(pattern_text(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            &format!("{LABEL}(\\.{LABEL})*"),
            &["example.com"],
        ));
    }
    wrong
}

/// An RFC 1123 subdomain behind `*.`: hosts of Ingresses.
pub fn wildcard_dns1123_subdomain(value: &str) -> Vec<String> {
    let mut wrong = longer_than(value, SUBDOMAIN_LONGEST);
    if !value.strip_prefix("*.").is_some_and(is_subdomain) {
        wrong.push(pattern_text(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            &format!("\\*\\.{LABEL}(\\.{LABEL})*"),
            &["*.example.com"],
        ));
    }
    wrong
}

/// An RFC 1035 label: services, and kinds in lower case.
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut wrong = longer_than(value, LABEL_LONGEST);
    let starts_with_letter = value.as_bytes().first().is_some_and(u8::is_ascii_lowercase);
    if !starts_with_letter || !is_label(value) {
        wrong.push(pattern_text(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            LABEL_1035,
            &["my-name", "abc-123"],
        ));
    }
    wrong
}

/// A key of a label or annotation, or the name of a finalizer: `name` or `prefix/name`.
pub fn qualified_name(value: &str) -> Vec<String> {
    let text = || pattern_text(KEY_NAME_TEXT, KEY_NAME, &["MyName", "my.name", "123-abc"]);
    let mut wrong = Vec::new();
    let mut parts = value.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong.extend(
                    dns1123_subdomain(prefix).into_iter().map(|complaint| format!("prefix part {complaint}")),
                );
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                text()
            )];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LONGEST {
        wrong.push(format!("name part must be no more than {LABEL_LONGEST} characters"));
    }
    if !is_key_name(name) {
        wrong.push(format!("name part {}", text()));
    }
    wrong
}

/// The value of a label.
pub fn label_value(value: &str) -> Vec<String> {
    let mut wrong = longer_than(value, LABEL_LONGEST);
    if !value.is_empty() && !is_key_name(value) {
        wrong.push(pattern_text(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            &format!("({KEY_NAME})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    wrong
}

/// A name that only has to fit into a URL path (RBAC objects, custom resources before their own rule).
pub fn path_segment_name(value: &str) -> Vec<String> {
    if value == "." || value == ".." {
        return vec![format!("may not be '{value}'")];
    }
    ["/", "%"]
        .into_iter()
        .filter(|part| value.contains(part))
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

/// Labels: keys are qualified names, values are label values.
pub fn validate_labels(labels: &Map<String, Value>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels {
        errors.extend(complaints(path, key, qualified_name(key)));
        let value = value.as_str().unwrap_or_default();
        errors.extend(complaints(path, value, label_value(value)));
    }
    errors
}

/// Annotations: keys are qualified names in any case, and all together are no larger than 256 KiB.
pub fn validate_annotations(annotations: &Map<String, Value>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut size = 0;
    for (key, value) in annotations {
        errors.extend(complaints(path, key, qualified_name(&key.to_lowercase())));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_LARGEST {
        errors.push(FieldError {
            path: path.to_owned(),
            problem: Problem::TooLong,
            detail: format!("may not be more than {ANNOTATIONS_LARGEST} bytes"),
        });
    }
    errors
}

/// The metadata of an object about to be created. Names must have been generated already.
pub fn validate_object_meta(
    meta: &Value,
    namespaced: bool,
    name_rule: NameRule,
    path: &str,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let at = |field: &str| child(path, field);

    let generate_name = text(meta, "generateName");
    if !generate_name.is_empty() {
        let complaint = name_rule(&without_trailing_dash(generate_name));
        errors.extend(complaints(&at("generateName"), generate_name, complaint));
    }
    let name = text(meta, "name");
    if name.is_empty() {
        errors.push(FieldError::required(at("name"), "name or generateName is required"));
    } else {
        errors.extend(complaints(&at("name"), name, name_rule(name)));
    }
    let namespace = text(meta, "namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.push(FieldError::required(at("namespace"), "")),
        (true, false) => errors.extend(complaints(&at("namespace"), namespace, dns1123_label(namespace))),
        (false, true) => {}
        (false, false) => errors.push(FieldError::forbidden(at("namespace"), "not allowed on this type")),
    }
    errors.extend(generation_not_negative(meta, path));
    errors.extend(maps_and_owners(meta, path));
    errors.extend(finalizers(meta, path));
    errors
}

/// The metadata of an object about to replace `old`.
///
/// # Assumptions
/// The server has already filled in what a client may leave out (resourceVersion, uid, creationTimestamp).
pub fn validate_object_meta_update(new: &Value, old: &Value) -> Vec<FieldError> {
    const PATH: &str = "metadata";
    let mut errors = Vec::new();
    if old.get("deletionTimestamp").is_some_and(|stamp| !stamp.is_null()) {
        errors.extend(no_new_finalizers(new, old, PATH));
    }
    errors.extend(generation_not_negative(new, PATH));
    let generation = |meta: &Value| meta.get("generation").and_then(Value::as_i64).unwrap_or(0);
    if generation(new) < generation(old) {
        errors.push(FieldError::invalid(
            child(PATH, "generation"),
            generation(new),
            "must not be decremented",
        ));
    }
    for field in ["name", "namespace", "uid"] {
        if text(new, field) != text(old, field) {
            errors.push(FieldError::invalid(child(PATH, field), text(new, field), "field is immutable"));
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let value = |meta: &Value| meta.get(field).cloned().unwrap_or(Value::Null);
        if value(new) != value(old) {
            errors.push(FieldError::invalid(child(PATH, field), value(new), "field is immutable"));
        }
    }
    errors.extend(maps_and_owners(new, PATH));
    errors
}

fn maps_and_owners(meta: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(labels) = meta.get("labels").and_then(Value::as_object) {
        errors.extend(validate_labels(labels, &child(path, "labels")));
    }
    if let Some(annotations) = meta.get("annotations").and_then(Value::as_object) {
        errors.extend(validate_annotations(annotations, &child(path, "annotations")));
    }
    if let Some(owners) = meta.get("ownerReferences").and_then(Value::as_array) {
        errors.extend(owner_references(owners, &child(path, "ownerReferences")));
    }
    errors
}

fn owner_references(owners: &[Value], path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut controller: Option<String> = None;
    // Upstream leaves the index out.
    let at = |field: &str| format!("{path}.{field}");
    for owner in owners {
        let api_version = text(owner, "apiVersion");
        if api_version.is_empty() || api_version.matches('/').count() > 1 || api_version.ends_with('/') {
            errors.push(FieldError::invalid(at("apiVersion"), api_version, "version must not be empty"));
        }
        for field in ["kind", "name", "uid"] {
            if text(owner, field).is_empty() {
                errors.push(FieldError::invalid(at(field), "", "must not be empty"));
            }
        }
        if api_version == "v1" && text(owner, "kind") == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid(path, owner.clone(), detail));
        }
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            let name = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
            match &controller {
                None => controller = Some(name),
                Some(first) => errors.push(FieldError::invalid(
                    path,
                    json!(owners),
                    format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                    ),
                )),
            }
        }
    }
    errors
}

fn finalizers(meta: &Value, path: &str) -> Vec<FieldError> {
    let path = child(path, "finalizers");
    let names = finalizer_names(meta);
    let mut errors: Vec<FieldError> =
        names.iter().flat_map(|name| complaints(&path, name, qualified_name(name))).collect();
    if names.contains(&"orphan") && names.contains(&"foregroundDeletion") {
        errors.push(FieldError::invalid(
            path,
            json!(names),
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
    errors
}

/// Finalizers of built-in kinds that are neither Kubernetes' own nor have a domain. Custom resources may have them.
pub fn validate_finalizers_qualified(meta: &Value, path: &str) -> Vec<FieldError> {
    let path = child(path, "finalizers");
    finalizer_names(meta)
        .into_iter()
        .enumerate()
        .filter(|(_, name)| {
            !name.contains('/') && !matches!(*name, "kubernetes" | "orphan" | "foregroundDeletion")
        })
        .map(|(at, name)| {
            FieldError::invalid(
                format!("{path}[{at}]"),
                name,
                "name is neither a standard finalizer name nor is it fully qualified",
            )
        })
        .collect()
}

fn no_new_finalizers(new: &Value, old: &Value, path: &str) -> Option<FieldError> {
    let old: BTreeSet<&str> = finalizer_names(old).into_iter().collect();
    let added: BTreeSet<&str> = finalizer_names(new).into_iter().filter(|name| !old.contains(name)).collect();
    if added.is_empty() {
        return None;
    }
    let list: Vec<String> = added.iter().map(|name| Value::from(*name).to_string()).collect();
    Some(FieldError::forbidden(
        child(path, "finalizers"),
        format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            list.join(", ")
        ),
    ))
}

fn finalizer_names(meta: &Value) -> Vec<&str> {
    let list = meta.get("finalizers").and_then(Value::as_array);
    list.map(|names| names.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

fn generation_not_negative(meta: &Value, path: &str) -> Option<FieldError> {
    let generation = meta.get("generation").and_then(Value::as_i64)?;
    (generation < 0).then(|| {
        FieldError::invalid(child(path, "generation"), generation, "must be greater than or equal to 0")
    })
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn child(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

fn complaints(path: &str, value: &str, messages: Vec<String>) -> Vec<FieldError> {
    messages.into_iter().map(|message| FieldError::invalid(path, value, message)).collect()
}

/// The complaint about a value of too many bytes.
pub fn longer_than(value: &str, longest: usize) -> Vec<String> {
    if value.len() > longest {
        vec![format!("must be no more than {longest} characters")]
    } else {
        Vec::new()
    }
}

/// The complaint about a value that does not match a pattern.
pub fn pattern_text(message: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{message} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

/// A generated name goes on after its prefix, so a dash at the end is no fault. Upstream hides the character before
/// it as well, which this follows.
fn without_trailing_dash(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut rest = rest.to_owned();
            rest.pop();
            rest.push('a');
            rest
        }
        _ => prefix.to_owned(),
    }
}

fn is_label(value: &str) -> bool {
    let bytes = value.as_bytes();
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    bytes.first().is_some_and(plain)
        && bytes.last().is_some_and(plain)
        && bytes.iter().all(|byte| plain(byte) || *byte == b'-')
}

fn is_subdomain(value: &str) -> bool {
    value.split('.').all(is_label)
}

fn is_key_name(value: &str) -> bool {
    let bytes = value.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

#[cfg(test)]
mod tests;
