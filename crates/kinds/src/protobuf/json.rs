//! From fields on the wire to the JSON a Go client would have sent.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::tables::{Content, Field as Entry, Message, Shape, Tables};
use super::wire::{Field, Fields, packed};
use super::{MAGIC, ProtobufError};

/// Deepest nesting of messages that is read.
pub const MAX_DEPTH: usize = 64;

/// Reads the envelope (after the magic bytes) and the object in it.
pub(super) fn object(envelope: &[u8], depth: usize) -> Result<Value, ProtobufError> {
    let mut api_version = String::new();
    let mut kind = String::new();
    let mut raw: &[u8] = &[];
    for field in Fields::of(envelope) {
        match field? {
            (1, Field::Bytes(head)) => {
                for field in Fields::of(head) {
                    match field? {
                        (1, Field::Bytes(value)) => api_version = text(value, "apiVersion")?,
                        (2, Field::Bytes(value)) => kind = text(value, "kind")?,
                        _ => {}
                    }
                }
            }
            (2, Field::Bytes(value)) => raw = value,
            (3, Field::Bytes(encoding)) if !encoding.is_empty() => {
                return Err(ProtobufError::Malformed("content encoding"));
            }
            _ => {}
        }
    }
    let Some(message) = message_of(&api_version, &kind) else {
        return Err(ProtobufError::UnknownKind { api_version, kind });
    };
    let mut object = Map::new();
    object.insert("apiVersion".into(), api_version.into());
    object.insert("kind".into(), kind.into());
    read_into(&mut object, message, raw, depth)?;
    Ok(Value::Object(object))
}

/// The message of a kind. `DeleteOptions` may come in the name of any group.
pub(super) fn message_of(api_version: &str, kind: &str) -> Option<&'static Message> {
    let tables = Tables::get();
    if kind == "DeleteOptions" {
        return tables.find("meta.v1.DeleteOptions");
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
    let group = group.split('.').next()?;
    tables.find(&format!("{group}.{version}.{kind}"))
}

fn read_into(
    object: &mut Map<String, Value>,
    message: &Message,
    bytes: &[u8],
    depth: usize,
) -> Result<(), ProtobufError> {
    if depth > MAX_DEPTH {
        return Err(ProtobufError::TooDeep);
    }
    for field in Fields::of(bytes) {
        let (number, field) = field?;
        // A newer client may know fields that we do not.
        let Some(entry) = message.field(number) else { continue };
        match entry.name {
            Some(name) => read_field(object, name, entry, field, depth)?,
            None => {
                if let (Content::Message(place), Field::Bytes(inner)) = (entry.content, field) {
                    read_into(object, Tables::get().message(place), inner, depth + 1)?;
                }
            }
        }
    }
    Ok(())
}

fn read_field(
    object: &mut Map<String, Value>,
    name: &'static str,
    entry: &Entry,
    field: Field<'_>,
    depth: usize,
) -> Result<(), ProtobufError> {
    match entry.shape {
        Shape::One => read_one(object, name, entry, field, depth),
        Shape::List => {
            let list = object.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            let Some(list) = list.as_array_mut() else { return Ok(()) };
            if let (Content::Integer, Field::Bytes(bytes)) = (entry.content, field) {
                list.extend(packed(bytes)?.into_iter().map(|value| Value::from(value.cast_signed())));
            } else {
                list.extend(read_value(entry.content, name, field, depth)?);
            }
            Ok(())
        }
        Shape::Map | Shape::MapOfLists => {
            let Field::Bytes(bytes) = field else { return Err(ProtobufError::Malformed("wire type")) };
            let (key, value) = map_entry(bytes, name, entry, depth)?;
            let map = object.entry(name).or_insert_with(|| Value::Object(Map::new()));
            if let Some(map) = map.as_object_mut() {
                map.insert(key, value);
            }
            Ok(())
        }
    }
}

