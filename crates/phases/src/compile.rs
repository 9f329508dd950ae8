//! From what is written to what is meant, with everything that is wrong about it.
//!
//! The CRD's schema refuses most of this as well, but not where Argo CD's definitions are installed, nor in a file that
//! `baton appset lint` reads. What hooks and checks say of themselves is judged by `baton-hooks`.

mod phase;

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_api::generators::{Generator, NestedGenerator};
use baton_api::phases::{DeploymentStrategy, DeploymentStrategyType};
use baton_hooks::{Finding, Policy, Severity};
use baton_rollout::pin::Fingerprint;
use baton_rollout::steps::clipped;
use serde_json::Value;

use crate::config::{Action, Caps, Plan};

/// Most phases of one generator.
const MOST_PHASES: usize = 50;
/// Good states that are kept where nothing is said.
const HISTORY: i64 = 10;
/// Most good states that may be kept.
const MOST_HISTORY: i64 = 100;
/// The field in which a generator says how it is deployed.
const FIELD: &str = "deploymentStrategy";

/// What comes of a configuration.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// What is meant; none where an error was found.
    pub plan: Option<Plan>,
    /// Everything that is wrong or doubtful.
    pub findings: Vec<Finding>,
}

/// Findings on their way.
#[derive(Default)]
pub(crate) struct Report(Vec<Finding>);

/// Reads the phases of one generator. `path` is the path of its `deploymentStrategy`.
pub fn compile(strategy: &DeploymentStrategy, path: &str, policy: &Policy) -> Compiled {
    let mut report = Report::default();
    if let DeploymentStrategyType::Other(word) = &strategy.kind {
        report.error(
            format!("{path}.type"),
            format!("must be phaseDeployment, not {}", shown(word, "nothing")),
        );
    }
    let count = strategy.phases.len();
    if count == 0 {
        report.error(format!("{path}.phases"), "at least one phase is needed; or remove deploymentStrategy");
    } else if count > MOST_PHASES {
        let message = format!("{count} phases are more than the {MOST_PHASES} that are allowed; join some");
        report.error(format!("{path}.phases"), message);
    }
    let history = history(strategy, path, &mut report);
    let mut taken = BTreeSet::new();
    let mut phases = Vec::new();
    for (index, phase) in strategy.phases.iter().enumerate() {
        let path = format!("{path}.phases[{index}]");
        if !phase.name.is_empty() && !taken.insert(phase.name.as_str()) {
            let message = format!("{:?} is taken; names of phases must differ", clipped(&phase.name));
            report.error(format!("{path}.name"), message);
        }
        phases.push(phase::read(phase, &path, policy, &mut report));
    }
    if history == 0
        && let Some(index) = phases.iter().position(|phase| phase.on_failure == Action::Rollback)
    {
        let message = "rollback needs good states to go back to; let revisionHistoryLimit be at least 1";
        report.error(format!("{path}.phases[{index}].onFailure.action"), message);
    }
    shrinking(strategy, path, &mut report);
    report.0.extend(baton_hooks::validate(strategy, path, policy));
    let limits = policy.limits();
    let caps =
        Caps { hooks: limits.hooks, checks: limits.checks, applications: limits.applications_of_a_phase };
    // How many good states are kept changes nothing about how Applications get there.
    let followed = DeploymentStrategy { revision_history_limit: None, ..strategy.clone() };
    let hash = Fingerprint::of_json(&serde_json::to_value(followed).unwrap_or_default());
    let sound = !report.0.iter().any(Finding::is_error);
    let plan = sound.then(|| Plan { path: path.into(), phases, history, caps, hash });
    Compiled { plan, findings: report.0 }
}

/// Strategies where there must be none: on generators inside matrix and merge. `path` is the path of the generator.
pub fn misplaced(generator: &Generator, path: &str) -> Vec<Finding> {
    let mut report = Report::default();
    let matrix = generator.matrix.as_ref().map(|matrix| ("matrix", &matrix.generators));
    let merge = generator.merge.as_ref().map(|merge| ("merge", &merge.generators));
    for (kind, nested) in [matrix, merge].into_iter().flatten() {
        for (index, nested) in nested.iter().enumerate() {
            let path = format!("{path}.{kind}.generators[{index}]");
            if nested.deployment_strategy.is_some() {
                report.misplaced(&path);
            }
            deeper(nested, &path, &mut report);
        }
    }
    report.0
}

/// A matrix or merge inside another is kept as it was written.
fn deeper(nested: &NestedGenerator, path: &str, report: &mut Report) {
    for (kind, inner) in [("matrix", &nested.matrix), ("merge", &nested.merge)] {
        let generators = inner.as_ref().and_then(|inner| inner["generators"].as_array());
        for (index, generator) in generators.into_iter().flatten().enumerate() {
            if generator.get(FIELD).is_some_and(|value| *value != Value::Null) {
                report.misplaced(&format!("{path}.{kind}.generators[{index}]"));
            }
        }
    }
}

fn history(strategy: &DeploymentStrategy, path: &str, report: &mut Report) -> usize {
    let limit = strategy.revision_history_limit.unwrap_or(HISTORY);
    if !(0..=MOST_HISTORY).contains(&limit) {
        let message = format!("must be between 0 and {MOST_HISTORY}, not {limit}");
        report.error(format!("{path}.revisionHistoryLimit"), message);
    }
    usize::try_from(limit).unwrap_or(0)
}

/// Shares are of all that is matched: one that is no larger than an earlier one of the same targets adds nobody.
fn shrinking(strategy: &DeploymentStrategy, path: &str, report: &mut Report) {
    for (index, phase) in strategy.phases.iter().enumerate() {
        let Some(share) = phase.percentage.filter(|share| *share > 0) else { continue };
        let earlier = strategy.phases[..index].iter().find(|earlier| {
            earlier.targets == phase.targets && earlier.percentage.is_some_and(|before| before >= share)
        });
        if let Some(earlier) = earlier {
            let message = format!(
                "{share}% of the targets are updated by phase {:?} already: shares count from the beginning, so \
                 this phase adds nobody",
                clipped(&earlier.name)
            );
            report.warning(format!("{path}.phases[{index}].percentage"), message);
        }
    }
}

/// A word that a user wrote, or a word for none.
pub(crate) fn shown(word: &str, none: &str) -> String {
    if word.is_empty() { none.to_owned() } else { format!("{:?}", clipped(word)) }
}

// === impl Compiled ===

impl Compiled {
    /// What keeps it from being followed.
    pub fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.is_error())
    }

    /// The plan to share.
    pub fn shared(&self) -> Option<Arc<Plan>> {
        self.plan.clone().map(Arc::new)
    }
}

// === impl Report ===

impl Report {
    pub(crate) fn error(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.add(Severity::Error, path, message);
    }

    pub(crate) fn warning(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.add(Severity::Warning, path, message);
    }

    pub(crate) fn into_vec(self) -> Vec<Finding> {
        self.0
    }

    fn misplaced(&mut self, path: &str) {
        let message = "phases belong to a generator of the set itself; move them to the matrix or merge around this one";
        self.error(format!("{path}.{FIELD}"), message);
    }

    fn add(&mut self, severity: Severity, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(Finding { severity, path: path.into(), message: message.into() });
    }
}
