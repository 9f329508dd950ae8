//! How a rollout stands, told from a set's status, from Argo CD's part of it alone, and with the head.

use std::collections::BTreeMap;

use baton_api::ApplicationSet;
use baton_rollout::explain::{Known, Outlook, Standing, standing};
use baton_rollout::head::{Change, Done, Head, Row, Run};
use baton_rollout::pin::Fingerprint;
use serde_json::{Value, json};

fn set(annotations: Value, status: Value) -> ApplicationSet {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "argocd", "generation": 3, "annotations": annotations},
        "spec": {
            "generators": [],
            "template": {"metadata": {}, "spec": {"project": "default", "destination": {}}},
            "strategy": {"type": "RollingSync", "rollingSync": {"steps": [
                {"matchExpressions": [{"key": "env", "operator": "In", "values": ["dev"]}]},
                {"matchExpressions": [{"key": "env", "operator": "In", "values": ["prod"]}], "maxUpdate": 1},
            ]}},
        },
        "status": status,
    }))
    .expect("a set")
}

fn entry(name: &str, step: &str, status: &str) -> Value {
    json!({
        "application": name, "step": step, "status": status, "message": format!("{name} is {status}"),
        "targetRevisions": ["c0ffee"], "lastTransitionTime": "2026-11-15T12:00:00Z",
    })
}

fn told(set: &ApplicationSet) -> Standing {
    standing(set, None, &BTreeMap::new())
}

fn reasons(standing: &Standing) -> Vec<(&str, &str)> {
    let mut all = Vec::new();
    for application in &standing.applications {
        let reason = application.first.as_ref().map_or("", |first| first.reason.as_str());
        all.push((application.name.as_str(), reason));
    }
    all
}

#[test]
fn without_a_view_of_the_run_the_steps_are_told_from_the_applications() {
    let status = json!({"applicationStatus": [
        entry("p2", "2", "Waiting"), entry("d1", "1", "Healthy"), entry("u", "-1", "Waiting"),
        entry("p1", "2", "Progressing"), entry("d2", "1", "Healthy"),
    ]});
    let standing = told(&set(json!({}), status));
    assert_eq!((standing.state.as_str(), standing.step, standing.counts()), ("Progressing", 2, (2, 4)));
    let states: Vec<&str> = standing.steps.iter().map(|step| step.state.as_str()).collect();
    assert_eq!(states, ["Complete", "Open"]);
    assert_eq!(
        reasons(&standing),
        [("d1", ""), ("d2", ""), ("p1", "Progressing"), ("p2", "WaitingForSlot"), ("u", "HoldStep")]
    );
    let first = standing.first.as_ref().expect("something is waited for");
    assert_eq!((first.object.as_str(), first.message.as_str()), ("p1", "p1 is Progressing"));
    assert_eq!(standing.outlook(), Outlook::Underway);

    let done = told(&set(json!({}), json!({"applicationStatus": [entry("d1", "1", "Healthy")]})));
    assert_eq!((done.state.as_str(), done.outlook()), ("Complete", Outlook::Done));
    let untold = told(&set(json!({}), json!({})));
    assert_eq!((untold.state.as_str(), untold.outlook()), ("Idle", Outlook::Underway));
    assert_eq!(untold.first.as_ref().map(|first| first.reason.as_str()), Some("NoReport"));
}

#[test]
fn a_reason_in_a_message_is_the_reason() {
    let mut waiting = entry("p1", "2", "Progressing");
    waiting["message"] = json!("ApprovalRequired: waiting for pruning confirmation: v1/Secret");
    let standing = told(&set(json!({}), json!({"applicationStatus": [waiting]})));
    let first = standing.first.as_ref().expect("it waits");
    assert_eq!(
        (first.reason.as_str(), first.object.as_str(), first.message.as_str(), first.unblocks.as_str()),
        (
            "ApprovalRequired",
            "p1",
            "waiting for pruning confirmation: v1/Secret",
            "`baton app confirm-deletion`"
        )
    );
    assert!(first.says("ApprovalRequired: waiting for pruning confirmation: v1/Secret"));
    assert!(!first.says("waiting for pruning confirmation: v1/Secret"));
    assert_eq!(standing.outlook(), Outlook::WaitsForPerson);
}

#[test]
fn who_waits_for_a_step_is_told_which_and_how_far_it_is() {
    let mut waiting = entry("p1", "2", "Waiting");
    waiting["message"] = json!("WaitingForStep: it is OutOfSync");
    let status = json!({"applicationStatus": [
        entry("d1", "1", "Progressing"), entry("d2", "1", "Healthy"), waiting,
    ]});
    let standing = told(&set(json!({}), status));
    let waits = standing.applications[2].first.as_ref().expect("it waits");
    assert_eq!(
        (waits.reason.as_str(), waits.object.as_str(), waits.message.as_str()),
        ("WaitingForStep", "step 1", "step 1 is not done: 1 of 2")
    );
}

