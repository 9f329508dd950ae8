//! Base64.

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};

use super::{fixed, str_of};
use crate::function::Function;
use crate::function::Param::Str;

/// Reads what Go reads: bits left over at the end are ignored.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

pub(super) static FUNCTIONS: &[Function] = &[
    fixed("b64enc", &[Str], |args| Ok(STANDARD.encode(str_of(&args[0])).into())),
    fixed("b64dec", &[Str], |args| Ok(decoded(str_of(&args[0])).into())),
];

/// The text encoded; for one that is no base64, the complaint takes its place, as sprig has it.
fn decoded(text: &str) -> String {
    base64_bytes(text)
        .map_or_else(|complaint| complaint, |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The bytes a base64 text stands for, or Go's complaint.
pub(super) fn base64_bytes(text: &str) -> Result<Vec<u8>, String> {
    let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let offset = match LENIENT.decode(&text) {
        Ok(bytes) => return Ok(bytes),
        // Good padding with more text after it: the text is at fault, not the padding.
        Err(base64::DecodeError::InvalidByte(offset, b'=')) if offset % 4 >= 2 && padded(&text, offset) => {
            offset / 4 * 4 + 4
        }
        Err(base64::DecodeError::InvalidByte(offset, _)) => offset,
        Err(_) if text.ends_with('=') => text.len(),
        Err(_) => text.len() / 4 * 4,
    };
    Err(format!("illegal base64 data at input byte {offset}"))
}

/// Whether the group of four the offset lies in ends with padding from there on.
fn padded(text: &str, offset: usize) -> bool {
    text.as_bytes()
        .get(offset..offset / 4 * 4 + 4)
        .is_some_and(|group| group.iter().all(|byte| *byte == b'='))
}
