//! What every host can be asked.

use std::future::Future;

use crate::error::ScmError;

/// A branch of a repository.
#[derive(Debug, Clone, PartialEq)]
pub struct Repository {
    /// Organisation, group, project or workspace.
    pub organization: String,
    /// Name of the repository.
    pub repository: String,
    /// The host's own identity of it: a number or a text.
    pub repository_id: serde_json::Value,
    /// Where to clone from.
    pub url: String,
    /// The branch.
    pub branch: String,
    /// Its newest commit.
    pub sha: String,
    /// Labels or topics of the repository.
    pub labels: Vec<String>,
}

/// A pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number in the repository.
    pub number: i64,
    /// Its title.
    pub title: String,
    /// The branch it comes from.
    pub branch: String,
    /// The branch it is to be merged into.
    pub target_branch: String,
    /// Newest commit of the branch it comes from.
    pub head_sha: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// Who opened it.
    pub author: String,
}

impl Repository {
    /// The same repository at a branch.
    pub(crate) fn at(&self, branch: impl Into<String>, sha: impl Into<String>) -> Repository {
        Repository { branch: branch.into(), sha: sha.into(), ..self.clone() }
    }
}

/// A host with repositories.
pub(crate) trait RepositoryHost: Sync {
    /// All repositories; each with its default branch, which may be empty, and without a commit.
    fn repositories(&self) -> impl Future<Output = Result<Vec<Repository>, ScmError>> + Send;

    /// The branches asked for, each with its commit; none for an empty repository.
    fn branches(
        &self,
        repository: &Repository,
    ) -> impl Future<Output = Result<Vec<Repository>, ScmError>> + Send;

    /// Whether the branch has a file or directory at that path.
    fn has_path(
        &self,
        repository: &Repository,
        path: &str,
    ) -> impl Future<Output = Result<bool, ScmError>> + Send;
}

/// Which URL a repository is cloned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloneProtocol {
    Ssh,
    Https,
}

impl CloneProtocol {
    /// Reads `cloneProtocol`.
    pub(crate) fn read(text: &str, host: &str) -> Result<CloneProtocol, ScmError> {
        match text {
            "" | "ssh" => Ok(CloneProtocol::Ssh),
            "https" => Ok(CloneProtocol::Https),
            _ => Err(ScmError::invalid(format!("unknown clone protocol for {host} {text}"))),
        }
    }

    pub(crate) fn choose(self, ssh: String, https: String) -> String {
        match self {
            CloneProtocol::Ssh => ssh,
            CloneProtocol::Https => https,
        }
    }
}

impl PullRequest {
    /// Whether it has all of these labels.
    pub(crate) fn has_labels(&self, wanted: &[String]) -> bool {
        wanted.iter().all(|label| self.labels.contains(label))
    }
}
