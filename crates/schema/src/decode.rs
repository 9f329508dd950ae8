//! Wrong JSON types in built-in kinds: there they are errors of decoding, not of validation.

use serde_json::Value;

use crate::formats;
use crate::model::{Additional, Kind, MAX_DEPTH, Schema};
use crate::path::Path;

/// The text a server answers with when a value has a JSON type its field cannot hold; `None` when all fit.
///
/// Only the first is reported, as a decoder stops there. `null` fits everywhere: it leaves the field unset.
pub fn type_errors(schema: &Schema, object: &Value) -> Option<String> {
    type_errors_as(object.get("kind").and_then(Value::as_str).unwrap_or("Object"), schema, object)
}

/// [`type_errors`] for a value decoded on its own into the Go type `kind`.
pub(crate) fn type_errors_as(kind: &str, schema: &Schema, value: &Value) -> Option<String> {
    Decode { kind }.value(schema, value, &Path::Root, None, 0)
}

struct Decode<'o> {
    kind: &'o str,
}

impl Decode<'_> {
    /// `place` is the field being filled, as Go names it; the top of an object has none.
    fn value(
        &self,
        schema: &Schema,
        value: &Value,
        path: &Path<'_>,
        place: Option<&str>,
        depth: usize,
    ) -> Option<String> {
        if depth > MAX_DEPTH || value.is_null() {
            return None;
        }
        if !fits(schema, value) {
            let expected = self.go_type(schema, path);
            let place = place.map_or("Go value".to_owned(), |place| format!("Go struct field {place}"));
            return Some(format!(
                "json: cannot unmarshal {} into {place} of type {expected}",
                found(schema, value)
            ));
        }
        match value {
            Value::String(text) => malformed(schema.limits.format.as_deref()?, text),
            Value::Object(fields) => {
                let owner = self.struct_name(path);
                fields.iter().find_map(|(name, value)| {
                    match (schema.properties.get(name), &schema.additional) {
                        (Some(property), _) => {
                            let below = path.field(name);
                            let place = format!("{owner}.{}", below.dotted());
                            self.value(property, value, &below, Some(&place), depth + 1)
                        }
                        (None, Additional::Typed(values)) => {
                            self.value(values, value, path, place, depth + 1)
                        }
                        (None, Additional::Any | Additional::Closed) => None,
                    }
                })
            }
            Value::Array(items) => {
                let below = schema.items.as_deref()?;
                items.iter().find_map(|item| self.value(below, item, path, place, depth + 1))
            }
            _ => None,
        }
    }

    /// Schemas do not keep the names of Go structs; they follow the fields closely enough to tell the reader where.
    fn struct_name(&self, path: &Path<'_>) -> String {
        let (parent, name) = match path {
            Path::Root => return self.kind.to_owned(),
            Path::Field(parent, name) | Path::Key(parent, name) => (parent, *name),
            Path::Index(parent, _) => return self.struct_name(parent),
        };
        let in_template = matches!(parent, Path::Field(_, "template"));
        match name {
            "metadata" => "ObjectMeta".to_owned(),
            "template" => "PodTemplateSpec".to_owned(),
            "spec" if in_template => "PodSpec".to_owned(),
            "spec" if matches!(parent, Path::Root) => format!("{}Spec", self.kind),
            "status" if matches!(parent, Path::Root) => format!("{}Status", self.kind),
            "selector" => "LabelSelector".to_owned(),
            "env" => "EnvVar".to_owned(),
            "ports" if matches!(parent, Path::Field(_, "containers" | "initContainers")) => {
                "ContainerPort".to_owned()
            }
            "ports" => format!("{}Port", self.kind),
            name => {
                let singular = name.strip_suffix('s').unwrap_or(name);
                let mut letters = singular.chars();
                let first = letters.next().map(|first| first.to_ascii_uppercase());
                first.into_iter().chain(letters).collect()
            }
        }
    }

    /// The Go type of the field at `path`.
    fn go_type(&self, schema: &Schema, path: &Path<'_>) -> String {
        if is_int_or_string(schema) {
            return "int32".to_owned();
        }
        let Some(kind) = schema.kind else { return "interface {}".to_owned() };
        match (kind, schema.limits.format.as_deref()) {
            (Kind::Integer, Some(format)) => format.to_owned(),
            (Kind::Integer, None) => "int64".to_owned(),
            (Kind::Number, _) => "float64".to_owned(),
            (Kind::Boolean, _) => "bool".to_owned(),
            (Kind::String, Some("byte")) => "[]uint8".to_owned(),
            (Kind::String, _) => "string".to_owned(),
            (Kind::Array, _) => {
                let items = schema.items.as_deref().map(|items| self.go_type(items, path));
                format!("[]{}", items.as_deref().unwrap_or("interface {}"))
            }
            (Kind::Object, _) => match &schema.additional {
                Additional::Typed(values) => format!("map[string]{}", self.go_type(values, path)),
                Additional::Any | Additional::Closed => format!("v1.{}", self.struct_name(path)),
            },
        }
    }
}

