//! Checking a value against a schema, with the messages a Kubernetes server gives for custom resources.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Number, Value};

use crate::error::{FieldError, Problem};
use crate::formats;
use crate::lists::validate_lists;
use crate::model::{Additional, Kind, ListKind, MAX_DEPTH, Schema};
use crate::path::Path;
use crate::resource::validate_embedded;

/// Most errors reported for one object: an answer is read by people.
pub(crate) const MOST_ERRORS: usize = 200;

/// Everything wrong with `object`.
///
/// With `old` given, what was already wrong and has not changed is tolerated, so that a schema made stricter does
/// not lock existing objects. CEL rules are not evaluated here: see [`crate::Validator`].
pub fn validate(schema: &Schema, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    validate_with(schema, &Prepared::unprepared(), object, old)
}

pub(crate) fn validate_with(
    schema: &Schema,
    prepared: &Prepared,
    object: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    let run = |old: Option<&Value>| {
        let mut check = Check { prepared, errors: Vec::new(), ratchet: old.is_some(), visited: 0 };
        check.node(schema, object, old, &Path::Root, 0);
        check.errors
    };
    let mut errors = run(None);
    // Comparing subtrees costs; only an object with errors needs it.
    if !errors.is_empty() && old.is_some() {
        errors = run(old);
    }
    if prepared.embedded {
        errors.extend(validate_embedded(schema, object));
    }
    if prepared.keyed_lists {
        let duplicates = validate_lists(schema, object);
        if !duplicates.is_empty() && old.is_none_or(|old| validate_lists(schema, old).is_empty()) {
            errors.extend(duplicates);
        }
    }
    errors.truncate(MOST_ERRORS);
    errors
}

/// What a look through a schema finds once and each check needs.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    patterns: HashMap<String, Result<Regex, String>>,
    /// Whether there may be resources inside resources.
    embedded: bool,
    /// Whether there may be lists whose elements must differ.
    keyed_lists: bool,
}

impl Prepared {
    /// For a schema that has not been looked through: patterns are compiled when met.
    fn unprepared() -> Prepared {
        Prepared { patterns: HashMap::new(), embedded: true, keyed_lists: true }
    }

    pub(crate) fn of(schema: &Arc<Schema>) -> Prepared {
        let mut prepared = Prepared { patterns: HashMap::new(), embedded: false, keyed_lists: false };
        prepared.collect(schema, &mut HashSet::new());
        prepared
    }

    fn collect(&mut self, schema: &Schema, seen: &mut HashSet<*const Schema>) {
        if !seen.insert(std::ptr::from_ref(schema)) {
            return;
        }
        if let Some(pattern) = &schema.limits.pattern
            && !self.patterns.contains_key(pattern)
        {
            self.patterns.insert(pattern.clone(), compile(pattern));
        }
        self.embedded |= schema.embedded_resource;
        self.keyed_lists |= schema.list != ListKind::Atomic;
        let typed = match &schema.additional {
            Additional::Typed(values) => Some(values),
            Additional::Any | Additional::Closed => None,
        };
        let below = schema.properties.values().chain(&schema.items).chain(typed).chain(&schema.not);
        for child in below.chain(&schema.all_of).chain(&schema.any_of).chain(&schema.one_of) {
            self.collect(child, seen);
        }
    }

    fn matches(&self, pattern: &str, value: &str) -> Result<bool, String> {
        match self.patterns.get(pattern) {
            Some(Ok(compiled)) => Ok(compiled.is_match(value)),
            Some(Err(error)) => Err(error.clone()),
            None => compile(pattern).map(|compiled| compiled.is_match(value)),
        }
    }
}

pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    // A schema may hold thousands of patterns, and each is kept compiled.
    const LARGEST: usize = 256 * 1024;
    RegexBuilder::new(pattern)
        .size_limit(LARGEST)
        .dfa_size_limit(LARGEST)
        .build()
        .map_err(|error| error.to_string().lines().last().unwrap_or_default().to_owned())
}

struct Check<'p> {
    prepared: &'p Prepared,
    errors: Vec<FieldError>,
    ratchet: bool,
    /// How many values were looked at: tells which of several failed alternatives came closest.
    visited: usize,
}

