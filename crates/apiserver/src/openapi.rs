//! OpenAPI v3: an index and one document per group and version, so that `kubectl explain`, `apply` and `diff` know the
//! schemas. Version 2 is a document without definitions.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use baton_store::Key;
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::catalog::{Catalog, Resource};
use crate::cluster::{Core, DEFINITIONS};
use crate::definitions::OBJECT_META;
use crate::failure::Failure;
use crate::object;
use crate::rest::{Answer, Call};

pub(crate) fn answer(call: &Call, path: &str) -> Result<Answer, Failure> {
    let catalog = call.core.catalog();
    if path == "v2" {
        return Ok(version_2(call));
    }
    if path == "v3" {
        return Ok(Answer::ok(index(&catalog)));
    }
    let (group, version) = match path.split('/').collect::<Vec<_>>().as_slice() {
        ["v3", "api", version] => (String::new(), (*version).to_owned()),
        ["v3", "apis", group, version] => ((*group).to_owned(), (*version).to_owned()),
        _ => return Err(Failure::no_such_path()),
    };
    let served: Vec<Arc<Resource>> = catalog
        .resources()
        .iter()
        .filter(|resource| resource.group == group && resource.version == version)
        .cloned()
        .collect();
    if served.is_empty() {
        return Err(Failure::no_such_path());
    }
    if served.iter().all(|resource| resource.custom().is_none()) {
        return Ok(Answer::json(built_in(&call.core, &group, &version, &served)));
    }
    Ok(Answer::ok(document(&call.core, &group, &version, &served)))
}

/// kubectl validates a `List` by version 2, which it takes only as protobuf. A document without definitions tells it to
/// leave validation to the server, where it belongs.
fn version_2(call: &Call) -> Answer {
    const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    let accept =
        call.headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !accept.contains("proto-openapi.spec.v2") {
        let info = json!({"title": "Kubernetes", "version": "unversioned"});
        return Answer::ok(json!({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}}));
    }
    // Fields of a gnostic Document: 1 swagger, 2 info (1 title, 2 version), 8 paths, 9 definitions.
    let field = |number: u8, content: &[u8]| {
        let length = u8::try_from(content.len()).expect("every part of this document is short");
        [&[number << 3 | 2, length], content].concat()
    };
    let info = [field(1, b"Kubernetes"), field(2, b"unversioned")].concat();
    let document = [field(1, b"2.0"), field(2, &info), field(8, b""), field(9, b"")].concat();
    Answer::json(document.into()).typed(PROTOBUF)
}

