//! Syncs of whatever there may be, stopped wherever it may be.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::application_status::{HealthCode, OperationPhase};
use baton_api::names::resource;
use baton_api::object::Object;
use baton_sync::hooks;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{Event, Pass, World, annotated, in_wave, object, with_options};

/// Most passes of a run: far more than any world needs.
const PASSES: usize = 80;

#[derive(Debug, Clone)]
struct Thing {
    kind: &'static str,
    wave: i64,
    hook: Option<(&'static str, &'static str)>,
    options: &'static str,
    /// Whether it is in the source, in the cluster, or in both.
    place: Place,
    fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Wanted,
    Live,
    Both,
    Changed,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Well,
    Degrades,
    Refused,
    Immutable,
}

#[derive(Debug, Clone)]
struct Chance {
    things: Vec<Thing>,
    options: Vec<&'static str>,
    prune: bool,
    stops: Vec<usize>,
    by_object: bool,
}

fn chance() -> impl Strategy<Value = Chance> {
    let kinds = prop::sample::select(vec!["ConfigMap", "Deployment", "Job", "Namespace", "Service"]);
    let phases = prop::sample::select(vec!["PreSync", "Sync", "PostSync", "SyncFail", "PreSync,PostSync"]);
    let policies =
        prop::sample::select(vec!["", "HookSucceeded", "HookFailed", "BeforeHookCreation,HookSucceeded"]);
    let options = prop::sample::select(vec![
        "",
        "",
        "",
        "Prune=confirm",
        "Prune=false",
        "Force=true",
        "Delete=confirm,Force=true",
        "PruneLast=true",
        "Replace=true,Force=true,Prune=confirm",
        "Replace=true",
    ]);
    let place = prop::sample::select(vec![Place::Wanted, Place::Live, Place::Both, Place::Changed]);
    let fate = prop::sample::select(vec![
        Fate::Well,
        Fate::Well,
        Fate::Well,
        Fate::Degrades,
        Fate::Refused,
        Fate::Immutable,
    ]);
    let thing =
        (kinds, -2i64..3, prop::option::weighted(0.3, (phases, policies)), options, place, fate).prop_map(
            |(kind, wave, hook, options, place, fate)| Thing { kind, wave, hook, options, place, fate },
        );
    let all = prop::sample::subsequence(
        vec!["Prune=confirm", "PruneLast=true", "ApplyOutOfSyncOnly=true", "CreateNamespace=true"],
        0..3,
    );
    (
        prop::collection::vec(thing, 0..7),
        all,
        prop::bool::weighted(0.8),
        prop::collection::vec(0usize..25, 0..3),
        any::<bool>(),
    )
        .prop_map(|(things, options, prune, stops, by_object)| Chance {
            things,
            options,
            prune,
            stops,
            by_object,
        })
}

fn name(index: usize) -> String {
    format!("t{index}")
}

fn build(chance: &Chance) -> World {
    let mut wanted = Vec::new();
    let mut live = Vec::new();
    let mut refused = BTreeMap::new();
    for (index, thing) in chance.things.iter().enumerate() {
        let mut value = with_options(in_wave(object(thing.kind, &name(index)), thing.wave), thing.options);
        if let Some((phases, policies)) = thing.hook {
            value = annotated(value, resource::HOOK, phases);
            value = annotated(value, resource::HOOK_DELETE_POLICY, policies);
        }
        if thing.place != Place::Wanted {
            live.push(value.clone());
        }
        if thing.place == Place::Changed {
            value["spec"] = json!({"changed": true});
        }
        if thing.place != Place::Live {
            wanted.push(value);
        }
        if thing.fate == Fate::Refused {
            refused.insert(name(index), "denied".to_owned());
        }
    }
    let mut world = live.into_iter().fold(World::new(wanted), World::with_live).with_options(&chance.options);
    world.refused = refused;
    world.sync().prune = chance.prune;
    for (index, thing) in chance.things.iter().enumerate() {
        match thing.fate {
            Fate::Degrades => drop(world.outcomes.insert(name(index), HealthCode::Degraded)),
            Fate::Immutable => drop(world.immutable.insert(name(index))),
            Fate::Well | Fate::Refused => {}
        }
    }
    world
}

/// Runs a world to its end; `None` where nothing more would happen.
fn run(chance: &Chance) -> (World, Option<Pass>) {
    let mut world = build(chance);
    let mut stops = chance.stops.clone();
    world.crash_after = stops.pop();
    for _ in 0..PASSES {
        let pass = world.pass();
        match &pass {
            Pass::Ended { .. } => {
                // What the last pass began comes to its end.
                world.tick();
                world.tick();
                return (world, Some(pass));
            }
            Pass::Crashed => world.crash_after = stops.pop(),
            Pass::Waits { approvals, .. } if !approvals.is_empty() && chance.by_object => {
                approvals.iter().for_each(|key| world.approve_object(&key.name));
            }
            Pass::Waits { approvals, .. } if !approvals.is_empty() => world.approve(),
            Pass::Waits { .. } => {}
        }
        world.tick();
    }
    (world, None)
}

