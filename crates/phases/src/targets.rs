//! Which Applications belong to which phase.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::phases::{PhaseTarget, TargetExpression, TargetOperator};
use baton_hooks::Finding;

use crate::compile::Report;
use crate::config::Plan;

/// Most Applications of one phase.
pub const MOST: usize = 1000;

/// One Application a generator gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Name of the rendered Application.
    pub name: Arc<str>,
    /// The generator's parameters, flat: every leaf under its dotted path.
    pub params: BTreeMap<String, String>,
}

/// Who goes when.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Roster {
    /// Per phase, in order.
    pub phases: Vec<Group>,
    /// Those in no phase, by name.
    pub unassigned: Vec<Arc<str>>,
}

/// The Applications of one phase.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Group {
    /// How many targets match, those of earlier phases included.
    pub matched: usize,
    /// Those that are updated in this phase, by name.
    pub own: Vec<Arc<str>>,
}

/// Shares targets out among phases.
///
/// The order is that of names, bytewise. A target belongs to the first phase that selects it; in later ones it only
/// counts towards their share. Those for which `begun` holds keep their place when others join: they are counted
/// before who has not begun.
///
/// # Errors
/// A phase that selects more than [`MOST`], and one that names clusters where targets have no name of a cluster.
pub fn assign(plan: &Plan, targets: &[Target], begun: impl Fn(&str) -> bool) -> Result<Roster, Vec<Finding>> {
    let mut report = Report::default();
    let mut ordered: Vec<&Target> = targets.iter().collect();
    ordered.sort_by(|a, b| a.name.cmp(&b.name));
    let mut taken: BTreeSet<&str> = BTreeSet::new();
    let mut roster = Roster::default();
    for (index, phase) in plan.phases.iter().enumerate() {
        let path = format!("{}.phases[{index}]", plan.path);
        let names_clusters = phase.targets.iter().any(|entry| !entry.clusters.is_empty());
        if let Some(nameless) =
            ordered.iter().find(|target| names_clusters && !target.params.contains_key("name"))
        {
            let message = format!(
                "clusters are found by the parameter name, which {:?} has not: use values or matchExpressions",
                nameless.name
            );
            report.error(format!("{path}.targets"), message);
        }
        let matches = |target: &&&Target| phase.targets.iter().any(|entry| holds(entry, target));
        let matched: Vec<&Target> = ordered.iter().filter(matches).copied().collect();
        let quota = phase.selects(matched.len());
        let before = matched.iter().filter(|target| taken.contains(&*target.name)).count();
        let mut free: Vec<&Target> =
            matched.iter().filter(|target| !taken.contains(&*target.name)).copied().collect();
        free.sort_by_key(|target| !begun(&target.name));
        free.truncate(quota.saturating_sub(before));
        let mut own: Vec<Arc<str>> = free.iter().map(|target| target.name.clone()).collect();
        own.sort();
        if own.len() > MOST {
            let message = format!(
                "{} Applications are more than the {MOST} that one phase may have: split it, or use percentage or \
                 maxUpdate",
                own.len()
            );
            report.error(path, message);
        }
        taken.extend(free.iter().map(|target| &*target.name));
        roster.phases.push(Group { matched: matched.len(), own });
    }
    let unassigned = ordered.iter().filter(|target| !taken.contains(&*target.name));
    roster.unassigned = unassigned.map(|target| target.name.clone()).collect();
    let findings = report.into_vec();
    if findings.is_empty() { Ok(roster) } else { Err(findings) }
}

/// Whether an entry matches: every field that it has.
pub fn holds(entry: &PhaseTarget, target: &Target) -> bool {
    in_clusters(&entry.clusters, target)
        && entry.values.iter().all(|(key, value)| target.value(key) == Some(value))
        && entry.match_expressions.iter().all(|expression| fits(expression, target))
}

/// Clusters go by their name. A server is no name, so it can stand there too.
fn in_clusters(clusters: &[String], target: &Target) -> bool {
    let named = |key: &str| target.params.get(key).is_some_and(|value| clusters.contains(value));
    clusters.is_empty() || named("name") || named("server")
}

fn fits(expression: &TargetExpression, target: &Target) -> bool {
    let value = target.parameter(&expression.key);
    let listed = value.is_some_and(|value| expression.values.contains(value));
    match expression.operator {
        TargetOperator::In => listed,
        // As in Kubernetes, what is not there is in no list.
        TargetOperator::NotIn => !listed,
        TargetOperator::Exists => value.is_some(),
        TargetOperator::DoesNotExist => value.is_none(),
        TargetOperator::Other(_) => false,
    }
}

// === impl Target ===

impl Target {
    /// What `matchExpressions` look at: the parameter, then the cluster's label, then the generator's value.
    fn parameter(&self, key: &str) -> Option<&String> {
        self.first([key, &format!("metadata.labels.{key}"), &format!("values.{key}")])
    }

    /// What `values` look at: the generator's value, then the parameter, then the cluster's label.
    fn value(&self, key: &str) -> Option<&String> {
        self.first([&format!("values.{key}"), key, &format!("metadata.labels.{key}")])
    }

    fn first(&self, keys: [&str; 3]) -> Option<&String> {
        keys.into_iter().find_map(|key| self.params.get(key))
    }
}

// === impl Roster ===

impl Roster {
    /// The phase of each Application that has one.
    pub fn places(&self) -> BTreeMap<Arc<str>, usize> {
        let each = self.phases.iter().enumerate();
        each.flat_map(|(index, group)| group.own.iter().map(move |name| (name.clone(), index))).collect()
    }

    /// Whether no phase matches anything.
    pub fn is_idle(&self) -> bool {
        self.phases.iter().all(|group| group.matched == 0)
    }
}