fn found(schema: &Schema, value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        // A number in a number's place is the wrong kind of number, so it is named.
        Value::Number(number) if schema.kind == Some(Kind::Integer) => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    }
}

/// Strings that Go parses while it decodes.
fn malformed(format: &str, text: &str) -> Option<String> {
    match format {
        "date-time" if !formats::date_time(text) => {
            let shown = Value::from(text);
            Some(format!(
                "parsing time {shown} as \"2006-01-02T15:04:05Z07:00\": cannot parse {shown} as \"2006\""
            ))
        }
        "byte" => illegal_base64(text).map(|at| format!("illegal base64 data at input byte {at}")),
        _ => None,
    }
}

/// Where Go's decoder stops: at the first character that does not belong, or at the start of an incomplete group.
fn illegal_base64(text: &str) -> Option<usize> {
    let data: Vec<(usize, u8)> =
        text.bytes().enumerate().filter(|(_, byte)| !b"\r\n".contains(byte)).collect();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    let end = data.iter().position(|(_, byte)| !plain(*byte)).unwrap_or(data.len());
    let padding = &data[end..];
    let needed = (4 - end % 4) % 4;
    if padding.iter().any(|(_, byte)| *byte != b'=') || padding.len() > needed {
        return padding.iter().find(|(_, byte)| *byte != b'=').or(padding.get(needed)).map(|(at, _)| *at);
    }
    match (needed, padding.len()) {
        (0, _) => None,
        (_, 0) => Some(end - end % 4),
        // One character alone holds less than a byte.
        (3, _) => Some(padding[0].0),
        (needed, present) => (present < needed).then_some(text.len()),
    }
}

fn fits(schema: &Schema, value: &Value) -> bool {
    if is_int_or_string(schema) {
        // Quantities are read through the same node, and may be any number.
        return value.is_string() || value.is_number();
    }
    match schema.kind {
        None => true,
        Some(Kind::Object) => value.is_object(),
        Some(Kind::Array) => value.is_array(),
        Some(Kind::String) => value.is_string(),
        Some(Kind::Boolean) => value.is_boolean(),
        Some(Kind::Number) => value.is_number(),
        Some(Kind::Integer) => match schema.limits.format.as_deref() {
            Some("int32") => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
            _ => value.is_i64(),
        },
    }
}