fn is_guarded(chance: &Chance, thing: &Thing) -> bool {
    let own = thing.options.contains("=confirm");
    let by_default = chance.options.contains(&"Prune=confirm") && !thing.options.contains("Prune=");
    thing.hook.is_none() && (own || by_default)
}

/// The names of all that is deleted before anybody agreed.
fn deleted_early(world: &World) -> Vec<String> {
    let agreed = world.history.iter().position(|event| *event == Event::Approved).unwrap_or(usize::MAX);
    let early = world.history.iter().take(agreed).filter_map(|event| match event {
        Event::DeleteAsked(key) => Some(key.name.clone()),
        _ => None,
    });
    early.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, max_global_rejects: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn every_sync_ends_and_keeps_its_promises(chance in chance()) {
        let (world, ended) = run(&chance);
        prop_assert!(ended.is_some(), "it never ends: {:?} {:?}", world.state.message, world.told());

        let early = deleted_early(&world);
        let mut waits = false;
        for (index, thing) in chance.things.iter().enumerate() {
            if !is_guarded(&chance, thing) {
                continue;
            }
            // What is guarded for deletion only is pruned without asking.
            let pruned = thing.place == Place::Live;
            if pruned && thing.options.contains("Delete=confirm") {
                continue;
            }
            prop_assert!(!early.contains(&name(index)), "{} was deleted before anybody agreed", name(index));
            waits |= pruned && chance.prune;
        }
        for (index, _) in chance.things.iter().enumerate().filter(|(_, thing)| waits && thing.hook.is_none()) {
            prop_assert!(!early.contains(&name(index)), "{} went before the guarded", name(index));
        }

        for (index, thing) in chance.things.iter().enumerate() {
            let Some((phases, _)) = thing.hook else { continue };
            let created = |event: &&Event| matches!(event, Event::Created(key) if key.name == name(index));
            let ran = world.history.iter().filter(created).count();
            prop_assert!(ran <= phases.split(',').count(), "hook {} ran {ran} times", name(index));
        }
        for live in world.objects.values().filter(|live| hooks::is_hook(live)) {
            let mine = live.annotation("baton.dev/operation").is_some();
            prop_assert!(!mine || !hooks::is_held(live), "{} is held for ever", live.name());
        }
    }

    #[test]
    fn stops_do_not_change_what_a_sync_comes_to(chance in chance()) {
        let (stopped, ended) = run(&chance);
        let (clean, expected) = run(&Chance { stops: Vec::new(), ..chance });
        let phase = |pass: &Option<Pass>| match pass {
            Some(Pass::Ended { phase, .. }) => Some(phase.clone()),
            _ => None,
        };
        prop_assert_eq!(phase(&ended), phase(&expected));
        // Waves of prunes are those of what is left to prune, so how far a failed sync came may differ.
        prop_assume!(phase(&ended) == Some(OperationPhase::Succeeded));
        let left = |world: &World| -> Vec<String> { world.objects.keys().map(ToString::to_string).collect() };
        prop_assert_eq!(left(&stopped), left(&clean));
    }

    #[test]
    fn objects_of_any_shape_do_no_harm(
        objects in prop::collection::vec(odd_object(), 0..6),
        live in prop::collection::vec(odd_object(), 0..4),
    ) {
        let mut world = World::new(objects);
        for live in live {
            world.objects.insert(live.key(), Arc::new(live));
        }
        for _ in 0..5 {
            world.pass();
            world.now = world.now.checked_add(jiff::SignedDuration::from_secs(1)).expect("a time");
        }
    }
}

fn odd_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec![
            "",
            "true",
            "PreSync",
            "Prune=confirm",
            "v1",
            "99999999999999999999",
            "ä/ö"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..3).prop_map(|map| json!(map)),
        ]
    })
}

/// An object in which any known place may hold anything.
fn odd_object() -> impl Strategy<Value = Value> {
    let places = prop::sample::select(vec![
        "",
        "/metadata",
        "/metadata/annotations",
        "/metadata/name",
        "/metadata/finalizers",
        "/metadata/namespace",
        "/metadata/managedFields",
        "/metadata/ownerReferences",
        "/metadata/deletionTimestamp",
        "/spec",
        "/kind",
        "/apiVersion",
        "/status",
    ]);
    let phases = prop::sample::select(vec!["PreSync", "Sync,SyncFail", "nonsense"]);
    (places, odd_value(), prop::option::of(phases), any::<bool>()).prop_map(|(place, odd, hook, named)| {
        let mut value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "shop",
            "annotations": {}, "finalizers": [], "managedFields": [], "ownerReferences": [], "deletionTimestamp": null},
            "spec": {}, "status": {}});
        if let Some(phases) = hook {
            value = annotated(value, resource::HOOK, phases);
        }
        if !named {
            value["metadata"]["name"] = Value::Null;
        }
        if let Some(slot) = value.pointer_mut(place) {
            *slot = odd;
        }
        value
    })
}