fn index(catalog: &Catalog) -> Value {
    let mut paths = Map::new();
    for (group, versions) in catalog.groups() {
        for version in versions {
            let path =
                if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
            let hash = fingerprint(catalog, &group, &version);
            let url = format!("/openapi/v3/{path}?hash={hash:016X}");
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
    }
    json!({"paths": paths})
}

/// Changes when the document would: clients cache by it.
fn fingerprint(catalog: &Catalog, group: &str, version: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (env!("CARGO_PKG_VERSION"), group, version).hash(&mut hasher);
    for resource in catalog.resources().iter().filter(|r| r.group == group && r.version == version) {
        resource.plural.hash(&mut hasher);
        if let Some(custom) = resource.custom() {
            custom.generation.hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Documents of built-in groups never change, so each is written once.
fn built_in(core: &Core, group: &str, version: &str, served: &[Arc<Resource>]) -> Bytes {
    type Documents = Mutex<BTreeMap<(String, String), Bytes>>;
    static WRITTEN: OnceLock<Documents> = OnceLock::new();
    let written = WRITTEN.get_or_init(Documents::default);
    let key = (group.to_owned(), version.to_owned());
    if let Some(document) = written.lock().get(&key) {
        return document.clone();
    }
    let bytes = Bytes::from(document(core, group, version, served).to_string());
    written.lock().insert(key, bytes.clone());
    bytes
}

fn document(core: &Core, group: &str, version: &str, served: &[Arc<Resource>]) -> Value {
    let mut schemas = match baton_kinds::openapi(group, version)["components"]["schemas"].take() {
        Value::Object(schemas) => schemas,
        _ => Map::new(),
    };
    if served.iter().any(|resource| resource.custom().is_some()) {
        // A group of custom kinds refers to metadata that only built-in documents hold.
        if let Value::Object(core) =
            baton_kinds::openapi("coordination.k8s.io", "v1")["components"]["schemas"].take()
        {
            let shared = core.into_iter().filter(|(name, _)| name.starts_with("io.k8s.apimachinery."));
            schemas.extend(shared);
        }
    }
    let mut paths = Map::new();
    for resource in served {
        let definition = definition_name(resource);
        if resource.custom().is_some() {
            schemas.insert(definition.clone(), custom_definition(core, resource));
        }
        let base =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        let scope = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
        let collection = format!("{base}{scope}/{}", resource.plural);
        let operations = |verbs: &[(&str, &str)]| -> Value {
            verbs
                .iter()
                .map(|(method, action)| {
                    ((*method).to_owned(), operation(resource, &definition, method, action))
                })
                .collect::<Map<String, Value>>()
                .into()
        };
        paths.insert(
            collection.clone(),
            operations(&[("get", "list"), ("post", "post"), ("delete", "deletecollection")]),
        );
        paths.insert(
            format!("{collection}/{{name}}"),
            operations(&[("get", "get"), ("put", "put"), ("patch", "patch"), ("delete", "delete")]),
        );
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

/// Custom kinds are named by their reversed group, as Kubernetes names them.
fn definition_name(resource: &Resource) -> String {
    match &resource.nature {
        crate::catalog::Nature::BuiltIn(kind) => kind.definition(),
        crate::catalog::Nature::Custom(_) => {
            let mut parts: Vec<&str> = resource.group.split('.').collect();
            parts.reverse();
            format!("{}.{}.{}", parts.join("."), resource.version, resource.kind)
        }
    }
}

/// The schema as its definition gives it. It is read when asked for: descriptions are most of it, and kubectl is the only
/// one who wants them.
fn custom_definition(core: &Core, resource: &Resource) -> Value {
    let stored = core.store.get(&Key::new(DEFINITIONS, "", &*resource.storage));
    let mut crd = stored.map(|record| object::read(&record)).unwrap_or_default();
    let version = crd["spec"]["versions"]
        .as_array_mut()
        .into_iter()
        .flatten()
        .find(|version| version["name"] == resource.version.as_str());
    let mut definition = version
        .map(|version| version["schema"]["openAPIV3Schema"].take())
        .filter(Value::is_object)
        .unwrap_or_else(|| json!({"type": "object"}));
    if definition["properties"].is_null() {
        definition["properties"] = json!({});
    }
    let text = |description: &str| json!({"type": "string", "description": description});
    definition["properties"]["apiVersion"] = text("The version of this representation of the object.");
    definition["properties"]["kind"] = text("The kind of object this represents.");
    definition["properties"]["metadata"] = json!({
        "description": "Standard object metadata.",
        "allOf": [{"$ref": format!("#/components/schemas/{OBJECT_META}")}],
        "default": {},
    });
    definition["x-kubernetes-group-version-kind"] = json!([gvk(resource)]);
    definition
}

fn gvk(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

/// Clients read two things off an operation: its kind, and that it knows `fieldValidation`.
fn operation(resource: &Resource, definition: &str, method: &str, action: &str) -> Value {
    let query =
        |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let names: &[&str] = match action {
        "list" => &["labelSelector", "fieldSelector", "limit", "continue", "watch"],
        "get" | "delete" | "deletecollection" => &[],
        "patch" => &["dryRun", "fieldManager", "fieldValidation", "force"],
        _ => &["dryRun", "fieldManager", "fieldValidation"],
    };
    let parameters: Vec<Value> = names.iter().map(|name| query(name)).collect();
    let reference = json!({"$ref": format!("#/components/schemas/{definition}")});
    let mut operation = json!({
        "operationId": format!("{action}{}{}", resource.version, resource.kind),
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk(resource),
    });
    if matches!(method, "post" | "put") {
        operation["requestBody"] = json!({"content": {"*/*": {"schema": reference}}});
    }
    operation
}
