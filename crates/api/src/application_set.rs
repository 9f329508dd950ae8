//! The ApplicationSet: generators, a template, and the order in which its Applications change.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::core::{NamespaceResourceScope, Resource};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::application::ApplicationSpec;
use crate::application_status::{HealthStatus, ResourceStatus};
use crate::generators::Generator;
use crate::names::{API_VERSION, GROUP, VERSION};
use crate::phase_status::GeneratorPhases;
use crate::rollout_status::RolloutStatus;
use crate::strategy::Strategy;
use crate::wire::{is_zero, null_as_zero, wire, words};

/// An ApplicationSet object. It has a status subresource.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub struct ApplicationSet {
    /// Name, labels, annotations and the like.
    #[serde(deserialize_with = "null_as_zero")]
    pub metadata: ObjectMeta,
    /// What is wanted.
    #[serde(deserialize_with = "null_as_zero")]
    pub spec: ApplicationSetSpec,
    /// What was seen.
    #[serde(deserialize_with = "null_as_zero")]
    pub status: ApplicationSetStatus,
}

// === impl ApplicationSet ===

impl Serialize for ApplicationSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("ApplicationSet", 5)?;
        object.serialize_field("apiVersion", API_VERSION)?;
        object.serialize_field("kind", "ApplicationSet")?;
        object.serialize_field("metadata", &self.metadata)?;
        object.serialize_field("spec", &self.spec)?;
        if !is_zero(&self.status) {
            object.serialize_field("status", &self.status)?;
        }
        object.end()
    }
}

impl Resource for ApplicationSet {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "ApplicationSet".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "applicationsets".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

wire! {
    /// What an application set is to be.
    pub struct ApplicationSetSpec {
        required {
            /// What produces parameters.
            generators: Vec<Generator>,
            /// What an Application looks like for one set of parameters.
            template: ApplicationTemplate,
        }
        optional {
            /// Read templates as Go templates instead of `{{name}}` substitution.
            go_template: bool,
            /// Options of Go templates, such as `missingkey=error`.
            go_template_options: Vec<String>,
            /// A patch rendered and merged into each Application.
            template_patch: Option<String>,
            /// What may be done to Applications.
            sync_policy: Option<ApplicationSetSyncPolicy>,
            /// The order in which Applications change and go.
            strategy: Option<Strategy>,
            /// Metadata of Applications that is left alone.
            preserved_fields: Option<PreservedFields>,
            /// Differences in Applications that are left alone.
            ignore_application_differences: Vec<IgnoreApplicationDifferences>,
            /// Deprecated and without effect.
            apply_nested_selectors: bool,
        }
    }

    /// What an Application looks like.
    pub struct ApplicationTemplate {
        required {
            /// Its metadata.
            metadata: TemplateMetadata,
            /// Its spec.
            spec: ApplicationSpec,
        }
    }

    /// Metadata of an Application.
    pub struct TemplateMetadata {
        optional {
            /// Name.
            name: String,
            /// Namespace.
            namespace: String,
            /// Labels.
            labels: BTreeMap<String, String>,
            /// Annotations.
            annotations: BTreeMap<String, String>,
            /// Finalizers.
            finalizers: Vec<String>,
        }
    }

    /// What may be done to Applications.
    pub struct ApplicationSetSyncPolicy {
        optional {
            /// Whether Applications may be updated and deleted.
            applications_sync: ApplicationsSync,
            /// Keep what an Application deployed when the Application is deleted.
            preserve_resources_on_deletion: bool,
        }
    }

    /// Metadata of Applications that is left alone.
    pub struct PreservedFields {
        optional {
            /// Annotation keys.
            annotations: Vec<String>,
            /// Label keys.
            labels: Vec<String>,
        }
    }

    /// Differences in Applications that are left alone.
    pub struct IgnoreApplicationDifferences {
        optional {
            /// Name of the Application; empty is all.
            name: String,
            /// Fields, as JSON pointers.
            json_pointers: Vec<String>,
            /// Fields, as jq paths.
            jq_path_expressions: Vec<String>,
        }
    }

    /// What was seen of an application set.
    pub struct ApplicationSetStatus {
        optional {
            /// Errors and progress.
            conditions: Vec<ApplicationSetCondition>,
            /// Where each Application stands in the rollout.
            application_status: Vec<ApplicationSetApplicationStatus>,
            /// The Applications.
            resources: Vec<ResourceStatus>,
            /// How many Applications there are, also those not listed.
            resources_count: i64,
            /// Health of the whole.
            health: HealthStatus,
            /// The current or last run through the steps.
            rollout: Option<RolloutStatus>,
            /// Phased deployments, one entry per generator that has one.
            phases: Vec<GeneratorPhases>,
        }
    }

    /// A condition of an application set.
    pub struct ApplicationSetCondition {
        required {
            /// What it is about.
            #[serde(rename = "type")]
            kind: String,
            /// In words.
            message: String,
            /// Whether it holds.
            status: ConditionStatus,
            /// In one word.
            reason: String,
        }
        optional {
            /// When it changed last.
            last_transition_time: Option<Time>,
        }
    }

    /// Where one Application stands in the rollout.
    pub struct ApplicationSetApplicationStatus {
        required {
            /// Name of the Application.
            application: String,
            /// In words.
            message: String,
            /// How far it is.
            status: ProgressiveSyncCode,
            /// Number of its step, counted from 1; `-1` if no step matches.
            step: String,
            /// Revisions it is to reach.
            target_revisions: Vec<String>,
        }
        optional {
            /// When it changed last.
            last_transition_time: Option<Time>,
            /// Version of the Application object that the last change was decided on.
            resource_version: String,
        }
    }
}

words! {
    /// Whether Applications may be updated and deleted.
    closed enum ApplicationsSync {
        /// Neither.
        CreateOnly = "create-only",
        /// Updated only.
        CreateUpdate = "create-update",
        /// Deleted only.
        CreateDelete = "create-delete",
        /// Both.
        Sync = "sync",
    }

    /// Whether a condition holds.
    open enum ConditionStatus {
        /// It does.
        True = "True",
        /// It does not.
        False = "False",
        /// It could not be told.
        Unknown = "Unknown",
    }

    /// How far an Application is in a rollout.
    open enum ProgressiveSyncCode {
        /// Its step is not open.
        Waiting = "Waiting",
        /// It may start.
        Pending = "Pending",
        /// It syncs, or is not healthy yet.
        Progressing = "Progressing",
        /// It is done.
        Healthy = "Healthy",
    }
}
