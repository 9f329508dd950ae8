//! What people see, kept as golden files: at 80 and 200 columns, with and without colours.
//!
//! `INSTA_UPDATE=always cargo test -p baton golden` writes them anew; look at what changed.

use std::collections::BTreeMap;

use baton_api::ApplicationSet;
use baton_phases::Target;
use baton_phases::preview::{self, Proposal};
use baton_rollout::explain::Outlook;
use baton_rollout::fuse::Fuse;
use baton_rollout::plan::{Candidate, Change, Plan, Present, plan};
use baton_rollout::shift::between;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::picture::Picture;
use super::plan_view::{self, Shown};
use super::revisions::{Revision, Told};
use super::{described, explain, plan_phases, watch};
use crate::screen::Screen;

/// Keeps a text under every width and with colours, whose codes are made visible.
fn keep(name: &str, text: impl Fn(&Screen) -> String) {
    for (width, height) in [(80, 24), (200, 50)] {
        for colours in [false, true] {
            let screen = Screen { width: Some(width), height: Some(height), colours, folds: true };
            let text = text(&screen);
            for line in text.lines().filter(|_| !colours) {
                assert!(line.chars().count() <= width, "{name} at {width}: {line}");
            }
            let how = if colours { "-colours" } else { "" };
            insta::assert_snapshot!(format!("{name}-{width}{how}"), text.replace('\x1b', "␛"));
        }
    }
}

fn labels(env: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("env".to_owned(), env.to_owned())])
}

fn strategy(limit: Value, order: &str) -> Value {
    let step = |env: &str| json!({"matchExpressions": [{"key": "env", "operator": "In", "values": [env]}]});
    let mut steps = [step("dev"), step("staging"), step("prod")];
    steps[1]["maxUpdate"] = json!(0);
    steps[1]["waitDuration"] = json!("10m");
    steps[2]["maxUpdate"] = limit;
    json!({"type": "RollingSync", "deletionOrder": order, "rollingSync": {"steps": steps}})
}

fn planned(strategy: &Value, wanted: &[(&str, &str, Change)], present: Option<&[(&str, &str)]>) -> Plan {
    let wanted: Vec<Candidate> = wanted
        .iter()
        .map(|(name, env, change)| Candidate {
            name: (*name).to_owned(),
            labels: labels(env),
            change: change.clone(),
        })
        .collect();
    let present: Option<Vec<Present>> = present.map(|all| {
        let one = |(name, env): &(&str, &str)| Present {
            name: (*name).to_owned(),
            labels: labels(env),
            uid: String::new(),
            terminating: *name == "web-old-3",
        };
        all.iter().map(one).collect()
    });
    let strategy = serde_json::from_value(strategy.clone()).expect("a strategy");
    plan(&baton_rollout::plan::Proposal {
        strategy: Some(&strategy),
        wanted: &wanted,
        present: present.as_deref(),
        may_delete: true,
        fuse: Fuse::Share(if wanted.len() > 100 { 20 } else { 40 }),
        approval: None,
    })
}

fn shown(plan: &Plan) -> Shown<'_> {
    Shown {
        set: "argocd/web",
        name: "web",
        plan,
        phases: &[],
        revisions: &[],
        against: None,
        only_changed: false,
        all: false,
        now: now(),
    }
}

fn revision(target: &str) -> Revision {
    Revision {
        repo: "https://git.example.com/web.git".to_owned(),
        target_revision: target.to_owned(),
        chart: String::new(),
        applications: 3,
        compared: None,
        rolled_out: None,
    }
}

fn unresolved() -> Vec<Revision> {
    vec![revision("main")]
}

fn resolved() -> Vec<Revision> {
    let told = |revision: &str, by: &str, at: &str| {
        Some(Told { revision: revision.repeat(10), by: by.to_owned(), at: at.parse().ok() })
    };
    let compared = told("c0ff", "web-prod-eu-1", "2026-11-15T12:08:00Z");
    let rolled_out = told("ace1", "run 12", "2026-11-15T12:00:00Z");
    vec![Revision { compared, rolled_out, ..revision("main") }, revision("v2")]
}

