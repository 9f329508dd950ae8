//! From sets and Applications to what people see, case by case.

use baton_api::{Application, ApplicationSet};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::board::{Counts, LaneState, Rollout, State, TargetState};
use super::{Action, changes, preview, rollout, sort};

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().expect("a time")
}

fn set(spec: Value, status: Value, annotations: Value) -> ApplicationSet {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "argocd", "uid": "s1", "annotations": annotations},
        "spec": spec, "status": status,
    }))
    .expect("a set")
}

fn steps() -> Value {
    let step = |env: &str| json!({"matchExpressions": [{"key": "env", "operator": "In", "values": [env]}]});
    let mut last = step("prod");
    last["waitDuration"] = "10m".into();
    json!({"template": {"spec": {"project": "shop"}},
        "strategy": {"type": "RollingSync", "rollingSync": {"steps": [step("dev"), last]}}})
}

fn application(name: &str, health: &str, sync: &str) -> Application {
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {"project": "shop", "destination": {"name": "east", "namespace": "x"}},
        "status": {"health": {"status": health}, "sync": {"status": sync, "revision": "b".repeat(40)},
            "history": [{"id": 1, "revision": "a".repeat(40)}]},
    }))
    .expect("an Application")
}

fn entry(name: &str, step: &str, status: &str, message: &str) -> Value {
    json!({"application": name, "step": step, "status": status, "message": message,
        "targetRevisions": ["b".repeat(40)], "lastTransitionTime": "2026-01-01T00:30:00Z"})
}

fn lane<'r>(rollout: &'r Rollout, id: &str) -> &'r super::board::Lane {
    rollout.lanes.iter().find(|lane| lane.id == id).unwrap_or_else(|| panic!("no lane {id}"))
}

#[test]
fn steps_are_lanes_with_their_applications() {
    let status = json!({
        "rollout": {"run": 4, "state": "Progressing", "step": 2, "startedAt": "2026-01-01T00:00:00Z",
            "revisions": [{"repoURL": "r", "targetRevision": "main", "revision": "b".repeat(40)}],
            "steps": [
                {"step": 1, "state": "Complete", "total": 1, "done": 1},
                {"step": 2, "state": "Open", "total": 2, "done": 0, "updating": 1, "maxUpdate": 1},
            ]},
        "applicationStatus": [
            entry("dev", "1", "Healthy", ""), entry("prod-a", "2", "Progressing", "Progressing: it syncs"),
            entry("prod-b", "2", "Waiting", ""), entry("stray", "-1", "Waiting", ""),
        ],
    });
    let applications = [
        application("dev", "Healthy", "Synced"),
        application("prod-a", "Progressing", "Synced"),
        application("prod-b", "Healthy", "OutOfSync"),
        application("stray", "Healthy", "Synced"),
    ];
    let told = rollout(&set(steps(), status, json!({})), &applications, now());
    assert_eq!(
        (told.summary.state, told.summary.strategy, told.summary.run),
        (State::Progressing, "RollingSync", 4)
    );
    assert_eq!(told.summary.revision, "b".repeat(7));
    assert_eq!(
        told.lanes.iter().map(|lane| lane.id.as_str()).collect::<Vec<_>>(),
        ["step-1", "step-2", "unmatched"]
    );
    let (first, second) = (lane(&told, "step-1"), lane(&told, "step-2"));
    assert_eq!((first.state, second.state), (LaneState::Done, LaneState::Open));
    assert_eq!(first.selector, "env In (dev)");
    assert_eq!(second.counts, Counts { total: 2, done: 0, updating: 1, failed: 0, waiting: 1 });
    let gates: Vec<(&str, &str)> = second.gates.iter().map(|gate| (gate.kind, gate.state)).collect();
    assert_eq!(gates, [("previous", "Passed"), ("wait", "Pending")]);
    let targets = second.targets.as_deref().expect("targets");
    assert_eq!((targets[0].name.as_str(), targets[0].state), ("prod-a", TargetState::Progressing));
    assert_eq!((targets[0].from.as_str(), targets[0].to.as_str()), ("aaaaaaa", "bbbbbbb"));
    assert_eq!(targets[0].cluster, "east");
    assert_eq!(told.command, "baton appset get web --namespace argocd --watch");
}

