//! Fields a schema does not know: finding them for strict validation, dropping them before storage.

use serde_json::{Map, Value};

use crate::model::{Additional, MAX_DEPTH, Schema};
use crate::path::Path;
use crate::resource::object_meta;

/// Removes what the schema does not know and returns where it stood, sorted, such as `spec.foo.bar[0].x`.
///
/// `apiVersion` and `kind` of the object itself and of embedded resources always stay, and their `metadata` is that of
/// every object, whatever the schema says of it.
pub fn prune(schema: &Schema, object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    Walk { unknown: &mut unknown }.known(Some(schema), object, true, &Path::Root, 0);
    unknown.sort();
    unknown
}

/// [`prune`] for a value inside an object rather than a whole one.
pub(crate) fn prune_below(schema: &Schema, value: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    Walk { unknown: &mut unknown }.known(Some(schema), value, false, &Path::Root, 0);
    unknown
}

/// What [`prune`] would remove.
pub fn unknown_fields(schema: &Schema, object: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    look(Some(schema), object, true, &Path::Root, 0, &mut unknown);
    unknown.sort();
    unknown
}

/// What to do with one field of an object.
enum Fate<'s> {
    Keep,
    Unknown,
    Below(Option<&'s Schema>),
}

/// Fields of an object that is a resource of its own.
fn is_type_or_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

fn fate<'s>(schema: Option<&'s Schema>, name: &str, whole_resource: bool) -> Fate<'s> {
    let Some(schema) = schema else { return Fate::Unknown };
    if (whole_resource || schema.embedded_resource) && is_type_or_meta(name) {
        // A CRD may restrict metadata.name and say nothing else of metadata, which is an ObjectMeta all the same.
        return if name == "metadata" { Fate::Below(Some(object_meta())) } else { Fate::Keep };
    }
    if let Some(property) = schema.properties.get(name) {
        return Fate::Below(Some(property));
    }
    match &schema.additional {
        Additional::Typed(values) => Fate::Below(Some(values)),
        Additional::Any => Fate::Keep,
        Additional::Closed if schema.preserve_unknown => Fate::Keep,
        Additional::Closed => Fate::Unknown,
    }
}

/// Lists under `x-kubernetes-preserve-unknown-fields` hand the permission on to their elements.
fn item_schema(schema: Option<&Schema>) -> (Option<&Schema>, bool) {
    match schema {
        None => (None, false),
        Some(schema) => (schema.items.as_deref(), schema.preserve_unknown),
    }
}

struct Walk<'u> {
    unknown: &'u mut Vec<String>,
}

impl Walk<'_> {
    fn known(
        &mut self,
        schema: Option<&Schema>,
        value: &mut Value,
        root: bool,
        path: &Path<'_>,
        depth: usize,
    ) {
        if depth > MAX_DEPTH {
            return;
        }
        match value {
            Value::Object(fields) => self.object(schema, fields, root, path, depth),
            Value::Array(items) => {
                let (schema, preserve) = item_schema(schema);
                if schema.is_none() && preserve {
                    return;
                }
                for (at, item) in items.iter_mut().enumerate() {
                    self.known(schema, item, false, &path.index(at), depth + 1);
                }
            }
            _ => {}
        }
    }

    fn object(
        &mut self,
        schema: Option<&Schema>,
        fields: &mut Map<String, Value>,
        root: bool,
        path: &Path<'_>,
        depth: usize,
    ) {
        let open = |schema: &Schema| {
            schema.preserve_unknown
                && schema.properties.is_empty()
                && !matches!(schema.additional, Additional::Typed(_))
        };
        if schema.is_some_and(open) {
            return;
        }
        fields.retain(|name, value| match fate(schema, name, root) {
            Fate::Keep => true,
            Fate::Below(below) => {
                self.known(below, value, false, &path.field(name), depth + 1);
                true
            }
            Fate::Unknown => {
                self.unknown.push(path.field(name).dotted());
                false
            }
        });
    }
}

fn look(
    schema: Option<&Schema>,
    value: &Value,
    root: bool,
    path: &Path<'_>,
    depth: usize,
    unknown: &mut Vec<String>,
) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match fate(schema, name, root) {
                    Fate::Keep => {}
                    Fate::Below(below) => look(below, value, false, &path.field(name), depth + 1, unknown),
                    Fate::Unknown => unknown.push(path.field(name).dotted()),
                }
            }
        }
        Value::Array(items) => {
            let (schema, preserve) = item_schema(schema);
            if schema.is_none() && preserve {
                return;
            }
            for (at, item) in items.iter().enumerate() {
                look(schema, item, false, &path.index(at), depth + 1, unknown);
            }
        }
        _ => {}
    }
}
