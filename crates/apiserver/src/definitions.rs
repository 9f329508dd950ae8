//! CustomResourceDefinitions: what is checked when one is written, and the resources it adds.

use std::sync::Arc;

use baton_grammar::jsonpath::Path;
use baton_schema::{Additional, FieldError, Kind as JsonKind, Reader, Schema, Validator, names, structural};
use serde_json::{Value, json};

use crate::catalog::{
    Catalog, Custom, CustomColumn, Nature, Resource, ScalePaths, api_version, version_rank,
};
use crate::object;

/// Keeps a definition until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Fills in what the API server derives when a definition is written.
pub(crate) fn fill_defaults(definition: &mut Value) {
    let kind = definition["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
    let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut)
        && !kind.is_empty()
    {
        names.entry("singular").or_insert_with(|| kind.to_lowercase().into());
        names.entry("listKind").or_insert_with(|| format!("{kind}List").into());
    }
    spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
}

/// What is wrong with a definition.
pub(crate) fn validate(definition: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = &definition["spec"];
    let mut errors = Vec::new();
    let text = |field: &str| spec[field].as_str().unwrap_or_default();
    let name = |field: &str| spec["names"][field].as_str().unwrap_or_default();
    let wanted = format!("{}.{}", name("plural"), text("group"));
    if object::name(definition) != wanted {
        errors.push(FieldError::invalid(
            "metadata.name",
            object::name(definition),
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    if text("group").is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if !text("group").contains('.') {
        errors.push(FieldError::invalid(
            "spec.group",
            text("group"),
            "should be a domain with at least one dot",
        ));
    } else {
        let complaints = names::dns1123_subdomain(text("group"));
        errors
            .extend(complaints.into_iter().map(|why| FieldError::invalid("spec.group", text("group"), why)));
    }
    match text("scope") {
        "Cluster" | "Namespaced" => {}
        "" => errors.push(FieldError::required("spec.scope", "")),
        other => errors.push(FieldError::not_supported("spec.scope", other, &["Cluster", "Namespaced"])),
    }
    for field in ["plural", "singular", "kind", "listKind"] {
        let path = format!("spec.names.{field}");
        if name(field).is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        // Kinds are checked without regard to case.
        for why in names::dns1035_label(&name(field).to_lowercase()) {
            errors.push(FieldError::invalid(path.clone(), name(field), why));
        }
    }
    for (field, path) in [("shortNames", "spec.names.shortNames"), ("categories", "spec.names.categories")] {
        for (index, short) in list(&spec["names"][field]).iter().enumerate() {
            let short = short.as_str().unwrap_or_default();
            for why in names::dns1035_label(short) {
                errors.push(FieldError::invalid(format!("{path}[{index}]"), short, why));
            }
        }
    }
    if spec["preserveUnknownFields"] == true {
        errors.push(FieldError::invalid(
            "spec.preserveUnknownFields",
            true,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
             spec.versions[*].schema instead",
        ));
    }
    let protected = text("group").ends_with(".k8s.io") || text("group").ends_with(".kubernetes.io");
    const APPROVED: &str = "api-approved.kubernetes.io";
    if protected && definition["metadata"]["annotations"][APPROVED].is_null() {
        errors.push(FieldError::required(
            format!("metadata.annotations[{APPROVED}]"),
            "protected groups must have approval annotation \"api-approved.kubernetes.io\", see \
             https://github.com/kubernetes/enhancements/pull/1111",
        ));
    }
    if !name("kind").is_empty() && name("kind") == name("listKind") {
        errors.push(FieldError::invalid(
            "spec.names.listKind",
            name("listKind"),
            "kind and listKind may not be the same",
        ));
    }
    if !matches!(spec["conversion"]["strategy"].as_str(), None | Some("None")) {
        errors.push(FieldError::not_supported(
            "spec.conversion.strategy",
            spec["conversion"]["strategy"].clone(),
            &["None"],
        ));
    }
    errors.extend(versions(spec));
    if let Some(old) = old {
        for field in ["group", "scope"] {
            if spec[field] != old["spec"][field] {
                errors.push(FieldError::invalid(
                    format!("spec.{field}"),
                    spec[field].clone(),
                    "field is immutable",
                ));
            }
        }
        for field in ["plural", "kind"] {
            if spec["names"][field] != old["spec"]["names"][field] {
                errors.push(FieldError::invalid(
                    format!("spec.names.{field}"),
                    spec["names"][field].clone(),
                    "field is immutable",
                ));
            }
        }
        let stored = old["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
        for (index, version) in stored.iter().enumerate() {
            let kept = list(&spec["versions"]).iter().any(|known| known["name"] == *version);
            if !kept {
                errors.push(FieldError::invalid(
                    format!("status.storedVersions[{index}]"),
                    version.clone(),
                    "missing from spec.versions; \
                     a version that objects were stored in cannot be removed",
                ));
            }
        }
    }
    errors
}

fn versions(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let versions = list(&spec["versions"]);
    if versions.is_empty() {
        errors.push(FieldError::required("spec.versions", "must have at least one version"));
    }
    let storing = versions.iter().filter(|version| version["storage"] == true).count();
    if !versions.is_empty() && storing != 1 {
        errors.push(FieldError::invalid(
            "spec.versions",
            spec["versions"].clone(),
            "must have exactly one version marked as storage version",
        ));
    }
    let mut seen = std::collections::BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        let name = version["name"].as_str().unwrap_or_default();
        for why in names::dns1035_label(name) {
            errors.push(FieldError::invalid(format!("{path}.name"), name, why));
        }
        if !seen.insert(name) {
            errors.push(FieldError::invalid(format!("{path}.name"), name, "must be unique"));
        }
        let schema = &version["schema"]["openAPIV3Schema"];
        // With one version a fault is reported where the first CRD API had the schema.
        let schema_path = match versions.len() {
            1 if !schema.is_null() => "spec.validation.openAPIV3Schema".to_owned(),
            _ => format!("{path}.schema.openAPIV3Schema"),
        };
        if schema.is_null() {
            errors.push(FieldError::required(schema_path, "schemas are required"));
        } else {
            errors.extend(structural::check(schema, &schema_path));
        }
        for (index, column) in list(&version["additionalPrinterColumns"]).iter().enumerate() {
            let path = format!("{path}.additionalPrinterColumns[{index}]");
            for (field, shown) in [("name", "name"), ("type", "type"), ("jsonPath", "JSONPath")] {
                if column[field].as_str().unwrap_or_default().is_empty() {
                    errors.push(FieldError::required(format!("{path}.{shown}"), ""));
                }
            }
            const TYPES: [&str; 5] = ["integer", "number", "string", "boolean", "date"];
            let type_ = column["type"].as_str().unwrap_or_default();
            if !type_.is_empty() && !TYPES.contains(&type_) {
                errors.push(FieldError::invalid(
                    format!("{path}.type"),
                    type_,
                    "must be one of boolean,date,integer,number,string",
                ));
            }
            let written = column["jsonPath"].as_str().unwrap_or_default();
            let problem = match Path::parse(written) {
                Err(error) => Some(error.problem),
                Ok(_) if !written.starts_with('.') => Some("must begin with a dot".to_owned()),
                Ok(_) => None,
            };
            if let Some(problem) = problem.filter(|_| !written.is_empty()) {
                // Upstream writes this one field in capitals.
                let place = format!("{path}.JSONPath");
                errors.push(FieldError::invalid(place, written, format!("is an invalid path: {problem}")));
            }
        }
        for (index, field) in list(&version["selectableFields"]).iter().enumerate() {
            let path = format!("{path}.selectableFields[{index}].jsonPath");
            let written = field["jsonPath"].as_str().unwrap_or_default();
            if written.is_empty() {
                errors.push(FieldError::required(path, ""));
            } else if !is_selectable(schema, written) {
                errors.push(FieldError::invalid(path, written, "must point to a field in the schema"));
            }
        }
        let scale = &version["subresources"]["scale"];
        if !scale.is_null() {
            for (field, root) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
                let value = scale[field].as_str().unwrap_or_default();
                let path = format!("{path}.subresources.scale.{field}");
                if value.is_empty() {
                    errors.push(FieldError::required(path, ""));
                } else if !value.starts_with(root) {
                    errors.push(FieldError::invalid(
                        path,
                        value,
                        format!("should be a json path under {root}"),
                    ));
                }
            }
        }
    }
    errors
}

/// Whether a simple path leads to a scalar of the schema outside metadata.
fn is_selectable(schema: &Value, path: &str) -> bool {
    let fields = Path::parse(path).ok().and_then(|path| Some(path.plain_fields()?.join("/properties/")));
    let node = fields.and_then(|fields| schema.pointer(&format!("/properties/{fields}")).cloned());
    let scalar = |node: &Value| matches!(node["type"].as_str(), Some("string" | "boolean" | "integer"));
    path.starts_with('.') && !path.starts_with(".metadata") && node.is_some_and(|node| scalar(&node))
}

/// Derives the status: names are accepted unless another definition or a built-in kind has them, and an accepted
/// definition is established at once.
pub(crate) fn fill_status(definition: &mut Value, catalog: &Catalog, now: &str) {
    let conflict = name_conflict(definition, catalog);
    let storage_version = list(&definition["spec"]["versions"])
        .iter()
        .find(|version| version["storage"] == true)
        .map(|version| version["name"].clone());
    let names = definition["spec"]["names"].clone();
    let old = definition["status"].clone();
    let mut stored: Vec<Value> = old["storedVersions"].as_array().cloned().unwrap_or_default();
    if let Some(version) = storage_version
        && !stored.contains(&version)
    {
        stored.push(version);
    }
    let was_established = condition(&old, "Established") == Some("True");
    let established = conflict.is_none() || was_established;
    let accepted = match &conflict {
        None => {
            json!({"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found"})
        }
        Some((reason, message)) => {
            json!({"type": "NamesAccepted", "status": "False", "reason": reason, "message": message})
        }
    };
    let initial = match established {
        true => json!({
            "type": "Established", "status": "True", "reason": "InitialNamesAccepted",
            "message": "the initial names have been accepted",
        }),
        false => json!({
            "type": "Established", "status": "False", "reason": "NotAccepted", "message": "not all names are accepted",
        }),
    };
    let mut conditions = vec![accepted, initial];
    conditions.extend(
        list(&old["conditions"])
            .iter()
            .filter(|known| !matches!(known["type"].as_str(), Some("NamesAccepted" | "Established")))
            .cloned(),
    );
    for condition in &mut conditions {
        let known = list(&old["conditions"]).iter().find(|known| known["type"] == condition["type"]);
        let since = known
            .filter(|known| known["status"] == condition["status"])
            .and_then(|known| known.get("lastTransitionTime").cloned());
        condition["lastTransitionTime"] = since.unwrap_or_else(|| now.into());
    }
    let accepted_names = match conflict {
        None => names,
        Some(_) if old["acceptedNames"]["plural"].is_string() => old["acceptedNames"].clone(),
        Some(_) => json!({"plural": "", "kind": ""}),
    };
    definition["status"] =
        json!({"acceptedNames": accepted_names, "conditions": conditions, "storedVersions": stored});
}

pub(crate) fn condition<'a>(status: &'a Value, type_: &str) -> Option<&'a str> {
    list(&status["conditions"]).iter().find(|known| known["type"] == type_)?["status"].as_str()
}

