//! Bitbucket Cloud.

use baton_api::pull_request::PullRequestBitbucket;
use baton_api::scm::ScmBitbucket;
use reqwest::Url;
use serde::Deserialize;

use crate::error::ScmError;
use crate::http::{Answer, Api, Item, Page, base, list};
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
struct Values<T> {
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
async fn pages<T: Item>(api: &Api<'_>, path: &str, query: &[(&str, &str)]) -> Result<Vec<T>, ScmError> {
    let read = |answer: &Answer, _: &Url, _| {
        let page: Values<T> = answer.json()?;
        let next = page.next.map(|next| api.own_url(&next)).transpose()?;
        Ok(Page { items: page.values, next })
    };
    list(api, api.url(path, query), read).await
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

impl Item for Repo {
    fn identity(&self) -> String {
        self.uuid.clone()
    }
}

impl Item for Branch {
    fn identity(&self) -> String {
        self.name.clone()
    }
}

impl Item for Pull {
    fn identity(&self) -> String {
        self.id.to_string()
    }
}
