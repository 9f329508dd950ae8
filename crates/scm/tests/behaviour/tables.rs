//! Each file in `hosts/` is a host, a generator, and what the generator must find there. See `hosts/README.md`.

use std::path::{Path, PathBuf};

use baton_scm::{Hosts, Kind, Proxy, PullRequest, Repository, ScmError, Settings};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::server::{Host, Objects, Row};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Case {
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
    requests: Vec<Row>,
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
    assert!(files.len() >= 40, "only {} tables were found", files.len());
    for file in files {
        if let Err(why) = run(&file).await {
            failures.push(format!("{}: {why}", file.display()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn files() -> Vec<PathBuf> {
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

async fn run(file: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let case: Case = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let host = Host::start(case.requests).await;
    let settings = Settings {
        proxy: Proxy::Direct,
        strict_token_refs: case.strict,
        bitbucket_api: format!("{}/2.0", host.url),
        attempts: 1,
        ..Settings::default()
    };
    let hosts = Hosts::new(settings).map_err(|error| error.to_string())?;
    let found = match (case.scm_provider, case.pull_request) {
        (Some(generator), None) => {
            let generator =
                serde_json::from_value(host.fill(&generator)).map_err(|error| error.to_string())?;
            let found = hosts.repositories(&generator, &case.objects).await;
            found.map(|list| list.iter().map(repository).collect::<Value>())
        }
        (None, Some(generator)) => {
            let generator =
                serde_json::from_value(host.fill(&generator)).map_err(|error| error.to_string())?;
            let found = hosts.pull_requests(&generator, &case.objects).await;
            found.map(|list| list.iter().map(pull_request).collect::<Value>())
        }
        _ => return Err("a table has one generator".into()),
    };
    compare(found, case.expected.map(|expected| host.fill(&expected)), case.error)
        .map_err(|why| format!("{why}\nrequests: {:#?}", host.requests()))?;
    let misfits = host.misfits();
    if misfits.is_empty() { Ok(()) } else { Err(misfits.join("\n")) }
}

fn compare(
    found: Result<Value, ScmError>,
    expected: Option<Value>,
    failure: Option<Failure>,
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
