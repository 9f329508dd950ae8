//! What operators say about kinds: scripts of health and actions, found by group and kind.

mod config_map;
mod files;

use std::{collections::BTreeMap, sync::Arc};

use baton_grammar::globs::{doublestar, gobwas};

use crate::script::Script;

/// Scripts by group and kind, in layers: what the first layer says of a kind hides what later ones say. Clones share
/// everything.
#[derive(Debug, Clone, Default)]
pub struct Customizations {
    layers: Arc<[Arc<Layer>]>,
}

/// Why customizations cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CustomizationError {
    /// A value is not the YAML it should be.
    #[error("{key}: {why}")]
    Value {
        /// Key of the config map.
        key: String,
        /// What is wrong.
        why: String,
    },
    /// A key names no group and kind.
    #[error(
        "{0}: group kind should be in format `resource.customizations.<type>.<group_kind>` or \
         `resource.customizations.<type>.<kind>`"
    )]
    Key(String),
    /// A key is about something that does not exist.
    #[error("resource customization type {0} not supported")]
    Type(String),
    /// A directory's name with wildcards is no pattern.
    #[error("invalid glob pattern {pattern:?}: {why}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong.
        why: String,
    },
}

/// One source of customizations.
#[derive(Debug, Default)]
struct Layer {
    /// By `group/Kind`, or `Kind` in the core group.
    kinds: BTreeMap<String, Kind>,
    /// Keys that match several kinds, in the order they are tried.
    globs: Vec<(Glob, String)>,
}

/// What is said of one kind.
#[derive(Debug, Default)]
struct Kind {
    health: Option<Script>,
    /// An error is reported when the actions are asked for: it must not take the health of every kind with it.
    actions: Option<Result<Actions, String>>,
}

#[derive(Debug, Default)]
struct Actions {
    discovery: Option<Script>,
    definitions: BTreeMap<String, Script>,
    /// Whether later layers' actions are offered too.
    merge: bool,
}

#[derive(Debug)]
enum Glob {
    /// Of a config map: `*` matches everything.
    Loose(gobwas::Pattern),
    /// Of a directory: `*` stays inside the group or the kind.
    Strict(doublestar::Pattern),
}

impl Customizations {
    /// Reads `resource.customizations` and `resource.customizations.<what>.<group>_<Kind>` of `argocd-cm`. What is
    /// said there about differences is not read here.
    ///
    /// # Errors
    /// A key or value that cannot be read. Actions that cannot be read are reported when they are asked for.
    pub fn from_config_map(data: &BTreeMap<String, String>) -> Result<Customizations, CustomizationError> {
        config_map::read(data).map(Customizations::of)
    }

    /// Reads a directory laid out as Argo CD's `resource_customizations`, given as relative paths and contents:
    /// `<group>/<Kind>/health.lua`, `actions/discovery.lua` and `actions/<name>/action.lua` beside it. `_` in the name of
    /// a directory stands for anything. Other files are not looked at.
    ///
    /// # Errors
    /// A directory's name that is no pattern.
    pub fn from_files(
        files: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Customizations, CustomizationError> {
        files::read(files).map(Customizations::of)
    }

    /// These, and the other's for what these say nothing about.
    #[must_use]
    pub fn with_fallback(self, other: Customizations) -> Customizations {
        Customizations { layers: self.layers.iter().chain(other.layers.iter()).cloned().collect() }
    }

    fn of(layer: Layer) -> Customizations {
        Customizations { layers: Arc::new([Arc::new(layer)]) }
    }

    /// The script that tells the health of a kind.
    pub(crate) fn health(&self, group: &str, kind: &str) -> Option<&Script> {
        let key = key(group, kind);
        self.layers.iter().find_map(|layer| layer.health(&key))
    }

    /// The scripts that tell which actions a kind offers; what an earlier one tells wins.
    pub(crate) fn discovery(&self, group: &str, kind: &str) -> Result<Vec<&Script>, String> {
        let actions = self.actions(&key(group, kind))?;
        Ok(actions.into_iter().filter_map(|actions| actions.discovery.as_ref()).collect())
    }

    /// The script of one action.
    pub(crate) fn action(&self, group: &str, kind: &str, name: &str) -> Result<Option<&Script>, String> {
        let actions = self.actions(&key(group, kind))?;
        Ok(actions.into_iter().find_map(|actions| actions.definitions.get(name)))
    }

    /// Whether what a kind offers by itself is offered too: where nothing is said of its actions, or it is to be merged.
    pub(crate) fn leave_builtin(&self, group: &str, kind: &str) -> Result<bool, String> {
        Ok(self.actions(&key(group, kind))?.iter().all(|actions| actions.merge))
    }

    fn actions(&self, key: &str) -> Result<Vec<&Actions>, String> {
        let mut found = Vec::new();
        for layer in self.layers.iter() {
            let Some(actions) = layer.kinds.get(key).and_then(|kind| kind.actions.as_ref()) else { continue };
            let actions = actions.as_ref().map_err(Clone::clone)?;
            found.push(actions);
            if !actions.merge {
                break;
            }
        }
        Ok(found)
    }
}

impl Layer {
    fn health(&self, key: &str) -> Option<&Script> {
        let exact = self.kinds.get(key).and_then(|kind| kind.health.as_ref());
        let matching = || self.globs.iter().filter(|(glob, _)| glob.matches(key));
        exact.or_else(|| matching().find_map(|(_, name)| self.kinds.get(name)?.health.as_ref()))
    }
}

impl Glob {
    fn matches(&self, key: &str) -> bool {
        match self {
            Glob::Loose(pattern) => pattern.matches(key),
            Glob::Strict(pattern) => pattern.matches(key),
        }
    }
}

/// How a group and kind are written.
pub(crate) fn key(group: &str, kind: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{group}/{kind}") }
}
