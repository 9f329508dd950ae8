//! Tokens put together to trees.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{Branch, Command, Expr, Number, Operand, Pipe, Stmt, Tree};
use crate::builtins;
use crate::float;
use crate::lex::{Kind, Lexer, Token};
use crate::quote;
use crate::value::Value;

/// Parentheses and blocks inside each other; more would only be written to exhaust the stack.
const MAX_NESTING: usize = 150;

/// A template that cannot be compiled; the text names template and line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(pub(crate) String);

type Result<T> = std::result::Result<T, ParseError>;

/// Compiles a text; the tree of the text itself is among the results under its name.
pub(crate) fn parse(name: &str, text: &str) -> Result<BTreeMap<Arc<str>, Tree>> {
    let mut parser = Parser {
        name,
        lexer: Lexer::new(text),
        peeked: Vec::new(),
        line: 1,
        action_line: 0,
        variables: vec![Arc::from("$")],
        loops: 0,
        nesting: 0,
        trees: BTreeMap::new(),
    };
    let body = parser.top_level()?;
    parser.add(Tree { name: Arc::from(name), body })?;
    Ok(parser.trees)
}

struct Parser<'a> {
    name: &'a str,
    lexer: Lexer<'a>,
    /// Tokens put back, last first.
    peeked: Vec<Token>,
    line: usize,
    action_line: usize,
    variables: Vec<Arc<str>>,
    loops: usize,
    nesting: usize,
    trees: BTreeMap<Arc<str>, Tree>,
}

/// What ended a list of statements.
enum End {
    End,
    Else,
}

