//! Phases beside steps and beside each other, and what is told of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::phase_status::{GeneratorPhases, PhaseFailure, PhaseState, PhaseStatus};
use baton_api::strategy::RolloutStep;
use baton_phases::forecast::forecast;
use baton_phases::lint::{Contradiction, contradictions};
use baton_phases::mirror::{annotations, generator_phase_status, generator_phase_status_to_json};
use baton_phases::{Progress, Target, assign};
use baton_rollout::steps::Steps;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::world::{World, fleet, hook, hook_per_target, phase, plan};

fn steps(envs: &[&str]) -> Steps {
    let step = |env: &&str| -> RolloutStep {
        let text = format!("matchExpressions: [{{key: env, operator: In, values: [{env}]}}]");
        serde_saphyr::from_str(&text).expect("a step")
    };
    Steps::read(&envs.iter().map(step).collect::<Vec<_>>()).0
}

fn clashes(envs: &[&str], targets: &[Target]) -> Vec<String> {
    let plan = plan(&(phase("dev", "dev", "") + &phase("prod", "prod", "")));
    let roster = assign(&plan, targets).expect("they fit");
    let labels = |name: &str| {
        let env = name.split('-').next().unwrap_or_default();
        BTreeMap::from([("env".to_owned(), env.to_owned())])
    };
    contradictions(&plan, &roster, &steps(envs), labels).iter().map(ToString::to_string).collect()
}

#[test]
fn row_08_phases_and_steps_whose_orders_contradict_each_other_are_found() {
    let targets = fleet(&["dev-a", "dev-b", "prod-a", "test-a"]);
    assert!(clashes(&["dev", "prod"], &targets).is_empty());
    assert!(clashes(&["prod"], &targets).is_empty(), "who is in no step waits for none");
    assert!(clashes(&[], &targets).is_empty());
    let found = clashes(&["prod", "dev"], &targets);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].contains("dev-") && found[0].contains("prod-a") && found[0].contains("neither can"),
        "{found:?}"
    );
}

/// A phase with a hook before and one after it, for the environments of a world whose steps may say otherwise.
fn with_hooks() -> World {
    let fields = |env: &str| {
        let (before, after) = (hook(&format!("before-{env}"), ""), hook(&format!("after-{env}"), ""));
        format!("preHooks: [{before}]\npostHooks: [{after}]")
    };
    let phases = ["dev", "prod"].map(|env| phase(env, env, &fields(env))).concat();
    World::new(&phases, &["dev-a", "prod-a"])
}

/// Steps in the other order.
pub(crate) fn prod_first() -> BTreeMap<Arc<str>, usize> {
    [("prod-a", 0), ("dev-a", 1)].map(|(name, step)| (name.into(), step)).into()
}

fn clash() -> Contradiction {
    Contradiction {
        first: "dev-a".into(),
        first_phase: "dev".into(),
        first_step: 2,
        second: "prod-a".into(),
        second_phase: "prod".into(),
        second_step: 1,
    }
}

#[test]
fn row_08_nothing_is_called_opened_or_stored_while_phases_and_steps_contradict_each_other() {
    let mut world = with_hooks();
    world.steps = prod_first();
    let decision = world.settle();
    assert_eq!((world.made.len(), world.stored.as_ref()), (0, None), "no rollout begins");
    assert!(decision.gates.len() == 2 && decision.gates.values().all(|gate| !gate.is_open()));
    // It is named, and only another configuration ends it.
    let wait = &decision.waits[0];
    assert_eq!((wait.object.as_str(), wait.config), ("dev-a", true));
    assert!(wait.message.contains("contradict"), "{}", wait.message);
    assert_eq!(decision.notices[0].reason, "InvalidPhaseConfig");
    assert!(decision.invalid.is_some_and(|why| why == clash().to_string()));
    // When one of the two orders is another, it begins.
    world.steps = [("dev-a".into(), 0), ("prod-a".into(), 1)].into();
    world.settle();
    assert_eq!(world.calling(), ["before-dev"]);
}

