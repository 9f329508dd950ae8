//! Fingerprints of JSON values and parameters.
//!
//! A fingerprint stands in for content that users choose, so it is cut from SHA-256: two contents with one
//! fingerprint cannot be made on purpose.

use baton_template::Value as Param;
use ring::digest::{Context, SHA256};
use serde_json::Value;

/// The fingerprint of some content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 16]);

/// Collects content. Each part is written with its kind and length, so that no two contents look alike.
pub struct Hasher {
    context: Context,
    /// Small parts are gathered, as a call of SHA-256 costs more than a copy.
    buffer: Vec<u8>,
}

impl Digest {
    /// Of a JSON value.
    pub fn of(value: &Value) -> Digest {
        let mut hasher = Hasher::new();
        hasher.json(value);
        hasher.finish()
    }

    /// Of one set of parameters.
    pub fn of_params(params: &baton_template::Map) -> Digest {
        let mut hasher = Hasher::new();
        hasher.param(&Param::Map(params.clone()));
        hasher.finish()
    }
}

impl Default for Hasher {
    fn default() -> Self {
        Hasher::new()
    }
}

impl Hasher {
    /// Of nothing yet.
    pub fn new() -> Hasher {
        Hasher { context: Context::new(&SHA256), buffer: Vec::with_capacity(1024) }
    }

    /// Adds a JSON value.
    pub fn json(&mut self, value: &Value) {
        match value {
            Value::Null => self.tag(b'n', 0),
            Value::Bool(value) => self.tag(b'b', usize::from(*value)),
            Value::Number(number) => self.text(b'#', &number.to_string()),
            Value::String(text) => self.text(b's', text),
            Value::Array(items) => {
                self.tag(b'[', items.len());
                items.iter().for_each(|item| self.json(item));
            }
            Value::Object(fields) => {
                self.tag(b'{', fields.len());
                for (name, value) in fields {
                    self.text(b'k', name);
                    self.json(value);
                }
            }
        }
    }

    /// Adds a parameter. Go's types count, as templates print them differently.
    pub fn param(&mut self, value: &Param) {
        match value {
            Param::Nil => self.tag(b'n', 0),
            Param::Bool(value) => self.tag(b'b', usize::from(*value)),
            Param::Int(value) => self.bytes(b'i', &value.to_le_bytes()),
            Param::Float(value) => self.bytes(b'f', &value.to_bits().to_le_bytes()),
            Param::Str(text) => self.text(b's', text),
            Param::List(list) => {
                self.text(b'[', value.type_name());
                self.tag(b'[', list.items().len());
                list.items().iter().for_each(|item| self.param(item));
            }
            Param::Map(map) => {
                self.text(b'{', value.type_name());
                let entries = map.snapshot();
                self.tag(b'{', entries.len());
                for (key, value) in &entries {
                    self.text(b'k', key);
                    self.param(value);
                }
            }
            // A kind of value added later: told apart by how it prints.
            #[allow(unreachable_patterns)]
            other => {
                self.text(b'?', other.type_name());
                self.text(b'?', &other.to_string());
            }
        }
    }

    /// Adds a text.
    pub fn str(&mut self, text: &str) {
        self.text(b's', text);
    }

    /// Adds a number.
    pub fn number(&mut self, number: u64) {
        self.bytes(b'u', &number.to_le_bytes());
    }

    /// Adds another fingerprint.
    pub fn digest(&mut self, digest: Digest) {
        self.bytes(b'd', &digest.0);
    }

    /// The fingerprint of all that was added.
    pub fn finish(mut self) -> Digest {
        self.context.update(&self.buffer);
        let full = self.context.finish();
        let mut digest = [0; 16];
        digest.copy_from_slice(&full.as_ref()[..16]);
        Digest(digest)
    }

    fn tag(&mut self, kind: u8, count: usize) {
        self.bytes(kind, &(count as u64).to_le_bytes());
    }

    fn text(&mut self, kind: u8, text: &str) {
        self.tag(kind, text.len());
        self.push(text.as_bytes());
    }

    fn bytes(&mut self, kind: u8, bytes: &[u8]) {
        self.push(&[kind]);
        self.push(bytes);
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() > 8192 {
            self.context.update(&self.buffer);
            self.buffer.clear();
        }
        match bytes.len() {
            0..=8192 => self.buffer.extend_from_slice(bytes),
            _ => self.context.update(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn different_contents_have_different_digests() {
        let contents = [
            json!(null),
            json!(false),
            json!(""),
            json!([]),
            json!({}),
            json!(["a", "b"]),
            json!(["ab"]),
            json!([["a"], "b"]),
            json!({"a": "b"}),
            json!({"a": {"b": ""}}),
            json!("x".repeat(9000)),
            json!("x".repeat(9001)),
        ];
        let digests: std::collections::BTreeSet<Digest> = contents.iter().map(Digest::of).collect();
        assert_eq!(digests.len(), contents.len());
        assert_eq!(Digest::of(&json!({"a": 1, "b": 2})), Digest::of(&json!({"b": 2, "a": 1})));
    }
}