impl Parser<'_> {
    fn top_level(&mut self) -> Result<Vec<Stmt>> {
        let mut body = Vec::new();
        loop {
            let token = self.next();
            match token.kind {
                Kind::Eof => return Ok(body),
                Kind::LeftDelim => {
                    let word = self.next_non_space();
                    if word.kind == Kind::Keyword && word.text == "define" {
                        self.define()?;
                        continue;
                    }
                    self.put_back(word);
                    match self.action(token.line)? {
                        Ok(stmt) => body.extend(stmt),
                        Err(End::End) => return Err(self.error("unexpected {{end}}")),
                        Err(End::Else) => return Err(self.error("unexpected {{else}}")),
                    }
                }
                _ => body.push(self.text(token)?),
            }
        }
    }

    fn text(&mut self, token: Token) -> Result<Stmt> {
        match token.kind {
            Kind::Text => Ok(Stmt::Text(token.text.into())),
            _ => Err(self.unexpected(&token, "input")),
        }
    }

    fn define(&mut self) -> Result<()> {
        let context = "define clause";
        let name = self.template_name(context)?;
        let close = self.next_non_space();
        if close.kind != Kind::RightDelim {
            return Err(self.unexpected(&close, context));
        }
        // A definition sees none of the variables and loops around it.
        let outer =
            (std::mem::replace(&mut self.variables, vec![Arc::from("$")]), std::mem::take(&mut self.loops));
        let (body, end) = self.list()?;
        (self.variables, self.loops) = outer;
        if let End::Else = end {
            return Err(self.error("unexpected {{else}} in define clause"));
        }
        self.add(Tree { name, body })
    }

    fn add(&mut self, tree: Tree) -> Result<()> {
        let defined = self.trees.get(&tree.name).is_some_and(|existing| !is_blank(existing));
        if defined && is_blank(&tree) {
            return Ok(());
        }
        if defined {
            let name = quote::quoted(&tree.name);
            return Err(self.error(&format!("template: multiple definition of template {name}")));
        }
        self.trees.insert(tree.name.clone(), tree);
        Ok(())
    }

    fn list(&mut self) -> Result<(Vec<Stmt>, End)> {
        self.enter()?;
        let mut body = Vec::new();
        loop {
            let token = self.next_non_space();
            match token.kind {
                Kind::Eof => return Err(self.error("unexpected EOF")),
                Kind::LeftDelim => match self.action(token.line)? {
                    Ok(stmt) => body.extend(stmt),
                    Err(end) => {
                        self.nesting -= 1;
                        return Ok((body, end));
                    }
                },
                _ => body.push(self.text(token)?),
            }
        }
    }

    /// What stands between delimiters: a statement (none for `define`), or the end of the list it stands in.
    fn action(&mut self, line: usize) -> Result<std::result::Result<Option<Stmt>, End>> {
        self.action_line = line;
        let token = self.next_non_space();
        if token.kind != Kind::Keyword {
            self.put_back(token);
            let pipe = self.pipeline("command", Kind::RightDelim)?;
            return Ok(Ok(Some(Stmt::Action(pipe))));
        }
        let stmt = match token.text.as_str() {
            "end" => {
                self.close("end")?;
                return Ok(Err(End::End));
            }
            "else" => {
                let next = self.next_non_space();
                let chained = next.kind == Kind::Keyword && matches!(next.text.as_str(), "if" | "with");
                let closes = next.kind == Kind::RightDelim;
                if chained {
                    self.put_back(next);
                } else if !closes {
                    return Err(self.unexpected(&next, "else"));
                }
                return Ok(Err(End::Else));
            }
            "if" => Stmt::If(self.branch("if")?),
            "with" => Stmt::With(self.branch("with")?),
            "range" => Stmt::Range(self.branch("range")?),
            "template" => self.template()?,
            "block" => self.block()?,
            word @ ("break" | "continue") => {
                let next = self.next_non_space();
                if next.kind != Kind::RightDelim {
                    return Err(self.unexpected(&next, &format!("{{{{{word}}}}}")));
                }
                if self.loops == 0 {
                    return Err(self.error(&format!("{{{{{word}}}}} outside {{{{range}}}}")));
                }
                if word == "break" { Stmt::Break } else { Stmt::Continue }
            }
            _ => {
                return Err(self.unexpected(&token, "command"));
            }
        };
        Ok(Ok(Some(stmt)))
    }

    fn close(&mut self, context: &str) -> Result<()> {
        let token = self.next_non_space();
        if token.kind == Kind::RightDelim { Ok(()) } else { Err(self.unexpected(&token, context)) }
    }

    fn branch(&mut self, context: &str) -> Result<Branch> {
        let outer = self.variables.len();
        let pipe = self.pipeline(context, Kind::RightDelim)?;
        let is_range = context == "range";
        self.loops += usize::from(is_range);
        let (body, end) = self.list()?;
        self.loops -= usize::from(is_range);
        let mut otherwise = Vec::new();
        if let End::Else = end {
            let next = self.peek();
            if next.kind == Kind::Keyword {
                otherwise = self.chained(context, &next)?;
            } else {
                let (list, end) = self.list()?;
                if let End::Else = end {
                    return Err(self.error("expected end; found {{else}}"));
                }
                otherwise = list;
            }
        }
        self.variables.truncate(outer);
        Ok(Branch { pipe, body, otherwise })
    }

    /// `{{else if …}}` and `{{else with …}}`: a branch inside the else part that shares its end.
    fn chained(&mut self, context: &str, next: &Token) -> Result<Vec<Stmt>> {
        if next.text != context {
            return Err(self.unexpected(next, "input"));
        }
        self.next();
        self.enter()?;
        let branch = self.branch(context)?;
        self.nesting -= 1;
        Ok(vec![if context == "if" { Stmt::If(branch) } else { Stmt::With(branch) }])
    }

    fn template(&mut self) -> Result<Stmt> {
        let context = "template clause";
        let pos = self.peek_non_space().pos;
        let name = self.template_name(context)?;
        let next = self.next_non_space();
        let pipe = if next.kind == Kind::RightDelim {
            None
        } else {
            self.put_back(next);
            Some(self.pipeline(context, Kind::RightDelim)?)
        };
        Ok(Stmt::Template { pos, name, pipe })
    }

    fn block(&mut self) -> Result<Stmt> {
        let context = "block clause";
        let token = self.peek_non_space();
        let name = self.template_name(context)?;
        let pipe = self.pipeline(context, Kind::RightDelim)?;
        let outer =
            (std::mem::replace(&mut self.variables, vec![Arc::from("$")]), std::mem::take(&mut self.loops));
        let line = self.line;
        let (body, end) = self.list()?;
        (self.variables, self.loops) = outer;
        if let End::Else = end {
            self.line = line;
            return Err(self.error("unexpected {{else}} in block clause"));
        }
        self.add(Tree { name: name.clone(), body })?;
        Ok(Stmt::Template { pos: token.pos, name, pipe: Some(pipe) })
    }

    fn template_name(&mut self, context: &str) -> Result<Arc<str>> {
        let token = self.next_non_space();
        if !matches!(token.kind, Kind::Str | Kind::RawStr) {
            return Err(self.unexpected(&token, context));
        }
        quote::unquote(&token.text).map(Arc::from).ok_or_else(|| self.error("invalid syntax"))
    }

    fn pipeline(&mut self, context: &str, end: Kind) -> Result<Pipe> {
        let pos = self.peek_non_space().pos;
        let (variables, assigns) = self.declarations(context)?;
        let mut commands = Vec::new();
        loop {
            let token = self.next_non_space();
            match token.kind {
                kind if kind == end => break,
                Kind::Bool
                | Kind::Char
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::RawStr
                | Kind::Str
                | Kind::Variable
                | Kind::LeftParen => {
                    self.put_back(token);
                    commands.push(self.command()?);
                }
                _ => return Err(self.unexpected(&token, context)),
            }
        }
        if commands.is_empty() {
            return Err(self.error(&format!("missing value for {context}")));
        }
        for (index, command) in commands.iter().enumerate().skip(1) {
            if matches!(
                command.operands[0].expr,
                Expr::Bool(_) | Expr::Dot | Expr::Nil | Expr::Number(_) | Expr::Str(..)
            ) {
                let stage = index + 1;
                return Err(self.error(&format!("non executable command in pipeline stage {stage}")));
            }
        }
        Ok(Pipe { pos, assigns, variables, commands })
    }

    fn declarations(&mut self, context: &str) -> Result<(Vec<Arc<str>>, bool)> {
        let mut variables = Vec::new();
        loop {
            let variable = self.next_non_space();
            if variable.kind != Kind::Variable {
                self.put_back(variable);
                return Ok((variables, false));
            }
            let space = self.next();
            let next = if space.kind == Kind::Space { self.next_non_space() } else { space.clone() };
            match next.kind {
                Kind::Declare | Kind::Assign => {
                    let assigns = next.kind == Kind::Assign;
                    variables.push(self.declared(variable));
                    return Ok((variables, assigns));
                }
                Kind::Comma => {
                    variables.push(self.declared(variable));
                    if context != "range" || variables.len() > 1 {
                        return Err(self.error(&format!("too many declarations in {context}")));
                    }
                    let following = self.peek_non_space();
                    if !matches!(following.kind, Kind::Variable | Kind::RightDelim | Kind::RightParen) {
                        return Err(self.error("range can only initialize variables"));
                    }
                }
                _ => {
                    let spaced = space.kind == Kind::Space;
                    self.put_back(next);
                    if spaced {
                        self.put_back(space);
                    }
                    self.put_back(variable);
                    return Ok((variables, false));
                }
            }
        }
    }

    /// Makes a variable known. Go asks neither whether it is assigned to or declared, nor whether what declares it is
    /// ever executed; that comes out in execution.
    fn declared(&mut self, variable: Token) -> Arc<str> {
        let name: Arc<str> = variable.text.into();
        self.variables.push(name.clone());
        name
    }

    fn command(&mut self) -> Result<Command> {
        let mut operands = Vec::new();
        loop {
            let token = self.next_non_space();
            self.put_back(token);
            if let Some(operand) = self.operand()? {
                operands.push(operand);
            }
            let token = self.next();
            match token.kind {
                Kind::Space => continue,
                Kind::RightDelim | Kind::RightParen => self.put_back(token),
                Kind::Pipe => {}
                _ => return Err(self.unexpected(&token, "operand")),
            }
            break;
        }
        if operands.is_empty() {
            return Err(self.error("empty command"));
        }
        Ok(Command { operands })
    }

    fn operand(&mut self) -> Result<Option<Operand>> {
        let Some(mut operand) = self.term()? else {
            return Ok(None);
        };
        let mut names: Vec<Arc<str>> = Vec::new();
        let pos = self.peek().pos;
        while self.peek().kind == Kind::Field {
            names.push(self.next().text[1..].into());
        }
        if names.is_empty() {
            return Ok(Some(operand));
        }
        match &mut operand.expr {
            Expr::Field(first) | Expr::Variable(_, first) => {
                first.extend(names);
                Ok(Some(Operand { pos, ..operand }))
            }
            Expr::Bool(_) | Expr::Str(..) | Expr::Number(_) | Expr::Nil | Expr::Dot => {
                let shown = quote::quoted(&operand.to_string());
                Err(self.error(&format!("unexpected . after term {shown}")))
            }
            _ => Ok(Some(Operand { pos, expr: Expr::Chain(Box::new(operand), names) })),
        }
    }

    fn term(&mut self) -> Result<Option<Operand>> {
        let token = self.next_non_space();
        let pos = token.pos;
        let expr = match token.kind {
            Kind::Identifier => match builtins::find(&token.text) {
                Some(function) => Expr::Function(function),
                None => {
                    let name = quote::quoted(&token.text);
                    return Err(self.error(&format!("function {name} not defined")));
                }
            },
            Kind::Dot => Expr::Dot,
            Kind::Nil => Expr::Nil,
            Kind::Variable => {
                self.known(&token.text)?;
                Expr::Variable(token.text.into(), Vec::new())
            }
            Kind::Field => Expr::Field(vec![token.text[1..].into()]),
            Kind::Bool => Expr::Bool(token.text == "true"),
            Kind::Char | Kind::Number => Expr::Number(self.number(token)?),
            Kind::LeftParen => {
                self.enter()?;
                let pipe = self.pipeline("parenthesized pipeline", Kind::RightParen)?;
                self.nesting -= 1;
                Expr::Pipe(pipe)
            }
            Kind::Str | Kind::RawStr => match quote::unquote(&token.text) {
                Some(text) => Expr::Str(token.text, Value::from(text)),
                None => return Err(self.error("invalid syntax")),
            },
            _ => {
                self.put_back(token);
                return Ok(None);
            }
        };
        Ok(Some(Operand { pos, expr }))
    }

    fn number(&self, token: Token) -> Result<Number> {
        let text = token.text;
        if token.kind == Kind::Char {
            let Some((code, rest)) = quote::first_char(&text[1..]) else {
                return Err(self.error("invalid syntax"));
            };
            if rest != "'" {
                return Err(self.error(&format!("malformed character constant: {text}")));
            }
            let (int, float) = (Some(i64::from(code)), Some(f64::from(code)));
            return Ok(Number { text, int, float, prefers_float: false });
        }
        let hex = text.trim_start_matches(['+', '-']).to_ascii_lowercase().starts_with("0x");
        let written_float = text.contains(['.', 'p', 'P']) || (!hex && text.contains(['e', 'E']));
        let mut number = Number { text, int: None, float: None, prefers_float: written_float };
        if written_float {
            let float = float::parse(&number.text);
            number.float = float;
            number.int = float.filter(|f| f.fract() == 0.0 && f.abs() < 9.2e18).map(|f| f as i64);
        } else if let Some(value) = integer(&number.text).filter(|value| *value <= i128::from(u64::MAX)) {
            number.int = i64::try_from(value).ok();
            number.float = Some(value as f64);
        } else if number.text.parse::<f64>().is_ok() {
            return Err(self.error(&format!("integer overflow: {}", quote::quoted(&number.text))));
        }
        if number.int.is_none() && number.float.is_none() {
            return Err(self.error(&format!("illegal number syntax: {}", quote::quoted(&number.text))));
        }
        Ok(number)
    }

    fn known(&self, variable: &str) -> Result<()> {
        if self.variables.iter().any(|known| **known == *variable) {
            return Ok(());
        }
        Err(self.error(&format!("undefined variable {}", quote::quoted(variable))))
    }

    fn enter(&mut self) -> Result<()> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(self.error("max expression depth exceeded"));
        }
        Ok(())
    }

    fn next(&mut self) -> Token {
        // Complaints name the line reading has come to, not the one of what is read again.
        self.peeked.pop().unwrap_or_else(|| {
            let token = self.lexer.next();
            self.line = token.line;
            token
        })
    }

    fn next_non_space(&mut self) -> Token {
        loop {
            let token = self.next();
            if token.kind != Kind::Space {
                return token;
            }
        }
    }

    fn peek(&mut self) -> Token {
        let token = self.next();
        self.put_back(token.clone());
        token
    }

    fn peek_non_space(&mut self) -> Token {
        let token = self.next_non_space();
        self.put_back(token.clone());
        token
    }

    fn put_back(&mut self, token: Token) {
        self.peeked.push(token);
    }

    fn unexpected(&self, token: &Token, context: &str) -> ParseError {
        if token.kind == Kind::Error {
            if self.action_line == 0 || self.action_line == token.line {
                return self.error(&token.text);
            }
            let joint = if token.text.ends_with(" action") { "" } else { " in action" };
            let (name, line) = (self.name, self.action_line);
            return self.error(&format!("{}{joint} started at {name}:{line}", token.text));
        }
        self.error(&format!("unexpected {} in {context}", token.shown()))
    }

    fn error(&self, message: &str) -> ParseError {
        ParseError(format!("template: {}:{}: {message}", self.name, self.line))
    }
}

fn is_blank(tree: &Tree) -> bool {
    tree.body.iter().all(|stmt| matches!(stmt, Stmt::Text(text) if text.trim().is_empty()))
}

/// An integer in any of Go's notations.
fn integer(text: &str) -> Option<i128> {
    let (sign, body) = match text.strip_prefix(['+', '-']) {
        Some(body) if text.starts_with('-') => (-1, body),
        Some(body) => (1, body),
        None => (1, text),
    };
    let body = body.to_ascii_lowercase();
    let (digits, radix) = match body.get(..2) {
        Some("0x") => (&body[2..], 16),
        Some("0o") => (&body[2..], 8),
        Some("0b") => (&body[2..], 2),
        _ if body.len() > 1 && body.starts_with('0') => (&body[1..], 8),
        _ => (body.as_str(), 10),
    };
    if !float::underscores_separate(digits, digits.len() < body.len()) {
        return None;
    }
    Some(sign * i128::from_str_radix(&digits.replace('_', ""), radix).ok()?)
}
