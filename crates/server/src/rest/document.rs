//! The document that describes the API (OpenAPI 3.1), made of the table of operations and of the types they take and
//! answer.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::operation::{Form, Kind, Operation, Parameter};
use super::table;
use crate::error::Error;
use crate::registered::repository;
use crate::rollouts::Rollout;

/// Where the document keeps schemas that have a name.
const SCHEMAS: &str = "/components/schemas";
/// Bodies of errors, wherever one is.
const ERROR: &str = "Error";

/// The document, as it is sent.
pub(super) static DOCUMENT: LazyLock<String> = LazyLock::new(|| document().to_string());

fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = SCHEMAS.into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for operation in table::ALL.iter() {
        let told = described(operation, &mut generator);
        let path = paths.entry(operation.path.replace("...}", "}")).or_insert_with(|| json!({}));
        path[operation.verb.as_str().to_ascii_lowercase()] = told;
    }
    let mut schemas = generator.take_definitions(true);
    for (name, definition) in kinds() {
        schemas.insert(name, definition);
    }
    schemas.insert(ERROR.to_owned(), Error::schema());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Baton",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Argo CD's API for Applications, sets and projects, with rollouts and approvals beside it.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": crate::auth::cookie::NAME},
            },
        },
        "security": [{"bearer": []}, {"cookie": []}],
    })
}

fn described(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    let in_path = operation
        .names()
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}}));
    let in_query = operation.query.iter().map(parameter);
    let parameters: Vec<Value> = in_path.chain(in_query).collect();
    let mut told = json!({
        "operationId": id(operation),
        "summary": operation.about,
        "parameters": parameters,
        "responses": {
            "default": {
                "description": "It was not done, and why.",
                "content": {"application/json": {"schema": {"$ref": format!("#{SCHEMAS}/{ERROR}")}}},
            },
        },
    });
    match content(operation, generator) {
        Some(content) => {
            told["responses"]["200"] = json!({"description": "It was done.", "content": content});
        }
        None => told["responses"]["303"] = json!({"description": "The browser goes elsewhere."}),
    }
    if let Some(body) = operation.body {
        let schema = body(generator);
        told["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": schema}}});
    }
    if operation.open {
        told["security"] = json!([{}, {"bearer": []}, {"cookie": []}]);
    }
    told
}

/// The id of an operation: its call, and what it is about where several have one call.
fn id(operation: &Operation) -> String {
    format!("{:?}{}", operation.route, twin(operation)).replace(['(', ')'], "")
}

/// Tells operations apart that are the same at two places: an id is given once.
fn twin(operation: &Operation) -> String {
    let before =
        table::ALL.iter().take_while(|other| other.path != operation.path || other.verb != operation.verb);
    match before.filter(|other| other.route == operation.route).count() {
        0 => String::new(),
        count => (count + 1).to_string(),
    }
}

/// What an answer holds, unless it sends a browser elsewhere.
fn content(operation: &Operation, generator: &mut SchemaGenerator) -> Option<Value> {
    Some(match operation.form {
        Form::Elsewhere => return None,
        Form::Text => json!({"text/plain": {"schema": {"type": "string"}}}),
        Form::Picture => json!({"image/svg+xml": {"schema": {"type": "string"}}}),
        Form::Json => json!({"application/json": {"schema": (operation.answer)(generator)}}),
        Form::Stream => {
            let line = json!({"type": "object", "properties": {"result": {"type": "object"}, "error": {"type": "object"}}});
            json!({"application/json": {"schema": line}, "text/event-stream": {"schema": {"type": "string"}}})
        }
    })
}

fn parameter(parameter: &Parameter) -> Value {
    let schema = match parameter.kind {
        Kind::Text => json!({"type": "string"}),
        Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Number => json!({"type": "integer", "minimum": 0}),
        Kind::Words(words) => json!({"type": "string", "enum": words}),
    };
    json!({"name": parameter.name, "in": "query", "description": parameter.about, "schema": schema})
}

