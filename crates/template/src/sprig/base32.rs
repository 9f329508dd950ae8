//! Base32.

use super::{fixed, str_of};
use crate::function::Function;
use crate::function::Param::Str;

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

pub(super) static FUNCTIONS: &[Function] = &[
    fixed("b32enc", &[Str], |args| Ok(encoded(str_of(&args[0]).as_bytes()).into())),
    // For a text that is no base32, the complaint takes its place, as sprig has it.
    fixed("b32dec", &[Str], |args| {
        Ok(match decoded(str_of(&args[0])) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
            Err(at) => format!("illegal base32 data at input byte {at}").into(),
        })
    }),
];

fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for group in bytes.chunks(5) {
        let mut bits = [0; 8];
        bits[3..3 + group.len()].copy_from_slice(group);
        let bits = u64::from_be_bytes(bits);
        let digits = (group.len() * 8).div_ceil(5);
        for index in 0..8 {
            let digit = ALPHABET[(bits >> (35 - 5 * index)) as usize & 31];
            text.push(if index < digits { char::from(digit) } else { '=' });
        }
    }
    text
}

/// The bytes a text stands for, or where it goes wrong. Line breaks do not count.
fn decoded(text: &str) -> Result<Vec<u8>, usize> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let mut bytes = Vec::with_capacity(digits.len() / 8 * 5 + 5);
    for (number, group) in digits.chunks(8).enumerate() {
        let start = number * 8;
        let values: Vec<u64> = group.iter().map_while(|byte| value(*byte)).collect();
        let count = values.len();
        if count < 8 {
            check_padding(&digits, start, count)?;
        }
        let bits = values.iter().enumerate().fold(0, |bits, (index, value)| bits | value << (35 - 5 * index));
        bytes.extend_from_slice(&bits.to_be_bytes()[3..3 + count * 5 / 8]);
        if count < 8 {
            // Go leaves unread what may follow.
            break;
        }
    }
    Ok(bytes)
}

/// Checks what follows the digits of a group that is not full.
fn check_padding(digits: &[u8], start: usize, count: usize) -> Result<(), usize> {
    let at = start + count;
    let Some((sign, rest)) = digits[at..].split_first() else {
        return Err(start);
    };
    if *sign != b'=' || count < 2 || rest.len() >= 8 {
        return Err(at);
    }
    let wanted = 7 - count;
    if rest.len() < wanted {
        return Err(digits.len());
    }
    match rest[..wanted].iter().position(|byte| *byte != b'=') {
        Some(wrong) => Err(at + wrong),
        None if matches!(count, 3 | 6) => Err(at),
        None => Ok(()),
    }
}

fn value(digit: u8) -> Option<u64> {
    ALPHABET.iter().position(|known| *known == digit).map(|value| value as u64)
}
