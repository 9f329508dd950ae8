//! Texts and numbers nobody can foretell, drawn from the caller's entropy ([`crate::Entropy`]).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{MAX_TEXT, Outcome, int_of, metered, str_of};
use crate::function::Param::{Int, Str};
use crate::function::{Context, Function};
use crate::value::Value;

const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const DIGITS: &str = "0123456789";

pub(super) static FUNCTIONS: &[Function] = &[
    metered("randAlphaNum", &[Int], None, |context, args| {
        characters(context, int_of(&args[0]), &[LETTERS, DIGITS].concat())
    }),
    metered("randAlpha", &[Int], None, |context, args| characters(context, int_of(&args[0]), LETTERS)),
    metered("randNumeric", &[Int], None, |context, args| characters(context, int_of(&args[0]), DIGITS)),
    metered("randAscii", &[Int], None, |context, args| {
        let printable: String = (' '..='~').collect();
        characters(context, int_of(&args[0]), &printable)
    }),
    metered("randInt", &[Int, Int], None, |context, args| {
        let (least, end) = (int_of(&args[0]), int_of(&args[1]));
        let count = end.wrapping_sub(least);
        if count <= 0 {
            return Err("invalid argument to Intn".to_owned());
        }
        Ok(Value::Int(least.wrapping_add(below(context, count.unsigned_abs())? as i64)))
    }),
    metered("randBytes", &[Int], None, |context, args| {
        let count = int_of(&args[0]);
        if count < 0 {
            return Err("runtime error: makeslice: len out of range".to_owned());
        }
        let mut bytes = vec![0; paid(context, count)?];
        context.fill(&mut bytes)?;
        Ok(STANDARD.encode(bytes).into())
    }),
    metered("uuidv4", &[], None, |context, _| {
        let mut bytes = [0; 16];
        context.fill(&mut bytes)?;
        Ok(uuid(bytes).into())
    }),
    metered("shuffle", &[Str], None, |context, args| {
        let mut chars: Vec<char> = str_of(&args[0]).chars().collect();
        context.budget.values(chars.len())?;
        for index in (1..chars.len()).rev() {
            chars.swap(index, below(context, index as u64 + 1)? as usize);
        }
        Ok(chars.into_iter().collect::<String>().into())
    }),
];

/// A length, paid for; not more than a text may have.
fn paid(context: &mut Context<'_>, count: i64) -> Result<usize, String> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > MAX_TEXT {
        return Err(format!("result is longer than {MAX_TEXT} bytes"));
    }
    context.budget.values(count)?;
    Ok(count)
}

/// So many characters of an alphabet; none for a negative count.
fn characters(context: &mut Context<'_>, count: i64, alphabet: &str) -> Outcome {
    let count = paid(context, count.max(0))?;
    let alphabet = alphabet.as_bytes();
    let mut text = String::with_capacity(count);
    for _ in 0..count {
        text.push(char::from(alphabet[below(context, alphabet.len() as u64)? as usize]));
    }
    Ok(text.into())
}

/// A number below another, each as likely as any: numbers from the part that would favour some are thrown away.
fn below(context: &mut Context<'_>, end: u64) -> Result<u64, String> {
    let fair = u64::MAX - u64::MAX % end;
    loop {
        let mut bytes = [0; 8];
        context.fill(&mut bytes)?;
        let number = u64::from_le_bytes(bytes);
        if number < fair {
            return Ok(number % end);
        }
        // An entropy that gives the same number for ever pays for it.
        context.budget.step()?;
    }
}

/// The bytes as a UUID of version 4.
fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
