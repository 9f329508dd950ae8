//! The Applications a set wants, rendered only as far as something changed.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use baton_api::ApplicationSet;
use baton_api::application::Destination;
use baton_generators::Group;
use baton_render::{Engine, RenderError, Renderer};
use serde_json::Value;

use super::ignore::IgnoreRules;
use crate::digest::{Digest, Hasher};
use crate::rollout::Template;

/// One wanted Application, without its content: that is rendered again when it is needed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Desired {
    pub(crate) name: Arc<str>,
    pub(crate) project: Arc<str>,
    pub(crate) destination: Arc<Destination>,
    /// Of the rendered Application and of the rules it is compared by; of its metadata only, where an order decides
    /// about the rest.
    pub(crate) digest: Digest,
    /// What an order needs of it, where there is one.
    pub(crate) template: Option<Arc<Template>>,
    /// Where it comes from.
    pub(crate) group: usize,
    pub(crate) params: usize,
}

impl Eq for Desired {}

/// What rendering has produced for a set: compiled templates, and a summary of each parameter set's Application.
#[derive(Default)]
pub(crate) struct Rendered {
    templates: BTreeMap<Digest, Compiled>,
    /// Digest of each group's template in the last pass.
    groups: Vec<Digest>,
    projects: Vec<Arc<str>>,
    /// How many Applications were rendered since the start.
    pub(crate) renders: u64,
}

struct Compiled {
    renderer: Arc<Renderer>,
    summaries: HashMap<Digest, Summary>,
}

#[derive(Clone)]
struct Summary {
    name: Arc<str>,
    project: Arc<str>,
    destination: Arc<Destination>,
    digest: Digest,
    template: Option<Arc<Template>>,
}

impl Rendered {
    /// The Applications of all groups in their order. Only parameter sets not seen in the last pass are rendered.
    /// Where an order decides, `ordered` are the fields it is to ignore.
    ///
    /// # Errors
    /// The first template or parameter set that cannot be rendered.
    pub(crate) fn update(
        &mut self,
        set: &ApplicationSet,
        groups: &[Group],
        ordered: Option<&IgnoreRules>,
    ) -> Result<Vec<Desired>, RenderError> {
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let engine = Engine::of(&set.spec)?;
        let rules = rules_digest(set, ordered.is_some());
        let mut templates: BTreeMap<Digest, Compiled> = BTreeMap::new();
        let mut keys = Vec::with_capacity(groups.len());
        let mut desired = Vec::with_capacity(groups.iter().map(|group| group.params.len()).sum());
        for (index, group) in groups.iter().enumerate() {
            let key = template_digest(set, group, rules);
            let previous = self.templates.get(&key);
            let compiled = match templates.entry(key) {
                Entry::Occupied(compiled) => compiled.into_mut(),
                Entry::Vacant(place) => {
                    let renderer = match previous {
                        Some(previous) => previous.renderer.clone(),
                        None => Arc::new(compile(set, &engine, group)?),
                    };
                    place.insert(Compiled { renderer, summaries: HashMap::new() })
                }
            };
            for (place, params) in group.params.iter().enumerate() {
                let params_digest = Digest::of_params(params);
                let before = || previous.and_then(|previous| previous.summaries.get(&params_digest));
                let summary = match compiled.summaries.get(&params_digest).or_else(before) {
                    Some(summary) => summary.clone(),
                    None => {
                        self.renders += 1;
                        let rendered = compiled.renderer.render(params, namespace)?;
                        summary(&rendered, rules, ordered, &mut self.projects)
                    }
                };
                desired.push(Desired {
                    name: summary.name.clone(),
                    project: summary.project.clone(),
                    destination: summary.destination.clone(),
                    digest: summary.digest,
                    template: summary.template.clone(),
                    group: index,
                    params: place,
                });
                compiled.summaries.insert(params_digest, summary);
            }
            keys.push(key);
        }
        (self.templates, self.groups) = (templates, keys);
        Ok(desired)
    }

    /// The whole Application that a summary of the last [`Rendered::update`] stands for.
    ///
    /// # Errors
    /// When it cannot be rendered, which it could before.
    pub(crate) fn render(
        &self,
        set: &ApplicationSet,
        groups: &[Group],
        desired: &Desired,
    ) -> Result<Value, RenderError> {
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let group = &groups[desired.group];
        let compiled = &self.templates[&self.groups[desired.group]];
        compiled.renderer.render(&group.params[desired.params], namespace)
    }
}

fn compile(set: &ApplicationSet, engine: &Engine, group: &Group) -> Result<Renderer, RenderError> {
    let preserve = set.spec.sync_policy.as_ref().is_some_and(|policy| policy.preserve_resources_on_deletion);
    Renderer::new(engine, &group.template, set.spec.template_patch.as_deref(), preserve)
}

/// Of everything but the parameters that a rendered Application depends on.
fn template_digest(set: &ApplicationSet, group: &Group, rules: Digest) -> Digest {
    let mut hasher = Hasher::new();
    hasher.json(&serde_json::to_value(&group.template).unwrap_or_default());
    hasher.str(set.spec.template_patch.as_deref().unwrap_or_default());
    hasher.str(if set.spec.template_patch.is_some() { "patch" } else { "" });
    hasher.str(if set.spec.go_template { "go" } else { "" });
    set.spec.go_template_options.iter().for_each(|option| hasher.str(option));
    let preserve = set.spec.sync_policy.as_ref().is_some_and(|policy| policy.preserve_resources_on_deletion);
    hasher.str(if preserve { "preserve" } else { "" });
    hasher.digest(rules);
    hasher.finish()
}

/// Of the rules by which Applications of the set are compared.
fn rules_digest(set: &ApplicationSet, ordered: bool) -> Digest {
    let mut hasher = Hasher::new();
    hasher.number(u64::from(ordered));
    hasher.json(&serde_json::to_value(&set.spec.preserved_fields).unwrap_or_default());
    hasher.json(&serde_json::to_value(&set.spec.ignore_application_differences).unwrap_or_default());
    hasher.finish()
}

fn summary(
    application: &Value,
    rules: Digest,
    ordered: Option<&IgnoreRules>,
    projects: &mut Vec<Arc<str>>,
) -> Summary {
    let text = |pointer: &str| application.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let destination = Destination {
        server: text("/spec/destination/server").to_owned(),
        name: text("/spec/destination/name").to_owned(),
        namespace: String::new(),
    };
    let mut hasher = Hasher::new();
    hasher.json(if ordered.is_some() { &application["metadata"] } else { application });
    hasher.digest(rules);
    Summary {
        template: ordered.and_then(|ignored| Template::read(application, ignored)).map(Arc::new),
        name: text("/metadata/name").into(),
        project: shared(projects, text("/spec/project")),
        destination: Arc::new(destination),
        digest: hasher.finish(),
    }
}

/// Equal project names are held once.
fn shared(projects: &mut Vec<Arc<str>>, name: &str) -> Arc<str> {
    const HELD: usize = 64;
    if let Some(known) = projects.iter().find(|known| ***known == *name) {
        return known.clone();
    }
    let new: Arc<str> = name.into();
    if projects.len() < HELD {
        projects.push(new.clone());
    }
    new
}