#[test]
fn a_plan_on_paper() {
    let any = Change::Assumed;
    let plan = planned(
        &strategy(json!("50%"), "Reverse"),
        &[
            ("web-dev-1", "dev", any.clone()),
            ("web-dev-2", "dev", any.clone()),
            ("web-staging", "staging", any.clone()),
            ("web-prod-eu-1", "prod", any.clone()),
            ("web-prod-eu-2", "prod", any.clone()),
            ("web-prod-us-1", "prod", any.clone()),
            ("web-lab", "lab", any),
        ],
        None,
    );
    keep("plan", |screen| plan_view::text(&Shown { revisions: &unresolved(), ..shown(&plan) }, screen));
}

#[test]
fn a_plan_of_an_edit() {
    let fields = |all: &[&str]| all.iter().map(|field| (*field).to_owned()).collect::<Vec<_>>();
    let there = [
        ("web-dev-1", "dev"),
        ("web-dev-2", "dev"),
        ("web-lab", "lab"),
        ("web-old-1", "prod"),
        ("web-old-2", "prod"),
        ("web-old-3", "staging"),
        ("web-old-4", "dev"),
        ("web-old-5", "prod"),
        ("web-prod-eu-1", "prod"),
    ];
    let before = planned(
        &strategy(json!("50%"), "AllAtOnce"),
        &there.map(|(name, env)| (name, env, Change::Assumed)),
        None,
    );
    let after = planned(
        &strategy(json!(1), "Reverse"),
        &[
            ("web-dev-1", "dev", Change::Revision { from: fields(&["main"]), to: fields(&["v2"]) }),
            ("web-dev-2", "staging", Change::Metadata { fields: fields(&["labels.env"]) }),
            ("web-lab", "lab", Change::Spec { fields: fields(&["source.path"]) }),
            ("web-prod-eu-1", "prod", Change::Drift),
            ("web-prod-eu-2", "prod", Change::New),
            (
                "web-prod-us-1",
                "prod",
                Change::Spec {
                    fields: fields(&["destination.namespace", "source.helm.values", "source.path", "a", "b"]),
                },
            ),
        ],
        Some(&there),
    );
    let shifts = between(&before, &after);
    keep("plan-edit", |screen| {
        plan_view::text(
            &Shown { revisions: &resolved(), against: Some(("the cluster", &shifts)), ..shown(&after) },
            screen,
        )
    });
}

#[test]
fn a_plan_of_many_steps_on_a_narrow_terminal() {
    let steps: Vec<Value> = (1..=9)
        .map(|n| json!({"matchExpressions": [{"key": "env", "operator": "In", "values": [format!("ring-{n}")]}]}))
        .collect();
    let rings = json!({"type": "RollingSync", "rollingSync": {"steps": steps}});
    let plan = planned(
        &rings,
        &[("a", "ring-1", Change::New), ("b", "ring-9", Change::Unchanged), ("c", "ring-9", Change::New)],
        Some(&[("b", "ring-9")]),
    );
    keep("plan-many", |screen| plan_view::text(&Shown { only_changed: true, ..shown(&plan) }, screen));
}

