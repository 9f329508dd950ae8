//! Templates cut into tokens, on demand, so that an error is met where the parser stands.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Error,
    Eof,
    Text,
    LeftDelim,
    RightDelim,
    Field,
    Variable,
    Identifier,
    Keyword,
    Bool,
    Nil,
    Dot,
    Str,
    RawStr,
    Char,
    Number,
    Space,
    Pipe,
    Declare,
    Assign,
    Comma,
    LeftParen,
    RightParen,
    Punct,
}

/// A token: its text, or the message of an error.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) pos: usize,
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl Token {
    /// The token as error messages show it.
    pub(crate) fn shown(&self) -> String {
        match self.kind {
            Kind::Eof => "EOF".to_owned(),
            Kind::Error => self.text.clone(),
            Kind::Keyword | Kind::Dot | Kind::Nil => format!("<{}>", self.text),
            _ if self.text.chars().count() > 10 => {
                format!("{}...", crate::quote::quoted(&self.text.chars().take(10).collect::<String>()))
            }
            _ => crate::quote::quoted(&self.text),
        }
    }
}

const KEYWORDS: [&str; 10] =
    ["block", "break", "continue", "define", "else", "end", "if", "range", "template", "with"];
const TRIMMED: [char; 4] = [' ', '\t', '\r', '\n'];

/// The reader of one template text.
pub(crate) struct Lexer<'a> {
    text: &'a str,
    pos: usize,
    line: usize,
    inside: bool,
    parens: usize,
    failed: bool,
    /// Set by a `-}}`: the text after it starts without its blanks.
    trim_next: bool,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, pos: 0, line: 1, inside: false, parens: 0, failed: false, trim_next: false }
    }

    /// The next token; after the end or an error, the end again.
    pub(crate) fn next(&mut self) -> Token {
        if self.failed {
            return Token { kind: Kind::Eof, pos: self.pos, line: self.line, text: String::new() };
        }
        if self.inside { self.action() } else { self.outside() }
    }

    fn outside(&mut self) -> Token {
        loop {
            if self.trim_next {
                self.trim_next = false;
                let rest = self.rest();
                self.skip(rest.len() - rest.trim_start_matches(TRIMMED).len());
            }
            let rest = self.rest();
            let Some(start) = rest.find("{{") else {
                let kind = if rest.is_empty() { Kind::Eof } else { Kind::Text };
                return self.emit(kind, rest.len());
            };
            let trims = trim_marker_after(&rest[start + 2..]);
            let text = if trims { rest[..start].trim_end_matches(TRIMMED) } else { &rest[..start] };
            if !text.is_empty() {
                return self.emit(Kind::Text, text.len());
            }
            self.skip(start);
            let marker = if trims { 2 } else { 0 };
            if self.rest()[2 + marker..].starts_with("/*") {
                if let Some(error) = self.comment(2 + marker) {
                    return error;
                }
                continue;
            }
            self.inside = true;
            self.parens = 0;
            let token = self.emit(Kind::LeftDelim, 2);
            self.skip(marker);
            return token;
        }
    }

    fn comment(&mut self, opening: usize) -> Option<Token> {
        self.skip(opening);
        let Some(length) = self.rest()[2..].find("*/") else {
            return Some(self.error("unclosed comment"));
        };
        let after = &self.rest()[length + 4..];
        if after.starts_with("}}") {
            self.skip(length + 6);
        } else if closes_with_trim(after) {
            self.skip(length + 8);
            self.trim_next = true;
        } else {
            return Some(self.error("comment ends before closing delimiter"));
        }
        None
    }

    fn action(&mut self) -> Token {
        let rest = self.rest();
        let closing = if rest.starts_with("}}") {
            Some(0)
        } else if closes_with_trim(rest) {
            Some(2)
        } else {
            None
        };
        if let Some(marker) = closing {
            if self.parens > 0 {
                return self.error("unclosed left paren");
            }
            self.skip(marker);
            self.trim_next = marker > 0;
            self.inside = false;
            return self.emit(Kind::RightDelim, 2);
        }
        let Some(first) = rest.chars().next() else {
            return self.error("unclosed action");
        };
        match first {
            ' ' | '\t' | '\r' | '\n' => self.space(),
            '=' => self.emit(Kind::Assign, 1),
            ':' if rest.starts_with(":=") => self.emit(Kind::Declare, 2),
            ':' => self.error("expected :="),
            '|' => self.emit(Kind::Pipe, 1),
            ',' => self.emit(Kind::Comma, 1),
            '"' => self.quoted('"', Kind::Str, "unterminated quoted string"),
            '\'' => self.quoted('\'', Kind::Char, "unterminated character constant"),
            '`' => match rest[1..].find('`') {
                Some(length) => self.emit(Kind::RawStr, length + 2),
                None => self.error("unterminated raw quoted string"),
            },
            '$' => self.named(Kind::Variable),
            '.' if rest.len() > 1 && !rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                self.named(Kind::Field)
            }
            '+' | '-' | '.' | '0'..='9' => self.number(),
            '(' => {
                self.parens += 1;
                self.emit(Kind::LeftParen, 1)
            }
            ')' if self.parens == 0 => self.error("unexpected right paren"),
            ')' => {
                self.parens -= 1;
                self.emit(Kind::RightParen, 1)
            }
            c if is_word(c) => self.identifier(),
            ' '..='~' => self.emit(Kind::Punct, 1),
            c => self.error(&format!("unrecognized character in action: {}", code_point(c))),
        }
    }

    fn space(&mut self) -> Token {
        let rest = self.rest();
        let length = rest.len() - rest.trim_start_matches(TRIMMED).len();
        // The blank before a trim marker belongs to the marker.
        if closes_with_trim(&rest[length - 1..]) {
            if length == 1 {
                return self.action();
            }
            return self.emit(Kind::Space, length - 1);
        }
        self.emit(Kind::Space, length)
    }

    fn quoted(&mut self, quote: char, kind: Kind, unterminated: &str) -> Token {
        let mut escaped = false;
        for (offset, c) in self.rest().char_indices().skip(1) {
            match c {
                '\n' => break,
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                _ if c == quote => return self.emit(kind, offset + 1),
                _ => {}
            }
        }
        self.error(unterminated)
    }

    fn named(&mut self, kind: Kind) -> Token {
        let length = 1 + word_length(&self.rest()[1..]);
        if let Some(bad) = self.bad_terminator(length) {
            return bad;
        }
        let kind = if kind == Kind::Field && length == 1 { Kind::Dot } else { kind };
        self.emit(kind, length)
    }

    fn identifier(&mut self) -> Token {
        let length = word_length(self.rest());
        if let Some(bad) = self.bad_terminator(length) {
            return bad;
        }
        let kind = match &self.rest()[..length] {
            word if KEYWORDS.contains(&word) => Kind::Keyword,
            "true" | "false" => Kind::Bool,
            "nil" => Kind::Nil,
            _ => Kind::Identifier,
        };
        self.emit(kind, length)
    }

    fn bad_terminator(&mut self, length: usize) -> Option<Token> {
        let next = self.rest()[length..].chars().next()?;
        let ends = TRIMMED.contains(&next)
            || matches!(next, '.' | ',' | '|' | ':' | ')' | '(')
            || self.rest()[length..].starts_with("}}");
        (!ends).then(|| {
            self.skip(length);
            self.error(&format!("bad character {}", code_point(next)))
        })
    }

    fn number(&mut self) -> Token {
        let rest = self.rest();
        let (mut length, mut sound) = number_length(rest);
        let complex = sound && rest[length..].starts_with(['+', '-']);
        if complex {
            let (imaginary, ended) = number_length(&rest[length..]);
            length += imaginary;
            sound = ended && rest[..length].ends_with('i');
        }
        let number = &rest[..length];
        if !sound {
            return self.error(&format!("bad number syntax: {}", crate::quote::quoted(number)));
        }
        if complex || number.ends_with('i') {
            return self.error(&format!("complex numbers are not supported: {number}"));
        }
        self.emit(Kind::Number, length)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.pos..]
    }

    fn emit(&mut self, kind: Kind, length: usize) -> Token {
        let text = self.rest()[..length].to_owned();
        let token = Token { kind, pos: self.pos, line: self.line, text };
        self.skip(length);
        token
    }

    fn skip(&mut self, length: usize) {
        self.line += self.rest()[..length].bytes().filter(|b| *b == b'\n').count();
        self.pos += length;
    }

    fn error(&mut self, message: &str) -> Token {
        self.failed = true;
        Token { kind: Kind::Error, pos: self.pos, line: self.line, text: message.to_owned() }
    }
}

