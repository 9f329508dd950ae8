//! Argo CD's own: YAML written and read.

use baton_grammar::yaml;
use serde_json::Number;

use super::{Outcome, metered, str_of};
use crate::budget::Budget;
use crate::float;
use crate::function::Param::{Any, Str};
use crate::function::{Context, Function};
use crate::value::{List, Map, Value};

pub(super) static FUNCTIONS: &[Function] = &[
    metered("toYaml", &[Any], None, to_yaml),
    metered("fromYaml", &[Str], None, |context, args| match read(str_of(&args[0]), context.budget)? {
        serde_json::Value::Null => Ok(Value::Map(Map::new([]))),
        map @ serde_json::Value::Object(_) => Ok(Value::from(&map)),
        other => Err(misfit(&other, "map[string]interface {}")),
    }),
    metered("fromYamlArray", &[Str], None, |context, args| match read(str_of(&args[0]), context.budget)? {
        serde_json::Value::Null => Ok(Value::List(List::new([]))),
        list @ serde_json::Value::Array(_) => Ok(Value::from(&list)),
        other => Err(misfit(&other, "[]interface {}")),
    }),
];

fn to_yaml(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let mut left = context.budget.limits().output;
    let json = json_of(&args[0], context.budget, &mut left, 0)?;
    let mut text = yaml::to_string(&json);
    text.pop();
    Ok(text.into())
}

/// The value as JSON holds it. What it takes as YAML, indentation included, is counted on the way.
fn json_of(
    value: &Value,
    budget: &mut Budget,
    left: &mut usize,
    depth: usize,
) -> Result<serde_json::Value, String> {
    Budget::depth(depth)?;
    let own = if let Value::Str(text) = value { text.len() } else { 0 };
    spend(own + 2 * depth, budget, left)?;
    Ok(match value {
        Value::Nil => serde_json::Value::Null,
        Value::Bool(flag) => (*flag).into(),
        Value::Int(int) | Value::Int64(int) => (*int).into(),
        Value::Byte(byte) => (*byte).into(),
        Value::Float(number) => match Number::from_f64(*number) {
            Some(number) => serde_json::Value::Number(number),
            None => {
                let shown = float::shortest(*number);
                return Err(format!("error marshaling into JSON: json: unsupported value: {shown}"));
            }
        },
        Value::Str(text) => serde_json::Value::String(text.to_string()),
        Value::Object(object) => {
            let text =
                object.thing().json().map_err(|error| format!("error marshaling into JSON: {error}"))?;
            serde_json::from_str(&text).map_err(|error| error.to_string())?
        }
        Value::List(list) if list.is_nil() => serde_json::Value::Null,
        Value::List(list) => {
            let items = list.items().iter().map(|item| json_of(item, budget, left, depth + 1));
            serde_json::Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Map(map) => {
            let mut entries = serde_json::Map::new();
            for (key, item) in map.snapshot() {
                spend(key.len(), budget, left)?;
                entries.insert(key.to_string(), json_of(&item, budget, left, depth + 1)?);
            }
            serde_json::Value::Object(entries)
        }
    })
}

fn spend(bytes: usize, budget: &mut Budget, left: &mut usize) -> Result<(), String> {
    budget.values(1)?;
    // Texts are looked at several times over before they are written.
    budget.bytes(bytes.saturating_mul(4))?;
    *left = left
        .checked_sub(bytes + 1)
        .ok_or_else(|| format!("text is longer than {} bytes", budget.limits().output))?;
    Ok(())
}

fn read(text: &str, budget: &mut Budget) -> Result<serde_json::Value, String> {
    // Every few bytes may be a value.
    budget.values(text.len() / 2)?;
    yaml::first(text).map_err(|error| format!("error converting YAML to JSON: {error}"))
}

fn misfit(value: &serde_json::Value, wanted: &str) -> String {
    let found = match value {
        serde_json::Value::Array(_) => "array",
        serde_json::Value::Object(_) => "object",
        serde_json::Value::String(_) => "string",
        serde_json::Value::Number(_) => "number",
        serde_json::Value::Bool(_) => "bool",
        serde_json::Value::Null => "null",
    };
    let complaint = format!("json: cannot unmarshal {found} into Go value of type {wanted}");
    format!("error unmarshaling JSON: while decoding JSON: {complaint}")
}