fn read_one(
    object: &mut Map<String, Value>,
    name: &'static str,
    entry: &Entry,
    field: Field<'_>,
    depth: usize,
) -> Result<(), ProtobufError> {
    if let (Content::Message(place), Field::Bytes(bytes)) = (entry.content, field) {
        // A message that comes in parts is one message.
        let value = object.entry(name).or_insert_with(|| Value::Object(Map::new()));
        return match value.as_object_mut() {
            Some(inner) => read_into(inner, Tables::get().message(place), bytes, depth + 1),
            None => Ok(()),
        };
    }
    match read_value(entry.content, name, field, depth)? {
        Some(value) if !(entry.omit_zero && is_zero(&value)) => drop(object.insert(name.into(), value)),
        _ => drop(object.remove(name)),
    }
    Ok(())
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(flag) => !flag,
        _ => false,
    }
}

fn map_entry(
    bytes: &[u8],
    name: &'static str,
    entry: &Entry,
    depth: usize,
) -> Result<(String, Value), ProtobufError> {
    let mut key = String::new();
    let mut value = None;
    for field in Fields::of(bytes) {
        match field? {
            (1, Field::Bytes(text_bytes)) => key = text(text_bytes, name)?,
            (2, Field::Bytes(list)) if entry.shape == Shape::MapOfLists => {
                let mut items = Vec::new();
                for item in Fields::of(list) {
                    if let (1, item) = item? {
                        items.extend(read_value(entry.content, name, item, depth + 1)?);
                    }
                }
                value = Some(Value::Array(items));
            }
            (2, field) => value = read_value(entry.content, name, field, depth + 1)?,
            _ => {}
        }
    }
    let absent = || match entry.content {
        _ if entry.shape == Shape::MapOfLists => Value::Array(Vec::new()),
        Content::Text | Content::Bytes => Value::from(""),
        Content::Quantity => Value::from("0"),
        Content::Message(_) => Value::Object(Map::new()),
        _ => Value::Null,
    };
    Ok((key, value.unwrap_or_else(absent)))
}

/// One value; `None` where the wire form stands for an absent one.
fn read_value(
    content: Content,
    name: &'static str,
    field: Field<'_>,
    depth: usize,
) -> Result<Option<Value>, ProtobufError> {
    let value = match (content, field) {
        (Content::Integer, Field::Varint(value)) => Value::from(value.cast_signed()),
        (Content::Flag, Field::Varint(value)) => Value::from(value != 0),
        (Content::Float, Field::Fixed64(bits)) => Value::from(f64::from_bits(bits)),
        (Content::Text, Field::Bytes(bytes)) => Value::from(text(bytes, name)?),
        (Content::Bytes, Field::Bytes(bytes)) => Value::from(STANDARD.encode(bytes)),
        (Content::Time, Field::Bytes(bytes)) => return time(bytes, "%Y-%m-%dT%H:%M:%SZ", name),
        (Content::MicroTime, Field::Bytes(bytes)) => return time(bytes, "%Y-%m-%dT%H:%M:%S.%6fZ", name),
        (Content::Quantity, Field::Bytes(bytes)) => Value::from(quantity(bytes, name)?),
        (Content::IntOrString, Field::Bytes(bytes)) => int_or_string(bytes, name)?,
        (Content::Raw, Field::Bytes(bytes)) => return raw(bytes, name, depth + 1),
        (Content::Message(place), Field::Bytes(bytes)) => {
            let mut inner = Map::new();
            read_into(&mut inner, Tables::get().message(place), bytes, depth + 1)?;
            Value::Object(inner)
        }
        (Content::SchemaOrArray | Content::SchemaOrFlag | Content::SchemaOrNames, Field::Bytes(bytes)) => {
            return schema_or(content, bytes, name, depth + 1);
        }
        _ => return Err(ProtobufError::Malformed("wire type")),
    };
    Ok(Some(value))
}