#[test]
fn the_state_says_who_has_to_act() {
    let run =
        |state: &str| json!({"run": 1, "state": state, "steps": [{"step": 1, "state": "Open", "total": 1}]});
    let phases = |state: &str, phase: &str| json!([{"generator": 0, "state": state, "phases": [{"name": "a", "state": phase}]}]);
    let condition =
        |kind: &str| json!([{"type": kind, "status": "True", "message": "no good", "reason": "R"}]);
    let plain = json!({"template": {"spec": {"project": "shop"}}});
    for (what, spec, status, annotations, expected) in [
        ("goes on", steps(), json!({"rollout": run("Progressing")}), json!({}), State::Progressing),
        ("is done", steps(), json!({"rollout": run("Complete")}), json!({}), State::Complete),
        ("failed", steps(), json!({"rollout": run("Failed")}), json!({}), State::Failed),
        ("was ended", steps(), json!({"rollout": run("Aborted")}), json!({}), State::Aborted),
        (
            "is held",
            steps(),
            json!({"rollout": run("Progressing")}),
            json!({"baton.dev/paused": "true"}),
            State::Paused,
        ),
        (
            "is held between runs",
            steps(),
            json!({"rollout": run("Complete")}),
            json!({"baton.dev/paused": "true"}),
            State::Paused,
        ),
        ("is idle", steps(), json!({}), json!({}), State::Idle),
        (
            "cannot be",
            steps(),
            json!({"conditions": condition("InvalidRolloutConfig")}),
            json!({}),
            State::Invalid,
        ),
        ("errs", plain.clone(), json!({"conditions": condition("ErrorOccurred")}), json!({}), State::Invalid),
        (
            "phase failed, which is an error of the set",
            plain.clone(),
            json!({"phases": phases("Failed", "Failed"), "conditions": [{"type": "ErrorOccurred", "status": "True",
                "message": "no good", "reason": "ApplicationSetRolloutError"}]}),
            json!({}),
            State::Failed,
        ),
        (
            "phase failed",
            plain.clone(),
            json!({"phases": phases("Failed", "Failed")}),
            json!({}),
            State::Failed,
        ),
        (
            "goes back",
            plain.clone(),
            json!({"phases": phases("RollingBack", "RollingBack")}),
            json!({}),
            State::RollingBack,
        ),
        (
            "phase aborted",
            plain.clone(),
            json!({"phases": phases("Aborted", "Aborted")}),
            json!({}),
            State::Aborted,
        ),
        ("fuse", plain.clone(), json!({"conditions": condition("DeletionHeld")}), json!({}), State::Waiting),
    ] {
        let told = rollout(&set(spec, status, annotations), &[], now());
        assert_eq!(told.summary.state, expected, "{what}");
        assert!(!told.summary.reason.is_empty(), "{what} says why");
    }
    let passed = json!({"phases": [{"generator": 0, "currentPhase": 1, "state": "Deploying",
        "phases": [{"name": "a", "state": "Failed"}, {"name": "b", "state": "Deploying"}]}]});
    let told =
        rollout(&set(plain.clone(), passed, json!({})), &[application("x", "Progressing", "Synced")], now());
    assert_eq!(told.summary.state, State::Progressing, "it goes on after a phase that somebody let pass");
    let mut going = set(plain, json!({}), json!({}));
    going.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    assert_eq!(rollout(&going, &[], now()).summary.state, State::Deleting);
}

#[test]
fn a_set_that_is_held_while_nothing_is_left_to_do_says_so_and_can_be_resumed() {
    let status = json!({"rollout": {"run": 2, "state": "Complete", "finishedAt": "2026-01-01T00:10:00Z",
        "steps": [{"step": 1, "state": "Complete", "total": 1, "done": 1}]}});
    let offered = |annotations: Value| {
        let told = rollout(&set(steps(), status.clone(), annotations), &[], now());
        let sensible = told.actions.iter().filter(|offer| offer.sensible).map(|offer| offer.action);
        (told.summary.state, told.summary.reason, sensible.collect::<Vec<_>>())
    };
    let (state, _, sensible) = offered(json!({}));
    assert_eq!((state, sensible), (State::Complete, vec!["pause"]));
    let (state, reason, sensible) = offered(json!({"baton.dev/paused": "true"}));
    assert_eq!((state, sensible), (State::Paused, vec!["resume"]));
    assert_eq!(reason, "a person holds the rollout: the next run begins once it is resumed");
}

