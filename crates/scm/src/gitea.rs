//! Gitea.

use baton_api::pull_request::PullRequestGitea;
use baton_api::scm::ScmGitea;
use reqwest::Url;
use reqwest::header::AUTHORIZATION;
use serde::Deserialize;

use crate::error::{Kind, ScmError};
use crate::http::{Answer, Api, Auth, Item, NumberedPage, base, link_page, numbered};
use crate::names::{path, segment};
use crate::provider::{CloneProtocol, PullRequest, Repository, RepositoryHost};
use crate::secret::Secret;

/// What a server gives at most, unless its owner wants otherwise.
const PER_PAGE: (&str, &str) = ("limit", "50");

/// The URL of the API: below `/api/v1`.
pub(crate) fn api_url(api: &str) -> Result<Url, ScmError> {
    let mut url = base(api)?;
    url.set_path(&format!("{}/api/v1/", url.path().trim_end_matches('/')));
    Ok(url)
}

pub(crate) fn auth(token: Option<Secret>) -> Result<Auth, ScmError> {
    match token {
        Some(token) => Auth::new(AUTHORIZATION, &format!("token {}", token.reveal())),
        None => Ok(Auth::anonymous()),
    }
}

/// Gitea links the next page and counts all items; either is enough to go on.
fn next_page(answer: &Answer, page: NumberedPage) -> Result<Option<u64>, ScmError> {
    if let Some(next) = link_page(answer, page)? {
        return Ok(Some(next));
    }
    let total: Option<usize> =
        answer.text_header("x-total-count").and_then(|total| total.trim().parse().ok());
    let more = page.items_here > 0 && total.is_some_and(|total| total > page.items_so_far);
    Ok(more.then_some(page.number + 1))
}

pub(crate) struct Owner<'a> {
    pub(crate) api: Api<'a>,
    pub(crate) spec: &'a ScmGitea,
    pub(crate) protocol: CloneProtocol,
}

#[derive(Deserialize)]
struct Repo {
    id: i64,
    name: String,
    default_branch: Option<String>,
    ssh_url: Option<String>,
    html_url: Option<String>,
    #[serde(default)]
    archived: Option<bool>,
    #[serde(default)]
    empty: Option<bool>,
}

#[derive(Deserialize)]
struct Label {
    id: i64,
    name: String,
}

#[derive(Deserialize)]
struct Branch {
    name: String,
    commit: Commit,
}

#[derive(Deserialize)]
struct Commit {
    id: String,
}

impl RepositoryHost for Owner<'_> {
    async fn repositories(&self) -> Result<Vec<Repository>, ScmError> {
        let owner = &self.spec.owner;
        let path = format!("orgs/{}/repos", segment("an owner", owner)?);
        let repos: Vec<Repo> = numbered(&self.api, &path, &[PER_PAGE], next_page)
            .await
            .map_err(|error| error.context(format!("error listing repositories for {owner}")))?;
        let mut repositories = Vec::new();
        for repo in repos {
            if self.spec.exclude_archived_repos && repo.archived == Some(true) {
                continue;
            }
            repositories.push(self.repository(repo).await?);
        }
        Ok(repositories)
    }

    async fn branches(&self, repository: &Repository) -> Result<Vec<Repository>, ScmError> {
        let path = format!("{}/branches", self.repo_path(&repository.repository)?);
        let branches = if self.spec.all_branches {
            numbered(&self.api, &path, &[PER_PAGE], next_page).await
        } else {
            self.default_branch(repository, &path).await
        };
        let branches: Vec<Branch> = branches.map_err(|error| {
            let Repository { organization, repository, .. } = repository;
            error.context(format!("error listing branches for {organization}/{repository}"))
        })?;
        Ok(branches.into_iter().map(|branch| repository.at(branch.name, branch.commit.id)).collect())
    }

    async fn has_path(&self, repository: &Repository, wanted: &str) -> Result<bool, ScmError> {
        let path = format!("{}/contents/{}", self.repo_path(&repository.repository)?, path(wanted)?);
        self.api.exists(self.api.url(&path, &[("ref", &repository.branch)])).await
    }
}

impl Owner<'_> {
    fn repo_path(&self, repository: &str) -> Result<String, ScmError> {
        let owner = segment("an owner", &self.spec.owner)?;
        Ok(format!("repos/{owner}/{}", segment("a repository", repository)?))
    }

    async fn repository(&self, repo: Repo) -> Result<Repository, ScmError> {
        let path = format!("{}/labels", self.repo_path(&repo.name)?);
        let labels: Vec<Label> =
            numbered(&self.api, &path, &[PER_PAGE], next_page).await.map_err(|error| {
                error.context(format!("error listing labels for {}/{}", self.spec.owner, repo.name))
            })?;
        let branch = repo.default_branch.filter(|_| repo.empty != Some(true));
        Ok(Repository {
            organization: self.spec.owner.clone(),
            repository: repo.name,
            repository_id: repo.id.into(),
            url: self.protocol.choose(repo.ssh_url.unwrap_or_default(), repo.html_url.unwrap_or_default()),
            branch: branch.unwrap_or_default(),
            sha: String::new(),
            labels: labels.into_iter().map(|label| label.name).collect(),
        })
    }

    async fn default_branch(&self, repository: &Repository, branches: &str) -> Result<Vec<Branch>, ScmError> {
        if repository.branch.is_empty() {
            return Ok(Vec::new());
        }
        let path = format!("{branches}/{}", path(&repository.branch)?);
        let answer = self.api.get(self.api.url::<&str, &str>(&path, &[])).await.map_err(|error| {
            let Repository { branch, repository, .. } = repository;
            match error.kind() {
                Kind::NotFound => error.context(format!(
                    "got 404 while getting default branch {branch:?} for repo {repository:?} - check your repo config"
                )),
                _ => error,
            }
        })?;
        let found: Branch = answer.json()?;
        Ok(vec![Branch { name: repository.branch.clone(), ..found }])
    }
}

#[derive(Deserialize)]
struct Pull {
    number: i64,
    title: String,
    head: Ref,
    base: Ref,
    user: Option<User>,
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
struct User {
    login: String,
}

/// Open pull requests that have all labels asked for.
pub(crate) async fn pull_requests(
    api: &Api<'_>,
    spec: &PullRequestGitea,
) -> Result<Vec<PullRequest>, ScmError> {
    let owner = segment("an owner", &spec.owner)?;
    let path = format!("repos/{owner}/{}/pulls", segment("a repository", &spec.repo)?);
    let pulls: Vec<Pull> =
        numbered(api, &path, &[("state", "open"), PER_PAGE], next_page).await.map_err(|error| {
            error.context(format!("error listing pull requests for {}/{}", spec.owner, spec.repo))
        })?;
    let requests = pulls.into_iter().map(|pull| PullRequest {
        number: pull.number,
        title: pull.title,
        branch: pull.head.name,
        target_branch: pull.base.name,
        head_sha: pull.head.sha,
        labels: pull.labels.unwrap_or_default().into_iter().map(|label| label.name).collect(),
        author: pull.user.map(|user| user.login).unwrap_or_default(),
    });
    Ok(requests.filter(|request| request.has_labels(&spec.labels)).collect())
}

impl Item for Repo {
    fn identity(&self) -> String {
        self.id.to_string()
    }
}

impl Item for Label {
    fn identity(&self) -> String {
        self.id.to_string()
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
