use super::*;
use baton_api::names::resource::{DELETION_APPROVED, HOOK, SYNC_OPTIONS, SYNC_WAVE, TRACKING_ID};
use baton_api::object::KindInfo;
use baton_api::project::AppProject;
use serde_json::json;

fn application(change: Value) -> Application {
    let mut app =
        json!({"metadata": {"name": "web", "uid": "u"}, "spec": {"destination": {"namespace": "n"}}});
    for (field, value) in change.as_object().expect("fields") {
        for (name, value) in value.as_object().expect("fields") {
            app[field][name] = value.clone();
        }
    }
    serde_json::from_value(app).expect("an Application")
}

fn kinds(_: &str, kind: &str) -> Result<Option<KindInfo>, String> {
    Ok(Some(KindInfo { plural: String::new(), namespaced: kind != "Namespace" }))
}

fn no_health(_: &Value) -> Result<Option<Health>, String> {
    Ok(None)
}

fn rules(spec: Value) -> ProjectRules {
    let project: AppProject =
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).expect("a project");
    ProjectRules::new(&project, &[], &[], &[])
}

fn object(kind: &str, name: &str, annotations: Value) -> Arc<Value> {
    let mut annotations = annotations;
    annotations[TRACKING_ID] = json!(format!("web:/{kind}:n/{name}"));
    Arc::new(json!({"apiVersion": "v1", "kind": kind, "metadata": {
        "name": name, "namespace": "n", "annotations": annotations}}))
}

fn both(object: Arc<Value>, modified: bool) -> Pair {
    Pair { key: object.key(), target: Some(object.clone()), live: Some(object), modified }
}

fn extra(object: Arc<Value>) -> Pair {
    Pair { target: None, ..both(object, true) }
}

fn absent(object: Arc<Value>) -> Pair {
    Pair { live: None, ..both(object, true) }
}

fn judged(app: &Application, pairs: &[Pair], failed: bool, project: Value) -> Found {
    judge(&Comparison {
        application: app,
        pairs,
        hooks: &[object("Job", "hook", json!({HOOK: "PreSync", SYNC_WAVE: "-2"}))],
        kinds: &kinds,
        project: &rules(project),
        tracking: &Tracking::default(),
        health: &no_health,
        failed,
        now: "2026-01-01T12:00:00Z".parse().expect("a time"),
    })
}

fn found(pairs: &[Pair]) -> Found {
    judged(&application(json!({})), pairs, false, json!({}))
}

#[test]
fn rows_say_whether_resources_match_and_are_sorted() {
    let none = || json!({});
    let found = found(&[
        both(object("Secret", "same", json!({SYNC_WAVE: "3"})), false),
        both(object("ConfigMap", "other", none()), true),
        extra(object("ConfigMap", "extra", none())),
        absent(object("ConfigMap", "absent", none())),
    ]);
    let rows: Vec<(&str, &str, bool)> = found
        .resources
        .iter()
        .map(|row| (row.name.as_str(), row.status.as_str(), row.requires_pruning))
        .collect();
    assert_eq!(
        rows,
        [
            ("absent", "OutOfSync", false),
            ("extra", "OutOfSync", true),
            ("other", "OutOfSync", false),
            ("same", "Synced", false),
        ]
    );
    assert_eq!(found.resources[3].sync_wave, 3);
    assert_eq!(found.sync, SyncCode::OutOfSync);
    assert_eq!(self::found(&[both(object("Secret", "same", none()), false)]).sync, SyncCode::Synced);
}

#[test]
fn hooks_skipped_objects_and_copies_have_no_status() {
    let copied =
        Arc::new(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "copy", "namespace": "n",
        "annotations": {TRACKING_ID: "web:/Pod:n/original"}}}));
    let found = found(&[
        extra(object("Job", "hook", json!({HOOK: "PreSync"}))),
        both(object("Job", "skip", json!({HOOK: "Skip"})), true),
        extra(copied),
    ]);
    assert_eq!(found.sync, SyncCode::Synced);
    assert!(found.resources.iter().all(|row| row.status.is_unset()));
    let hook = &found.resources[0];
    assert_eq!((hook.hook, hook.sync_wave), (true, -2));
    let copy = &found.resources[2];
    assert_eq!((copy.name.as_str(), copy.requires_pruning), ("copy", false));
}

#[test]
fn an_extra_object_may_say_that_it_does_not_matter() {
    let found = found(&[extra(object("ConfigMap", "x", json!({COMPARE_OPTIONS: "IgnoreExtraneous"})))]);
    assert_eq!((found.sync, found.resources[0].status.as_str()), (SyncCode::Synced, "OutOfSync"));
    let missing = absent(object("ConfigMap", "x", json!({COMPARE_OPTIONS: "IgnoreExtraneous"})));
    assert_eq!(self::found(&[missing]).sync, SyncCode::OutOfSync);
}

#[test]
fn what_cannot_be_compared_or_is_not_permitted_is_unknown() {
    let app = application(json!({}));
    let pairs = [both(object("Secret", "x", json!({})), false)];
    let failed = judged(&app, &pairs, true, json!({}));
    assert_eq!((failed.sync, failed.resources[0].status.as_str()), (SyncCode::Unknown, "Unknown"));
    let refused = json!({"namespaceResourceBlacklist": [{"group": "", "kind": "Secret"}]});
    let refused = judged(&app, &pairs, false, refused);
    assert_eq!((refused.sync, refused.resources[0].status.as_str()), (SyncCode::Synced, "Unknown"));
}

