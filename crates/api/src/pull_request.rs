//! The pullRequest generator: open pull requests of a repository.

use std::collections::BTreeMap;

use crate::application_set::ApplicationTemplate;
use crate::scm::{BasicAuth, BearerToken, ConfigMapKeyRef, SecretRef};
use crate::wire::wire;

wire! {
    /// Open pull requests of a repository; exactly one host should be set.
    pub struct PullRequestGenerator {
        optional {
            /// GitHub.
            github: Option<PullRequestGithub>,
            /// GitLab.
            gitlab: Option<PullRequestGitlab>,
            /// Gitea.
            gitea: Option<PullRequestGitea>,
            /// Bitbucket Server.
            bitbucket_server: Option<PullRequestBitbucketServer>,
            /// Bitbucket Cloud.
            bitbucket: Option<PullRequestBitbucket>,
            /// Azure DevOps.
            azuredevops: Option<PullRequestAzureDevOps>,
            /// Which pull requests to take; any entry may match.
            filters: Vec<PullRequestFilter>,
            /// Seconds between looks; 0 is never.
            requeue_after_seconds: Option<i64>,
            /// Overrides parts of the template.
            template: ApplicationTemplate,
            /// More parameters, rendered.
            values: BTreeMap<String, String>,
            /// Treat a repository that is gone as one without pull requests.
            continue_on_repo_not_found_error: bool,
        }
    }

    /// Pull requests on GitHub.
    pub struct PullRequestGithub {
        required {
            /// Owner of the repository.
            owner: String,
            /// The repository.
            repo: String,
        }
        optional {
            /// URL of the API.
            api: String,
            /// Token to sign in with.
            token_ref: Option<SecretRef>,
            /// Secret of a GitHub App to sign in with.
            app_secret_name: String,
            /// Labels that must all be present.
            labels: Vec<String>,
        }
    }

    /// Merge requests on GitLab.
    pub struct PullRequestGitlab {
        required {
            /// The project.
            project: String,
        }
        optional {
            /// URL of the API.
            api: String,
            /// Token to sign in with.
            token_ref: Option<SecretRef>,
            /// Labels that must all be present.
            labels: Vec<String>,
            /// Take only merge requests in this state.
            pull_request_state: String,
            /// Do not verify TLS.
            insecure: bool,
            /// Certificate authority of the host.
            ca_ref: Option<ConfigMapKeyRef>,
        }
    }

    /// Pull requests on Gitea.
    pub struct PullRequestGitea {
        required {
            /// Owner of the repository.
            owner: String,
            /// The repository.
            repo: String,
            /// URL of the API.
            api: String,
        }
        optional {
            /// Token to sign in with.
            token_ref: Option<SecretRef>,
            /// Do not verify TLS.
            insecure: bool,
            /// Labels that must all be present.
            labels: Vec<String>,
        }
    }

    /// Pull requests on Bitbucket Server.
    pub struct PullRequestBitbucketServer {
        required {
            /// The project.
            project: String,
            /// The repository.
            repo: String,
            /// URL of the API.
            api: String,
        }
        optional {
            /// User and password to sign in with.
            basic_auth: Option<BasicAuth>,
            /// Token to sign in with.
            bearer_token: Option<BearerToken>,
            /// Do not verify TLS.
            insecure: bool,
            /// Certificate authority of the host.
            ca_ref: Option<ConfigMapKeyRef>,
        }
    }

    /// Pull requests on Bitbucket Cloud.
    pub struct PullRequestBitbucket {
        required {
            /// The workspace.
            owner: String,
            /// The repository.
            repo: String,
        }
        optional {
            /// URL of the API.
            api: String,
            /// User and password to sign in with.
            basic_auth: Option<BasicAuth>,
            /// Token to sign in with.
            bearer_token: Option<BearerToken>,
        }
    }

    /// Pull requests on Azure DevOps.
    pub struct PullRequestAzureDevOps {
        required {
            /// The organisation.
            organization: String,
            /// The project.
            project: String,
            /// The repository.
            repo: String,
        }
        optional {
            /// URL of the API.
            api: String,
            /// Token to sign in with.
            token_ref: Option<SecretRef>,
            /// Labels that must all be present.
            labels: Vec<String>,
        }
    }

    /// Which pull requests to take; all fields must match.
    pub struct PullRequestFilter {
        optional {
            /// Regular expression for the branch.
            branch_match: Option<String>,
            /// Regular expression for the branch it is to be merged into.
            target_branch_match: Option<String>,
            /// Regular expression for the title.
            title_match: Option<String>,
        }
    }
}
