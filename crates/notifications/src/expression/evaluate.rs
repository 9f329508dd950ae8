//! Evaluating expressions.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use baton_grammar::regexp::Regexp;
use jiff::Timestamp;

use super::Variables;
use super::functions::{self, Closure};
use super::methods;
use super::parse::{Kind, Node, Operator};
use super::token::Fault;
use super::value::{Library, Value};

/// Steps one evaluation may take. Every node, element and some bytes of text are one.
const MOST_STEPS: u64 = 200_000;

/// Text a step pays for, in bytes.
const BYTES_PER_STEP: usize = 64;

/// Steps a microsecond of compiling a regular expression is.
const STEPS_PER_MICROSECOND: u64 = 10;

/// Deepest nesting of values that are walked: those of a variable are bounded where JSON is read.
const DEEPEST_VALUE: usize = 160;

/// Why an evaluation stops.
pub(super) enum Stop {
    /// It cannot be done.
    Fault(Fault),
    /// `?.` found nil: the rest of the chain is nil.
    Skipped,
}

pub(super) type Outcome<'a> = Result<Value<'a>, Stop>;

/// One evaluation under way.
pub(super) struct Evaluation<'e, 'a> {
    variables: &'e Variables<'a>,
    pub(super) now: Timestamp,
    /// The elements of the predicates being evaluated, the innermost last.
    elements: Vec<Value<'a>>,
    steps: u64,
}

pub(super) fn evaluate<'a>(
    root: &Node,
    variables: &Variables<'a>,
    now: Timestamp,
) -> Result<Value<'a>, Fault> {
    let mut evaluation = Evaluation { variables, now, elements: Vec::new(), steps: MOST_STEPS };
    match evaluation.node(root) {
        Ok(value) => Ok(value),
        Err(Stop::Skipped) => Ok(Value::Nil),
        Err(Stop::Fault(fault)) => Err(fault),
    }
}

/// An error at a place.
pub(super) fn fault<'a>(at: usize, why: impl Into<String>) -> Outcome<'a> {
    Err(Stop::Fault(Fault::new(at, why)))
}

// === impl Evaluation ===

