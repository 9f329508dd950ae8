//! The hosts, as generators see them.

use std::future::Future;
use std::sync::Arc;

use baton_api::pull_request::PullRequestGenerator;
use baton_api::scm::ScmProviderGenerator;
use tracing::warn;

use crate::doors::Doors;
use crate::error::{Kind, ScmError};
use crate::filters::{PullRequestFilters, RepositoryFilters};
use crate::github_app::Installations;
use crate::http::{Auth, Budget, Http};
use crate::lookup::Lookup;
use crate::metrics::GithubCalls;
use crate::provider::{CloneProtocol, PullRequest, Repository, RepositoryHost};
use crate::settings::Settings;
use crate::{azure, bitbucket_cloud, bitbucket_server, gitea, github, gitlab};

/// Source code hosts.
///
/// Clones share connections, kept answers, rate limits and tokens.
///
/// # Guarantees
/// A result is whole: whatever goes wrong on the way is an error. A host that has asked to be left alone is
/// not asked before the time it gave, neither by this call nor by the next.
#[derive(Clone)]
pub struct Hosts {
    shared: Arc<Shared>,
}

struct Shared {
    http: Http,
    installations: Installations,
}

impl Hosts {
    /// Hosts that are asked as the settings say.
    ///
    /// # Errors
    /// A proxy that is not a URL.
    pub fn new(settings: Settings) -> Result<Hosts, ScmError> {
        let shared = Shared { http: Http::new(settings)?, installations: Installations::default() };
        Ok(Hosts { shared: Arc::new(shared) })
    }

    /// The branches a scmProvider generator asks for, in the host's order.
    pub async fn repositories(
        &self,
        generator: &ScmProviderGenerator,
        lookup: &impl Lookup,
    ) -> Result<Vec<Repository>, ScmError> {
        self.check(generator.custom_api())?;
        self.in_time(self.listed_repositories(generator, lookup)).await
    }

