//! Evaluating expressions on a document, within a budget of steps.

use std::borrow::Cow;
use std::cmp::Ordering;

use regex::RegexBuilder;
use serde_json::Value;

use super::parse::{Expression, Operator};
use super::{EvaluationError, Step};

/// Steps an evaluation may take: each value looked at is one.
const MOST_STEPS: usize = 100_000;
/// Largest compiled form of a regular expression.
const REGEX_BYTES: usize = 1 << 18;

/// A value, and where in the document it stands if it is a part of it.
#[derive(Debug, Clone)]
pub(super) struct Item<'a> {
    value: Cow<'a, Value>,
    path: Option<Vec<Step>>,
}

/// Functions that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Select,
    Empty,
    First,
    Last,
    FirstOf,
    LastOf,
    Recurse,
    Map,
    Not,
    Has,
    Contains,
    Inside,
    StartsWith,
    EndsWith,
    Test,
    Length,
    Keys,
    Type,
    AnyOf,
    AllOf,
    Any,
    All,
    In,
    ToText,
    Lower,
    Upper,
    Values,
}

impl Function {
    pub(super) fn named(name: &str, arguments: usize) -> Option<Function> {
        Some(match (name, arguments) {
            ("select", 1) => Function::Select,
            ("empty", 0) => Function::Empty,
            ("first", 0) => Function::First,
            ("last", 0) => Function::Last,
            ("first", 1) => Function::FirstOf,
            ("last", 1) => Function::LastOf,
            ("recurse", 0) => Function::Recurse,
            ("map", 1) => Function::Map,
            ("not", 0) => Function::Not,
            ("has", 1) => Function::Has,
            ("contains", 1) => Function::Contains,
            ("inside", 1) => Function::Inside,
            ("startswith", 1) => Function::StartsWith,
            ("endswith", 1) => Function::EndsWith,
            ("test", 1) => Function::Test,
            ("length", 0) => Function::Length,
            ("keys", 0) => Function::Keys,
            ("type", 0) => Function::Type,
            ("any", 1) => Function::AnyOf,
            ("all", 1) => Function::AllOf,
            ("any", 0) => Function::Any,
            ("all", 0) => Function::All,
            ("IN", 1) => Function::In,
            ("tostring", 0) => Function::ToText,
            ("ascii_downcase", 0) => Function::Lower,
            ("ascii_upcase", 0) => Function::Upper,
            ("values", 0) => Function::Values,
            _ => return None,
        })
    }
}

impl<'a> Item<'a> {
    /// The whole document.
    pub(super) fn whole(document: &'a Value) -> Item<'a> {
        Item { value: Cow::Borrowed(document), path: Some(Vec::new()) }
    }

    pub(super) fn into_path(self) -> Option<Vec<Step>> {
        self.path
    }

    fn made(value: Value) -> Item<'a> {
        Item { value: Cow::Owned(value), path: None }
    }

    fn part(&self, step: Step) -> Item<'a> {
        let value = match (&self.value, &step) {
            (Cow::Borrowed(Value::Object(fields)), Step::Field(name)) => fields.get(name).map(Cow::Borrowed),
            (Cow::Borrowed(Value::Array(items)), Step::Element(index)) => {
                items.get(*index).map(Cow::Borrowed)
            }
            (Cow::Owned(Value::Object(fields)), Step::Field(name)) => {
                fields.get(name).cloned().map(Cow::Owned)
            }
            (Cow::Owned(Value::Array(items)), Step::Element(index)) => {
                items.get(*index).cloned().map(Cow::Owned)
            }
            _ => None,
        };
        let path = self.path.clone().map(|mut path| {
            path.push(step);
            path
        });
        Item { value: value.unwrap_or(Cow::Owned(Value::Null)), path }
    }

    fn holds(&self) -> bool {
        !matches!(*self.value, Value::Null | Value::Bool(false))
    }
}