#[test]
fn a_plan_of_three_hundred() {
    let names: Vec<String> = (0..300).map(|n| format!("storefront-{n:03}")).collect();
    let place = |n: usize| ["dev", "staging", "prod"][usize::from(n >= 10) + usize::from(n >= 40)];
    let change = |n: usize| match n {
        0..10 => Change::Unchanged,
        _ => Change::Revision { from: vec!["c0ffee1".to_owned()], to: vec!["ace1ace".to_owned()] },
    };
    let wanted: Vec<(&str, &str, Change)> =
        names.iter().enumerate().map(|(n, name)| (name.as_str(), place(n), change(n))).collect();
    let gone: Vec<String> = (0..80).map(|n| format!("storefront-old-{n:02}")).collect();
    let there: Vec<(&str, &str)> = wanted
        .iter()
        .map(|(name, env, _)| (*name, *env))
        .chain(gone.iter().map(|name| (name.as_str(), "prod")))
        .collect();
    let plan = planned(&strategy(json!(1), "Reverse"), &wanted, Some(&there));
    let old: Vec<(&str, &str, Change)> =
        there.iter().map(|(name, env)| (*name, *env, Change::Assumed)).collect();
    let before = planned(&strategy(json!(1), "Reverse"), &old, None);
    let shifts = between(&before, &plan);
    let against = Some(("the cluster", &shifts));
    keep("plan-300", |screen| plan_view::text(&Shown { against, ..shown(&plan) }, screen));
    let screen = Screen { width: Some(80), height: Some(24), colours: false, folds: true };
    let whole = plan_view::text(&Shown { all: true, ..shown(&plan) }, &screen);
    assert!(names.iter().all(|name| whole.contains(name.as_str())), "--all leaves out nobody");
}

fn now() -> Timestamp {
    "2026-11-15T12:10:00Z".parse().expect("a time")
}

fn set(status: Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "web", "namespace": "argocd", "generation": 3},
        "spec": {
            "generators": [{"clusters": {}}],
            "template": {"metadata": {"name": "web-{{name}}"}, "spec": {"project": "default", "destination": {}}},
            "strategy": strategy(json!(2), "Reverse"),
        },
        "status": status,
    })
}

fn entry(name: &str, step: &str, status: &str, message: &str) -> Value {
    json!({
        "application": name, "step": step, "status": status, "message": message, "targetRevisions": ["c0ffee1"],
        "lastTransitionTime": "2026-11-15T12:08:30Z",
    })
}

/// A run in its last step with one failure.
fn failing() -> Value {
    set(json!({
        "resourcesCount": 7,
        "health": {"status": "Degraded"},
        "conditions": [{
            "type": "RolloutProgressing", "status": "True", "reason": "ApplicationSetModified",
            "message": "ApplicationSet is performing rollout of step 3",
        }],
        "resources": [
            {"name": "web-dev-1", "status": "Synced", "health": {"status": "Healthy"}},
            {"name": "web-prod-eu-1", "status": "OutOfSync", "health": {"status": "Degraded"}},
            {"name": "web-prod-eu-2", "status": "Synced", "health": {"status": "Progressing"}},
            {"name": "web-prod-us-1", "status": "OutOfSync", "health": {"status": "Healthy"}},
        ],
        "applicationStatus": [
            entry("web-dev-1", "1", "Healthy", "done"),
            entry("web-dev-2", "1", "Healthy", "done"),
            entry("web-lab", "-1", "Waiting", "in no step"),
            entry("web-prod-eu-1", "3", "Progressing", "sync failed"),
            entry("web-prod-eu-2", "3", "Progressing", "Deployment web is not ready: 1 of 3 updated"),
            entry("web-prod-us-1", "3", "Waiting", "waiting for its turn"),
            entry("web-staging", "2", "Healthy", "synced by hand"),
        ],
        "rollout": {
            "run": 12, "state": "Progressing", "step": 3, "observedGeneration": 3, "restarts": 1,
            "startedAt": "2026-11-15T12:00:00Z",
            "revisions": [{"repoURL": "https://git.example.com/web.git", "targetRevision": "main", "revision": "c0ffee1"}],
            "steps": [
                {"step": 1, "state": "Complete", "total": 2, "done": 2, "completedAt": "2026-11-15T12:02:00Z"},
                {"step": 2, "state": "Complete", "total": 1, "done": 1, "maxUpdate": 0, "completedAt": "2026-11-15T12:05:00Z"},
                {"step": 3, "state": "Open", "total": 3, "updating": 2, "failed": 1, "maxUpdate": 2, "openedAt": "2026-11-15T12:05:01Z"},
            ],
            "blockers": [
                {
                    "reason": "SyncFailed", "object": "web-prod-eu-1", "since": "2026-11-15T12:08:30Z",
                    "message": "one or more objects failed to apply: deployments.apps \"web\" is forbidden: exceeded quota",
                    "remedy": "a new commit or template, or `baton appset retry`",
                },
                {
                    "reason": "Progressing", "object": "web-prod-eu-2", "since": "2026-11-15T12:09:50Z",
                    "message": "Deployment web is not ready: 1 of 3 updated", "nextCheckAt": "2026-11-15T12:10:20Z",
                    "remedy": "its sync to end and its resources to become healthy",
                },
            ],
        },
    }))
}

