//! What is told of phases to people: beforehand of a whole set, and meanwhile what is new.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_api::ApplicationSet;
use baton_api::phase_status::{HookState, PhaseState};
use baton_hooks::{Language, Verdict};
use baton_phases::preview::{Preview, Proposal, changes, preview};
use baton_phases::standing::{About, news, tally, waits};
use baton_phases::{Progress, Target, compile_anywhere};

use crate::world::{PATH, World, broken, fleet, hook, hook_per_target, phase, strategy};

fn set(phases: Option<&str>, more: &str) -> ApplicationSet {
    let strategy = phases.map(|phases| {
        let phases: String = phases.lines().map(|line| format!("      {line}\n")).collect();
        format!("    deploymentStrategy:\n      type: phaseDeployment\n      phases:\n{phases}")
    });
    let text = format!(
        "metadata: {{}}\nspec:\n  generators:\n  - clusters: {{}}\n{}{more}  template: {{}}\n",
        strategy.unwrap_or_default()
    );
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn told(set: &ApplicationSet, before: Option<&ApplicationSet>, targets: &[Target]) -> Vec<Preview> {
    let labels = |name: &str| {
        let env = name.split('-').next().unwrap_or_default();
        BTreeMap::from([("env".to_owned(), env.to_owned())])
    };
    preview(&Proposal {
        set,
        before,
        targets: &BTreeMap::from([(0, targets.to_vec())]),
        labels: &labels,
        kinds: &|_| "clusters".to_owned(),
    })
}

#[test]
fn a_set_is_told_of_generator_by_generator() {
    let phases = phase("dev", "dev", "") + &phase("none", "none", "");
    let told = &told(&set(Some(&phases), ""), None, &fleet(&["dev-a", "prod-a"]))[0];
    assert_eq!((told.generator, told.generator_type.as_str(), told.applications), (0, "clusters", 2));
    let forecast = told.forecast.as_ref().expect("phases");
    assert_eq!(forecast.unassigned, ["prod-a"]);
    assert_eq!(
        forecast.warnings,
        [
            "phase \"none\" matches no Application and is passed over",
            "prod-a is in no phase and stays as it is"
        ]
    );
    assert_eq!(told.problems, [""; 0]);
}

#[test]
fn of_what_was_put_back_it_is_told_that_nothing_changes_by_itself() {
    let phases = phase("dev", "dev", "onFailure: {action: rollback}") + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["dev-a", "prod-a"]);
    world.settle();
    world.fail("dev-a");
    world.settle();
    world.see("dev-a", Progress::Done);
    world.seen.get_mut("dev-a").expect("it is there").pin = "old".into();
    world.settle();
    let mut before = set(Some(&phases), "");
    before.status.phases = vec![world.status().clone()];
    let warnings = |after: &ApplicationSet| {
        let told = told(after, Some(&before), &world.targets).remove(0);
        told.forecast.expect("phases").warnings
    };
    let same = warnings(&before);
    let begin = "phase \"dev\" is RolledBack: 1 Application stays put back, and nobody else changes; it needs a new commit";
    assert!(same.len() == 1 && same[0].starts_with(begin), "{same:?}");
    let other = set(Some(&phases), "  goTemplate: true\n");
    assert_eq!(warnings(&other), [""; 0], "another begins");
}