type Items<'a> = Result<Vec<Item<'a>>, EvaluationError>;

pub(super) fn evaluate<'a>(expression: &Expression, input: Item<'a>) -> Items<'a> {
    Evaluation { left: MOST_STEPS }.run(expression, input)
}

struct Evaluation {
    left: usize,
}

impl Evaluation {
    fn run<'a>(&mut self, expression: &Expression, input: Item<'a>) -> Items<'a> {
        self.spend(1)?;
        match expression {
            Expression::Identity => Ok(vec![input]),
            Expression::Everything => self.everything(input),
            Expression::Literal(value) => Ok(vec![Item::made(value.clone())]),
            Expression::Part(of, which) => self.parts(of, which, input),
            Expression::Each(of) => {
                let mut found = Vec::new();
                for item in self.run(of, input)? {
                    found.extend(self.each(&item)?);
                }
                Ok(found)
            }
            Expression::Slice(of, from, to) => self.slices(of, from.as_deref(), to.as_deref(), input),
            Expression::Try(inner) => match self.run(inner, input) {
                Err(EvaluationError::Shape(_)) => Ok(Vec::new()),
                other => other,
            },
            Expression::Pipe(first, second) => {
                let mut found = Vec::new();
                for item in self.run(first, input)? {
                    found.extend(self.run(second, item)?);
                }
                Ok(found)
            }
            Expression::Both(first, second) => {
                let mut found = self.run(first, input.clone())?;
                found.extend(self.run(second, input)?);
                Ok(found)
            }
            Expression::Otherwise(first, second) => {
                let found = match self.run(first, input.clone()) {
                    Ok(found) => found,
                    Err(EvaluationError::Shape(_)) => Vec::new(),
                    Err(other) => return Err(other),
                };
                let found: Vec<_> = found.into_iter().filter(Item::holds).collect();
                if found.is_empty() { self.run(second, input) } else { Ok(found) }
            }
            Expression::Binary(operator, left, right) => self.binary(*operator, left, right, input),
            Expression::Collect(inner) => {
                let items = match inner {
                    Some(inner) => self.run(inner, input)?,
                    None => Vec::new(),
                };
                Ok(vec![Item::made(items.into_iter().map(|item| item.value.into_owned()).collect())])
            }
            Expression::If(test, then, otherwise) => {
                let mut found = Vec::new();
                for verdict in self.run(test, input.clone())? {
                    match (verdict.holds(), otherwise) {
                        (true, _) => found.extend(self.run(then, input.clone())?),
                        (false, Some(otherwise)) => found.extend(self.run(otherwise, input.clone())?),
                        (false, None) => found.push(input.clone()),
                    }
                }
                Ok(found)
            }
            Expression::Call(function, arguments) => self.call(*function, arguments, input),
        }
    }

    fn spend(&mut self, steps: usize) -> Result<(), EvaluationError> {
        self.left = self.left.checked_sub(steps).ok_or(EvaluationError::TooLong)?;
        Ok(())
    }

    fn everything<'a>(&mut self, input: Item<'a>) -> Items<'a> {
        let mut found = Vec::new();
        let mut waiting = vec![input];
        while let Some(item) = waiting.pop() {
            self.spend(1)?;
            if matches!(*item.value, Value::Object(_) | Value::Array(_)) {
                let mut parts = self.each(&item)?;
                parts.reverse();
                waiting.extend(parts);
            }
            found.push(item);
        }
        Ok(found)
    }

    fn each<'a>(&mut self, item: &Item<'a>) -> Items<'a> {
        let steps: Vec<Step> = match &*item.value {
            Value::Object(fields) => fields.keys().cloned().map(Step::Field).collect(),
            Value::Array(items) => (0..items.len()).map(Step::Element).collect(),
            other => return Err(shape(format!("cannot iterate over {}", with_article(other)))),
        };
        self.spend(steps.len())?;
        Ok(steps.into_iter().map(|step| item.part(step)).collect())
    }

    fn parts<'a>(&mut self, of: &Expression, which: &Expression, input: Item<'a>) -> Items<'a> {
        let mut found = Vec::new();
        for item in self.run(of, input.clone())? {
            for index in self.run(which, input.clone())? {
                self.spend(1)?;
                found.push(self.one_part(&item, &index.value)?);
            }
        }
        Ok(found)
    }

    fn one_part<'a>(&self, item: &Item<'a>, index: &Value) -> Result<Item<'a>, EvaluationError> {
        match (&*item.value, index) {
            (Value::Object(_) | Value::Null, Value::String(name)) => Ok(item.part(Step::Field(name.clone()))),
            (Value::Array(items), Value::Number(number)) => {
                let place = place(number.as_f64().unwrap_or(0.0), items.len());
                // Before the first element there is nothing to point at.
                Ok(place.map_or_else(
                    || Item {
                        value: Cow::Owned(Value::Null),
                        path: item.path.clone().map(|mut path| {
                            path.push(Step::Element(usize::MAX));
                            path
                        }),
                    },
                    |place| item.part(Step::Element(place)),
                ))
            }
            (Value::Null, Value::Number(number)) => {
                let place = place(number.as_f64().unwrap_or(0.0), 0).unwrap_or(usize::MAX);
                Ok(item.part(Step::Element(place)))
            }
            (other, Value::String(name)) => {
                Err(shape(format!("cannot index {} with {name:?}", with_article(other))))
            }
            (other, index) => {
                Err(shape(format!("cannot index {} with {}", with_article(other), with_article(index))))
            }
        }
    }

    /// A slice is taken as the elements in it, so that each has a path.
    fn slices<'a>(
        &mut self,
        of: &Expression,
        from: Option<&Expression>,
        to: Option<&Expression>,
        input: Item<'a>,
    ) -> Items<'a> {
        let mut found = Vec::new();
        for item in self.run(of, input.clone())? {
            let Value::Array(items) = &*item.value else {
                if item.value.is_null() {
                    continue;
                }
                return Err(shape(format!("cannot slice {}", with_article(&item.value))));
            };
            let from = self.bound(from, input.clone(), items.len(), 0)?;
            let to = self.bound(to, input.clone(), items.len(), items.len())?;
            self.spend(to.saturating_sub(from))?;
            found.extend((from..to).map(|index| item.part(Step::Element(index))));
        }
        Ok(found)
    }

    fn bound(
        &mut self,
        bound: Option<&Expression>,
        input: Item<'_>,
        length: usize,
        default: usize,
    ) -> Result<usize, EvaluationError> {
        let Some(bound) = bound else { return Ok(default) };
        let value = self.run(bound, input)?.into_iter().next();
        match value.as_ref().map(|item| &*item.value) {
            Some(Value::Null) | None => Ok(default),
            Some(Value::Number(number)) => {
                Ok(place(number.as_f64().unwrap_or(0.0), length).unwrap_or(0).min(length))
            }
            Some(other) => Err(shape(format!("cannot slice by {}", with_article(other)))),
        }
    }

    fn binary<'a>(
        &mut self,
        operator: Operator,
        left: &Expression,
        right: &Expression,
        input: Item<'a>,
    ) -> Items<'a> {
        let mut found = Vec::new();
        for a in self.run(left, input.clone())? {
            match (operator, a.holds()) {
                (Operator::And, false) => found.push(Item::made(false.into())),
                (Operator::Or, true) => found.push(Item::made(true.into())),
                _ => {
                    for b in self.run(right, input.clone())? {
                        found.push(Item::made(combine(operator, &a, &b)?));
                    }
                }
            }
        }
        Ok(found)
    }

    fn call<'a>(&mut self, function: Function, arguments: &[Expression], input: Item<'a>) -> Items<'a> {
        let yes = |holds: bool| Ok(vec![Item::made(holds.into())]);
        match function {
            Function::Empty => Ok(Vec::new()),
            Function::Recurse => self.everything(input),
            Function::Select => {
                let verdicts = self.run(&arguments[0], input.clone())?;
                Ok(verdicts.iter().filter(|verdict| verdict.holds()).map(|_| input.clone()).collect())
            }
            Function::First => Ok(vec![self.one_part(&input, &0.into())?]),
            Function::Last => Ok(vec![self.one_part(&input, &(-1).into())?]),
            Function::FirstOf => Ok(self.run(&arguments[0], input)?.into_iter().take(1).collect()),
            Function::LastOf => Ok(self.run(&arguments[0], input)?.pop().into_iter().collect()),
            Function::Map => {
                let mut made = Vec::new();
                for item in self.each(&input)? {
                    made.extend(
                        self.run(&arguments[0], item)?.into_iter().map(|item| item.value.into_owned()),
                    );
                }
                Ok(vec![Item::made(made.into())])
            }
            Function::Values => Ok(if input.value.is_null() { Vec::new() } else { vec![input] }),
            Function::Not => yes(!input.holds()),
            Function::Any | Function::All | Function::AnyOf | Function::AllOf => {
                let mut verdicts = Vec::new();
                for item in self.each(&input)? {
                    match arguments.first() {
                        Some(test) => verdicts.extend(self.run(test, item)?),
                        None => verdicts.push(item),
                    }
                }
                match function {
                    Function::Any | Function::AnyOf => yes(verdicts.iter().any(Item::holds)),
                    _ => yes(verdicts.iter().all(Item::holds)),
                }
            }
            Function::In => {
                let candidates = self.run(&arguments[0], input.clone())?;
                yes(candidates.iter().any(|item| order(&item.value, &input.value) == Ordering::Equal))
            }
            Function::Has
            | Function::Contains
            | Function::Inside
            | Function::StartsWith
            | Function::EndsWith
            | Function::Test => {
                let mut found = Vec::new();
                for argument in self.run(&arguments[0], input.clone())? {
                    self.spend(1)?;
                    found.push(Item::made(tested(function, &input.value, &argument.value)?.into()));
                }
                Ok(found)
            }
            Function::Length
            | Function::Keys
            | Function::Type
            | Function::ToText
            | Function::Lower
            | Function::Upper => Ok(vec![Item::made(derived(function, &input.value)?)]),
        }
    }
}

