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
    let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let offset = match LENIENT.decode(&text) {
        Ok(bytes) => return String::from_utf8_lossy(&bytes).into_owned(),
        // Good padding with more text after it: the text is at fault, not the padding.
        Err(base64::DecodeError::InvalidByte(offset, b'=')) if offset % 4 >= 2 && padded(&text, offset) => {
            offset / 4 * 4 + 4
        }
        Err(base64::DecodeError::InvalidByte(offset, _)) => offset,
        Err(_) if text.ends_with('=') => text.len(),
        Err(_) => text.len() / 4 * 4,
    };
    format!("illegal base64 data at input byte {offset}")
}

/// Whether the group of four the offset lies in ends with padding from there on.
fn padded(text: &str, offset: usize) -> bool {
    text.as_bytes()
        .get(offset..offset / 4 * 4 + 4)
        .is_some_and(|group| group.iter().all(|byte| *byte == b'='))
}
