//! Who goes when: what an edit of a set would do, told before anybody does it.
//!
//! A plan is made from what is wanted and what is there, without a controller. It shows the order that the rollout
//! keeps; how long each Application takes, and whether it succeeds, no plan knows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::strategy::{MatchOperator, RolloutStep, Strategy, StrategyType};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Serialize;

use crate::deletion::Order;
use crate::fuse::{self, Approval, Fuse, Verdict};
use crate::steps::{Issue, Steps};

/// What a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct Proposal<'a> {
    /// The order that is asked for.
    pub strategy: Option<&'a Strategy>,
    /// The Applications that are wanted.
    pub wanted: &'a [Candidate],
    /// The Applications that are there; none where nothing is known of them.
    pub present: Option<&'a [Present]>,
    /// Whether the set's policy lets Applications be deleted.
    pub may_delete: bool,
    /// When a deletion needs approval.
    pub fuse: Fuse,
    /// What was approved.
    pub approval: Option<Approval>,
}

/// An Application that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its name.
    pub name: String,
    /// Its labels, which choose its step.
    pub labels: BTreeMap<String, String>,
    /// What becomes of it.
    pub change: Change,
}

/// An Application that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Present {
    /// Its name.
    pub name: String,
    /// Its labels, which choose its step when it goes.
    pub labels: BTreeMap<String, String>,
    /// Its UID, which an approval of its deletion is bound to.
    pub uid: String,
    /// Whether it is being deleted.
    pub terminating: bool,
}

/// What becomes of an Application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Change {
    /// Nothing is known of what is there: it is shown where it goes if it changes.
    Assumed,
    /// It is created.
    New,
    /// Its specification changes.
    Spec {
        /// The fields, as dotted paths.
        fields: Vec<String>,
    },
    /// Another revision of its sources is to be synced.
    Revision {
        /// The revisions it has, one per source.
        from: Vec<String>,
        /// The revisions it is to have.
        to: Vec<String>,
    },
    /// Only its metadata changes, which is written at once and needs no sync.
    Metadata {
        /// The fields, as dotted paths.
        fields: Vec<String>,
    },
    /// It differs at the revision it has: that is healed where it is, if at all.
    Drift,
    /// It is as it should be.
    Unchanged,
}

/// Who goes when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// `AllAtOnce` or `RollingSync`.
    pub strategy: &'static str,
    /// The steps, in order; none where all go at once.
    pub steps: Vec<StepPlan>,
    /// The Applications: by step, batch and name, those in no step last.
    pub applications: Vec<ApplicationPlan>,
    /// What is deleted, and how.
    pub deletion: DeletionPlan,
    /// What is wrong with the steps, or surprising.
    pub issues: Vec<String>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepPlan {
    /// Its number, counted from 1.
    pub step: usize,
    /// Which labels it asks for.
    pub selects: String,
    /// What `maxUpdate` states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_update: Option<String>,
    /// How many may be under way at once; absent is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_once: Option<usize>,
    /// Whether people sync it by hand.
    pub held: bool,
    /// How long it must stay healthy before the next opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_duration: Option<String>,
    /// How long an Application may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress_deadline: Option<String>,
    /// How many failures do not stop it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<String>,
    /// How many Applications it holds.
    pub total: usize,
    /// How many of them change.
    pub changing: usize,
    /// In how many batches those go.
    pub batches: usize,
}

/// Where one Application goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationPlan {
    /// Its name.
    pub name: String,
    /// Its step, counted from 1; -1 where no step holds it, absent where all go at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<i64>,
    /// Its batch in this change, counted from 1; absent where it does not change, or people sync it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// Its batch in a change of every Application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_of_all: Option<usize>,
    /// Later steps that match too, and do not get it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_matches: Vec<usize>,
    /// What becomes of it.
    pub change: Change,
    /// When and why, in words.
    pub why: String,
}

/// What is deleted, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionPlan {
    /// `AllAtOnce`, `Reverse` or `Custom`, or the word that is none of them.
    pub order: String,
    /// Why nothing can be deleted, where the order cannot be followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// How many Applications no generator asks for any more.
    pub leaving: usize,
    /// Of how many that are there.
    pub total: usize,
    /// The same in percent, rounded up.
    pub percent: usize,
    /// Whether they stay, since the set's policy lets none be deleted.
    pub kept: bool,
    /// What the deletion fuse says, where Applications leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<FuseVerdict>,
    /// Why a person must approve first, where one must.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuse: Option<String>,
    /// Those of the leaving that are being deleted already.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub going: Vec<String>,
    /// The Applications that leave, in the order in which they go.
    pub stages: Vec<Stage>,
    /// The order in which all would go if the set itself were deleted.
    pub teardown: Vec<Stage>,
}