fn tested(function: Function, value: &Value, argument: &Value) -> Result<bool, EvaluationError> {
    let wrong = || shape(format!("cannot test {} with {}", with_article(value), with_article(argument)));
    match (function, value, argument) {
        (Function::Has, Value::Object(fields), Value::String(name)) => Ok(fields.contains_key(name)),
        (Function::Has, Value::Array(items), Value::Number(index)) => {
            Ok(index.as_f64().is_some_and(|index| index >= 0.0 && index < items.len() as f64))
        }
        (Function::Contains, _, _) => Ok(contains(value, argument)),
        (Function::Inside, _, _) => Ok(contains(argument, value)),
        (Function::StartsWith, Value::String(text), Value::String(with)) => {
            Ok(text.starts_with(with.as_str()))
        }
        (Function::EndsWith, Value::String(text), Value::String(with)) => Ok(text.ends_with(with.as_str())),
        (Function::Test, Value::String(text), Value::String(expression)) => {
            let built = RegexBuilder::new(expression).size_limit(REGEX_BYTES).build();
            let regex =
                built.map_err(|error| shape(format!("{expression:?} is no regular expression: {error}")))?;
            Ok(regex.is_match(text))
        }
        _ => Err(wrong()),
    }
}

fn derived(function: Function, value: &Value) -> Result<Value, EvaluationError> {
    let wrong = |what: &str| shape(format!("{} has no {what}", with_article(value)));
    match (function, value) {
        (Function::Length, Value::Null) => Ok(0.into()),
        (Function::Length, Value::String(text)) => Ok(text.chars().count().into()),
        (Function::Length, Value::Array(items)) => Ok(items.len().into()),
        (Function::Length, Value::Object(fields)) => Ok(fields.len().into()),
        (Function::Length, Value::Number(number)) => Ok(number.as_f64().unwrap_or(0.0).abs().into()),
        (Function::Length, Value::Bool(_)) => Err(wrong("length")),
        (Function::Keys, Value::Object(fields)) => Ok(fields.keys().cloned().collect::<Vec<_>>().into()),
        (Function::Keys, Value::Array(items)) => Ok((0..items.len()).collect::<Vec<_>>().into()),
        (Function::Keys, _) => Err(wrong("keys")),
        (Function::Type, _) => Ok(type_name(value).into()),
        (Function::ToText, Value::String(_)) => Ok(value.clone()),
        (Function::ToText, _) => Ok(value.to_string().into()),
        (Function::Lower, Value::String(text)) => Ok(text.to_ascii_lowercase().into()),
        (Function::Upper, Value::String(text)) => Ok(text.to_ascii_uppercase().into()),
        _ => Err(wrong("letters")),
    }
}