fn name_conflict(definition: &Value, catalog: &Catalog) -> Option<(&'static str, String)> {
    let spec = &definition["spec"];
    let group = spec["group"].as_str()?;
    let own = object::name(definition);
    let others: Vec<&Arc<Resource>> = catalog
        .resources()
        .iter()
        .filter(|resource| resource.group == group && &*resource.storage != own)
        .collect();
    let taken = |name: &str| {
        others.iter().any(|other| {
            other.plural == name
                || other.singular == name
                || other.short_names.iter().any(|short| short == name)
        })
    };
    let names = &spec["names"];
    let text = |field: &str| names[field].as_str().unwrap_or_default();
    let kind_taken = |name: &str| others.iter().any(|other| other.kind == name || other.list_kind == name);
    let plain = [("plural", "PluralConflict"), ("singular", "SingularConflict")];
    let kinds = [("kind", "KindConflict"), ("listKind", "ListKindConflict")];
    let short = list(&names["shortNames"]).iter().filter_map(Value::as_str);
    // Of several conflicts the last one is told.
    plain
        .map(|(field, reason)| taken(text(field)).then(|| (reason, text(field))))
        .into_iter()
        .chain(short.map(|name| taken(name).then_some(("ShortNamesConflict", name))))
        .chain(kinds.map(|(field, reason)| kind_taken(text(field)).then(|| (reason, text(field)))))
        .flatten()
        .last()
        .map(|(reason, name)| (reason, format!("{name:?} is already in use")))
}