#[test]
fn row_08_a_contradiction_that_comes_up_on_the_way_ends_what_is_called_and_lets_nobody_go_on() {
    let mut world = with_hooks();
    world.settle();
    world.pass("before-dev");
    world.see("dev-a", Progress::Done);
    world.settle();
    assert_eq!(world.calling(), ["after-dev"]);
    let before = world.stored.clone();
    world.steps = prod_first();
    world.settle();
    assert_eq!((world.calling(), world.open()), (Vec::new(), Vec::new()));
    assert_eq!(world.stored, before, "how far it had come stays");
    world.steps.clear();
    world.settle();
    assert_eq!((world.times("before-dev"), world.times("after-dev")), (1, 2), "what has passed has passed");
    world.pass("after-dev");
    assert_eq!(world.calling(), ["before-prod"]);
}

#[test]
fn row_08_of_several_contradictions_the_first_is_told_and_how_many_there_are() {
    let phases = ["dev", "test", "prod"].map(|env| phase(env, env, "")).concat();
    let mut world = World::new(&phases, &["dev-a", "prod-a", "test-a"]);
    world.steps = [("dev-a", 2), ("test-a", 1), ("prod-a", 0)].map(|(name, at)| (name.into(), at)).into();
    let wait = world.settle().waits[0].clone();
    assert!(wait.object == "dev-a" && wait.message.ends_with("(and 1 more)"), "{}", wait.message);
}

#[test]
fn row_08_who_joins_on_the_way_contradicts_nothing_where_whoever_has_begun_keeps_its_place() {
    let all = "targets: [{matchExpressions: [{key: name, operator: Exists}]}]";
    let phases =
        format!("- name: canary\n  {all}\n  maxUpdate: 1\n  waitDuration: 1h\n- name: all\n  {all}\n");
    let mut world = World::new(&phases, &["b-dev", "c-prod"]);
    world.steps = [("b-dev".into(), 0), ("c-prod".into(), 1)].into();
    world.deploy();
    assert_eq!((world.state(0), world.open()), (PhaseState::Waiting, vec!["b-dev".to_owned()]));
    // By its name alone it would be the canary, and go before the step of b-dev.
    world.targets = fleet(&["a-prod", "b-dev", "c-prod"]);
    world.see("a-prod", Progress::NotStarted);
    world.steps.insert("a-prod".into(), 1);
    assert_eq!(world.settle().invalid, None);
    assert_eq!((world.state(0), world.open()), (PhaseState::Waiting, vec!["b-dev".to_owned()]));
    // In the next rollout, in which nobody has begun, it is.
    world.rollout = "2-a-b".to_owned();
    world.seen.values_mut().for_each(|one| (one.progress, one.touched) = (Progress::NotStarted, false));
    assert!(world.settle().invalid.is_some_and(|why| why.contains("contradict") && why.contains("a-prod")));
}

fn status(generator: i64, kind: &str, current: i64) -> GeneratorPhases {
    GeneratorPhases {
        generator,
        generator_type: kind.into(),
        current_phase: current,
        total_phases: 3,
        ..Default::default()
    }
}

#[test]
fn row_32_annotations_mirror_the_status_with_a_number_from_the_second_of_a_kind_on() {
    let all = [status(0, "clusters", 1), status(1, "git", 0), status(3, "clusters", 3)];
    let present = BTreeMap::from([
        ("applicationset.argoproj.io/phase-clusters".to_owned(), "1".to_owned()),
        ("applicationset.argoproj.io/phase-list".to_owned(), "0".to_owned()),
        ("somebody.else/phase-git".to_owned(), "7".to_owned()),
    ]);
    let expected = BTreeMap::from([
        ("applicationset.argoproj.io/phase-clusters-3".to_owned(), Some("3".to_owned())),
        ("applicationset.argoproj.io/phase-git".to_owned(), Some("0".to_owned())),
        ("applicationset.argoproj.io/phase-list".to_owned(), None),
    ]);
    assert_eq!(annotations(&all, &present), expected);
    assert!(
        annotations(&[status(0, "clusters", 1)], &BTreeMap::from([present.into_iter().next().expect("one")]))
            .is_empty()
    );
}