#[test]
fn applications_that_nobody_orders_stand_in_one_lane() {
    let plain = set(json!({"template": {"spec": {"project": "shop"}}}), json!({}), json!({}));
    let (well, ill) = (application("a", "Healthy", "Synced"), application("b", "Degraded", "Synced"));
    let told = rollout(&plain, &[well.clone(), ill], now());
    assert_eq!((told.summary.strategy, told.summary.state), ("AllAtOnce", State::Failed));
    assert_eq!(told.summary.reason, "b is Degraded");
    assert_eq!(lane(&told, "step-1").title, "All at once");
    let told = rollout(&plain, &[well], now());
    assert_eq!(
        (told.summary.state, told.summary.reason.as_str()),
        (State::Complete, "1 Application is done")
    );
    assert!(told.actions.iter().all(|offer| !offer.sensible && !offer.allowed && !offer.why.is_empty()));
}

#[test]
fn phases_are_lanes_with_hooks_checks_and_waits() {
    let spec = json!({"template": {"spec": {"project": "shop"}}, "generators": [{"clusters": {}, "deploymentStrategy": {
    "type": "phaseDeployment", "phases": [
        {"name": "canary", "targets": [{"clusters": ["east"]}], "waitDuration": "5m"},
        {"name": "rest", "targets": [{"matchExpressions": [{"key": "env", "operator": "Exists"}]}]},
    ]}}]});
    let status = json!({"phases": [{"generator": 0, "state": "Waiting", "startedAt": "2026-01-01T00:00:00Z", "phases": [
        {"name": "canary", "state": "Waiting", "waitUntil": "2026-01-01T01:05:00Z",
            "applications": [{"name": "a", "state": "Healthy"}],
            "preHooks": [{"name": "tell", "state": "Succeeded", "attempt": 2, "finishedAt": "2026-01-01T00:10:00Z",
                "durationMilliseconds": 4200}],
            "checks": [{"name": "probe", "target": "a", "state": "Retrying", "attempt": 1}]},
        {"name": "rest", "state": "Pending", "selected": 3},
    ]}]});
    let told = rollout(&set(spec, status, json!({})), &[application("a", "Healthy", "Synced")], now());
    assert_eq!(told.summary.strategy, "Phases");
    let canary = lane(&told, "phase-0-0");
    assert_eq!((canary.state, canary.selector.as_str()), (LaneState::Open, "cluster In (east)"));
    let gates: Vec<(&str, &str, &str)> =
        canary.gates.iter().map(|gate| (gate.kind, &*gate.name, gate.state)).collect();
    assert_eq!(
        gates,
        [("preHook", "tell", "Passed"), ("check", "probe (a)", "Running"), ("wait", "5m", "Running")]
    );
    assert_eq!((canary.gates[0].attempt, canary.gates[0].seconds), (Some(2), Some(4)));
    let rest = lane(&told, "phase-0-1");
    assert_eq!((rest.counts.total, rest.counts.waiting, rest.selector.as_str()), (3, 3, "env Exists"));
    assert_eq!(
        (rest.gates[0].kind, rest.gates[0].name.as_str(), rest.gates[0].state),
        ("previous", "canary", "Running")
    );
    let advance = told.actions.iter().find(|offer| offer.action == "advance").expect("an offer");
    assert!(advance.sensible);
    assert_eq!(advance.lanes, ["phase-0-0"]);
    assert_eq!(preview(Action::Advance, &told, ""), "Phase canary of generator 0 ends its wait now.");
    assert_eq!(
        preview(Action::Pause, &told, "").lines().next(),
        Some("Nothing more is started, healed or written until somebody resumes it.")
    );
    assert_eq!(told.history.len(), 1);
    let last = &told.history[0];
    assert_eq!((last.run, last.generator, last.state), (0, Some(0), State::Progressing));
}

