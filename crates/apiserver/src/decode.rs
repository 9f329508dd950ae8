//! From request bytes to an object: media types, strictness, and what the body must say about itself.

use baton_grammar::yaml;
use baton_schema::{metadata_type_errors, strict, type_errors, unknown_fields};
use serde_json::Value;

use crate::catalog::{Nature, Resource};
use crate::failure::Failure;
use crate::object;
use crate::request::Query;

/// What becomes of fields the schema does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

impl FieldValidation {
    pub(crate) fn read(query: &Query) -> Result<FieldValidation, Failure> {
        match query.get("fieldValidation") {
            None | Some("Warn") => Ok(FieldValidation::Warn),
            Some("Ignore") => Ok(FieldValidation::Ignore),
            Some("Strict") => Ok(FieldValidation::Strict),
            Some(other) => {
                let error = baton_schema::FieldError::not_supported(
                    "fieldValidation",
                    other,
                    &["", "Ignore", "Strict", "Warn"],
                );
                let subject =
                    crate::failure::Subject { group: "meta.k8s.io", resource: "CreateOptions", name: "" };
                Err(Failure::invalid(subject, &[error]))
            }
        }
    }
}

/// A body as sent.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) value: Value,
    /// Complaints of strict decoding found so far: duplicate keys.
    pub(crate) complaints: Vec<String>,
}

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Reads a body that holds a whole object of the kind.
pub(crate) fn document(content_type: &str, body: &[u8], kind: &str) -> Result<Document, Failure> {
    let unrecognized = |why: String| {
        Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({})",
            summary(body)
        ))
    };
    match media_type(content_type) {
        "" | JSON => parse_json(body)
            .map_err(|error| unrecognized(format!("couldn't get version/kind; json parse error: {error}"))),
        YAML => parse_yaml(body).map_err(|error| unrecognized(format!("yaml: {error}"))),
        PROTOBUF => baton_kinds::protobuf::decode(body)
            .map(|value| Document { value, complaints: Vec::new() })
            .map_err(|error| Failure::bad_request(error.to_string())),
        _ => Err(Failure::unsupported_media_type(&[JSON, YAML, PROTOBUF])),
    }
}

/// How a body begins: JSON as it is, anything else in hexadecimal.
fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    if body.is_empty() {
        return "<empty>".to_owned();
    }
    let beginning = &body[..body.len().min(SHOWN)];
    let mut text = match beginning {
        [b'{', ..] => String::from_utf8_lossy(beginning).into_owned(),
        _ => beginning.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if body.len() > SHOWN {
        text.push_str(" ...");
    }
    text
}

/// The media type without its parameters.
pub(crate) fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

pub(crate) fn json(body: &[u8]) -> Result<Document, Failure> {
    parse_json(body).map_err(|error| Failure::bad_request(error.to_string()))
}

pub(crate) fn yaml(body: &[u8]) -> Result<Document, Failure> {
    parse_yaml(body).map_err(|error| Failure::bad_request(format!("error decoding YAML: {error}")))
}

fn parse_json(body: &[u8]) -> Result<Document, strict::ParseError> {
    let (value, duplicates) = strict::parse(body, strict::DEEPEST)?;
    let complaints = duplicates.into_iter().map(|path| format!("duplicate field {path:?}")).collect();
    Ok(Document { value, complaints })
}

fn parse_yaml(body: &[u8]) -> Result<Document, String> {
    // Most YAML bodies are JSON, which says more precisely what is wrong with it.
    if body.trim_ascii_start().starts_with(b"{") {
        return parse_json(body).map_err(|error| error.to_string());
    }
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    let (value, duplicates) = yaml::first_with_duplicates(text).map_err(|error| error.to_string())?;
    let complaints = duplicates.iter().map(ToString::to_string).collect();
    Ok(Document { value, complaints })
}

