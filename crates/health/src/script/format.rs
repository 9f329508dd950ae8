//! `string.format`: C's, with its input checked.

use mlua::{Function, MultiValue, Value};

use super::{
    environment::whole,
    limits::MAX_TEXT,
    strings::{Answer, Call, Fault},
};

/// Widest field C's format makes of one conversion.
const WIDEST: usize = 512;

pub(super) fn format(call: &Call, print: &Function) -> Answer {
    let format = call.text(1)?;
    let mut arguments = call.arguments.clone();
    let conversions = conversions(&format.as_bytes());
    for (index, conversion) in conversions.iter().enumerate() {
        // Numbers print as texts the way `tostring` prints them.
        if *conversion == b's'
            && let Some(argument) = arguments.get_mut(index + 1)
            && let Some(text) = whole(argument)
        {
            *argument = Value::String(call.lua.create_string(text).map_err(Fault::Stopped)?);
        }
    }
    let text = |argument: &Value| argument.as_string().map_or(0, |text| text.as_bytes().len());
    let longest = arguments.iter().map(text).sum::<usize>().saturating_add(conversions.len() * WIDEST);
    if longest > MAX_TEXT {
        return Err(Fault::Said("resulting string too large".to_owned()));
    }
    call.meter.charge(longest as u64 / 64 + 1).map_err(Fault::Stopped)?;
    print
        .call::<MultiValue>(arguments)
        .map(|values| values.into_iter().collect())
        .map_err(|error| Fault::Said(super::explain(error).to_string()))
}

/// The letters of the conversions of a format, in their order.
fn conversions(format: &[u8]) -> Vec<u8> {
    let mut found = Vec::new();
    let mut rest = format.iter();
    while rest.by_ref().any(|byte| *byte == b'%') {
        match rest.by_ref().find(|byte| !b"-+ #0123456789.".contains(byte)) {
            Some(b'%') | None => {}
            Some(letter) => found.push(*letter),
        }
    }
    found
}
