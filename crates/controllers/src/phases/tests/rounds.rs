//! What a round stores, and what it does not.

use std::sync::Arc;

use baton_api::phase_status::{HookResult, HookState, PhaseState};
use baton_hooks::Verdict;
use baton_phases::{Gate, Hold, Outlook, Progress, details};
use serde_json::json;

use super::world::{World, defined, fleet, hook, hook_per_target, phase};
use crate::cache::ObjectKey;
use crate::phases::plans::Plans;
use crate::phases::{PhaseError, phased};
use crate::settings::{HookSettings, Settings};

#[tokio::test(start_paused = true)]
async fn a_quiet_round_makes_no_request() {
    let phases = json!([
        phase("dev", json!({"preHooks": [hook("a")], "waitDuration": "1h"})),
        phase("prod", json!({}))
    ]);
    let mut world = World::new(phases, &["dev-1", "dev-2", "prod-1"]).await;
    world.settle().await;
    world.requests();
    let quiet = async |world: &World, when: &str| {
        world.round().await.expect("a round");
        assert_eq!(world.requests(), [""; 0], "{when}");
    };
    quiet(&world, "while a call is made").await;
    world.script.answer("a", Verdict::Success);
    world.breathe().await;
    world.settle().await;
    world.requests();
    quiet(&world, "while it deploys").await;
    assert_eq!(world.deploy().await, ["dev-1", "dev-2"]);
    assert_eq!(world.state(0), PhaseState::Waiting);
    world.requests();
    quiet(&world, "while it waits").await;
    world.pass(3601).await;
    assert_eq!(world.deploy().await, ["prod-1"]);
    assert_eq!(world.status().state, PhaseState::Complete);
    world.requests();
    quiet(&world, "at the end").await;
}

