//! `baton health`.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use baton_api::object::Object as _;
use baton_grammar::yaml;
use baton_health::Customizations;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::{failure::Failure, print, terminal};

/// Names of the scripts in a directory of customizations.
const SCRIPTS: [&str; 3] = ["health.lua", "discovery.lua", "action.lua"];
/// How deep scripts lie: `<group>/<Kind>/actions/<name>/action.lua`.
const DEEPEST: usize = 4;
/// Most scripts that are read.
const MOST: usize = 20_000;
/// Largest file that is read, in bytes.
const LARGEST: u64 = 16 << 20;

/// What to assess, and by which rules.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Arguments {
    /// File of the object, as YAML or JSON; `-` for standard input. Of several documents the first counts.
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Scripts of health: a directory of `<group>/<Kind>/health.lua`, or a file with a ConfigMap like argocd-cm. Given
    /// several times, earlier ones win.
    #[arg(long, value_name = "DIR|CONFIGMAP.yaml")]
    customizations: Vec<PathBuf>,
    /// The form to print it in.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

const HELP: &str = "An object of whose kind nothing is known has no health: an empty status.
A script given with --customizations has the last word, also on an object that is being deleted, which
is Progressing otherwise.
A script that fails makes the object Unknown; the exit code is 3 then.

Examples:
  baton health -f deployment.yaml
  kubectl get certificate web -o yaml | baton health -f - --customizations ./customizations -o json";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// One line for a person.
    Text,
    /// One object: {"status": …, "message": …}.
    Json,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let customizations = customizations(&arguments.customizations)?;
    let object = object(&arguments.file)?;
    let outcome = baton_health::customized(&object, &customizations)
        .unwrap_or_else(|| baton_health::assess(&object, &customizations));
    let (status, message) = match &outcome {
        Ok(Some(health)) => (health.code.to_string(), health.message.clone()),
        Ok(None) => (String::new(), String::new()),
        Err(error) => ("Unknown".to_owned(), error.to_string()),
    };
    print::out(&match arguments.output {
        Output::Json => format!("{}\n", json!({"status": status, "message": message})),
        Output::Text if status.is_empty() => format!("nothing is known of the health of {}\n", name(&object)),
        Output::Text if message.is_empty() => format!("{status}\n"),
        Output::Text => format!("{status}: {message}\n"),
    })?;
    match outcome {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::failed(format!("cannot tell the health of {}: {error}", name(&object)))),
    }
}

fn name(object: &Value) -> String {
    match (object.kind(), object.name()) {
        ("", _) => "an object without a kind".to_owned(),
        (kind, "") => kind.to_owned(),
        (kind, name) => format!("{kind} {name:?}"),
    }
}

fn object(path: &Path) -> Result<Value, Failure> {
    let text = if path == Path::new("-") { text(std::io::stdin().lock(), path)? } else { file(path)? };
    let documents = yaml::documents(&text).map_err(|error| unreadable(path, error))?;
    let mut objects = documents.into_iter().filter(|document| !document.is_null());
    let first = objects.next().filter(Value::is_object);
    let first = first.ok_or_else(|| Failure::usage(format!("{} holds no object", path.display())))?;
    match objects.count() {
        0 => {}
        more => terminal::remark(&format!("only the first object is looked at; {more} more follow it")),
    }
    Ok(first)
}

/// Reads customizations, of which earlier ones win over later ones.
pub(crate) fn customizations(paths: &[PathBuf]) -> Result<Customizations, Failure> {
    let mut all = Customizations::default();
    for path in paths {
        let read = if path.is_dir() { directory(path)? } else { config_map(path)? };
        all = all.with_fallback(read);
    }
    Ok(all)
}

fn config_map(path: &Path) -> Result<Customizations, Failure> {
    let documents = yaml::documents(&file(path)?).map_err(|error| unreadable(path, error))?;
    let map = documents.iter().find(|document| document.kind() == "ConfigMap");
    let map = map.ok_or_else(|| Failure::usage(format!("{} holds no ConfigMap", path.display())))?;
    let entries = map["data"].as_object().into_iter().flatten();
    let data: BTreeMap<String, String> =
        entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
    Customizations::from_config_map(&data).map_err(|error| unreadable(path, error))
}

fn directory(root: &Path) -> Result<Customizations, Failure> {
    let mut scripts = Vec::new();
    let mut open = vec![(root.to_owned(), String::new(), 0)];
    while let Some((directory, prefix, depth)) = open.pop() {
        for entry in fs::read_dir(&directory).map_err(|error| unreadable(&directory, error))? {
            let path = entry.map_err(|error| unreadable(&directory, error))?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let relative = format!("{prefix}{name}");
            if path.is_dir() {
                if depth < DEEPEST {
                    open.push((path, relative + "/", depth + 1));
                }
            } else if SCRIPTS.contains(&name) {
                scripts.push((relative, file(&path)?));
            }
            if scripts.len() > MOST {
                return Err(Failure::usage(format!("{} holds too many scripts", root.display())));
            }
        }
    }
    if scripts.is_empty() {
        let how = "expected files such as <group>/<Kind>/health.lua";
        return Err(Failure::usage(format!("{} holds no scripts: {how}", root.display())));
    }
    Customizations::from_files(scripts).map_err(|error| unreadable(root, error))
}

fn file(path: &Path) -> Result<String, Failure> {
    text(File::open(path).map_err(|error| unreadable(path, error))?, path)
}

fn text(from: impl Read, path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    from.take(LARGEST + 1).read_to_string(&mut text).map_err(|error| unreadable(path, error))?;
    if text.len() as u64 > LARGEST {
        return Err(unreadable(path, format!("it is larger than {LARGEST} bytes")));
    }
    Ok(text)
}

fn unreadable(path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("cannot read {}: {why}", path.display()))
}
