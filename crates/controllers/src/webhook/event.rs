//! What a webhook says, whoever sends it.

use http::HeaderMap;

use super::payload;
use super::secrets::WebhookSecrets;
use super::signature::{self, Hash};
use super::url::RepositoryUrl;

/// What happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// Branches or tags moved.
    Push(Push),
    /// A pull request changed in a way that generators see.
    PullRequest(PullRequest),
    /// Something no generator reads.
    Nothing,
}

/// Branches or tags of a repository moved.
#[derive(Debug, Clone)]
pub struct Push {
    /// The repository; one of these is it.
    pub repositories: Vec<RepositoryUrl>,
    /// What moved.
    pub refs: Vec<PushedRef>,
}

/// A branch or tag that moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushedRef {
    /// Its name without `refs/heads/` or `refs/tags/`.
    pub name: String,
    /// Whether it is a tag.
    pub tag: bool,
    /// Whether it is, or may be, the default branch.
    pub default_branch: bool,
}

/// A pull request changed, told by its repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullRequest {
    /// On GitHub.
    GitHub {
        /// Owner of the repository.
        owner: String,
        /// The repository.
        repository: String,
        /// Host of the API.
        host: String,
    },
    /// On GitLab.
    GitLab {
        /// Number of the project.
        id: String,
        /// Path of the project, such as `group/project`.
        path: String,
        /// Host.
        host: String,
    },
    /// On Azure DevOps.
    AzureDevOps {
        /// The project.
        project: String,
        /// The repository.
        repository: String,
    },
    /// On Bitbucket Cloud.
    Bitbucket {
        /// The workspace.
        owner: String,
        /// The repository.
        repository: String,
    },
    /// On Bitbucket Server.
    BitbucketServer {
        /// Key of the project.
        project: String,
        /// The repository.
        repository: String,
    },
    /// On Gitea.
    Gitea {
        /// Owner of the repository.
        owner: String,
        /// The repository.
        repository: String,
    },
}

/// Who sends a webhook, told by its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// GitHub.
    GitHub,
    /// GitLab.
    GitLab,
    /// Azure DevOps.
    AzureDevOps,
    /// Bitbucket Cloud.
    Bitbucket,
    /// Bitbucket Server.
    BitbucketServer,
    /// Gitea, Forgejo or Gogs.
    Gitea,
}

/// Why a webhook is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// No header says who sends it.
    #[error("Unknown webhook event")]
    UnknownProvider,
    /// The sender tells of something nobody asked for.
    #[error("Webhook processing failed: event not defined to be parsed")]
    UnknownEvent,
    /// The sender does not prove that it knows the secret.
    #[error("Webhook processing failed: {0}")]
    Signature(&'static str),
    /// The body is not what the event has.
    #[error("Webhook processing failed: error parsing payload")]
    Payload,
}

/// Reads a webhook after checking that its sender knows the secret.
///
/// # Errors
/// An unknown sender or event, a missing or wrong signature, and a body that is not the event's.
pub fn parse(headers: &HeaderMap, body: &[u8], secrets: &WebhookSecrets) -> Result<Event, WebhookError> {
    let provider = Provider::of(headers).ok_or(WebhookError::UnknownProvider)?;
    provider.authenticate(headers, body, secrets)?;
    let event = provider.event_header().map_or("", |name| text(headers, name));
    match provider {
        Provider::GitHub => payload::github(event, body),
        Provider::GitLab => payload::gitlab(event, body),
        Provider::AzureDevOps => payload::azure(body),
        Provider::Bitbucket => payload::bitbucket(event, body),
        Provider::BitbucketServer => payload::bitbucket_server(event, body),
        Provider::Gitea => payload::gitea(event_of_gitea(headers, event), body),
    }
}

// === impl Provider ===

