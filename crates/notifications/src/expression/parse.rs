//! Reading expressions: a Pratt parser over the binding strengths of expr-lang.

use std::collections::BTreeSet;

use super::functions::{Closure, Function};
use super::token::{Fault, Token, tokens};

/// Deepest nesting of an expression, in text and as a tree. Evaluating and dropping take stack for each level.
const DEEPEST: usize = 96;

/// An expression, with the place it begins at.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) at: usize,
    pub(super) kind: Kind,
    /// Levels below and including this one.
    depth: usize,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    /// A variable.
    Name(String),
    /// The element a predicate looks at.
    Element,
    /// `a.b` and `a[b]`; with `?.`, nil instead of an error where there is no `a`.
    Member {
        of: Box<Node>,
        key: Box<Node>,
        optional: bool,
    },
    /// The end of a chain of members, where what `?.` skipped is nil.
    Chain(Box<Node>),
    Not(Box<Node>),
    Negative(Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    Conditional(Box<Node>, Box<Node>, Box<Node>),
    /// `len(a)`
    Call(Function, Vec<Node>),
    /// `any(a, {…})`
    Over(Closure, Box<Node>, Box<Node>),
    /// `time.Now()`, `a.Sub(b)`
    Method {
        of: Box<Node>,
        name: String,
        arguments: Vec<Node>,
        optional: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Matches,
    Contains,
    StartsWith,
    EndsWith,
    Range,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Otherwise,
}

/// How strongly `not` and `!` bind: more than comparisons, less than `??`.
const NOT: u16 = 50;
/// How strongly a sign before a number binds.
const MINUS: u16 = 90;

pub(super) fn parse(text: &str) -> Result<Node, Fault> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens, at: 0, end: text.chars().count(), open: 0, predicates: 0 };
    let root = parser.expression(0)?;
    match parser.tokens.get(parser.at) {
        None => Ok(root),
        Some((place, token)) => Err(Fault::new(*place, format!("{} is not expected here", token.shown()))),
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    at: usize,
    end: usize,
    /// Expressions inside each other that are being read.
    open: usize,
    /// Predicates inside each other that are being read.
    predicates: usize,
}

// === impl Node ===

impl Node {
    fn new(at: usize, kind: Kind) -> Result<Node, Fault> {
        let depth = 1 + kind.parts().map(|part| part.depth).max().unwrap_or(0);
        if depth > DEEPEST {
            // Not dropped by recursion deeper than the bound: each level was refused when it was made.
            return Err(Fault::new(at, format!("the expression is nested deeper than {DEEPEST}")));
        }
        Ok(Node { at, kind, depth })
    }

    pub(super) fn collect_names<'n>(&'n self, names: &mut BTreeSet<&'n str>) {
        if let Kind::Name(name) = &self.kind {
            names.insert(name);
        }
        self.kind.parts().for_each(|part| part.collect_names(names));
    }
}

// === impl Kind ===

impl Kind {
    fn parts(&self) -> Box<dyn Iterator<Item = &Node> + '_> {
        match self {
            Kind::List(items) | Kind::Call(_, items) => Box::new(items.iter()),
            Kind::Map(entries) => Box::new(entries.iter().flat_map(|(key, value)| [key, value])),
            Kind::Member { of, key, .. } => Box::new([&**of, &**key].into_iter()),
            Kind::Chain(inner) | Kind::Not(inner) | Kind::Negative(inner) => {
                Box::new(std::iter::once(&**inner))
            }
            Kind::Binary(_, left, right) | Kind::Over(_, left, right) => {
                Box::new([&**left, &**right].into_iter())
            }
            Kind::Conditional(a, b, c) => Box::new([&**a, &**b, &**c].into_iter()),
            Kind::Method { of, arguments, .. } => Box::new(std::iter::once(&**of).chain(arguments)),
            Kind::Nil
            | Kind::Bool(_)
            | Kind::Int(_)
            | Kind::Float(_)
            | Kind::Text(_)
            | Kind::Name(_)
            | Kind::Element => Box::new(std::iter::empty()),
        }
    }
}

// === impl Operator ===

impl Operator {
    fn read(token: &Token) -> Option<(Operator, u16)> {
        let word = match token {
            Token::Name(name) => name.as_str(),
            Token::Sign(sign) => sign,
            _ => return None,
        };
        Some(match word {
            "or" | "||" => (Operator::Or, 10),
            "and" | "&&" => (Operator::And, 15),
            "==" => (Operator::Equal, 20),
            "!=" => (Operator::NotEqual, 20),
            "<" => (Operator::Less, 20),
            "<=" => (Operator::LessOrEqual, 20),
            ">" => (Operator::Greater, 20),
            ">=" => (Operator::GreaterOrEqual, 20),
            "in" => (Operator::In, 20),
            "matches" => (Operator::Matches, 20),
            "contains" => (Operator::Contains, 20),
            "startsWith" => (Operator::StartsWith, 20),
            "endsWith" => (Operator::EndsWith, 20),
            ".." => (Operator::Range, 25),
            "+" => (Operator::Add, 30),
            "-" => (Operator::Subtract, 30),
            "*" => (Operator::Multiply, 60),
            "/" => (Operator::Divide, 60),
            "%" => (Operator::Remainder, 60),
            "??" => (Operator::Otherwise, 500),
            _ => return None,
        })
    }

