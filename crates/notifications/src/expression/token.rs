//! The words and signs of an expression.

/// One word or sign.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Name(String),
    Text(String),
    Int(i64),
    Float(f64),
    Sign(&'static str),
}

/// What cannot be read or evaluated, and where, in characters from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) why: String,
}

/// Longer signs first.
const SIGNS: [&str; 31] = [
    "&&", "||", "==", "!=", "<=", ">=", "??", "?.", "..", "(", ")", "[", "]", "{", "}", ",", ":", "?", ".",
    "<", ">", "!", "+", "-", "*", "/", "%", "#", "|", ";", "=",
];

impl Fault {
    pub(super) fn new(at: usize, why: impl Into<String>) -> Fault {
        Fault { at, why: why.into() }
    }
}

impl Token {
    /// As an error shows it.
    pub(super) fn shown(&self) -> String {
        match self {
            Token::Name(name) => format!("{name:?}"),
            Token::Text(text) => format!("the text {:?}", text.chars().take(20).collect::<String>()),
            Token::Int(number) => number.to_string(),
            Token::Float(number) => number.to_string(),
            Token::Sign(sign) => format!("{sign:?}"),
        }
    }
}

/// Cuts a text into words and signs.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, Fault> {
    let text: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&char) = text.get(at) {
        let start = at;
        let token = match char {
            char if char.is_whitespace() => {
                at += 1;
                continue;
            }
            '/' if text.get(at + 1) == Some(&'/') => {
                at += text[at..].iter().take_while(|char| **char != '\n').count();
                continue;
            }
            '/' if text.get(at + 1) == Some(&'*') => {
                at = comment_end(&text, at)?;
                continue;
            }
            '"' | '\'' | '`' => Token::Text(quoted(&text, &mut at)?),
            '0'..='9' => number(&text, &mut at)?,
            '.' if text.get(at + 1).is_some_and(char::is_ascii_digit) && !follows_operand(&tokens) => {
                number(&text, &mut at)?
            }
            char if char.is_alphabetic() || char == '_' || char == '$' => {
                let is_part = |char: &char| char.is_alphanumeric() || matches!(char, '_' | '$');
                let name: String = text[at..].iter().copied().take_while(|char| is_part(char)).collect();
                at += name.chars().count();
                Token::Name(name)
            }
            _ => Token::Sign(sign(&text, &mut at)?),
        };
        tokens.push((start, token));
    }
    Ok(tokens)
}

/// Whether what came last can have a field: `a.5` is none, `[.5]` is a number.
fn follows_operand(tokens: &[(usize, Token)]) -> bool {
    match tokens.last() {
        None => false,
        Some((_, Token::Sign(sign))) => matches!(*sign, ")" | "]" | "}" | "#"),
        Some(_) => true,
    }
}

fn comment_end(text: &[char], at: usize) -> Result<usize, Fault> {
    let end = text[at + 2..].windows(2).position(|pair| pair == ['*', '/']);
    end.map(|end| at + 2 + end + 2).ok_or_else(|| Fault::new(at, "a comment has no end"))
}

fn sign(text: &[char], at: &mut usize) -> Result<&'static str, Fault> {
    let here: String = text[*at..].iter().take(2).collect();
    let Some(sign) = SIGNS.into_iter().find(|sign| here.starts_with(sign)) else {
        let char = here.chars().next().unwrap_or_default();
        return Err(Fault::new(*at, format!("the character {char:?} means nothing here")));
    };
    // `a ?.5 : b` is a condition and a number.
    let digit_follows = text.get(*at + 2).is_some_and(char::is_ascii_digit);
    let sign = if sign == "?." && digit_follows { "?" } else { sign };
    *at += sign.len();
    Ok(sign)
}

fn quoted(text: &[char], at: &mut usize) -> Result<String, Fault> {
    let start = *at;
    let quote = text[start];
    let mut out = String::new();
    *at += 1;
    loop {
        let Some(&char) = text.get(*at) else { return Err(Fault::new(start, "a text has no end")) };
        *at += 1;
        match char {
            char if char == quote => return Ok(out),
            '\\' if quote != '`' => out.push(escaped(text, at)?),
            '\n' if quote != '`' => return Err(Fault::new(start, "a text has no end on its line")),
            char => out.push(char),
        }
    }
}

fn escaped(text: &[char], at: &mut usize) -> Result<char, Fault> {
    let wrong = |at: usize| Fault::new(at - 1, "this is no escape; write \\\\ for a backslash");
    let char = *text.get(*at).ok_or_else(|| wrong(*at))?;
    *at += 1;
    let digits = match char {
        'n' => return Ok('\n'),
        't' => return Ok('\t'),
        'r' => return Ok('\r'),
        'a' => return Ok('\u{7}'),
        'b' => return Ok('\u{8}'),
        'f' => return Ok('\u{c}'),
        'v' => return Ok('\u{b}'),
        '\\' | '\'' | '"' | '`' => return Ok(char),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => return Err(wrong(*at - 1)),
    };
    let code: String = text[*at..].iter().take(digits).collect();
    let scalar =
        u32::from_str_radix(&code, 16).ok().filter(|_| code.len() == digits).and_then(char::from_u32);
    let scalar = scalar.ok_or_else(|| wrong(*at - 1))?;
    *at += digits;
    Ok(scalar)
}

fn number(text: &[char], at: &mut usize) -> Result<Token, Fault> {
    let start = *at;
    let wrong = || Fault::new(start, "this is no number");
    if text[start] == '0' && matches!(text.get(start + 1), Some('x' | 'X')) {
        let digits: String = text[start + 2..].iter().take_while(|char| char.is_ascii_hexdigit()).collect();
        *at += 2 + digits.len();
        return i64::from_str_radix(&digits, 16).map(Token::Int).map_err(|_| wrong());
    }
    let mut digits = String::new();
    let mut is_float = false;
    while let Some(&char) = text.get(*at) {
        let next = text.get(*at + 1);
        match char {
            '0'..='9' => digits.push(char),
            '_' => {}
            // Two of them are a range, and `1.x` is no number with a field.
            '.' if !is_float && next.is_some_and(char::is_ascii_digit) => {
                is_float = true;
                digits.push(char);
            }
            'e' | 'E' if next.is_some_and(|next| next.is_ascii_digit() || matches!(next, '+' | '-')) => {
                is_float = true;
                digits.extend(['e', *next.unwrap_or(&'0')]);
                *at += 1;
            }
            _ => break,
        }
        *at += 1;
    }
    if text.get(*at).is_some_and(|char| char.is_alphanumeric()) {
        return Err(wrong());
    }
    match is_float {
        true => digits.parse().map(Token::Float).map_err(|_| wrong()),
        false => digits.parse().map(Token::Int).map_err(|_| wrong()),
    }
}
