//! JSON as Go reads it, complaints included.

use std::sync::Arc;

use crate::budget::{Budget, MAX_DEPTH};
use crate::float;
use crate::quote;
use crate::value::{List, Map, Value};

/// What a text holds, and the complaint about numbers in it that do not fit, which are nil.
pub(super) struct Read {
    pub(super) value: Value,
    pub(super) misfit: Option<String>,
}

/// Reads a text.
///
/// # Errors
/// In the outer result, what costs more than is left; in the inner one, what is no JSON.
pub(super) fn read(text: &str, budget: &mut Budget) -> Result<Result<Read, String>, String> {
    let mut reader = Reader { rest: text.as_bytes(), text, misfit: None, budget };
    let value = reader.document();
    let misfit = reader.misfit.take();
    match value {
        Ok(value) => Ok(Ok(Read { value, misfit })),
        Err(Refused::Syntax(message)) => Ok(Err(message)),
        Err(Refused::TooMuch(message)) => Err(message),
    }
}

enum Refused {
    Syntax(String),
    TooMuch(String),
}

type Outcome<T> = Result<T, Refused>;

struct Reader<'a, 'b> {
    rest: &'a [u8],
    text: &'a str,
    misfit: Option<String>,
    budget: &'b mut Budget,
}

impl<'a> Reader<'a, '_> {
    fn document(&mut self) -> Outcome<Value> {
        let value = self.value(0)?;
        self.blanks();
        match self.rest.first() {
            None => Ok(value),
            Some(byte) => Err(invalid(*byte, "after top-level value")),
        }
    }

    fn value(&mut self, depth: usize) -> Outcome<Value> {
        self.budget.values(1).map_err(Refused::TooMuch)?;
        self.blanks();
        match self.rest.first() {
            None => Err(ended()),
            Some(b'{' | b'[') if depth >= MAX_DEPTH => Err(Refused::Syntax("exceeded max depth".to_owned())),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Value::Str(self.string()?)),
            Some(b't') => self.literal("true", Value::Bool(true)),
            Some(b'f') => self.literal("false", Value::Bool(false)),
            Some(b'n') => self.literal("null", Value::Nil),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(byte) => Err(invalid(*byte, "looking for beginning of value")),
        }
    }

    fn object(&mut self, depth: usize) -> Outcome<Value> {
        self.skip();
        let map = Map::new([]);
        if self.closes(b'}')? {
            return Ok(Value::Map(map));
        }
        loop {
            self.blanks();
            match self.rest.first() {
                None => return Err(ended()),
                Some(b'"') => {}
                Some(byte) => return Err(invalid(*byte, "looking for beginning of object key string")),
            }
            let key = self.string()?;
            self.blanks();
            match self.rest.first() {
                None => return Err(ended()),
                Some(b':') => self.skip(),
                Some(byte) => return Err(invalid(*byte, "after object key")),
            }
            map.insert(key, self.value(depth + 1)?);
            if self.closes_or_goes_on(b'}', "after object key:value pair")? {
                return Ok(Value::Map(map));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Outcome<Value> {
        self.skip();
        let mut items = Vec::new();
        if self.closes(b']')? {
            return Ok(Value::List(List::new(items)));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.closes_or_goes_on(b']', "after array element")? {
                return Ok(Value::List(List::new(items)));
            }
        }
    }

    fn closes(&mut self, bracket: u8) -> Outcome<bool> {
        self.blanks();
        let closes = *self.rest.first().ok_or_else(ended)? == bracket;
        if closes {
            self.skip();
        }
        Ok(closes)
    }

    fn closes_or_goes_on(&mut self, bracket: u8, context: &str) -> Outcome<bool> {
        self.blanks();
        let byte = *self.rest.first().ok_or_else(ended)?;
        if byte != bracket && byte != b',' {
            return Err(invalid(byte, context));
        }
        self.skip();
        Ok(byte == bracket)
    }

    fn literal(&mut self, word: &str, value: Value) -> Outcome<Value> {
        for expected in word.bytes() {
            let byte = self.byte_or_end();
            if byte != expected {
                let context = format!("in literal {word} (expecting {})", shown(expected));
                return Err(invalid(byte, &context));
            }
            self.skip();
        }
        Ok(value)
    }

    fn number(&mut self) -> Outcome<Value> {
        let start = self.text.len() - self.rest.len();
        if self.rest.first() == Some(&b'-') {
            self.skip();
        }
        if self.rest.first() == Some(&b'0') {
            self.skip();
        } else {
            self.digits("in numeric literal")?;
        }
        if self.rest.first() == Some(&b'.') {
            self.skip();
            self.digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.rest.first() {
            self.skip();
            if let Some(b'+' | b'-') = self.rest.first() {
                self.skip();
            }
            self.digits("in exponent of numeric literal")?;
        }
        let text = &self.text[start..self.text.len() - self.rest.len()];
        Ok(float::parse(text).map(Value::Float).unwrap_or_else(|| {
            let complaint = || format!("json: cannot unmarshal number {text} into Go value of type float64");
            self.misfit.get_or_insert_with(complaint);
            Value::Nil
        }))
    }

    fn digits(&mut self, context: &str) -> Outcome<()> {
        let byte = self.byte_or_end();
        if !byte.is_ascii_digit() {
            return Err(invalid(byte, context));
        }
        while self.rest.first().is_some_and(u8::is_ascii_digit) {
            self.skip();
        }
        Ok(())
    }

    fn string(&mut self) -> Outcome<Arc<str>> {
        self.skip();
        let mut out = String::new();
        loop {
            let plain = self.rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..b' '));
            let length = plain.ok_or_else(ended)?;
            let start = self.text.len() - self.rest.len();
            out.push_str(&self.text[start..start + length]);
            let byte = self.rest[length];
            self.rest = &self.rest[length + 1..];
            match byte {
                b'"' => {
                    self.budget.bytes(out.len()).map_err(Refused::TooMuch)?;
                    return Ok(out.into());
                }
                b'\\' => out.push(self.escape()?),
                _ => return Err(invalid(byte, "in string literal")),
            }
        }
    }

    fn escape(&mut self) -> Outcome<char> {
        let byte = *self.rest.first().ok_or_else(ended)?;
        self.skip();
        Ok(match byte {
            b'"' | b'\\' | b'/' => byte as char,
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.four_digits()?;
                char::from_u32(first).unwrap_or_else(|| self.pair(first))
            }
            _ => return Err(invalid(byte, "in string escape code")),
        })
    }

    /// The character half of which was read; the other half is taken only if it is one.
    fn pair(&mut self, first: u32) -> char {
        let second = self.rest.strip_prefix(b"\\u").and_then(|rest| {
            let digits = std::str::from_utf8(rest.get(..4)?).ok()?;
            u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
        });
        match (first, second) {
            (0xd800..0xdc00, Some(second @ 0xdc00..0xe000)) => {
                self.rest = &self.rest[6..];
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                char::from_u32(code).unwrap_or('\u{fffd}')
            }
            _ => '\u{fffd}',
        }
    }

    fn four_digits(&mut self) -> Outcome<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let byte = *self.rest.first().ok_or_else(ended)?;
            let Some(digit) = (byte as char).to_digit(16) else {
                return Err(invalid(byte, "in \\u hexadecimal character escape"));
            };
            code = code * 16 + digit;
            self.skip();
        }
        Ok(code)
    }

    fn blanks(&mut self) {
        let length = self.rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
        self.rest = &self.rest[length..];
    }

    /// Go lets a blank follow the end, which is what its complaints then name.
    fn byte_or_end(&self) -> u8 {
        self.rest.first().copied().unwrap_or(b' ')
    }

    fn skip(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }
}

fn ended() -> Refused {
    Refused::Syntax("unexpected end of JSON input".to_owned())
}

fn invalid(byte: u8, context: &str) -> Refused {
    Refused::Syntax(format!("invalid character {} {context}", shown(byte)))
}

/// A byte as Go's complaints show it: as the character of that number.
fn shown(byte: u8) -> String {
    quote::quoted_char(byte as char, false)
}
