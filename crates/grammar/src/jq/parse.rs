//! Reading expressions.

use serde_json::Value;

use super::evaluate::Function;

/// Deepest nesting of an expression.
const DEEPEST: usize = 64;

/// An expression. Lists and trees of them are bounded by the length and depth of the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    /// `.`
    Identity,
    /// `..`
    Everything,
    /// A value written out.
    Literal(Value),
    /// `a.name`, `a["name"]`, `a[0]`, `a[b]`: what of, and which part.
    Part(Box<Expression>, Box<Expression>),
    /// `a[]`
    Each(Box<Expression>),
    /// `a[b:c]`
    Slice(Box<Expression>, Option<Box<Expression>>, Option<Box<Expression>>),
    /// `a?`
    Try(Box<Expression>),
    /// `a | b`
    Pipe(Box<Expression>, Box<Expression>),
    /// `a, b`
    Both(Box<Expression>, Box<Expression>),
    /// `a // b`
    Otherwise(Box<Expression>, Box<Expression>),
    /// `a and b`, `a == b` and the like.
    Binary(Operator, Box<Expression>, Box<Expression>),
    /// `[a]`
    Collect(Option<Box<Expression>>),
    /// `if a then b else c end`
    If(Box<Expression>, Box<Expression>, Option<Box<Expression>>),
    /// `name(a; b)`
    Call(Function, Vec<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    And,
    Or,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    /// `.name`
    Field(String),
    Text(String),
    Number(f64),
    Sign(&'static str),
}

type Fault = (usize, String);

pub(super) fn parse(text: &str) -> Result<Expression, Fault> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, end: text.chars().count(), depth: 0 };
    let root = parser.pipe()?;
    match parser.tokens.get(parser.at) {
        None => Ok(root),
        Some((place, token)) => Err((*place, format!("unexpected {}", shown(token)))),
    }
}

/// Longer signs first.
const SIGNS: [&str; 22] = [
    "//", "==", "!=", "<=", ">=", "..", ".", "[", "]", "(", ")", "{", "}", "|", ",", ":", ";", "?", "<", ">",
    "+", "-",
];
const UNSUPPORTED: [&str; 9] =
    ["def", "as", "reduce", "foreach", "try", "label", "import", "include", "limit"];

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, Fault> {
    let text: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&char) = text.get(at) {
        let start = at;
        let is_word = |char: &char| char.is_ascii_alphanumeric() || *char == '_';
        let token = match char {
            ' ' | '\t' | '\r' | '\n' => {
                at += 1;
                continue;
            }
            '$' => return Err((start, "variables are not supported".to_owned())),
            '"' => Token::Text(string(&text, &mut at)?),
            '0'..='9' => Token::Number(number(&text, &mut at)?),
            'a'..='z' | 'A'..='Z' | '_' => {
                let word: String = text[at..].iter().take_while(|char| is_word(char)).collect();
                at += word.len();
                Token::Word(word)
            }
            '.' if text.get(at + 1).is_some_and(|next| next.is_ascii_alphabetic() || *next == '_') => {
                let name: String = text[at + 1..].iter().take_while(|char| is_word(char)).collect();
                at += 1 + name.len();
                Token::Field(name)
            }
            _ => {
                let here: String = text[at..].iter().take(2).collect();
                let sign = SIGNS.into_iter().find(|sign| here.starts_with(sign));
                let Some(sign) = sign else {
                    return Err((start, format!("unexpected {:?}", char.to_string())));
                };
                at += sign.len();
                Token::Sign(sign)
            }
        };
        tokens.push((start, token));
    }
    Ok(tokens)
}

fn string(text: &[char], at: &mut usize) -> Result<String, Fault> {
    let start = *at;
    let mut end = start + 1;
    while let Some(char) = text.get(end) {
        match char {
            '\\' if text.get(end + 1) == Some(&'(') => {
                return Err((end, "interpolation in strings is not supported".to_owned()));
            }
            '\\' => end += 2,
            '"' => {
                let literal: String = text[start..=end].iter().collect();
                *at = end + 1;
                return serde_json::from_str(&literal)
                    .map_err(|_| (start, "a string is malformed".to_owned()));
            }
            _ => end += 1,
        }
    }
    Err((start, "a string has no end".to_owned()))
}