/// Checks that a body is an object of the resource and takes from it what decoding into the kind would take.
/// Returns the complaints that strictness decides about.
pub(crate) fn accept(resource: &Resource, document: Document) -> Result<(Value, Vec<String>), Failure> {
    let Document { mut value, mut complaints } = document;
    if !value.is_object() {
        let kind = &resource.kind;
        return Err(Failure::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {kind}: the body is not a JSON object",
            resource.version
        )));
    }
    if let Nature::BuiltIn(_) = &resource.nature {
        check_convertible(resource, &value)?;
    }
    identify(resource, &mut value)?;
    complaints.extend(settle(resource, &mut value)?);
    Ok((value, complaints))
}

/// Checks that an apply configuration is of the resource. What it says beyond the schema is for apply to refuse.
pub(crate) fn accept_config(
    resource: &Resource,
    document: Document,
) -> Result<(Value, Vec<String>), Failure> {
    let Document { mut value, complaints } = document;
    identify(resource, &mut value)?;
    Ok((value, complaints))
}

/// Brings a value into the shape of its kind: JSON types, nulls, unknown fields. Returns complaints.
pub(crate) fn settle(resource: &Resource, value: &mut Value) -> Result<Vec<String>, Failure> {
    let schema = resource.schema();
    let mut complaints = Vec::new();
    match &resource.nature {
        Nature::BuiltIn(kind) => {
            if let Some(message) = type_errors(&schema, value) {
                return Err(Failure::bad_request(format!(
                    "{} in version {:?} cannot be handled as a {}: {message}",
                    kind.kind, kind.version, kind.kind
                )));
            }
            object::drop_empty(&schema, value);
            complaints.extend(unknown(baton_schema::prune(&schema, value)));
        }
        Nature::Custom(_) => {
            if let Some(metadata) = schema.properties.get("metadata") {
                if let Some(message) = metadata_type_errors(value) {
                    return Err(Failure::bad_request(message));
                }
                object::drop_empty(metadata, &mut value["metadata"]);
            }
            complaints.extend(unknown(unknown_fields(&schema, value)));
            baton_schema::prune(&schema, value);
        }
    }
    Ok(complaints)
}

fn unknown(paths: Vec<String>) -> impl Iterator<Item = String> {
    paths.into_iter().map(|path| format!("unknown field {path:?}"))
}

/// A body that names another kind than the path's is decoded as what it says, and then does not fit.
fn check_convertible(resource: &Resource, value: &Value) -> Result<(), Failure> {
    let said = |field: &str| value[field].as_str().filter(|text| !text.is_empty());
    let expected = resource.api_version();
    let (api_version, kind) =
        (said("apiVersion").unwrap_or(&expected), said("kind").unwrap_or(&resource.kind));
    if (api_version, kind) == (&expected, &resource.kind) {
        return Ok(());
    }
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let why = match baton_kinds::find_kind(group, version, kind) {
        Some(_) => {
            let package = resource.group.split('.').next().filter(|name| !name.is_empty()).unwrap_or("core");
            format!("converting ({version}.{kind}) to ({package}.{}): unknown conversion", resource.kind)
        }
        None => format!("no kind {kind:?} is registered for version {api_version:?}"),
    };
    Err(Failure::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {}: {why}",
        resource.kind
    )))
}

/// A body names its kind; built-in kinds may leave it to the path.
fn identify(resource: &Resource, value: &mut Value) -> Result<(), Failure> {
    let expected = resource.api_version();
    let said = |field: &str, value: &Value| value[field].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (said("apiVersion", value), said("kind", value));
    if resource.custom().is_some() && kind.is_empty() {
        let shown: String = value.to_string().chars().take(400).collect();
        return Err(Failure::bad_request(format!("Object 'Kind' is missing in '{shown}'")));
    }
    if !kind.is_empty() && kind != resource.kind {
        return Err(Failure::bad_request(format!(
            "the kind in the data ({api_version}, Kind={kind}) does not match the expected kind ({expected}, Kind={})",
            resource.kind
        )));
    }
    if !api_version.is_empty() && api_version != expected {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    value["apiVersion"] = expected.into();
    value["kind"] = resource.kind.as_str().into();
    if value["metadata"].is_null() {
        value["metadata"] = Value::Object(serde_json::Map::new());
    }
    Ok(())
}
