//! The kinds of generators, and how nested ones are read.

use baton_api::application_set::ApplicationTemplate;
use baton_api::generators::{
    ClusterDecisionGenerator, ClusterGenerator, Generator, GitGenerator, ListGenerator, MatrixGenerator,
    MergeGenerator, NestedGenerator, NestedMatrixGenerator, NestedMergeGenerator, PluginGenerator,
    TerminalGenerator,
};
use baton_api::pull_request::PullRequestGenerator;
use baton_api::scm::ScmProviderGenerator;

/// One generator of an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind<'a> {
    List(&'a ListGenerator),
    Clusters(&'a ClusterGenerator),
    Git(&'a GitGenerator),
    ScmProvider(&'a ScmProviderGenerator),
    ClusterDecisionResource(&'a ClusterDecisionGenerator),
    PullRequest(&'a PullRequestGenerator),
    Matrix(&'a MatrixGenerator),
    Merge(&'a MergeGenerator),
    Plugin(&'a PluginGenerator),
}

/// Field names of the generators an entry holds, in the order they run. None is a mistake that yields nothing; more
/// than one is allowed at the top only.
pub fn kinds(generator: &Generator) -> Vec<&'static str> {
    Kind::all(generator).iter().map(Kind::name).collect()
}

impl<'a> Kind<'a> {
    /// What an entry holds, in the order it runs (Go's order of the fields).
    pub(crate) fn all(generator: &'a Generator) -> Vec<Kind<'a>> {
        [
            generator.list.as_ref().map(Kind::List),
            generator.clusters.as_ref().map(Kind::Clusters),
            generator.git.as_ref().map(Kind::Git),
            generator.scm_provider.as_ref().map(Kind::ScmProvider),
            generator.cluster_decision_resource.as_ref().map(Kind::ClusterDecisionResource),
            generator.pull_request.as_ref().map(Kind::PullRequest),
            generator.matrix.as_ref().map(Kind::Matrix),
            generator.merge.as_ref().map(Kind::Merge),
            generator.plugin.as_ref().map(Kind::Plugin),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// The field it stands in.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Kind::List(_) => "list",
            Kind::Clusters(_) => "clusters",
            Kind::Git(_) => "git",
            Kind::ScmProvider(_) => "scmProvider",
            Kind::ClusterDecisionResource(_) => "clusterDecisionResource",
            Kind::PullRequest(_) => "pullRequest",
            Kind::Matrix(_) => "matrix",
            Kind::Merge(_) => "merge",
            Kind::Plugin(_) => "plugin",
        }
    }

    /// Its own template.
    pub(crate) fn template(&self) -> &'a ApplicationTemplate {
        match self {
            Kind::List(list) => &list.template,
            Kind::Clusters(clusters) => &clusters.template,
            Kind::Git(git) => &git.template,
            Kind::ScmProvider(scm) => &scm.template,
            Kind::ClusterDecisionResource(decision) => &decision.template,
            Kind::PullRequest(pull_request) => &pull_request.template,
            Kind::Matrix(matrix) => &matrix.template,
            Kind::Merge(merge) => &merge.template,
            Kind::Plugin(plugin) => &plugin.template,
        }
    }
}

/// A child of matrix or merge as an entry of its own. Boxed: generators are tens of kilobytes large, and futures hold
/// several.
///
/// # Errors
/// A nested matrix or merge that is not of its type.
pub(crate) fn entry(nested: &NestedGenerator) -> Result<Box<Generator>, String> {
    let matrix = nested.matrix.as_ref().map(|json| {
        serde_json::from_value::<NestedMatrixGenerator>(json.clone())
            .map(|matrix| MatrixGenerator {
                generators: matrix.generators.iter().map(child).collect(),
                template: ApplicationTemplate::default(),
            })
            .map_err(|error| {
                format!("error converting to nested matrix generator: cannot unmarshal: {error}")
            })
    });
    let merge = nested.merge.as_ref().map(|json| {
        serde_json::from_value::<NestedMergeGenerator>(json.clone())
            .map(|merge| MergeGenerator {
                generators: merge.generators.iter().map(child).collect(),
                merge_keys: merge.merge_keys,
                template: ApplicationTemplate::default(),
            })
            .map_err(|error| format!("error converting to nested merge generator: cannot unmarshal: {error}"))
    });
    Ok(Box::new(Generator {
        list: nested.list.clone(),
        clusters: nested.clusters.clone(),
        git: nested.git.clone(),
        scm_provider: nested.scm_provider.clone(),
        cluster_decision_resource: nested.cluster_decision_resource.clone(),
        pull_request: nested.pull_request.clone(),
        matrix: matrix.transpose()?,
        merge: merge.transpose()?,
        plugin: nested.plugin.clone(),
        selector: nested.selector.clone(),
        deployment_strategy: None,
    }))
}

/// A child of a nested matrix or merge, which holds neither.
fn child(terminal: &TerminalGenerator) -> NestedGenerator {
    NestedGenerator {
        list: terminal.list.clone(),
        clusters: terminal.clusters.clone(),
        git: terminal.git.clone(),
        scm_provider: terminal.scm_provider.clone(),
        cluster_decision_resource: terminal.cluster_decision_resource.clone(),
        pull_request: terminal.pull_request.clone(),
        plugin: terminal.plugin.clone(),
        selector: terminal.selector.clone(),
        ..NestedGenerator::default()
    }
}
