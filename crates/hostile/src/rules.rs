//! CEL rules of definitions.

use baton_schema::{Reader, Validator, apply_defaults, prune};
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::templates::{GADGETS, OBJECTS};
use crate::values;

/// What rules are made of, besides operators and calls.
const LEAVES: [&str; 26] = [
    "self",
    "self.size",
    "self.color",
    "self.parts",
    "self.parts[0]",
    "self.tags",
    "self.limits",
    "self.port",
    "self.free",
    "oldSelf",
    "oldSelf.size",
    "x",
    "1",
    "0",
    "-9223372036854775808",
    "9223372036854775807",
    "18446744073709551615u",
    "1e308",
    "'red'",
    "'(a+)+$'",
    "true",
    "null",
    "[1, 2]",
    "{'a': 1}",
    "duration('1h')",
    "timestamp('2026-01-01T00:00:00Z')",
];

const OPERATORS: [&str; 14] =
    ["+", "-", "*", "/", "%", "==", "!=", "<", ">=", "&&", "||", "in", "? 1 :", "? x :"];

/// Any rule compiles or is refused, and those that compile judge any object within their budget.
pub fn rules(bytes: &[u8]) {
    let mut dice = Dice::new(bytes);
    let mut document = GADGETS["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    let rule = match dice.one_in(8) {
        true => String::from_utf8_lossy(dice.clone().take(200)).into_owned(),
        false => expression(&mut dice, 4),
    };
    let node = match dice.below(4) {
        0 | 1 => "/properties/spec",
        2 => "/properties/spec/properties/parts/items",
        _ => "/properties/spec/properties/limits",
    };
    if let Some(node) = document.pointer_mut(node) {
        node["x-kubernetes-validations"] =
            json!([{ "rule": rule, "messageExpression": expression(&mut dice, 2) }]);
    }
    if dice.one_in(4) {
        values::damage(&mut dice, &mut document);
    }
    let Ok(schema) = Reader::standalone().read(&document) else { return };
    let Ok(validator) = Validator::new(schema.clone()) else { return };
    let mut object = gadget(&mut dice);
    let old = gadget(&mut dice);
    prune(&schema, &mut object);
    apply_defaults(&schema, &mut object);
    validator.validate(&object, None);
    validator.validate(&object, Some(&old));
}

fn gadget(dice: &mut Dice<'_>) -> Value {
    let gadget = OBJECTS.iter().find(|object| object["kind"] == "Gadget");
    let mut object = gadget.cloned().unwrap_or_default();
    for _ in 0..dice.below(3) {
        values::damage(dice, &mut object);
    }
    object
}

fn expression(dice: &mut Dice<'_>, depth: usize) -> String {
    if depth == 0 || dice.is_empty() {
        return (*dice.pick(&LEAVES)).to_owned();
    }
    let inner = expression(dice, depth - 1);
    match dice.below(16) {
        0..4 => inner,
        4..8 => format!("({inner} {} {})", dice.pick(&OPERATORS), expression(dice, depth - 1)),
        8 => format!(
            "{inner}.{}",
            dice.pick(&["size()", "matches('a*')", "startsWith('a')", "split(',')", "sum()"])
        ),
        9 => {
            let macro_name = dice.pick(&["all", "exists", "exists_one", "map", "filter"]);
            format!("{inner}.{macro_name}(x, {})", expression(dice, depth - 1))
        }
        10 => format!("has({inner})"),
        11 => format!(
            "{}({inner})",
            dice.pick(&["size", "int", "string", "double", "quantity", "duration", "type"])
        ),
        12 => format!("!{inner}"),
        13 => format!("{inner}[{}]", expression(dice, depth - 1)),
        14 => format!("{inner}.replace({}, 'b')", expression(dice, depth - 1)),
        _ => format!("-({inner})"),
    }
}
