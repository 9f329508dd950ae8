use super::*;
use serde_json::{Value, json};

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().expect("a time")
}

const OPEN: Verdict<'_> = Verdict { allowed: true, error: None, blocking: Vec::new(), changes_at: None };

/// An Application at commit `new` of one source, with automatic sync, changed by `change`.
fn application(change: Value) -> Application {
    let mut app = json!({
        "metadata": {"name": "web"},
        "spec": {"project": "default", "destination": {"name": "c"}, "source": {"repoURL": "r", "path": "p"},
            "syncPolicy": {"automated": {}, "syncOptions": ["CreateNamespace=true"]}},
    });
    merge(&mut app, &change);
    serde_json::from_value(app).expect("an Application")
}

fn merge(into: &mut Value, change: &Value) {
    match (into.as_object_mut(), change.as_object()) {
        (Some(fields), Some(changes)) => {
            for (name, change) in changes {
                merge(fields.entry(name).or_insert(Value::Null), change);
            }
        }
        _ => *into = change.clone(),
    }
}

fn last(phase: &str, revision: &str, attempts: i64) -> Value {
    json!({"status": {"operationState": {
        "phase": phase, "message": "it broke", "startedAt": "2026-01-01T00:59:00Z",
        "finishedAt": "2026-01-01T00:59:50Z",
        "operation": {"sync": {"autoHealAttemptsCount": attempts}},
        "syncResult": {"revision": revision, "source": {"repoURL": "r", "path": "p"}}}}})
}

fn rows(rows: Value) -> Vec<ResourceStatus> {
    serde_json::from_value(rows).expect("rows")
}

fn drifted() -> Vec<ResourceStatus> {
    rows(json!([
        {"group": "apps", "kind": "Deployment", "namespace": "n", "name": "web", "status": "OutOfSync"},
        {"kind": "Service", "namespace": "n", "name": "web", "status": "Synced"},
        {"group": "batch", "kind": "Job", "namespace": "n", "name": "hook", "hook": true},
    ]))
}

fn decision(app: &Application, resources: &[ResourceStatus]) -> Decision {
    decide(&Observation {
        application: app,
        sync: &SyncStatus {
            status: SyncCode::OutOfSync,
            revision: "new".to_owned(),
            ..SyncStatus::default()
        },
        resources,
        windows: &OPEN,
        revisions_may_differ: true,
        self_heal: &SelfHealSettings::default(),
        now: now(),
    })
}

#[test]
fn a_new_revision_is_synced() {
    let decision = decision(&application(last("Succeeded", "old", 4)), &drifted());
    assert_eq!(decision.reason, "Initiated automated sync to 'new'");
    assert_eq!(decision.conditions, Some(Vec::new()));
    let operation = decision.start.expect("an operation");
    assert!(operation.initiated_by.automated);
    assert_eq!(operation.retry.limit, 5);
    let sync = operation.sync.expect("a sync");
    assert_eq!((sync.revision.as_str(), sync.prune), ("new", false));
    assert_eq!(sync.sync_options, ["CreateNamespace=true"]);
    assert_eq!(sync.source.expect("a source").path, "p");
    // A new revision starts the count of attempts anew and syncs everything.
    assert_eq!((sync.self_heal_attempts_count, sync.resources.len()), (0, 0));
}

#[test]
fn the_policys_retry_is_taken() {
    let app = application(json!({"spec": {"syncPolicy": {"retry": {"limit": 2}}}}));
    assert_eq!(decision(&app, &drifted()).start.expect("an operation").retry.limit, 2);
}

#[test]
fn reasons_not_to_sync_come_in_order() {
    let prune_only =
        rows(json!([{"kind": "A", "name": "a", "status": "OutOfSync", "requiresPruning": true}]));
    for (change, resources, reason) in [
        (json!({"spec": {"syncPolicy": {"automated": null}}}), drifted(), "automatic sync is off"),
        (
            json!({"spec": {"syncPolicy": {"automated": {"enabled": false}}}}),
            drifted(),
            "automatic sync is off",
        ),
        (json!({"operation": {}}), drifted(), "another operation is in progress"),
        (last("Running", "old", 0), drifted(), "another operation is in progress"),
        (
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            drifted(),
            "deletion in progress",
        ),
        (json!({}), prune_only, "need to prune extra resources only but automated prune is disabled"),
        (last("Succeeded", "new", 0), drifted(), "most recent sync already to [new]"),
    ] {
        let decision = decision(&application(change.clone()), &resources);
        assert_eq!(decision.start, None, "{change}");
        assert_eq!(decision.reason, format!("Skipping auto-sync: {reason}"));
        assert_eq!(decision.conditions, Some(Vec::new()));
    }
}

#[test]
fn only_what_is_out_of_sync_is_synced() {
    let app = application(json!({}));
    for status in [SyncCode::Synced, SyncCode::Unknown] {
        let sync = SyncStatus { status, ..SyncStatus::default() };
        let observation = Observation {
            application: &app,
            sync: &sync,
            resources: &drifted(),
            windows: &OPEN,
            revisions_may_differ: true,
            self_heal: &SelfHealSettings::default(),
            now: now(),
        };
        assert_eq!(decide(&observation).start, None);
    }
}