    /// Whether `not` may stand before it.
    fn may_be_negated(self) -> bool {
        matches!(
            self,
            Operator::In | Operator::Matches | Operator::Contains | Operator::StartsWith | Operator::EndsWith
        )
    }
}

// === impl Parser ===

impl Parser {
    /// An expression whose operators bind at least so strongly.
    fn expression(&mut self, least: u16) -> Result<Node, Fault> {
        self.open += 1;
        if self.open > DEEPEST {
            return Err(Fault::new(self.place(), format!("the expression is nested deeper than {DEEPEST}")));
        }
        let mut left = self.operand()?;
        while let Some((operator, strength, negated)) = self.operator() {
            if strength < least {
                break;
            }
            let at = self.place();
            self.at += if negated { 2 } else { 1 };
            let right = self.expression(strength + 1)?;
            left = Node::new(at, Kind::Binary(operator, Box::new(left), Box::new(right)))?;
            if negated {
                left = Node::new(at, Kind::Not(Box::new(left)))?;
            }
        }
        if least == 0 {
            left = self.conditional(left)?;
        }
        self.open -= 1;
        Ok(left)
    }

    fn conditional(&mut self, condition: Node) -> Result<Node, Fault> {
        let at = self.place();
        if !self.take("?") {
            return Ok(condition);
        }
        let yes = self.expression(0)?;
        self.expect(":")?;
        let no = self.expression(0)?;
        Node::new(at, Kind::Conditional(Box::new(condition), Box::new(yes), Box::new(no)))
    }

    /// The operator that comes next, and whether a `not` comes before it.
    fn operator(&self) -> Option<(Operator, u16, bool)> {
        let token = self.peek()?;
        if *token == Token::Name("not".to_owned()) {
            let (operator, strength) = Operator::read(&self.tokens.get(self.at + 1)?.1)?;
            return operator.may_be_negated().then_some((operator, strength, true));
        }
        Operator::read(token).map(|(operator, strength)| (operator, strength, false))
    }

    fn operand(&mut self) -> Result<Node, Fault> {
        let at = self.place();
        if self.take("!") || self.take_word("not") {
            let inner = self.expression(NOT)?;
            return Node::new(at, Kind::Not(Box::new(inner)));
        }
        if self.take("-") {
            let inner = self.expression(MINUS)?;
            return Node::new(at, Kind::Negative(Box::new(inner)));
        }
        if self.take("+") {
            return self.expression(MINUS);
        }
        let first = self.primary()?;
        self.postfix(first)
    }

    fn primary(&mut self) -> Result<Node, Fault> {
        let at = self.place();
        let Some(token) = self.peek().cloned() else {
            return Err(Fault::new(self.end, "the expression ends too soon"));
        };
        self.at += 1;
        let kind = match token {
            Token::Int(number) => Kind::Int(number),
            Token::Float(number) => Kind::Float(number),
            Token::Text(text) => Kind::Text(text),
            Token::Name(name) => return self.named(at, name),
            Token::Sign("(") => {
                let inner = self.expression(0)?;
                self.expect(")")?;
                return Ok(inner);
            }
            Token::Sign("[") => Kind::List(self.listed("]")?),
            Token::Sign("{") => Kind::Map(self.entries()?),
            Token::Sign("#") if self.predicates > 0 => Kind::Element,
            Token::Sign("#") => {
                return Err(Fault::new(at, "# is known only in a predicate, as in any(list, {# > 1})"));
            }
            // `.x` in a predicate is a field of the element.
            Token::Sign(".") if self.predicates > 0 => {
                self.at -= 1;
                Kind::Element
            }
            other => return Err(Fault::new(at, format!("{} is not expected here", other.shown()))),
        };
        Node::new(at, kind)
    }

    fn named(&mut self, at: usize, name: String) -> Result<Node, Fault> {
        let kind = match name.as_str() {
            "true" => Kind::Bool(true),
            "false" => Kind::Bool(false),
            "nil" => Kind::Nil,
            word if word == "not" || Operator::read(&Token::Name(name.clone())).is_some() => {
                return Err(Fault::new(
                    at,
                    format!("{name:?} is an operator, and something is missing before it"),
                ));
            }
            _ if self.take("(") => return self.call(at, &name),
            _ => Kind::Name(name),
        };
        Node::new(at, kind)
    }

