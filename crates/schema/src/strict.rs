//! Reading JSON the way a Kubernetes server does: Go's number rules and error texts, bounded nesting, and a record
//! of keys that occur twice.

use serde_json::{Map, Number, Value};

/// Deepest nesting a server should accept. Go stops at 10,000; a document that deep is an attack, and everything
/// that later walks the value recurses.
pub const DEEPEST: usize = 512;

/// Most duplicates reported for one document.
const MOST_DUPLICATES: usize = 100;

/// A document that is not JSON, or nested too deeply. The text is Go's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    /// What is wrong.
    pub message: String,
    /// How many bytes were read before it showed.
    pub offset: usize,
}

/// The paths of keys that occur more than once, such as `spec.replicas`; empty for a document that does not parse.
pub fn duplicate_fields(json: &[u8]) -> Vec<String> {
    parse(json, DEEPEST).map(|(_, duplicates)| duplicates).unwrap_or_default()
}

/// Parses one JSON document and returns it with the paths of its duplicate keys (the last one wins).
///
/// # Errors
/// Text that is not JSON, trailing text, a number beyond a 64-bit float, or nesting deeper than `max_depth`.
/// The stack used does not depend on the input; dropping a value recurses, so keep `max_depth` near [`DEEPEST`].
pub fn parse(json: &[u8], max_depth: usize) -> Result<(Value, Vec<String>), ParseError> {
    let mut parser = Parser { text: json, at: 0, open: Vec::new(), duplicates: Vec::new(), max_depth };
    let value = parser.document()?;
    Ok((value, parser.duplicates))
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    open: Vec<Container>,
    duplicates: Vec<String>,
    max_depth: usize,
}

/// A container whose end has not been read yet.
enum Container {
    Object { fields: Map<String, Value>, key: String },
    Array(Vec<Value>),
}

