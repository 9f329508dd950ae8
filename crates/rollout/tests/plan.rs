//! Plans: who goes when, who goes away, and what an edit moves.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::strategy::Strategy;
use baton_rollout::fuse::{Approval, Fuse, fingerprint};
use baton_rollout::plan::{Candidate, Change, Plan, Present, Proposal, Stage, plan};
use baton_rollout::shift::{Move, Place, between};
use serde_json::{Value, json};

fn strategy(value: Value) -> Strategy {
    serde_json::from_value(value).expect("a strategy")
}

/// Steps over the label `env`, in this order.
fn rolling(envs: &[&str]) -> Value {
    let steps: Vec<Value> = envs
        .iter()
        .map(|env| json!({"matchExpressions": [{"key": "env", "operator": "In", "values": [env]}]}))
        .collect();
    json!({"type": "RollingSync", "rollingSync": {"steps": steps}})
}

fn labels(env: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("env".to_owned(), env.to_owned())])
}

fn wanted(all: &[(&str, &str, Change)]) -> Vec<Candidate> {
    let one = |(name, env, change): &(&str, &str, Change)| Candidate {
        name: (*name).to_owned(),
        labels: labels(env),
        change: change.clone(),
    };
    all.iter().map(one).collect()
}

fn present(all: &[(&str, &str)]) -> Vec<Present> {
    let one = |(name, env): &(&str, &str)| Present {
        name: (*name).to_owned(),
        labels: labels(env),
        uid: format!("uid-of-{name}"),
        terminating: false,
    };
    all.iter().map(one).collect()
}

fn planned(strategy: &Strategy, wanted: &[Candidate], present: Option<&[Present]>) -> Plan {
    let fuse = Fuse::Share(50);
    plan(&Proposal { strategy: Some(strategy), wanted, present, may_delete: true, fuse, approval: None })
}

fn places(plan: &Plan) -> Vec<(&str, i64, Option<usize>)> {
    plan.applications.iter().map(|one| (one.name.as_str(), one.step.unwrap_or(0), one.batch)).collect()
}

fn spec() -> Change {
    Change::Spec { fields: vec!["source.path".to_owned()] }
}

#[test]
fn applications_go_in_their_step_in_batches_of_max_update() {
    let mut value = rolling(&["dev", "prod"]);
    value["rollingSync"]["steps"][1]["maxUpdate"] = json!("50%");
    let wanted = wanted(&[
        ("p4", "prod", spec()),
        ("p1", "prod", spec()),
        ("p2", "prod", Change::Unchanged),
        ("p3", "prod", spec()),
        ("p5", "prod", Change::New),
        ("d", "dev", spec()),
    ]);
    let plan = planned(&strategy(value), &wanted, None);
    assert_eq!(
        places(&plan),
        [
            ("d", 1, Some(1)),
            ("p1", 2, Some(1)),
            ("p3", 2, Some(1)),
            ("p4", 2, Some(2)),
            ("p5", 2, Some(2)),
            ("p2", 2, None)
        ],
        "half of five, rounded down, is two at once; what stays as it is takes no slot"
    );
    let step = &plan.steps[1];
    assert_eq!((step.total, step.changing, step.batches, step.at_once), (5, 4, 2, Some(2)));
    assert_eq!((step.selects.as_str(), step.max_update.as_deref()), ("env=prod", Some("50%")));
    assert_eq!(plan.changing(), 5);
    assert!(plan.issues.is_empty(), "{:?}", plan.issues);
}

