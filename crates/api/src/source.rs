//! Where manifests come from.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Map, Value};

use crate::wire::wire;

wire! {
    /// A repository, a place in it, and the tool that turns it into manifests.
    pub struct Source {
        required {
            /// URL of the git, Helm or OCI repository.
            #[serde(rename = "repoURL")]
            repo_url: String,
        }
        optional {
            /// Directory inside a git repository.
            path: String,
            /// Branch, tag, commit or version range; empty is the default branch.
            target_revision: String,
            /// Name of the chart in a Helm repository.
            chart: String,
            /// Name by which other sources refer to files of this one.
            #[serde(rename = "ref")]
            reference: String,
            /// Name of this source among several.
            name: String,
            /// Prefix that tags must carry before they are read as versions.
            tag_prefix: String,
            /// Options of Helm.
            helm: Option<HelmSource>,
            /// Options of Kustomize.
            kustomize: Option<KustomizeSource>,
            /// Options for plain manifests and Jsonnet.
            directory: Option<DirectorySource>,
            /// Options of a config management plugin.
            plugin: Option<PluginSource>,
        }
    }

    /// Options of Helm.
    pub struct HelmSource {
        optional {
            /// Value files, later ones win; may start with `$ref/`.
            value_files: Vec<String>,
            /// Single values, set after all files.
            parameters: Vec<HelmParameter>,
            /// Release name; the application's name when empty.
            release_name: String,
            /// Values as a block of YAML text.
            values: String,
            /// Values whose content is read from files.
            file_parameters: Vec<HelmFileParameter>,
            /// Helm version to template with.
            version: String,
            /// Send credentials to every domain a chart is fetched from.
            pass_credentials: bool,
            /// Skip value files that do not exist.
            ignore_missing_value_files: bool,
            /// Leave out the chart's CRDs.
            skip_crds: bool,
            /// Values as an object; wins over `values`.
            #[schemars(schema_with = "crate::crd::free_form_object")]
            values_object: Option<Map<String, Value>>,
            /// Namespace to template with.
            namespace: String,
            /// Kubernetes version to template with.
            kube_version: String,
            /// API versions to template with, as `[group/]version/kind`.
            api_versions: Vec<String>,
            /// Leave out the chart's tests.
            skip_tests: bool,
            /// Do not check values against the chart's schema.
            skip_schema_validation: bool,
        }
    }

    /// One Helm value.
    pub struct HelmParameter {
        optional {
            /// Dotted path of the value.
            name: String,
            /// The value.
            value: String,
            /// Keep the value a string even if it looks like a number or a boolean.
            force_string: bool,
        }
    }

    /// One Helm value read from a file.
    pub struct HelmFileParameter {
        optional {
            /// Dotted path of the value.
            name: String,
            /// File that holds it.
            path: String,
        }
    }

    /// Options of Kustomize.
    pub struct KustomizeSource {
        optional {
            /// Put before every resource name.
            name_prefix: String,
            /// Put after every resource name.
            name_suffix: String,
            /// Image overrides, as `[old=]new[:tag|@digest]`.
            images: Vec<String>,
            /// Labels set on every resource.
            common_labels: BTreeMap<String, String>,
            /// Kustomize version to build with.
            version: String,
            /// Annotations set on every resource.
            common_annotations: BTreeMap<String, String>,
            /// Overwrite labels that exist.
            force_common_labels: bool,
            /// Overwrite annotations that exist.
            force_common_annotations: bool,
            /// Namespace set on every resource.
            namespace: String,
            /// Substitute build variables in annotation values.
            common_annotations_envsubst: bool,
            /// Replica overrides.
            replicas: Vec<KustomizeReplica>,
            /// Patches applied after the build.
            patches: Vec<KustomizePatch>,
            /// Components added to the build.
            components: Vec<String>,
            /// Skip components that do not exist.
            ignore_missing_components: bool,
            /// Set common labels on metadata only, not on selectors.
            label_without_selector: bool,
            /// Kubernetes version for Helm charts inside the build.
            kube_version: String,
            /// API versions for Helm charts inside the build.
            api_versions: Vec<String>,
            /// Set common labels on pod templates as well.
            label_include_templates: bool,
        }
    }

    /// Replica count of one workload.
    pub struct KustomizeReplica {
        required {
            /// Name of the Deployment or StatefulSet.
            name: String,
            /// Number of replicas.
            count: IntOrString,
        }
    }

    /// One Kustomize patch.
    pub struct KustomizePatch {
        optional {
            /// File that holds the patch.
            path: String,
            /// The patch itself.
            patch: String,
            /// Which resources it changes.
            target: Option<KustomizeSelector>,
            /// Switches such as `allowNameChange`.
            options: BTreeMap<String, bool>,
        }
    }

    /// Which resources a Kustomize patch changes; empty fields match all.
    pub struct KustomizeSelector {
        optional {
            /// API group.
            group: String,
            /// API version.
            version: String,
            /// Kind.
            kind: String,
            /// Name, a regular expression.
            name: String,
            /// Namespace, a regular expression.
            namespace: String,
            /// Selector over annotations.
            annotation_selector: String,
            /// Selector over labels.
            label_selector: String,
        }
    }

    /// Options for a directory of plain manifests and Jsonnet.
    pub struct DirectorySource {
        optional {
            /// Descend into sub-directories.
            recurse: bool,
            /// Options of Jsonnet.
            jsonnet: JsonnetOptions,
            /// Glob of files to leave out.
            exclude: String,
            /// Glob of files to take.
            include: String,
            /// Read files whatever their extension.
            disable_extension_filter: bool,
        }
    }

    /// Options of Jsonnet.
    pub struct JsonnetOptions {
        optional {
            /// External variables.
            ext_vars: Vec<JsonnetVar>,
            /// Top-level arguments.
            tlas: Vec<JsonnetVar>,
            /// Library directories.
            libs: Vec<String>,
        }
    }

    /// A variable given to Jsonnet.
    pub struct JsonnetVar {
        required {
            /// Name of the variable.
            name: String,
            /// Its value.
            value: String,
        }
        optional {
            /// Evaluate the value as code.
            code: bool,
        }
    }

    /// Options of a config management plugin.
    pub struct PluginSource {
        optional {
            /// Name of the plugin; found by its rules when empty.
            name: String,
            /// Environment variables.
            env: Vec<EnvVar>,
            /// Parameters.
            parameters: Vec<PluginParameter>,
        }
    }

    /// An environment variable.
    pub struct EnvVar {
        required {
            /// Name of the variable.
            name: String,
            /// Its value.
            value: String,
        }
    }

    /// A plugin parameter. An empty map or list is a value and differs from an absent one.
    pub struct PluginParameter {
        optional {
            /// Name of the parameter.
            name: String,
            /// Its value, if it is a string.
            string: Option<String>,
            /// Its value, if it is a map.
            map: Option<BTreeMap<String, String>>,
            /// Its value, if it is a list.
            array: Option<Vec<String>>,
        }
    }

    /// Renders manifests into a branch before they are synced.
    pub struct SourceHydrator {
        required {
            /// Where the unrendered source is.
            dry_source: DrySource,
            /// Where rendered manifests are synced from.
            sync_source: SyncSource,
        }
        optional {
            /// A staging branch to render into instead of the sync branch.
            hydrate_to: Option<HydrateTo>,
        }
    }

    /// The unrendered source.
    pub struct DrySource {
        required {
            /// URL of the git repository.
            #[serde(rename = "repoURL")]
            repo_url: String,
            /// Branch, tag or commit.
            target_revision: String,
            /// Directory inside the repository.
            path: String,
        }
        optional {
            /// Options of Helm.
            helm: Option<HelmSource>,
            /// Options of Kustomize.
            kustomize: Option<KustomizeSource>,
            /// Options for plain manifests and Jsonnet.
            directory: Option<DirectorySource>,
            /// Options of a config management plugin.
            plugin: Option<PluginSource>,
        }
    }

    /// Where rendered manifests are synced from.
    pub struct SyncSource {
        required {
            /// Branch that holds rendered manifests.
            target_branch: String,
            /// Directory inside the branch; never the repository's root.
            #[schemars(length(min = 1), regex(pattern = r"^.{2,}|[^./]$"))]
            path: String,
        }
        optional {
            /// URL of the repository; that of the dry source when empty.
            #[serde(rename = "repoURL")]
            repo_url: String,
        }
    }

    /// A staging branch for rendered manifests.
    pub struct HydrateTo {
        required {
            /// The branch.
            target_branch: String,
        }
    }
}
