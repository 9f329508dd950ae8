//! Generating without a cluster: clusters and other objects from files, repositories from directories.

use std::collections::BTreeMap;
use std::path::PathBuf;

use baton_api::ApplicationSet;
use baton_generators::offline::Offline as Objects;
use baton_generators::{Generators, World, flatten};
use baton_phases::Target;
use baton_render::{Engine, Renderer};
use baton_scm::Hosts;
use baton_source::Repositories;
use clap::Args;
use serde_json::Value;

use super::manifests;
use crate::failure::Failure;
use crate::repositories::RepositoryArguments;

/// What stands for the clusters and repositories that generators read.
#[derive(Debug, Clone, Args)]
pub(crate) struct Offline {
    /// Files or directories with cluster Secrets, and with any other objects generators read (ConfigMaps, Secrets,
    /// AppProjects, placement decisions). May be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) clusters: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) repositories: RepositoryArguments,
    /// Match files of git generators with doublestar globs, as the controller's flag of this name does.
    #[arg(long)]
    pub(crate) enable_new_git_file_globbing: bool,
}

/// What a set gives.
#[derive(Debug, Default)]
pub(crate) struct Generated {
    /// The Applications, in the order of generators and parameters.
    pub(crate) applications: Vec<Value>,
    /// The same with their parameters, by the place of the generator that gives them.
    pub(crate) targets: BTreeMap<usize, Vec<Target>>,
}

impl Offline {
    /// Whether directories stand for repositories.
    pub(crate) fn maps_repositories(&self) -> bool {
        !self.repositories.mapped.is_empty()
    }

    /// Whether all that the set's generators read is at hand.
    pub(crate) fn suffices(&self, set: &ApplicationSet) -> bool {
        let generators = serde_json::to_value(&set.spec.generators).unwrap_or_default();
        kinds(&generators).into_iter().all(|kind| match kind {
            "list" => true,
            "clusters" => !self.clusters.is_empty(),
            "git" => !self.repositories.mapped.is_empty(),
            _ => false,
        })
    }

    /// What a set gives.
    pub(crate) async fn generated(
        &self,
        set: &ApplicationSet,
        namespace: &str,
    ) -> Result<Generated, Failure> {
        let cache = tempfile::tempdir()
            .map_err(|error| Failure::failed(format!("no temporary directory: {error}")))?;
        let generators = self.generators(cache.path().to_owned(), namespace)?;
        generated(set, &generators, &self.objects(namespace)?).await
    }

    /// The objects of the files.
    pub(crate) fn objects(&self, namespace: &str) -> Result<Objects, Failure> {
        let mut objects = Objects::new(namespace);
        for manifest in manifests::read(&self.clusters)? {
            objects
                .add_yaml(&manifest.text)
                .map_err(|error| Failure::usage(format!("{}: {error}", manifest.name)))?;
        }
        Ok(objects)
    }

    /// Generators over the repositories given, with copies of others under `cache`.
    pub(crate) fn generators(&self, cache: PathBuf, namespace: &str) -> Result<Generators, Failure> {
        crate::crypto::install();
        let settings = baton_generators::Settings {
            argocd_namespace: namespace.to_owned(),
            new_git_file_globbing: self.enable_new_git_file_globbing,
            ..baton_generators::Settings::default()
        };
        let hosts =
            Hosts::new(baton_scm::Settings::default()).map_err(|error| Failure::failed(error.to_string()))?;
        Ok(Generators::new(Repositories::new(self.repositories.settings(cache)), hosts, settings))
    }
}

/// Kinds of generators that read something, also those inside matrix and merge.
pub(crate) fn kinds(entries: &Value) -> Vec<&str> {
    let mut all = Vec::new();
    for (kind, body) in entries.as_array().into_iter().flatten().filter_map(Value::as_object).flatten() {
        match kind.as_str() {
            "matrix" | "merge" => all.extend(kinds(&body["generators"])),
            "selector" | "deploymentStrategy" => {}
            kind => all.push(kind),
        }
    }
    all
}

/// The Applications of a set, in the order of generators and parameters.
pub(crate) async fn applications(
    set: &ApplicationSet,
    generators: &Generators,
    world: &impl World,
) -> Result<Vec<Value>, Failure> {
    generated(set, generators, world).await.map(|generated| generated.applications)
}

/// Generates and renders.
pub(crate) async fn generated(
    set: &ApplicationSet,
    generators: &Generators,
    world: &impl World,
) -> Result<Generated, Failure> {
    let namespace =
        set.metadata.namespace.clone().unwrap_or_else(|| generators.settings().argocd_namespace.clone());
    let mut set = set.clone();
    set.metadata.namespace = Some(namespace.clone());
    let failed = |error: &dyn std::fmt::Display| {
        Failure::failed(format!("{}: {error}", set.metadata.name.as_deref().unwrap_or_default()))
    };
    let given = generators.generate(&set, world).await.map_err(|error| failed(&error))?;
    let engine = Engine::of(&set.spec).map_err(|error| failed(&error))?;
    let preserve = set.spec.sync_policy.as_ref().is_some_and(|policy| policy.preserve_resources_on_deletion);
    let mut all = Generated::default();
    for group in &given.groups {
        let renderer = Renderer::new(&engine, &group.template, set.spec.template_patch.as_deref(), preserve)
            .map_err(|error| failed(&error))?;
        for params in &group.params {
            let application = renderer.render(params, &namespace).map_err(|error| failed(&error))?;
            let name = application["metadata"]["name"].as_str().unwrap_or_default().into();
            let target = Target { name, params: flatten(params) };
            all.targets.entry(group.generator).or_default().push(target);
            all.applications.push(application);
        }
    }
    Ok(all)
}