/// The kinds of the control plane, as their definitions describe them.
fn kinds() -> impl Iterator<Item = (String, Value)> {
    baton_api::crds().into_iter().map(|mut definition| {
        let name = definition["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
        (name, definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take())
    })
}

fn named(name: &str) -> Schema {
    json_schema!({"$ref": format!("#{SCHEMAS}/{name}")})
}

fn listed(name: &str) -> Schema {
    let item = named(name);
    json_schema!({"type": "object", "properties": {
        "metadata": {"type": "object"}, "items": {"type": ["array", "null"], "items": item}}})
}

pub(super) fn application(_: &mut SchemaGenerator) -> Schema {
    named("Application")
}

pub(super) fn applications(_: &mut SchemaGenerator) -> Schema {
    listed("Application")
}

pub(super) fn set(_: &mut SchemaGenerator) -> Schema {
    named("ApplicationSet")
}

pub(super) fn sets(_: &mut SchemaGenerator) -> Schema {
    listed("ApplicationSet")
}

pub(super) fn project(_: &mut SchemaGenerator) -> Schema {
    named("AppProject")
}

pub(super) fn projects(_: &mut SchemaGenerator) -> Schema {
    listed("AppProject")
}

/// A set whose Applications are asked for.
pub(super) fn generation(_: &mut SchemaGenerator) -> Schema {
    let set = named("ApplicationSet");
    json_schema!({"type": "object", "properties": {"applicationSet": set}})
}

/// A project as it shall be.
pub(super) fn project_request(_: &mut SchemaGenerator) -> Schema {
    let project = named("AppProject");
    json_schema!({"type": "object", "properties": {"project": project, "upsert": {"type": "boolean"}}})
}

/// A repository as it shall be.
pub(super) fn repository(_: &mut SchemaGenerator) -> Schema {
    Schema::try_from(repository::schema("repo")).unwrap_or_default()
}

/// A repository as it would be, or its URL.
pub(super) fn repository_or_url(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [repository(generator), {"type": "string"}]})
}

/// Credentials of repositories as they shall be.
pub(super) fn credentials(_: &mut SchemaGenerator) -> Schema {
    Schema::try_from(repository::schema("url")).unwrap_or_default()
}

/// What came of an action, or what would.
pub(super) fn acted(generator: &mut SchemaGenerator) -> Schema {
    let rollout = generator.subschema_for::<Rollout>();
    let text = json!({"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}});
    json_schema!({"anyOf": [rollout, text]})
}

/// An answer that says nothing.
pub(super) fn nothing(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "maxProperties": 0})
}

/// A token, told once.
pub(super) fn token(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "required": ["token"], "properties": {"token": {"type": "string"}}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_operation_of_the_table_is_described() {
        let document = document();
        for operation in table::ALL.iter() {
            let path = operation.path.replace("...}", "}");
            let verb = operation.verb.as_str().to_ascii_lowercase();
            let told = &document["paths"][&path][&verb];
            let what = format!("{verb} {path}");
            assert_eq!(told["summary"], operation.about, "{what}");
            let of = |place: &str| -> BTreeSet<&str> {
                let all = told["parameters"].as_array().into_iter().flatten();
                all.filter(|one| one["in"] == place).filter_map(|one| one["name"].as_str()).collect()
            };
            assert_eq!(of("path"), operation.names().collect(), "{what}");
            assert_eq!(of("query"), operation.query.iter().map(|one| one.name).collect(), "{what}");
            assert_eq!(told.get("requestBody").is_some(), operation.body.is_some(), "{what}");
            let error = &told["responses"]["default"]["content"]["application/json"]["schema"]["$ref"];
            assert_eq!(error, "#/components/schemas/Error", "{what}");
        }
        let paths = document["paths"].as_object().expect("paths").values();
        let described: usize = paths.map(|path| path.as_object().map_or(0, Map::len)).sum();
        assert_eq!(described, table::ALL.len(), "and nothing else");
    }

    #[test]
    fn every_call_has_an_operation_and_every_operation_an_id_of_its_own() {
        let ids: BTreeSet<String> = table::ALL.iter().map(id).collect();
        assert_eq!(ids.len(), table::ALL.len());
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn follow(value: &Value, document: &Value) {
            match value {
                Value::Object(fields) => {
                    if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
                        let found = document.pointer(target.trim_start_matches('#'));
                        assert!(found.is_some_and(Value::is_object), "{target}");
                    }
                    fields.values().for_each(|field| follow(field, document));
                }
                Value::Array(items) => items.iter().for_each(|item| follow(item, document)),
                _ => {}
            }
        }
        let document = document();
        follow(&document, &document);
    }

    #[test]
    fn names_are_those_that_such_a_document_may_have() {
        let document = document();
        for name in document["components"]["schemas"].as_object().expect("schemas").keys() {
            let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            assert!(name.bytes().all(sound), "{name}");
        }
        for operation in table::ALL.iter() {
            let mut names: Vec<&str> = operation.query.iter().map(|one| one.name).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{} has a parameter twice", operation.path);
        }
    }
}
