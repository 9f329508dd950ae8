//! Generators: what produces the parameters of a template.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use crate::application_set::ApplicationTemplate;
use crate::phases::DeploymentStrategy;
use crate::pull_request::PullRequestGenerator;
use crate::scm::ScmProviderGenerator;
use crate::wire::wire;

wire! {
    /// One generator; exactly one of its kinds should be set.
    pub struct Generator {
        optional {
            /// A fixed list.
            list: Option<ListGenerator>,
            /// Registered clusters.
            clusters: Option<ClusterGenerator>,
            /// Directories or files of a git repository.
            git: Option<GitGenerator>,
            /// Repositories of a source code host.
            scm_provider: Option<ScmProviderGenerator>,
            /// Clusters chosen by another resource.
            cluster_decision_resource: Option<ClusterDecisionGenerator>,
            /// Open pull requests.
            pull_request: Option<PullRequestGenerator>,
            /// Every combination of two generators.
            matrix: Option<MatrixGenerator>,
            /// One generator with values overridden by others.
            merge: Option<MergeGenerator>,
            /// An HTTP service.
            plugin: Option<PluginGenerator>,
            /// Keeps only parameters that match.
            #[schemars(schema_with = "crate::crd::label_selector")]
            selector: Option<LabelSelector>,
            /// Phases in which the Applications of this generator are deployed.
            deployment_strategy: Option<DeploymentStrategy>,
        }
    }

    /// A generator inside matrix or merge.
    pub struct NestedGenerator {
        optional {
            /// A fixed list.
            list: Option<ListGenerator>,
            /// Registered clusters.
            clusters: Option<ClusterGenerator>,
            /// Directories or files of a git repository.
            git: Option<GitGenerator>,
            /// Repositories of a source code host.
            scm_provider: Option<ScmProviderGenerator>,
            /// Clusters chosen by another resource.
            cluster_decision_resource: Option<ClusterDecisionGenerator>,
            /// Open pull requests.
            pull_request: Option<PullRequestGenerator>,
            /// A nested matrix, read as [`NestedMatrixGenerator`] when it is used.
            #[schemars(schema_with = "crate::crd::any_value")]
            matrix: Option<Value>,
            /// A nested merge, read as [`NestedMergeGenerator`] when it is used.
            #[schemars(schema_with = "crate::crd::any_value")]
            merge: Option<Value>,
            /// An HTTP service.
            plugin: Option<PluginGenerator>,
            /// Keeps only parameters that match.
            #[schemars(schema_with = "crate::crd::label_selector")]
            selector: Option<LabelSelector>,
            /// Not allowed here; kept so that the mistake is reported instead of pruned.
            #[schemars(schema_with = "crate::crd::any_value")]
            deployment_strategy: Option<Value>,
        }
    }

    /// A generator inside a nested matrix or merge.
    pub struct TerminalGenerator {
        optional {
            /// A fixed list.
            list: Option<ListGenerator>,
            /// Registered clusters.
            clusters: Option<ClusterGenerator>,
            /// Directories or files of a git repository.
            git: Option<GitGenerator>,
            /// Repositories of a source code host.
            scm_provider: Option<ScmProviderGenerator>,
            /// Clusters chosen by another resource.
            cluster_decision_resource: Option<ClusterDecisionGenerator>,
            /// Open pull requests.
            pull_request: Option<PullRequestGenerator>,
            /// An HTTP service.
            plugin: Option<PluginGenerator>,
            /// Keeps only parameters that match.
            #[schemars(schema_with = "crate::crd::label_selector")]
            selector: Option<LabelSelector>,
        }
    }

    /// A fixed list.
    pub struct ListGenerator {
        optional {
            /// Parameters, one object per Application.
            #[schemars(schema_with = "crate::crd::list_of_any")]
            elements: Vec<Value>,
            /// More of them, as YAML text.
            elements_yaml: String,
            /// Overrides parts of the template.
            template: ApplicationTemplate,
        }
    }

    /// Registered clusters.
    pub struct ClusterGenerator {
        optional {
            /// Labels of the cluster Secret.
            #[schemars(schema_with = "crate::crd::label_selector")]
            selector: LabelSelector,
            /// Overrides parts of the template.
            template: ApplicationTemplate,
            /// More parameters, rendered.
            values: BTreeMap<String, String>,
            /// One set of parameters holding all clusters.
            flat_list: bool,
        }
    }

    /// Directories or files of a git repository.
    pub struct GitGenerator {
        required {
            /// URL of the repository.
            #[serde(rename = "repoURL")]
            repo_url: String,
            /// Branch, tag or commit.
            revision: String,
        }
        optional {
            /// Directories to take or leave out.
            directories: Vec<GitPath>,
            /// Files to take or leave out.
            files: Vec<GitPath>,
            /// Seconds between looks; 0 is never.
            requeue_after_seconds: Option<i64>,
            /// Overrides parts of the template.
            template: ApplicationTemplate,
            /// Put before the path parameters.
            path_param_prefix: String,
            /// More parameters, rendered.
            values: BTreeMap<String, String>,
        }
    }

    /// A pattern of paths.
    pub struct GitPath {
        required {
            /// The pattern.
            path: String,
        }
        optional {
            /// Leave matches out instead of taking them.
            exclude: bool,
        }
    }

    /// Clusters chosen by another resource.
    pub struct ClusterDecisionGenerator {
        required {
            /// ConfigMap that describes the resource.
            config_map_ref: String,
        }
        optional {
            /// Name of the resource.
            name: String,
            /// Labels of the resource.
            #[schemars(schema_with = "crate::crd::label_selector")]
            label_selector: LabelSelector,
            /// Seconds between looks; 0 is never.
            requeue_after_seconds: Option<i64>,
            /// Overrides parts of the template.
            template: ApplicationTemplate,
            /// More parameters, taken as they are.
            values: BTreeMap<String, String>,
        }
    }

    /// Every combination of two generators.
    pub struct MatrixGenerator {
        required {
            /// The two generators; the second may use parameters of the first.
            generators: Vec<NestedGenerator>,
        }
        optional {
            /// Overrides parts of the template.
            template: ApplicationTemplate,
        }
    }

    /// One generator with values overridden by others.
    pub struct MergeGenerator {
        required {
            /// The base and its overrides.
            generators: Vec<NestedGenerator>,
            /// Parameters by which sets are matched.
            merge_keys: Vec<String>,
        }
        optional {
            /// Overrides parts of the template.
            template: ApplicationTemplate,
        }
    }

    /// A matrix inside matrix or merge.
    pub struct NestedMatrixGenerator {
        required {
            /// The two generators.
            generators: Vec<TerminalGenerator>,
        }
    }

    /// A merge inside matrix or merge.
    pub struct NestedMergeGenerator {
        required {
            /// The base and its overrides.
            generators: Vec<TerminalGenerator>,
            /// Parameters by which sets are matched.
            merge_keys: Vec<String>,
        }
    }

    /// An HTTP service.
    pub struct PluginGenerator {
        required {
            /// ConfigMap that holds its address.
            config_map_ref: PluginConfigMapRef,
        }
        optional {
            /// What is sent to it.
            input: PluginInput,
            /// Seconds between calls; 0 is never.
            requeue_after_seconds: Option<i64>,
            /// Overrides parts of the template.
            template: ApplicationTemplate,
            /// More parameters, rendered.
            values: BTreeMap<String, String>,
        }
    }

    /// ConfigMap of a plugin.
    pub struct PluginConfigMapRef {
        required {
            /// Its name.
            name: String,
        }
    }

    /// What is sent to a plugin.
    pub struct PluginInput {
        optional {
            /// Any values.
            #[schemars(schema_with = "crate::crd::map_of_any")]
            parameters: BTreeMap<String, Value>,
        }
    }
}
