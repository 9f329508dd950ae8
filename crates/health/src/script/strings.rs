//! Lua's functions of texts, each bounded.
//!
//! The prelude wraps them: they return `true` and their results, or `false` and what is wrong.

use std::sync::Arc;

use mlua::{Error, Function, Lua, LuaString, MultiValue, Table, Value};

use super::{
    convert::type_name,
    environment::whole,
    format,
    limits::{MAX_TEXT, Meter},
    patterns::{self, Capture, Match, Pattern},
};

/// Most matches of one `gsub` whose replacements a script computes.
const MAX_PIECES: usize = 100_000;

/// Why a function has no result.
pub(super) enum Fault {
    /// The script's mistake, in words.
    Said(String),
    /// The script was stopped.
    Stopped(Error),
}

pub(super) type Answer = Result<Vec<Value>, Fault>;

type Simple = fn(&Call) -> Answer;

/// One call of a function.
pub(super) struct Call<'a> {
    pub(super) name: &'static str,
    pub(super) lua: &'a Lua,
    pub(super) arguments: MultiValue,
    pub(super) meter: &'a Meter,
}

/// All functions; `c` is the C library's table, of which only `format` is used.
pub(super) fn library(lua: &Lua, c: Table, meter: &Arc<Meter>) -> Result<Table, Error> {
    let library = lua.create_table()?;
    let simple: [(&'static str, Simple); 13] = [
        ("len", len),
        ("sub", sub),
        ("upper", upper),
        ("lower", lower),
        ("rep", rep),
        ("reverse", reverse),
        ("byte", byte),
        ("char", char),
        ("find", find),
        ("match", first_match),
        ("gsub", gsub),
        ("step", step),
        ("pieces", pieces),
    ];
    for (name, function) in simple {
        library.raw_set(name, wrap(lua, name, meter, function)?)?;
    }
    let print: Function = c.raw_get("format")?;
    library.raw_set("format", wrap(lua, "format", meter, move |call| format::format(call, &print))?)?;
    Ok(library)
}

fn wrap(
    lua: &Lua,
    name: &'static str,
    meter: &Arc<Meter>,
    function: impl Fn(&Call) -> Answer + Send + 'static,
) -> Result<Function, Error> {
    let meter = Arc::clone(meter);
    lua.create_function(move |lua, arguments: MultiValue| {
        let call = Call { name, lua, arguments, meter: &meter };
        match function(&call) {
            Ok(values) => Ok(std::iter::once(Value::Boolean(true)).chain(values).collect::<MultiValue>()),
            Err(Fault::Said(message)) => {
                let message = Value::String(lua.create_string(message)?);
                Ok([Value::Boolean(false), message].into_iter().collect())
            }
            Err(Fault::Stopped(error)) => Err(error),
        }
    })
}

// === functions ===

fn len(call: &Call) -> Answer {
    let length = call.text(1)?.as_bytes().len();
    Ok(vec![count(length)])
}

fn sub(call: &Call) -> Answer {
    let text = call.text(1)?;
    let bytes = text.as_bytes();
    let (from, to) = (call.integer_or(2, 1)?, call.integer_or(3, -1)?);
    call.string(slice(&bytes, from, to))
}

fn upper(call: &Call) -> Answer {
    let text = call.text(1)?;
    call.string(text.as_bytes().to_ascii_uppercase())
}

fn lower(call: &Call) -> Answer {
    let text = call.text(1)?;
    call.string(text.as_bytes().to_ascii_lowercase())
}

fn reverse(call: &Call) -> Answer {
    let text = call.text(1)?;
    call.string(text.as_bytes().iter().rev().copied().collect::<Vec<u8>>())
}

fn rep(call: &Call) -> Answer {
    let text = call.text(1)?;
    let times = usize::try_from(call.integer(2)?).unwrap_or_default();
    let bytes = text.as_bytes();
    if bytes.is_empty() {
        return call.string("");
    }
    match bytes.len().checked_mul(times).filter(|length| *length <= MAX_TEXT) {
        Some(_) => call.string(bytes.repeat(times)),
        None => Err(Fault::Said("resulting string too large".to_owned())),
    }
}

fn byte(call: &Call) -> Answer {
    const MOST: usize = 4096;
    let text = call.text(1)?;
    let bytes = text.as_bytes();
    let from = call.integer_or(2, 1)?;
    let part = slice(&bytes, from, call.integer_or(3, from)?);
    if part.len() > MOST {
        return Err(Fault::Said("string slice too long".to_owned()));
    }
    Ok(part.iter().map(|byte| Value::Integer(i64::from(*byte))).collect())
}

fn char(call: &Call) -> Answer {
    let bytes: Result<Vec<u8>, Fault> = (1..=call.arguments.len())
        .map(|index| u8::try_from(call.integer(index)?).map_err(|_| call.bad(index, "invalid value")))
        .collect();
    call.string(bytes?)
}

fn find(call: &Call) -> Answer {
    let (text, wanted) = (call.text(1)?, call.text(2)?);
    let (text, wanted) = (text.as_bytes(), wanted.as_bytes());
    let Some(start) = call.start(3, text.len())? else { return Ok(vec![Value::Nil]) };
    let plainly =
        call.arguments.get(3).is_some_and(|value| !matches!(value, Value::Nil | Value::Boolean(false)));
    if plainly || !wanted.iter().any(|byte| b"^$*+?.([%-".contains(byte)) {
        return Ok(match plain(call, &text[start..], &wanted)? {
            Some(at) => vec![count(start + at + 1), count(start + at + wanted.len())],
            None => vec![Value::Nil],
        });
    }
    let found = Pattern::new(&wanted)?.search(&text, start, call.meter)?;
    let Some(found) = found else { return Ok(vec![Value::Nil]) };
    let mut values = vec![count(found.start + 1), count(found.end)];
    values.extend(call.captures(&text, &found, false)?);
    Ok(values)
}

fn first_match(call: &Call) -> Answer {
    let (text, pattern) = (call.text(1)?, call.text(2)?);
    let text = text.as_bytes();
    let Some(start) = call.start(3, text.len())? else { return Ok(vec![Value::Nil]) };
    match Pattern::new(&pattern.as_bytes())?.search(&text, start, call.meter)? {
        Some(found) => call.captures(&text, &found, true),
        None => Ok(vec![Value::Nil]),
    }
}

/// One step of `gmatch`: from where to go on, and the captures.
fn step(call: &Call) -> Answer {
    let (text, pattern) = (call.text(1)?, call.text(2)?);
    let text = text.as_bytes();
    let Some(start) = call.start(3, text.len())? else { return Ok(vec![Value::Nil]) };
    let Some(found) = Pattern::new(&pattern.as_bytes())?.search(&text, start, call.meter)? else {
        return Ok(vec![Value::Nil]);
    };
    let next = if found.end == found.start { found.end + 2 } else { found.end + 1 };
    let mut values = vec![count(next)];
    values.extend(call.captures(&text, &found, true)?);
    Ok(values)
}

/// `gsub` with a text as replacement, in which `%1` is the first capture and `%0` the whole match.
fn gsub(call: &Call) -> Answer {
    let (text, pattern, replacement) = (call.text(1)?, call.text(2)?, call.text(3)?);
    let (text, replacement) = (text.as_bytes(), replacement.as_bytes());
    let pattern = Pattern::new(&pattern.as_bytes())?;
    let mut result: Vec<u8> = Vec::with_capacity(text.len());
    let mut matches = 0;
    call.each_match(&text, &pattern, 4, |part| {
        match part {
            Part::Text(bytes) => result.extend_from_slice(bytes),
            Part::Match(found) => {
                matches += 1;
                fill(&mut result, &replacement, &text, &found)?;
            }
        }
        if result.len() > MAX_TEXT {
            Err(Fault::Said("resulting string too large".to_owned()))
        } else {
            Ok(())
        }
    })?;
    let mut values = call.string(result)?;
    values.push(count(matches));
    Ok(values)
}

fn fill(result: &mut Vec<u8>, replacement: &[u8], text: &[u8], found: &Match) -> Result<(), Fault> {
    let mut rest = replacement.iter();
    while let Some(byte) = rest.next() {
        match (byte, if *byte == b'%' { rest.next() } else { None }) {
            (b'%', Some(b'0')) => result.extend_from_slice(&text[found.start..found.end]),
            (b'%', Some(digit @ b'1'..=b'9')) => {
                let index = usize::from(digit - b'1');
                match found.captures.get(index) {
                    Some(Capture::Span(from, to)) => result.extend_from_slice(&text[*from..*to]),
                    Some(Capture::Position(at)) => result.extend_from_slice((at + 1).to_string().as_bytes()),
                    None if index == 0 => result.extend_from_slice(&text[found.start..found.end]),
                    None => return Err(Fault::Said("invalid capture index".to_owned())),
                }
            }
            (b'%', Some(other)) => result.push(*other),
            (other, _) => result.push(*other),
        }
    }
    Ok(())
}

/// The parts of a text for a `gsub` whose replacements the prelude looks up or asks for.
fn pieces(call: &Call) -> Answer {
    let (text, pattern) = (call.text(1)?, call.text(2)?);
    let text = text.as_bytes();
    let pattern = Pattern::new(&pattern.as_bytes())?;
    let list = call.lua.create_table().map_err(Fault::Stopped)?;
    let mut matches = 0;
    call.each_match(&text, &pattern, 3, |part| {
        let piece = match part {
            Part::Text([]) => return Ok(()),
            Part::Text(bytes) => call.string(bytes)?.remove(0),
            Part::Match(found) => {
                matches += 1;
                if matches > MAX_PIECES {
                    return Err(Fault::Said("too many matches".to_owned()));
                }
                let whole = call.string(&text[found.start..found.end])?;
                let values = whole.into_iter().chain(call.captures(&text, &found, true)?);
                Value::Table(call.lua.create_sequence_from(values).map_err(Fault::Stopped)?)
            }
        };
        list.raw_push(piece).map_err(Fault::Stopped)
    })?;
    Ok(vec![Value::Table(list)])
}

enum Part<'a> {
    Text(&'a [u8]),
    Match(Match),
}

// === impl Call ===

impl Call<'_> {
    /// An argument that is a text, or a number, which counts as one.
    pub(super) fn text(&self, index: usize) -> Result<LuaString, Fault> {
        match self.arguments.get(index - 1) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(number @ (Value::Integer(_) | Value::Number(_))) => {
                let text = whole(number).unwrap_or_else(|| number.as_f64().unwrap_or_default().to_string());
                self.lua.create_string(text).map_err(Fault::Stopped)
            }
            other => {
                Err(self.bad(index, &format!("string expected, got {}", other.map_or("no value", type_name))))
            }
        }
    }

    fn integer(&self, index: usize) -> Result<i64, Fault> {
        let value = self.arguments.get(index - 1);
        let number = match value {
            Some(Value::Integer(number)) => Some(*number),
            #[expect(clippy::cast_possible_truncation, reason = "a float out of range saturates")]
            Some(Value::Number(number)) => Some(*number as i64),
            Some(Value::String(text)) => text.to_str().ok().and_then(|text| text.trim().parse().ok()),
            _ => None,
        };
        let got = value.map_or("no value", type_name);
        number.ok_or_else(|| self.bad(index, &format!("number expected, got {got}")))
    }

    fn integer_or(&self, index: usize, otherwise: i64) -> Result<i64, Fault> {
        match self.arguments.get(index - 1) {
            None | Some(Value::Nil) => Ok(otherwise),
            Some(_) => self.integer(index),
        }
    }

    /// Where a search begins, counted from 0; `None` beyond the end.
    fn start(&self, index: usize, length: usize) -> Result<Option<usize>, Fault> {
        let from = self.integer_or(index, 1)?;
        let from = if from < 0 { from.saturating_add(signed(length) + 1) } else { from };
        Ok(usize::try_from(from.max(1) - 1).ok().filter(|start| *start <= length))
    }

    pub(super) fn bad(&self, index: usize, why: &str) -> Fault {
        Fault::Said(format!("bad argument #{index} to '{}' ({why})", self.name))
    }

    pub(super) fn string(&self, bytes: impl AsRef<[u8]>) -> Answer {
        let bytes = bytes.as_ref();
        self.meter.charge(bytes.len() as u64 / 64 + 1).map_err(Fault::Stopped)?;
        Ok(vec![Value::String(self.lua.create_string(bytes).map_err(Fault::Stopped)?)])
    }

    /// The captures of a match; the whole of it if there are none and it is asked for.
    fn captures(&self, text: &[u8], found: &Match, or_whole: bool) -> Answer {
        if found.captures.is_empty() && or_whole {
            return self.string(&text[found.start..found.end]);
        }
        let mut values = Vec::with_capacity(found.captures.len());
        for capture in &found.captures {
            match capture {
                Capture::Span(from, to) => values.extend(self.string(&text[*from..*to])?),
                Capture::Position(at) => values.push(count(at + 1)),
            }
        }
        Ok(values)
    }

    /// Cuts a text into matches and what lies between them; argument `most` limits the matches.
    fn each_match<'t>(
        &self,
        text: &'t [u8],
        pattern: &Pattern,
        most: usize,
        mut take: impl FnMut(Part<'t>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let most = self.integer_or(most, i64::MAX)?;
        let (mut at, mut matches) = (0, 0);
        while matches < most {
            let Some(found) = pattern.search(text, at, self.meter)? else { break };
            let (start, end) = (found.start, found.end);
            take(Part::Text(&text[at..start]))?;
            take(Part::Match(found))?;
            matches += 1;
            at = end;
            if start == end {
                // An empty match moves on by one, or it would be found for ever.
                let Some(byte) = text.get(end..=end) else { break };
                take(Part::Text(byte))?;
                at += 1;
            }
            if pattern.is_anchored() {
                break;
            }
        }
        take(Part::Text(&text[at.min(text.len())..]))
    }
}