/// The resources an established definition adds, one for each served version.
pub(crate) fn resources(definition: &Value) -> Vec<Arc<Resource>> {
    if condition(&definition["status"], "Established") != Some("True") {
        return Vec::new();
    }
    let spec = &definition["spec"];
    let Some(storage) = list(&spec["versions"]).iter().find(|version| version["storage"] == true) else {
        return Vec::new();
    };
    // One reader for all versions: what they have in common is held once.
    let mut reader = Reader::standalone();
    list(&spec["versions"])
        .iter()
        .filter(|version| version["served"] == true)
        .filter_map(|version| resource(&mut reader, definition, version, storage))
        .map(Arc::new)
        .collect()
}

fn resource(
    reader: &mut Reader<'_>,
    definition: &Value,
    version: &Value,
    storage: &Value,
) -> Option<Resource> {
    let spec = &definition["spec"];
    let names = &definition["status"]["acceptedNames"];
    let group = spec["group"].as_str()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| list(value).iter().map(text).collect();
    let own = reader.read(&version["schema"]["openAPIV3Schema"]).ok()?;
    let stored = reader.read(&storage["schema"]["openAPIV3Schema"]).ok()?;
    let scale = &version["subresources"]["scale"];
    let custom = Custom {
        schema: with_type_and_metadata(&own),
        validator: Validator::new(own).ok()?,
        generation: object::meta_number(definition, "generation").unwrap_or_default(),
        status: !version["subresources"]["status"].is_null(),
        scale: scale.is_object().then(|| ScalePaths {
            spec: text(&scale["specReplicasPath"]),
            status: text(&scale["statusReplicasPath"]),
            selector: scale["labelSelectorPath"].as_str().map(str::to_owned),
        }),
        columns: columns(version),
        selectable: list(&version["selectableFields"])
            .iter()
            .map(|field| text(&field["jsonPath"]).trim_start_matches('.').to_owned())
            .collect(),
        storage_api_version: api_version(group, storage["name"].as_str()?),
        storage_schema: with_type_and_metadata(&stored),
        deprecation: (version["deprecated"] == true).then(|| {
            version["deprecationWarning"].as_str().map_or_else(
                || deprecation(spec, &text(&version["name"]), &text(&names["kind"])),
                str::to_owned,
            )
        }),
        terminating: object::is_terminating(definition),
    };
    Some(Resource {
        group: group.to_owned(),
        version: text(&version["name"]),
        kind: text(&names["kind"]),
        list_kind: text(&names["listKind"]),
        plural: text(&names["plural"]),
        singular: text(&names["singular"]),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        storage: object::name(definition).into(),
        nature: Nature::Custom(Box::new(custom)),
    })
}

