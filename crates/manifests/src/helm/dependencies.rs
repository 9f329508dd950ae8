//! Charts a chart needs: in the same repository, or fetched by helm.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use baton_grammar::yaml;
use baton_source::access;
use serde_json::json;

use crate::checkout::{cleaned, joined};
use crate::documents;
use crate::error::Fault;
use crate::ground::Ground;
use crate::request::Request;
use crate::settings::Settings;

/// Where helm finds the repositories it may log in to.
pub(super) const REPOSITORIES: &str = "home/repositories.yaml";

/// Where helm finds the registries it may log in to.
pub(super) const REGISTRIES: &str = "home/registries.json";

/// Files that name dependencies. A lock is believed over the chart.
const FILES: [&str; 4] = ["Chart.yaml", "requirements.yaml", "Chart.lock", "requirements.lock"];

/// Largest of these files.
const MAX_BYTES: u64 = 1 << 20;

/// Most charts of the same repository that one chart may need.
const MAX_DIRECTORIES: usize = 100;

/// What a chart needs.
#[derive(Debug, Default)]
pub(super) struct Dependencies {
    /// Directories of the same repository.
    pub(super) directories: BTreeSet<String>,
    /// Addresses of repositories and registries.
    addresses: BTreeSet<String>,
    /// What is not supported.
    refused: Option<String>,
}

/// Follows a chart through all charts of its repository that it needs.
pub(super) async fn of(ground: &Ground, directory: &str) -> Result<Dependencies, Fault> {
    let mut dependencies = Dependencies::default();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for name in FILES {
            for repository in repositories(ground, &joined(&directory, name)).await? {
                let next = dependencies.add(&directory, &repository)?;
                open.extend(next);
            }
        }
    }
    Ok(dependencies)
}

async fn repositories(ground: &Ground, path: &str) -> Result<Vec<String>, Fault> {
    // A link that leads out is refused when the chart is written out.
    if ground.holds(path) != Ok(true) {
        return Ok(Vec::new());
    }
    let content = ground.read(path, MAX_BYTES).await?;
    let read = yaml::first(&documents::text(&content))
        .map_err(|error| Fault::Manifest { file: path.to_owned(), why: error.to_string() })?;
    let entries = read["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
    Ok(entries.iter().filter_map(|entry| entry["repository"].as_str()).map(str::to_owned).collect())
}

impl Dependencies {
    /// Takes note of a repository and gives the directory it is, where it is one not known yet.
    fn add(&mut self, directory: &str, repository: &str) -> Result<Option<String>, Fault> {
        if let Some(path) = repository.strip_prefix("file://") {
            if self.directories.len() == MAX_DIRECTORIES {
                let why = format!("the chart needs more than {MAX_DIRECTORIES} charts of its repository");
                return Err(Fault::Limit(why));
            }
            // Helm would take an absolute path for one of this machine.
            let path = if path.starts_with('/') { None } else { cleaned(directory, path) };
            let Some(path) = path else {
                return Err(Fault::Options(format!(
                    "dependency {repository:?} of the chart leads out of the repository"
                )));
            };
            return Ok(self.directories.insert(path.clone()).then_some(path));
        }
        if repository.starts_with("https://") || repository.starts_with("oci://") {
            self.addresses.insert(repository.to_owned());
        } else if !repository.is_empty() {
            self.refused.get_or_insert_with(|| repository.to_owned());
        }
        Ok(None)
    }

    /// Whether the network is needed to fetch them.
    pub(super) fn permitted(&self, settings: &Settings) -> Result<bool, Fault> {
        if let Some(refused) = &self.refused {
            return Err(Fault::Unsupported(format!(
                "dependencies of charts are fetched from https://, oci:// and file:// repositories, not from \
                 {refused:?}: put the charts it needs into charts/"
            )));
        }
        match self.addresses.first() {
            None => Ok(false),
            Some(address) if !settings.remote_references => Err(Fault::Unsupported(format!(
                "the chart needs others from {address:?}, and remote references are turned off: put them into charts/"
            ))),
            Some(_) => Ok(true),
        }
    }

    /// Files with which helm logs in; `everywhere` lets it do so wherever an index leads.
    pub(super) fn credentials(
        &self,
        request: &Request<'_>,
        everywhere: bool,
    ) -> Result<Vec<(&'static str, String)>, Fault> {
        let (mut repositories, mut registries) = (Vec::new(), json!({}));
        for address in &self.addresses {
            let access = access(address, request.project, request.secrets)?;
            let Some((username, password)) = access.basic() else { continue };
            match address.strip_prefix("oci://") {
                Some(rest) => {
                    let host = rest.split('/').next().unwrap_or_default();
                    let pair = STANDARD.encode(format!("{username}:{}", password.expose()));
                    registries[host] = json!({"auth": pair});
                }
                None => repositories.push(json!({
                    "name": format!("repository-{}", repositories.len()),
                    "url": address,
                    "username": username,
                    "password": password.expose(),
                    "pass_credentials_all": everywhere,
                })),
            }
        }
        let repositories = json!({"apiVersion": "v1", "repositories": repositories});
        let registries = json!({"auths": registries});
        Ok(vec![(REPOSITORIES, repositories.to_string()), (REGISTRIES, registries.to_string())])
    }
}