    /// The pull requests a pullRequest generator asks for, in the host's order.
    pub async fn pull_requests(
        &self,
        generator: &PullRequestGenerator,
        lookup: &impl Lookup,
    ) -> Result<Vec<PullRequest>, ScmError> {
        self.check(generator.custom_api())?;
        let filters = PullRequestFilters::compile(&generator.filters)?;
        match self.in_time(self.listed_pull_requests(generator, lookup)).await {
            Ok(mut requests) => {
                requests.retain(|request| filters.take(request));
                Ok(requests)
            }
            Err(error) if error.kind() == Kind::NotFound && generator.continue_on_repo_not_found_error => {
                warn!(%error, "a repository that does not exist has no pull requests");
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    /// The calls to GitHub so far, if they are counted.
    pub fn github_calls(&self) -> Vec<GithubCalls> {
        self.shared.http.metrics.all()
    }

    /// Forgets the calls counted for an ApplicationSet that is gone.
    pub fn forget(&self, namespace: &str, name: &str) {
        self.shared.http.metrics.forget(namespace, name);
    }

    fn settings(&self) -> &Settings {
        &self.shared.http.settings
    }

    fn check(&self, api: &str) -> Result<(), ScmError> {
        let settings = self.settings();
        if !settings.enabled {
            return Err(ScmError::new(Kind::Disabled, "scm providers are disabled"));
        }
        let allowed = &settings.allowed_apis;
        if api.is_empty() || allowed.is_empty() || allowed.iter().any(|allowed| allowed == api) {
            return Ok(());
        }
        Err(ScmError::new(
            Kind::NotAllowed,
            format!(
                "scm provider not allowed: scm provider {api:?} not allowed, must use one of the following: {}",
                allowed.join(", ")
            ),
        ))
    }

    async fn in_time<T>(&self, call: impl Future<Output = Result<T, ScmError>>) -> Result<T, ScmError> {
        let deadline = self.settings().deadline;
        tokio::time::timeout(deadline, call).await.unwrap_or_else(|_| {
            Err(ScmError::new(Kind::Network, format!("the host needed more than {} s", deadline.as_secs())))
        })
    }

    /// Asks the first host that is set.
    async fn listed_repositories(
        &self,
        generator: &ScmProviderGenerator,
        lookup: &impl Lookup,
    ) -> Result<Vec<Repository>, ScmError> {
        let filters = RepositoryFilters::compile(&generator.filters)?;
        let protocol = generator.clone_protocol.as_str();
        let doors = Doors { http: &self.shared.http, installations: &self.shared.installations, lookup };
        if let Some(spec) = &generator.github {
            let protocol = CloneProtocol::read(protocol, "GitHub")?;
            let credentials = (spec.app_secret_name.as_str(), spec.token_ref.as_ref());
            let api = doors.github(&spec.api, credentials, &spec.organization).await?;
            return self.enumerate(&github::Organization { api, spec, protocol }, &filters).await;
        }
        if let Some(spec) = &generator.gitlab {
            let protocol = CloneProtocol::read(protocol, "Gitlab")?;
            let trust = (spec.insecure, spec.ca_ref.as_ref());
            let api = doors.gitlab(&spec.api, spec.token_ref.as_ref(), trust).await?;
            return self.enumerate(&gitlab::Group { api, spec, protocol }, &filters).await;
        }
        if let Some(spec) = &generator.gitea {
            let protocol = CloneProtocol::read(protocol, "Gitea")?;
            let api = doors.gitea(&spec.api, spec.token_ref.as_ref(), spec.insecure).await?;
            return self.enumerate(&gitea::Owner { api, spec, protocol }, &filters).await;
        }
        if let Some(spec) = &generator.bitbucket_server {
            let protocol = CloneProtocol::read(protocol, "Bitbucket Server")?;
            let credentials = (spec.bearer_token.as_ref(), spec.basic_auth.as_ref());
            let trust = (spec.insecure, spec.ca_ref.as_ref());
            let api = doors.bitbucket_server(&spec.api, credentials, trust).await?;
            let slugs = Default::default();
            return self.enumerate(&bitbucket_server::Project { api, spec, protocol, slugs }, &filters).await;
        }
        if let Some(spec) = &generator.azure_dev_ops {
            let token = doors.token(Some(&spec.access_token_ref), "Azure Devops access token").await?;
            let token = token.ok_or_else(|| ScmError::invalid("no access token provided"))?;
            let api = doors.azure(&spec.api, &spec.organization, Some(token))?;
            return self.enumerate(&azure::TeamProject { api, spec }, &filters).await;
        }
        if let Some(spec) = &generator.bitbucket {
            let what = "Bitbucket cloud appPassword";
            let password = doors.token(Some(&spec.app_password_ref), what).await?;
            let password = password.ok_or_else(|| ScmError::invalid(format!("{what} is empty")))?;
            let auth = Auth::basic(&spec.user, &password)?;
            let api = doors.bitbucket_cloud(&self.settings().bitbucket_api, auth)?;
            return self.enumerate(&bitbucket_cloud::Workspace { api, spec, protocol }, &filters).await;
        }
        if generator.aws_code_commit.is_some() {
            return Err(ScmError::new(Kind::Unsupported, "AWS CodeCommit is not supported"));
        }
        Err(ScmError::invalid("no SCM provider implementation configured"))
    }

    /// Asks the first host that is set.
    async fn listed_pull_requests(
        &self,
        generator: &PullRequestGenerator,
        lookup: &impl Lookup,
    ) -> Result<Vec<PullRequest>, ScmError> {
        let doors = Doors { http: &self.shared.http, installations: &self.shared.installations, lookup };
        if let Some(spec) = &generator.github {
            let credentials = (spec.app_secret_name.as_str(), spec.token_ref.as_ref());
            let api = doors.github(&spec.api, credentials, &spec.owner).await?;
            return github::pull_requests(&api, spec).await;
        }
        if let Some(spec) = &generator.gitlab {
            let trust = (spec.insecure, spec.ca_ref.as_ref());
            let api = doors.gitlab(&spec.api, spec.token_ref.as_ref(), trust).await?;
            return gitlab::pull_requests(&api, spec).await;
        }
        if let Some(spec) = &generator.gitea {
            let api = doors.gitea(&spec.api, spec.token_ref.as_ref(), spec.insecure).await?;
            return gitea::pull_requests(&api, spec).await;
        }
        if let Some(spec) = &generator.bitbucket_server {
            let credentials = (spec.bearer_token.as_ref(), spec.basic_auth.as_ref());
            let trust = (spec.insecure, spec.ca_ref.as_ref());
            let api = doors.bitbucket_server(&spec.api, credentials, trust).await?;
            return bitbucket_server::pull_requests(&api, spec).await;
        }
        if let Some(spec) = &generator.bitbucket {
            let auth = doors.either(spec.bearer_token.as_ref(), spec.basic_auth.as_ref()).await?;
            let api = doors.bitbucket_cloud(&spec.api, auth.unwrap_or_else(Auth::anonymous))?;
            return bitbucket_cloud::pull_requests(&api, spec).await;
        }
        if let Some(spec) = &generator.azuredevops {
            let token = doors.token(spec.token_ref.as_ref(), "Azure Devops access token").await?;
            let api = doors.azure(&spec.api, &spec.organization, token)?;
            return azure::pull_requests(&api, spec).await;
        }
        Err(ScmError::invalid("no Pull Request provider implementation configured"))
    }

    /// Repositories, their branches, and the filters between and after.
    async fn enumerate(
        &self,
        host: &impl RepositoryHost,
        filters: &RepositoryFilters,
    ) -> Result<Vec<Repository>, ScmError> {
        let mut budget = Budget::new(self.settings());
        let mut taken: Vec<Repository> = Vec::new();
        for repository in host.repositories().await? {
            if !filters.take_repository(&repository) {
                continue;
            }
            for branch in host.branches(&repository).await? {
                if filters.take_branch(host, &branch).await? {
                    budget.item()?;
                    taken.push(branch);
                }
            }
        }
        Ok(taken)
    }
}

/// A generator that may name the API it wants.
trait CustomApi {
    /// The API named; empty for the host's own.
    fn custom_api(&self) -> &str;
}

impl CustomApi for ScmProviderGenerator {
    fn custom_api(&self) -> &str {
        let github = self.github.as_ref().map(|spec| &spec.api);
        let gitlab = || self.gitlab.as_ref().map(|spec| &spec.api);
        let gitea = || self.gitea.as_ref().map(|spec| &spec.api);
        let bitbucket_server = || self.bitbucket_server.as_ref().map(|spec| &spec.api);
        let azure = || self.azure_dev_ops.as_ref().map(|spec| &spec.api);
        github
            .or_else(gitlab)
            .or_else(gitea)
            .or_else(bitbucket_server)
            .or_else(azure)
            .map_or("", String::as_str)
    }
}

impl CustomApi for PullRequestGenerator {
    fn custom_api(&self) -> &str {
        let github = self.github.as_ref().map(|spec| &spec.api);
        let gitlab = || self.gitlab.as_ref().map(|spec| &spec.api);
        let gitea = || self.gitea.as_ref().map(|spec| &spec.api);
        let bitbucket_server = || self.bitbucket_server.as_ref().map(|spec| &spec.api);
        let bitbucket = || self.bitbucket.as_ref().map(|spec| &spec.api);
        let azure = || self.azuredevops.as_ref().map(|spec| &spec.api);
        let first = github.or_else(gitlab).or_else(gitea).or_else(bitbucket_server).or_else(bitbucket);
        first.or_else(azure).map_or("", String::as_str)
    }
}
