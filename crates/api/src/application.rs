//! The Application: one source, one destination, one sync policy.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{NamespaceResourceScope, Resource};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::application_status::ApplicationStatus;
use crate::names::{API_VERSION, GROUP, VERSION};
use crate::operation::Operation;
use crate::source::{Source, SourceHydrator};
use crate::wire::{is_zero, null_as_zero, wire};

/// An Application object.
///
/// # Caveats
/// There is no status subresource: status writes are patches of the whole object and move `metadata.generation`.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub struct Application {
    /// Name, labels, annotations and the like.
    #[serde(deserialize_with = "null_as_zero")]
    pub metadata: ObjectMeta,
    /// What is wanted.
    #[serde(deserialize_with = "null_as_zero")]
    pub spec: ApplicationSpec,
    /// What was seen.
    #[serde(deserialize_with = "null_as_zero")]
    pub status: ApplicationStatus,
    /// A requested or running operation; absent when none is.
    #[serde(deserialize_with = "null_as_zero")]
    pub operation: Option<Operation>,
}

// === impl Application ===

impl Serialize for Application {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Application", 6)?;
        object.serialize_field("apiVersion", API_VERSION)?;
        object.serialize_field("kind", "Application")?;
        object.serialize_field("metadata", &self.metadata)?;
        object.serialize_field("spec", &self.spec)?;
        if !is_zero(&self.status) {
            object.serialize_field("status", &self.status)?;
        }
        if let Some(operation) = &self.operation {
            object.serialize_field("operation", operation)?;
        }
        object.end()
    }
}

impl Resource for Application {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Application".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "applications".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl ApplicationSpec {
    /// The sources that count: the hydrator's sync source aside, `sources` wins over `source`.
    pub fn effective_sources(&self) -> &[Source] {
        if self.sources.is_empty() { self.source.as_slice() } else { &self.sources }
    }

    /// Whether new revisions and drift are synced without being asked for.
    pub fn auto_syncs(&self) -> bool {
        let automated = self.sync_policy.as_ref().and_then(|policy| policy.automated.as_ref());
        automated.is_some_and(|automated| automated.enabled != Some(false))
    }
}

wire! {
    /// What an application is to be.
    pub struct ApplicationSpec {
        required {
            /// The cluster and namespace to deploy to.
            destination: Destination,
            /// The project whose rules apply.
            project: String,
        }
        optional {
            /// Where manifests come from.
            source: Option<Source>,
            /// Where manifests come from, if there are several places; wins over `source`.
            sources: Vec<Source>,
            /// Renders manifests into a branch first; wins over `source` and `sources`.
            source_hydrator: Option<SourceHydrator>,
            /// When and how to sync.
            sync_policy: Option<SyncPolicy>,
            /// Differences that do not count.
            ignore_differences: Vec<ResourceIgnoreDifferences>,
            /// Notes shown to people.
            info: Vec<Info>,
            /// How many past syncs are kept; 10 when unset.
            revision_history_limit: Option<i64>,
        }
    }

    /// A cluster, by URL or by name, and a namespace.
    pub struct Destination {
        optional {
            /// URL of the cluster's API.
            server: String,
            /// Name of the cluster.
            name: String,
            /// Namespace for resources that state none.
            namespace: String,
        }
    }

    /// When and how to sync.
    pub struct SyncPolicy {
        optional {
            /// Sync without being asked; absent is off.
            automated: Option<AutomatedSync>,
            /// Options of every sync, such as `CreateNamespace=true`.
            sync_options: Vec<String>,
            /// Retries after a failed sync.
            retry: Option<RetryStrategy>,
            /// Labels and annotations of a namespace that a sync creates.
            managed_namespace_metadata: Option<ManagedNamespaceMetadata>,
        }
    }

    /// Automatic sync.
    pub struct AutomatedSync {
        optional {
            /// Delete what is no longer in the source.
            prune: Option<bool>,
            /// Undo changes made in the cluster.
            self_heal: Option<bool>,
            /// Let a sync delete everything.
            allow_empty: Option<bool>,
            /// Switches automatic sync off while keeping its settings.
            enabled: Option<bool>,
        }
    }

    /// Retries after a failed sync.
    pub struct RetryStrategy {
        optional {
            /// Greatest number of attempts; 0 is none, below 0 is without end.
            limit: i64,
            /// Pause between attempts.
            backoff: Option<Backoff>,
            /// Take the newest revision on a retry.
            refresh: bool,
        }
    }

    /// Pause between retries. A bare number counts seconds, otherwise it is a Go duration.
    pub struct Backoff {
        optional {
            /// First pause.
            duration: String,
            /// What each pause is multiplied by.
            factor: Option<i64>,
            /// Longest pause.
            max_duration: String,
        }
    }

    /// Metadata of a namespace that a sync creates.
    pub struct ManagedNamespaceMetadata {
        optional {
            /// Labels.
            labels: BTreeMap<String, String>,
            /// Annotations.
            annotations: BTreeMap<String, String>,
        }
    }

    /// Differences that do not count, for the resources it matches.
    pub struct ResourceIgnoreDifferences {
        required {
            /// Kind, a glob.
            kind: String,
        }
        optional {
            /// API group, a glob.
            group: String,
            /// Exact name; empty is any.
            name: String,
            /// Exact namespace; empty is any.
            namespace: String,
            /// Fields, as JSON pointers.
            json_pointers: Vec<String>,
            /// Fields, as jq paths.
            jq_path_expressions: Vec<String>,
            /// Fields owned by these field managers.
            managed_fields_managers: Vec<String>,
        }
    }

    /// A note shown to people.
    pub struct Info {
        required {
            /// What it is.
            name: String,
            /// The note.
            value: String,
        }
    }
}