#[test]
fn who_joins_a_rollout_on_its_way_takes_the_place_of_nobody_who_has_begun() {
    let phases = phase("canary", "dev", "maxUpdate: 1\nwaitDuration: 1h") + &phase("all", "dev", "");
    let mut world = World::new(&phases, &["dev-b", "dev-c"]);
    world.deploy();
    assert_eq!((world.state(0), world.open()), (PhaseState::Waiting, vec!["dev-b".to_owned()]));
    let mut before = set(Some(&phases), "");
    before.status.phases = vec![world.status().clone()];
    let all = fleet(&["dev-a", "dev-b", "dev-c"]);
    let shares = |after: &ApplicationSet| {
        let told = told(after, Some(&before), &all);
        let forecast = told[0].forecast.clone().expect("phases");
        forecast.phases.into_iter().map(|phase| phase.applications).collect::<Vec<_>>()
    };
    assert_eq!(shares(&before), [vec!["dev-b"], vec!["dev-a", "dev-c"]]);
    world.targets = all.clone();
    world.see("dev-a", Progress::NotStarted);
    world.settle();
    let canary: Vec<&str> = world.phase(0).applications.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(canary, ["dev-b"], "and so it comes");
    // Another template begins anew, and with it the shares.
    let mut after = set(Some(&phases), "  goTemplate: true\n");
    assert_eq!(shares(&after), [vec!["dev-a"], vec!["dev-b", "dev-c"]]);
    after.spec = before.spec.clone();
    before.status.phases[0].current_phase = 2;
    let told = told(&after, Some(&before), &all);
    let first = &told[0].forecast.as_ref().expect("phases").phases[0];
    assert_eq!(first.applications, ["dev-a"], "the next commit deals anew");
}

#[test]
fn what_keeps_a_rollout_from_beginning_is_a_problem() {
    let nobody = &told(&set(Some(&phase("none", "none", "")), ""), None, &fleet(&["dev-a"]))[0];
    assert!(nobody.problems[0].contains("no phase matches any Application"), "{:?}", nobody.problems);
    let wrong = &told(&set(Some(&phase("Dev", "dev", "")), ""), None, &fleet(&["dev-a"]))[0];
    assert!(wrong.forecast.is_none() && wrong.problems[0].contains("phases[0].name"), "{wrong:?}");
    let step =
        |env: &str| format!("      - matchExpressions: [{{key: env, operator: In, values: [{env}]}}]\n");
    let strategy = format!(
        "  strategy:\n    type: RollingSync\n    rollingSync:\n      steps:\n{}{}",
        step("prod"),
        step("dev")
    );
    let phases = phase("dev", "dev", "") + &phase("prod", "prod", "");
    let clash = &told(&set(Some(&phases), &strategy), None, &fleet(&["dev-a", "prod-a"]))[0];
    assert!(clash.problems[0].contains("contradict each other"), "{:?}", clash.problems);
    assert_eq!(clash.held, ["dev-a", "prod-a"], "nobody would go");
}

#[test]
fn what_only_some_operators_allow_is_told_apart() {
    let hooks = "preHooks: [{name: a, type: http, http: {url: \"http://10.0.0.1/\"}}]";
    let text = format!("type: phaseDeployment\nphases:\n{}", phase("dev", "dev", hooks));
    let read = compile_anywhere(&strategy(&text), PATH, Language::Params);
    assert!(
        read.compiled.plan.is_some() && read.compiled.findings.is_empty(),
        "{:?}",
        read.compiled.findings
    );
    let refused: Vec<String> = read.operator.iter().map(ToString::to_string).collect();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(read.operator.iter().all(|finding| !finding.is_error()));
}

