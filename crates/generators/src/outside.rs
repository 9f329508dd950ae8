//! What generators reach beside the cluster: git repositories, source code hosts and plugins.

use std::future::Future;
use std::sync::Arc;

use baton_api::pull_request::PullRequestGenerator;
use baton_api::scm::ScmProviderGenerator;
use baton_scm::{Hosts, Lookup, PullRequest, Repository, ScmError};
use baton_source::{Access, Commit, Repositories, SourceError, Tree};
use bytes::Bytes;

use crate::plugin::{Caller, Request};

/// Every call that leaves the process, so that a test can make each of them fail.
pub(crate) trait Outside: Send + Sync {
    /// The commit a revision names.
    fn resolve(
        &self,
        url: &str,
        access: &Access,
        revision: &str,
        fresh: bool,
    ) -> impl Future<Output = Result<Commit, SourceError>> + Send;

    /// The tree of a commit.
    fn tree(
        &self,
        url: &str,
        access: &Access,
        commit: &Commit,
    ) -> impl Future<Output = Result<Arc<Tree>, SourceError>> + Send;

    /// Files of a commit.
    fn read(
        &self,
        url: &str,
        access: &Access,
        commit: &Commit,
        paths: &[String],
    ) -> impl Future<Output = Result<Vec<(String, Bytes)>, SourceError>> + Send;

    /// Repositories of a host.
    fn repositories(
        &self,
        generator: &ScmProviderGenerator,
        lookup: &impl Lookup,
    ) -> impl Future<Output = Result<Vec<Repository>, ScmError>> + Send;

    /// Pull requests of a repository.
    fn pull_requests(
        &self,
        generator: &PullRequestGenerator,
        lookup: &impl Lookup,
    ) -> impl Future<Output = Result<Vec<PullRequest>, ScmError>> + Send;

    /// The answer of a plugin.
    fn call_plugin(&self, request: Request<'_>) -> impl Future<Output = Result<Bytes, String>> + Send;
}

/// The real ones.
pub(crate) struct Live {
    pub(crate) repositories: Repositories,
    pub(crate) hosts: Hosts,
    pub(crate) plugins: Caller,
}

impl Outside for Live {
    async fn resolve(
        &self,
        url: &str,
        access: &Access,
        revision: &str,
        fresh: bool,
    ) -> Result<Commit, SourceError> {
        self.repositories.resolve(url, access, revision, fresh).await
    }

    async fn tree(&self, url: &str, access: &Access, commit: &Commit) -> Result<Arc<Tree>, SourceError> {
        self.repositories.tree(url, access, commit).await
    }

    async fn read(
        &self,
        url: &str,
        access: &Access,
        commit: &Commit,
        paths: &[String],
    ) -> Result<Vec<(String, Bytes)>, SourceError> {
        self.repositories.read(url, access, commit, paths).await
    }

    async fn repositories(
        &self,
        generator: &ScmProviderGenerator,
        lookup: &impl Lookup,
    ) -> Result<Vec<Repository>, ScmError> {
        self.hosts.repositories(generator, lookup).await
    }

    async fn pull_requests(
        &self,
        generator: &PullRequestGenerator,
        lookup: &impl Lookup,
    ) -> Result<Vec<PullRequest>, ScmError> {
        self.hosts.pull_requests(generator, lookup).await
    }

    async fn call_plugin(&self, request: Request<'_>) -> Result<Bytes, String> {
        self.plugins.call(request).await
    }
}
