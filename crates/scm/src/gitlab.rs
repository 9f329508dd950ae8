//! GitLab.

use std::collections::HashSet;

use baton_api::pull_request::PullRequestGitlab;
use baton_api::scm::ScmGitlab;
use reqwest::Url;
use reqwest::header::HeaderName;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{Kind, ScmError};
use crate::http::{Answer, Api, Auth, Item, NumberedPage, base, link_page, numbered};
use crate::names::segment;
use crate::provider::{CloneProtocol, PullRequest, Repository, RepositoryHost};
use crate::secret::Secret;

const DEFAULT_API: &str = "https://gitlab.com/";
const PAGE: usize = 100;
const PER_PAGE: (&str, &str) = ("per_page", "100");

/// The URL of the API: below `/api/v4`.
pub(crate) fn api_url(api: &str) -> Result<Url, ScmError> {
    let mut url = base(if api.is_empty() { DEFAULT_API } else { api })?;
    let path = format!("{}/", url.path().trim_end_matches('/'));
    url.set_path(&if path.ends_with("/api/v4/") { path } else { format!("{path}api/v4/") });
    Ok(url)
}

pub(crate) fn auth(token: Option<Secret>) -> Result<Auth, ScmError> {
    match token {
        Some(token) => Auth::new(HeaderName::from_static("private-token"), token.reveal()),
        None => Ok(Auth::anonymous()),
    }
}

/// GitLab names the next page, and nothing on the last one. A proxy may drop what it does not know: then a full
/// page is followed by a look at the next.
fn next_page(answer: &Answer, page: NumberedPage) -> Result<Option<u64>, ScmError> {
    match answer.text_header("x-next-page").map(str::trim) {
        Some("") => Ok(None),
        Some(number) => number.parse().map(Some).map_err(|_| answer.wrong("its next page is not a number")),
        None => match link_page(answer, page)? {
            None if page.items_here >= PAGE => Ok(Some(page.number + 1)),
            next => Ok(next),
        },
    }
}

pub(crate) struct Group<'a> {
    pub(crate) api: Api<'a>,
    pub(crate) spec: &'a ScmGitlab,
    pub(crate) protocol: CloneProtocol,
}

