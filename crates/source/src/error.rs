//! What can go wrong with a repository, told without its credentials.

use std::time::Duration;

/// Why a repository could not be read.
///
/// Every message names the repository, without user information, and what was asked of it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SourceError {
    /// The URL is not one that may be read.
    #[error("repository {url:?} is refused: {why}")]
    Url {
        /// The URL as given, user information left out.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The revision cannot be one.
    #[error("revision {revision:?} of repository {repository} is refused: {why}")]
    Revision {
        /// The repository.
        repository: String,
        /// The revision as given.
        revision: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The repository answers, but has no such revision.
    #[error("unable to resolve '{revision}' to a commit SHA in repository {repository}: {why}")]
    NotFound {
        /// The repository.
        repository: String,
        /// The revision as given.
        revision: String,
        /// What was looked for.
        why: String,
    },
    /// A Secret about repositories cannot be used.
    #[error("repository secret {secret:?}: {why}")]
    Secret {
        /// The Secret's name.
        secret: String,
        /// What is wrong with it; never a value of it.
        why: String,
    },
    /// The repository asks for credentials, or refuses those given.
    #[error("repository {repository} refuses access: {why}")]
    Unauthorized {
        /// The repository.
        repository: String,
        /// What git said.
        why: String,
    },
    /// The repository cannot be reached or broke off.
    #[error("repository {repository} cannot be read: {why}")]
    Network {
        /// The repository.
        repository: String,
        /// What git said.
        why: String,
    },
    /// The repository took too long.
    #[error("repository {repository} was given up after {after:?}: {why}")]
    Timeout {
        /// The repository.
        repository: String,
        /// How long it was waited for.
        after: Duration,
        /// Which limit was passed.
        why: &'static str,
    },
    /// The repository is larger than the settings allow.
    #[error("repository {repository} is over a limit: {why}")]
    Limit {
        /// The repository.
        repository: String,
        /// Which limit, and where.
        why: String,
    },
    /// A file of the repository cannot be read.
    #[error("file {path:?} of repository {repository} at {commit} cannot be read: {why}")]
    File {
        /// The repository.
        repository: String,
        /// The commit.
        commit: String,
        /// The path as asked for.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The tree of a commit holds what no tree may hold.
    #[error("the tree of repository {repository} at {commit} is refused: {why}")]
    Tree {
        /// The repository.
        repository: String,
        /// The commit.
        commit: String,
        /// What is wrong with it.
        why: String,
    },
    /// A pattern that files are looked for with cannot be used.
    #[error("pattern {pattern:?} is refused: {why}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
    /// This machine's part failed: no `git`, no disk, a broken cache.
    #[error("repository {repository} cannot be read here: {why}")]
    Local {
        /// The repository.
        repository: String,
        /// What failed.
        why: String,
    },
}

impl SourceError {
    /// Whether asking again later, with nothing changed here, may give another answer.
    pub fn is_transient(&self) -> bool {
        matches!(self, SourceError::Network { .. } | SourceError::Timeout { .. } | SourceError::Local { .. })
    }
}
