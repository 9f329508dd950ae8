//! What a build needs of its repository and of others, found before anything is run.

use std::collections::BTreeSet;

use baton_source::{Place, Tree};
use serde_json::{Map, Value};

use super::Kustomization;
use crate::checkout::{Checkout, cleaned, joined};
use crate::error::Fault;
use crate::settings::Settings;

/// Most directories one build may be made of.
const MAX_DIRECTORIES: usize = 1000;

/// Lists of files and directories to build from.
const PLACES: [&str; 8] = [
    "resources",
    "bases",
    "components",
    "generators",
    "transformers",
    "validators",
    "configurations",
    "crds",
];

/// What a build needs.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// Directories of the repository.
    pub(super) directories: BTreeSet<String>,
    /// Kustomizations that are to be written otherwise than the repository has them.
    pub(super) changed: Vec<(String, Map<String, Value>)>,
    /// What is elsewhere, each with the directory that names it.
    remote: Vec<(String, String)>,
}

/// Follows a build from its main kustomization through all directories it is made of.
pub(super) async fn of(
    checkout: &Checkout,
    directory: &str,
    main: Option<Kustomization>,
) -> Result<Needs, Fault> {
    let mut needs = Needs::default();
    needs.directories.insert(directory.to_owned());
    let mut open: Vec<(String, Kustomization)> = Vec::new();
    open.extend(main.map(|main| (directory.to_owned(), main)));
    while let Some((directory, mut kustomization)) = open.pop() {
        kustomization.is_changed |= straighten(&checkout.tree, &directory, &mut kustomization.content);
        for text in references(&kustomization.content) {
            let Some(path) = cleaned(&directory, text) else {
                if is_remote(text) {
                    needs.remote.push((directory.clone(), text.to_owned()));
                    continue;
                }
                let why =
                    format!("{text:?} of the kustomization in {directory:?} leads out of the repository");
                return Err(Fault::Options(why));
            };
            match checkout.tree.place(&path) {
                Ok(Place::Directory(_)) if !needs.directories.contains(&path) => {
                    if needs.directories.len() == MAX_DIRECTORIES {
                        let why = format!("the build is made of more than {MAX_DIRECTORIES} directories");
                        return Err(Fault::Limit(why));
                    }
                    let next = Kustomization::read(checkout, &path).await?;
                    needs.directories.insert(path.clone());
                    open.extend(next.map(|next| (path, next)));
                }
                Err(_) if is_remote(text) => needs.remote.push((directory.clone(), text.to_owned())),
                // What is not there is for Kustomize to complain about.
                _ => {}
            }
        }
        if kustomization.is_changed {
            needs.changed.push((joined(&directory, kustomization.name), kustomization.content));
        }
    }
    Ok(needs)
}

/// Names directories by their own paths where links lead to them, as what they name in turn is meant from there.
fn straighten(tree: &Tree, directory: &str, kustomization: &mut Map<String, Value>) -> bool {
    let mut is_changed = false;
    for field in PLACES {
        for entry in kustomization.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(path) = entry.as_str().and_then(|text| cleaned(directory, text)) else { continue };
            if let Ok(Place::Directory(real)) = tree.place(&path)
                && real != path
            {
                *entry = relative(directory, &real).into();
                is_changed = true;
            }
        }
    }
    is_changed
}

/// The path to a directory as it is written in another.
fn relative(from: &str, to: &str) -> String {
    let up = from.split('/').filter(|part| !part.is_empty()).map(|_| "..");
    let path: Vec<&str> = up.chain(Some(to).filter(|to| !to.is_empty())).collect();
    if path.is_empty() { ".".to_owned() } else { path.join("/") }
}

impl Needs {
    /// Whether the build needs the network.
    pub(super) fn check_remote(&self, settings: &Settings) -> Result<bool, Fault> {
        let Some((directory, first)) = self.remote.first() else { return Ok(false) };
        if !settings.remote_references {
            return Err(Fault::Unsupported(format!(
                "the kustomization in {directory:?} refers to {first:?}, and remote references are turned off"
            )));
        }
        let is_https = |text: &str| {
            ["https://", "github.com/", "git::https://"].iter().any(|begin| text.starts_with(begin))
        };
        match self.remote.iter().find(|(_, text)| !is_https(text)) {
            Some((directory, text)) => Err(Fault::Unsupported(format!(
                "the kustomization in {directory:?} refers to {text:?}: remote references are fetched by https only, \
                 without credentials"
            ))),
            None => Ok(true),
        }
    }
}

/// All texts of a kustomization that may name files, directories or what is elsewhere.
fn references(kustomization: &Map<String, Value>) -> Vec<&str> {
    let list = |field: &str| kustomization.get(field).and_then(Value::as_array).into_iter().flatten();
    let mut found: Vec<&Value> = Vec::new();
    for field in PLACES.into_iter().chain(["patchesStrategicMerge"]) {
        found.extend(list(field));
    }
    for field in ["patches", "patchesJson6902", "replacements"] {
        found.extend(list(field).filter_map(|entry| entry.get("path")));
    }
    for generator in list("configMapGenerator").chain(list("secretGenerator")) {
        for field in ["files", "envs"] {
            found.extend(generator.get(field).and_then(Value::as_array).into_iter().flatten());
        }
        found.extend(generator.get("env"));
    }
    found.extend(kustomization.get("openapi").and_then(|openapi| openapi.get("path")));
    let texts = found.into_iter().filter_map(Value::as_str);
    // Whole documents may stand in place of a file's name, and a file may be given another name.
    let lines = texts.filter(|text| !text.contains('\n'));
    lines.map(unnamed).collect()
}

/// The file of `key=file`. The `=` of an address's query is none such.
fn unnamed(text: &str) -> &str {
    match text.split_once('=') {
        Some((key, file)) if !key.contains(['/', '?']) => file,
        _ => text,
    }
}

/// Whether Kustomize would look for it elsewhere than in the repository.
fn is_remote(text: &str) -> bool {
    let begins = ["git@", "git::", "gh:", "github.com/", "github.com:", "org-"];
    text.contains("://")
        || begins.iter().any(|begin| text.starts_with(begin))
        || text.contains(".git")
        || text.contains("?ref=")
}
