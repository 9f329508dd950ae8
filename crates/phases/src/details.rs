//! What of the status is kept in objects beside the set, so that the set stays small.
//!
//! The status decides and these objects tell: what is left out of the status is only what can be done without. They are
//! written before the status that refers to them. Where one is lost or of another rollout, durations and times are gone,
//! and the rollout goes on as it would have.

use std::collections::{BTreeMap, BTreeSet};

use baton_api::phase_status::{
    GeneratorPhases, HookResult, HookState, PhaseApplication, PhaseApplicationState, PhaseState, PhaseStatus,
};
use serde::{Deserialize, Serialize};

use crate::lists::{Lists, ROLES};

/// Most bytes of one generator's phases in the status, as JSON.
pub const BUDGET: usize = 256 * 1024;
/// So many results of single targets are kept in the status of a phase in any case.
const KEPT: usize = 20;
/// Targets of one object, and results of it at most.
const TARGETS: usize = 100;
const RESULTS: usize = 1000;

/// A status with what does not fit into it.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// What goes into the set.
    pub status: GeneratorPhases,
    /// What goes into objects of their own, owned by the set.
    pub objects: Vec<SideObject>,
}

/// An object beside the set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideObject {
    /// Its name.
    pub name: String,
    /// What it holds, as JSON.
    pub text: String,
}

/// What one object holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Page {
    rollout: String,
    generator: i64,
    phase: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    applications: Vec<PhaseApplication>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pre_hooks: Vec<HookResult>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    checks: Vec<HookResult>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    post_hooks: Vec<HookResult>,
}

/// A way to make a phase smaller: which of its Applications and results go elsewhere.
#[derive(Clone, Copy)]
struct Cut {
    applies: fn(&PhaseStatus) -> bool,
    application: fn(&PhaseApplication) -> bool,
    result: fn(&HookResult, &str) -> bool,
}

/// What is cut, in this order, as long as the status is too large.
const CUTS: [Cut; 5] = [
    Cut { applies: is_complete, application: may_go, result: |_, _| false },
    Cut { applies: is_complete, application: may_go, result: |_, _| true },
    Cut { applies: |_| true, application: |_| false, result: is_settled },
    Cut { applies: |_| true, application: is_settled_application, result: is_settled },
    Cut { applies: |_| true, application: may_go, result: is_settled },
];

/// Takes out of a status what makes it too large. `base` begins the names of the objects.
pub fn split(whole: &GeneratorPhases, base: &str) -> Split {
    let mut status = whole.clone();
    let mut pages: BTreeMap<usize, Page> = BTreeMap::new();
    let many = |phase: &PhaseStatus| {
        let results = ROLES.into_iter().flat_map(|role| phase.results(role));
        results.filter(|result| !result.target.is_empty()).count() > KEPT
    };
    let first = Cut { applies: |_| true, application: |_| false, result: is_settled };
    for (index, phase) in status.phases.iter_mut().enumerate() {
        if many(phase) {
            cut(phase, first, pages.entry(index).or_default());
        }
    }
    for step in CUTS {
        if size(&status) <= BUDGET {
            break;
        }
        for (index, phase) in status.phases.iter_mut().enumerate().filter(|(_, phase)| (step.applies)(phase))
        {
            cut(phase, step, pages.entry(index).or_default());
        }
    }
    let mut objects = Vec::new();
    for (index, page) in pages {
        let reference = format!("{base}-{}-{index}", whole.generator);
        let parts = parts(Page {
            rollout: whole.rollout_id.clone(),
            generator: whole.generator,
            phase: index,
            ..page
        });
        if !parts.is_empty() {
            status.phases[index].details_ref.clone_from(&reference);
        }
        let texts = parts.iter().map(|part| serde_json::to_string(part).unwrap_or_default());
        objects.extend(
            texts.enumerate().map(|(at, text)| SideObject { name: format!("{reference}-{at}"), text }),
        );
    }
    Split { status, objects }
}

/// Puts a status and its objects together. What the status says itself counts.
pub fn join<'t>(status: &GeneratorPhases, texts: impl IntoIterator<Item = &'t str>) -> GeneratorPhases {
    let mut whole = status.clone();
    for text in texts {
        let Ok(page) = serde_json::from_str::<Page>(text) else { continue };
        if page.rollout != whole.rollout_id || page.generator != whole.generator {
            continue;
        }
        let Some(phase) = whole.phases.get_mut(page.phase) else { continue };
        let lists = [page.pre_hooks, page.checks, page.post_hooks];
        for (role, results) in ROLES.into_iter().zip(lists) {
            add_results(phase.results_mut(role), results);
        }
        let known: BTreeSet<String> = phase.applications.iter().map(|entry| entry.name.clone()).collect();
        phase.applications.extend(page.applications.into_iter().filter(|entry| !known.contains(&entry.name)));
        phase.applications.sort_by(|a, b| a.name.cmp(&b.name));
    }
    whole.phases.iter_mut().for_each(|phase| phase.details_ref = String::new());
    whole
}

