//! Bitbucket Cloud.

use baton_api::pull_request::PullRequestBitbucket;
use baton_api::scm::ScmBitbucket;
use reqwest::Url;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::ScmError;
use crate::http::{Api, Budget, base};
use crate::names::{path, segment};
use crate::provider::{PullRequest, Repository, RepositoryHost};

const DEFAULT_API: &str = "https://api.bitbucket.org/2.0";

/// The URL of the API.
pub(crate) fn api_url(api: &str) -> Result<Url, ScmError> {
    base(if api.is_empty() { DEFAULT_API } else { api })
}

pub(crate) struct Workspace<'a> {
    pub(crate) api: Api<'a>,
    pub(crate) spec: &'a ScmBitbucket,
    /// The name of the clone link to take.
    pub(crate) protocol: &'a str,
}

#[derive(Deserialize)]
struct Page<T> {
    values: Vec<T>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct Repo {
    slug: String,
    uuid: String,
    mainbranch: Option<MainBranch>,
    links: Links,
}

#[derive(Deserialize)]
struct MainBranch {
    name: String,
}

#[derive(Deserialize)]
struct Links {
    clone: Vec<CloneLink>,
}

#[derive(Deserialize)]
struct CloneLink {
    name: String,
    href: String,
}

#[derive(Deserialize)]
struct Branch {
    name: String,
    target: Commit,
}

#[derive(Deserialize)]
struct Commit {
    hash: String,
}

impl RepositoryHost for Workspace<'_> {
    async fn repositories(&self) -> Result<Vec<Repository>, ScmError> {
        let owner = &self.spec.owner;
        let path = format!("repositories/{}", segment("an owner", owner)?);
        let repos: Vec<Repo> = pages(&self.api, &path, &[("role", "member"), ("pagelen", "100")])
            .await
            .map_err(|error| error.context(format!("error listing repositories for {owner}")))?;
        repos.into_iter().map(|repo| self.repository(repo)).collect()
    }

    async fn branches(&self, repository: &Repository) -> Result<Vec<Repository>, ScmError> {
        let branches = self.listed_branches(repository).await.map_err(|error| {
            let Repository { organization, repository, .. } = repository;
            error.context(format!("error listing branches for {organization}/{repository}"))
        })?;
        Ok(branches.into_iter().map(|branch| repository.at(branch.name, branch.target.hash)).collect())
    }

    async fn has_path(&self, repository: &Repository, wanted: &str) -> Result<bool, ScmError> {
        let commit = segment("a commit", &repository.sha)?;
        let path = format!("{}/src/{commit}/{}", self.repo_path(repository)?, path(wanted)?);
        self.api.exists(self.api.url(&path, &[("format", "meta")])).await
    }
}

impl Workspace<'_> {
    fn repo_path(&self, repository: &Repository) -> Result<String, ScmError> {
        let owner = segment("an owner", &self.spec.owner)?;
        Ok(format!("repositories/{owner}/{}", segment("a repository", &repository.repository)?))
    }

    fn repository(&self, repo: Repo) -> Result<Repository, ScmError> {
        let wanted = if self.protocol.is_empty() { "ssh" } else { self.protocol };
        let link = repo.links.clone.into_iter().find(|link| link.name == wanted).ok_or_else(|| {
            ScmError::invalid(format!(
                "error fetching clone url for repo {}: unknown clone protocol for Bitbucket cloud {wanted}",
                repo.slug
            ))
        })?;
        Ok(Repository {
            organization: self.spec.owner.clone(),
            repository: repo.slug,
            repository_id: repo.uuid.into(),
            url: link.href,
            branch: repo.mainbranch.map(|branch| branch.name).unwrap_or_default(),
            sha: String::new(),
            labels: Vec::new(),
        })
    }

    async fn listed_branches(&self, repository: &Repository) -> Result<Vec<Branch>, ScmError> {
        let branches = format!("{}/refs/branches", self.repo_path(repository)?);
        if self.spec.all_branches {
            return pages(&self.api, &branches, &[("pagelen", "100")]).await;
        }
        // An empty repository has no main branch.
        if repository.branch.is_empty() {
            return Ok(Vec::new());
        }
        let path = format!("{branches}/{}", path(&repository.branch)?);
        Ok(vec![self.api.get(self.api.url::<&str, &str>(&path, &[])).await?.json()?])
    }
}

/// Reads a list whose pages each give the URL of the next.
async fn pages<T: DeserializeOwned>(
    api: &Api<'_>,
    path: &str,
    query: &[(&str, &str)],
) -> Result<Vec<T>, ScmError> {
    let mut budget = Budget::new(api.settings());
    let mut items = Vec::new();
    let mut url = api.url(path, query);
    loop {
        let page: Page<T> = api.get(url).await?.json()?;
        budget.page(page.values.len())?;
        items.extend(page.values);
        match page.next {
            None => return Ok(items),
            Some(next) => url = api.own_url(&next)?,
        }
    }
}

#[derive(Deserialize)]
struct Pull {
    id: i64,
    title: String,
    source: Source,
    destination: Destination,
    author: Option<Author>,
}

#[derive(Deserialize)]
struct Source {
    branch: MainBranch,
    /// Absent when the branch is gone.
    commit: Option<Commit>,
}

#[derive(Deserialize)]
struct Destination {
    branch: MainBranch,
}

#[derive(Deserialize)]
struct Author {
    #[serde(default)]
    nickname: String,
}

/// Open pull requests.
pub(crate) async fn pull_requests(
    api: &Api<'_>,
    spec: &PullRequestBitbucket,
) -> Result<Vec<PullRequest>, ScmError> {
    let owner = segment("an owner", &spec.owner)?;
    let path = format!("repositories/{owner}/{}/pullrequests/", segment("a repository", &spec.repo)?);
    let pulls: Vec<Pull> = pages(api, &path, &[("pagelen", "50")]).await.map_err(|error| {
        error.context(format!("error listing pull requests for {}/{}", spec.owner, spec.repo))
    })?;
    let requests = pulls.into_iter().map(|pull| PullRequest {
        number: pull.id,
        title: pull.title,
        branch: pull.source.branch.name,
        target_branch: pull.destination.branch.name,
        head_sha: pull.source.commit.map(|commit| commit.hash).unwrap_or_default(),
        labels: Vec::new(),
        author: pull.author.map(|author| author.nickname).unwrap_or_default(),
    });
    Ok(requests.collect())
}