#[test]
fn a_named_blocker_is_first_and_goes_to_its_application() {
    let status = json!({
        "applicationStatus": [entry("d1", "1", "Progressing"), entry("p1", "2", "Waiting")],
        "rollout": {
            "run": 4, "state": "Progressing", "step": 1, "observedGeneration": 3, "restarts": 2,
            "steps": [{"step": 1, "state": "Open", "total": 1, "updating": 1}, {"step": 2, "state": "Waiting", "total": 1}],
            "blockers": [{
                "reason": "SyncFailed", "object": "d1", "message": "one hook failed", "since": "2026-11-15T12:01:00Z",
                "remedy": "a new commit", "nextCheckAt": "2026-11-15T12:05:00Z",
            }],
        },
    });
    let standing = told(&set(json!({}), status));
    let first = standing.first.as_ref().expect("a blocker");
    assert_eq!((first.reason.as_str(), first.unblocks.as_str()), ("SyncFailed", "a new commit"));
    assert!(first.since.is_some() && first.next_look.is_some());
    assert_eq!(standing.applications[0].first.as_ref(), Some(first));
    assert_eq!((standing.run, standing.restarts, standing.outdated), (4, 2, false));
}

#[test]
fn the_outlook_tells_the_end_from_a_wait_for_people() {
    let rollout = |state: &str, reason: Option<&str>, seen: i64| {
        let blockers: Vec<Value> =
            reason.map(|reason| json!({"reason": reason, "object": "d1"})).into_iter().collect();
        json!({"rollout": {"state": state, "observedGeneration": seen, "blockers": blockers}})
    };
    let paused = json!({"baton.dev/paused": "true"});
    for (annotations, status, expected) in [
        (json!({}), rollout("Complete", None, 3), Outlook::Done),
        (json!({}), rollout("Complete", None, 2), Outlook::Underway),
        (json!({}), rollout("Idle", None, 3), Outlook::Underway),
        (json!({}), rollout("Failed", Some("SyncFailed"), 3), Outlook::Failed),
        (json!({}), rollout("Aborted", Some("Aborted"), 3), Outlook::Failed),
        (json!({}), rollout("Progressing", Some("Progressing"), 3), Outlook::Underway),
        (json!({}), rollout("Progressing", Some("ApprovalRequired"), 3), Outlook::WaitsForPerson),
        (json!({}), rollout("Progressing", Some("HoldStep"), 3), Outlook::WaitsForPerson),
        (json!({}), rollout("Progressing", Some("DeletionFuse"), 3), Outlook::WaitsForPerson),
        (paused.clone(), rollout("Progressing", None, 3), Outlook::WaitsForPerson),
        (paused, rollout("Complete", None, 3), Outlook::Done),
    ] {
        let set = set(annotations, status);
        assert_eq!(told(&set).outlook(), expected, "{:?} {:?}", set.metadata.annotations, set.status.rollout);
    }
}

#[test]
fn a_deletion_is_told_though_no_status_tells_of_it() {
    let mut going = set(json!({}), json!({"resourcesCount": 7}));
    assert_eq!(told(&going).deletion, None);
    going.metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-11-15T12:00:00Z")).expect("a time");
    let deletion = told(&going).deletion.expect("a deletion");
    assert!(deletion.of_the_set);
    assert_eq!((deletion.order.as_str(), deletion.remaining), ("AllAtOnce", 7));

    let status = json!({"rollout": {"deletion": {
        "order": "Reverse", "step": 1, "totalSteps": 2, "remaining": 3, "deleting": ["p1"],
        "blockers": [{"reason": "DeletionFuse", "object": "web"}],
    }}});
    let standing = told(&set(json!({}), status));
    assert_eq!(standing.first.as_ref().map(|first| first.reason.as_str()), Some("DeletionFuse"));
    assert_eq!(standing.outlook(), Outlook::WaitsForPerson);
}

#[test]
fn a_held_deletion_is_told_where_no_rollout_is() {
    let condition = json!({
        "type": "DeletionHeld", "status": "True", "reason": "x", "message": "6 of 8 would go",
        "lastTransitionTime": "2026-11-15T12:00:00Z",
    });
    let mut held = set(json!({}), json!({ "conditions": [condition] }));
    held.spec.strategy = None;
    let standing = told(&held);
    let first = standing.first.as_ref().expect("it waits");
    assert_eq!((first.reason.as_str(), first.message.as_str()), ("DeletionFuse", "6 of 8 would go"));
    assert!(first.since.is_some());
    assert_eq!(standing.outlook(), Outlook::WaitsForPerson);
}

