//! JSON patch, merge patch and strategic merge patch.

use baton_schema::{patch as patches, strategic};
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::templates::{self, OBJECTS};
use crate::values;

/// Any patch of any object gives an object that can be written and read back, or an error.
pub fn patch(bytes: &[u8]) {
    let mut dice = Dice::new(bytes);
    let template = dice.pick(&OBJECTS).clone();
    let text = |name: &str| template[name].as_str().unwrap_or_default();
    let Some(schema) = templates::schema(text("apiVersion"), text("kind")) else { return };
    let mut object = templates::object(&mut dice, text("apiVersion"), text("kind"));
    if dice.one_in(3) {
        values::damage(&mut dice, &mut object);
    }
    if !object.is_object() {
        return; // Nothing else is ever stored.
    }

    let changes = changes(&mut dice, &object);
    if let Ok(outcome) = strategic::merge(&schema, &object, &changes) {
        read_back(&outcome);
    }
    assert_eq!(strategic::merge(&schema, &object, &json!({})).as_ref(), Ok(&object), "nothing is patched");

    let once = patches::merge(&object, &changes);
    read_back(&once);
    assert_eq!(patches::merge(&once, &changes), once, "{changes} twice on {object}");

    let operations = operations(&mut dice, &object);
    if let Ok(outcome) = patches::json(&object, &operations) {
        read_back(&outcome);
    }
    let _ = patches::json(&object, &values::value(&mut dice, 4));
}

fn read_back(value: &Value) {
    let text = value.to_string();
    match serde_json::from_str::<Value>(&text) {
        Ok(again) => assert_eq!(&again, value),
        Err(error) => panic!("{error}: {text}"),
    }
}

/// A merge patch, strategic or not: part of the object with changes and directives.
pub(crate) fn changes(dice: &mut Dice<'_>, object: &Value) -> Value {
    let mut changes = object.clone();
    thin(dice, &mut changes, 0);
    for _ in 0..dice.below(4) {
        values::damage(dice, &mut changes);
    }
    for _ in 0..dice.below(3) {
        direct(dice, &mut changes);
    }
    changes
}

/// Leaves out fields at random.
fn thin(dice: &mut Dice<'_>, value: &mut Value, depth: usize) {
    let Value::Object(fields) = value else { return };
    fields.retain(|name, _| (depth == 0 && name == "spec") || !dice.one_in(3));
    fields.values_mut().for_each(|field| thin(dice, field, depth + 1));
}

/// Adds a strategic-merge directive somewhere.
fn direct(dice: &mut Dice<'_>, value: &mut Value) {
    match value {
        Value::Object(fields) if fields.is_empty() || dice.one_in(4) => {
            let names: Vec<String> = fields.keys().cloned().collect();
            let list = fields.keys().next().cloned().unwrap_or_default();
            let (name, directive) = match dice.below(6) {
                0 => ("$patch".to_owned(), json!("delete")),
                1 => ("$patch".to_owned(), json!("replace")),
                2 => ("$patch".to_owned(), values::value(dice, 1)),
                3 => ("$retainKeys".to_owned(), json!(names)),
                4 => (format!("$setElementOrder/{list}"), json!([{"name": "side"}, {"name": "main"}])),
                _ => (format!("$deleteFromPrimitiveList/{list}"), values::value(dice, 2)),
            };
            fields.insert(name, directive);
        }
        Value::Object(fields) => {
            let at = dice.below(fields.len());
            fields.values_mut().nth(at).into_iter().for_each(|field| direct(dice, field));
        }
        Value::Array(items) if !items.is_empty() => {
            let at = dice.below(items.len());
            direct(dice, &mut items[at]);
        }
        _ => {}
    }
}

/// A JSON patch whose pointers mostly lead somewhere.
pub(crate) fn operations(dice: &mut Dice<'_>, object: &Value) -> Value {
    let count = dice.below(6);
    let mut all: Vec<Value> = (0..count)
        .map(|_| {
            let op = *dice.pick(&["add", "remove", "replace", "test", "copy", "move", "frobnicate"]);
            let (path, from) = (pointer(dice, object), pointer(dice, object));
            json!({ "op": op, "path": path, "from": from, "value": values::value(dice, 2) })
        })
        .collect();
    if dice.one_in(10) {
        // Each copy doubles what is copied.
        all.extend(vec![json!({ "op": "copy", "from": "/metadata", "path": "/metadata/again" }); 64]);
    }
    let mut all = Value::Array(all);
    if dice.one_in(6) {
        values::damage(dice, &mut all);
    }
    all
}

fn pointer(dice: &mut Dice<'_>, object: &Value) -> String {
    let mut path = String::new();
    let mut place = object;
    while !dice.one_in(4) {
        let step = match place {
            Value::Object(fields) if !fields.is_empty() => {
                let at = dice.below(fields.len());
                let Some((name, next)) = fields.iter().nth(at) else { break };
                place = next;
                name.replace('~', "~0").replace('/', "~1")
            }
            Value::Array(items) if !items.is_empty() => {
                let at = dice.below(items.len());
                place = &items[at];
                at.to_string()
            }
            _ => break,
        };
        path.push('/');
        path.push_str(&step);
    }
    match dice.below(10) {
        0 => path.push_str("/-"),
        1 => path.push_str("/-1"),
        2 => path = format!("{path}/{}", values::text(dice)),
        3 => path.push_str("/99999999999999999999"),
        _ => {}
    }
    path
}