/// What the deletion fuse says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FuseVerdict {
    /// The share of the set that may go without approval, or `off`.
    pub share: String,
    /// `Free`: nobody has to be asked. `Holds`: a person must approve first. `Approved`: a person has.
    pub says: &'static str,
}

/// Applications that go before the next ones do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    /// The step they are in, counted from 1 as it is written; -1 where no step holds them, absent where there is no
    /// order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<i64>,
    /// How many go at once; absent is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_once: Option<usize>,
    /// Their names.
    pub applications: Vec<String>,
}

/// Makes a plan.
pub fn plan(proposal: &Proposal<'_>) -> Plan {
    let strategy = proposal.strategy;
    let rolling = rolling_steps(strategy);
    let (steps, found) = Steps::read(rolling.unwrap_or_default());
    let mut issues: Vec<String> = found.iter().map(Issue::to_string).collect();
    if rolling.is_some_and(<[_]>::is_empty) {
        issues
            .push("RollingSync has no steps: nothing is created, changed or deleted until it has".to_owned());
    }
    let mut wanted: Vec<&Candidate> = proposal.wanted.iter().collect();
    wanted.sort_by(|a, b| a.name.cmp(&b.name));
    let (steps, applications) = match rolling {
        Some(written) => in_steps(&steps, written, &wanted, &mut issues),
        None => (Vec::new(), wanted.iter().map(|candidate| at_once(candidate)).collect()),
    };
    Plan {
        strategy: if rolling.is_some() { "RollingSync" } else { "AllAtOnce" },
        steps,
        applications,
        deletion: deletions(proposal, &wanted),
        issues,
    }
}

/// The steps as they are written, where the set goes by steps.
pub fn rolling_steps(strategy: Option<&Strategy>) -> Option<&[RolloutStep]> {
    let strategy = strategy.filter(|strategy| strategy.kind == StrategyType::RollingSync)?;
    strategy.rolling_sync.as_ref().map(|rolling| &rolling.steps[..])
}

fn at_once(candidate: &Candidate) -> ApplicationPlan {
    ApplicationPlan {
        name: candidate.name.clone(),
        step: None,
        batch: candidate.change.syncs().then_some(1),
        batch_of_all: Some(1),
        also_matches: Vec::new(),
        change: candidate.change.clone(),
        why: candidate.change.to_string(),
    }
}

fn in_steps(
    steps: &Steps,
    written: &[RolloutStep],
    wanted: &[&Candidate],
    issues: &mut Vec<String>,
) -> (Vec<StepPlan>, Vec<ApplicationPlan>) {
    let mut members: Vec<Vec<(&Candidate, Vec<usize>)>> = vec![Vec::new(); steps.len()];
    let mut unmatched = Vec::new();
    for candidate in wanted {
        let mut places = steps.places(&candidate.labels);
        match places.is_empty() {
            true => unmatched.push(*candidate),
            false => {
                let first = places.remove(0);
                members[first].push((candidate, places));
            }
        }
    }
    let mut plans = Vec::with_capacity(steps.len());
    let mut all = Vec::with_capacity(wanted.len());
    for (at, (step, members)) in steps.iter().zip(&members).enumerate() {
        let limit = step.max_update.map(|share| share.of(members.len()));
        let (held, selects) = (step.is_held(), selects(&written[at]));
        let batch = |place: usize| (!held).then(|| place / limit.unwrap_or(usize::MAX).max(1) + 1);
        let first = all.len();
        let mut going = 0;
        for (place, (candidate, others)) in members.iter().enumerate() {
            let syncs = candidate.change.syncs();
            let mine = if syncs { batch(going) } else { None };
            going += usize::from(syncs);
            all.push(ApplicationPlan {
                name: candidate.name.clone(),
                step: Some(at as i64 + 1),
                batch: mine,
                batch_of_all: batch(place),
                also_matches: others.iter().map(|other| other + 1).collect(),
                change: candidate.change.clone(),
                why: why(candidate, &selects),
            });
        }
        // Those that go stand before those that stay as they are.
        all[first..].sort_by_key(|one| (!one.change.syncs(), one.batch));
        let text = |limit: &Option<IntOrString>| limit.as_ref().map(written_share);
        let duration = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        plans.push(StepPlan {
            step: at + 1,
            selects,
            max_update: text(&written[at].max_update),
            at_once: limit,
            held,
            wait_duration: duration(&written[at].wait_duration),
            progress_deadline: duration(&written[at].progress_deadline),
            max_failures: text(&written[at].max_failures),
            total: members.len(),
            changing: going,
            batches: if held { 0 } else { going.div_ceil(limit.unwrap_or(usize::MAX).max(1)) },
        });
    }
    remarks(&plans, &members, &unmatched, issues);
    all.extend(unmatched.iter().map(|candidate| ApplicationPlan {
        step: Some(-1),
        batch: None,
        batch_of_all: None,
        why: match &candidate.change {
            Change::Assumed => "in no step: people sync it".to_owned(),
            change if change.syncs() => format!("{change}; in no step: written at once, people sync it"),
            change => format!("{change}; in no step"),
        },
        ..at_once(candidate)
    }));
    (plans, all)
}

