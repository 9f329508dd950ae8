//! GitHub and GitHub Enterprise Server.

use baton_api::pull_request::PullRequestGithub;
use baton_api::scm::ScmGithub;
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{Kind, ScmError};
use crate::http::{Api, Item, base, link_page, numbered};
use crate::names::{path, segment};
use crate::provider::{CloneProtocol, PullRequest, Repository, RepositoryHost};

const DEFAULT_API: &str = "https://api.github.com/";
const PER_PAGE: [(&str, &str); 1] = [("per_page", "100")];

/// The URL of the API: an enterprise server's is below `/api/v3`, unless its host is one for the API alone.
pub(crate) fn api_url(api: &str) -> Result<Url, ScmError> {
    if api.is_empty() {
        return base(DEFAULT_API);
    }
    let mut url = base(api)?;
    let host = url.host_str().unwrap_or_default();
    let path = format!("{}/", url.path().trim_end_matches('/'));
    let whole = path.ends_with("/api/v3/") || host.starts_with("api.") || host.contains(".api.");
    url.set_path(&if whole { path } else { format!("{path}api/v3/") });
    Ok(url)
}

/// Requests as GitHub's documentation asks for them.
pub(crate) fn speaking(api: Api<'_>) -> Api<'_> {
    api.with_header("accept", "application/vnd.github+json").with_header("x-github-api-version", "2022-11-28")
}

pub(crate) struct Organization<'a> {
    pub(crate) api: Api<'a>,
    pub(crate) spec: &'a ScmGithub,
    pub(crate) protocol: CloneProtocol,
}

#[derive(Deserialize)]
struct Repo {
    id: Option<i64>,
    name: String,
    owner: Owner,
    default_branch: Option<String>,
    ssh_url: Option<String>,
    clone_url: Option<String>,
    #[serde(default)]
    archived: Option<bool>,
    #[serde(default)]
    topics: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Owner {
    login: String,
}

#[derive(Deserialize)]
struct Branch {
    name: String,
    commit: Commit,
}

#[derive(Deserialize)]
struct Commit {
    sha: String,
}

impl RepositoryHost for Organization<'_> {
    async fn repositories(&self) -> Result<Vec<Repository>, ScmError> {
        let organization = &self.spec.organization;
        let path = format!("orgs/{}/repos", segment("an organization", organization)?);
        let repos: Vec<Repo> = numbered(&self.api, &path, &PER_PAGE, link_page)
            .await
            .map_err(|error| error.context(format!("error listing repositories for {organization}")))?;
        let wanted = repos
            .into_iter()
            .filter(|repo| !(self.spec.exclude_archived_repos && repo.archived == Some(true)));
        Ok(wanted.map(|repo| self.repository(repo)).collect())
    }

    async fn branches(&self, repository: &Repository) -> Result<Vec<Repository>, ScmError> {
        let branches = if self.spec.all_branches {
            let path = format!("{}/branches", repo_path(repository)?);
            numbered(&self.api, &path, &PER_PAGE, link_page).await
        } else {
            self.default_branch(repository).await
        };
        let branches = branches.map_err(|error| {
            let Repository { organization, repository, .. } = repository;
            error.context(format!("error listing branches for {organization}/{repository}"))
        })?;
        Ok(branches.into_iter().map(|branch| repository.at(branch.name, branch.commit.sha)).collect())
    }

    async fn has_path(&self, repository: &Repository, wanted: &str) -> Result<bool, ScmError> {
        let path = format!("{}/contents/{}", repo_path(repository)?, path(wanted)?);
        let url = self.api.url(&path, &[("ref", &repository.branch)]);
        self.api.exists(url).await
    }
}

impl Organization<'_> {
    fn repository(&self, repo: Repo) -> Repository {
        Repository {
            organization: repo.owner.login,
            repository: repo.name,
            repository_id: repo.id.map_or(Value::Null, Value::from),
            url: self.protocol.choose(repo.ssh_url.unwrap_or_default(), repo.clone_url.unwrap_or_default()),
            branch: repo.default_branch.unwrap_or_default(),
            sha: String::new(),
            labels: repo.topics.unwrap_or_default(),
        }
    }

    /// An empty repository names a default branch that it does not have.
    async fn default_branch(&self, repository: &Repository) -> Result<Vec<Branch>, ScmError> {
        if repository.branch.is_empty() {
            return Ok(Vec::new());
        }
        let path =
            format!("{}/branches/{}", repo_path(repository)?, segment("a branch", &repository.branch)?);
        match self.api.get(self.api.url::<&str, &str>(&path, &[])).await {
            Ok(answer) => Ok(vec![answer.json()?]),
            Err(error) if error.kind() == Kind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

fn repo_path(repository: &Repository) -> Result<String, ScmError> {
    let owner = segment("an organization", &repository.organization)?;
    Ok(format!("repos/{owner}/{}", segment("a repository", &repository.repository)?))
}

#[derive(Deserialize)]
struct Pull {
    number: i64,
    title: String,
    head: Ref,
    base: Ref,
    /// Absent when the account that opened it is gone.
    user: Option<Owner>,
    #[serde(default)]
    labels: Option<Vec<Label>>,
}

#[derive(Deserialize)]
struct Ref {
    #[serde(rename = "ref")]
    name: String,
    sha: String,
}

#[derive(Deserialize)]
struct Label {
    name: Option<String>,
}

/// Open pull requests that have all labels asked for.
pub(crate) async fn pull_requests(
    api: &Api<'_>,
    spec: &PullRequestGithub,
) -> Result<Vec<PullRequest>, ScmError> {
    let owner = segment("an owner", &spec.owner)?;
    let path = format!("repos/{owner}/{}/pulls", segment("a repository", &spec.repo)?);
    let pulls: Vec<Pull> = numbered(api, &path, &PER_PAGE, link_page).await.map_err(|error| {
        error.context(format!("error listing pull requests for {}/{}", spec.owner, spec.repo))
    })?;
    let requests = pulls.into_iter().map(|pull| PullRequest {
        number: pull.number,
        title: pull.title,
        branch: pull.head.name,
        target_branch: pull.base.name,
        head_sha: pull.head.sha,
        labels: pull.labels.unwrap_or_default().into_iter().filter_map(|label| label.name).collect(),
        author: pull.user.map(|user| user.login).unwrap_or_default(),
    });
    Ok(requests.filter(|request| request.has_labels(&spec.labels)).collect())
}

impl Item for Repo {
    fn identity(&self) -> String {
        format!("{}/{}", self.owner.login, self.name)
    }
}

impl Item for Branch {
    fn identity(&self) -> String {
        self.name.clone()
    }
}

impl Item for Pull {
    fn identity(&self) -> String {
        self.number.to_string()
    }
}
