//! A virtual machine for one run, and the functions a script finds in it.

use std::sync::Arc;

use jiff::Timestamp;
use mlua::{Error, Lua, LuaOptions, LuaString, StdLib, Table, Value, chunk::ChunkMode};

use super::{
    Libraries, clock,
    limits::{MEMORY, Meter},
    strings,
};

/// Base functions as they are. Those that load code are not among them, nor those that reach a finalizer, the
/// collector, a handler of errors or the output.
const BASE: [&str; 13] = [
    "assert",
    "error",
    "getmetatable",
    "ipairs",
    "next",
    "pairs",
    "pcall",
    "rawequal",
    "rawget",
    "rawset",
    "select",
    "tonumber",
    "type",
];

/// A fresh machine and the global table of the script.
pub(super) fn prepare(
    libraries: Libraries,
    now: Timestamp,
    meter: &Arc<Meter>,
) -> Result<(Lua, Table), Error> {
    let lua = Lua::new_with(StdLib::TABLE | StdLib::STRING | StdLib::MATH, LuaOptions::default())?;
    lua.set_memory_limit(MEMORY)?;
    // The library's own texts would answer `("a"):rep(…)` past our limits.
    lua.set_type_metatable::<LuaString>(None);
    let base = lua.globals();
    let globals = lua.create_table()?;
    for name in BASE {
        globals.raw_set(name, base.raw_get::<Value>(name)?)?;
    }
    let library: Table = base.raw_get("table")?;
    let texts = match libraries {
        Libraries::Restricted => None,
        Libraries::Open => Some(strings::library(&lua, base.raw_get("string")?, meter)?),
    };
    lua.load(include_str!("prelude.lua")).set_name("=[Lua]").set_mode(ChunkMode::Text).call::<()>((
        &globals,
        &base,
        library,
        lua.create_function(|_, number| Ok(whole(&number)))?,
        clock::library(&lua, now)?,
        texts,
    ))?;
    if libraries == Libraries::Open {
        open(&lua, &base, &globals)?;
    }
    Ok((lua, globals))
}

fn open(lua: &Lua, base: &Table, globals: &Table) -> Result<(), Error> {
    let loaded: Table = globals.raw_get::<Table>("package")?.raw_get("loaded")?;
    let math: Table = base.raw_get("math")?;
    // As it was called in Lua 5.1.
    math.raw_set("mod", math.raw_get::<Value>("fmod")?)?;
    loaded.raw_set("math", &math)?;
    globals.raw_set("math", math)?;
    globals.raw_set("os", loaded.raw_get::<Value>("os")?)?;
    let methods = lua.create_table()?;
    methods.raw_set("__index", globals.raw_get::<Value>("string")?)?;
    methods.raw_set("__metatable", false)?;
    lua.set_type_metatable::<LuaString>(Some(methods));
    Ok(())
}

/// A whole number in all its digits, which Lua itself prints with an exponent from 15 digits on.
pub(super) fn whole(value: &Value) -> Option<String> {
    match value {
        Value::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}
