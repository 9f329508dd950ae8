//! What a build needs of its repository and of others, found before anything is run.

use std::collections::BTreeSet;

use baton_source::Place;
use serde_json::{Map, Value};

use super::Kustomization;
use crate::checkout::{Checkout, cleaned};
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
    /// What is elsewhere, each with the directory that names it.
    remote: Vec<(String, String)>,
}

/// Follows a build from its main kustomization through all directories it is made of.
pub(super) async fn of(
    checkout: &Checkout,
    directory: &str,
    main: Map<String, Value>,
) -> Result<Needs, Fault> {
    let mut needs = Needs::default();
    needs.directories.insert(directory.to_owned());
    let mut open = vec![(directory.to_owned(), main)];
    while let Some((directory, kustomization)) = open.pop() {
        for text in references(&kustomization) {
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
                    open.extend(next.map(|next| (path, next.content)));
                }
                Err(_) if is_remote(text) => needs.remote.push((directory.clone(), text.to_owned())),
                // What is not there is for Kustomize to complain about.
                _ => {}
            }
        }
    }
    Ok(needs)
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
