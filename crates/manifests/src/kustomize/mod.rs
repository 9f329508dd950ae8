//! Kustomize, by the installed `kustomize` or `kubectl kustomize`.

mod edit;
mod needs;

use std::path::{Path, PathBuf};

use baton_api::source::KustomizeSource;
use baton_grammar::yaml;
use baton_source::Place;
use serde_json::{Map, Value};

use crate::checkout::{Checkout, cleaned, joined};
use crate::detection::KUSTOMIZATION_NAMES;
use crate::documents;
use crate::environment::Environment;
use crate::error::Fault;
use crate::settings::Settings;
use crate::tools::{self, Job, Tools};
use crate::workshop::Workshop;

/// Longest kustomization file that is read.
const MAX_BYTES: u64 = 4 << 20;

const REMEDY: &str =
    "Install kustomize or kubectl where Baton runs, or render the manifests into the repository";

/// Builds the objects of a directory.
pub(crate) async fn render(
    tools: &Tools,
    settings: &Settings,
    checkout: &Checkout,
    directory: &str,
    options: &KustomizeSource,
    environment: &Environment,
) -> Result<Vec<Value>, Fault> {
    if !options.version.is_empty() {
        return Err(Fault::Options(format!("kustomize version {} is not registered", options.version)));
    }
    let (program, verb) = program(settings)?;
    let mut workshop = Workshop::open(settings).await?;
    let mut main = Kustomization::read(checkout, directory).await?;
    let exists = |component: &str| {
        cleaned(directory, component).is_some_and(|path| checkout.tree.place(&path).is_ok())
    };
    match &mut main {
        Some(main) => main.edit(options, environment, exists)?,
        None if edit::is_needed(options) => {
            return Err(Fault::Options("kustomization file not found in the path".to_owned()));
        }
        None => {}
    }
    let needs = needs::of(checkout, directory, main).await?;
    for directory in &needs.directories {
        workshop.add(checkout, directory).await?;
    }
    for (path, content) in &needs.changed {
        workshop.replace(path, Value::Object(content.clone()).to_string()).await?;
    }
    let network = needs.check_remote(settings)?;
    let job = Job {
        program: &program,
        arguments: tools::words([&verb, &"."]),
        directory: workshop.repository(directory),
        environment: environment.variables().map(|(name, value)| (name.into(), value.into())).collect(),
        network,
        shown: format!("{} {verb} {}", name(&program), if directory.is_empty() { "." } else { directory }),
    };
    let shown = job.shown.clone();
    let printed = tools.run(&workshop, job).await?;
    documents::printed(printed, shown).await
}

/// The program to build with, and how it is told to.
fn program(settings: &Settings) -> Result<(PathBuf, &'static str), Fault> {
    if let Some(stated) = &settings.kustomize {
        let found = tools::find(stated).ok_or_else(|| tools::missing(stated, REMEDY))?;
        return Ok((found, "build"));
    }
    if let Some(found) = tools::find(Path::new("kustomize")) {
        return Ok((found, "build"));
    }
    let found =
        tools::find(&settings.kubectl).ok_or_else(|| tools::missing(Path::new("kustomize"), REMEDY))?;
    Ok((found, "kustomize"))
}

fn name(program: &Path) -> String {
    program.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The main file of a build.
#[derive(Debug)]
struct Kustomization {
    name: &'static str,
    content: Map<String, Value>,
    /// Whether it is no longer what the repository holds.
    is_changed: bool,
}

impl Kustomization {
    /// Reads that of a directory; `None` where there is none.
    async fn read(checkout: &Checkout, directory: &str) -> Result<Option<Kustomization>, Fault> {
        let is_there = |name: &&str| {
            cleaned(directory, name)
                .is_some_and(|path| matches!(checkout.tree.place(&path), Ok(Place::File(_))))
        };
        let Some(name) = KUSTOMIZATION_NAMES.into_iter().find(is_there) else { return Ok(None) };
        let path = joined(directory, name);
        let contents = checkout.read(std::slice::from_ref(&path), MAX_BYTES).await?;
        let text = contents.first().map(|content| documents::text(content).into_owned()).unwrap_or_default();
        let fault = |why: String| Fault::Manifest { file: path.clone(), why };
        match yaml::first(&text).map_err(|error| fault(error.to_string()))? {
            Value::Object(content) => Ok(Some(Kustomization { name, content, is_changed: false })),
            Value::Null => Ok(Some(Kustomization { name, content: Map::new(), is_changed: false })),
            _ => Err(fault("it is no object".to_owned())),
        }
    }

    /// Writes a source's options into it.
    fn edit(
        &mut self,
        options: &KustomizeSource,
        environment: &Environment,
        exists: impl Fn(&str) -> bool,
    ) -> Result<(), Fault> {
        if let Some(edited) = edit::edited(&self.content, options, environment, exists)? {
            self.content = edited;
            self.is_changed = true;
        }
        Ok(())
    }
}
