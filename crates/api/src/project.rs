//! The AppProject: what its Applications may use, and who may touch them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{NamespaceResourceScope, Resource};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::application::Destination;
use crate::names::{API_VERSION, GROUP, VERSION};
use crate::wire::{is_zero, null_as_zero, wire};

/// An AppProject object. It has no status subresource.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub struct AppProject {
    /// Name, labels, annotations and the like.
    #[serde(deserialize_with = "null_as_zero")]
    pub metadata: ObjectMeta,
    /// What is allowed.
    #[serde(deserialize_with = "null_as_zero")]
    pub spec: AppProjectSpec,
    /// Issued tokens.
    #[serde(deserialize_with = "null_as_zero")]
    pub status: AppProjectStatus,
}

// === impl AppProject ===

impl Serialize for AppProject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("AppProject", 5)?;
        object.serialize_field("apiVersion", API_VERSION)?;
        object.serialize_field("kind", "AppProject")?;
        object.serialize_field("metadata", &self.metadata)?;
        object.serialize_field("spec", &self.spec)?;
        if !is_zero(&self.status) {
            object.serialize_field("status", &self.status)?;
        }
        object.end()
    }
}

impl Resource for AppProject {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "AppProject".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "appprojects".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

wire! {
    /// What the Applications of a project may use.
    pub struct AppProjectSpec {
        optional {
            /// Repositories, as globs; `!` denies.
            source_repos: Vec<String>,
            /// Clusters and namespaces, as globs; `!` denies.
            destinations: Vec<Destination>,
            /// What the project is for.
            #[schemars(length(max = 255))]
            description: String,
            /// Roles and their permissions.
            roles: Vec<ProjectRole>,
            /// Cluster-scoped kinds that are allowed; none when empty.
            cluster_resource_whitelist: Vec<ClusterResourceItem>,
            /// Cluster-scoped kinds that are refused.
            cluster_resource_blacklist: Vec<ClusterResourceItem>,
            /// Namespaced kinds that are allowed; all when absent, none when empty.
            namespace_resource_whitelist: Option<Vec<GroupKind>>,
            /// Namespaced kinds that are refused.
            namespace_resource_blacklist: Vec<GroupKind>,
            /// Looks for resources that belong to no Application.
            orphaned_resources: Option<OrphanedResources>,
            /// When syncs may run.
            sync_windows: Vec<SyncWindow>,
            /// Keys that commits must be signed with. Deprecated.
            signature_keys: Vec<SignatureKey>,
            /// Namespaces, other than the controller's, that Applications may live in.
            source_namespaces: Vec<String>,
            /// Allow only clusters registered for this project.
            permit_only_project_scoped_clusters: bool,
            /// Accounts to act as, by destination.
            destination_service_accounts: Vec<DestinationServiceAccount>,
            /// Proof that a source must carry.
            source_integrity: Option<SourceIntegrity>,
        }
    }

    /// A role and its permissions.
    pub struct ProjectRole {
        required {
            /// Name of the role.
            name: String,
        }
        optional {
            /// What it is for.
            description: String,
            /// Policies, in Casbin's words.
            policies: Vec<String>,
            /// Tokens issued for it.
            jwt_tokens: Vec<JwtToken>,
            /// Groups that hold it.
            groups: Vec<String>,
        }
    }

    /// An issued token.
    pub struct JwtToken {
        required {
            /// When it was issued, in seconds since 1970.
            iat: i64,
        }
        optional {
            /// When it ends, in seconds since 1970; 0 is never.
            exp: i64,
            /// Its name.
            id: String,
        }
    }

    /// A kind, by globs.
    pub struct GroupKind {
        required {
            /// API group.
            group: String,
            /// Kind.
            kind: String,
        }
    }

    /// A cluster-scoped kind, by globs.
    pub struct ClusterResourceItem {
        required {
            /// API group.
            group: String,
            /// Kind.
            kind: String,
        }
        optional {
            /// Name; empty is any.
            name: String,
        }
    }

    /// Looks for resources that belong to no Application.
    pub struct OrphanedResources {
        optional {
            /// Whether to set a warning condition.
            warn: Option<bool>,
            /// Resources that do not count.
            ignore: Vec<OrphanedResourceKey>,
        }
    }

    /// A resource that belongs to no Application, by globs.
    pub struct OrphanedResourceKey {
        optional {
            /// API group.
            group: String,
            /// Kind.
            kind: String,
            /// Name.
            name: String,
        }
    }

    /// When syncs may run.
    pub struct SyncWindow {
        optional {
            /// `allow` or `deny`.
            kind: String,
            /// When it opens, in cron's words.
            schedule: String,
            /// How long it stays open.
            duration: String,
            /// Applications it holds for, as globs.
            applications: Vec<String>,
            /// Namespaces it holds for, as globs.
            namespaces: Vec<String>,
            /// Clusters it holds for, as globs.
            clusters: Vec<String>,
            /// Let people sync nevertheless.
            manual_sync: bool,
            /// Time zone of the schedule; UTC when empty.
            time_zone: String,
            /// Applications, namespaces and clusters must all match instead of any.
            #[serde(rename = "andOperator")]
            use_and_operator: bool,
            /// What it is for.
            description: String,
            /// Let a running sync go on after the window closes.
            sync_overrun: bool,
        }
    }

    /// A key that commits must be signed with.
    pub struct SignatureKey {
        required {
            /// Its id.
            #[serde(rename = "keyID")]
            key_id: String,
        }
    }

    /// An account to act as at a destination.
    pub struct DestinationServiceAccount {
        required {
            /// URL of the cluster, a glob.
            server: String,
            /// The account, as `[namespace:]name`.
            default_service_account: String,
        }
        optional {
            /// Namespace, a glob.
            namespace: String,
        }
    }

    /// Proof that a source must carry.
    pub struct SourceIntegrity {
        required {
            /// For git repositories.
            git: Option<SourceIntegrityGit>,
        }
    }

    /// Proof that git repositories must carry.
    pub struct SourceIntegrityGit {
        required {
            /// Policies; a repository must meet those that name it.
            policies: Vec<SourceIntegrityGitPolicy>,
        }
    }

    /// One policy.
    pub struct SourceIntegrityGitPolicy {
        required {
            /// Repositories it holds for.
            repos: Vec<SourceIntegrityGitRepo>,
            /// Signatures asked for.
            gpg: Option<SourceIntegrityGpg>,
        }
    }

    /// A repository a policy holds for.
    pub struct SourceIntegrityGitRepo {
        required {
            /// Its URL, a glob; `!` denies.
            url: String,
        }
    }

    /// Signatures asked for.
    pub struct SourceIntegrityGpg {
        required {
            /// `none`, `head` or `strict`.
            mode: String,
            /// Ids of keys that count.
            keys: Vec<String>,
        }
    }

    /// Issued tokens.
    pub struct AppProjectStatus {
        optional {
            /// By role.
            jwt_tokens_by_role: BTreeMap<String, JwtTokens>,
        }
    }

    /// Issued tokens of one role.
    pub struct JwtTokens {
        optional {
            /// The tokens.
            items: Vec<JwtToken>,
        }
    }
}
