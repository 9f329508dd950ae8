//! Object bodies: JSON without its revision, compressed when that pays.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// Bodies below this many bytes are kept as they are: compression would save less than it costs.
const COMPRESS_FROM: usize = 1024;

/// LZ4 cannot expand more than this.
const MAX_EXPANSION: usize = 255;

/// Room for the member with the largest revision.
const MEMBER_ROOM: usize = r#""resourceVersion":"18446744073709551615","#.len();

/// An object's JSON *without* `metadata.resourceVersion`, and the byte offset at which
/// `"resourceVersion":"N",` is put in on reading. The revision is only known at commit; keeping it out of
/// the body means that it is assigned without serialising the object again.
///
/// Bodies of 1 KiB and more may be held compressed if that makes them smaller. Cloning is cheap.
#[derive(Clone)]
pub struct Body {
    stored: Arc<[u8]>,
    raw_len: u32,
    splice_at: u32,
}

impl Body {
    /// A body from JSON and the offset for the revision, which must directly precede another member of
    /// the object's metadata, compressed if that pays. An offset beyond the end counts as the end.
    ///
    /// # Panics
    ///
    /// If the JSON is 4 GiB or longer.
    pub fn new(json: impl Into<Bytes>, splice_at: usize) -> Self {
        Self::held(&json.into(), splice_at, true)
    }

    /// The same, compressed only if that is asked for too.
    pub(crate) fn held(json: &[u8], splice_at: usize, compressed: bool) -> Self {
        let raw_len = u32::try_from(json.len()).expect("callers bound request bodies to a few MiB");
        let splice_at = raw_len.min(u32::try_from(splice_at).unwrap_or(u32::MAX));
        let stored = if compressed { compress(json) } else { Arc::from(json) };
        Self { stored, raw_len, splice_at }
    }

    /// Reassembles a body from its parts as given by [`Body::stored`], [`Body::raw_len`] and
    /// [`Body::splice_at`]; `None` if they do not belong together.
    pub(crate) fn from_stored(stored: &[u8], raw_len: u32, splice_at: u32) -> Option<Self> {
        let body = Self { stored: Arc::from(stored), raw_len, splice_at };
        let whole = splice_at <= raw_len
            && match body.is_compressed() {
                true => body.inflates(),
                false => stored.len() == raw_len as usize,
            };
        whole.then_some(body)
    }

    /// Whether both are one body in memory, and not only alike.
    pub fn is(&self, other: &Body) -> bool {
        Arc::ptr_eq(&self.stored, &other.stored)
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
        let mut buffer = [0; MEMBER_ROOM];
        let member = revision_member(revision, &mut buffer);
        if self.is_compressed() {
            self.inflate_around(member, out);
        } else {
            let (before, after) = self.stored.split_at(self.splice_at());
            out.reserve(self.raw_len() + member.len());
            out.extend_from_slice(before);
            out.extend_from_slice(member);
            out.extend_from_slice(after);
        }
    }

    /// Inflates in place, behind a gap as long as the member, and then moves what precedes the member over
    /// the gap: the metadata is at the start, so this moves far less than a copy of the whole.
    fn inflate_around(&self, member: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        let inflated = start + member.len();
        out.resize(inflated + self.raw_len(), 0);
        inflate(&self.stored, &mut out[inflated..]).expect("compressed here or checked when loaded");
        out.copy_within(inflated..inflated + self.splice_at(), start);
        let gap = start + self.splice_at();
        out[gap..gap + member.len()].copy_from_slice(member);
    }

    fn inflates(&self) -> bool {
        // A corrupt length must not make us allocate gigabytes.
        self.raw_len() / MAX_EXPANSION <= self.stored.len()
            && inflate(&self.stored, &mut vec![0; self.raw_len()]).is_some()
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

/// Fills the buffer exactly, or fails.
fn inflate(stored: &[u8], json: &mut [u8]) -> Option<()> {
    let length = lz4_flex::block::decompress_into(stored, json).ok()?;
    (length == json.len()).then_some(())
}

/// Writes `"resourceVersion":"N",` into the end of the buffer and returns it.
fn revision_member(mut revision: u64, buffer: &mut [u8; MEMBER_ROOM]) -> &[u8] {
    const BEFORE: &[u8] = b"\"resourceVersion\":\"";
    const AFTER: &[u8] = b"\",";
    let mut start = MEMBER_ROOM - AFTER.len();
    buffer[start..].copy_from_slice(AFTER);
    loop {
        start -= 1;
        buffer[start] = b'0' + (revision % 10) as u8;
        revision /= 10;
        if revision == 0 {
            break;
        }
    }
    let digits = start;
    start -= BEFORE.len();
    buffer[start..digits].copy_from_slice(BEFORE);
    &buffer[start..]
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
        let mut out = b"before ".to_vec();
        body.write_json(42, &mut out);
        let (head, rest) = json.split_at(13);
        let want = format!(r#"before {head}"resourceVersion":"42",{rest}"#);
        assert_eq!(String::from_utf8(out).unwrap(), want);
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