impl Parser<'_> {
    fn document(&mut self) -> Result<Value, ParseError> {
        loop {
            // Either a finished value, or the opening of a container whose first member comes next.
            let Some(mut value) = self.value()? else { continue };
            loop {
                match self.open.pop() {
                    None => {
                        self.skip_space();
                        if self.peek().is_some() {
                            return Err(self.unexpected("after top-level value"));
                        }
                        return Ok(value);
                    }
                    Some(Container::Array(mut items)) => {
                        items.push(value);
                        self.skip_space();
                        match self.peek() {
                            Some(b',') => {
                                self.at += 1;
                                self.open.push(Container::Array(items));
                                break;
                            }
                            Some(b']') => {
                                self.at += 1;
                                value = Value::Array(items);
                            }
                            _ => return Err(self.unexpected("after array element")),
                        }
                    }
                    Some(Container::Object { mut fields, key }) => {
                        fields.insert(key, value);
                        self.skip_space();
                        match self.peek() {
                            Some(b',') => {
                                self.at += 1;
                                self.skip_space();
                                self.member(fields)?;
                                break;
                            }
                            Some(b'}') => {
                                self.at += 1;
                                value = Value::Object(fields);
                            }
                            _ => return Err(self.unexpected("after object key:value pair")),
                        }
                    }
                }
            }
        }
    }

    /// A scalar or empty container; `None` when a container was opened.
    fn value(&mut self) -> Result<Option<Value>, ParseError> {
        self.skip_space();
        let value = match self.peek() {
            Some(b'{') => {
                self.enter()?;
                if self.peek() == Some(b'}') {
                    self.at += 1;
                    return Ok(Some(Value::Object(Map::new())));
                }
                self.member(Map::new())?;
                return Ok(None);
            }
            Some(b'[') => {
                self.enter()?;
                if self.peek() == Some(b']') {
                    self.at += 1;
                    return Ok(Some(Value::Array(Vec::new())));
                }
                self.open.push(Container::Array(Vec::new()));
                return Ok(None);
            }
            Some(b'"') => Value::String(self.string()?),
            Some(b't') => self.literal("true", Value::Bool(true))?,
            Some(b'f') => self.literal("false", Value::Bool(false))?,
            Some(b'n') => self.literal("null", Value::Null)?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => return Err(self.unexpected("looking for beginning of value")),
        };
        Ok(Some(value))
    }

    fn enter(&mut self) -> Result<(), ParseError> {
        if self.open.len() >= self.max_depth {
            return Err(self.unexpected("exceeded max depth"));
        }
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    /// Reads `"key":` and leaves the object open at it.
    fn member(&mut self, fields: Map<String, Value>) -> Result<(), ParseError> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("looking for beginning of object key string"));
        }
        let key = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.unexpected("after object key"));
        }
        self.at += 1;
        let repeated = fields.contains_key(&key);
        self.open.push(Container::Object { fields, key });
        if repeated && self.duplicates.len() < MOST_DUPLICATES {
            let path = self.path();
            if !self.duplicates.contains(&path) {
                self.duplicates.push(path);
            }
        }
        Ok(())
    }

    fn path(&self) -> String {
        let mut path = String::new();
        for container in &self.open {
            match container {
                Container::Object { key, .. } => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(key);
                }
                Container::Array(items) => path.push_str(&format!("[{}]", items.len())),
            }
        }
        path
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Value, ParseError> {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                return Err(
                    self.unexpected(&format!("in literal {word} (expecting '{}')", char::from(expected)))
                );
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn number(&mut self) -> Result<Value, ParseError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.unexpected("in numeric literal")),
        }
        let mut whole = true;
        if self.peek() == Some(b'.') {
            whole = false;
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            whole = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        // Go's unstructured decoder: int64 where it fits, float64 otherwise.
        if whole && let Ok(number) = text.parse::<i64>() {
            return Ok(Value::from(number));
        }
        let too_large =
            || self.error(format!("json: cannot unmarshal number {text} into Go value of type float64"));
        let number = text.parse::<f64>().map_err(|_| too_large())?;
        // Go writes a whole float without a fraction, so `3.0` comes back as `3`.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if number.fract() == 0.0 && number.abs() < EXACT && number != 0.0 {
            return Ok(Value::from(number as i64));
        }
        Number::from_f64(number).map(Value::Number).ok_or_else(too_large)
    }

    fn some_digits(&mut self, context: &str) -> Result<(), ParseError> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.unexpected(context));
        }
        self.digits();
        Ok(())
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn string(&mut self) -> Result<String, ParseError> {
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let start = self.at;
            while self.peek().is_some_and(|byte| byte != b'"' && byte != b'\\' && byte >= 0x20) {
                self.at += 1;
            }
            bytes.extend_from_slice(&self.text[start..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    break;
                }
                Some(b'\\') => {
                    self.at += 1;
                    let character = self.escape()?;
                    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                _ => return Err(self.unexpected("in string literal")),
            }
        }
        // Go replaces what is not UTF-8.
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    fn escape(&mut self) -> Result<char, ParseError> {
        let character = match self.peek() {
            Some(plain @ (b'"' | b'\\' | b'/')) => char::from(plain),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode_escape();
            }
            _ => return Err(self.unexpected("in string escape code")),
        };
        self.at += 1;
        Ok(character)
    }

    /// A surrogate without its partner becomes U+FFFD, as in Go.
    fn unicode_escape(&mut self) -> Result<char, ParseError> {
        let first = self.four_hex_digits()?;
        if (0xD800..0xDC00).contains(&first) && self.text[self.at..].starts_with(b"\\u") {
            let back = self.at;
            self.at += 2;
            let second = self.four_hex_digits()?;
            if (0xDC00..0xE000).contains(&second) {
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = back;
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn four_hex_digits(&mut self) -> Result<u32, ParseError> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.unexpected("in \\u hexadecimal character escape"));
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn unexpected(&self, context: &str) -> ParseError {
        let Some(byte) = self.peek() else { return self.error("unexpected end of JSON input") };
        let shown = match byte {
            b'\'' => "'\\''".to_owned(),
            b'"' => "'\"'".to_owned(),
            b'\\' => "'\\\\'".to_owned(),
            b'\n' => "'\\n'".to_owned(),
            b'\r' => "'\\r'".to_owned(),
            b'\t' => "'\\t'".to_owned(),
            0..0x20 | 0x7f => format!("'\\x{byte:02x}'"),
            0x80..0xa0 => format!("'\\u{byte:04x}'"),
            _ => format!("'{}'", char::from(byte)),
        };
        self.error(format!("invalid character {shown} {context}"))
    }

    fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError { message: message.into(), offset: self.at }
    }
}