fn number(text: &[char], at: &mut usize) -> Result<f64, Fault> {
    let start = *at;
    let fits = |(index, char): &(usize, &char)| {
        let after_exponent = *index > 0 && matches!(text[start + index - 1], 'e' | 'E');
        char.is_ascii_digit()
            || matches!(char, '.' | 'e' | 'E')
            || (after_exponent && matches!(char, '+' | '-'))
    };
    let literal: String = text[start..].iter().enumerate().take_while(fits).map(|(_, char)| char).collect();
    *at += literal.len();
    literal.parse().map_err(|_| (start, format!("{literal:?} is no number")))
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    at: usize,
    /// Where the text ends.
    end: usize,
    depth: usize,
}

impl Parser {
    fn pipe(&mut self) -> Result<Expression, Fault> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err((self.place(), "the expression is nested too deeply".to_owned()));
        }
        let mut left = self.both()?;
        while self.take("|") {
            left = Expression::Pipe(Box::new(left), Box::new(self.both()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn both(&mut self) -> Result<Expression, Fault> {
        let mut left = self.otherwise()?;
        while self.take(",") {
            left = Expression::Both(Box::new(left), Box::new(self.otherwise()?));
        }
        Ok(left)
    }

    fn otherwise(&mut self) -> Result<Expression, Fault> {
        let mut left = self.or()?;
        while self.take("//") {
            left = Expression::Otherwise(Box::new(left), Box::new(self.or()?));
        }
        Ok(left)
    }

    fn or(&mut self) -> Result<Expression, Fault> {
        let mut left = self.and()?;
        while self.take_word("or") {
            left = Expression::Binary(Operator::Or, Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expression, Fault> {
        let mut left = self.comparison()?;
        while self.take_word("and") {
            left = Expression::Binary(Operator::And, Box::new(left), Box::new(self.comparison()?));
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Expression, Fault> {
        let left = self.sum()?;
        let operators = [
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        for (sign, operator) in operators {
            if self.take(sign) {
                return Ok(Expression::Binary(operator, Box::new(left), Box::new(self.sum()?)));
            }
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Expression, Fault> {
        let mut left = self.postfix()?;
        loop {
            let operator = if self.take("+") {
                Operator::Add
            } else if self.take("-") {
                Operator::Subtract
            } else {
                return Ok(left);
            };
            left = Expression::Binary(operator, Box::new(left), Box::new(self.postfix()?));
        }
    }

    fn postfix(&mut self) -> Result<Expression, Fault> {
        let mut term = self.term()?;
        loop {
            if self.take("[") {
                term = self.brackets(term)?;
            } else if self.take("?") {
                term = Expression::Try(Box::new(term));
            } else if let Some((_, Token::Field(name))) = self.tokens.get(self.at).cloned() {
                self.at += 1;
                term = part(term, name);
            } else if self.is(".") && self.tokens.get(self.at + 1).is_some_and(|(_, next)| is_suffix(next)) {
                self.at += 1;
                term = match self.tokens.get(self.at).cloned() {
                    Some((_, Token::Text(name))) => {
                        self.at += 1;
                        part(term, name)
                    }
                    _ => term,
                };
            } else {
                return Ok(term);
            }
        }
    }

    /// What stands in brackets after a term.
    fn brackets(&mut self, of: Expression) -> Result<Expression, Fault> {
        let of = Box::new(of);
        if self.take("]") {
            return Ok(Expression::Each(of));
        }
        if self.take(":") {
            let to = self.pipe()?;
            self.expect("]")?;
            return Ok(Expression::Slice(of, None, Some(Box::new(to))));
        }
        let index = self.pipe()?;
        if self.take(":") {
            let to = if self.is("]") { None } else { Some(Box::new(self.pipe()?)) };
            self.expect("]")?;
            return Ok(Expression::Slice(of, Some(Box::new(index)), to));
        }
        self.expect("]")?;
        Ok(Expression::Part(of, Box::new(index)))
    }

    fn term(&mut self) -> Result<Expression, Fault> {
        let Some((place, token)) = self.tokens.get(self.at).cloned() else {
            return Err((self.end, "the expression ends too soon".to_owned()));
        };
        self.at += 1;
        match token {
            Token::Sign("..") => Ok(Expression::Everything),
            Token::Sign(".") => match self.tokens.get(self.at).cloned() {
                Some((_, Token::Text(name))) => {
                    self.at += 1;
                    Ok(part(Expression::Identity, name))
                }
                _ => Ok(Expression::Identity),
            },
            Token::Field(name) => Ok(part(Expression::Identity, name)),
            Token::Text(text) => Ok(Expression::Literal(text.into())),
            Token::Number(number) => Ok(Expression::Literal(number.into())),
            Token::Sign("-") => match self.tokens.get(self.at).cloned() {
                Some((_, Token::Number(number))) => {
                    self.at += 1;
                    Ok(Expression::Literal((-number).into()))
                }
                _ => Err((place, "unexpected \"-\"".to_owned())),
            },
            Token::Sign("(") => {
                let inner = self.pipe()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Sign("[") => {
                if self.take("]") {
                    return Ok(Expression::Collect(None));
                }
                let inner = self.pipe()?;
                self.expect("]")?;
                Ok(Expression::Collect(Some(Box::new(inner))))
            }
            Token::Word(word) => self.word(place, &word),
            Token::Sign(sign) => Err((place, format!("unexpected {sign:?}"))),
        }
    }

    fn word(&mut self, place: usize, word: &str) -> Result<Expression, Fault> {
        match word {
            "true" => return Ok(Expression::Literal(Value::Bool(true))),
            "false" => return Ok(Expression::Literal(Value::Bool(false))),
            "null" => return Ok(Expression::Literal(Value::Null)),
            "if" => return self.condition(),
            _ if UNSUPPORTED.contains(&word) => return Err((place, format!("{word} is not supported"))),
            _ => {}
        }
        let mut arguments = Vec::new();
        if self.take("(") {
            arguments.push(self.pipe()?);
            while self.take(";") {
                arguments.push(self.pipe()?);
            }
            self.expect(")")?;
        }
        match Function::named(word, arguments.len()) {
            Some(function) => Ok(Expression::Call(function, arguments)),
            None => Err((place, format!("{word}/{} is not a known function", arguments.len()))),
        }
    }

    fn condition(&mut self) -> Result<Expression, Fault> {
        let test = Box::new(self.pipe()?);
        self.expect_word("then")?;
        let then = Box::new(self.pipe()?);
        if self.take_word("elif") {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err((self.place(), "the expression is nested too deeply".to_owned()));
            }
            let otherwise = self.condition()?;
            self.depth -= 1;
            return Ok(Expression::If(test, then, Some(Box::new(otherwise))));
        }
        let otherwise = if self.take_word("else") { Some(Box::new(self.pipe()?)) } else { None };
        self.expect_word("end")?;
        Ok(Expression::If(test, then, otherwise))
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.tokens.get(self.at), Some((_, Token::Sign(found))) if *found == sign)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        self.at += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some((_, Token::Word(found))) if found == word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), Fault> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn expect_word(&mut self, word: &str) -> Result<(), Fault> {
        if self.take_word(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> Fault {
        match self.tokens.get(self.at) {
            None => (self.end, "the expression ends too soon".to_owned()),
            Some((place, Token::Word(word))) if UNSUPPORTED.contains(&word.as_str()) => {
                (*place, format!("{word} is not supported"))
            }
            Some((place, token)) => (*place, format!("unexpected {}", shown(token))),
        }
    }

    fn place(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |(place, _)| *place)
    }
}

/// What may follow the dot of `a."name"` and `a.[0]`.
fn is_suffix(token: &Token) -> bool {
    matches!(token, Token::Text(_) | Token::Sign("["))
}

fn part(of: Expression, name: String) -> Expression {
    Expression::Part(Box::new(of), Box::new(Expression::Literal(name.into())))
}

fn shown(token: &Token) -> String {
    match token {
        Token::Word(word) => format!("{word:?}"),
        Token::Field(name) => format!("\".{name}\""),
        Token::Text(_) => "a string".to_owned(),
        Token::Number(number) => format!("\"{number}\""),
        Token::Sign(sign) => format!("{sign:?}"),
    }
}