fn told(set: &Value) -> Picture {
    let set: ApplicationSet = serde_json::from_value(set.clone()).expect("a set");
    Picture::of(&set, None, &BTreeMap::new())
}

#[test]
fn a_set_and_its_rollout() {
    keep("get", |screen| described::text(&failing(), None, false, now(), screen).expect("a set"));
}

#[test]
fn a_picture_of_a_rollout() {
    let standing = told(&failing());
    keep("watch", |screen| watch::frame("argocd/web", &standing, now(), screen).join("\n") + "\n");
}

#[test]
fn why_a_rollout_does_not_go_on() {
    let standing = told(&failing());
    keep("explain", |screen| explain::run_text("argocd/web", &standing, false, now(), screen));
    let waits =
        standing.standing.applications.iter().find(|one| one.name == "web-prod-us-1").expect("it waits");
    keep("explain-application", |screen| explain::application_text(waits, &standing, now(), screen));
}

#[test]
fn a_deletion_that_the_fuse_holds() {
    let mut going = set(json!({
        "resourcesCount": 6,
        "rollout": {"state": "Complete", "run": 12, "deletion": {
            "order": "Reverse", "step": 1, "totalSteps": 3, "remaining": 6, "deleting": ["web-prod-us-1"],
            "startedAt": "2026-11-15T12:00:00Z",
            "blockers": [{
                "reason": "DeletionFuse", "object": "web", "since": "2026-11-15T12:00:00Z",
                "message": "generators no longer give 6 of 8 Applications",
                "remedy": "approval of the deletion: `baton appset approve-deletion`",
            }],
        }},
    }));
    let standing = told(&going);
    keep("explain-deletion", |screen| explain::run_text("argocd/web", &standing, false, now(), screen));
    going["metadata"]["deletionTimestamp"] = json!("2026-11-15T12:09:00Z");
    keep("get-deletion", |screen| described::text(&going, None, false, now(), screen).expect("a set"));
}

/// A run of three hundred in its last step of three.
fn large() -> Value {
    let name = |n: usize| format!("storefront-{n:03}");
    let step = |n: usize| usize::from(n >= 10) + usize::from(n >= 40) + 1;
    let mut set = failing();
    let status = |n: usize| match n {
        0..60 => ("Healthy", "done"),
        60..90 => ("Progressing", "Progressing: Deployment web is not ready: 1 of 3 updated"),
        _ => ("Waiting", "WaitingForSlot: its turn has not come"),
    };
    let entries: Vec<Value> =
        (0..300).map(|n| entry(&name(n), &step(n).to_string(), status(n).0, status(n).1)).collect();
    let resources: Vec<Value> = (0..300)
        .map(|n| {
            let (sync, health) = if n < 60 {
                ("Synced", "Healthy")
            } else if n < 90 {
                ("Synced", "Progressing")
            } else {
                ("OutOfSync", "Healthy")
            };
            json!({"name": name(n), "status": sync, "health": {"status": health}})
        })
        .collect();
    set["status"]["applicationStatus"] = json!(entries);
    set["status"]["resources"] = json!(resources);
    set["status"]["resourcesCount"] = json!(320);
    set["status"]["rollout"]["blockers"] = json!([{
        "reason": "Progressing", "object": "storefront-060", "since": "2026-11-15T12:09:50Z", "count": 30,
        "message": "Deployment web is not ready: 1 of 3 updated", "nextCheckAt": "2026-11-15T12:10:20Z",
        "remedy": "its sync to end and its resources to become healthy",
    }]);
    set["status"]["rollout"]["steps"] = json!([
        {"step": 1, "state": "Complete", "total": 10, "done": 10, "completedAt": "2026-11-15T12:02:00Z"},
        {"step": 2, "state": "Complete", "total": 30, "done": 30, "completedAt": "2026-11-15T12:05:00Z"},
        {"step": 3, "state": "Open", "total": 260, "done": 20, "updating": 30, "maxUpdate": 30, "openedAt": "2026-11-15T12:05:01Z"},
    ]);
    set
}

