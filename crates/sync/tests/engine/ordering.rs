//! The order of tasks, over whatever objects there may be.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::application_status::SyncPhase;
use baton_api::object::Object;
use baton_sync::order::arrange;
use baton_sync::task::{Task, order};
use baton_sync::{hooks, wave};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{annotated, in_wave, object};

#[derive(Debug, Clone)]
struct Thing {
    kind: &'static str,
    name: u8,
    namespace: u8,
    wave: i64,
    hook: Option<&'static str>,
    pruned: bool,
}

fn thing() -> impl Strategy<Value = Thing> {
    let kinds = prop::sample::select(vec![
        "Namespace",
        "ConfigMap",
        "Deployment",
        "Widget",
        "CustomResourceDefinition",
        "Job",
        "ClusterRole",
    ]);
    let phases =
        prop::option::weighted(0.3, prop::sample::select(vec!["PreSync", "Sync", "PostSync", "SyncFail"]));
    (kinds, 0u8..6, 0u8..4, -3i64..4, phases, prop::bool::weighted(0.2)).prop_map(
        |(kind, name, namespace, wave, hook, pruned)| Thing { kind, name, namespace, wave, hook, pruned },
    )
}

fn tasks(things: &[Thing]) -> Vec<Task> {
    let mut tasks: BTreeMap<_, Task> = BTreeMap::new();
    for thing in things {
        let cluster_scoped = matches!(thing.kind, "Namespace" | "CustomResourceDefinition" | "ClusterRole");
        let name = if thing.kind == "Namespace" { "n" } else { "x" };
        let mut value = in_wave(object(thing.kind, &format!("{name}{}", thing.name)), thing.wave);
        if !cluster_scoped {
            value["metadata"]["namespace"] = json!(format!("n{}", thing.namespace));
        }
        if thing.kind == "CustomResourceDefinition" {
            value["spec"] = json!({"group": "example.com", "names": {"kind": "Widget"}});
        }
        let pruned = thing.pruned && thing.hook.is_none();
        if let Some(phase) = thing.hook {
            value = annotated(value, "argocd.argoproj.io/hook", phase);
        }
        let phase = hooks::phases(&value).first().cloned().unwrap_or(SyncPhase::Sync);
        let task = task(value, phase, pruned);
        tasks.insert(task.result_key(), task);
    }
    tasks.into_values().collect()
}

fn task(value: Value, phase: SyncPhase, pruned: bool) -> Task {
    let value = Arc::new(value);
    Task {
        key: value.key(),
        wave: wave::of(&value),
        namespace: value.namespace().to_owned(),
        target: (!pruned).then(|| value.clone()),
        live: pruned.then(|| value.clone()),
        phase,
        modified: true,
        skip_dry_run: false,
        status: Default::default(),
        state: Default::default(),
        message: String::new(),
    }
}

fn when(task: &Task) -> (i8, i64) {
    (order(&task.phase), task.wave)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_does_not_depend_on_where_tasks_came_from(
        (things, shuffled) in prop::collection::vec(thing(), 0..24).prop_map(|things| tasks(&things))
            .prop_flat_map(|tasks| (Just(tasks.clone()), Just(tasks).prop_shuffle())),
        last in any::<bool>(),
    ) {
        let (mut one, mut other) = (things, shuffled);
        arrange(&mut one, last);
        arrange(&mut other, last);
        prop_assert_eq!(one, other);
    }

    #[test]
    fn no_task_comes_before_one_it_needs(things in prop::collection::vec(thing(), 0..24), last in any::<bool>()) {
        let mut tasks = tasks(&things);
        let before = tasks.len();
        arrange(&mut tasks, last);
        prop_assert_eq!(tasks.len(), before);
        for (index, task) in tasks.iter().enumerate().filter(|(_, task)| !task.is_prune()) {
            for (place, needed) in tasks.iter().enumerate().filter(|(_, other)| !other.is_prune()) {
                let holds = needed.key.kind == "Namespace" && needed.key.name == task.namespace;
                let defines = needed.key.kind == "CustomResourceDefinition" && task.key.kind == "Widget";
                if (holds || defines) && needed.key.kind != task.key.kind {
                    prop_assert!(place < index, "{} before {}", task.key, needed.key);
                }
            }
        }
    }

    #[test]
    fn phases_and_waves_never_go_back(things in prop::collection::vec(thing(), 0..24), last in any::<bool>()) {
        let mut tasks = tasks(&things);
        arrange(&mut tasks, last);
        for pair in tasks.windows(2) {
            prop_assert!(when(&pair[0]) <= when(&pair[1]), "{} {}", pair[0].key, pair[1].key);
        }
    }

    #[test]
    fn what_was_created_later_is_never_pruned_later(things in prop::collection::vec(thing(), 0..24)) {
        let mut tasks = tasks(&things);
        arrange(&mut tasks, false);
        let prunes: Vec<i64> =
            tasks.iter().filter(|task| task.is_prune()).map(|task| wave::of(task.object())).collect();
        prop_assert!(prunes.windows(2).all(|pair| pair[0] >= pair[1]), "{:?}", prunes);
    }
}

#[test]
fn waves_of_prunes_change_places() {
    let prune =
        |wave: i64| task(in_wave(object("ConfigMap", &format!("w{wave}")), wave), SyncPhase::Sync, true);
    let mut tasks = vec![prune(1), prune(3), prune(4)];
    arrange(&mut tasks, false);
    let told: Vec<(&str, i64)> = tasks.iter().map(|task| (task.key.name.as_str(), task.wave)).collect();
    assert_eq!(told, [("w4", 1), ("w3", 3), ("w1", 4)]);
}