#[test]
fn the_namespace_an_application_manages_is_no_difference_before_it_exists() {
    let metadata = json!({"managedNamespaceMetadata": {"labels": {"a": "b"}}});
    let app = application(json!({"spec": {"syncPolicy": metadata}}));
    let namespace = Arc::new(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}));
    let everything = json!({"clusterResourceWhitelist": [{"group": "*", "kind": "*"}]});
    let managed = judged(&app, &[absent(namespace.clone())], false, everything.clone());
    assert_eq!(managed.sync, SyncCode::Synced);
    let plain = judged(&application(json!({})), &[absent(namespace)], false, everything.clone());
    assert_eq!(plain.sync, SyncCode::OutOfSync);
    let state = json!({"operationState": {"phase": "Succeeded", "syncResult": {"revision": "x"}}});
    let changed = application(json!({"spec": {"syncPolicy": metadata}, "status": state}));
    assert_eq!(judged(&changed, &[], false, everything).sync, SyncCode::OutOfSync);
}

#[test]
fn confirmation_is_a_property_and_approval_a_wait() {
    let confirm = || json!({SYNC_OPTIONS: "Prune=confirm"});
    let running = json!({"operationState": {"phase": "Running", "startedAt": "2026-01-01T11:59:00Z",
        "operation": {"sync": {"prune": true}}}});
    let flags = |app: &Application, pair: Pair| {
        let row = judged(app, &[pair], false, json!({})).resources.remove(0);
        (row.requires_deletion_confirmation, row.requires_deletion_approval)
    };
    let idle = application(json!({}));
    let busy = application(json!({"status": running}));
    assert_eq!(flags(&idle, both(object("ConfigMap", "x", confirm()), false)), (true, false));
    assert_eq!(flags(&idle, extra(object("ConfigMap", "x", confirm()))), (true, true));
    assert_eq!(flags(&idle, extra(object("ConfigMap", "x", json!({})))), (false, false));
    assert_eq!(flags(&busy, extra(object("ConfigMap", "x", confirm()))), (true, true));
    // Hooks go by their own policies.
    let hook = object("Job", "x", json!({SYNC_OPTIONS: "Prune=confirm", HOOK: "PreSync"}));
    assert_eq!(flags(&busy, extra(hook)), (true, false));
    // The Application's approval of the running sync counts, an older one does not.
    let approved = |time: &str| {
        application(json!({"status": running, "metadata": {"annotations": {DELETION_APPROVED: time}}}))
    };
    let fresh = approved("2026-01-01T11:59:30Z");
    assert_eq!(flags(&fresh, extra(object("ConfigMap", "x", confirm()))), (true, false));
    let stale = approved("2026-01-01T11:58:30Z");
    assert_eq!(flags(&stale, extra(object("ConfigMap", "x", confirm()))), (true, true));
}

#[test]
fn what_a_running_sync_asks_approval_for_stays_marked_when_a_newer_commit_has_it_again() {
    let confirm = json!({SYNC_OPTIONS: "Prune=confirm"});
    let marked = json!({"kind": "ConfigMap", "version": "v1", "namespace": "n", "name": "x",
        "requiresDeletionApproval": true});
    let flag = |phase: &str, approved: &str| {
        let status = json!({"resources": [marked], "operationState": {"phase": phase,
            "startedAt": "2026-01-01T11:59:00Z", "operation": {"sync": {"prune": true}}}});
        let metadata = json!({"annotations": {DELETION_APPROVED: approved}});
        let app = application(json!({"status": status, "metadata": metadata}));
        let pair = both(object("ConfigMap", "x", confirm.clone()), false);
        judged(&app, &[pair], false, json!({})).resources.remove(0).requires_deletion_approval
    };
    assert!(flag("Running", ""));
    assert!(!flag("Running", "2026-01-01T11:59:30Z"), "it is approved");
    assert!(!flag("Succeeded", ""), "nothing asks for it any more");
}

#[test]
fn a_deletion_makes_guarded_resources_wait() {
    let deleting = |finalizers: Value| {
        application(
            json!({"metadata": {"deletionTimestamp": "2026-01-01T11:59:00Z", "finalizers": finalizers}}),
        )
    };
    let waits = |app: &Application, annotations: Value| {
        let pair = both(object("ConfigMap", "x", annotations), false);
        judged(app, &[pair], false, json!({})).resources[0].requires_deletion_approval
    };
    let cascade = deleting(json!(["resources-finalizer.argocd.argoproj.io"]));
    assert!(waits(&cascade, json!({SYNC_OPTIONS: "Delete=confirm"})));
    assert!(waits(&cascade, json!({SYNC_OPTIONS: "Prune=confirm"})));
    assert!(!waits(&cascade, json!({SYNC_OPTIONS: "Prune=confirm,Delete=true"})));
    assert!(!waits(&cascade, json!({})));
    assert!(!waits(&deleting(json!([])), json!({SYNC_OPTIONS: "Delete=confirm"})));
    let found = judged(
        &cascade,
        &[both(object("ConfigMap", "x", json!({SYNC_OPTIONS: "Delete=confirm"})), false)],
        false,
        json!({}),
    );
    let keys: Vec<String> = awaiting_approval(&found.resources).iter().map(ToString::to_string).collect();
    assert_eq!(keys, ["/ConfigMap/n/x"]);
    let mut rows = found.resources.clone();
    mark_waiting(&mut rows, &[]);
    assert!(awaiting_approval(&rows).is_empty());
    mark_waiting(&mut rows, &awaiting_approval(&found.resources));
    assert_eq!(rows, found.resources);
}