#[test]
fn the_head_adds_what_it_records_and_a_pause_nobody_wrote_down_yet() {
    let mut head = Head::default();
    let id = Fingerprint::of(["uid-of-d1"]);
    let row = Row { n: 3, slot: true, done: Some(Done::Override), ..Row::new(id, Fingerprint::of(["pin"])) };
    let run = Run { paused: true, ..Run::default() };
    head.apply(&Change { run: Some(run), rows: vec![row], anew: true, ..Change::default() });
    let set = set(json!({}), json!({"applicationStatus": [entry("d1", "1", "Progressing")]}));
    let seen = Known { uid: "uid-of-d1".to_owned(), ..Known::default() };
    let standing = standing(&set, Some(&head), &BTreeMap::from([("d1".to_owned(), seen)]));
    assert_eq!(standing.state, "Paused");
    let record = standing.applications[0].record.as_ref().expect("a record");
    assert_eq!((record.writes, record.slot, record.done), (3, true, Some("synced by somebody else")));
    assert_eq!(record.pin, Fingerprint::of(["pin"]).to_string());
}

/// A set that deletes in reverse, with one Application that no generator gives.
fn shrinking(conditions: Value) -> ApplicationSet {
    let mut leaver = entry("p1", "2", "Waiting");
    leaver["message"] = json!("Leaving: it is no longer wanted");
    let status =
        json!({"applicationStatus": [entry("d1", "1", "Healthy"), leaver], "conditions": conditions});
    let mut set = set(json!({}), status);
    if let Some(strategy) = set.spec.strategy.as_mut() {
        strategy.deletion_order = "Reverse".to_owned();
    }
    set
}

fn seen(env: &str, terminating: bool) -> Known {
    let finalizers = vec!["resources-finalizer.argocd.argoproj.io".to_owned()];
    let since = terminating.then(|| "2026-11-15T12:03:00Z".parse().expect("a time"));
    let labels = BTreeMap::from([("env".to_owned(), env.to_owned())]);
    Known { uid: env.to_owned(), labels, terminating: since, finalizers }
}

#[test]
fn one_that_leaves_says_what_its_deletion_waits_for() {
    let condition = |kind: &str, message: &str| json!([{"type": kind, "status": "True", "reason": "x", "message": message}]);
    let in_step = |step: usize| {
        let place = format!("Applications are deleted in the order Reverse: step {step} of 3");
        condition("DeletionProgressing", &place)
    };
    let held =
        condition("DeletionHeld", "generators no longer give 6 of 8 Applications: p1, p2; approve with …");
    for (conditions, known, reason, message) in [
        (json!([]), None, "Leaving", "it goes in the order Reverse; the deletion has not begun"),
        (
            json!([]),
            Some(seen("dev", false)),
            "Leaving",
            "it goes in step 2 of 3 of the deletion (Reverse), which has not begun",
        ),
        (
            in_step(1),
            Some(seen("dev", false)),
            "Leaving",
            "it goes in step 2 of 3 of the deletion (Reverse), which is in step 1",
        ),
        (
            in_step(2),
            Some(seen("dev", false)),
            "Leaving",
            "its step of the deletion is open (Reverse, 2 of 3): it waits for its turn",
        ),
        (
            in_step(2),
            Some(seen("dev", true)),
            "Leaving",
            "it is being deleted; finalizer resources-finalizer.argocd.argoproj.io holds it",
        ),
        (held, Some(seen("prod", false)), "DeletionFuse", "the deletion fuse lets none go without approval"),
    ] {
        let known = known.map(|known| BTreeMap::from([("p1".to_owned(), known)])).unwrap_or_default();
        let standing = standing(&shrinking(conditions), None, &known);
        let p1 = standing.applications.iter().find(|one| one.name == "p1").expect("it is told of");
        let first = p1.first.as_ref().expect("it waits");
        assert_eq!(first.reason, reason, "{first:?}");
        assert!(first.message.ends_with(message), "{first:?}");
        assert!(!first.unblocks.is_empty());
    }
}