#[test]
fn three_hundred_on_a_terminal() {
    let set = large();
    let standing = told(&set);
    keep("get-300", |screen| described::text(&set, None, false, now(), screen).expect("a set"));
    keep("watch-300", |screen| watch::frame("argocd/web", &standing, now(), screen).join("\n") + "\n");
    keep("explain-300", |screen| explain::run_text("argocd/web", &standing, false, now(), screen));
    let screen = Screen { width: Some(80), height: Some(24), colours: false, folds: true };
    let whole = described::text(&set, None, true, now(), &screen).expect("a set");
    assert!(whole.contains("storefront-000") && whole.contains("storefront-299"), "--all leaves out nobody");
    let pipe = Screen { width: None, height: None, ..screen };
    let piped = described::text(&set, None, false, now(), &pipe).expect("a set");
    assert!(piped.contains("storefront-000") && piped.contains("storefront-299"), "nor does a pipe");
}

#[test]
fn of_many_steps_those_around_the_open_one_are_pictured() {
    let mut set = failing();
    let steps: Vec<Value> = (1..=40)
        .map(|n| json!({"step": n, "state": if n < 20 { "Complete" } else { "Waiting" }, "total": 1, "done": i32::from(n < 20)}))
        .collect();
    set["status"]["rollout"]["steps"] = json!(steps);
    let screen = Screen { width: Some(80), height: Some(24), colours: false, folds: true };
    let picture = watch::frame("argocd/web", &told(&set), now(), &screen).join("\n");
    for part in ["… 18 steps before, done", "\n19 ", "\n20 ", "steps after"] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
}

#[test]
fn a_picture_never_has_more_rows_than_the_terminal() {
    let mut set = failing();
    let many: Vec<Value> =
        (0..500).map(|n| entry(&format!("web-prod-{n}"), "3", "Progressing", "it syncs")).collect();
    set["status"]["applicationStatus"] = json!(many);
    let standing = told(&set);
    for (width, height) in [(80, 24), (200, 50), (30, 10), (1, 1)] {
        let screen = Screen { width: Some(width), height: Some(height), colours: false, folds: true };
        let lines = watch::frame("argocd/web", &standing, now(), &screen);
        assert!(lines.len() < height.max(5), "{} rows of {height}", lines.len());
    }
}