fn is_int_or_string(schema: &Schema) -> bool {
    schema.int_or_string || schema.limits.format.as_deref() == Some("int-or-string")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::model::Reader;

    fn deployment() -> Arc<Schema> {
        let document = json!({
            "type": "object",
            "properties": {
                "kind": {"type": "string"},
                "metadata": {"type": "object", "properties": {
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "finalizers": {"type": "array", "items": {"type": "string"}}
                }},
                "spec": {"type": "object", "properties": {
                    "replicas": {"type": "integer", "format": "int32"},
                    "paused": {"type": "boolean"},
                    "template": {"type": "object", "properties": {
                        "spec": {"type": "object", "properties": {
                            "containers": {"type": "array", "items": {"type": "object", "properties": {
                                "name": {"type": "string"},
                                "ports": {"type": "array", "items": {"type": "object", "properties": {
                                    "containerPort": {"type": "integer", "format": "int32"},
                                    "name": {"x-kubernetes-int-or-string": true}
                                }}}
                            }}}
                        }}
                    }}
                }}
            }
        });
        Reader::standalone().read(&document).expect("the schema is readable")
    }

    #[test]
    fn wrong_types_are_described_as_go_describes_them() {
        let schema = deployment();
        let containers = |value: Value| json!({"spec": {"template": {"spec": {"containers": value}}}});
        for (mut object, expected) in [
            (
                json!({"spec": {"replicas": "three"}}),
                "string into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                json!({"spec": {"replicas": 1.5}}),
                "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                json!({"spec": {"replicas": 3_000_000_000_u64}}),
                "number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                json!({"spec": {"replicas": {}}}),
                "object into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                json!({"spec": {"paused": "x"}}),
                "string into Go struct field DeploymentSpec.spec.paused of type bool",
            ),
            (
                json!({"spec": {"template": []}}),
                "array into Go struct field DeploymentSpec.spec.template of type v1.PodTemplateSpec",
            ),
            (
                json!({"metadata": {"labels": {"a": 5}}}),
                "number into Go struct field ObjectMeta.metadata.labels of type string",
            ),
            (
                json!({"metadata": {"labels": []}}),
                "array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
            ),
            (
                json!({"metadata": {"finalizers": "x"}}),
                "string into Go struct field ObjectMeta.metadata.finalizers of type []string",
            ),
            (
                containers(json!([{"name": 5}])),
                "number into Go struct field Container.spec.template.spec.containers.name of type string",
            ),
            (
                containers(json!({})),
                "object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
            ),
            (
                containers(json!([{"ports": [{"containerPort": "x"}]}])),
                "string into Go struct field ContainerPort.spec.template.spec.containers.ports.containerPort of type int32",
            ),
            (
                containers(json!([{"ports": [{"name": true}]}])),
                "bool into Go struct field ContainerPort.spec.template.spec.containers.ports.name of type int32",
            ),
        ] {
            object["kind"] = "Deployment".into();
            let expected = format!("json: cannot unmarshal {expected}");
            assert_eq!(type_errors(&schema, &object), Some(expected), "{object}");
        }
    }

    #[test]
    fn times_and_base64_are_parsed() {
        let document = json!({"type": "object", "properties": {
            "time": {"type": "string", "format": "date-time"}, "data": {"type": "string", "format": "byte"}
        }});
        let schema = Reader::standalone().read(&document).expect("the schema is readable");
        let time = r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#;
        assert_eq!(type_errors(&schema, &json!({"time": "x"})).as_deref(), Some(time));
        for (data, at) in [
            ("", None),
            ("YWJj", None),
            ("YQ==", None),
            ("YWI=", None),
            ("YW\nJj", None),
            ("!", Some(0)),
            ("YW!j", Some(2)),
            ("YQ", Some(0)),
            ("YWJjZ", Some(4)),
            ("YQ==YQ==", Some(4)),
            ("Y===", Some(1)),
            ("YQ=", Some(3)),
            ("YQ===", Some(4)),
        ] {
            let expected = at.map(|at| format!("illegal base64 data at input byte {at}"));
            assert_eq!(type_errors(&schema, &json!({"data": data})), expected, "{data:?}");
        }
    }

    #[test]
    fn null_and_fitting_values_pass() {
        let schema = deployment();
        for object in [
            json!({}),
            json!({"spec": null}),
            json!({"spec": {"replicas": null, "paused": true, "unknown": 5}}),
            json!({"spec": {"template": {"spec": {"containers": [{"ports": [{"name": 5}, {"name": "x"}]}]}}}}),
        ] {
            assert_eq!(type_errors(&schema, &object), None, "{object}");
        }
        assert_eq!(
            type_errors(&schema, &json!([])).as_deref(),
            Some("json: cannot unmarshal array into Go value of type v1.Object")
        );
    }
}