/// What puts it where it is: its change, or where all are taken to change the labels its step asks for.
fn why(candidate: &Candidate, selects: &str) -> String {
    match &candidate.change {
        Change::Assumed => selects.to_owned(),
        change => change.to_string(),
    }
}

fn remarks(
    plans: &[StepPlan],
    members: &[Vec<(&Candidate, Vec<usize>)>],
    unmatched: &[&Candidate],
    issues: &mut Vec<String>,
) {
    let empty: Vec<String> =
        plans.iter().filter(|plan| plan.total == 0).map(|plan| plan.step.to_string()).collect();
    match &empty[..] {
        [] => {}
        [step] => issues.push(format!("step {step} holds no Application and is passed over")),
        [steps @ .., last] => issues
            .push(format!("steps {} and {last} hold no Application and are passed over", steps.join(", "))),
    }
    for plan in plans {
        if plan.held && plan.total > 0 {
            issues.push(format!(
                "step {} is held (maxUpdate {}): people sync it, and later steps wait for them",
                plan.step,
                plan.max_update.as_deref().unwrap_or("0")
            ));
        }
    }
    for (at, members) in members.iter().enumerate() {
        let shared: Vec<&str> = members
            .iter()
            .filter(|(_, others)| !others.is_empty())
            .map(|(candidate, _)| candidate.name.as_str())
            .collect();
        let others: BTreeSet<usize> = members.iter().flat_map(|(_, others)| others).copied().collect();
        if !shared.is_empty() {
            issues.push(format!(
                "{} in step {}, and step {} matches too: the first counts",
                counted(&shared),
                at + 1,
                others.iter().map(|other| (other + 1).to_string()).collect::<Vec<_>>().join(", ")
            ));
        }
    }
    if !unmatched.is_empty() {
        let names: Vec<&str> = unmatched.iter().map(|candidate| candidate.name.as_str()).collect();
        issues.push(format!("{} in no step: only people sync what no step holds", counted(&names)));
    }
}

fn counted(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [name] => format!("{name} is"),
        [a, b] => format!("{a} and {b} are"),
        [first, rest @ ..] => format!("{first} and {} more are", rest.len()),
    }
}

fn deletions(proposal: &Proposal<'_>, wanted: &[&Candidate]) -> DeletionPlan {
    let order = Order::of(proposal.strategy);
    let names: BTreeSet<&str> = wanted.iter().map(|candidate| candidate.name.as_str()).collect();
    let present = proposal.present.unwrap_or_default();
    let leaves = |one: &Present| !names.contains(one.name.as_str());
    let leaving: Vec<(&str, &BTreeMap<String, String>)> =
        present.iter().filter(|one| leaves(one)).map(|one| (one.name.as_str(), &one.labels)).collect();
    let everyone = wanted.iter().map(|candidate| (candidate.name.as_str(), &candidate.labels)).collect();
    let total = proposal.present.map_or(wanted.len(), <[_]>::len);
    let mut plan = DeletionPlan {
        order: proposal.strategy.map(|strategy| strategy.deletion_order.clone()).unwrap_or_default(),
        problem: None,
        leaving: leaving.len(),
        total,
        percent: (leaving.len() * 100).div_ceil(total.max(1)),
        kept: !proposal.may_delete && !leaving.is_empty(),
        verdict: None,
        fuse: None,
        going: present
            .iter()
            .filter(|one| one.terminating && leaves(one))
            .map(|one| one.name.clone())
            .collect(),
        stages: Vec::new(),
        teardown: Vec::new(),
    };
    match order {
        Err(problem) => plan.problem = Some(problem.advice()),
        Ok((order, _)) => {
            plan.order = order.as_str().to_owned();
            plan.teardown = stages(&order, everyone);
            if proposal.may_delete && !leaving.is_empty() {
                let says = verdict(proposal, &names, present);
                plan.verdict = Some(FuseVerdict { share: proposal.fuse.to_string(), says });
                plan.fuse = (says == "Holds").then(|| {
                    let more = leaving.len() - plan.going.len();
                    format!("{more} of {total} are more than {} of the set", proposal.fuse)
                });
                plan.stages = stages(&order, leaving);
            }
        }
    }
    plan
}

