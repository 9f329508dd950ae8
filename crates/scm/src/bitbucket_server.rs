//! Bitbucket Server and Data Center.

use std::collections::HashMap;

use baton_api::pull_request::PullRequestBitbucketServer;
use baton_api::scm::ScmBitbucketServer;
use parking_lot::Mutex;
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{Kind, ScmError};
use crate::http::{Answer, Api, Item, Page, base, list};
use crate::names::{path, segment};
use crate::provider::{CloneProtocol, PullRequest, Repository, RepositoryHost};

const LIMIT: (&str, &str) = ("limit", "100");

/// The URL of the API: below `/rest/api/1.0`.
pub(crate) fn api_url(api: &str) -> Result<Url, ScmError> {
    let mut url = base(api)?;
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix("/rest").unwrap_or(path);
    url.set_path(&format!("{path}/rest/api/1.0/"));
    Ok(url)
}

/// Requests that are not taken for a browser's.
pub(crate) fn speaking(api: Api<'_>) -> Api<'_> {
    api.with_header("x-atlassian-token", "no-check").with_header("x-requested-with", "XMLHttpRequest")
}

pub(crate) struct Project<'a> {
    pub(crate) api: Api<'a>,
    pub(crate) spec: &'a ScmBitbucketServer,
    pub(crate) protocol: CloneProtocol,
    /// Paths name a repository by its slug, parameters by its name, which may hold spaces: slugs by number.
    pub(crate) slugs: Mutex<HashMap<i64, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Values<T> {
    values: Vec<T>,
    is_last_page: bool,
    next_page_start: Option<u64>,
}

#[derive(Deserialize)]
struct Repo {
    id: i64,
    slug: String,
    name: String,
    project: Key,
    links: Links,
}

#[derive(Deserialize)]
struct Key {
    key: String,
}

#[derive(Deserialize)]
struct Links {
    #[serde(default)]
    clone: Vec<CloneLink>,
}

#[derive(Deserialize)]
struct CloneLink {
    name: String,
    href: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ref {
    display_id: String,
    latest_commit: String,
}

impl RepositoryHost for Project<'_> {
    async fn repositories(&self) -> Result<Vec<Repository>, ScmError> {
        let project = &self.spec.project;
        let path = format!("projects/{}/repos", segment("a project", project)?);
        let repos: Vec<Repo> = pages(&self.api, &path)
            .await
            .map_err(|error| error.context(format!("error listing repositories for {project}")))?;
        Ok(repos.into_iter().map(|repo| self.repository(repo)).collect())
    }

    async fn branches(&self, repository: &Repository) -> Result<Vec<Repository>, ScmError> {
        let listed = async {
            // A repository without a default branch is left out, whatever other branches it has.
            let Some(default) = self.default_branch(repository).await? else { return Ok(Vec::new()) };
            if !self.spec.all_branches {
                return Ok(vec![default]);
            }
            pages::<Ref>(&self.api, &format!("{}/branches", self.repo_path(repository)?)).await
        };
        let branches = listed.await.map_err(|error: ScmError| {
            let Repository { organization, repository, .. } = repository;
            error.context(format!("error listing branches for {organization}/{repository}"))
        })?;
        Ok(branches
            .into_iter()
            .map(|branch| repository.at(branch.display_id, branch.latest_commit))
            .collect())
    }

    async fn has_path(&self, repository: &Repository, wanted: &str) -> Result<bool, ScmError> {
        let path = format!("{}/browse/{}", self.repo_path(repository)?, path(wanted)?);
        let query = [LIMIT, ("at", &repository.branch), ("type", "true")];
        self.api.exists(self.api.url(path.trim_end_matches('/'), &query)).await
    }
}

impl Project<'_> {
    fn repository(&self, repo: Repo) -> Repository {
        self.slugs.lock().insert(repo.id, repo.slug);
        let link = |name: &str| repo.links.clone.iter().find(|link| link.name == name);
        let href = |name: &str| link(name).map(|link| link.href.clone()).unwrap_or_default();
        Repository {
            organization: repo.project.key,
            url: self.protocol.choose(href("ssh"), href("http")),
            repository: repo.name,
            repository_id: repo.id.into(),
            branch: String::new(),
            sha: String::new(),
            labels: Vec::new(),
        }
    }

    fn repo_path(&self, repository: &Repository) -> Result<String, ScmError> {
        let slug = repository.repository_id.as_i64().and_then(|id| self.slugs.lock().get(&id).cloned());
        let slug = slug.unwrap_or_else(|| repository.repository.clone());
        let project = segment("a project", &repository.organization)?;
        Ok(format!("projects/{project}/repos/{}", segment("a repository", &slug)?))
    }

    /// None if it is not set or does not exist.
    async fn default_branch(&self, repository: &Repository) -> Result<Option<Ref>, ScmError> {
        let path = format!("{}/branches/default", self.repo_path(repository)?);
        match self.api.get(self.api.url::<&str, &str>(&path, &[])).await {
            Ok(answer) if answer.is_nothing() => Ok(None),
            Ok(answer) => answer.json().map(Some),
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Reads a list whose pages each say where the next one starts.
async fn pages<T: Item>(api: &Api<'_>, path: &str) -> Result<Vec<T>, ScmError> {
    let read = |answer: &Answer, url: &Url, _| {
        let page: Values<T> = answer.json()?;
        let start =
            url.query_pairs().find(|(key, _)| key == "start").and_then(|(_, start)| start.parse().ok());
        let next = match page.next_page_start {
            _ if page.is_last_page => None,
            Some(next) if next > start.unwrap_or(0) => {
                Some(api.url(path, &[LIMIT, ("start", &next.to_string())]))
            }
            _ => return Err(answer.wrong("its next page is not a later one")),
        };
        Ok(Page { items: page.values, next })
    };
    list(api, api.url(path, &[LIMIT]), read).await
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pull {
    id: i64,
    title: String,
    from_ref: Ref,
    to_ref: Target,
    author: Option<Participant>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    display_id: String,
}

#[derive(Deserialize)]
struct Participant {
    user: Value,
}

/// Open pull requests.
pub(crate) async fn pull_requests(
    api: &Api<'_>,
    spec: &PullRequestBitbucketServer,
) -> Result<Vec<PullRequest>, ScmError> {
    let project = segment("a project", &spec.project)?;
    let path = format!("projects/{project}/repos/{}/pull-requests", segment("a repository", &spec.repo)?);
    let pulls: Vec<Pull> = pages(api, &path).await.map_err(|error| {
        error.context(format!("error listing pull requests for {}/{}", spec.project, spec.repo))
    })?;
    let name = |author: Participant| author.user.get("name").and_then(Value::as_str).map(str::to_owned);
    let requests = pulls.into_iter().map(|pull| PullRequest {
        number: pull.id,
        title: pull.title,
        branch: pull.from_ref.display_id,
        target_branch: pull.to_ref.display_id,
        head_sha: pull.from_ref.latest_commit,
        labels: Vec::new(),
        author: pull.author.and_then(name).unwrap_or_default(),
    });
    Ok(requests.collect())
}

impl Item for Repo {
    fn identity(&self) -> String {
        self.id.to_string()
    }
}

impl Item for Ref {
    fn identity(&self) -> String {
        self.display_id.clone()
    }
}

impl Item for Pull {
    fn identity(&self) -> String {
        self.id.to_string()
    }
}