#[test]
fn held_empty_overlapping_and_unmatched_are_told() {
    let value = json!({"type": "RollingSync", "rollingSync": {"steps": [
        {"matchExpressions": [{"key": "env", "operator": "In", "values": ["dev", "qa"]}], "maxUpdate": 0},
        {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod", "lab"]}]},
        {"matchExpressions": [{"key": "env", "operator": "In", "values": ["prod"]}], "maxUpdate": "many"},
    ]}});
    let plan = planned(
        &strategy(value),
        &wanted(&[("d", "dev", spec()), ("l", "lab", spec()), ("p", "prod", spec())]),
        None,
    );
    assert_eq!(places(&plan), [("d", 1, None), ("p", 3, Some(1)), ("l", -1, None)]);
    assert_eq!(plan.applications[0].also_matches, [2]);
    let issues = plan.issues.join("\n");
    for part in [
        "step 3: maxUpdate \"many\"",
        "step 2 holds no Application",
        "step 1 is held (maxUpdate 0)",
        "d is in step 1, and step 2 matches too",
        "l is in no step",
    ] {
        assert!(issues.contains(part), "{part}: {issues}");
    }
    let all = planned(&strategy(json!({})), &wanted(&[("d", "dev", spec())]), None);
    assert_eq!((all.strategy, all.steps.len(), all.applications[0].step), ("AllAtOnce", 0, None));
    let none = planned(&strategy(rolling(&[])), &[], None);
    assert!(none.issues[0].contains("no steps"), "{:?}", none.issues);
}

#[test]
fn what_leaves_goes_in_the_order_of_deletion() {
    let live = present(&[("a", "dev"), ("b", "dev"), ("c", "prod"), ("x", "lab"), ("z", "prod")]);
    let keep = wanted(&[("z", "prod", Change::Unchanged)]);
    let stage = |step: i64, names: &[&str]| Stage {
        step: Some(step),
        at_once: Some(1),
        applications: names.iter().map(|name| (*name).to_owned()).collect(),
    };
    let mut value = rolling(&["dev", "prod"]);
    value["deletionOrder"] = json!("reverse");
    let plan = planned(&strategy(value), &keep, Some(&live));
    let deletion = &plan.deletion;
    assert_eq!(deletion.stages, [stage(2, &["c"]), stage(1, &["a", "b"]), stage(-1, &["x"])]);
    assert_eq!((deletion.leaving, deletion.total, deletion.percent), (4, 5, 80));
    assert_eq!(deletion.fuse, None, "four are no mass");
    assert_eq!(deletion.teardown, [stage(2, &["z"])]);

    let custom = json!({"deletionOrder": "Custom", "deletionSync": {"steps": [
        {"matchExpressions": [{"key": "env", "operator": "In", "values": ["dev"]}], "maxUpdate": 0},
        {"maxUpdate": "100%"},
    ]}});
    let plan = planned(&strategy(custom), &keep, Some(&live));
    let rest = Stage { at_once: Some(2), ..stage(2, &["c", "x"]) };
    assert_eq!(plan.deletion.stages, [stage(1, &["a", "b"]), rest]);

    let more: Vec<(String, String)> = (0..6).map(|n| (format!("a{n}"), "dev".to_owned())).collect();
    let more: Vec<(&str, &str)> = more.iter().map(|(name, env)| (name.as_str(), env.as_str())).collect();
    let plan = planned(&strategy(json!({})), &keep, Some(&present(&more)));
    assert_eq!(plan.deletion.fuse.as_deref(), Some("6 of 6 are more than 50% of the set"));

    let plan = planned(&strategy(json!({})), &keep, Some(&live));
    assert_eq!((plan.deletion.stages.len(), plan.deletion.stages[0].at_once), (1, None));
}

#[test]
fn an_order_that_cannot_be_followed_or_a_policy_that_forbids_deletes_nothing() {
    let live = present(&[("a", "dev"), ("b", "dev")]);
    for (value, part) in [
        (json!({"deletionOrder": "Reverse"}), "deletionOrder Reverse needs"),
        (json!({"deletionOrder": "Custom"}), "deletionOrder Custom needs"),
        (json!({"deletionOrder": "Sideways"}), "deletionOrder \"Sideways\" is none of"),
    ] {
        let plan = planned(&strategy(value), &[], Some(&live));
        assert!(plan.deletion.problem.as_deref().is_some_and(|problem| problem.contains(part)), "{part}");
        assert_eq!((plan.deletion.leaving, plan.deletion.stages.len()), (2, 0));
        assert_eq!(plan.deletion.fuse, None);
    }
    let strategy = Strategy::default();
    let kept = plan(&Proposal {
        strategy: Some(&strategy),
        wanted: &[],
        present: Some(&live),
        may_delete: false,
        fuse: Fuse::Share(50),
        approval: None,
    });
    assert!(kept.deletion.kept && kept.deletion.stages.is_empty());
}

#[test]
fn an_edit_moves_applications_between_steps_and_batches() {
    let mut old = rolling(&["dev", "prod"]);
    old["rollingSync"]["steps"][1]["maxUpdate"] = json!(1);
    let mut new = rolling(&["dev", "prod", "lab"]);
    new["rollingSync"]["steps"][1]["maxUpdate"] = json!(2);
    new["deletionOrder"] = json!("Reverse");
    let any = Change::Assumed;
    let before = planned(
        &strategy(old),
        &wanted(&[
            ("a", "dev", any.clone()),
            ("b", "prod", any.clone()),
            ("c", "prod", any.clone()),
            ("gone", "dev", any.clone()),
        ]),
        None,
    );
    let after = planned(
        &strategy(new),
        &wanted(&[
            ("a", "prod", Change::Unchanged),
            ("b", "prod", Change::Unchanged),
            ("c", "prod", Change::Unchanged),
            ("new", "lab", Change::New),
        ]),
        None,
    );
    let shifts = between(&before, &after);
    let place = |step, batch| Place { step: Some(step), batch: Some(batch) };
    let moves: Vec<(&str, Move)> =
        shifts.applications.iter().map(|shift| (shift.name.as_str(), shift.what.clone())).collect();
    assert_eq!(
        moves,
        [
            ("a", Move::Step { from: place(1, 1), to: place(2, 1) }),
            ("gone", Move::Leaves { from: place(1, 1) }),
            ("new", Move::Joins { to: place(3, 1) }),
        ]
    );
    let settings: Vec<String> =
        shifts.settings.iter().map(|one| format!("{}: {} -> {}", one.name, one.from, one.to)).collect();
    assert_eq!(
        settings,
        ["deletionOrder: AllAtOnce -> Reverse", "step 2 maxUpdate: 1 -> 2", "step 3: none -> env=lab"]
    );
    assert!(between(&before, &before).is_empty());

    let narrower = {
        let mut value = rolling(&["dev", "prod"]);
        value["rollingSync"]["steps"][1]["maxUpdate"] = json!(2);
        let all = [("a", "dev"), ("b", "prod"), ("c", "prod"), ("gone", "dev")];
        planned(&strategy(value), &wanted(&all.map(|(name, env)| (name, env, Change::Unchanged))), None)
    };
    let shifts = between(&before, &narrower);
    assert_eq!(shifts.applications.len(), 1);
    assert_eq!(shifts.applications[0].what, Move::Batch { from: place(2, 2), to: place(2, 1) });
}

#[test]
fn the_verdict_of_the_fuse_is_told_either_way() {
    let strategy = strategy(rolling(&["dev"]));
    let there: Vec<String> = (0..8).map(|n| format!("a{n}")).collect();
    let mut there = present(&there.iter().map(|name| (name.as_str(), "dev")).collect::<Vec<_>>());
    let keep = |count: usize| -> Vec<Candidate> {
        let names: Vec<String> = (0..count).map(|n| format!("a{n}")).collect();
        wanted(&names.iter().map(|name| (name.as_str(), "dev", Change::Unchanged)).collect::<Vec<_>>())
    };
    let says = |wanted: &[Candidate], present: &[Present], approval: Option<Approval>| {
        let fuse = Fuse::Share(50);
        let strategy = Some(&strategy);
        let plan =
            plan(&Proposal { strategy, wanted, present: Some(present), may_delete: true, fuse, approval });
        plan.deletion.verdict.map(|verdict| (verdict.share, verdict.says))
    };
    let share = "50%".to_owned();
    assert_eq!(says(&keep(8), &there, None), None, "nobody leaves");
    assert_eq!(says(&keep(4), &there, None), Some((share.clone(), "Free")));
    assert_eq!(says(&keep(3), &there, None), Some((share.clone(), "Holds")));
    let doomed: Vec<(Arc<str>, Arc<str>)> =
        there[3..].iter().map(|one| (one.name.as_str().into(), one.uid.as_str().into())).collect();
    let approval = Some(Approval::Doomed(fingerprint(&doomed)));
    assert_eq!(says(&keep(3), &there, approval), Some((share.clone(), "Approved")));
    there[7].terminating = true;
    assert_eq!(says(&keep(3), &there, None), Some((share, "Free")), "one goes already, and four are no mass");
}
