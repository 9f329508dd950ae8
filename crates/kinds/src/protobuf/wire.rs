//! The protobuf wire format: numbered fields of four forms.

use super::ProtobufError;

/// One field as it stands on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Field<'a> {
    /// An integer or a flag.
    Varint(u64),
    /// A text, bytes, or a message.
    Bytes(&'a [u8]),
    /// A 64-bit number.
    Fixed64(u64),
    /// A 32-bit number.
    Fixed32(u32),
}

/// The fields of a message, in the order they were written.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Fields { rest: message }
    }

    fn field(&mut self) -> Result<(u32, Field<'a>), ProtobufError> {
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).map_err(|_| ProtobufError::Malformed("field number"))?;
        if number == 0 {
            return Err(ProtobufError::Malformed("field number"));
        }
        let field = match key & 7 {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length =
                    usize::try_from(self.varint()?).map_err(|_| ProtobufError::Malformed("length"))?;
                Field::Bytes(self.take(length)?)
            }
            5 => Field::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(ProtobufError::Malformed("wire type")),
        };
        Ok((number, field))
    }

    fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ProtobufError::Malformed("varint"))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(ProtobufError::Malformed("length"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtobufError> {
        let (taken, rest) =
            self.rest.split_first_chunk().ok_or(ProtobufError::Malformed("unexpected end"))?;
        self.rest = rest;
        Ok(*taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Field<'a>), ProtobufError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// The varints of a packed list.
pub(super) fn packed(bytes: &[u8]) -> Result<Vec<u64>, ProtobufError> {
    let mut fields = Fields::of(bytes);
    let mut values = Vec::new();
    while !fields.rest.is_empty() {
        values.push(fields.varint()?);
    }
    Ok(values)
}