#[test]
fn row_33_annotations_are_written_and_never_read() {
    // Nothing of the situation holds annotations; whatever they say, the decision is the same. What somebody wrote into
    // one is brought back.
    let present = BTreeMap::from([("applicationset.argoproj.io/phase-clusters".to_owned(), "9".to_owned())]);
    let changes = annotations(&[status(0, "clusters", 1)], &present);
    assert_eq!(changes.into_values().collect::<Vec<_>>(), [Some("1".to_owned())]);
}

#[test]
fn row_34_a_rollback_is_mirrored_under_a_legal_name_with_its_time() {
    let at = jiff::Timestamp::from_second(1_800_000_000).expect("a time");
    let failure = PhaseFailure { action: "rollback".into(), at: Some(Time(at)), ..Default::default() };
    let name = "p".repeat(40);
    let phase = PhaseStatus { name: name.clone(), failure: Some(failure.clone()), ..Default::default() };
    let stopped = PhaseFailure { action: "stop".into(), ..failure };
    let other = PhaseStatus { name: "other".into(), failure: Some(stopped), ..Default::default() };
    let all = [GeneratorPhases { phases: vec![phase, other], ..status(0, "clusters", 0) }];
    let changes = annotations(&all, &BTreeMap::new());
    let key = format!("applicationset.argoproj.io/rollback-phase-{name}");
    assert!(key.split('/').next_back().is_some_and(|name| name.len() <= 63));
    assert_eq!(changes.get(&key), Some(&Some("2027-01-15T08:00:00Z".to_owned())));
    assert_eq!(changes.len(), 2);
}

#[test]
fn row_36_phases_count_from_0_and_the_end_is_the_number_of_them() {
    let all = [status(0, "clusters", 1), status(2, "git", 3)];
    assert_eq!(generator_phase_status(&all, 0), Some((1, 3)));
    assert_eq!(generator_phase_status(&all, 2), Some((3, 3)));
    assert_eq!(generator_phase_status(&all, 1), None);
    assert_eq!(generator_phase_status_to_json(1, 3), r#"{"currentPhase":1,"totalPhases":3}"#);
}

#[test]
fn a_plan_tells_phase_by_phase_what_will_happen() {
    let fields = format!(
        "percentage: 50\nmaxConcurrent: 1\nwaitDuration: 5m\npreHooks: [{}]\nchecks: [{}]",
        hook("ask", ""),
        hook_per_target("probe", "")
    );
    let phases = phase("empty", "test", "")
        + &phase("canary", "prod", &fields)
        + &phase("rest", "prod", "percentage: 75");
    let told =
        forecast(&plan(&phases), &fleet(&["prod-a", "prod-b", "prod-c", "prod-d", "x-a"])).expect("they fit");
    let numbers: Vec<_> =
        told.phases.iter().map(|phase| (phase.matched, phase.updated, phase.applications.len())).collect();
    assert_eq!(numbers, [(0, 0, 0), (4, 2, 2), (4, 3, 1)]);
    let canary = &told.phases[1];
    assert_eq!(
        canary.sentence,
        "updates 2 of 4 matched Applications, at most 1 at once, then waits 5m; on failure: stop"
    );
    let calls: Vec<_> = canary.calls.iter().map(|call| (call.when, call.name.as_str(), call.times)).collect();
    assert_eq!(calls, [("pre", "ask", 1), ("check", "probe", 2)]);
    assert_eq!(told.unassigned, ["prod-d", "x-a"]);
    assert_eq!(told.warnings.len(), 2);
}