#[test]
fn a_closed_window_leaves_conditions_alone() {
    let app = application(json!({}));
    let opens = "2026-01-01T01:00:07Z".parse().ok();
    let closed = Verdict { allowed: false, changes_at: opens, ..OPEN };
    let sync = SyncStatus { status: SyncCode::OutOfSync, ..SyncStatus::default() };
    let decision = decide(&Observation {
        application: &app,
        sync: &sync,
        resources: &drifted(),
        windows: &closed,
        revisions_may_differ: true,
        self_heal: &SelfHealSettings::default(),
        now: now(),
    });
    assert_eq!((decision.start, decision.conditions), (None, None));
    assert_eq!(decision.look_again, Some(Duration::from_secs(7)));
}

fn condition(decision: &Decision) -> &str {
    match decision.conditions.as_deref() {
        Some([finding]) if finding.kind == SYNC_ERROR => &finding.message,
        other => panic!("one SyncError, not {other:?}"),
    }
}

#[test]
fn a_revision_that_failed_is_not_tried_again() {
    let failed = decision(&application(last("Failed", "new", 0)), &drifted());
    assert_eq!(condition(&failed), "Failed last sync attempt to [new]: it broke");
    assert!(decision(&application(last("Failed", "old", 0)), &drifted()).start.is_some());
    let mut other_source = last("Failed", "new", 0);
    merge(
        &mut other_source,
        &json!({"status": {"operationState": {"syncResult": {"source": {"path": "q"}}}}}),
    );
    assert!(decision(&application(other_source), &drifted()).start.is_some());
    let mut no_result = last("Error", "new", 0);
    merge(&mut no_result, &json!({"status": {"operationState": {"syncResult": null}}}));
    let none = decision(&application(no_result), &drifted());
    assert_eq!(condition(&none), "Failed last sync attempt to []: it broke");
}

#[test]
fn revisions_that_render_the_same_are_the_same_attempt() {
    let app = application(last("Succeeded", "old", 0));
    let sync =
        SyncStatus { status: SyncCode::OutOfSync, revision: "new".to_owned(), ..SyncStatus::default() };
    let decision = decide(&Observation {
        application: &app,
        sync: &sync,
        resources: &drifted(),
        windows: &OPEN,
        revisions_may_differ: false,
        self_heal: &SelfHealSettings::default(),
        now: now(),
    });
    assert_eq!(decision.start, None);
}

fn healing(attempts: i64) -> Value {
    let mut change = last("Succeeded", "new", attempts);
    merge(&mut change, &json!({"spec": {"syncPolicy": {"automated": {"selfHeal": true}}}}));
    change
}

#[test]
fn drift_is_healed_by_a_sync_of_what_drifted() {
    let sync = decision(&application(healing(2)), &drifted()).start.expect("an operation").sync;
    let sync = sync.expect("a sync");
    assert_eq!(sync.self_heal_attempts_count, 3);
    let resources = serde_json::to_value(&sync.resources).expect("JSON");
    assert_eq!(resources, json!([{"group": "apps", "kind": "Deployment", "name": "web"}]));
}

#[test]
fn healing_waits_longer_each_time() {
    // The last operation ended ten seconds ago; the pause after three attempts is 18 seconds.
    let decision = decision(&application(healing(3)), &drifted());
    assert_eq!((decision.start, decision.look_again), (None, Some(Duration::from_secs(8))));
    assert_eq!(decision.conditions, Some(Vec::new()));
}

#[test]
fn an_application_is_not_emptied_unless_that_is_allowed() {
    let gone = rows(json!([{"kind": "A", "name": "a", "status": "OutOfSync", "requiresPruning": true}]));
    let with = |automated: Value| application(json!({"spec": {"syncPolicy": {"automated": automated}}}));
    for resources in [gone.clone(), Vec::new()] {
        let refused = decision(&with(json!({"prune": true})), &resources);
        let expected = "Skipping sync attempt to [new]: auto-sync will wipe out all resources";
        assert_eq!(condition(&refused), expected);
    }
    assert!(decision(&with(json!({"prune": true, "allowEmpty": true})), &gone).start.is_some());
    let sync = decision(&with(json!({"prune": true})), &drifted()).start.expect("an operation").sync;
    assert!(sync.expect("a sync").prune);
}

#[test]
fn several_sources_have_several_revisions() {
    let sources = json!([{"repoURL": "a", "path": "."}, {"repoURL": "b", "path": "."}]);
    let app = application(json!({"spec": {"sources": sources}, "status": {"operationState": {
        "phase": "Failed", "message": "it broke",
        "syncResult": {"revisions": ["1", "2"], "sources": sources}}}}));
    let decide_at = |revisions: [&str; 2]| {
        decide(&Observation {
            application: &app,
            sync: &SyncStatus {
                status: SyncCode::OutOfSync,
                revisions: revisions.map(str::to_owned).to_vec(),
                ..SyncStatus::default()
            },
            resources: &drifted(),
            windows: &OPEN,
            revisions_may_differ: true,
            self_heal: &SelfHealSettings::default(),
            now: now(),
        })
    };
    assert_eq!(condition(&decide_at(["1", "2"])), "Failed last sync attempt to [1 2]: it broke");
    let started = decide_at(["1", "3"]);
    assert_eq!(started.reason, "Initiated automated sync to '1, 3'");
    let sync = started.start.expect("an operation").sync.expect("a sync");
    assert_eq!((sync.source, sync.sources.len(), sync.revisions.len()), (None, 2, 2));
}
