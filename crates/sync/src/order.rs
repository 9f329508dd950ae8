//! The order of a sync's tasks: phase, wave, kind, name; prunes backwards; what others need before them.

use std::collections::{BTreeMap, BTreeSet};

use baton_api::application_status::SyncPhase;
use baton_api::object::{Object, ResourceKey};
use serde_json::Value;

use crate::kind_order::rank;
use crate::options::Options;
use crate::task::{Task, order};
use crate::tracking::is_crd;

/// Puts tasks in order, moving waves and phases where the rules say so.
///
/// # Guarantees
/// The outcome does not depend on the order tasks came in, as long as no two are of one key and phase. A Namespace
/// stands before the targets inside it and a CustomResourceDefinition before the targets it defines, in their wave.
pub fn arrange(tasks: &mut [Task], prune_last: bool) {
    reverse_prunes(tasks);
    put_last(tasks, prune_last);
    tasks.sort_by_cached_key(place);
    lift(
        tasks,
        |task, object| is_namespace(object).then(|| task.key.name.clone()),
        |task, _| (!task.namespace.is_empty()).then(|| task.namespace.clone()),
    );
    lift(
        tasks,
        |_, object| defined_kind(object).map(|(group, kind)| format!("{group}/{kind}")),
        |task, _| Some(format!("{}/{}", task.key.group, task.key.kind)),
    );
}

/// Whether an object is a Namespace.
pub(crate) fn is_namespace(object: &Value) -> bool {
    object.group().is_empty() && object.kind() == "Namespace"
}

/// Group and kind that a CustomResourceDefinition defines.
pub(crate) fn defined_kind(object: &Value) -> Option<(&str, &str)> {
    if !is_crd(object) {
        return None;
    }
    Some((object["spec"]["group"].as_str()?, object["spec"]["names"]["kind"].as_str()?))
}

/// What decides where a task stands. Beyond the name it is all the same, as long as it is always the same.
fn place(task: &Task) -> (i8, i64, usize, String, ResourceKey) {
    (order(&task.phase), task.wave, rank(&task.key.kind), task.key.name.clone(), task.key.clone())
}

/// What was created last is pruned first: the waves of prunes change places, the first with the last.
fn reverse_prunes(tasks: &mut [Task]) {
    let waves: BTreeSet<i64> = tasks.iter().filter(|task| task.is_prune()).map(|task| task.wave).collect();
    let swapped: BTreeMap<i64, i64> = waves.iter().copied().zip(waves.iter().rev().copied()).collect();
    for task in tasks.iter_mut().filter(|task| task.is_prune()) {
        task.wave = swapped[&task.wave];
    }
}

/// Prunes that are to come last get a wave of their own, after every other of the sync itself.
fn put_last(tasks: &mut [Task], all: bool) {
    let waves = tasks.iter().filter(|task| task.phase == SyncPhase::Sync).map(|task| task.wave);
    let last = waves.max().unwrap_or_default().max(0).saturating_add(1);
    for task in tasks.iter_mut().filter(|task| task.is_prune()) {
        if all || Options::of(task.object()).has("PruneLast=true") {
            task.wave = last;
        }
    }
}

/// Moves each target that others need before the first of them, into its wave and phase.
fn lift(
    tasks: &mut [Task],
    provides: impl Fn(&Task, &Value) -> Option<String>,
    needs: impl Fn(&Task, &Value) -> Option<String>,
) {
    let mut first: BTreeMap<String, usize> = BTreeMap::new();
    for index in 0..tasks.len() {
        let task = &tasks[index];
        let Some(target) = task.target.clone() else { continue };
        if let Some(provided) = provides(task, &target) {
            let Some(&before) = first.get(&provided) else { continue };
            let (wave, phase) = (tasks[before].wave, tasks[before].phase.clone());
            tasks[index].wave = wave;
            tasks[index].phase = phase;
            tasks[before..=index].rotate_right(1);
            for position in first.values_mut().filter(|position| **position >= before) {
                *position += 1;
            }
        } else if let Some(needed) = needs(task, &target) {
            first.entry(needed).or_insert(index);
        }
    }
}