impl<'a> Evaluation<'_, 'a> {
    fn node(&mut self, node: &Node) -> Outcome<'a> {
        self.pay(node.at, 1)?;
        match &node.kind {
            Kind::Nil => Ok(Value::Nil),
            Kind::Bool(value) => Ok(Value::Bool(*value)),
            Kind::Int(number) => Ok(Value::Int(*number)),
            Kind::Float(number) => Ok(Value::Float(*number)),
            Kind::Text(text) => self.text(node.at, Cow::Owned(text.clone())),
            Kind::List(items) => {
                let items = items.iter().map(|item| self.node(item)).collect::<Result<Vec<_>, _>>()?;
                self.list(node.at, items)
            }
            Kind::Map(entries) => self.map(node.at, entries),
            Kind::Name(name) => Ok(self.variable(name)),
            Kind::Element => Ok(self.elements.last().cloned().unwrap_or(Value::Nil)),
            Kind::Member { of, key, optional } => self.member(node.at, of, key, *optional),
            Kind::Chain(inner) => match self.node(inner) {
                Err(Stop::Skipped) => Ok(Value::Nil),
                other => other,
            },
            Kind::Not(inner) => Ok(Value::Bool(!self.boolean(inner)?)),
            Kind::Negative(inner) => match self.node(inner)? {
                Value::Int(number) => self.whole(node.at, number.checked_neg()),
                Value::Float(number) => Ok(Value::Float(-number)),
                other => fault(node.at, format!("{} has no negative", other.kind())),
            },
            Kind::Binary(operator, left, right) => self.binary(node.at, *operator, left, right),
            Kind::Conditional(condition, yes, no) => {
                if self.boolean(condition)? {
                    self.node(yes)
                } else {
                    self.node(no)
                }
            }
            Kind::Call(function, arguments) => {
                let arguments = self.arguments(arguments)?;
                functions::call(self, node.at, *function, &arguments)
            }
            Kind::Over(closure, list, predicate) => self.over(node.at, *closure, list, predicate),
            Kind::Method { of, name, arguments, optional } => {
                let of = self.node(of)?;
                if *optional && of.is_nil() {
                    return Err(Stop::Skipped);
                }
                let arguments = self.arguments(arguments)?;
                methods::call(self, node.at, &of, name, &arguments)
            }
        }
    }

    fn arguments(&mut self, nodes: &[Node]) -> Result<Vec<Value<'a>>, Stop> {
        nodes.iter().map(|node| self.node(node)).collect()
    }

    fn variable(&self, name: &str) -> Value<'a> {
        match (self.variables.get(name), name) {
            (Some(json), _) => Value::of(json),
            (None, "time") => Value::Library(Library::Time),
            (None, "strings") => Value::Library(Library::Strings),
            (None, "repo") => Value::Library(Library::Repo),
            (None, _) => Value::Nil,
        }
    }

    fn member(&mut self, at: usize, of: &Node, key: &Node, optional: bool) -> Outcome<'a> {
        let of = self.node(of)?;
        if optional && of.is_nil() {
            return Err(Stop::Skipped);
        }
        let key = self.node(key)?;
        if let Value::Library(library) = of {
            return match methods::constant(library, &key.to_string()) {
                Some(value) => Ok(value),
                None => fault(at, format!("there is no {key} to be used without a call")),
            };
        }
        match (&of, &key) {
            (Value::Nil, key) => {
                fault(at, format!("cannot take {key} of nil; use ?. where there may be nothing"))
            }
            (_, Value::Text(name)) => match of.entry(name) {
                Some(value) => Ok(value),
                None => fault(at, format!("{} has no {name}", of.kind())),
            },
            (_, Value::Int(index)) => self.element(at, &of, *index),
            (_, other) => fault(at, format!("{} cannot be taken by {}", of.kind(), other.kind())),
        }
    }

    /// An element of a list; one below zero counts from the end.
    fn element(&mut self, at: usize, of: &Value<'a>, index: i64) -> Outcome<'a> {
        let (Some(mut items), Some(length)) = (of.items(), of.length()) else {
            return fault(at, format!("{} has no elements", of.kind()));
        };
        let place = if index < 0 { index.saturating_add_unsigned(length as u64) } else { index };
        let found = usize::try_from(place).ok().and_then(|place| items.nth(place));
        found.map_or_else(|| fault(at, format!("there is no element {index} of {length}")), Ok)
    }

    fn map(&mut self, at: usize, entries: &[(Node, Node)]) -> Outcome<'a> {
        let mut map = BTreeMap::new();
        for (key, value) in entries {
            let Value::Text(key) = self.node(key)? else {
                return fault(key.at, "a key of a map must be a text");
            };
            map.insert(key.into_owned(), self.node(value)?);
        }
        self.pay(at, map.len() as u64)?;
        Ok(Value::Map(Arc::new(map)))
    }

    fn boolean(&mut self, node: &Node) -> Result<bool, Stop> {
        match self.node(node)? {
            Value::Bool(value) => Ok(value),
            other => Err(Stop::Fault(Fault::new(
                node.at,
                format!("a boolean is wanted, this is {}", other.kind()),
            ))),
        }
    }

    fn binary(&mut self, at: usize, operator: Operator, left: &Node, right: &Node) -> Outcome<'a> {
        match operator {
            Operator::And => return Ok(Value::Bool(self.boolean(left)? && self.boolean(right)?)),
            Operator::Or => return Ok(Value::Bool(self.boolean(left)? || self.boolean(right)?)),
            Operator::Otherwise => {
                let value = self.node(left)?;
                return if value.is_nil() { self.node(right) } else { Ok(value) };
            }
            _ => {}
        }
        let (left, right) = (self.node(left)?, self.node(right)?);
        match operator {
            Operator::Equal => self.equal(at, &left, &right).map(Value::Bool),
            Operator::NotEqual => self.equal(at, &left, &right).map(|equal| Value::Bool(!equal)),
            Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
                let Some(order) = left.order(&right) else {
                    return fault(at, format!("{} and {} cannot be compared", left.kind(), right.kind()));
                };
                Ok(Value::Bool(match operator {
                    Operator::Less => order.is_lt(),
                    Operator::LessOrEqual => order.is_le(),
                    Operator::Greater => order.is_gt(),
                    _ => order.is_ge(),
                }))
            }
            Operator::In => self.within(at, &left, &right),
            Operator::Matches | Operator::Contains | Operator::StartsWith | Operator::EndsWith => {
                self.compare_texts(at, operator, &left, &right)
            }
            Operator::Range => self.range(at, &left, &right),
            _ => self.arithmetic(at, operator, left, right),
        }
    }

    /// Whether two are equal. It costs what the smaller of them holds.
    pub(super) fn equal(&mut self, at: usize, left: &Value<'a>, right: &Value<'a>) -> Result<bool, Stop> {
        let is_flat = |value: &Value<'_>| !matches!(value, Value::Part(_) | Value::List(_) | Value::Map(_));
        if is_flat(left) || is_flat(right) {
            return Ok(left == right);
        }
        self.walk(at, left, 0)?;
        self.walk(at, right, 0)?;
        Ok(left == right)
    }

    /// Pays for all that a value holds.
    pub(super) fn walk(&mut self, at: usize, value: &Value<'a>, depth: usize) -> Result<(), Stop> {
        if depth > DEEPEST_VALUE {
            return Err(Stop::Fault(Fault::new(
                at,
                format!("a value is nested deeper than {DEEPEST_VALUE}"),
            )));
        }
        self.pay(at, 1)?;
        if let Value::Text(text) = value {
            return self.pay(at, (text.len() / BYTES_PER_STEP) as u64);
        }
        for item in value.items().into_iter().flatten() {
            self.walk(at, &item, depth + 1)?;
        }
        for key in value.keys().unwrap_or_default() {
            let entry = value.entry(&key).unwrap_or(Value::Nil);
            self.walk(at, &entry, depth + 1)?;
        }
        Ok(())
    }

    fn within(&mut self, at: usize, item: &Value<'a>, whole: &Value<'a>) -> Outcome<'a> {
        if whole.is_nil() {
            return Ok(Value::Bool(false));
        }
        if let Some(items) = whole.items() {
            for other in items {
                self.pay(at, 1)?;
                if self.equal(at, item, &other)? {
                    return Ok(Value::Bool(true));
                }
            }
            return Ok(Value::Bool(false));
        }
        match (item, whole.has(&item.to_string())) {
            (Value::Text(_), Some(has)) => Ok(Value::Bool(has)),
            (_, Some(_)) => Ok(Value::Bool(false)),
            (_, None) => fault(at, format!("nothing is in {}", whole.kind())),
        }
    }

    fn compare_texts(
        &mut self,
        at: usize,
        operator: Operator,
        left: &Value<'a>,
        right: &Value<'a>,
    ) -> Outcome<'a> {
        if left.is_nil() || right.is_nil() {
            return Ok(Value::Bool(false));
        }
        let (Value::Text(text), Value::Text(other)) = (left, right) else {
            return fault(
                at,
                format!("two texts are wanted, these are {} and {}", left.kind(), right.kind()),
            );
        };
        self.pay(at, ((text.len() + other.len()) / BYTES_PER_STEP) as u64)?;
        Ok(Value::Bool(match operator {
            Operator::Contains => text.contains(other.as_ref()),
            Operator::StartsWith => text.starts_with(other.as_ref()),
            Operator::EndsWith => text.ends_with(other.as_ref()),
            _ => return self.matches(at, text, other),
        }))
    }

    fn matches(&mut self, at: usize, text: &str, pattern: &str) -> Outcome<'a> {
        let wrong = |error: baton_grammar::regexp::Error| Stop::Fault(Fault::new(at, error.to_string()));
        let cost = baton_grammar::regexp::compile_cost(pattern).map_err(wrong)?;
        self.pay(at, cost.saturating_mul(STEPS_PER_MICROSECOND))?;
        let mut work = baton_grammar::regexp::Work {
            bytes: self.steps.saturating_mul(BYTES_PER_STEP as u64),
            longest: usize::MAX,
        };
        let pattern = Regexp::parse(pattern).map_err(wrong)?;
        let found = pattern.find_all(text, 1, &mut work);
        match found {
            Ok(found) => Ok(Value::Bool(!found.is_empty())),
            Err(exhausted) => fault(at, exhausted.to_string()),
        }
    }

    fn range(&mut self, at: usize, left: &Value<'a>, right: &Value<'a>) -> Outcome<'a> {
        let (Value::Int(first), Value::Int(last)) = (left, right) else {
            return fault(at, "a range is between two whole numbers");
        };
        if last >= first {
            self.pay(at, last.abs_diff(*first).saturating_add(1))?;
        }
        self.list(at, (*first..=*last).map(Value::Int).collect())
    }

    fn arithmetic(
        &mut self,
        at: usize,
        operator: Operator,
        left: Value<'a>,
        right: Value<'a>,
    ) -> Outcome<'a> {
        match (&left, operator, &right) {
            (Value::Text(left), Operator::Add, Value::Text(right)) => {
                return self.text(at, Cow::Owned(format!("{left}{right}")));
            }
            (_, Operator::Divide, _) => {}
            (Value::Int(left), _, Value::Int(right)) => {
                return self.whole(
                    at,
                    match operator {
                        Operator::Add => left.checked_add(*right),
                        Operator::Subtract => left.checked_sub(*right),
                        Operator::Multiply => left.checked_mul(*right),
                        _ => left.checked_rem(*right),
                    },
                );
            }
            _ => {}
        }
        if let Some(value) = methods::shifted(operator, &left, &right) {
            return value.map_or_else(|| fault(at, "the time is out of range"), Ok);
        }
        match (left.number(), right.number()) {
            (Some(left), Some(right)) if operator != Operator::Remainder => {
                Ok(Value::Float(match operator {
                    Operator::Add => left + right,
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    _ => left / right,
                }))
            }
            _ => fault(at, format!("{} and {} cannot be calculated with so", left.kind(), right.kind())),
        }
    }

    fn over(&mut self, at: usize, closure: Closure, list: &Node, predicate: &Node) -> Outcome<'a> {
        let list = self.node(list)?;
        let Some(items) = list.items() else {
            return fault(at, format!("a list is wanted, this is {}", list.kind()));
        };
        let mut kept = Vec::new();
        let mut count = 0;
        for item in items {
            self.elements.push(item.clone());
            let verdict = self.node(predicate);
            self.elements.pop();
            // A chain inside the predicate ends there.
            let verdict = match verdict {
                Err(Stop::Skipped) => Value::Nil,
                other => other?,
            };
            if closure == Closure::Map {
                kept.push(verdict);
                continue;
            }
            let Value::Bool(verdict) = verdict else {
                return fault(
                    predicate.at,
                    format!("a predicate must be a boolean, this is {}", verdict.kind()),
                );
            };
            count += i64::from(verdict);
            match closure {
                Closure::Any if verdict => return Ok(Value::Bool(true)),
                Closure::All if !verdict => return Ok(Value::Bool(false)),
                Closure::None if verdict => return Ok(Value::Bool(false)),
                Closure::Find if verdict => return Ok(item),
                Closure::Filter if verdict => kept.push(item),
                _ => {}
            }
        }
        match closure {
            Closure::Any => Ok(Value::Bool(false)),
            Closure::All | Closure::None => Ok(Value::Bool(true)),
            Closure::One => Ok(Value::Bool(count == 1)),
            Closure::Count => Ok(Value::Int(count)),
            Closure::Find => Ok(Value::Nil),
            Closure::Filter | Closure::Map => self.list(at, kept),
        }
    }

    /// A text that was made, paid for by its length.
    pub(super) fn text(&mut self, at: usize, text: Cow<'a, str>) -> Outcome<'a> {
        self.pay(at, (text.len() / BYTES_PER_STEP) as u64)?;
        Ok(Value::Text(text))
    }

    /// A list that was made, paid for by its length.
    pub(super) fn list(&mut self, at: usize, items: Vec<Value<'a>>) -> Outcome<'a> {
        self.pay(at, items.len() as u64)?;
        Ok(Value::List(items.into()))
    }

    fn whole(&mut self, at: usize, number: Option<i64>) -> Outcome<'a> {
        number.map_or_else(
            || fault(at, "the result is no whole number of 64 bits"),
            |number| Ok(Value::Int(number)),
        )
    }

    pub(super) fn pay(&mut self, at: usize, steps: u64) -> Result<(), Stop> {
        let Some(left) = self.steps.checked_sub(steps) else {
            self.steps = 0;
            return Err(Stop::Fault(Fault::new(at, format!("it takes more than {MOST_STEPS} steps"))));
        };
        self.steps = left;
        Ok(())
    }
}