fn combine(operator: Operator, a: &Item<'_>, b: &Item<'_>) -> Result<Value, EvaluationError> {
    let order = || order(&a.value, &b.value);
    Ok(match operator {
        Operator::And | Operator::Or => b.holds().into(),
        Operator::Equal => (order() == Ordering::Equal).into(),
        Operator::NotEqual => (order() != Ordering::Equal).into(),
        Operator::Less => (order() == Ordering::Less).into(),
        Operator::LessOrEqual => (order() != Ordering::Greater).into(),
        Operator::Greater => (order() == Ordering::Greater).into(),
        Operator::GreaterOrEqual => (order() != Ordering::Less).into(),
        Operator::Add | Operator::Subtract => match (&*a.value, &*b.value) {
            (Value::Number(a), Value::Number(b)) => {
                let (a, b) = (a.as_f64().unwrap_or(0.0), b.as_f64().unwrap_or(0.0));
                (if operator == Operator::Add { a + b } else { a - b }).into()
            }
            // A sum of texts stays short: each was in the document or in the expression, and sums are not repeated.
            (Value::String(a), Value::String(b)) if operator == Operator::Add => format!("{a}{b}").into(),
            (a, b) => {
                return Err(shape(format!("cannot reckon with {} and {}", with_article(a), with_article(b))));
            }
        },
    })
}

/// jq's order of all values: null, false, true, numbers, strings, lists, objects.
fn order(a: &Value, b: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(false) => 1,
        Value::Bool(true) => 2,
        Value::Number(_) => 3,
        Value::String(_) => 4,
        Value::Array(_) => 5,
        Value::Object(_) => 6,
    };
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0))
        }
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let mut differences = a.iter().zip(b).map(|(a, b)| order(a, b));
            differences.find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => a.keys().cmp(b.keys()).then_with(|| {
            let mut differences = a.values().zip(b.values()).map(|(a, b)| order(a, b));
            differences.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        }),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::String(whole), Value::String(part)) => whole.contains(part.as_str()),
        (Value::Array(whole), Value::Array(part)) => {
            part.iter().all(|part| whole.iter().any(|whole| contains(whole, part)))
        }
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| contains(whole, part)))
        }
        _ => order(whole, part) == Ordering::Equal,
    }
}

/// The place an index means in a list so long; none before its start.
fn place(index: f64, length: usize) -> Option<usize> {
    let index = index.floor();
    match index < 0.0 {
        true => length.checked_sub((-index) as usize),
        false => Some(index as usize),
    }
}

fn shape(why: String) -> EvaluationError {
    EvaluationError::Shape(why)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn with_article(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
