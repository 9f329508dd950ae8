//! One object as it is kept.

use std::fmt;
use std::sync::Arc;

use baton_api::health::Health;
use jiff::Timestamp;

use super::packed::Packed;
use super::state::KindId;

/// A uid: nearly always 16 bytes, which are cheaper than their text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Uid {
    Uuid(u128),
    Text(Arc<str>),
}

/// One object.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) kind: KindId,
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) uid: Uid,
    /// resourceVersion, which Kubernetes promises to be a number that grows; 0 if it is none.
    pub(crate) version: u64,
    pub(crate) owners: Box<[Uid]>,
    /// The Application it belongs to, for roots only.
    pub(crate) instance: Option<Arc<str>>,
    pub(crate) created: Option<Timestamp>,
    pub(crate) health: Option<Box<Health>>,
    pub(crate) images: Box<[Arc<str>]>,
    pub(crate) whole: Option<Arc<Packed>>,
    /// Of what a verdict on it depends on.
    pub(crate) print: u64,
    pub(crate) guarded: bool,
}

impl Uid {
    pub(crate) fn new(text: &str) -> Uid {
        match uuid(text) {
            Some(number) => Uid::Uuid(number),
            None => Uid::Text(text.into()),
        }
    }
}

/// The number of a UUID in its usual spelling; others keep theirs.
fn uuid(text: &str) -> Option<u128> {
    let bytes = text.as_bytes();
    if bytes.len() != 36 {
        return None;
    }
    let mut number = 0_u128;
    for (place, byte) in bytes.iter().enumerate() {
        let digit = match (place, byte) {
            (8 | 13 | 18 | 23, b'-') => continue,
            (8 | 13 | 18 | 23, _) => return None,
            (_, b'0'..=b'9') => byte - b'0',
            (_, b'a'..=b'f') => byte - b'a' + 10,
            _ => return None,
        };
        number = number << 4 | u128::from(digit);
    }
    Some(number)
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Uid::Text(text) => f.write_str(text),
            Uid::Uuid(number) => {
                let hex = format!("{number:032x}");
                let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
                f.write_str(&parts.join("-"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_uid_keeps_its_spelling() {
        for text in [
            "6f2c1e58-0b5a-4d8e-9a3f-00112233aabb",
            "00000000-0000-0000-0000-000000000000",
            "6F2C1E58-0B5A-4D8E-9A3F-00112233AABB",
            "6f2c1e58-0b5a-4d8e-9a3f_00112233aabb",
            "any text",
            "",
        ] {
            assert_eq!(Uid::new(text).to_string(), text);
        }
    }
}