#[test]
fn who_waits_for_a_phase_that_has_not_begun_stands_in_it() {
    let spec = json!({"generators": [{"clusters": {}, "deploymentStrategy": {"type": "phaseDeployment", "phases": []}}]});
    let held = |name: &str, phase: &str| {
        let why = format!("PhaseGate: its phase {phase:?} opens after phase \"canary\", which is Deploying");
        entry(name, "1", "Waiting", &why)
    };
    let status = json!({
        "phases": [{"generator": 0, "state": "Deploying", "phases": [
            {"name": "canary", "state": "Deploying", "applications": [{"name": "a", "state": "Updating"}]},
            {"name": "rest", "state": "Pending", "selected": 2},
        ]}],
        "applicationStatus": [entry("a", "1", "Progressing", ""), held("b", "rest"), held("c", "rest"), held("d", "other"),
            entry("e", "1", "Waiting", "")],
    });
    let applications = ["a", "b", "c", "d", "e"].map(|name| application(name, "Healthy", "OutOfSync"));
    let told = rollout(&set(spec, status, json!({})), &applications, now());
    let standing = |id: &str| {
        let targets = lane(&told, id).targets.iter().flatten();
        targets.map(|target| (target.name.as_str(), target.state)).collect::<Vec<_>>()
    };
    assert_eq!(standing("phase-0-0"), [("a", TargetState::Progressing)]);
    assert_eq!(standing("phase-0-1"), [("b", TargetState::Waiting), ("c", TargetState::Waiting)]);
    assert_eq!(lane(&told, "phase-0-1").counts.waiting, 2);
    assert_eq!(standing("unmatched").len(), 2, "whose phase nobody knows");
}

#[test]
fn what_changed_is_told_and_nothing_else() {
    let status = |state: &str| {
        json!({"rollout": {"run": 1, "state": "Progressing", "steps": [{"step": 1, "state": "Open", "total": 2}]},
            "applicationStatus": [entry("a", "1", state, ""), entry("b", "1", "Healthy", "")]})
    };
    let applications = [application("a", "Healthy", "Synced"), application("b", "Healthy", "Synced")];
    let before = rollout(&set(steps(), status("Progressing"), json!({})), &applications, now());
    assert_eq!(changes::modified(&before, &before), None);
    let after = rollout(&set(steps(), status("Healthy"), json!({})), &applications[..1], now());
    let event = changes::modified(&before, &after).expect("an event");
    assert_eq!(event["type"], "MODIFIED");
    assert_eq!(event["removed"], json!(["b"]));
    assert_eq!(event["targets"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (event["targets"][0]["lane"].as_str(), event["targets"][0]["state"].as_str()),
        (Some("step-1"), Some("Healthy"))
    );
    assert!(
        event["rollout"]["lanes"]
            .as_array()
            .is_some_and(|lanes| lanes.iter().all(|lane| lane.get("targets").is_none()))
    );
    let line = changes::brief(Some(&before), &after).expect("an event");
    assert_eq!((line["type"].as_str(), line["rollout"].get("lanes")), (Some("MODIFIED"), None));
    assert_eq!(line["rollout"]["counts"]["done"], 1);
    assert_eq!(changes::brief(Some(&after), &after), None);
    assert_eq!(changes::brief(None, &after).expect("an event")["type"], "ADDED");
    assert_eq!(after.history.iter().map(|run| run.run).collect::<Vec<_>>(), [1]);
    assert_eq!(changes::deleted("web", "argocd")["rollout"], json!({"name": "web", "namespace": "argocd"}));
}

#[test]
fn who_needs_a_person_comes_first() {
    let state = |name: &str, state: &str| {
        let mut told =
            rollout(&set(steps(), json!({"rollout": {"run": 1, "state": state}}), json!({})), &[], now())
                .summary;
        told.name = name.to_owned();
        told
    };
    let mut all =
        [state("d", "Complete"), state("c", "Progressing"), state("b", "Failed"), state("a", "Complete")];
    sort(&mut all);
    assert_eq!(all.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["b", "c", "a", "d"]);
}
