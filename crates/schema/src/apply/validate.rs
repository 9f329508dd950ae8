//! Whether an applied configuration fits its schema well enough to be merged.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

use super::element::Element;
use super::typed::{Shape, Type};
use crate::gotext;
use crate::model::Kind;

/// Most problems reported; a hostile configuration could have one per byte.
const MOST: usize = 100;

/// Everything that keeps the configuration from being merged, each as `path: message`.
pub(crate) fn problems(ty: Type<'_>, config: &Value) -> Vec<String> {
    let mut walk = Walk { path: Vec::new(), found: Vec::new() };
    walk.check(ty, config);
    walk.found
}

/// One step of the way to a problem; only problems pay for its text.
enum Step<'v> {
    Field(&'v str),
    Element(Element),
    Index(usize),
}

struct Walk<'v> {
    path: Vec<Step<'v>>,
    found: Vec<String>,
}

impl<'v> Walk<'v> {
    fn check(&mut self, ty: Type<'_>, value: &'v Value) {
        if self.found.len() >= MOST {
            return;
        }
        if let Some(problem) = misfit(ty, value) {
            return self.report(&problem);
        }
        match (ty.shape(value), value) {
            (_, Value::Object(fields)) => {
                for (name, value) in fields {
                    let field = ty.field(name);
                    self.path.push(Step::Field(name));
                    if field.undeclared {
                        self.report("field not declared in schema");
                    } else {
                        self.check(field.ty, value);
                    }
                    self.path.pop();
                }
            }
            (shape @ (Shape::Set | Shape::List(_)), Value::Array(items)) => {
                self.check_elements(ty, shape, items);
            }
            (_, Value::Array(items)) => {
                for (place, item) in items.iter().enumerate() {
                    self.path.push(Step::Index(place));
                    self.check(ty.item(), item);
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    fn check_elements(&mut self, ty: Type<'_>, shape: Shape<'_>, items: &'v [Value]) {
        let mut seen = BTreeSet::new();
        for (place, item) in items.iter().enumerate() {
            let element = match ty.element(shape, item) {
                Ok(element) => element,
                // Without a name for the element there is nothing more to say about the list.
                Err(problem) => return self.report(&format!("element {place}: {problem}")),
            };
            if !seen.insert(element.clone()) {
                self.report(&format!("duplicate entries for key {element}"));
            }
            self.path.push(Step::Element(element));
            self.check(ty.item(), item);
            self.path.pop();
        }
    }

    fn report(&mut self, problem: &str) {
        let mut text = String::new();
        for step in &self.path {
            // Writing to a String cannot fail.
            let _ = match step {
                Step::Field(name) => write!(text, ".{name}"),
                Step::Element(element) => write!(text, "{element}"),
                Step::Index(place) => write!(text, "[{place}]"),
            };
        }
        let colon = if text.is_empty() { "" } else { ": " };
        self.found.push(format!("{text}{colon}{problem}"));
    }
}

/// One message for all problems.
pub(crate) fn message(problems: &[String]) -> String {
    match problems {
        [only] => only.clone(),
        all => format!("errors:\n  {}", all.join("\n  ")),
    }
}

fn misfit(ty: Type<'_>, value: &Value) -> Option<String> {
    if value.is_null() {
        return None;
    }
    let shown = || format!("&{{{}}}", gotext::plain(value));
    let scalar = !value.is_object() && !value.is_array();
    match ty.kind()? {
        Kind::Object if !value.is_object() => Some(format!("expected map, got {}", shown())),
        Kind::Array if !value.is_array() => Some(format!("expected list, got {}", shown())),
        Kind::Integer | Kind::Number if !value.is_number() => {
            Some(format!("expected numeric (int or float), got {}", gotext::type_name(value)))
        }
        Kind::String if !(value.is_string() || scalar && ty.loose()) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", gotext::literal(value)))
        }
        Kind::Boolean if !value.is_boolean() => Some(format!("expected boolean, got {}", shown())),
        _ => None,
    }
}
