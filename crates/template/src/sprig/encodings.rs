//! Base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{fixed, str_of};
use crate::function::Function;
use crate::function::Param::Str;

pub(super) static FUNCTIONS: &[Function] = &[
    fixed("b64enc", &[Str], |args| Ok(STANDARD.encode(str_of(&args[0])).into())),
    fixed("b64dec", &[Str], |args| {
        // For a text that is no base64 the complaint takes its place, as sprig has it.
        Ok(match base64_bytes(str_of(&args[0])) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
            Err(complaint) => complaint.into(),
        })
    }),
];

/// The bytes a base64 text stands for, or Go's complaint.
pub(super) fn base64_bytes(text: &str) -> Result<Vec<u8>, String> {
    decoded(text.as_bytes()).map_err(|offset| format!("illegal base64 data at input byte {offset}"))
}

/// The bytes a text stands for, line breaks in it ignored, as are bits left over at the end; or the offset Go finds
/// fault with.
fn decoded(text: &[u8]) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut group = Vec::with_capacity(4);
    let mut input = text.iter().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    while let Some((at, byte)) = input.next() {
        match sextet(*byte) {
            Some(bits) => group.push(bits),
            None if *byte == b'=' && group.len() >= 2 => {
                if group.len() == 2 {
                    match input.next() {
                        None => return Err(text.len()),
                        Some((_, b'=')) => {}
                        Some((at, _)) => return Err(at - 1),
                    }
                }
                if let Some((at, _)) = input.next() {
                    return Err(at);
                }
                append(&group, &mut bytes);
                return Ok(bytes);
            }
            None => return Err(at),
        }
        if group.len() == 4 {
            append(&group, &mut bytes);
            group.clear();
        }
    }
    if group.is_empty() { Ok(bytes) } else { Err(text.len() - group.len()) }
}

fn sextet(byte: u8) -> Option<u32> {
    Some(
        match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        }
        .into(),
    )
}

/// The bytes of a group of two to four characters.
fn append(group: &[u32], bytes: &mut Vec<u8>) {
    let bits = (0..4).fold(0, |bits, index| bits << 6 | group.get(index).copied().unwrap_or(0));
    bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
}