#[test]
fn the_deletion_of_leavers_is_told_from_the_condition_where_a_rollout_has_the_status() {
    let message =
        "Applications are deleted in the order Reverse: step 2 of 3, which waits for p1: a hook fails";
    let condition = json!([{"type": "DeletionProgressing", "status": "True", "reason": "ApplicationStuck", "message": message}]);
    let standing = told(&shrinking(condition));
    let deletion = standing.deletion.as_ref().expect("a deletion");
    assert_eq!((deletion.order.as_str(), deletion.step, deletion.total_steps), ("Reverse", 2, 3));
    assert_eq!((deletion.remaining, deletion.of_the_set), (1, false));
    assert_eq!(deletion.obstacles[0].message, "p1: a hook fails");
    assert_eq!(standing.outlook(), Outlook::Underway);
}

#[test]
fn one_that_no_status_lists_any_more_is_told_of_while_it_goes() {
    let mut set = shrinking(json!([]));
    set.status.application_status.clear();
    let known =
        BTreeMap::from([("p1".to_owned(), seen("prod", true)), ("p2".to_owned(), seen("prod", false))]);
    let standing = standing(&set, None, &known);
    let names: Vec<&str> = standing.applications.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["p1"], "whether p2 leaves is not known");
    assert_eq!(standing.applications[0].status, "Leaving");
}

#[test]
fn one_that_is_gone_is_told_to_be_before_the_status_catches_up() {
    let known = BTreeMap::from([("d1".to_owned(), seen("dev", false))]);
    let standing = standing(&shrinking(json!([])), None, &known);
    let p1 = standing.applications.iter().find(|one| one.name == "p1").expect("it is told of");
    let first = p1.first.as_ref().expect("it waits");
    assert_eq!(first.message, "it is gone, which the status does not tell yet");
}

#[test]
fn a_step_was_done_when_the_next_one_opened_and_the_last_when_the_run_ended() {
    let status = json!({"rollout": {
        "run": 1, "state": "Complete", "finishedAt": "2026-11-15T12:09:00Z",
        "steps": [
            {"step": 1, "state": "Complete", "total": 1, "done": 1, "openedAt": "2026-11-15T12:00:00Z"},
            {"step": 2, "state": "Complete", "total": 1, "done": 1, "openedAt": "2026-11-15T12:05:00Z"},
        ],
        "blockers": [{"reason": "Progressing", "object": "d1", "message": "an operation is under way: "}],
    }});
    let standing = told(&set(json!({}), status));
    let done: Vec<String> =
        standing.steps.iter().filter_map(|step| Some(step.completed_at?.to_string())).collect();
    assert_eq!(done, ["2026-11-15T12:05:00Z", "2026-11-15T12:09:00Z"]);
    assert_eq!(standing.obstacles[0].message, "an operation is under way", "nothing follows the colon");
    assert!(standing.obstacles[0].says("Progressing: an operation is under way: "));
}

#[test]
fn what_is_wrong_with_the_words_of_a_set_is_told_and_a_pause_is_one_in_any_words() {
    let status = json!({"applicationStatus": [entry("d1", "1", "Progressing")], "conditions": [
        {"type": "InvalidRolloutConfig", "status": "True", "message": "step 1: it is not well"},
    ]});
    let standing = told(&set(json!({"baton.dev/paused": "yes", "baton.dev/pausd": "true"}), status));
    assert_eq!(standing.state, "Paused");
    assert_eq!(
        standing.remarks,
        [
            "step 1: it is not well",
            "baton.dev/pausd: no annotation of this name is known: it has no effect",
            "baton.dev/paused: \"yes\" is not understood and counts as \"true\"",
            "step 2 holds no Application and is passed over",
        ]
    );
    let well = json!({"applicationStatus": [entry("d1", "1", "Healthy"), entry("p1", "2", "Healthy")],
        "conditions": [{"type": "InvalidRolloutConfig", "status": "False", "message": "well"}]});
    assert!(told(&set(json!({"baton.dev/paused": "false"}), well)).remarks.is_empty());
}

#[test]
fn an_error_of_the_set_is_what_its_phases_wait_for() {
    let mut set = set(
        json!({}),
        json!({"conditions": [{
            "type": "ErrorOccurred", "status": "True", "message": "no such repository",
            "lastTransitionTime": "2026-11-15T12:00:00Z",
        }]}),
    );
    set.spec.strategy = None;
    set.spec.generators = vec![
        serde_json::from_value(json!({"clusters": {}, "deploymentStrategy": {"phases": []}}))
            .expect("a generator"),
    ];
    let first = told(&set).first.expect("something is waited for");
    assert_eq!((first.reason.as_str(), first.message.as_str()), ("GeneratorError", "no such repository"));
    assert!(first.since.is_some());
    set.status.conditions.clear();
    let first = told(&set).first.expect("something is waited for");
    assert_eq!((first.reason.as_str(), first.unblocks.is_empty()), ("NoReport", false));
}