fn verdict(proposal: &Proposal<'_>, wanted: &BTreeSet<&str>, present: &[Present]) -> &'static str {
    // Those that go already are past it.
    let leaves = present.iter().filter(|one| !one.terminating && !wanted.contains(one.name.as_str()));
    let mut doomed: Vec<(Arc<str>, Arc<str>)> =
        leaves.map(|one| (one.name.as_str().into(), one.uid.as_str().into())).collect();
    doomed.sort();
    match fuse::verdict(proposal.fuse, present.len(), &doomed, wanted.iter().copied(), proposal.approval) {
        Verdict::Free => "Free",
        Verdict::Accepted | Verdict::Begun => "Approved",
        Verdict::Holds => "Holds",
    }
}

fn stages(order: &Order, mut leaving: Vec<(&str, &BTreeMap<String, String>)>) -> Vec<Stage> {
    leaving.sort_by_key(|(name, labels)| (order.position(labels), *name));
    let steps = order.positions() - 1;
    let groups = leaving.chunk_by(|(_, a), (_, b)| order.position(a) == order.position(b));
    let stage = |members: &[(&str, &BTreeMap<String, String>)]| {
        let position = order.position(members[0].1);
        let step = match order.as_str() {
            "AllAtOnce" => None,
            _ if position == steps => Some(-1),
            "Reverse" => Some((steps - position) as i64),
            _ => Some(position as i64 + 1),
        };
        let limit = order.limit(position, members.len());
        Stage {
            step,
            at_once: Some(limit).filter(|limit| *limit < usize::MAX),
            applications: members.iter().map(|(name, _)| (*name).to_owned()).collect(),
        }
    };
    groups.map(stage).collect()
}

/// The labels a step asks for, as `kubectl` writes selectors.
pub fn selects(step: &RolloutStep) -> String {
    if step.match_expressions.is_empty() {
        return "every Application".to_owned();
    }
    let one = |expression: &baton_api::strategy::MatchExpression| {
        let key = &expression.key;
        match (&expression.operator, &expression.values[..]) {
            (MatchOperator::In, [value]) => format!("{key}={value}"),
            (MatchOperator::NotIn, [value]) => format!("{key}!={value}"),
            (MatchOperator::In, values) => format!("{key} in ({})", values.join(",")),
            (MatchOperator::NotIn, values) => format!("{key} notin ({})", values.join(",")),
            (other, values) => format!("{key} {} ({})", other.as_str(), values.join(",")),
        }
    };
    step.match_expressions.iter().map(one).collect::<Vec<_>>().join(",")
}

fn written_share(share: &IntOrString) -> String {
    match share {
        IntOrString::Int(count) => count.to_string(),
        IntOrString::String(text) => text.clone(),
    }
}

// === impl Change ===

impl Change {
    /// Whether it goes through its step.
    pub fn syncs(&self) -> bool {
        !matches!(self, Change::Unchanged | Change::Drift | Change::Metadata { .. })
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Change::Assumed => f.write_str("taken to change"),
            Change::New => f.write_str("new"),
            Change::Spec { fields } => write!(f, "spec: {}", few(fields)),
            Change::Revision { from, to } => {
                let (from, to) = (from.join(", "), to.join(", "));
                write!(f, "revision: {} → {to}", if from.is_empty() { "none" } else { &from })
            }
            Change::Metadata { fields } => write!(f, "metadata: {}", few(fields)),
            Change::Drift => f.write_str("drifted at the same revision"),
            Change::Unchanged => f.write_str("unchanged"),
        }
    }
}

/// The first of many, so that a change of everything still fits a line.
fn few(fields: &[String]) -> String {
    match fields {
        [a, b, c, _, rest @ ..] if !rest.is_empty() => format!("{a}, {b}, {c} and {} more", rest.len() + 1),
        few => few.join(", "),
    }
}

// === impl Plan ===

impl Plan {
    /// How many Applications go through their step.
    pub fn changing(&self) -> usize {
        self.applications.iter().filter(|one| one.change.syncs()).count()
    }
}