/// A set whose canaries have passed a hook, and whose others wait for one.
fn phased() -> Value {
    let mut set = set(json!({
        "resourcesCount": 4,
        "resources": [
            {"name": "web-prod-eu-1", "status": "Synced", "health": {"status": "Healthy"}},
            {"name": "web-prod-eu-2", "status": "Synced", "health": {"status": "Progressing"}},
        ],
        "applicationStatus": [
            entry("web-prod-eu-1", "1", "Healthy", "done"),
            entry("web-prod-eu-2", "1", "Progressing", "Progressing: Deployment web is not ready: 1 of 3 updated"),
            entry("web-prod-us-1", "1", "Waiting", "PhaseGate: its phase is not open"),
            entry("web-prod-us-2", "1", "Waiting", "PhaseGate: its phase is not open"),
        ],
        "rollout": {
            "run": 3, "state": "Progressing", "step": 1, "observedGeneration": 3, "startedAt": "2026-11-15T12:00:00Z",
            "steps": [{"step": 1, "state": "Open", "total": 4, "done": 1, "updating": 1}],
            "blockers": [{
                "reason": "PhaseGate", "object": "approve", "since": "2026-11-15T12:09:00Z",
                "message": "phase \"all\" (2 of 3): hook approve is tried again", "remedy": "the phase to open",
            }],
        },
        "phases": [{
            "generator": 0, "generatorType": "clusters", "rolloutID": "3-a-b", "currentPhase": 1, "totalPhases": 3,
            "state": "Deploying", "message": "phase \"all\" (2 of 3): hook approve is tried again",
            "startedAt": "2026-11-15T12:00:00Z", "unassignedCount": 1, "unassigned": ["web-lab"],
            "phases": [
                {
                    "name": "canary", "state": "Complete", "matched": 4, "selected": 1, "updated": 1, "healthy": 1,
                    "startedAt": "2026-11-15T12:00:00Z", "finishedAt": "2026-11-15T12:05:00Z",
                    "applications": [{"name": "web-prod-eu-1", "state": "Healthy"}],
                    "preHooks": [{"name": "open-change", "state": "Succeeded"}],
                    "checks": [{"name": "error-rate", "state": "Succeeded"}],
                },
                {
                    "name": "all", "state": "PreHooks", "matched": 4, "selected": 3, "updated": 1,
                    "startedAt": "2026-11-15T12:05:00Z",
                    "applications": [
                        {"name": "web-prod-eu-2", "state": "Updating"}, {"name": "web-prod-us-1", "state": "Held"},
                        {"name": "web-prod-us-2", "state": "Held"},
                    ],
                    "preHooks": [{
                        "name": "approve", "state": "Retrying", "attempt": 4, "message": "answered 202, not 200",
                        "startedAt": "2026-11-15T12:05:00Z", "nextAttemptAt": "2026-11-15T12:10:40Z",
                    }],
                },
                {"name": "report", "state": "Pending", "matched": 4},
            ],
        }],
    }));
    set["spec"]["strategy"] = Value::Null;
    set["spec"]["generators"] =
        json!([{"clusters": {}, "deploymentStrategy": {"type": "phaseDeployment", "phases": []}}]);
    set
}

#[test]
fn phases_under_way() {
    let set = phased();
    let picture = told(&set);
    keep("get-phases", |screen| described::text(&set, None, false, now(), screen).expect("a set"));
    keep("watch-phases", |screen| watch::frame("argocd/web", &picture, now(), screen).join("\n") + "\n");
    keep("explain-phases", |screen| explain::run_text("argocd/web", &picture, false, now(), screen));
    let held =
        picture.standing.applications.iter().find(|one| one.name == "web-prod-us-1").expect("it waits");
    keep("explain-phases-application", |screen| explain::application_text(held, &picture, now(), screen));
}

#[test]
fn a_watch_ends_where_a_phase_has_failed_and_nobody_goes_on() {
    let mut set = phased();
    assert_eq!(told(&set).outlook(), Outlook::Underway);
    set["status"]["phases"][0]["state"] = json!("Failed");
    set["status"]["phases"][0]["phases"][1]["state"] = json!("Failed");
    set["status"]["phases"][0]["phases"][1]["failure"] =
        json!({"reason": "HookFailed", "message": "hook approve failed"});
    let picture = told(&set);
    assert_eq!(picture.outlook(), Outlook::Failed);
    assert_eq!(picture.failure().as_deref(), Some("phase all: hook approve failed"));
}

