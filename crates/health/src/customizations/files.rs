//! Customizations in files.

use baton_grammar::globs::doublestar;

use super::{Actions, CustomizationError, Glob, Kind, Layer};
use crate::script::{Libraries, Script};

pub(super) fn read(files: impl IntoIterator<Item = (String, String)>) -> Result<Layer, CustomizationError> {
    let mut layer = Layer::default();
    for (path, text) in files {
        let Some((key, role)) = role(&path) else { continue };
        let kind = layer.kinds.entry(key.to_owned()).or_default();
        match role {
            Role::Health => kind.health = Some(script(&text, Libraries::Open)),
            Role::Discovery => actions(kind).discovery = Some(script(&text, Libraries::Restricted)),
            Role::Action(name) => {
                actions(kind).definitions.insert(name.to_owned(), script(&text, Libraries::Restricted));
            }
        }
    }
    for key in layer.kinds.keys().filter(|key| key.contains('_')) {
        let pattern = key.replace('_', "*");
        let glob = doublestar::Pattern::new(&pattern)
            .map_err(|error| CustomizationError::Pattern { pattern, why: error.to_string() })?;
        layer.globs.push((Glob::Strict(glob), key.clone()));
    }
    Ok(layer)
}

enum Role<'a> {
    Health,
    Discovery,
    Action(&'a str),
}

/// What a file is for, and of which kind.
fn role(path: &str) -> Option<(&str, Role<'_>)> {
    let path = path.strip_prefix("./").unwrap_or(path);
    let (directory, file) = path.rsplit_once('/')?;
    match file {
        "health.lua" => kind(directory).map(|key| (key, Role::Health)),
        "discovery.lua" => kind(directory.strip_suffix("/actions")?).map(|key| (key, Role::Discovery)),
        "action.lua" => {
            let (actions, name) = directory.rsplit_once('/')?;
            kind(actions.strip_suffix("/actions")?).map(|key| (key, Role::Action(name)))
        }
        _ => None,
    }
}

/// `<group>/<Kind>`, or `<Kind>` in the core group.
fn kind(directory: &str) -> Option<&str> {
    let known = !directory.is_empty() && directory.split('/').count() <= 2;
    known.then_some(directory)
}

fn script(text: &str, libraries: Libraries) -> Script {
    Script { text: text.into(), libraries }
}

fn actions(kind: &mut Kind) -> &mut Actions {
    match kind.actions.get_or_insert_with(|| Ok(Actions::default())) {
        Ok(actions) => actions,
        Err(why) => unreachable!("actions in files are not YAML that could be wrong: {why}"),
    }
}
