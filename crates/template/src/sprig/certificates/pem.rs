//! PEM: base64 between lines that tell what it is.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

pub(super) fn encode(kind: &str, bytes: &[u8]) -> String {
    let body = STANDARD.encode(bytes);
    let mut text = format!("-----BEGIN {kind}-----\n");
    for line in body.as_bytes().chunks(64) {
        // Base64 is ASCII.
        text.push_str(std::str::from_utf8(line).unwrap_or_default());
        text.push('\n');
    }
    text + &format!("-----END {kind}-----\n")
}

/// Texts with more than this are not looked at: every line could begin a block.
const MAX_TEXT: usize = 64 << 10;

/// The first block of a text: its kind and its bytes. What stands before it does not count, nor do its headers.
pub(super) fn decode(text: &str) -> Option<(&str, Vec<u8>)> {
    let mut rest = Some(text).filter(|text| text.len() <= MAX_TEXT)?;
    while let Some(at) = rest.find("-----BEGIN ") {
        let starts_line = at == 0 || rest[..at].ends_with('\n');
        rest = &rest[at + "-----BEGIN ".len()..];
        if let Some(block) = starts_line.then(|| block(rest)).flatten() {
            return Some(block);
        }
    }
    None
}

/// The block whose first line starts with the kind.
fn block(text: &str) -> Option<(&str, Vec<u8>)> {
    let (first, body) = text.split_once('\n')?;
    let kind = first.trim_end().strip_suffix("-----")?;
    let (body, _) = body.split_once(&format!("-----END {kind}-----"))?;
    let body = match body.lines().next() {
        Some(header) if header.contains(':') => body.split_once("\n\n")?.1,
        _ => body,
    };
    let digits: String = body.split_ascii_whitespace().collect();
    Some((kind, STANDARD.decode(digits).ok()?))
}