impl Check<'_> {
    fn node(&mut self, schema: &Schema, value: &Value, old: Option<&Value>, path: &Path<'_>, depth: usize) {
        if depth > MAX_DEPTH || self.errors.len() >= MOST_ERRORS || (self.ratchet && old == Some(value)) {
            return;
        }
        self.visited += 1;
        self.kind(schema, value, path);
        if value.is_null() {
            self.enumeration(schema, value, path);
            return;
        }
        self.combinations(schema, value, path, depth);
        match value {
            Value::String(text) => self.string(schema, text, path),
            Value::Number(number) => self.number(schema, number, path),
            Value::Array(items) => self.array(schema, items, old, path, depth),
            Value::Object(fields) => self.object(schema, fields, old, path, depth),
            Value::Null | Value::Bool(_) => {}
        }
        self.enumeration(schema, value, path);
    }

    fn kind(&mut self, schema: &Schema, value: &Value, path: &Path<'_>) {
        let expected = match (schema.int_or_string, schema.kind) {
            (true, _) => "integer,string",
            (false, None) => return,
            (false, Some(kind)) => kind_name(kind),
        };
        let actual = actual_kind(value);
        let fits = match (schema.int_or_string, schema.kind, actual) {
            (_, _, "null") => schema.nullable,
            (true, _, "integer" | "string") => true,
            (true, _, "number") | (false, Some(Kind::Integer), "number") => is_json_integer(value),
            (false, Some(Kind::Number), "integer") => true,
            (true, ..) => false,
            (false, Some(kind), actual) => kind_name(kind) == actual,
            (false, None, _) => true,
        };
        if fits {
            return;
        }
        // A schema with a format complains in terms of formats, unless a string or list was given.
        let format = checked_format(schema);
        let (expected, actual) = match (format, actual) {
            (Some(format), "integer") => (format, "int64"),
            (Some(format), "number") => (format, "float64"),
            (Some(format), "boolean" | "object") => (format, ""),
            _ => (expected, actual),
        };
        self.wrong_type(path, actual.into(), &format!("must be of type {expected}: {}", Value::from(actual)));
    }

    fn enumeration(&mut self, schema: &Schema, value: &Value, path: &Path<'_>) {
        let permitted = &schema.limits.enumeration;
        if permitted.is_empty() || permitted.iter().any(|one| same_value(one, value)) {
            return;
        }
        let names: Vec<String> = permitted
            .iter()
            .map(|one| match one {
                Value::String(name) => name.clone(),
                other => other.to_string(),
            })
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.errors.push(FieldError::not_supported(path.dotted(), value.clone(), &names));
    }

    fn string(&mut self, schema: &Schema, text: &str, path: &Path<'_>) {
        let limits = &schema.limits;
        self.lengths_and_pattern(schema, text, path);
        if matches!(schema.kind, None | Some(Kind::String))
            && let Some(format) = &limits.format
            && formats::check(format, text) == Some(false)
        {
            self.wrong_type(path, text.into(), &format!("must be of type {format}: {}", Value::from(text)));
        }
    }

    /// The first of the three that fails is the only one reported.
    fn lengths_and_pattern(&mut self, schema: &Schema, text: &str, path: &Path<'_>) {
        let limits = &schema.limits;
        let length = || text.chars().count() as u64;
        if let Some(longest) = limits.max_length
            && length() > longest
        {
            let unit = if longest == 1 { "byte" } else { "bytes" };
            self.errors.push(FieldError {
                path: path.dotted(),
                problem: Problem::TooLong,
                detail: format!("may not be more than {longest} {unit}"),
            });
        } else if let Some(shortest) = limits.min_length
            && length() < shortest
        {
            self.invalid(path, text, &format!("should be at least {shortest} chars long"));
        } else if let Some(pattern) = &limits.pattern {
            match self.prepared.matches(pattern, text) {
                Ok(true) => {}
                Ok(false) => self.invalid(path, text, &format!("should match '{pattern}'")),
                Err(error) => {
                    self.invalid(
                        path,
                        text,
                        &format!("should match '{pattern}, but pattern is invalid: {error}'"),
                    );
                }
            }
        }
    }

    fn number(&mut self, schema: &Schema, number: &Number, path: &Path<'_>) {
        let limits = &schema.limits;
        let value = number.as_f64().unwrap_or(f64::NAN);
        if let Some(range) = outside_integer_range(schema, number) {
            let detail = format!("Checked value must be of type integer {range} in {}", path.dotted());
            self.errors.push(FieldError::invalid("", "", detail));
        }
        let shown = |bound: f64| if number.is_f64() { go_float(bound) } else { go_float(bound.trunc()) };
        if let Some(step) = limits.multiple_of
            && step > 0.0
            && !is_multiple(number, step)
        {
            self.invalid(path, number.clone(), &format!("should be a multiple of {}", shown(step)));
        }
        if let Some(least) = limits.minimum {
            let exclusive = limits.exclusive_minimum;
            if value < least || (exclusive && value == least) {
                let word = if exclusive { "greater than" } else { "greater than or equal to" };
                self.invalid(path, number.clone(), &format!("should be {word} {}", shown(least)));
            }
        }
        if let Some(most) = limits.maximum {
            let exclusive = limits.exclusive_maximum;
            if value > most || (exclusive && value == most) {
                let word = if exclusive { "less than" } else { "less than or equal to" };
                self.invalid(path, number.clone(), &format!("should be {word} {}", shown(most)));
            }
        }
    }

    fn array(
        &mut self,
        schema: &Schema,
        items: &[Value],
        old: Option<&Value>,
        path: &Path<'_>,
        depth: usize,
    ) {
        let limits = &schema.limits;
        if let Some(below) = &schema.items {
            let old_items = old.and_then(Value::as_array);
            for (at, item) in items.iter().enumerate() {
                let old_item = old_items.and_then(|old_items| same_element(&schema.list, old_items, item));
                self.node(below, item, old_item, &path.index(at), depth + 1);
            }
        }
        let size = items.len() as u64;
        if let Some(least) = limits.min_items
            && size < least
        {
            self.invalid(path, size, &format!("should have at least {least} items"));
        }
        if let Some(most) = limits.max_items
            && size > most
        {
            self.too_many(path, items.len(), most);
        }
        if limits.unique_items && items.iter().collect::<HashSet<_>>().len() != items.len() {
            self.invalid(path, "", "shouldn't contain duplicates");
        }
    }

    fn object(
        &mut self,
        schema: &Schema,
        fields: &Map<String, Value>,
        old: Option<&Value>,
        path: &Path<'_>,
        depth: usize,
    ) {
        let limits = &schema.limits;
        let size = fields.len() as u64;
        if let Some(least) = limits.min_properties
            && size < least
        {
            self.invalid(path, size, &format!("should have at least {least} properties"));
        }
        if let Some(most) = limits.max_properties
            && size > most
        {
            self.too_many(path, fields.len(), most);
        }
        for (name, value) in fields {
            let old = old.and_then(|old| old.get(name));
            match (schema.properties.get(name), &schema.additional) {
                (Some(property), _) => self.node(property, value, old, &path.field(name), depth + 1),
                (None, Additional::Typed(values)) => {
                    self.node(values, value, old, &path.key(name), depth + 1)
                }
                (None, Additional::Any | Additional::Closed) => {}
            }
        }
        for name in &limits.required {
            if !fields.contains_key(name) {
                self.errors.push(FieldError::required(path.field(name).dotted(), ""));
            }
        }
    }

    /// Unchanged values are not excused inside combinations: which of them held is not known.
    fn combinations(&mut self, schema: &Schema, value: &Value, path: &Path<'_>, depth: usize) {
        let attempt = |part: &Arc<Schema>| {
            let mut check = Check { prepared: self.prepared, errors: Vec::new(), ratchet: false, visited: 0 };
            check.node(part, value, None, path, depth + 1);
            check
        };
        let mut found = Vec::new();
        let quoted = || Value::from(path.dotted());
        if !schema.any_of.is_empty() {
            let failures: Vec<_> = schema.any_of.iter().map(attempt).collect();
            if failures.iter().all(|check| !check.errors.is_empty()) {
                found.push(whole(format!("{} must validate at least one schema (anyOf)", quoted())));
                found.extend(closest(failures));
            }
        }
        if !schema.one_of.is_empty() {
            let failures: Vec<_> = schema.one_of.iter().map(attempt).collect();
            let held = failures.iter().filter(|check| check.errors.is_empty()).count();
            if held != 1 {
                let count = match held {
                    0 => "Found none valid".to_owned(),
                    held => format!("Found {held} valid alternatives"),
                };
                found.push(whole(format!(
                    "{} must validate one and only one schema (oneOf). {count}",
                    quoted()
                )));
            }
            if held == 0 {
                found.extend(closest(failures));
            }
        }
        if !schema.all_of.is_empty() {
            let failures: Vec<_> = schema.all_of.iter().map(attempt).collect();
            let held = failures.iter().filter(|check| check.errors.is_empty()).count();
            found.extend(failures.into_iter().flat_map(|check| check.errors));
            if held != schema.all_of.len() {
                let none = if held == 0 { ". None validated" } else { "" };
                found.push(whole(format!("{} must validate all the schemas (allOf){none}", quoted())));
            }
        }
        if let Some(not) = &schema.not
            && attempt(not).errors.is_empty()
        {
            found.push(whole(format!("{} must not validate the schema (not)", quoted())));
        }
        self.errors.append(&mut found);
    }

    fn invalid(&mut self, path: &Path<'_>, value: impl Into<Value>, complaint: &str) {
        let path = path.dotted();
        let detail = format!("{path} in body {complaint}");
        self.errors.push(FieldError::invalid(path, value, detail));
    }

    fn wrong_type(&mut self, path: &Path<'_>, value: Value, complaint: &str) {
        let path = path.dotted();
        let detail = format!("{path} in body {complaint}");
        self.errors.push(FieldError { path, problem: Problem::TypeInvalid(value), detail });
    }

    fn too_many(&mut self, path: &Path<'_>, actual: usize, most: u64) {
        let limit = usize::try_from(most).unwrap_or(usize::MAX);
        self.errors.push(FieldError {
            path: path.dotted(),
            problem: Problem::TooMany { actual, limit },
            detail: String::new(),
        });
    }
}