/// The warning of a version that gives none of its own: points at the best version that is not deprecated.
fn deprecation(spec: &Value, version: &str, kind: &str) -> String {
    let group = spec["group"].as_str().unwrap_or_default();
    let better = list(&spec["versions"])
        .iter()
        .filter(|other| other["served"] == true && other["deprecated"] != true)
        .filter_map(|other| other["name"].as_str())
        .max_by_key(|name| version_rank(name));
    match better {
        Some(better) => format!("{group}/{version} {kind} is deprecated; use {group}/{better} {kind}"),
        None => format!("{group}/{version} {kind} is deprecated"),
    }
}

fn columns(version: &Value) -> Vec<CustomColumn> {
    let own = list(&version["additionalPrinterColumns"]);
    let age = [json!({
        "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": "How long ago the object was created.",
    })];
    let all = if own.is_empty() { &age[..] } else { own };
    let text = |column: &Value, field: &str| column[field].as_str().unwrap_or_default().to_owned();
    all.iter()
        .filter_map(|column| {
            Some(CustomColumn {
                name: text(column, "name"),
                type_: text(column, "type"),
                format: text(column, "format"),
                description: text(column, "description"),
                priority: column["priority"].as_i64().unwrap_or(0),
                path: Path::parse(column["jsonPath"].as_str()?).ok()?,
            })
        })
        .collect()
}

/// A user's schema speaks of its own fields; ownership and pruning also need those every object has.
fn with_type_and_metadata(own: &Schema) -> Arc<Schema> {
    let mut schema = own.clone();
    let string = Arc::new(Schema { kind: Some(JsonKind::String), ..Schema::default() });
    schema.properties.insert("apiVersion".into(), string.clone());
    schema.properties.insert("kind".into(), string);
    if let Some(metadata) = baton_kinds::definition(OBJECT_META) {
        schema.properties.insert("metadata".into(), metadata);
    }
    if schema.preserve_unknown && schema.additional == Additional::Closed {
        schema.additional = Additional::Any;
    }
    Arc::new(schema)
}

/// The OpenAPI definition every object's metadata has.
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