impl From<patterns::Malformed> for Fault {
    fn from(malformed: patterns::Malformed) -> Fault {
        Fault::Said(malformed.0.to_owned())
    }
}

impl From<patterns::Stopped> for Fault {
    fn from(stopped: patterns::Stopped) -> Fault {
        match stopped {
            patterns::Stopped::TooComplex => Fault::Said("pattern too complex".to_owned()),
            patterns::Stopped::Meter(error) => Fault::Stopped(error),
        }
    }
}

/// The first place of one text in another.
fn plain(call: &Call, text: &[u8], wanted: &[u8]) -> Result<Option<usize>, Fault> {
    const STRIDE: usize = 1024;
    if wanted.is_empty() {
        return Ok(Some(0));
    }
    for (at, window) in text.windows(wanted.len()).enumerate() {
        if at % STRIDE == 0 {
            let work = STRIDE as u64 * (wanted.len() as u64 / 32 + 1);
            call.meter.charge(work / 16).map_err(Fault::Stopped)?;
        }
        if window == wanted {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Part of a text by Lua's places: from 1, from the end if negative, both ends included.
fn slice(bytes: &[u8], from: i64, to: i64) -> &[u8] {
    let length = signed(bytes.len());
    let place = |at: i64| if at < 0 { at.saturating_add(length + 1) } else { at };
    let (from, to) = (place(from).max(1), place(to).min(length));
    match (usize::try_from(from - 1), usize::try_from(to)) {
        (Ok(from), Ok(to)) if from < to => &bytes[from..to],
        _ => &[],
    }
}

fn count(number: usize) -> Value {
    Value::Integer(signed(number))
}

fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
