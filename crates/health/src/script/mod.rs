//! Running one Lua script over one object.
//!
//! # Guarantees
//! A script sees the object, its parameters and a few pure functions; nothing of the machine but the time. It ends
//! within [`limits::WALL`] and a little, uses at most [`limits::MEMORY`], and cannot catch the error that ends it. Every
//! run has a virtual machine of its own, so that no script sees what another left.

mod clock;
mod convert;
mod environment;
mod escapes;
mod format;
mod limits;
mod patterns;
mod strings;

use std::{collections::BTreeMap, sync::Arc};

use baton_api::{application_status::HealthCode, health::Health};
use jiff::Timestamp;
use mlua::{Error, Lua, MultiValue, Value as LuaValue, chunk::ChunkMode};
use serde_json::{Map, Value};

use limits::Meter;

/// Longest script that is run, in bytes.
const MAX_SCRIPT: usize = 1 << 20;

/// Which functions a script may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Libraries {
    /// The base functions and tables; `require("os")` for the time.
    Restricted,
    /// Texts, mathematics and the time besides.
    Open,
}

/// A script and what it may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    /// Its text.
    pub(crate) text: Arc<str>,
    /// What it may call.
    pub(crate) libraries: Libraries,
}

/// Why a script has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// It is no Lua.
    #[error("{0}")]
    Syntax(String),
    /// It ended with an error.
    #[error("{0}")]
    Runtime(String),
    /// It did not end in time.
    #[error("the script was stopped: it ran for too long")]
    TooLong,
    /// It needed too much memory.
    #[error("the script was stopped: it needs too much memory")]
    TooMuchMemory,
    /// Its text, or what it returned, is too large.
    #[error("{0} is too large")]
    TooLarge(&'static str),
    /// The object is nested deeper than scripts are given.
    #[error("the object is nested too deep for a script")]
    TooDeep,
    /// It returned something else than it was to.
    #[error("expect table output from Lua script, not {0}")]
    NotATable(&'static str),
    /// It returned what JSON cannot hold.
    #[error("cannot encode {0}")]
    NotJson(&'static str),
}

/// What a script of health says of an object; `None` if it says nothing.
pub(crate) fn health(script: &Script, object: &Value, now: Timestamp) -> Result<Option<Health>, ScriptError> {
    let returned = match run(script, object, &BTreeMap::new(), now) {
        Err(ScriptError::NotATable("nil")) => return Ok(None),
        returned => returned?,
    };
    let Value::Object(returned) = returned else { return Ok(None) };
    let status = field(&returned, "status").as_str().unwrap_or_default().to_owned();
    Ok(Some(match HealthCode::from(status) {
        HealthCode::Other(_) => Health::new(HealthCode::Unknown, "Lua returned an invalid health status"),
        code => Health::new(code, message(field(&returned, "message"))),
    }))
}

/// A field under its name, however it is capitalised, as Go reads it.
fn field<'a>(map: &'a Map<String, Value>, name: &str) -> &'a Value {
    let loosely = || map.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    map.get(name).or_else(loosely).unwrap_or(&Value::Null)
}

fn message(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Runs a script and returns the table it returns, as JSON. Of several results the last counts.
pub(crate) fn run(
    script: &Script,
    object: &Value,
    parameters: &BTreeMap<String, String>,
    now: Timestamp,
) -> Result<Value, ScriptError> {
    if script.text.len() > MAX_SCRIPT {
        return Err(ScriptError::TooLarge("the script"));
    }
    if convert::is_too_deep(object) {
        return Err(ScriptError::TooDeep);
    }
    let meter = Arc::new(Meter::new());
    let outcome = evaluate(script, object, parameters, now, &meter);
    if meter.is_spent() {
        return Err(ScriptError::TooLong);
    }
    outcome
}

fn evaluate(
    script: &Script,
    object: &Value,
    parameters: &BTreeMap<String, String>,
    now: Timestamp,
    meter: &Arc<Meter>,
) -> Result<Value, ScriptError> {
    let (lua, globals) = environment::prepare(script.libraries, now, meter).map_err(explain)?;
    let set = || {
        globals.raw_set("obj", convert::to_lua(&lua, object)?)?;
        globals
            .raw_set("actionParams", lua.create_table_from(parameters.iter().map(|(k, v)| (&**k, &**v)))?)?;
        limits::enforce(&lua, meter)
    };
    set().map_err(explain)?;
    let returned: MultiValue = lua
        .load(&*escapes::lenient(&script.text))
        .set_name("=<string>")
        .set_mode(ChunkMode::Text)
        .set_environment(globals)
        .call(())
        .map_err(explain)?;
    last(&lua, returned)
}

fn last(lua: &Lua, mut returned: MultiValue) -> Result<Value, ScriptError> {
    match returned.pop_back() {
        Some(LuaValue::Table(table)) => convert::from_lua(lua, table),
        None => Err(ScriptError::NotATable("nil")),
        Some(other) => Err(ScriptError::NotATable(convert::type_name(&other))),
    }
}

/// The script's own error, without the traceback that is of no use to who reads a health.
fn explain(error: Error) -> ScriptError {
    match error {
        Error::CallbackError { cause, .. } => explain((*cause).clone()),
        Error::SyntaxError { message, .. } => ScriptError::Syntax(message),
        Error::MemoryError(_) => ScriptError::TooMuchMemory,
        Error::RuntimeError(message) => {
            let message = message.split("\nstack traceback:").next().unwrap_or_default();
            ScriptError::Runtime(message.to_owned())
        }
        other => ScriptError::Runtime(other.to_string()),
    }
}
