//! Azure DevOps.

use baton_api::pull_request::PullRequestAzureDevOps;
use baton_api::scm::ScmAzureDevOps;
use reqwest::Url;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::error::{Kind, ScmError};
use crate::http::{Answer, Api, Auth, Budget, Dialect, Item, Page, base, list};
use crate::names::segment;
use crate::provider::{PullRequest, Repository, RepositoryHost};
use crate::secret::Secret;

const DEFAULT_API: &str = "https://dev.azure.com";
/// Understood by every server still supported.
const VERSION: (&str, &str) = ("api-version", "5.0");
const HEADS: &str = "refs/heads/";
const PAGE: usize = 100;

/// The URL of an organisation.
pub(crate) fn api_url(api: &str, organization: &str) -> Result<Url, ScmError> {
    let mut url = base(if api.is_empty() { DEFAULT_API } else { api })?;
    let organization = segment("an organization", organization)?;
    url.set_path(&format!("{}/{organization}/", url.path().trim_end_matches('/')));
    Ok(url)
}

/// A personal access token is a password of nobody.
pub(crate) fn auth(token: Option<Secret>) -> Result<Auth, ScmError> {
    token.map_or(Ok(Auth::anonymous()), |token| Auth::basic("", &token))
}

/// Requests that are refused and not led to a page to sign in.
pub(crate) fn speaking(api: Api<'_>) -> Api<'_> {
    api.speaking(Dialect::Azure).with_header("x-tfs-fedauthredirect", "Suppress")
}

pub(crate) struct TeamProject<'a> {
    pub(crate) api: Api<'a>,
    pub(crate) spec: &'a ScmAzureDevOps,
}

#[derive(Deserialize)]
struct Collection<T> {
    value: Vec<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Repo {
    id: Option<String>,
    name: Option<String>,
    default_branch: Option<String>,
    remote_url: Option<String>,
}

#[derive(Deserialize)]
struct Branch {
    name: String,
    commit: Commit,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Commit {
    commit_id: String,
}

impl RepositoryHost for TeamProject<'_> {
    async fn repositories(&self) -> Result<Vec<Repository>, ScmError> {
        let path = format!("{}/_apis/git/repositories", segment("a project", &self.spec.team_project)?);
        let mut budget = Budget::new(self.api.settings());
        let (mut repositories, mut token) = (Vec::new(), None::<String>);
        loop {
            let mut query = vec![VERSION];
            query.extend(token.as_deref().map(|token| ("continuationToken", token)));
            let answer = self.api.get(self.api.url(&path, &query)).await.map_err(|error| {
                error.context(format!("error listing repositories for {}", self.spec.team_project))
            })?;
            let page: Collection<Repo> = answer.json()?;
            budget.page(page.value.len())?;
            repositories.extend(page.value.into_iter().filter_map(|repo| self.repository(repo)));
            match answer.text_header("x-ms-continuationtoken").filter(|token| !token.is_empty()) {
                None => return Ok(repositories),
                Some(next) => token = Some(next.to_owned()),
            }
        }
    }

    async fn branches(&self, repository: &Repository) -> Result<Vec<Repository>, ScmError> {
        let branches = match self.listed_branches(repository).await {
            // Deleted since it was listed.
            Err(error) if error.has_code("GitRepositoryNotFoundException") => Vec::new(),
            outcome => outcome.map_err(|error| {
                let Repository { organization, repository, .. } = repository;
                error.context(format!("error listing branches for {organization}/{repository}"))
            })?,
        };
        Ok(branches.into_iter().map(|branch| repository.at(branch.name, branch.commit.commit_id)).collect())
    }

    async fn has_path(&self, repository: &Repository, path: &str) -> Result<bool, ScmError> {
        let id = repository.repository_id.as_str().unwrap_or_default();
        let items = format!("{}/items", self.repo_path(id)?);
        let query = [VERSION, ("path", path), ("versionDescriptor.version", &repository.branch)];
        let url = self.api.url(&items, &query);
        let found = self.api.get(url).await.and_then(|answer| answer.json::<IgnoredAny>());
        match found {
            Ok(_) => Ok(true),
            // Other errors come with the same status and do not tell that the path is missing.
            Err(error) if error.has_code("GitItemNotFoundException") => Ok(false),
            Err(error) => Err(error.context("failed to check for path existence in Azure DevOps")),
        }
    }
}

impl TeamProject<'_> {
    fn repo_path(&self, repository: &str) -> Result<String, ScmError> {
        let project = segment("a project", &self.spec.team_project)?;
        Ok(format!("{project}/_apis/git/repositories/{}", segment("a repository", repository)?))
    }

