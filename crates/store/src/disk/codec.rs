//! How objects are written in the file.

use crate::body::Body;
use crate::record::{Key, Record};

/// Appends a key: the lengths of resource and namespace, then the three strings.
pub(super) fn encode_key(key: &Key, out: &mut Vec<u8>) {
    for part in [&key.resource, &key.namespace] {
        out.extend_from_slice(&(part.len() as u32).to_le_bytes());
    }
    for part in [&key.resource, &key.namespace, &key.name] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Appends a record without its key: revision, revision of creation, length of the JSON, where the revision
/// goes in, and the body as held in memory.
pub(super) fn encode_record(record: &Record, out: &mut Vec<u8>) {
    out.extend_from_slice(&record.revision.to_le_bytes());
    out.extend_from_slice(&record.created.to_le_bytes());
    out.extend_from_slice(&(record.body.raw_len() as u32).to_le_bytes());
    out.extend_from_slice(&(record.body.splice_at() as u32).to_le_bytes());
    out.extend_from_slice(record.body.stored());
}

/// The record of an entry; `None` if it is not what the functions above write.
pub(super) fn decode(key: &[u8], value: &[u8]) -> Option<Record> {
    let key = decode_key(key)?;
    let (revision, value) = value.split_first_chunk()?;
    let (created, value) = value.split_first_chunk()?;
    let (raw_len, value) = value.split_first_chunk()?;
    let (splice_at, stored) = value.split_first_chunk()?;
    let body = Body::from_stored(stored, u32::from_le_bytes(*raw_len), u32::from_le_bytes(*splice_at))?;
    let (revision, created) = (u64::from_le_bytes(*revision), u64::from_le_bytes(*created));
    (created <= revision).then_some(Record { key, revision, created, body })
}

fn decode_key(bytes: &[u8]) -> Option<Key> {
    let (resource, bytes) = bytes.split_first_chunk()?;
    let (namespace, bytes) = bytes.split_first_chunk()?;
    let (resource, bytes) = bytes.split_at_checked(u32::from_le_bytes(*resource) as usize)?;
    let (namespace, name) = bytes.split_at_checked(u32::from_le_bytes(*namespace) as usize)?;
    let text = |part| std::str::from_utf8(part).ok();
    Some(Key::new(text(resource)?, text(namespace)?, text(name)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> (Vec<u8>, Vec<u8>) {
        let key = Key::new("deployments.apps", "team", "web");
        let record =
            Record { key, revision: 9, created: 4, body: Body::new(r#"{"metadata":{"name":"web"}}"#, 13) };
        let (mut key, mut value) = (Vec::new(), Vec::new());
        encode_key(&record.key, &mut key);
        encode_record(&record, &mut value);
        (key, value)
    }

    #[test]
    fn entries_read_back_equal() {
        let (key, value) = entry();
        let record = decode(&key, &value).unwrap();
        assert_eq!(record.key, Key::new("deployments.apps", "team", "web"));
        assert_eq!((record.revision, record.created), (9, 4));
        assert_eq!(record.json(), r#"{"metadata":{"resourceVersion":"9","name":"web"}}"#);
    }

    #[test]
    fn cut_entries_are_refused() {
        let (key, value) = entry();
        for len in 0..value.len() {
            assert!(decode(&key, &value[..len]).is_none(), "value cut to {len}");
        }
        for len in 0..8 + "deployments.apps".len() + "team".len() {
            assert!(decode(&key[..len], &value).is_none(), "key cut to {len}");
        }
    }
}
