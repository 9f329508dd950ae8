//! Reading the protobuf form of objects, which `kubectl create …` and client-go's typed clients send.
//!
//! A table (`protobuf/messages.txt`) names every message reachable from the served kinds; one generic reader turns bytes into
//! the JSON a Go client would have sent. Nothing is written in protobuf: clients accept JSON answers.

mod json;
mod tables;
mod wire;

use serde_json::Value;

pub use json::MAX_DEPTH;

/// What a Kubernetes protobuf body starts with.
const MAGIC: &[u8] = b"k8s\0";

/// Largest body that is read, in bytes: the API server's own limit on requests.
pub const MAX_SIZE: usize = 3 << 20;

/// Why bytes are no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// The first four bytes are not those of a Kubernetes protobuf message.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NotProtobuf,
    /// More than [`MAX_SIZE`] bytes.
    #[error("protobuf message is larger than {MAX_SIZE} bytes")]
    TooLarge,
    /// Nesting beyond [`MAX_DEPTH`].
    #[error("protobuf message is nested too deeply")]
    TooDeep,
    /// The bytes end within a field, or a field has an impossible form.
    #[error("protobuf message is malformed: {0}")]
    Malformed(&'static str),
    /// A kind that is not served here.
    #[error("no kind \"{kind}\" is registered for version \"{api_version}\"")]
    UnknownKind {
        /// The group and version of the envelope.
        api_version: String,
        /// The kind of the envelope.
        kind: String,
    },
    /// A text that is not UTF-8, or a time that does not exist.
    #[error("protobuf message has an invalid value in {0}")]
    InvalidValue(&'static str),
}

/// Reads an object, with `apiVersion` and `kind`, from its protobuf form.
///
/// # Errors
/// Where the bytes are no such message, too many, too deeply nested, or of a kind that is not served.
pub fn decode(bytes: &[u8]) -> Result<Value, ProtobufError> {
    if bytes.len() > MAX_SIZE {
        return Err(ProtobufError::TooLarge);
    }
    let envelope = bytes.strip_prefix(MAGIC).ok_or(ProtobufError::NotProtobuf)?;
    json::object(envelope, 0)
}

#[cfg(test)]
mod tests;
