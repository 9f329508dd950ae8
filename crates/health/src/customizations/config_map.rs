//! Customizations in `argocd-cm`.

use std::collections::BTreeMap;

use baton_grammar::{globs::gobwas, yaml};
use serde_json::Value;

use super::{Actions, CustomizationError, Glob, Kind, Layer};
use crate::script::{Libraries, Script};

/// The old way: one map of all kinds. Also the prefix of all other keys.
const ALL: &str = "resource.customizations";

/// What is said of one kind, not yet put together.
#[derive(Default)]
struct Raw {
    health: String,
    open: bool,
    actions: String,
}

pub(super) fn read(data: &BTreeMap<String, String>) -> Result<Layer, CustomizationError> {
    let mut kinds: BTreeMap<String, Raw> = BTreeMap::new();
    if let Some(text) = data.get(ALL) {
        old(text, &mut kinds)?;
    }
    for (name, text) in data {
        let Some((what, key)) =
            name.strip_prefix(ALL).and_then(|rest| rest.strip_prefix('.')?.split_once('.'))
        else {
            continue;
        };
        let raw = kinds.entry(kind(name, key)?).or_default();
        match what {
            "health" => text.clone_into(&mut raw.health),
            "useOpenLibs" => raw.open = boolean(text).ok_or_else(|| fault(name, "expected true or false"))?,
            "actions" => text.clone_into(&mut raw.actions),
            "ignoreDifferences" | "ignoreResourceUpdates" | "knownTypeFields" => {}
            other => return Err(CustomizationError::Type(other.to_owned())),
        }
    }
    Ok(layer(kinds))
}

fn layer(raw: BTreeMap<String, Raw>) -> Layer {
    let mut globs: Vec<(Glob, String)> = raw
        .keys()
        .filter(|key| key.contains(['*', '?', '[', '{']))
        .filter_map(|key| Some((Glob::Loose(gobwas::Pattern::new(key, &[]).ok()?), key.clone())))
        .collect();
    // The one that says most comes first: `*.example.com/*` before `*/*`. Argo CD takes any that matches.
    globs.sort_by_key(|(_, key)| (std::cmp::Reverse(literals(key)), key.clone()));
    Layer { kinds: raw.into_iter().map(|(key, raw)| (key, raw.finish())).collect(), globs }
}

fn literals(pattern: &str) -> usize {
    pattern.chars().filter(|char| !"*?[]{}".contains(*char)).count()
}

impl Raw {
    fn finish(self) -> Kind {
        let libraries = if self.open { Libraries::Open } else { Libraries::Restricted };
        Kind {
            health: script(&self.health, libraries),
            actions: (!self.actions.is_empty()).then(|| actions(&self.actions)),
        }
    }
}

fn old(text: &str, kinds: &mut BTreeMap<String, Raw>) -> Result<(), CustomizationError> {
    let map = match yaml::first(text).map_err(|error| fault(ALL, &error.to_string()))? {
        Value::Object(map) => map,
        Value::Null => return Ok(()),
        _ => return Err(fault(ALL, "expected a map of kinds")),
    };
    for (key, said) in map {
        let text = |field: &str| -> Result<String, CustomizationError> {
            match &said[field] {
                Value::Null => Ok(String::new()),
                Value::String(text) => Ok(text.clone()),
                _ => Err(fault(ALL, &format!("{field} of {key:?} is no text"))),
            }
        };
        let open = match &said["health.lua.useOpenLibs"] {
            Value::Null => false,
            Value::Bool(open) => *open,
            _ => {
                return Err(fault(
                    ALL,
                    &format!("health.lua.useOpenLibs of {key:?} is neither true nor false"),
                ));
            }
        };
        let raw = Raw { health: text("health.lua")?, open, actions: text("actions")? };
        kinds.insert(key, raw);
    }
    Ok(())
}

/// `group_Kind` as it is looked up. Config maps allow no `*` in keys, so `all` stands for every kind.
fn kind(name: &str, key: &str) -> Result<String, CustomizationError> {
    match *key.split('_').collect::<Vec<_>>().as_slice() {
        ["all"] => Ok("*/*".to_owned()),
        [kind] if !kind.is_empty() => Ok(kind.to_owned()),
        [group, kind] => Ok(format!("{group}/{kind}")),
        _ => Err(CustomizationError::Key(name.to_owned())),
    }
}

fn actions(text: &str) -> Result<Actions, String> {
    let value = yaml::first(text).map_err(|error| error.to_string())?;
    let mut actions = Actions { merge: value["mergeBuiltinActions"] == true, ..Actions::default() };
    actions.discovery = script(value["discovery.lua"].as_str().unwrap_or_default(), Libraries::Restricted);
    for definition in value["definitions"].as_array().map_or(&[][..], Vec::as_slice) {
        let name = definition["name"].as_str().ok_or("an action has no name")?;
        let text = definition["action.lua"].as_str().unwrap_or_default();
        if let Some(script) = script(text, Libraries::Restricted) {
            actions.definitions.entry(name.to_owned()).or_insert(script);
        }
    }
    Ok(actions)
}

fn script(text: &str, libraries: Libraries) -> Option<Script> {
    (!text.is_empty()).then(|| Script { text: text.into(), libraries })
}

/// As Go's `strconv.ParseBool` reads it.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn fault(key: &str, why: &str) -> CustomizationError {
    CustomizationError::Value { key: key.to_owned(), why: why.to_owned() }
}
