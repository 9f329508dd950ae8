//! Object bodies: JSON without its revision, compressed when that pays.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// Bodies below this many bytes are kept as they are: compression would save less than it costs.
const COMPRESS_FROM: usize = 1024;

/// Room for `"resourceVersion":"18446744073709551615",`.
const REVISION_ROOM: usize = 42;

/// An object's JSON *without* `metadata.resourceVersion`, and the byte offset at which
/// `"resourceVersion":"N",` is put in on reading. The revision is only known at commit; keeping it out of
/// the body means that it is assigned without serialising the object again.
///
/// Bodies of 1 KiB and more are held compressed if that makes them smaller. Cloning is cheap.
#[derive(Clone)]
pub struct Body {
    stored: Arc<[u8]>,
    raw_len: u32,
    splice_at: u32,
}

impl Body {
    /// A body from JSON and the offset for the revision, which must directly precede another member of
    /// the object's metadata. An offset beyond the end counts as the end.
    ///
    /// # Panics
    ///
    /// If the JSON is 4 GiB or longer.
    pub fn new(json: impl Into<Bytes>, splice_at: usize) -> Self {
        let json: Bytes = json.into();
        let raw_len = u32::try_from(json.len()).expect("callers bound request bodies to a few MiB");
        let splice_at = raw_len.min(u32::try_from(splice_at).unwrap_or(u32::MAX));
        Self { stored: compress(&json), raw_len, splice_at }
    }

    /// Reassembles a body from its parts as given by [`Body::stored`], [`Body::raw_len`] and
    /// [`Body::splice_at`]; `None` if they do not belong together.
    pub(crate) fn from_stored(stored: &[u8], raw_len: u32, splice_at: u32) -> Option<Self> {
        let body = Self { stored: Arc::from(stored), raw_len, splice_at };
        let whole = splice_at <= raw_len
            && match body.is_compressed() {
                true => inflate(&body.stored, raw_len as usize).is_some(),
                false => stored.len() == raw_len as usize,
            };
        whole.then_some(body)
    }

    /// The bytes held: the JSON, or its compressed form if that is shorter than `raw_len`.
    pub(crate) fn stored(&self) -> &[u8] {
        &self.stored
    }

    pub(crate) fn raw_len(&self) -> usize {
        self.raw_len as usize
    }

    pub(crate) fn splice_at(&self) -> usize {
        self.splice_at as usize
    }

    /// Appends the JSON with the revision put in.
    pub(crate) fn write_json(&self, revision: u64, out: &mut Vec<u8>) {
        out.reserve(self.raw_len() + REVISION_ROOM);
        if !self.is_compressed() {
            return self.splice(&self.stored, revision, out);
        }
        let json = inflate(&self.stored, self.raw_len()).expect("compressed here or checked when loaded");
        self.splice(&json, revision, out);
    }

    fn splice(&self, json: &[u8], revision: u64, out: &mut Vec<u8>) {
        let (before, after) = json.split_at(self.splice_at());
        out.extend_from_slice(before);
        out.extend_from_slice(b"\"resourceVersion\":\"");
        write_decimal(revision, out);
        out.extend_from_slice(b"\",");
        out.extend_from_slice(after);
    }

    fn is_compressed(&self) -> bool {
        self.stored.len() < self.raw_len()
    }
}

impl fmt::Debug for Body {
    /// Sizes only: a body may be a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("raw_len", &self.raw_len).field("stored", &self.stored.len()).finish()
    }
}

fn compress(json: &[u8]) -> Arc<[u8]> {
    if json.len() >= COMPRESS_FROM {
        let packed = lz4_flex::block::compress(json);
        if packed.len() < json.len() {
            return Arc::from(packed);
        }
    }
    Arc::from(json)
}

/// LZ4 cannot expand more than this; a corrupt length must not make us allocate gigabytes.
const MAX_EXPANSION: usize = 255;

fn inflate(stored: &[u8], raw_len: usize) -> Option<Vec<u8>> {
    if raw_len / MAX_EXPANSION > stored.len() {
        return None;
    }
    lz4_flex::block::decompress(stored, raw_len).ok().filter(|json| json.len() == raw_len)
}

fn write_decimal(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: &Body, revision: u64) -> String {
        let mut out = Vec::new();
        body.write_json(revision, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn manifest(items: usize) -> String {
        let items: Vec<_> =
            (0..items).map(|i| format!(r#"{{"name":"container-{i}","image":"registry/app:{i}"}}"#)).collect();
        format!(r#"{{"metadata":{{"name":"a"}},"spec":[{}]}}"#, items.join(","))
    }

    #[test]
    fn revision_is_put_in_at_the_offset() {
        let cases = [
            (r#"{"metadata":{"name":"a"}}"#, 13, 7, r#"{"metadata":{"resourceVersion":"7","name":"a"}}"#),
            ("ab", 0, 0, r#""resourceVersion":"0",ab"#),
            ("ab", 99, u64::MAX, r#"ab"resourceVersion":"18446744073709551615","#),
        ];
        for (json, at, revision, want) in cases {
            assert_eq!(text(&Body::new(json, at), revision), want);
        }
    }

    #[test]
    fn large_bodies_are_held_smaller_and_read_back_equal() {
        let json = manifest(100);
        let body = Body::new(json.clone(), 13);
        assert!(body.stored().len() < json.len() / 2, "{body:?} of {}", json.len());
        assert_eq!(text(&body, 42).replace(r#""resourceVersion":"42","#, ""), json);
    }

    #[test]
    fn small_bodies_are_held_as_they_are() {
        let json = manifest(3);
        assert_eq!(Body::new(json.clone(), 13).stored(), json.as_bytes());
    }

    #[test]
    fn stored_parts_that_do_not_belong_together_are_refused() {
        let body = Body::new(manifest(100), 13);
        let raw = body.raw_len;
        assert!(Body::from_stored(body.stored(), raw, 13).is_some());
        assert!(Body::from_stored(body.stored(), raw + 1, 13).is_none());
        assert!(Body::from_stored(body.stored(), u32::MAX, 13).is_none());
        assert!(Body::from_stored(body.stored(), raw - 1, 13).is_none());
        assert!(Body::from_stored(body.stored(), raw, raw + 1).is_none());
        assert!(Body::from_stored(&body.stored()[1..], raw, 13).is_none());
        assert!(Body::from_stored(b"abc", 2, 0).is_none());
        assert!(Body::from_stored(b"", 2, 0).is_none());
    }
}
