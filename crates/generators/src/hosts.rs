//! The scmProvider and pullRequest generators: repositories and pull requests of source code hosts.

use std::collections::BTreeMap;

use baton_api::pull_request::PullRequestGenerator;
use baton_api::scm::ScmProviderGenerator;
use baton_render::{Engine, Params};
use baton_scm::{GithubApp, Kind, Lookup, PullRequest, Repository, SecretObject};
use baton_template::{List, Map, Value, normalize};
use serde_json::Value as Json;

use crate::outside::Outside;
use crate::pass::Pass;
use crate::slug::slug;
use crate::values::Values;
use crate::world::World;

impl<W: World, O: Outside> Pass<'_, W, O> {
    /// One set per branch of each repository.
    pub(crate) async fn scm_provider(&self, generator: &ScmProviderGenerator) -> Result<Vec<Params>, String> {
        self.reads().hosts = true;
        let listed = self.outside.repositories(generator, &Beside(self)).await;
        let repositories = listed.map_err(|error| format!("error listing repos: {error}"))?;
        let mut values = Values::new(&self.engine, &generator.values, &self.budget);
        let with_values = |params: Params| {
            values
                .append(&params)
                .map_err(|message| format!("failed to append templated values: {message}"))?;
            Ok(params)
        };
        repositories.iter().map(repository).map(with_values).collect()
    }

    /// One set per pull request.
    pub(crate) async fn pull_request(&self, generator: &PullRequestGenerator) -> Result<Vec<Params>, String> {
        self.reads().add_pull_requests(generator);
        let pull_requests = match self.outside.pull_requests(generator, &Beside(self)).await {
            Ok(pull_requests) => pull_requests,
            Err(error) if error.kind() == Kind::NotFound && generator.continue_on_repo_not_found_error => {
                tracing::warn!(%error, "the repository is gone, and the generator asks to go on without it");
                return Ok(Vec::new());
            }
            Err(error) => return Err(format!("error listing repos: {error}")),
        };
        let mut values = Values::new(&self.engine, &generator.values, &self.budget);
        let with_values = |params: Params| {
            values
                .append(&params)
                .map_err(|message| format!("failed to append templated values: {message}"))?;
            Ok(params)
        };
        pull_requests.iter().map(|found| pull_request(found, &self.engine)).map(with_values).collect()
    }
}

fn repository(found: &Repository) -> Params {
    let id = match &found.repository_id {
        Json::Number(number) if number.is_i64() => number.as_i64().map_or(Value::Nil, Value::Int),
        other => Value::from(other),
    };
    Map::new([
        ("organization".into(), Value::from(found.organization.as_str())),
        ("repository".into(), Value::from(found.repository.as_str())),
        ("repository_id".into(), id),
        ("url".into(), Value::from(found.url.as_str())),
        ("branch".into(), Value::from(found.branch.as_str())),
        ("branchNormalized".into(), Value::from(normalize(&found.branch))),
        ("sha".into(), Value::from(found.sha.as_str())),
        ("short_sha".into(), Value::from(short(&found.sha, 8))),
        ("short_sha_7".into(), Value::from(short(&found.sha, 7))),
        ("labels".into(), Value::from(found.labels.join(","))),
    ])
}

fn pull_request(found: &PullRequest, engine: &Engine) -> Params {
    let params = Map::new([
        ("number".into(), Value::from(found.number.to_string())),
        ("title".into(), Value::from(found.title.as_str())),
        ("branch".into(), Value::from(found.branch.as_str())),
        ("branch_slug".into(), Value::from(slug(&found.branch))),
        ("target_branch".into(), Value::from(found.target_branch.as_str())),
        ("target_branch_slug".into(), Value::from(slug(&found.target_branch))),
        ("head_sha".into(), Value::from(found.head_sha.as_str())),
        ("head_short_sha".into(), Value::from(short(&found.head_sha, 8))),
        ("head_short_sha_7".into(), Value::from(short(&found.head_sha, 7))),
        ("author".into(), Value::from(found.author.as_str())),
    ]);
    if let Engine::Go(_) = engine {
        params.insert("labels", Value::List(List::strings(found.labels.iter().map(String::as_str))));
    }
    params
}

/// The first characters of a commit; commits are ASCII, and anything else is left whole rather than split.
fn short(sha: &str, length: usize) -> &str {
    sha.get(..length).unwrap_or(sha)
}

/// Objects beside the ApplicationSet.
struct Beside<'p, 'a, W, O>(&'p Pass<'a, W, O>);

impl<W: World, O: Outside> Lookup for Beside<'_, '_, W, O> {
    fn namespace(&self) -> &str {
        self.0.set.metadata.namespace.as_deref().unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.0.set.metadata.name.as_deref().unwrap_or_default()
    }

    async fn secret(&self, name: &str) -> Result<Option<SecretObject>, String> {
        let secret = self.0.secret(self.namespace(), name).await?;
        Ok(secret.map(|secret| SecretObject { labels: secret.labels, data: secret.data }))
    }

    async fn config_map(&self, name: &str) -> Result<Option<BTreeMap<String, String>>, String> {
        self.0.config_map(self.namespace(), name).await
    }

    async fn github_app(&self, secret_name: &str) -> Result<Option<GithubApp>, String> {
        let secret = self.0.secret(&self.0.settings.argocd_namespace, secret_name).await?;
        secret.map(|secret| GithubApp::read(&secret.data)).transpose()
    }
}
