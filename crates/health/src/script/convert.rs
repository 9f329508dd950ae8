//! JSON as Lua tables, and back.

use mlua::{Error, Lua, Table, Value as LuaValue};
use serde_json::{Map, Number, Value};

use super::ScriptError;

/// Deepest nesting a script may be given or return: both are walked on a thread's stack.
const MAX_DEPTH: usize = 256;

/// Most values a script may return, and most bytes of text in them. A table that is used twice counts twice.
const MAX_VALUES: usize = 1_000_000;
const MAX_TEXT: usize = 16 << 20;

/// Integers up to here are exact in Lua's numbers.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Field of the metatable of what was a map, by which an empty one is told from an empty list. A script that copies
/// tables copies it too.
const MAP: &str = "__baton_map";

/// Whether a value is nested deeper than a script may be given.
pub(super) fn is_too_deep(value: &Value) -> bool {
    fn deeper(value: &Value, left: usize) -> bool {
        let Some(left) = left.checked_sub(1) else { return true };
        match value {
            Value::Array(items) => items.iter().any(|item| deeper(item, left)),
            Value::Object(fields) => fields.values().any(|field| deeper(field, left)),
            _ => false,
        }
    }
    deeper(value, MAX_DEPTH)
}

/// A value as Lua sees it: `null` is nothing at all, neither in a map nor in a list.
pub(super) fn to_lua(lua: &Lua, value: &Value) -> Result<LuaValue, Error> {
    let map = lua.create_table_from([(MAP, true)])?;
    value_to_lua(lua, value, &map)
}

fn value_to_lua(lua: &Lua, value: &Value, map: &Table) -> Result<LuaValue, Error> {
    Ok(match value {
        Value::Null => LuaValue::Nil,
        Value::Bool(value) => LuaValue::Boolean(*value),
        Value::Number(number) => LuaValue::Number(number.as_f64().unwrap_or_default()),
        Value::String(text) => LuaValue::String(lua.create_string(text)?),
        Value::Array(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            for item in items.iter().filter(|item| !item.is_null()) {
                table.raw_push(value_to_lua(lua, item, map)?)?;
            }
            LuaValue::Table(table)
        }
        Value::Object(fields) => {
            let table = lua.create_table_with_capacity(0, fields.len())?;
            for (key, field) in fields {
                table.raw_set(&**key, value_to_lua(lua, field, map)?)?;
            }
            table.set_metatable(Some(map.clone()))?;
            LuaValue::Table(table)
        }
    })
}

/// A table as JSON: a list if its keys count from one, otherwise a map. A new table that is empty is an empty list.
pub(super) fn from_lua(lua: &Lua, table: Table) -> Result<Value, ScriptError> {
    // What is left of the script's work is done here; its limits would stop the reading of a large result.
    lua.remove_global_hook();
    Reader { values: MAX_VALUES, text: MAX_TEXT }.table(table, MAX_DEPTH)
}

/// Lua's name of a value's type.
pub(super) fn type_name(value: &LuaValue) -> &'static str {
    match value {
        LuaValue::Nil => "nil",
        LuaValue::Boolean(_) => "boolean",
        LuaValue::Integer(_) | LuaValue::Number(_) => "number",
        LuaValue::String(_) => "string",
        LuaValue::Table(_) => "table",
        LuaValue::Function(_) => "function",
        LuaValue::Thread(_) => "thread",
        _ => "userdata",
    }
}

struct Reader {
    values: usize,
    text: usize,
}

impl Reader {
    fn value(&mut self, value: LuaValue, depth: usize) -> Result<Value, ScriptError> {
        match value {
            LuaValue::Boolean(value) => Ok(Value::Bool(value)),
            LuaValue::Integer(number) => Ok(Value::from(number)),
            LuaValue::Number(number) => float(number),
            LuaValue::String(text) => Ok(Value::String(self.string(&text.as_bytes())?)),
            LuaValue::Table(table) => self.table(table, depth),
            LuaValue::Function(_) => Err(ScriptError::NotJson("function to JSON")),
            _ => Err(ScriptError::NotJson("userdata to JSON")),
        }
    }

    fn table(&mut self, table: Table, depth: usize) -> Result<Value, ScriptError> {
        let depth = depth.checked_sub(1).ok_or(ScriptError::NotJson("recursively nested tables to JSON"))?;
        // Metamethods are not asked: `raw_len` and raw iteration read what the table holds.
        let length = table.raw_len();
        let mut list: Vec<Option<Value>> = Vec::new();
        let mut map = Map::new();
        for pair in table.pairs::<LuaValue, LuaValue>() {
            let (key, value) = pair.map_err(super::explain)?;
            self.values = self.values.checked_sub(1).ok_or(TOO_LARGE)?;
            match key {
                LuaValue::String(key) => {
                    let key = self.string(&key.as_bytes())?;
                    map.insert(key, self.value(value, depth)?);
                }
                LuaValue::Integer(index) => {
                    let place = usize::try_from(index).ok().filter(|place| (1..=length).contains(place));
                    let place = place.ok_or(ScriptError::NotJson("sparse array"))? - 1;
                    if list.is_empty() {
                        list.resize(length.min(MAX_VALUES), None);
                    }
                    *list.get_mut(place).ok_or(TOO_LARGE)? = Some(self.value(value, depth)?);
                }
                _ => return Err(MIXED),
            }
        }
        match (list.is_empty(), map.is_empty()) {
            (true, false) => return Ok(Value::Object(map)),
            (false, false) => return Err(MIXED),
            (true, true) if was_map(&table) => return Ok(Value::Object(map)),
            (_, true) => {}
        }
        list.into_iter()
            .collect::<Option<Vec<Value>>>()
            .map(Value::Array)
            .ok_or(ScriptError::NotJson("sparse array"))
    }

    fn string(&mut self, bytes: &[u8]) -> Result<String, ScriptError> {
        self.text = self.text.checked_sub(bytes.len()).ok_or(TOO_LARGE)?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
}

fn was_map(table: &Table) -> bool {
    table
        .metatable()
        .is_some_and(|it| it.raw_get::<LuaValue>(MAP).is_ok_and(|mark| mark.as_boolean() == Some(true)))
}

const TOO_LARGE: ScriptError = ScriptError::TooLarge("what the script returned");
const MIXED: ScriptError = ScriptError::NotJson("mixed or invalid key types");

/// A number that is whole is written as such.
fn float(number: f64) -> Result<Value, ScriptError> {
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        return Ok(Value::from(number as i64));
    }
    Number::from_f64(number)
        .map(Value::Number)
        .ok_or(ScriptError::NotJson("a number that is not finite to JSON"))
}
