//! How each generator of a set is to be deployed, read once for as long as it stays the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::ApplicationSet;
use baton_api::phases::DeploymentStrategy;
use baton_hooks::{Finding, Language, Namespace, Policy};
use baton_phases::{Plan, compile, misplaced};

use super::Phases;
use super::sides::MOST_BYTES;
use crate::cache::ObjectKey;

/// The strategies of a set as they were read, by generator.
#[derive(Default)]
pub(super) struct Plans {
    known: BTreeMap<usize, Known>,
}

struct Known {
    written: Arc<DeploymentStrategy>,
    go: bool,
    read: Read,
}

/// A strategy as it was read.
#[derive(Clone)]
pub(super) struct Read {
    /// As it is written.
    pub(super) written: Arc<DeploymentStrategy>,
    /// The same as JSON; none where that is too long to be kept.
    pub(super) text: Option<Arc<str>>,
    /// What is meant; none where it cannot be followed.
    pub(super) plan: Option<Arc<Plan>>,
    /// What is wrong or doubtful.
    pub(super) findings: Arc<[Finding]>,
}

impl Plans {
    /// Reads a strategy.
    pub(super) fn read(
        &mut self,
        generator: usize,
        strategy: &DeploymentStrategy,
        policy: &LanguagePolicy,
    ) -> Read {
        let go = policy.language == Language::Go;
        let known = self.known.get(&generator);
        if let Some(known) = known.filter(|known| known.go == go && *known.written == *strategy) {
            return known.read.clone();
        }
        let compiled = compile(strategy, &path(generator), &policy.policy);
        let written = Arc::new(strategy.clone());
        let text = serde_json::to_string(strategy).ok().filter(|text| text.len() <= MOST_BYTES);
        let read = Read {
            written: written.clone(),
            text: text.map(Arc::from),
            plan: compiled.shared(),
            findings: compiled.findings.into(),
        };
        self.known.insert(generator, Known { written, go, read: read.clone() });
        read
    }
}

/// What a set may do with hooks, and the language it is written in.
pub(super) struct LanguagePolicy {
    pub(super) policy: Arc<Policy>,
    pub(super) language: Language,
}

impl Phases {
    /// What a set may do with hooks.
    pub(super) fn policy(&self, key: &ObjectKey, set: &ApplicationSet) -> LanguagePolicy {
        let language = if set.spec.go_template { Language::Go } else { Language::Params };
        let namespace = match &*key.namespace {
            own if own == self.settings.namespace => Namespace::ControlPlane,
            other if self.namespaces.contains(other) => Namespace::Listed,
            _ => Namespace::Other,
        };
        let policy = Arc::new(Policy::new(&self.settings.hooks.calls, namespace, language));
        LanguagePolicy { policy, language }
    }
}

/// The places of the generators of a set that have phases, had them, or have them where they do not belong.
pub(crate) fn phased(set: &ApplicationSet) -> BTreeSet<usize> {
    let generators = set.spec.generators.iter().enumerate();
    let now = generators.filter(|(at, generator)| {
        generator.deployment_strategy.is_some() || !misplaced(generator, &generator_path(*at)).is_empty()
    });
    let before = set.status.phases.iter().filter_map(|phases| usize::try_from(phases.generator).ok());
    now.map(|(at, _)| at).chain(before).collect()
}

/// The path of a generator.
pub(super) fn generator_path(generator: usize) -> String {
    format!("spec.generators[{generator}]")
}

fn path(generator: usize) -> String {
    format!("{}.deploymentStrategy", generator_path(generator))
}