impl Provider {
    /// Who sends a request with these headers.
    ///
    /// Gitea and Gogs send GitHub's headers along with their own, so theirs count first.
    pub fn of(headers: &HeaderMap) -> Option<Provider> {
        let has = |name: &str| !text(headers, name).is_empty();
        Some(match () {
            () if has("x-vss-activityid") => Provider::AzureDevOps,
            () if has("x-gitea-event") || has("x-gogs-event") => Provider::Gitea,
            () if has("x-github-event") => Provider::GitHub,
            () if has("x-gitlab-event") => Provider::GitLab,
            () if has("x-hook-uuid") => Provider::Bitbucket,
            () if has("x-event-key") => Provider::BitbucketServer,
            () => return None,
        })
    }

    /// The header that names the event; Azure DevOps names it in the body.
    fn event_header(self) -> Option<&'static str> {
        match self {
            Provider::GitHub => Some("x-github-event"),
            Provider::GitLab => Some("x-gitlab-event"),
            Provider::Bitbucket | Provider::BitbucketServer => Some("x-event-key"),
            Provider::Gitea => Some("x-gitea-event"),
            Provider::AzureDevOps => None,
        }
    }

    fn authenticate(
        self,
        headers: &HeaderMap,
        body: &[u8],
        secrets: &WebhookSecrets,
    ) -> Result<(), WebhookError> {
        let require =
            |genuine: bool, complaint| if genuine { Ok(()) } else { Err(WebhookError::Signature(complaint)) };
        match self {
            Provider::GitHub => {
                match (text(headers, "x-hub-signature-256"), text(headers, "x-hub-signature")) {
                    _ if secrets.github.is_empty() => Ok(()),
                    ("", "") => require(false, "missing X-Hub-Signature-256 Header"),
                    ("", sha1) => signature::signed(Hash::Sha1, &secrets.github, body, sha1),
                    (sha256, _) => signature::signed(Hash::Sha256, &secrets.github, body, sha256),
                }
            }
            Provider::GitLab => {
                let token = headers.get("x-gitlab-token").map_or(&b""[..], |value| value.as_bytes());
                let genuine = secrets.gitlab.is_empty() || signature::same(&secrets.gitlab, token);
                require(genuine, "X-Gitlab-Token validation failed")
            }
            Provider::AzureDevOps => {
                let (username, password) = (&secrets.azure_username, &secrets.azure_password);
                let open = username.is_empty() && password.is_empty();
                require(
                    open || signature::basic(headers, username, password),
                    "basic auth verification failed",
                )
            }
            Provider::Bitbucket => {
                let uuid = text(headers, "x-hook-uuid").as_bytes();
                let known =
                    secrets.bitbucket_uuid.is_empty() || signature::same(&secrets.bitbucket_uuid, uuid);
                require(known, "UUID verification failed")?;
                self.check_hub_signature(headers, body, &secrets.bitbucket_secret)
            }
            Provider::BitbucketServer => self.check_hub_signature(headers, body, &secrets.bitbucket_server),
            Provider::Gitea => {
                let names = ["x-gitea-signature", "x-gogs-signature", "x-hub-signature-256"];
                match names.iter().map(|name| text(headers, name)).find(|signature| !signature.is_empty()) {
                    _ if secrets.gitea().is_empty() => Ok(()),
                    None => require(false, "missing X-Gitea-Signature Header"),
                    Some(signature) => signature::signed(Hash::Sha256, secrets.gitea(), body, signature),
                }
            }
        }
    }

    fn check_hub_signature(
        self,
        headers: &HeaderMap,
        body: &[u8],
        secret: &super::secrets::Secret,
    ) -> Result<(), WebhookError> {
        match text(headers, "x-hub-signature") {
            _ if secret.is_empty() => Ok(()),
            "" => Err(WebhookError::Signature("missing X-Hub-Signature Header")),
            signature => signature::signed(Hash::Sha256, secret, body, signature),
        }
    }
}

/// Gogs has a header of its own only; Gitea tells what changed about a pull request in another one.
fn event_of_gitea<'h>(headers: &'h HeaderMap, event: &'h str) -> &'h str {
    if event.is_empty() { text(headers, "x-gogs-event") } else { event }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