    /// A repository without a default branch is empty.
    fn repository(&self, repo: Repo) -> Option<Repository> {
        Some(Repository {
            organization: self.spec.organization.clone(),
            repository: repo.name?,
            repository_id: repo.id?.into(),
            url: repo.remote_url?,
            branch: repo.default_branch?,
            sha: String::new(),
            labels: Vec::new(),
        })
    }

    async fn listed_branches(&self, repository: &Repository) -> Result<Vec<Branch>, ScmError> {
        let path = format!("{}/stats/branches", self.repo_path(&repository.repository)?);
        if self.spec.all_branches {
            let page: Collection<Branch> = self.api.get(self.api.url(&path, &[VERSION])).await?.json()?;
            Budget::new(self.api.settings()).page(page.value.len())?;
            return Ok(page.value);
        }
        let branch = repository.branch.replacen(HEADS, "", 1);
        let url = self.api.url(&path, &[VERSION, ("name", &branch)]);
        Ok(vec![self.api.get(url).await?.json()?])
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pull {
    pull_request_id: Option<i64>,
    title: Option<String>,
    repository: Option<Named>,
    source_ref_name: Option<String>,
    target_ref_name: Option<String>,
    last_merge_source_commit: Option<MergeCommit>,
    #[serde(default)]
    labels: Option<Vec<Named>>,
    created_by: Option<Creator>,
}

#[derive(Deserialize)]
struct Named {
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MergeCommit {
    commit_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Creator {
    unique_name: Option<String>,
}

/// Active pull requests of the repository that have all labels asked for. The project is asked, not the
/// repository: only a project that does not exist counts as not found.
pub(crate) async fn pull_requests(
    api: &Api<'_>,
    spec: &PullRequestAzureDevOps,
) -> Result<Vec<PullRequest>, ScmError> {
    let path = format!("{}/_apis/git/pullrequests", segment("a project", &spec.project)?);
    let page_at = |skip: usize| {
        let (top, skip) = (PAGE.to_string(), skip.to_string());
        api.url(&path, &[VERSION, ("$top", &top), ("$skip", &skip)])
    };
    let read = |answer: &Answer, _: &Url, before: usize| {
        let page: Collection<Pull> = answer.json()?;
        let is_full = page.value.len() >= PAGE;
        let next = is_full.then(|| page_at(before + page.value.len()));
        Ok(Page { items: page.value, next })
    };
    let pulls = list(api, page_at(0), read).await.map_err(not_found_by_words)?;
    let requests = pulls.into_iter().filter_map(|pull| request(pull, &spec.repo));
    Ok(requests.filter(|request| request.has_labels(&spec.labels)).collect())
}

fn not_found_by_words(error: ScmError) -> ScmError {
    let is_project = error.to_string().contains("The following project does not exist");
    let error = error.context("failed to get pull requests by project");
    match error.kind() {
        _ if is_project => error.with_kind(Kind::NotFound),
        Kind::NotFound => error.with_kind(Kind::Protocol),
        _ => error,
    }
}

/// One that lacks a field, as one whose merge has not been tried yet, is left out.
fn request(pull: Pull, repository: &str) -> Option<PullRequest> {
    if pull.repository?.name? != repository {
        return None;
    }
    let author = pull.created_by.and_then(|creator| creator.unique_name).unwrap_or_default();
    Some(PullRequest {
        number: pull.pull_request_id?,
        title: pull.title.unwrap_or_default(),
        branch: pull.source_ref_name?.replacen(HEADS, "", 1),
        target_branch: pull.target_ref_name?.replacen(HEADS, "", 1),
        head_sha: pull.last_merge_source_commit?.commit_id?,
        labels: pull.labels.unwrap_or_default().into_iter().filter_map(|label| label.name).collect(),
        author: author.split('@').next().unwrap_or_default().to_owned(),
    })
}

impl Item for Pull {
    fn identity(&self) -> String {
        self.pull_request_id.map(|id| id.to_string()).unwrap_or_default()
    }
}
