//! Reading manifests from files, directories and standard input.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use baton_api::ApplicationSet;
use serde_json::Value;

use crate::failure::Failure;

/// Largest file that is read.
const MOST_BYTES: u64 = 16 << 20;

/// How many documents of other kinds are named.
const NAMED: usize = 3;

/// A text and what to call it in messages.
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The texts of the files; `-` is standard input, a directory is its YAML and JSON files by name.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Manifest>, Failure> {
    let mut manifests = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let text = text_of(std::io::stdin().lock(), "standard input")?;
            manifests.push(Manifest { name: "standard input".to_owned(), text });
        } else if path.is_dir() {
            let files = files_in(path)?;
            if files.is_empty() {
                return Err(Failure::usage(format!("{} holds no .yaml, .yml or .json file", path.display())));
            }
            for file in files {
                manifests.push(file_text(&file)?);
            }
        } else {
            manifests.push(file_text(path)?);
        }
    }
    Ok(manifests)
}

/// An ApplicationSet as it is written, and as it is understood.
pub(crate) struct Written {
    pub(crate) document: Value,
    pub(crate) set: ApplicationSet,
}

/// The ApplicationSets of the files. Other kinds are passed over where `beside` allows them.
///
/// What Argo CD's own command refuses is refused: a templated project and an entry without a generator.
pub(crate) fn sets(files: &[PathBuf], beside: bool) -> Result<Vec<Written>, Failure> {
    let mut sets: Vec<Written> = Vec::new();
    let mut found = Vec::new();
    for manifest in read(files)? {
        let documents = baton_grammar::yaml::documents(&manifest.text)
            .map_err(|error| Failure::usage(format!("{}: {error}", manifest.name)))?;
        for document in documents.into_iter().filter(|document| !document.is_null()) {
            if document["kind"] == "ApplicationSet" {
                let written = understood(document)
                    .map_err(|why| Failure::usage(format!("{}: {why}", manifest.name)))?;
                if sets.iter().any(|other| other.is_same(&written)) {
                    let name = written.set.metadata.name.as_deref().unwrap_or_default();
                    return Err(Failure::usage(format!(
                        "{}: there is a second ApplicationSet {name}: one of them must go, or have another name",
                        manifest.name
                    )));
                }
                sets.push(written);
                continue;
            }
            let kind = &document["kind"];
            found.push(format!("{} has kind {kind}", manifest.name));
            if !beside {
                return Err(Failure::usage(format!(
                    "{}: found kind {kind}, expected ApplicationSet",
                    manifest.name
                )));
            }
        }
    }
    if sets.is_empty() {
        found.truncate(NAMED);
        let found = if found.is_empty() { "they are empty".to_owned() } else { found.join(", ") };
        return Err(Failure::usage(format!(
            "no document with `kind: ApplicationSet` in the files given: {found}"
        )));
    }
    Ok(sets)
}

impl Written {
    fn is_same(&self, other: &Written) -> bool {
        let place = |written: &Written| {
            let metadata = &written.set.metadata;
            (metadata.namespace.clone(), metadata.name.clone())
        };
        place(self) == place(other)
    }
}

fn understood(document: Value) -> Result<Written, String> {
    let set: ApplicationSet = serde_json::from_value(document.clone())
        .map_err(|error| format!("not an ApplicationSet: {error}"))?;
    let name = set.metadata.name.as_deref().unwrap_or_default();
    if name.is_empty() {
        return Err("an ApplicationSet has no metadata.name".to_owned());
    }
    if !document["spec"].is_object() {
        return Err(format!("ApplicationSet {name} has no spec"));
    }
    if set.spec.template.spec.project.contains("{{") {
        return Err(format!(
            "ApplicationSet {name} has a templated project ({}): whoever controls the parameters could choose it; name \
             the project",
            set.spec.template.spec.project
        ));
    }
    for (index, generator) in set.spec.generators.iter().enumerate() {
        if baton_generators::kinds(generator).is_empty() {
            return Err(format!(
                "ApplicationSet {name}: spec.generators[{index}] holds no generator; `baton appset lint` shows what is \
                 misspelt"
            ));
        }
    }
    Ok(Written { document, set })
}

fn file_text(path: &Path) -> Result<Manifest, Failure> {
    let name = path.display().to_string();
    let file =
        std::fs::File::open(path).map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    Ok(Manifest { text: text_of(file, &name)?, name })
}

fn text_of(from: impl std::io::Read, name: &str) -> Result<String, Failure> {
    let mut text = String::new();
    from.take(MOST_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(Failure::usage(format!("{name} is longer than {} MiB", MOST_BYTES >> 20)));
    }
    Ok(text)
}

fn files_in(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let cannot = |error| Failure::usage(format!("cannot read {}: {error}", directory.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let known = path.extension().is_some_and(|kind| kind == "yaml" || kind == "yml" || kind == "json");
        if known && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
