//! Bodies of webhooks. Only what is used is read, and nothing is taken for granted: bodies may come from anyone.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::event::{Event, PullRequest, Push, PushedRef, WebhookError};
use super::url::{self, RepositoryUrl};

/// Most branches and tags one push is read for; a push of more is rare and found by polling.
const MAX_REFS: usize = 1000;

type Outcome = Result<Event, WebhookError>;

/// A field that may be missing or `null`.
type Maybe<T> = Option<T>;

#[derive(Deserialize, Default)]
#[serde(default)]
struct GitHub {
    #[serde(rename = "ref")]
    reference: Maybe<String>,
    action: Maybe<String>,
    repository: Maybe<GitHubRepository>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct GitHubRepository {
    name: Maybe<String>,
    html_url: Maybe<String>,
    url: Maybe<String>,
    default_branch: Maybe<String>,
    owner: Maybe<GitHubOwner>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct GitHubOwner {
    login: Maybe<String>,
    username: Maybe<String>,
}

pub(super) fn github(event: &str, body: &[u8]) -> Outcome {
    match event {
        "ping" => read::<GitHub>(body).map(|_| Event::Nothing),
        "push" => read(body).map(github_push),
        "pull_request" => {
            let payload: GitHub = read(body)?;
            let seen = ["opened", "closed", "synchronize", "labeled", "reopened", "unlabeled"];
            if !seen.contains(&payload.action.as_deref().unwrap_or_default()) {
                return Ok(Event::Nothing);
            }
            let repository = payload.repository.unwrap_or_default();
            let host =
                url::host(repository.url.as_deref().unwrap_or_default()).unwrap_or_default().to_owned();
            let (owner, repository) = owner_and_name(repository);
            Ok(Event::PullRequest(PullRequest::GitHub { owner, repository, host }))
        }
        _ => Err(WebhookError::UnknownEvent),
    }
}

/// Gitea's bodies are made after GitHub's.
pub(super) fn gitea(event: &str, body: &[u8]) -> Outcome {
    match event {
        "push" => read(body).map(github_push),
        "pull_request" | "pull_request_sync" | "pull_request_label" => {
            let payload: GitHub = read(body)?;
            let seen = ["opened", "closed", "reopened", "synchronized", "label_updated", "label_cleared"];
            if !seen.contains(&payload.action.as_deref().unwrap_or_default()) {
                return Ok(Event::Nothing);
            }
            let (owner, repository) = owner_and_name(payload.repository.unwrap_or_default());
            Ok(Event::PullRequest(PullRequest::Gitea { owner, repository }))
        }
        _ => Err(WebhookError::UnknownEvent),
    }
}

fn github_push(payload: GitHub) -> Event {
    let repository = payload.repository.unwrap_or_default();
    let default_branch = repository.default_branch.unwrap_or_default();
    let pushed = named(&payload.reference.unwrap_or_default(), |name| name == default_branch);
    push(repository.html_url, pushed)
}

fn owner_and_name(repository: GitHubRepository) -> (String, String) {
    let owner = repository.owner.unwrap_or_default();
    (owner.login.or(owner.username).unwrap_or_default(), repository.name.unwrap_or_default())
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct GitLab {
    object_kind: Maybe<String>,
    event_name: Maybe<String>,
    #[serde(rename = "ref")]
    reference: Maybe<String>,
    project: Maybe<GitLabProject>,
    object_attributes: Maybe<GitLabMergeRequest>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct GitLabProject {
    web_url: Maybe<String>,
    default_branch: Maybe<String>,
    path_with_namespace: Maybe<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct GitLabMergeRequest {
    action: Maybe<String>,
    target_project_id: Maybe<i64>,
}

pub(super) fn gitlab(event: &str, body: &[u8]) -> Outcome {
    let payload: GitLab = match event {
        "Push Hook" | "Tag Push Hook" | "Merge Request Hook" | "System Hook" => read(body)?,
        _ => return Err(WebhookError::UnknownEvent),
    };
    let known = |kind: &&str| ["push", "tag_push", "merge_request"].contains(kind);
    let told = || {
        let kind = payload.object_kind.as_deref().filter(known);
        kind.or(payload.event_name.as_deref().filter(known))
    };
    let kind = match event {
        "Push Hook" => "push",
        "Tag Push Hook" => "tag_push",
        "Merge Request Hook" => "merge_request",
        _ => told().ok_or(WebhookError::UnknownEvent)?,
    };
    let project = payload.project.unwrap_or_default();
    if kind != "merge_request" {
        let default_branch = project.default_branch.unwrap_or_default();
        let pushed = named(&payload.reference.unwrap_or_default(), |name| name == default_branch);
        return Ok(push(project.web_url, pushed));
    }
    let request = payload.object_attributes.unwrap_or_default();
    let seen = ["open", "close", "reopen", "update", "merge"];
    if !seen.contains(&request.action.as_deref().unwrap_or_default()) {
        return Ok(Event::Nothing);
    }
    let host = url::host(project.web_url.as_deref().unwrap_or_default()).unwrap_or_default().to_owned();
    let id = request.target_project_id.unwrap_or_default().to_string();
    let path = project.path_with_namespace.unwrap_or_default();
    Ok(Event::PullRequest(PullRequest::GitLab { id, path, host }))
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Azure {
    event_type: Maybe<String>,
    resource: Maybe<AzureResource>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct AzureResource {
    ref_updates: Maybe<Vec<AzureRef>>,
    repository: Maybe<AzureRepository>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct AzureRef {
    name: Maybe<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct AzureRepository {
    name: Maybe<String>,
    remote_url: Maybe<String>,
    default_branch: Maybe<String>,
    project: Maybe<AzureProject>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct AzureProject {
    name: Maybe<String>,
}

pub(super) fn azure(body: &[u8]) -> Outcome {
    let payload: Azure = read(body)?;
    let resource = payload.resource.unwrap_or_default();
    let repository = resource.repository.unwrap_or_default();
    match payload.event_type.as_deref().unwrap_or_default() {
        "git.push" => {
            let default_branch = repository.default_branch.unwrap_or_default();
            let updates = resource.ref_updates.unwrap_or_default();
            let moved = updates.into_iter().filter_map(|update| update.name);
            let pushed = moved.flat_map(|name| named(&name, |_| name == default_branch));
            Ok(push(repository.remote_url, pushed))
        }
        "git.pullrequest.created" | "git.pullrequest.updated" | "git.pullrequest.merged" => {
            Ok(Event::PullRequest(PullRequest::AzureDevOps {
                project: repository.project.unwrap_or_default().name.unwrap_or_default(),
                repository: repository.name.unwrap_or_default(),
            }))
        }
        // Service hooks for builds are often set up along with those for code.
        "build.complete" => Ok(Event::Nothing),
        _ => Err(WebhookError::UnknownEvent),
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Bitbucket {
    push: Maybe<BitbucketPush>,
    repository: Maybe<BitbucketRepository>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct BitbucketPush {
    changes: Maybe<Vec<BitbucketChange>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct BitbucketChange {
    new: Maybe<BitbucketRef>,
    old: Maybe<BitbucketRef>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct BitbucketRef {
    #[serde(rename = "type")]
    kind: Maybe<String>,
    name: Maybe<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct BitbucketRepository {
    full_name: Maybe<String>,
    links: Maybe<BitbucketLinks>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct BitbucketLinks {
    html: Maybe<Link>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Link {
    href: Maybe<String>,
    name: Maybe<String>,
}

pub(super) fn bitbucket(event: &str, body: &[u8]) -> Outcome {
    let payload: Bitbucket = match event {
        "repo:push"
        | "pullrequest:created"
        | "pullrequest:updated"
        | "pullrequest:fulfilled"
        | "pullrequest:rejected" => read(body)?,
        _ => return Err(WebhookError::UnknownEvent),
    };
    let repository = payload.repository.unwrap_or_default();
    if event != "repo:push" {
        let full_name = repository.full_name.unwrap_or_default();
        let (owner, name) = full_name.split_once('/').unwrap_or_default();
        let (owner, repository) = (owner.to_owned(), name.to_owned());
        return Ok(Event::PullRequest(PullRequest::Bitbucket { owner, repository }));
    }
    let changes = payload.push.unwrap_or_default().changes.unwrap_or_default();
    let pushed = changes.into_iter().filter_map(|change| change.new.or(change.old)).filter_map(|moved| {
        let tag = moved.kind.as_deref() == Some("tag");
        // Which branch is the default one, the body does not tell.
        Some(PushedRef { name: moved.name?, tag, default_branch: !tag })
    });
    Ok(push(repository.links.unwrap_or_default().html.unwrap_or_default().href, pushed))
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct BitbucketServer {
    repository: Maybe<ServerRepository>,
    changes: Maybe<Vec<ServerChange>>,
    pull_request: Maybe<ServerPullRequest>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ServerRepository {
    slug: Maybe<String>,
    project: Maybe<ServerProject>,
    links: Maybe<ServerLinks>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ServerProject {
    key: Maybe<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ServerLinks {
    clone: Maybe<Vec<Link>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ServerChange {
    #[serde(rename = "ref")]
    reference: Maybe<ServerRef>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ServerRef {
    id: Maybe<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ServerPullRequest {
    to_ref: Maybe<ServerTarget>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ServerTarget {
    repository: Maybe<ServerRepository>,
}

pub(super) fn bitbucket_server(event: &str, body: &[u8]) -> Outcome {
    match event {
        "diagnostics:ping" => Ok(Event::Nothing),
        "repo:refs_changed" => {
            let payload: BitbucketServer = read(body)?;
            let changes = payload.changes.unwrap_or_default();
            let moved = changes.into_iter().filter_map(|change| change.reference?.id);
            // Which branch is the default one, the body does not tell.
            let pushed = moved.flat_map(|id| named(&id, |_| true));
            Ok(moved_in(server_repositories(payload.repository.unwrap_or_default()), pushed))
        }
        "pr:opened" | "pr:from_ref_updated" | "pr:modified" | "pr:merged" | "pr:declined" | "pr:deleted" => {
            let payload: BitbucketServer = read(body)?;
            let target = payload.pull_request.unwrap_or_default().to_ref.unwrap_or_default();
            let repository = target.repository.unwrap_or_default();
            Ok(Event::PullRequest(PullRequest::BitbucketServer {
                project: repository.project.unwrap_or_default().key.unwrap_or_default(),
                repository: repository.slug.unwrap_or_default(),
            }))
        }
        _ => Err(WebhookError::UnknownEvent),
    }
}

/// The addresses a body gives for clones; where it gives none, project and name have to do.
fn server_repositories(repository: ServerRepository) -> Vec<RepositoryUrl> {
    let links = repository.links.unwrap_or_default().clone.unwrap_or_default();
    let told = |link: &Link| matches!(link.name.as_deref(), Some("http" | "ssh"));
    let addresses: Vec<RepositoryUrl> = links
        .into_iter()
        .filter(told)
        .take(8)
        .filter_map(|link| RepositoryUrl::of_clone(link.href.as_deref()?))
        .collect();
    if !addresses.is_empty() {
        return addresses;
    }
    let project = repository.project.unwrap_or_default().key.unwrap_or_default();
    RepositoryUrl::any_host(&project, &repository.slug.unwrap_or_default()).into_iter().collect()
}

fn push(address: Maybe<String>, refs: impl IntoIterator<Item = PushedRef>) -> Event {
    let repositories = address.and_then(|address| RepositoryUrl::of_page(&address));
    moved_in(repositories.into_iter().collect(), refs)
}

/// A push that tells no repository or nothing that moved says nothing.
fn moved_in(repositories: Vec<RepositoryUrl>, refs: impl IntoIterator<Item = PushedRef>) -> Event {
    let refs: Vec<PushedRef> = refs.into_iter().take(MAX_REFS).collect();
    if repositories.is_empty() || refs.is_empty() {
        return Event::Nothing;
    }
    Event::Push(Push { repositories, refs })
}

/// A reference such as `refs/heads/feature/x` without its first two parts; nothing if it is empty.
fn named(reference: &str, is_default: impl Fn(&str) -> bool) -> Option<PushedRef> {
    let name = reference.splitn(3, '/').last().filter(|name| !name.is_empty())?;
    let tag = reference.starts_with("refs/tags/");
    Some(PushedRef { name: name.to_owned(), tag, default_branch: !tag && is_default(name) })
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, WebhookError> {
    serde_json::from_slice(body).map_err(|_| WebhookError::Payload)
}