fn text(bytes: &[u8], name: &'static str) -> Result<String, ProtobufError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| ProtobufError::InvalidValue(name))
}

/// Seconds and nanoseconds. No bytes at all is the time that was never set.
fn time(bytes: &[u8], format: &str, name: &'static str) -> Result<Option<Value>, ProtobufError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (mut seconds, mut nanos) = (0i64, 0i64);
    for field in Fields::of(bytes) {
        match field? {
            (1, Field::Varint(value)) => seconds = value.cast_signed(),
            (2, Field::Varint(value)) => nanos = value.cast_signed(),
            _ => {}
        }
    }
    let invalid = || ProtobufError::InvalidValue(name);
    let nanos = i32::try_from(nanos).map_err(|_| invalid())?;
    let moment = Timestamp::new(seconds, nanos).map_err(|_| invalid())?;
    Ok(Some(moment.strftime(format).to_string().into()))
}

fn quantity(bytes: &[u8], name: &'static str) -> Result<String, ProtobufError> {
    for field in Fields::of(bytes) {
        if let (1, Field::Bytes(value)) = field? {
            return text(value, name);
        }
    }
    Ok("0".to_owned())
}

fn int_or_string(bytes: &[u8], name: &'static str) -> Result<Value, ProtobufError> {
    const STRING: u64 = 1;
    let (mut kind, mut number, mut string) = (0, 0i64, String::new());
    for field in Fields::of(bytes) {
        match field? {
            (1, Field::Varint(value)) => kind = value,
            (2, Field::Varint(value)) => number = value.cast_signed(),
            (3, Field::Bytes(value)) => string = text(value, name)?,
            _ => {}
        }
    }
    Ok(if kind == STRING { string.into() } else { number.into() })
}

/// JSON held as bytes, or an object in its own envelope.
fn raw(bytes: &[u8], name: &'static str, depth: usize) -> Result<Option<Value>, ProtobufError> {
    if depth > MAX_DEPTH {
        return Err(ProtobufError::TooDeep);
    }
    for field in Fields::of(bytes) {
        if let (1, Field::Bytes(value)) = field? {
            if let Some(envelope) = value.strip_prefix(MAGIC) {
                return object(envelope, depth + 1).map(Some);
            }
            if value.is_empty() {
                return Ok(None);
            }
            return serde_json::from_slice(value).map(Some).map_err(|_| ProtobufError::InvalidValue(name));
        }
    }
    Ok(None)
}

/// A JSON schema, or what may stand in its place.
fn schema_or(
    content: Content,
    bytes: &[u8],
    name: &'static str,
    depth: usize,
) -> Result<Option<Value>, ProtobufError> {
    if depth > MAX_DEPTH {
        return Err(ProtobufError::TooDeep);
    }
    let tables = Tables::get();
    let schema = |bytes: &[u8]| -> Result<Value, ProtobufError> {
        let mut inner = Map::new();
        if let Some(message) = tables.find("apiextensions.v1.JSONSchemaProps") {
            read_into(&mut inner, message, bytes, depth + 1)?;
        }
        Ok(Value::Object(inner))
    };
    let mut value = None;
    let mut list = Vec::new();
    for field in Fields::of(bytes) {
        match (content, field?) {
            (Content::SchemaOrFlag, (1, Field::Varint(flag))) => {
                value = value.or(Some(Value::from(flag != 0)));
            }
            (Content::SchemaOrFlag, (2, Field::Bytes(inner)))
            | (Content::SchemaOrArray | Content::SchemaOrNames, (1, Field::Bytes(inner))) => {
                value = Some(schema(inner)?);
            }
            (Content::SchemaOrArray, (2, Field::Bytes(inner))) => list.push(schema(inner)?),
            (Content::SchemaOrNames, (2, Field::Bytes(inner))) => list.push(text(inner, name)?.into()),
            _ => {}
        }
    }
    Ok(if list.is_empty() { value } else { Some(Value::Array(list)) })
}
