//! DER: the few types keys and certificates are made of.

pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OID: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

pub(super) const NULL: [u8; 2] = [0x05, 0x00];
pub(super) const TRUE: [u8; 3] = [0x01, 0x01, 0xff];

/// An element of any type.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut out = vec![tag];
    if length < 0x80 {
        out.push(length as u8);
    } else {
        let bytes = length.to_be_bytes();
        let digits = &bytes[bytes.iter().position(|byte| *byte != 0).unwrap_or(0)..];
        out.push(0x80 | digits.len() as u8);
        out.extend_from_slice(digits);
    }
    out.extend_from_slice(content);
    out
}

pub(super) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(SEQUENCE, &parts.concat())
}

/// An integer that is not negative, given by its bytes, the highest first.
pub(super) fn integer(bytes: &[u8]) -> Vec<u8> {
    let digits = &bytes[bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len())..];
    match digits.first() {
        Some(..0x80) => element(INTEGER, digits),
        // A leading zero, lest the number look negative.
        _ => element(INTEGER, &[&[0], digits].concat()),
    }
}

pub(super) fn oid(encoded: &[u8]) -> Vec<u8> {
    element(OID, encoded)
}

pub(super) fn bit_string(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes].concat())
}

pub(super) fn octet_string(bytes: &[u8]) -> Vec<u8> {
    element(OCTET_STRING, bytes)
}

/// An element in a numbered wrapper.
pub(super) fn explicit(number: u8, content: &[u8]) -> Vec<u8> {
    element(0xa0 | number, content)
}

/// A text in the plainest type that holds it.
pub(super) fn text(text: &str) -> Vec<u8> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&byte);
    let tag = if text.bytes().all(plain) { PRINTABLE_STRING } else { UTF8_STRING };
    element(tag, text.as_bytes())
}

/// Elements one after the other.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// The next element: its tag, its content, and the whole of it.
    pub(super) fn next(&mut self) -> Option<(u8, &'a [u8], &'a [u8])> {
        let [tag, length, ..] = *self.0 else { return None };
        let (start, length) = match length {
            ..=0x7f => (2, usize::from(length)),
            0x81..=0x84 => {
                let start = 2 + usize::from(length & 0x7f);
                let digits = self.0.get(2..start)?;
                (start, digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)))
            }
            _ => return None,
        };
        let end = start.checked_add(length)?;
        let (whole, rest) = (self.0.get(..end)?, &self.0[end..]);
        self.0 = rest;
        Some((tag, &whole[start..], whole))
    }

    /// The content of the next element, which is of this type.
    pub(super) fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _, _)| *found == tag).map(|(_, content, _)| content)
    }

    /// What is in the next element, a sequence.
    pub(super) fn sequence(&mut self) -> Option<Reader<'a>> {
        self.expect(SEQUENCE).map(Reader)
    }

    /// The content of the next element if it is of this type; otherwise nothing is read.
    pub(super) fn optional(&mut self, tag: u8) -> Option<&'a [u8]> {
        if self.0.first() == Some(&tag) { self.expect(tag) } else { None }
    }
}