#[derive(Deserialize)]
struct Project {
    id: i64,
    path: String,
    namespace: Namespace,
    default_branch: Option<String>,
    ssh_url_to_repo: Option<String>,
    http_url_to_repo: Option<String>,
    #[serde(default)]
    topics: Option<Vec<String>>,
    /// What topics were called before GitLab 14.5.
    #[serde(default)]
    tag_list: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Namespace {
    full_path: String,
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

impl RepositoryHost for Group<'_> {
    async fn repositories(&self) -> Result<Vec<Repository>, ScmError> {
        let mut projects = self.projects(None).await?;
        if self.spec.include_archived_repos {
            // Whether the plain list has them depends on the server; what is listed twice is taken once.
            projects.extend(self.projects(Some("true")).await?);
            let mut seen = HashSet::new();
            projects.retain(|project| seen.insert(project.id));
        }
        Ok(projects.into_iter().map(|project| self.repository(project)).collect())
    }

    async fn branches(&self, repository: &Repository) -> Result<Vec<Repository>, ScmError> {
        let branches = match self.listed_branches(repository).await {
            // An empty repository has no branches, and not the default branch it names either.
            Err(error) if error.kind() == Kind::NotFound => Ok(Vec::new()),
            outcome => outcome,
        };
        let branches = branches.map_err(|error| {
            let Repository { organization, repository, .. } = repository;
            error.context(format!("error listing branches for {organization}/{repository}"))
        })?;
        Ok(branches.into_iter().map(|branch| repository.at(branch.name, branch.commit.id)).collect())
    }

    async fn has_path(&self, repository: &Repository, path: &str) -> Result<bool, ScmError> {
        let project = project_path(repository);
        let branch = ("ref", repository.branch.as_str());
        if !path.is_empty() {
            let file = format!("{project}/repository/files/{}", segment("a path", path)?);
            if self.api.exists(self.api.url(&file, &[branch])).await? {
                return Ok(true);
            }
        }
        let tree = format!("{project}/repository/tree");
        match self.api.get(self.api.url(&tree, &[("path", path), branch])).await {
            // Git keeps no empty directories: where nothing is, no directory is.
            Ok(answer) => Ok(!answer.json::<Vec<Value>>()?.is_empty()),
            Err(error) if error.kind() == Kind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Group<'_> {
    async fn projects(&self, archived: Option<&str>) -> Result<Vec<Project>, ScmError> {
        let group = &self.spec.group;
        let path = format!("groups/{}/projects", segment("a group", group)?);
        let text = |yes| if yes { "true" } else { "false" };
        let mut query = vec![
            PER_PAGE,
            ("include_subgroups", text(self.spec.include_subgroups)),
            ("with_shared", text(self.spec.include_shared_projects.unwrap_or(true))),
        ];
        if !self.spec.topic.is_empty() {
            query.push(("topic", &self.spec.topic));
        }
        query.extend(archived.map(|archived| ("archived", archived)));
        numbered(&self.api, &path, &query, next_page)
            .await
            .map_err(|error| error.context(format!("error listing projects for {group}")))
    }

    fn repository(&self, project: Project) -> Repository {
        let topics = project.topics.filter(|topics| !topics.is_empty());
        Repository {
            organization: project.namespace.full_path,
            repository: project.path,
            repository_id: project.id.into(),
            url: self.protocol.choose(
                project.ssh_url_to_repo.unwrap_or_default(),
                project.http_url_to_repo.unwrap_or_default(),
            ),
            branch: project.default_branch.unwrap_or_default(),
            sha: String::new(),
            labels: topics.or(project.tag_list).unwrap_or_default(),
        }
    }

    async fn listed_branches(&self, repository: &Repository) -> Result<Vec<Branch>, ScmError> {
        let path = format!("{}/repository/branches", project_path(repository));
        if self.spec.all_branches {
            return numbered(&self.api, &path, &[PER_PAGE], next_page).await;
        }
        if repository.branch.is_empty() {
            return Ok(Vec::new());
        }
        let path = format!("{path}/{}", segment("a branch", &repository.branch)?);
        Ok(vec![self.api.get(self.api.url::<&str, &str>(&path, &[])).await?.json()?])
    }
}

/// A project by its number, which stays when it is renamed.
fn project_path(repository: &Repository) -> String {
    format!("projects/{}", repository.repository_id)
}

#[derive(Deserialize)]
struct MergeRequest {
    iid: i64,
    title: String,
    source_branch: String,
    target_branch: String,
    sha: Option<String>,
    #[serde(default)]
    labels: Option<Vec<String>>,
    author: Option<Author>,
}

#[derive(Deserialize)]
struct Author {
    username: String,
}

/// Merge requests with all labels asked for, in the state asked for or in any.
pub(crate) async fn pull_requests(
    api: &Api<'_>,
    spec: &PullRequestGitlab,
) -> Result<Vec<PullRequest>, ScmError> {
    let path = format!("projects/{}/merge_requests", segment("a project", &spec.project)?);
    let labels = spec.labels.join(",");
    let mut query = vec![PER_PAGE];
    if !labels.is_empty() {
        query.push(("labels", &labels));
    }
    if !spec.pull_request_state.is_empty() {
        query.push(("state", &spec.pull_request_state));
    }
    let requests: Vec<MergeRequest> = numbered(api, &path, &query, next_page).await.map_err(|error| {
        error.context(format!("error listing merge requests for project '{}'", spec.project))
    })?;
    let requests = requests.into_iter().map(|request| PullRequest {
        number: request.iid,
        title: request.title,
        branch: request.source_branch,
        target_branch: request.target_branch,
        head_sha: request.sha.unwrap_or_default(),
        labels: request.labels.unwrap_or_default(),
        author: request.author.map(|author| author.username).unwrap_or_default(),
    });
    Ok(requests.collect())
}

impl Item for Project {
    fn identity(&self) -> String {
        self.id.to_string()
    }
}

impl Item for Branch {
    fn identity(&self) -> String {
        self.name.clone()
    }
}

impl Item for MergeRequest {
    fn identity(&self) -> String {
        self.iid.to_string()
    }
}
