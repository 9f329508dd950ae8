//! What is asked and what is answered.

use std::sync::Arc;

use baton_api::application_status::SourceType;
use baton_api::source::Source;
use baton_source::{RepositorySecret, Trust};
use serde_json::Value;

/// The sources of one Application, and what their rendering depends on.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The Application's name; the name of a Helm release where none is stated.
    pub name: &'a str,
    /// The name it is tracked by, which tells apart Applications of the same name in different namespaces.
    pub instance: &'a str,
    /// The destination's namespace.
    pub namespace: &'a str,
    /// The project's name.
    pub project: &'a str,
    /// The sources, in order.
    pub sources: &'a [Source],
    /// The exact revision of each source; empty or missing where the source's own target revision counts.
    pub revisions: &'a [String],
    /// Whether branches and tags are asked for again although they are still remembered.
    pub fresh: bool,
    /// Whether objects are rendered anew although they are still remembered.
    pub ignore_cache: bool,
    /// The annotation `argocd.argoproj.io/manifest-generate-paths`.
    pub generate_paths: Option<&'a str>,
    /// What was rendered before, and at which revisions: given back again when nothing between these and the present
    /// revisions touches `generate_paths`. The caller states it only where nothing else in the request has changed.
    pub previous: Option<(&'a [String], &'a Arc<Rendered>)>,
    /// Secrets about repositories.
    pub secrets: &'a [RepositorySecret],
    /// Whom to trust.
    pub trust: &'a Trust,
    /// Version of the destination's Kubernetes.
    pub kube_version: &'a str,
    /// What the destination serves, as `[group/]version` and `[group/]version/kind`.
    pub api_versions: &'a [String],
}

/// The objects of an Application's sources.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// The objects in the order of their sources and, within one, of its files. Repetitions are not taken out.
    pub objects: Vec<Arc<Value>>,
    /// What each source was rendered at: a commit, or the version of a chart.
    pub revisions: Vec<String>,
    /// The tool of each source.
    pub source_types: Vec<SourceType>,
    /// SHA-256 over the objects: equal where they are.
    pub digest: [u8; 32],
}
