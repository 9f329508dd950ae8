//! The CustomResourceDefinitions of the three kinds, made from the types.
//!
//! They are a superset of Argo CD's: every object those accept is accepted here. Bounds and enumerations stand only on
//! structures that Argo CD does not have.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::application::ApplicationSpec;
use crate::application_set::{ApplicationSetSpec, ApplicationSetStatus};
use crate::application_status::ApplicationStatus;
use crate::names::{GROUP, VERSION};
use crate::operation::Operation;
use crate::project::{AppProjectSpec, AppProjectStatus};
use crate::structural::{structural, without_descriptions};

/// All three CustomResourceDefinitions (`apiextensions.k8s.io/v1`), always the same values in the same order.
pub fn crds() -> Vec<Value> {
    vec![application(), application_set(), app_project()]
}

/// The definition of Application.
///
/// It has no status subresource, as in Argo CD: `operation` and `status` are written together.
pub fn application() -> Value {
    let columns = json!([
        { "name": "Sync Status", "type": "string", "jsonPath": ".status.sync.status" },
        { "name": "Health Status", "type": "string", "jsonPath": ".status.health.status" },
        { "name": "Revision", "type": "string", "jsonPath": ".status.sync.revision", "priority": 10 },
        { "name": "Project", "type": "string", "jsonPath": ".spec.project", "priority": 10 },
    ]);
    let schema = object_schema(
        "Manifests from a source, kept in sync with a destination.",
        &[
            ("spec", schema_of::<ApplicationSpec>()),
            ("status", schema_of::<ApplicationStatus>()),
            ("operation", schema_of::<Operation>()),
        ],
    );
    let mut definition = definition("Application", "applications", &["app", "apps"], schema);
    let version = &mut definition["spec"]["versions"][0];
    version["additionalPrinterColumns"] = columns;
    version["subresources"] = json!({});
    definition
}

/// The definition of ApplicationSet.
pub fn application_set() -> Value {
    let mut spec = schema_of::<ApplicationSetSpec>();
    describe_templates_once(&mut spec);
    let schema = object_schema(
        "Applications made from a template, one for each set of generated parameters.",
        &[("spec", spec), ("status", schema_of::<ApplicationSetStatus>())],
    );
    let mut definition = definition("ApplicationSet", "applicationsets", &["appset", "appsets"], schema);
    definition["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
    definition
}

/// The definition of AppProject.
pub fn app_project() -> Value {
    let schema = object_schema(
        "What a group of Applications may use, and who may touch them.",
        &[("spec", schema_of::<AppProjectSpec>()), ("status", schema_of::<AppProjectStatus>())],
    );
    definition("AppProject", "appprojects", &["appproj", "appprojs"], schema)
}

fn definition(kind: &str, plural: &str, short_names: &[&str], schema: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{GROUP}") },
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind,
                "listKind": format!("{kind}List"),
                "plural": plural,
                "singular": kind.to_lowercase(),
                "shortNames": short_names,
            },
            "scope": "Namespaced",
            "versions": [{
                "name": VERSION,
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

fn object_schema(description: &str, parts: &[(&str, Value)]) -> Value {
    let mut schema = json!({
        "type": "object",
        "description": description,
        "required": ["metadata", "spec"],
        "properties": {
            "apiVersion": { "type": "string", "description": "API group and version of this object." },
            "kind": { "type": "string", "description": "Kind of this object." },
            "metadata": { "type": "object" },
        },
    });
    for (name, part) in parts {
        schema["properties"][*name] = part.clone();
    }
    schema
}

/// Fields are required where they are always written.
fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    structural(settings.into_generator().into_root_schema_for::<T>().to_value())
}

/// The template stands in the schema two dozen times; its descriptions are kept at `spec.template` only, and those of
/// generators at the top level only. A CRD has to fit into one stored object.
fn describe_templates_once(spec: &mut Value) {
    let generators =
        spec.pointer_mut("/properties/generators/items/properties").and_then(Value::as_object_mut);
    for generator in generators.into_iter().flat_map(|fields| fields.values_mut()) {
        for bulky in ["template", "generators"] {
            if let Some(copy) = generator.pointer_mut(&format!("/properties/{bulky}")) {
                let description = copy.get("description").cloned();
                without_descriptions(copy);
                copy["description"] = description.unwrap_or_default();
            }
        }
    }
}

// === schemas of single fields ===

/// Any JSON value.
pub(crate) fn any_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

/// A list of any JSON values.
pub(crate) fn list_of_any(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "x-kubernetes-preserve-unknown-fields": true } })
}

/// A map of any JSON values.
pub(crate) fn map_of_any(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": { "x-kubernetes-preserve-unknown-fields": true } })
}

/// An object with any fields.
pub(crate) fn free_form_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// A Go duration above or equal to zero.
pub(crate) fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 64,
        "pattern": r"^(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$",
    })
}

/// A Kubernetes label selector.
pub(crate) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "type": "object",
                "description": "Labels and the values they must have.",
                "additionalProperties": { "type": "string" },
            },
            "matchExpressions": {
                "type": "array",
                "description": "Conditions on labels; all must hold.",
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": { "type": "string", "description": "The label." },
                        "operator": {
                            "type": "string",
                            "description": "In, NotIn, Exists or DoesNotExist.",
                        },
                        "values": {
                            "type": "array",
                            "description": "The values, for In and NotIn.",
                            "x-kubernetes-list-type": "atomic",
                            "items": { "type": "string" },
                        },
                    },
                },
            },
        },
    })
}