#[test]
fn row_44_a_plan_says_how_many_go_when_the_field_is_removed() {
    let phases = phase("dev", "dev", "") + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["dev-a", "dev-b", "prod-a", "prod-b", "x-a"]);
    world.settle();
    let mut before = set(Some(&phases), "");
    before.status.phases = world.stored.iter().cloned().collect();
    let after = set(None, "");
    let targets = world.targets.clone();
    let sentence = |before: &ApplicationSet| {
        told(&after, Some(before), &targets)[0].removal.as_ref().map(|removal| removal.sentence())
    };
    assert_eq!(
        sentence(&before).as_deref(),
        Some(
            "deploymentStrategy is removed: phase \"dev\" is finished first, then 3 Applications go at once; \
             without `automated`, a person syncs them"
        )
    );
    // What is kept beside the status is counted all the same.
    let dev = &mut before.status.phases[0].phases[0];
    (dev.applications, dev.details_ref) = (Vec::new(), "elsewhere".to_owned());
    assert!(
        sentence(&before).is_some_and(|told| told.contains("then 3 Applications")),
        "{:?}",
        sentence(&before)
    );
    before.status.phases.clear();
    assert_eq!(
        sentence(&before).as_deref(),
        Some(
            "deploymentStrategy is removed: no phase is open, and 5 Applications go at once; \
             without `automated`, a person syncs them"
        )
    );
    assert_eq!(told(&after, Some(&after), &targets), [], "it never had phases");
    let shifts = changes(&before, &after);
    assert_eq!((shifts.len(), shifts[0].from.as_str(), shifts[0].to.as_str()), (1, "dev, prod", "none"));
}

#[test]
fn what_is_new_is_told_once_and_in_order() {
    let fields =
        format!("preHooks: [{}]\nwaitDuration: 5m", hook("ask", ", retry: {interval: 5s, deadline: 1h}"));
    let mut world = World::new(&phase("dev", "dev", &fields), &["dev-a"]);
    let mut known = Vec::new();
    let mut look = |world: &World| -> Vec<String> {
        let next: Vec<_> = world.stored.iter().cloned().collect();
        let told = news(&known, &next, world.now);
        assert!(
            told.iter().all(|one| (one.about == About::Call) == one.text.starts_with("hook")),
            "{told:?}"
        );
        known = next;
        told.into_iter().map(|one| one.text).collect()
    };
    world.settle();
    assert_eq!(
        look(&world),
        ["a rollout of 1 phase begins", "phase dev begins", "hook ask of dev is called"]
    );
    world.answer("ask", broken());
    world.tick();
    let again = look(&world);
    assert!(
        again.len() == 1 && again[0].starts_with("hook ask of dev did not pass and is tried again"),
        "{again:?}"
    );
    let phase = &world.stored.as_ref().expect("a status").phases[0];
    assert!(waits(phase, world.now).starts_with("ask, attempt 2 in 5s"), "{}", waits(phase, world.now));
    assert_eq!(tally(phase), BTreeMap::from([(HookState::Retrying.as_str(), 1)]));
    world.wait(Duration::from_secs(5));
    world.settle();
    assert_eq!(look(&world), [""; 0], "further attempts are no news");
    world.answer("ask", Verdict::Success);
    world.settle();
    assert_eq!(look(&world), ["hook ask of dev passed at attempt 2", "phase dev deploys 1 Application"]);
    world.see("dev-a", Progress::Done);
    world.settle();
    assert_eq!(look(&world), ["phase dev waits 5m"]);
    let phase = &world.stored.as_ref().expect("a status").phases[0];
    assert_eq!(
        (&phase.state, waits(phase, world.now).as_str()),
        (&PhaseState::Waiting, "the end of its wait, in 5m")
    );
    world.wait(Duration::from_secs(300));
    world.settle();
    assert_eq!(look(&world), ["phase dev is complete", "every phase is complete"]);
}

#[test]
fn what_is_called_for_each_target_is_counted_by_targets() {
    let fields = format!("checks: [{}]", hook_per_target("probe", ""));
    let mut world = World::new(&phase("dev", "dev", &fields), &["dev-a", "dev-b"]);
    world.settle();
    let before: Vec<_> = world.stored.iter().cloned().collect();
    world.deploy();
    world.settle();
    let after: Vec<_> = world.stored.iter().cloned().collect();
    let told: Vec<String> = news(&before, &after, world.now).into_iter().map(|one| one.text).collect();
    assert_eq!(told, ["phase dev is checked", "check probe of dev for 2 Applications is called"]);
    assert!(
        waits(world.phase(0), world.now).ends_with(", and 1 more"),
        "{}",
        waits(world.phase(0), world.now)
    );
}
