//! Which Applications belong to which phase.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::phase_status::{PhaseApplication, PhaseApplicationState, PhaseStatus};
use baton_api::phases::{PhaseTarget, TargetExpression, TargetOperator};
use baton_hooks::Finding;
use baton_rollout::steps::clipped;

use crate::compile::Report;
use crate::config::{PhasePlan, Plan};

/// Most parameters that are told of where one is missing.
const MOST_SHOWN: usize = 12;

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

/// How far those who are shared out have come already.
pub struct Standing<'a> {
    /// The phase in which a target has begun, or has been left by a phase that failed. It stays there.
    pub home: &'a dyn Fn(&str) -> Option<usize>,
    /// Whether a target has begun, in whichever phase.
    pub begun: &'a dyn Fn(&str) -> bool,
    /// Whether a phase takes nobody any more.
    pub shut: &'a dyn Fn(usize) -> bool,
}

/// Shares targets out among phases as if nobody had begun.
///
/// # Errors
/// As for [`assign_beside`].
pub fn assign(plan: &Plan, targets: &[Target]) -> Result<Roster, Vec<Finding>> {
    assign_beside(plan, targets, &Standing::default())
}

/// Shares targets out among phases.
///
/// The order is that of names, bytewise. A target belongs to the first phase that selects it; in others it only counts
/// towards their share. Who has begun stays where it has, whoever joins, leaves or begins: it neither takes the place
/// of another nor loses its own.
///
/// # Errors
/// A phase that selects more Applications than one may have, one that names clusters where targets have no name of a
/// cluster, and a text of a hook or check that names a parameter which no target has.
pub fn assign_beside(
    plan: &Plan,
    targets: &[Target],
    standing: &Standing<'_>,
) -> Result<Roster, Vec<Finding>> {
    let mut report = Report::default();
    unmet(plan, targets, &mut report);
    let mut ordered: Vec<&Target> = targets.iter().collect();
    ordered.sort_by(|a, b| a.name.cmp(&b.name));
    let matches = |index: usize, target: &Target| {
        plan.phases.get(index).is_some_and(|phase| phase.targets.iter().any(|entry| holds(entry, target)))
    };
    // Who has begun is at home there whatever it is labelled since: there is something to prove, and to put back. Who was
    // only left behind goes where it is matched.
    let home = |target: &&Target| {
        let stays = |index: &usize| matches(*index, target) || (standing.begun)(&target.name);
        (standing.home)(&target.name).filter(stays)
    };
    let homes: Vec<Option<usize>> = ordered.iter().map(home).collect();
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
        let (all, strangers): (Vec<_>, Vec<_>) =
            ordered.iter().zip(&homes).partition(|(target, _)| matches(index, target));
        let (mut matched, mut used) = (0, 0);
        let (mut own, mut free): (Vec<&Target>, Vec<&Target>) = (Vec::new(), Vec::new());
        for (target, home) in all {
            matched += 1;
            let is_taken = taken.contains(&*target.name);
            match home {
                Some(home) if *home == index && !is_taken => own.push(target),
                // Who has begun elsewhere is updated, and counts.
                Some(home) if *home > index => used += 1,
                _ if is_taken => used += 1,
                _ => free.push(target),
            }
        }
        free.sort_by_cached_key(|target| !(standing.begun)(&target.name));
        let left = phase.selects(matched).saturating_sub(used + own.len());
        free.truncate(if (standing.shut)(index) { 0 } else { left });
        own.append(&mut free);
        // Who has begun here and is not matched any more takes the place of nobody who is.
        own.extend(strangers.iter().filter(|(_, home)| **home == Some(index)).map(|(target, _)| **target));
        taken.extend(own.iter().map(|target| &*target.name));
        let mut own: Vec<Arc<str>> = own.iter().map(|target| target.name.clone()).collect();
        own.sort();
        let most = plan.caps.applications;
        if own.len() > most {
            let message = format!(
                "{} Applications are more than the {most} that one phase may have: split it, or use percentage or \
                 maxUpdate",
                own.len()
            );
            report.error(path, message);
        }
        roster.phases.push(Group { matched, own });
    }
    let unassigned = ordered.iter().filter(|target| !taken.contains(&*target.name));
    roster.unassigned = unassigned.map(|target| target.name.clone()).collect();
    let findings = report.into_vec();
    if findings.is_empty() { Ok(roster) } else { Err(findings) }
}

/// Shares targets out in a rollout that has come so far. Who was in a phase that has failed stays in it, also who had not
/// begun, and nobody else comes to it. `touched` tells who has begun, whatever the phases say.
pub(crate) fn assign_on(
    plan: &Plan,
    targets: &[Target],
    phases: &[PhaseStatus],
    touched: &dyn Fn(&str) -> bool,
) -> Result<Roster, Vec<Finding>> {
    let home = |name: &str| {
        phases.iter().position(|phase| {
            let begun =
                |entry: &PhaseApplication| entry.state != PhaseApplicationState::Held || touched(name);
            entry(phase, name).is_some_and(|entry| begun(entry) || phase.failure.is_some())
        })
    };
    let shut = |index: usize| phases.get(index).is_some_and(|phase| phase.failure.is_some());
    assign_beside(plan, targets, &Standing { home: &home, begun: touched, shut: &shut })
}

/// What a phase has noted of an Application.
pub(crate) fn entry<'p>(phase: &'p PhaseStatus, name: &str) -> Option<&'p PhaseApplication> {
    let place = phase.applications.binary_search_by(|entry| entry.name.as_str().cmp(name)).ok()?;
    phase.applications.get(place)
}

/// Names in texts of hooks and checks that no target gives: found when everything was deployed, they would only fail
/// the phase.
fn unmet(plan: &Plan, targets: &[Target], report: &mut Report) {
    let Some(first) = targets.first() else { return };
    for need in plan.phases.iter().flat_map(|phase| &phase.needs) {
        if targets.iter().any(|target| need.need.is_met(&target.params)) {
            continue;
        }
        let mut known: Vec<&str> = first.params.keys().map(String::as_str).take(MOST_SHOWN + 1).collect();
        if known.len() > MOST_SHOWN {
            known[MOST_SHOWN] = "…";
        }
        let message = format!(
            "no Application of this generator has a parameter for {}; {} has {}",
            clipped(&need.need.shown()),
            first.name,
            known.join(", ")
        );
        report.error(&*need.path, message);
    }
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

// === impl Standing ===

impl Default for Standing<'_> {
    /// Nobody has begun.
    fn default() -> Self {
        Standing { home: &|_| None, begun: &|_| false, shut: &|_| false }
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

// === impl Group ===

impl Group {
    /// What people should know of a phase that changes nobody though it does not ask for that, in words.
    pub fn doubt(&self, phase: &PhasePlan) -> Option<String> {
        let name = &phase.name;
        if self.matched == 0 {
            return Some(format!("phase {name:?} matches no Application and is passed over"));
        }
        let adds_nobody = self.own.is_empty() && phase.selects(self.matched) > 0;
        adds_nobody.then(|| {
            format!(
                "phase {name:?} changes nobody: percentage and maxUpdate count those of earlier phases, which update \
                 as many of the {} it matches already",
                self.matched
            )
        })
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