fn trim_marker_after(delimiter_rest: &str) -> bool {
    delimiter_rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(TRIMMED))
}

fn closes_with_trim(rest: &str) -> bool {
    rest.strip_prefix(TRIMMED).is_some_and(|rest| rest.starts_with("-}}"))
}

/// How long a number at the start of a text is, and whether it ends there; if not, the character too many is counted.
fn number_length(text: &str) -> (usize, bool) {
    let mut length = usize::from(text.starts_with(['+', '-']));
    let radix = match text[length..].get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => 16,
        Some("0o") => 8,
        Some("0b") => 2,
        _ => 10,
    };
    length += if radix == 10 { 0 } else { 2 };
    let digits = |at: usize, radix| {
        text[at..].bytes().take_while(|b| *b == b'_' || (*b as char).is_digit(radix)).count()
    };
    length += digits(length, radix);
    if text[length..].starts_with('.') {
        length += 1;
        length += digits(length, radix);
    }
    let exponent = if radix == 16 { ['p', 'P'] } else { ['e', 'E'] };
    if matches!(radix, 10 | 16) && text[length..].starts_with(exponent) {
        length += 1;
        length += usize::from(text[length..].starts_with(['+', '-']));
        length += digits(length, 10);
    }
    length += usize::from(text[length..].starts_with('i'));
    match text[length..].chars().next() {
        Some(next) if is_word(next) => (length + next.len_utf8(), false),
        _ => (length, true),
    }
}

fn word_length(text: &str) -> usize {
    text.find(|c| !is_word(c)).unwrap_or(text.len())
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// A character as Go's `%#U` shows it.
fn code_point(c: char) -> String {
    if crate::quote::is_printable(c) {
        format!("U+{:04X} '{c}'", c as u32)
    } else {
        format!("U+{:04X}", c as u32)
    }
}