#[tokio::test(start_paused = true)]
async fn a_set_without_phases_costs_nothing() {
    let world = World::new(json!([phase("dev", json!({}))]), &["dev-1"]).await;
    world.remove_phases().await;
    let ruling = world.round().await.expect("a round");
    assert!(ruling.gates.is_empty() && !ruling.again);
    assert_eq!(world.requests(), [""; 0]);
    assert!(phased(&world.set()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn phases_open_one_after_the_other_and_the_gates_name_their_group() {
    let phases = json!([phase("dev", json!({"maxConcurrent": 1})), phase("prod", json!({}))]);
    let mut world = World::new(phases, &["dev-1", "dev-2", "prod-1"]).await;
    let first = world.round().await.expect("a round");
    assert!(first.again && first.set.is_some(), "the rollout was written down");
    assert!(
        first.gates.values().all(|ruled| !ruled.gate.is_open()),
        "and nothing follows from what is not stored"
    );
    let ruling = world.settle().await;
    assert_eq!(ruling.gates["dev-1"].gate, Gate::Open { phase: 0 });
    assert_eq!(ruling.gates["dev-1"].group, (0, 0));
    assert!(matches!(ruling.gates["prod-1"].gate, Gate::Held(_)));
    assert_eq!(ruling.limits, [((0, 0), 1)].into());
    assert_eq!(ruling.version.to_string(), world.set().metadata.resource_version.expect("a version"));
    world.see("dev-1", Progress::Done);
    world.see("dev-2", Progress::Done);
    let ruling = world.round_of(&world.set(), false).await.expect("a round");
    assert!(ruling.list, "that nobody regressed is known by a list only");
    let ruling = world.settle().await;
    assert_eq!(ruling.gates["prod-1"].gate, Gate::Open { phase: 1 });
}

#[tokio::test(start_paused = true)]
async fn annotations_mirror_the_status_after_it() {
    let mut world = World::new(json!([phase("dev", json!({}))]), &["dev-1"]).await;
    let mirror = "applicationset.argoproj.io/phase-clusters";
    world.settle().await;
    let requests = world.requests();
    let at = |line: &str| requests.iter().position(|request| request == line).expect(line);
    assert!(at("PATCH applicationsets/status") < at("PATCH applicationsets"));
    assert_eq!(world.set().metadata.annotations.expect("some")[mirror], "0");
    world.deploy().await;
    assert_eq!(world.set().metadata.annotations.expect("some")[mirror], "1");
    world.remove_phases().await;
    world.settle().await;
    assert!(world.set().metadata.annotations.unwrap_or_default().is_empty());
}

#[tokio::test(start_paused = true)]
async fn row_33_what_somebody_writes_into_an_annotation_is_not_believed_and_is_put_right() {
    let phases = json!([phase("dev", json!({"waitDuration": "1h"})), phase("prod", json!({}))]);
    let mut world = World::new(phases, &["dev-1", "prod-1"]).await;
    let mirror = "applicationset.argoproj.io/phase-clusters";
    world.deploy().await;
    assert_eq!(world.state(0), PhaseState::Waiting);
    let before = world.status();
    let forge = json!({"metadata": {"annotations": {
        mirror: "9", "applicationset.argoproj.io/rollback-phase-dev": "2020-01-01T00:00:00Z",
    }}});
    for crashes in [false, true] {
        world.edit(forge.clone()).await;
        if crashes {
            world.crash();
        }
        let ruling = world.settle().await;
        assert_eq!(world.status(), before, "the status says how it is");
        assert!(matches!(ruling.gates["prod-1"].gate, Gate::Held(_)));
        let annotations = world.set().metadata.annotations.expect("some");
        assert_eq!(annotations, [(mirror.to_owned(), "0".to_owned())].into());
    }
}

#[tokio::test(start_paused = true)]
async fn a_set_that_asks_for_a_newer_version_is_left_alone() {
    let world = World::new(json!([phase("dev", json!({}))]), &["dev-1"]).await;
    world.edit(json!({"metadata": {"annotations": {"argocd.argoproj.io/min-version": "99.0.0"}}})).await;
    world.requests();
    let ruling = world.round().await.expect("a round");
    assert!(matches!(ruling.gates["dev-1"].gate, Gate::Held(_)));
    assert!(ruling.waits[0].message.contains("99.0.0"), "{:?}", ruling.waits);
    assert!(ruling.notices.is_empty(), "one condition says it, which is not that of phases");
    assert_eq!(world.requests(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn phases_that_cannot_be_followed_hold_everybody_and_keep_the_status() {
    let world = World::new(json!([phase("dev", json!({"preHooks": [hook("a")]}))]), &["dev-1"]).await;
    world.settle().await;
    let before = world.status();
    let wrong = json!([phase("dev", json!({"percentage": 10, "maxUpdate": 1}))]);
    let strategy = json!({"type": "phaseDeployment", "phases": wrong});
    world.edit(json!({"spec": {"generators": [{"clusters": {}, "deploymentStrategy": strategy}]}})).await;
    let ruling = world.settle().await;
    assert!(matches!(ruling.gates["dev-1"].gate, Gate::Held(_)));
    assert!(ruling.notices.iter().any(|notice| notice.reason == "InvalidPhaseConfig"));
    assert!(ruling.waits[0].config && ruling.waits[0].message.contains("cannot be followed"));
    let end = matches!(&ruling.outlook, Some(Outlook::Failed(why)) if why.contains("cannot be followed"));
    assert!(end, "it goes nowhere, and says so: {:?}", ruling.outlook);
    assert_eq!((world.status(), world.script.dropped()), (before, 1));
    // Phases inside a matrix are no phases.
    let nested =
        json!({"matrix": {"generators": [{"clusters": {}, "deploymentStrategy": strategy}, {"list": {}}]}});
    world.edit(json!({"spec": {"generators": [nested]}})).await;
    let ruling = world.settle().await;
    assert!(ruling.notices[0].message.contains("matrix.generators[0]"), "{:?}", ruling.notices);
}

#[tokio::test(start_paused = true)]
async fn what_people_ask_for_is_answered_once() {
    let checks = json!({"checks": [hook("a")]});
    let mut world = World::new(json!([phase("dev", checks)]), &["dev-1", "dev-2"]).await;
    world.settle().await;
    world.see("dev-1", Progress::Done);
    world.see("dev-2", Progress::UnderWay);
    world.settle().await;
    world.requests.abort = Some("1".to_owned());
    let ruling = world.settle().await;
    assert_eq!(world.state(0), PhaseState::Aborted);
    assert_eq!(ruling.terminate, [Arc::from("dev-2")]);
    world.see(
        "dev-2",
        Progress::Failed { reason: "Terminated".to_owned(), message: "by a person".to_owned() },
    );
    assert!(world.settle().await.terminate.is_empty());
    world.requests.retry = Some("2".to_owned());
    world.see("dev-2", Progress::UnderWay);
    world.settle().await;
    assert_eq!(world.state(0), PhaseState::Deploying, "and the word that aborted it is not heard again");
    world.see("dev-2", Progress::Done);
    world.settle().await;
    assert_eq!(world.script.names(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn calls_are_for_the_control_planes_sets_and_those_the_operator_listed() {
    let mut world = World::new(json!([phase("dev", json!({"preHooks": [hook("a")]}))]), &["dev-1"]).await;
    let set = world.set();
    let may = |world: &World, namespace: &str| {
        let policy = world.phases.policy(&ObjectKey::new(namespace, "web"), &set);
        let strategy = set.spec.generators[0].deployment_strategy.as_ref().expect("phases");
        Plans::default().read(0, strategy, &policy).plan.is_some()
    };
    assert!(may(&world, "argocd") && !may(&world, "team-a"));
    let hooks = HookSettings { namespaces: vec!["team-*".to_owned()], ..HookSettings::default() };
    world.settings = Arc::new(Settings { hooks, ..(*world.settings).clone() });
    world.crash();
    assert!(may(&world, "argocd") && may(&world, "team-a") && !may(&world, "other"));
    // A pattern that cannot be read allows nothing.
    let hooks = HookSettings { namespaces: vec!["/(/".to_owned()], ..HookSettings::default() };
    world.settings = Arc::new(Settings { hooks, ..(*world.settings).clone() });
    world.crash();
    assert!(may(&world, "argocd") && !may(&world, "team-a"));
}

#[tokio::test(start_paused = true)]
async fn generators_go_their_own_ways() {
    let mut world = World::new(json!([phase("dev", json!({"preHooks": [hook("a")]}))]), &["dev-1"]).await;
    let strategy = |name: &str| {
        let phases = json!([phase("dev", json!({"preHooks": [hook(name)]}))]);
        json!({"clusters": {}, "deploymentStrategy": {"type": "phaseDeployment", "phases": phases}})
    };
    world.edit(json!({"spec": {"generators": [strategy("a"), {"list": {}}, strategy("b")]}})).await;
    world.targets.insert(2, fleet(&["dev-9"]));
    world.begin_run(1, "p1");
    world.settle().await;
    assert_eq!(world.script.names(), ["a", "b"]);
    world.script.answer("b", Verdict::Success);
    world.breathe().await;
    let ruling = world.settle().await;
    assert_eq!(world.script.dropped(), 0, "the other's call goes on");
    assert!(!ruling.gates["dev-1"].gate.is_open());
    assert_eq!(ruling.gates["dev-9"].group, (2, 0));
    assert!(ruling.gates["dev-9"].gate.is_open());
    let annotations = world.set().metadata.annotations.expect("some");
    assert!(annotations.contains_key("applicationset.argoproj.io/phase-clusters-2"), "{annotations:?}");
}

#[tokio::test(start_paused = true)]
async fn a_set_that_is_being_deleted_has_its_calls_ended_and_nothing_written() {
    let mut world = World::new(json!([phase("dev", json!({"preHooks": [hook("a")]}))]), &["dev-1"]).await;
    world.settle().await;
    world.hold = Hold::Deleting;
    world.requests();
    let ruling = world.round().await.expect("a round");
    world.breathe().await;
    assert_eq!((world.script.dropped(), world.phases.under_way(), ruling.again), (1, 0, false));
    assert_eq!(world.requests(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_targets_with_three_hooks_each_stay_small() {
    let hooks = json!([hook_per_target("a"), hook_per_target("b"), hook_per_target("c")]);
    let names: Vec<String> = (0..1000).map(|at| format!("dev-{at:04}-some-longer-name")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // The definition that is installed takes it too.
    let definition =
        baton_api::crds().into_iter().find(|crd| crd["spec"]["names"]["kind"] == "ApplicationSet");
    let phases = json!([phase("dev", json!({"preHooks": hooks, "waitDuration": "1h"}))]);
    let strategy = json!({"type": "phaseDeployment", "phases": phases});
    let mut world = World::with(strategy, &names, definition.expect("a definition")).await;
    world.settle().await;
    // An earlier life has made most of the calls.
    world.crash();
    let mut whole = world.status();
    let results = &mut whole.phases[0].pre_hooks;
    let pattern = results.iter().find(|result| !result.target.is_empty()).expect("a call").clone();
    results.clear();
    for (hook, through) in [("a", 1000), ("b", 1000), ("c", 980)] {
        let result = |target: &str| HookResult {
            name: hook.to_owned(),
            target: target.to_owned(),
            state: HookState::Succeeded,
            finished_at: pattern.started_at.clone(),
            duration_milliseconds: 1234,
            code: Some(200),
            ..pattern.clone()
        };
        let summary = HookResult { through: names[through - 1].to_owned(), attempt: 0, ..result("") };
        results.push(summary);
        results.extend(names[..through].iter().map(|name| result(name)));
    }
    let whole_size = details::size(&whole);
    world.store(&whole).await;
    let seeded = details::size(&world.status());
    world.script.always(Verdict::Success);
    let before = world.script.made().len();
    world.settle().await;
    assert_eq!(world.state(0), PhaseState::Deploying);
    assert_eq!(world.script.made().len() - before, 20, "nobody was called twice");
    for name in &names {
        world.see(name, Progress::UnderWay);
    }
    world.settle().await;
    let size = details::size(&world.status());
    assert!(whole_size > details::BUDGET && seeded.max(size) <= details::BUDGET, "{seeded} and {size} bytes");
    assert!(world.objects("configmaps").len() > 10);
    world.requests();
    world.round().await.expect("a round");
    assert_eq!(world.requests(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_api_that_drops_the_status_is_told_of() {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let status = json!({"type": "object", "properties": {"conditions": {"type": "array", "items": any}}});
    let schema = json!({"type": "object", "properties": {"spec": any, "status": status}});
    let strategy =
        json!({"type": "phaseDeployment", "phases": [phase("dev", json!({"preHooks": [hook("a")]}))]});
    let world = World::with(strategy, &["dev-1"], defined(schema)).await;
    for _ in 0..3 {
        let error = world.round().await.expect_err("it is not kept");
        assert!(matches!(error, PhaseError::NotKept), "{error}");
    }
    assert!(world.script.made().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_generator_that_takes_the_place_of_another_begins_anew_with_hooks_of_its_own() {
    let strategy = json!({
        "type": "phaseDeployment",
        "phases": [{
            "name": "only", "targets": [{"matchExpressions": [{"key": "name", "operator": "Exists"}]}],
            "preHooks": [hook("gate")],
        }],
    });
    let mut world = World::with(strategy.clone(), &["prod-1"], super::world::definition()).await;
    world.settle().await;
    world.script.answer("gate", Verdict::Success);
    world.breathe().await;
    world.deploy().await;
    assert_eq!(world.state(0), PhaseState::Complete);
    // Another is set before it, which is to go just so.
    let generator = json!({"clusters": {}, "deploymentStrategy": strategy});
    world.edit(json!({"spec": {"generators": [generator, generator]}})).await;
    world.targets = [(0, fleet(&["dev-1"])), (1, fleet(&["prod-1"]))].into();
    world.begin_run(1, "p1");
    world.see("prod-1", Progress::Done);
    let ruling = world.settle().await;
    assert!(matches!(ruling.gates["dev-1"].gate, Gate::Held(_)), "{:?}", ruling.gates["dev-1"]);
    let states =
        world.set().status.phases.iter().map(|phases| phases.phases[0].state.clone()).collect::<Vec<_>>();
    assert_eq!(states, [PhaseState::PreHooks, PhaseState::PreHooks]);
    assert_eq!(world.script.names(), ["gate"; 3], "what has passed for others has not passed for them");
}