/// Upstream reports a failed combination without a path of its own.
fn whole(message: String) -> FieldError {
    FieldError::invalid("", "", message)
}

/// The errors of the failed alternative that got furthest, the first of equals.
fn closest(failures: Vec<Check<'_>>) -> Vec<FieldError> {
    let furthest = failures.into_iter().rev().max_by_key(|check| check.visited);
    furthest.map(|check| check.errors).unwrap_or_default()
}

/// The element of the old list that this one replaces; only keyed lists can tell.
fn same_element<'o>(list: &ListKind, old: &'o [Value], item: &Value) -> Option<&'o Value> {
    match list {
        ListKind::Map(keys) if !keys.is_empty() => {
            old.iter().find(|old| keys.iter().all(|key| old.get(key) == item.get(key)))
        }
        _ => None,
    }
}

pub(crate) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Object => "object",
        Kind::Array => "array",
        Kind::String => "string",
        Kind::Integer => "integer",
        Kind::Number => "number",
        Kind::Boolean => "boolean",
    }
}

pub(crate) fn actual_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
    }
}

/// A whole number that JSON can carry without loss.
fn is_json_integer(value: &Value) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    value.as_f64().is_some_and(|number| number.fract() == 0.0 && number.abs() <= LARGEST)
}

/// Formats that do not belong to the type, or that nobody knows, are as if absent.
fn checked_format(schema: &Schema) -> Option<&str> {
    let format = schema.limits.format.as_deref()?;
    let checked = match schema.kind {
        None | Some(Kind::String) => formats::is_known(format),
        Some(Kind::Integer) => matches!(format, "int32" | "int64"),
        Some(Kind::Number) => matches!(format, "float" | "double"),
        Some(_) => false,
    };
    checked.then_some(format)
}

