//! Wrong JSON types in built-in kinds: there they are errors of decoding, not of validation.

use serde_json::Value;

use crate::model::{Additional, Kind, MAX_DEPTH, Schema};
use crate::path::Path;

/// The text a server answers with when a value has a JSON type its field cannot hold; `None` when all fit.
///
/// Only the first is reported, as a decoder stops there. `null` fits everywhere: it leaves the field unset.
pub fn type_errors(schema: &Schema, object: &Value) -> Option<String> {
    walk(schema, object, &Path::Root, None, 0)
}

fn walk(
    schema: &Schema,
    value: &Value,
    path: &Path<'_>,
    owner: Option<&str>,
    depth: usize,
) -> Option<String> {
    if depth > MAX_DEPTH || value.is_null() {
        return None;
    }
    if let Some(expected) = mismatch(schema, value) {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        // Go names the number, since a whole number may still be too large or not whole.
        let found = match (value, schema.kind) {
            (Value::Number(number), Some(Kind::Integer)) => format!("{found} {number}"),
            _ => found.to_owned(),
        };
        let place = match owner {
            Some(owner) => format!("Go struct field {owner}.{}", path.dotted()),
            None => "Go value".to_owned(),
        };
        return Some(format!("json: cannot unmarshal {found} into {place} of type {expected}"));
    }
    match value {
        Value::Object(fields) => {
            fields.iter().find_map(|(name, value)| match (schema.properties.get(name), &schema.additional) {
                (Some(property), _) => {
                    let owner = struct_name(path);
                    walk(property, value, &path.field(name), Some(&owner), depth + 1)
                }
                (None, Additional::Typed(values)) => walk(values, value, path, owner, depth + 1),
                (None, Additional::Any | Additional::Closed) => None,
            })
        }
        Value::Array(items) => {
            let below = schema.items.as_deref()?;
            items.iter().find_map(|item| walk(below, item, path, owner, depth + 1))
        }
        _ => None,
    }
}

/// The Go type the value does not fit into.
fn mismatch(schema: &Schema, value: &Value) -> Option<String> {
    let format = schema.limits.format.as_deref();
    if schema.int_or_string || format == Some("int-or-string") {
        let fits = value.is_string() || value.is_i64();
        return (!fits).then(|| "intstr.IntOrString".to_owned());
    }
    let kind = schema.kind?;
    let fits = match kind {
        Kind::Object => value.is_object(),
        Kind::Array => value.is_array(),
        // Quantities are strings in the schema but may be written as numbers.
        Kind::String => value.is_string() || (value.is_number() && !schema.any_of.is_empty()),
        Kind::Boolean => value.is_boolean(),
        Kind::Number => value.is_number(),
        Kind::Integer => match format {
            Some("int32") => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
            _ => value.is_i64(),
        },
    };
    (!fits).then(|| go_type(schema, kind, format))
}

fn go_type(schema: &Schema, kind: Kind, format: Option<&str>) -> String {
    match (kind, format) {
        (Kind::Integer, Some(format)) => format.to_owned(),
        (Kind::Integer, None) => "int64".to_owned(),
        (Kind::Number, _) => "float64".to_owned(),
        (Kind::Boolean, _) => "bool".to_owned(),
        (Kind::String, Some("date-time")) => "v1.Time".to_owned(),
        (Kind::String, Some("byte")) => "[]uint8".to_owned(),
        (Kind::String, _) => "string".to_owned(),
        (Kind::Array, _) => match schema.items.as_deref() {
            Some(items) => format!(
                "[]{}",
                items.kind.map_or("interface {}".into(), |kind| go_type(
                    items,
                    kind,
                    items.limits.format.as_deref()
                ))
            ),
            None => "[]interface {}".to_owned(),
        },
        (Kind::Object, _) => match &schema.additional {
            Additional::Typed(values) => format!(
                "map[string]{}",
                values.kind.map_or("interface {}".into(), |kind| go_type(
                    values,
                    kind,
                    values.limits.format.as_deref()
                ))
            ),
            _ => "struct".to_owned(),
        },
    }
}

/// Schemas do not keep the names of Go structs. The last step of the path, capitalised, is what a reader needs.
fn struct_name(path: &Path<'_>) -> String {
    let mut at = path;
    loop {
        match at {
            Path::Root => return "Object".to_owned(),
            Path::Field(_, name) => {
                let mut letters = name.chars();
                let first = letters.next().map(|first| first.to_ascii_uppercase());
                return first.into_iter().chain(letters).collect();
            }
            Path::Key(parent, _) | Path::Index(parent, _) => at = parent,
        }
    }
}