/// How many bytes a status has.
pub fn size(status: &GeneratorPhases) -> usize {
    serde_json::to_vec(status).map_or(usize::MAX, |bytes| bytes.len())
}

fn cut(phase: &mut PhaseStatus, cut: Cut, page: &mut Page) {
    let (gone, kept) = std::mem::take(&mut phase.applications).into_iter().partition(cut.application);
    phase.applications = kept;
    let gone: Vec<PhaseApplication> = gone;
    page.applications.extend(gone);
    for (role, list) in ROLES.into_iter().zip([&mut page.pre_hooks, &mut page.checks, &mut page.post_hooks]) {
        let results = std::mem::take(phase.results_mut(role));
        let through = |name: &str| {
            let summary = results.iter().find(|result| result.name == name && result.target.is_empty());
            summary.map(|summary| summary.through.clone()).unwrap_or_default()
        };
        let known: BTreeMap<String, String> =
            results.iter().map(|result| (result.name.clone(), through(&result.name))).collect();
        let (gone, kept) = results.into_iter().partition(|result: &HookResult| {
            (cut.result)(result, known.get(&result.name).map_or("", String::as_str))
        });
        *phase.results_mut(role) = kept;
        let gone: Vec<HookResult> = gone;
        list.extend(gone);
    }
}

/// A page for each so many targets, so that one result changes one object.
fn parts(page: Page) -> Vec<Page> {
    let mut names: BTreeSet<&str> = page.applications.iter().map(|entry| entry.name.as_str()).collect();
    let lists = [&page.pre_hooks, &page.checks, &page.post_hooks];
    let results: usize = lists.iter().map(|list| list.len()).sum();
    names.extend(lists.iter().flat_map(|list| list.iter()).map(|result| result.target.as_str()));
    let each = results.div_ceil(names.len().max(1)).max(1);
    let names: Vec<&str> = names.into_iter().collect();
    let chunks = names.chunks((RESULTS / each).clamp(1, TARGETS));
    let part = |chunk: &[&str]| {
        let within = |name: &str| chunk.binary_search(&name).is_ok();
        let pick =
            |list: &[HookResult]| list.iter().filter(|result| within(&result.target)).cloned().collect();
        Page {
            rollout: page.rollout.clone(),
            generator: page.generator,
            phase: page.phase,
            applications: page.applications.iter().filter(|entry| within(&entry.name)).cloned().collect(),
            pre_hooks: pick(&page.pre_hooks),
            checks: pick(&page.checks),
            post_hooks: pick(&page.post_hooks),
        }
    };
    chunks.map(part).collect()
}

/// Adds results that are not there; each call's stand together, in the order of targets.
fn add_results(results: &mut Vec<HookResult>, more: Vec<HookResult>) {
    let known: BTreeSet<(String, String)> =
        results.iter().map(|result| (result.name.clone(), result.target.clone())).collect();
    results.extend(
        more.into_iter().filter(|result| !known.contains(&(result.name.clone(), result.target.clone()))),
    );
    let mut order: BTreeMap<String, usize> = BTreeMap::new();
    for (place, result) in results.iter().enumerate() {
        order.entry(result.name.clone()).or_insert(place);
    }
    results.sort_by(|a, b| (order[&a.name], &a.target).cmp(&(order[&b.name], &b.target)));
}

fn is_complete(phase: &PhaseStatus) -> bool {
    phase.state == PhaseState::Complete
}

/// What is being put back is never left out: the pin it goes to stands nowhere else.
fn may_go(entry: &PhaseApplication) -> bool {
    !crate::machine::is_back(&entry.state)
}

fn is_settled_application(entry: &PhaseApplication) -> bool {
    use PhaseApplicationState as S;
    matches!(entry.state, S::Held | S::Healthy | S::Unchanged)
}

/// Whether a target's result is known from its summary to have passed.
fn is_settled(result: &HookResult, through: &str) -> bool {
    let passed = matches!(result.state, HookState::Succeeded | HookState::Ignored);
    passed && !result.target.is_empty() && result.target.as_str() <= through
}