    fn call(&mut self, at: usize, name: &str) -> Result<Node, Fault> {
        if let Some(closure) = Closure::named(name) {
            let list = self.expression(0)?;
            self.expect(",")?;
            let predicate = self.predicate()?;
            self.expect(")")?;
            return Node::new(at, Kind::Over(closure, Box::new(list), Box::new(predicate)));
        }
        let Some(function) = Function::named(name) else {
            return Err(Fault::new(at, format!("there is no function {name}")));
        };
        let arguments = self.listed(")")?;
        if !function.takes(arguments.len()) {
            let count = arguments.len();
            return Err(Fault::new(at, format!("{name} does not take {count} arguments")));
        }
        Node::new(at, Kind::Call(function, arguments))
    }

    fn predicate(&mut self) -> Result<Node, Fault> {
        self.predicates += 1;
        let braced = self.take("{");
        let predicate = self.expression(0)?;
        if braced {
            self.expect("}")?;
        }
        self.predicates -= 1;
        Ok(predicate)
    }

    /// Fields, elements and methods after an operand.
    fn postfix(&mut self, first: Node) -> Result<Node, Fault> {
        let mut node = first;
        let mut optional_seen = false;
        loop {
            let at = self.place();
            let optional = match self.peek() {
                Some(Token::Sign(".")) => false,
                Some(Token::Sign("?.")) => true,
                Some(Token::Sign("[")) => {
                    self.at += 1;
                    let key = self.expression(0)?;
                    self.expect("]")?;
                    node = member(at, node, key, false)?;
                    continue;
                }
                _ => break,
            };
            self.at += 1;
            optional_seen |= optional;
            if optional && self.take("[") {
                let key = self.expression(0)?;
                self.expect("]")?;
                node = member(at, node, key, true)?;
                continue;
            }
            let place = self.place();
            let name = match self.peek() {
                Some(Token::Name(name)) => name.clone(),
                Some(other) => {
                    return Err(Fault::new(place, format!("{} is no name of a field", other.shown())));
                }
                None => {
                    return Err(Fault::new(
                        self.end,
                        "the expression ends where the name of a field belongs",
                    ));
                }
            };
            self.at += 1;
            node = if self.take("(") {
                let arguments = self.listed(")")?;
                Node::new(place, Kind::Method { of: Box::new(node), name, arguments, optional })?
            } else {
                let key = Node::new(place, Kind::Text(name))?;
                member(at, node, key, optional)?
            };
        }
        if optional_seen { Node::new(node.at, Kind::Chain(Box::new(node))) } else { Ok(node) }
    }

    /// Expressions separated by commas, up to a closing sign. The last comma may stand alone.
    fn listed(&mut self, close: &'static str) -> Result<Vec<Node>, Fault> {
        let mut items = Vec::new();
        while !self.take(close) {
            if !items.is_empty() {
                self.expect(",")?;
                if self.take(close) {
                    break;
                }
            }
            items.push(self.expression(0)?);
        }
        Ok(items)
    }

    fn entries(&mut self) -> Result<Vec<(Node, Node)>, Fault> {
        let mut entries = Vec::new();
        while !self.take("}") {
            if !entries.is_empty() {
                self.expect(",")?;
                if self.take("}") {
                    break;
                }
            }
            let key = self.key()?;
            self.expect(":")?;
            entries.push((key, self.expression(0)?));
        }
        Ok(entries)
    }

    /// The key of a map: a word, a text, a number, or an expression in parentheses.
    fn key(&mut self) -> Result<Node, Fault> {
        let at = self.place();
        if self.take("(") {
            let key = self.expression(0)?;
            self.expect(")")?;
            return Ok(key);
        }
        let name = match self.peek() {
            Some(Token::Name(name) | Token::Text(name)) => name.clone(),
            Some(Token::Int(number)) => number.to_string(),
            Some(other) => return Err(Fault::new(at, format!("{} is no key of a map", other.shown()))),
            None => return Err(Fault::new(self.end, "a map has no end")),
        };
        self.at += 1;
        Node::new(at, Kind::Text(name))
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    fn place(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |(place, _)| *place)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(next)) if *next == sign);
        self.at += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Name(next)) if next == word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &'static str) -> Result<(), Fault> {
        let place = self.place();
        if self.take(sign) {
            return Ok(());
        }
        match self.peek() {
            Some(other) => Err(Fault::new(place, format!("{sign:?} is missing before {}", other.shown()))),
            None => Err(Fault::new(place, format!("{sign:?} is missing at the end"))),
        }
    }
}

fn member(at: usize, of: Node, key: Node, optional: bool) -> Result<Node, Fault> {
    Node::new(at, Kind::Member { of: Box::new(of), key: Box::new(key), optional })
}