#[test]
fn of_many_phases_those_around_the_open_one_are_pictured() {
    let mut set = phased();
    let phase =
        |n: usize| json!({"name": format!("p{n:02}"), "state": if n < 20 { "Complete" } else { "Pending" }});
    set["status"]["phases"][0]["phases"] = (0..40).map(phase).collect();
    set["status"]["phases"][0]["currentPhase"] = json!(20);
    for (width, height) in [(80, 24), (200, 50), (30, 10), (1, 1)] {
        let screen = Screen { width: Some(width), height: Some(height), colours: false, folds: true };
        let picture = watch::frame("argocd/web", &told(&set), now(), &screen);
        assert!(picture.len() < height.max(5), "{} rows of {height}", picture.len());
        if width == 80 {
            let text = picture.join("\n");
            for part in ["phases before, done", "p19", "p20", "phases after"] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }
}

#[test]
fn a_plan_with_phases() {
    let strategy = json!({"type": "phaseDeployment", "phases": [
        {"name": "lab", "targets": [{"values": {"env": "lab"}}]},
        {
            "name": "canary", "targets": [{"values": {"env": "prod"}}], "percentage": 10, "waitDuration": "30m",
            "onFailure": {"action": "rollback"},
            "preHooks": [{
                "name": "open-change", "type": "http", "http": {"url": "https://changes.example.com/open"},
                "retry": {"interval": "1m", "deadline": "24h"},
            }],
            "checks": [{
                "name": "error-rate", "type": "http", "http": {"url": "https://metrics.example.com/{{env}}"},
            }],
        },
        {
            "name": "all", "targets": [{"values": {"env": "prod"}}], "maxConcurrent": 2,
            "postHooks": [{
                "name": "tell", "type": "http", "failurePolicy": "ignore", "http": {"url": "http://chat.example.com"},
            }],
        },
    ]});
    let names = ["web-dev-1", "web-prod-1", "web-prod-2", "web-prod-3", "web-prod-4"];
    let env = |name: &str| name.split('-').nth(1).unwrap_or_default().to_owned();
    let target =
        |name: &&str| Target { name: (*name).into(), params: [("env".to_owned(), env(name))].into() };
    let targets = BTreeMap::from([(0, names.iter().map(target).collect())]);
    let previews = |generator: Value, before: Option<&ApplicationSet>| {
        let set: ApplicationSet =
            serde_json::from_value(json!({"spec": {"generators": [generator], "template": {}}}))
                .expect("a set");
        let labels = |name: &str| labels(&env(name));
        let kinds = |_| "clusters".to_owned();
        let proposal = Proposal { set: &set, before, targets: &targets, labels: &labels, kinds: &kinds };
        (preview::preview(&proposal), set)
    };
    let (phases, before) = previews(json!({"clusters": {}, "deploymentStrategy": strategy.clone()}), None);
    let wanted = names.map(|name| (name, "", Change::Assumed));
    let plan = planned(&json!({"type": "AllAtOnce"}), &wanted, None);
    keep("plan-phases", |screen| plan_view::text(&Shown { phases: &phases, ..shown(&plan) }, screen));
    let (removed, _) = previews(json!({"clusters": {}}), Some(&before));
    keep("plan-phases-removed", |screen| {
        plan_view::text(&Shown { phases: &removed, ..shown(&plan) }, screen)
    });
    let mut wrong = strategy.clone();
    wrong["phases"][1]["maxUpdate"] = json!(1);
    let (held, _) = previews(json!({"clusters": {}, "deploymentStrategy": wrong}), None);
    let screen = Screen { width: Some(200), height: None, colours: false, folds: true };
    let text = plan_view::text(&Shown { phases: &held, ..shown(&plan) }, &screen);
    assert!(
        text.contains("nothing would be deployed; 5 Applications") && !text.contains("at once"),
        "{text}"
    );
    let mut nobody = strategy.clone();
    nobody["phases"] = json!([{"name": "lab", "targets": [{"values": {"env": "lab"}}]}]);
    let (idle, _) = previews(json!({"clusters": {}, "deploymentStrategy": nobody}), None);
    assert_eq!((plan_phases::held(&held), plan_phases::held(&idle)), (5, 5));
    assert_eq!(plan_phases::held(&phases) + plan_phases::held(&removed), 0);
}