/// Equality in which `1` and `1.0` are the same.
fn same_value(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        _ => left == right,
    }
}

/// What kind of integer the number is not, where the schema asks for one.
fn outside_integer_range(schema: &Schema, number: &Number) -> Option<&'static str> {
    if schema.kind != Some(Kind::Integer) {
        return None;
    }
    let value = number.as_f64().unwrap_or(f64::NAN);
    let whole = value.fract() == 0.0;
    // The first float past the largest 64-bit integer; the largest itself has no float.
    const PAST_I64: f64 = 9_223_372_036_854_775_808.0;
    let long = (-PAST_I64..PAST_I64).contains(&value);
    let (fits, name) = match schema.limits.format.as_deref() {
        Some("int32") => ((f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value), "with format int32"),
        Some("int64") => (long, "with format int64"),
        _ => (long, "(default format)"),
    };
    (!whole || !fits).then_some(name)
}

fn is_multiple(number: &Number, step: f64) -> bool {
    if let Some(whole) = number.as_i64()
        && step.fract() == 0.0
        && step < i64::MAX as f64
    {
        return whole % (step as i64) == 0;
    }
    let value = number.as_f64().unwrap_or(f64::NAN);
    let times = if step < 1.0 { 1.0 / step * value } else { value / step };
    times.fract() == 0.0
}

/// A float as Go's `%v` prints it.
fn go_float(number: f64) -> String {
    let magnitude = number.abs();
    if magnitude != 0.0 && !(1e-4..1e21).contains(&magnitude) {
        let text = format!("{number:e}");
        let Some((digits, exponent)) = text.split_once('e') else { return text };
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{number}")
}
