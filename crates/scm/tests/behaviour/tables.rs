//! Each file in `hosts/` is a host, a generator, and what the generator must find there. See `hosts/README.md`.

use std::path::{Path, PathBuf};

use baton_scm::{Hosts, Kind, PullRequest, Repository, ScmError, Settings};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::server::{Host, Objects, Row};
use crate::{hosts, scm, settings};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Case {
    /// What it shows.
    #[serde(rename = "about")]
    _about: String,
    /// How Argo CD answers otherwise, if it does.
    #[serde(default, rename = "difference")]
    _difference: String,
    scm_provider: Option<Value>,
    pull_request: Option<Value>,
    #[serde(default)]
    objects: Objects,
    #[serde(default)]
    strict: bool,
    pub(crate) requests: Vec<Row>,
    expected: Option<Value>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    kind: String,
    contains: Vec<String>,
}

#[tokio::test]
async fn hosts_are_asked_and_understood_as_their_tables_say() {
    let mut failures = Vec::new();
    let files = files();
    assert!(files.len() >= 80, "only {} tables were found", files.len());
    // Clients cost more than requests: what needs no settings of its own shares them.
    let shared = hosts(Settings { attempts: 1, ..settings() });
    for file in files {
        if let Err(why) = check(&Case::read(&file), &shared).await {
            failures.push(format!("{}: {why}", file.display()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

async fn check(case: &Case, shared: &Hosts) -> Result<(), String> {
    let host = Host::start(case.requests.clone()).await;
    let found = if case.needs_settings() {
        case.ask(&host, &hosts(Settings { attempts: 1, ..case.settings(&host) })).await
    } else {
        case.ask(&host, shared).await
    };
    compare(found, case.expected(&host), case.error.as_ref())
        .map_err(|why| format!("{why}\nrequests: {:#?}", host.requests()))?;
    let misfits = host.misfits();
    if misfits.is_empty() { Ok(()) } else { Err(misfits.join("\n")) }
}

pub(crate) fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts");
    let list = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).expect("the tables are there");
        entries.map(|entry| entry.expect("the tables can be listed").path()).collect()
    };
    let folders = list(&root).into_iter().filter(|path| path.is_dir());
    let mut files: Vec<PathBuf> = folders.flat_map(|folder| list(&folder)).collect();
    files.sort();
    files
}

impl Case {
    pub(crate) fn read(file: &Path) -> Case {
        let text = std::fs::read_to_string(file).expect("the table can be read");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }

    /// Whether it cannot be asked with the settings that others are asked with.
    pub(crate) fn needs_settings(&self) -> bool {
        let is_bitbucket = |spec: &Value| spec.get("bitbucket").is_some();
        self.strict || self.scm_provider.as_ref().is_some_and(is_bitbucket)
    }

    pub(crate) fn settings(&self, host: &Host) -> Settings {
        Settings { strict_token_refs: self.strict, bitbucket_api: format!("{}/2.0", host.url), ..settings() }
    }

    pub(crate) fn expected(&self, host: &Host) -> Option<Value> {
        self.expected.as_ref().map(|expected| host.fill(expected))
    }

    /// What the generator finds, as tables write it.
    pub(crate) async fn ask(&self, host: &Host, hosts: &Hosts) -> Result<Value, ScmError> {
        match (&self.scm_provider, &self.pull_request) {
            (Some(generator), None) => {
                let found = hosts.repositories(&scm(host.fill(generator)), &self.objects).await?;
                Ok(found.iter().map(repository).collect())
            }
            (None, Some(generator)) => {
                let generator = crate::pull_request(host.fill(generator));
                let found = hosts.pull_requests(&generator, &self.objects).await?;
                Ok(found.iter().map(pull_request).collect())
            }
            _ => panic!("a table has one generator"),
        }
    }
}

fn compare(
    found: Result<Value, ScmError>,
    expected: Option<Value>,
    failure: Option<&Failure>,
) -> Result<(), String> {
    match (found, expected, failure) {
        (Ok(found), Some(expected), None) if found == expected => Ok(()),
        (Ok(found), Some(expected), None) => Err(format!("found {found:#}\nexpected {expected:#}")),
        (Err(error), None, Some(failure)) => {
            let text = error.to_string();
            let missing: Vec<_> = failure.contains.iter().filter(|part| !text.contains(*part)).collect();
            if kind(&error) == failure.kind && missing.is_empty() {
                return Ok(());
            }
            Err(format!("failed as {} with {text:?}, without {missing:?}", kind(&error)))
        }
        (Ok(found), ..) => Err(format!("found {found:#} instead of an error")),
        (Err(error), ..) => Err(format!("failed: {error}")),
    }
}

fn kind(error: &ScmError) -> &'static str {
    match error.kind() {
        Kind::Disabled => "Disabled",
        Kind::NotAllowed => "NotAllowed",
        Kind::Invalid => "Invalid",
        Kind::Unsupported => "Unsupported",
        Kind::Unauthorized => "Unauthorized",
        Kind::NotFound => "NotFound",
        Kind::RateLimited { .. } => "RateLimited",
        Kind::Protocol => "Protocol",
        Kind::Network => "Network",
        Kind::Limit => "Limit",
    }
}

fn repository(found: &Repository) -> Value {
    json!({
        "organization": found.organization, "repository": found.repository,
        "repository_id": found.repository_id, "url": found.url, "branch": found.branch, "sha": found.sha,
        "labels": found.labels,
    })
}

fn pull_request(found: &PullRequest) -> Value {
    json!({
        "number": found.number, "title": found.title, "branch": found.branch,
        "target_branch": found.target_branch, "head_sha": found.head_sha, "labels": found.labels,
        "author": found.author,
    })
}
