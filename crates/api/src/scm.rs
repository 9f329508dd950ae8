//! The scmProvider generator: repositories of a source code host.

use std::collections::BTreeMap;

use crate::application_set::ApplicationTemplate;
use crate::wire::wire;

wire! {
    /// Repositories of a source code host; exactly one host should be set.
    pub struct ScmProviderGenerator {
        optional {
            /// GitHub.
            github: Option<ScmGithub>,
            /// GitLab.
            gitlab: Option<ScmGitlab>,
            /// Gitea.
            gitea: Option<ScmGitea>,
            /// Bitbucket Server.
            bitbucket_server: Option<ScmBitbucketServer>,
            /// Azure DevOps.
            azure_dev_ops: Option<ScmAzureDevOps>,
            /// Bitbucket Cloud.
            bitbucket: Option<ScmBitbucket>,
            /// AWS CodeCommit.
            aws_code_commit: Option<ScmAwsCodeCommit>,
            /// Which repositories and branches to take; any entry may match.
            filters: Vec<ScmFilter>,
            /// Protocol of the `url` parameter.
            clone_protocol: String,
            /// Seconds between looks; 0 is never.
            requeue_after_seconds: Option<i64>,
            /// Overrides parts of the template.
            template: ApplicationTemplate,
            /// More parameters, rendered.
            values: BTreeMap<String, String>,
        }
    }

    /// Repositories of a GitHub organisation.
    pub struct ScmGithub {
        required {
            /// The organisation.
            organization: String,
        }
        optional {
            /// URL of the API.
            api: String,
            /// Token to sign in with.
            token_ref: Option<SecretRef>,
            /// Secret of a GitHub App to sign in with.
            app_secret_name: String,
            /// Take every branch, not only the default one.
            all_branches: bool,
            /// Leave archived repositories out.
            exclude_archived_repos: bool,
        }
    }

    /// Repositories of a GitLab group.
    pub struct ScmGitlab {
        required {
            /// The group.
            group: String,
        }
        optional {
            /// Descend into subgroups.
            include_subgroups: bool,
            /// URL of the API.
            api: String,
            /// Token to sign in with.
            token_ref: Option<SecretRef>,
            /// Take every branch, not only the default one.
            all_branches: bool,
            /// Do not verify TLS.
            insecure: bool,
            /// Take projects shared with the group; on when unset.
            include_shared_projects: Option<bool>,
            /// Take only projects with this topic.
            topic: String,
            /// Certificate authority of the host.
            ca_ref: Option<ConfigMapKeyRef>,
            /// Take archived repositories.
            include_archived_repos: bool,
        }
    }

    /// Repositories of a Gitea owner.
    pub struct ScmGitea {
        required {
            /// The owner.
            owner: String,
            /// URL of the API.
            api: String,
        }
        optional {
            /// Token to sign in with.
            token_ref: Option<SecretRef>,
            /// Take every branch, not only the default one.
            all_branches: bool,
            /// Do not verify TLS.
            insecure: bool,
            /// Leave archived repositories out.
            exclude_archived_repos: bool,
        }
    }

    /// Repositories of a Bitbucket Server project.
    pub struct ScmBitbucketServer {
        required {
            /// The project.
            project: String,
            /// URL of the API.
            api: String,
        }
        optional {
            /// User and password to sign in with.
            basic_auth: Option<BasicAuth>,
            /// Token to sign in with.
            bearer_token: Option<BearerToken>,
            /// Take every branch, not only the default one.
            all_branches: bool,
            /// Do not verify TLS.
            insecure: bool,
            /// Certificate authority of the host.
            ca_ref: Option<ConfigMapKeyRef>,
        }
    }

    /// Repositories of an Azure DevOps project.
    pub struct ScmAzureDevOps {
        required {
            /// The organisation.
            organization: String,
            /// The team project.
            team_project: String,
            /// Token to sign in with.
            access_token_ref: SecretRef,
        }
        optional {
            /// URL of the API.
            api: String,
            /// Take every branch, not only the default one.
            all_branches: bool,
        }
    }

    /// Repositories of a Bitbucket Cloud workspace.
    pub struct ScmBitbucket {
        required {
            /// The workspace.
            owner: String,
            /// User to sign in as.
            user: String,
            /// App password to sign in with.
            app_password_ref: SecretRef,
        }
        optional {
            /// Take every branch, not only the default one.
            all_branches: bool,
        }
    }

    /// Repositories in AWS CodeCommit.
    pub struct ScmAwsCodeCommit {
        optional {
            /// Take only repositories with these tags.
            tag_filters: Vec<TagFilter>,
            /// Role to assume.
            role: String,
            /// Region.
            region: String,
            /// Take every branch, not only the default one.
            all_branches: bool,
        }
    }

    /// A tag of a repository.
    pub struct TagFilter {
        required {
            /// Its key.
            key: String,
        }
        optional {
            /// Its value; empty is any.
            value: String,
        }
    }

    /// Which repositories and branches to take; all fields must match.
    pub struct ScmFilter {
        optional {
            /// Regular expression for the repository's name.
            repository_match: Option<String>,
            /// Paths that must exist.
            paths_exist: Vec<String>,
            /// Paths that must not exist.
            paths_do_not_exist: Vec<String>,
            /// Regular expression for a label of the repository.
            label_match: Option<String>,
            /// Regular expression for the branch.
            branch_match: Option<String>,
        }
    }

    /// A key of a Secret beside the application set.
    pub struct SecretRef {
        required {
            /// Name of the Secret.
            secret_name: String,
            /// Key in it.
            key: String,
        }
    }

    /// A key of a ConfigMap beside the application set.
    pub struct ConfigMapKeyRef {
        required {
            /// Name of the ConfigMap.
            config_map_name: String,
            /// Key in it.
            key: String,
        }
    }

    /// User and password.
    pub struct BasicAuth {
        required {
            /// The user.
            username: String,
            /// The password.
            password_ref: SecretRef,
        }
    }

    /// A bearer token.
    pub struct BearerToken {
        required {
            /// The token.
            token_ref: SecretRef,
        }
    }
}
