//! Which actions an object offers, and what one would do.

mod builtin;

use std::collections::BTreeMap;

use baton_api::object::Object;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{Customizations, HealthError, ScriptError, customizations, script};

/// An action an object offers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActionInfo {
    /// By which it is run.
    pub name: String,
    /// Whether it is shown but not to be run now.
    pub disabled: bool,
    /// What people read; empty for the name.
    pub display_name: String,
    /// CSS class of its icon.
    pub icon_class: String,
    /// What may be told to it.
    pub params: Vec<ActionParam>,
}

/// A parameter of an action.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActionParam {
    /// Its name.
    pub name: String,
}

/// What an action wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A new object.
    Create(Value),
    /// An object as it should become: the one the action ran on, unless it names another.
    Patch(Value),
}

/// The actions an object offers, by name.
///
/// # Errors
/// A customization that cannot be read or run.
pub fn actions(object: &Value, customizations: &Customizations) -> Result<Vec<ActionInfo>, HealthError> {
    actions_at(object, customizations, Timestamp::now())
}

/// [`actions`] at a given time, which scripts may ask for.
///
/// # Errors
/// As [`actions`].
pub fn actions_at(
    object: &Value,
    customizations: &Customizations,
    now: Timestamp,
) -> Result<Vec<ActionInfo>, HealthError> {
    let mut found: BTreeMap<String, ActionInfo> = BTreeMap::new();
    let scripts = customizations.discovery(object.group(), object.kind()).map_err(unreadable)?;
    for script in scripts {
        match script::run(script, object, &BTreeMap::new(), now)? {
            Value::Object(offered) => {
                for (name, said) in offered {
                    found.entry(name).or_insert_with_key(|name| info(name, &said));
                }
            }
            // An empty table.
            Value::Array(offered) if offered.is_empty() => {}
            _ => return Err(ScriptError::NotATable("list").into()),
        }
    }
    if customizations.leave_builtin(object.group(), object.kind()).map_err(unreadable)? {
        for action in builtin::offered(object) {
            found.entry(action.name.clone()).or_insert(action);
        }
    }
    Ok(found.into_values().collect())
}

fn info(name: &str, said: &Value) -> ActionInfo {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let params = said["params"].as_array().map_or(&[][..], Vec::as_slice).iter();
    ActionInfo {
        name: name.to_owned(),
        disabled: said["disabled"] == true,
        display_name: text(&said["displayName"]),
        icon_class: text(&said["iconClass"]),
        params: params.map(|param| ActionParam { name: text(&param["name"]) }).collect(),
    }
}

/// What an action would do to an object. Nothing is changed.
///
/// # Errors
/// No such action, or a script that cannot be run or returns what is no change.
pub fn run_action(
    object: &Value,
    name: &str,
    params: &BTreeMap<String, String>,
    customizations: &Customizations,
) -> Result<Vec<Change>, HealthError> {
    run_action_at(object, name, params, customizations, Timestamp::now())
}

/// [`run_action`] at a given time, which scripts may ask for.
///
/// # Errors
/// As [`run_action`].
pub fn run_action_at(
    object: &Value,
    name: &str,
    params: &BTreeMap<String, String>,
    customizations: &Customizations,
    now: Timestamp,
) -> Result<Vec<Change>, HealthError> {
    let script = customizations.action(object.group(), object.kind(), name).map_err(unreadable)?;
    let Some(script) = script else {
        let own = customizations.leave_builtin(object.group(), object.kind()).map_err(unreadable)?;
        let change = if own { builtin::run(object, name, params, now)? } else { None };
        return change.map(|change| vec![change]).ok_or_else(|| HealthError::UnknownAction {
            name: name.to_owned(),
            key: customizations::key(object.group(), object.kind()),
        });
    };
    match script::run(script, object, params, now)? {
        Value::Array(changes) => changes.into_iter().map(|change| change_of(change, object)).collect(),
        patched => Ok(vec![Change::Patch(restored(patched, object))]),
    }
}

/// One change of a script that returns several.
fn change_of(change: Value, object: &Value) -> Result<Change, HealthError> {
    let Value::Object(mut fields) = change else { return Err(HealthError::MalformedChange) };
    let resource = fields.remove("resource").filter(Value::is_object);
    let resource = resource.ok_or(HealthError::MalformedChange)?;
    match fields.get("operation").unwrap_or(&Value::Null) {
        Value::String(word) if word == "create" => Ok(Change::Create(restored(resource, &Value::Null))),
        Value::String(word) if word == "patch" => Ok(Change::Patch(restored(resource, object))),
        other => Err(HealthError::UnsupportedOperation(other.to_string())),
    }
}

/// What a script returned, with what Lua cannot hold put back.
fn restored(mut value: Value, source: &Value) -> Value {
    restore(&mut value, source);
    // A map a script makes and leaves empty looks like a list.
    for field in ["annotations", "labels"] {
        if let Some(list) = value.pointer_mut(&format!("/metadata/{field}")).filter(|it| **it == json!([])) {
            *list = json!({});
        }
    }
    value
}

/// Puts back maps that are empty, and whole numbers beyond 2^53.
fn restore(value: &mut Value, source: &Value) {
    match (&mut *value, source) {
        (Value::Object(fields), Value::Object(sources)) => {
            for (key, field) in fields {
                if let Some(source) = sources.get(key) {
                    restore(field, source);
                }
            }
        }
        (Value::Array(items), Value::Array(sources)) => {
            items.iter_mut().zip(sources).for_each(|(item, source)| restore(item, source));
        }
        (Value::Array(items), Value::Object(_)) if items.is_empty() => *value = Value::Object(Map::new()),
        (Value::Number(number), Value::Number(source)) if number.as_f64() == source.as_f64() => {
            *number = source.clone();
        }
        _ => {}
    }
}

fn unreadable(why: String) -> HealthError {
    HealthError::Actions(why)
}
