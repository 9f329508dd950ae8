//! Texts and values that tend to break readers, and ways to damage a sound value.

use serde_json::{Map, Number, Value, json};

use crate::dice::Dice;

/// Words that mean something to some reader of an object.
const WORDS: [&str; 40] = [
    "web",
    "default",
    "",
    "a",
    "A_b",
    "-",
    ".",
    "..",
    "a/b",
    "a.b/c",
    "%2f",
    "%",
    "é",
    "\u{0}",
    "\u{feff}",
    "\u{1f600}",
    "\u{202e}x",
    "\n",
    " ",
    "1Mi",
    "1e400",
    "-0",
    "99999999999999999999",
    "50%",
    "2026-01-01T00:00:00Z",
    "9999-99-99T99:99:99Z",
    "$patch",
    "replace",
    "delete",
    "$setElementOrder/containers",
    "$retainKeys",
    "true",
    "null",
    "~",
    "{{`",
    "YWJj",
    "10.0.0.1",
    "::1",
    "None",
    "*/5 * * * *",
];

/// Field names found in many kinds.
const FIELDS: [&str; 24] = [
    "name",
    "spec",
    "metadata",
    "labels",
    "status",
    "kind",
    "apiVersion",
    "namespace",
    "uid",
    "resourceVersion",
    "managedFields",
    "finalizers",
    "ownerReferences",
    "deletionTimestamp",
    "generateName",
    "creationTimestamp",
    "data",
    "selector",
    "ports",
    "containers",
    "replicas",
    "$patch",
    "size",
    "",
];

pub(crate) fn text(dice: &mut Dice<'_>) -> String {
    match dice.below(16) {
        0..12 => (*dice.pick(&WORDS)).to_owned(),
        12 => "x".repeat([63, 64, 253, 254, 5000][dice.below(5)]),
        13 => "é".repeat(dice.below(200)),
        _ => {
            let length = 1 + dice.below(12);
            String::from_utf8_lossy(dice.take(length)).into_owned()
        }
    }
}

pub(crate) fn field(dice: &mut Dice<'_>) -> String {
    if dice.one_in(6) { text(dice) } else { (*dice.pick(&FIELDS)).to_owned() }
}

fn scalar(dice: &mut Dice<'_>) -> Value {
    match dice.below(12) {
        0..4 => text(dice).into(),
        4 => Value::Null,
        5 => dice.one_in(2).into(),
        6 => json!(dice.below(5)),
        7 => json!(-1 - i64::from(dice.roll())),
        8 => (*dice.pick(&[i64::MAX, i64::MIN, i64::from(i32::MAX) + 1, 65_536, 0])).into(),
        9 => json!(u64::MAX),
        10 => Number::from_f64(*dice.pick(&[1.5, -0.0, 1e308, 1e-308, 1e15, 0.1]))
            .map_or(Value::Null, Value::from),
        _ => json!(1),
    }
}

/// Any JSON, at most `depth` levels deep.
pub(crate) fn value(dice: &mut Dice<'_>, depth: usize) -> Value {
    match dice.below(8) {
        0 | 1 if depth > 0 => (0..dice.below(4)).map(|_| value(dice, depth - 1)).collect(),
        2..5 if depth > 0 => {
            let fields: Map<_, _> =
                (0..dice.below(4)).map(|_| (field(dice), value(dice, depth - 1))).collect();
            Value::Object(fields)
        }
        5 if dice.one_in(16) => nested(60),
        _ => scalar(dice),
    }
}

/// Lists in lists.
pub(crate) fn nested(depth: usize) -> Value {
    (0..depth).fold(Value::Null, |inner, _| Value::Array(vec![inner]))
}

/// Changes one place of a value.
pub(crate) fn damage(dice: &mut Dice<'_>, target: &mut Value) {
    // Mostly at some depth: the outermost fields alone are soon explored.
    if !dice.one_in(5)
        && let Some(child) = some_child(dice, target)
    {
        return damage(dice, child);
    }
    match (dice.below(8), target) {
        (0, Value::Object(fields)) => {
            let name = field(dice);
            fields.insert(name, value(dice, 2));
        }
        (1 | 2, Value::Object(fields)) if !fields.is_empty() => {
            let name = some_key(dice, fields);
            let taken = fields.remove(&name);
            if let (true, Some(taken)) = (dice.one_in(2), taken) {
                fields.insert(field(dice), taken);
            }
        }
        (0, Value::Array(items)) if !items.is_empty() => {
            let copy = dice.pick(items).clone();
            items.push(copy);
        }
        (1, Value::Array(items)) if !items.is_empty() => {
            let at = dice.below(items.len());
            items.remove(at);
        }
        (2, Value::Array(items)) => items.reverse(),
        (3, target) => *target = Value::Array(vec![target.take()]),
        (4, target) => *target = json!({ "name": target.take() }),
        (5, target) => *target = value(dice, 3),
        (_, target) => *target = scalar(dice),
    }
}

fn some_key(dice: &mut Dice<'_>, fields: &Map<String, Value>) -> String {
    fields.keys().nth(dice.below(fields.len())).cloned().unwrap_or_default()
}

fn some_child<'v>(dice: &mut Dice<'_>, value: &'v mut Value) -> Option<&'v mut Value> {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let at = dice.below(fields.len());
            fields.values_mut().nth(at)
        }
        Value::Array(items) if !items.is_empty() => {
            let at = dice.below(items.len());
            items.get_mut(at)
        }
        _ => None,
    }
}
