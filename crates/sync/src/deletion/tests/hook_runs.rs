use super::*;

#[test]
fn hooks_run_once_wave_by_wave_and_are_recorded() {
    let app = application(&[PRE, RESOURCES, PRE_CLEANUP]);
    let wanted = [hook("second", "PreDelete", 2), hook("first", "PreDelete", 1)];
    let decision = decided(&app, &[], &wanted);
    assert_eq!(said(&decision), ["create first"]);
    assert_eq!(waits(&decision), "waiting for completion of PreDelete hook batch/Job/first");
    let Verb::Apply(apply) = &decision.verbs[0] else { panic!("a creation") };
    assert!(apply.create_only);
    let mark = apply.object.annotation(OPERATION).expect("the deletion it runs for");
    assert!(mark.starts_with(&format!("{STAMP}/")), "{mark}");
    assert_eq!(apply.object.finalizers(), [HOOK_FINALIZER]);

    let running = run_of("first", "PreDelete", "Progressing", json!({}));
    let decision = decided(&app, &[running], &wanted);
    assert!(decision.verbs.is_empty());
    waits(&decision);

    let first = run_of("first", "PreDelete", "Healthy", json!({}));
    assert_eq!(said(&decided(&app, std::slice::from_ref(&first), &wanted)), ["create second"]);

    // One that completed and is being removed by somebody is still held, and so has run.
    let going = run_of("first", "PreDelete", "Healthy", json!({"deletionTimestamp": DELETED}));
    let second = run_of("second", "PreDelete", "", json!({}));
    let decision = decided(&app, &[going, second], &wanted);
    assert!(decision.verbs.is_empty() && decision.found.is_empty());
    assert_eq!(decision.finalizers, Some(vec![RESOURCES.to_owned(), PRE_CLEANUP.to_owned()]));
}

#[test]
fn hooks_let_go_where_no_cleanup_follows() {
    let app = application(&[POST]);
    let done = run_of("last", "PostDelete", "Healthy", json!({}));
    let decision = decided(&app, &[done], &[hook("last", "PostDelete", 0)]);
    assert_eq!(said(&decision), ["release last"]);
    assert_eq!(decision.finalizers, Some(Vec::new()));
}

#[test]
fn a_hook_of_an_earlier_run_does_not_count() {
    let app = application(&[PRE]);
    let wanted = [hook("h", "PreDelete", 0)];
    let stale = run_of("h", "PreDelete", "Healthy", json!({"annotations": {HOOK: "PreDelete"}}));
    let decision = decided(&app, &[stale], &wanted);
    assert_eq!(said(&decision), ["delete h", "release h"]);
    assert_eq!(waits(&decision), "waiting for deletion of PreDelete hook batch/Job/h of an earlier run");
    let going = run_of("h", "PreDelete", "Healthy", json!({"deletionTimestamp": DELETED, "finalizers": []}));
    assert!(decided(&app, &[going], &wanted).verbs.is_empty());
}

#[test]
fn a_failed_hook_is_named_and_run_again_after_a_while() {
    let wanted = [hook("h", "PreDelete", 0)];
    for health in ["Degraded", "Unknown"] {
        let failed = run_of("h", "PreDelete", health, json!({}));
        let decision = decided(&application(&[PRE]), &[failed], &wanted);
        assert_eq!(fails(&decision), "error executing pre-delete hooks: PreDelete hook(s) failed: n/h");
        assert!(decision.verbs.is_empty());
        assert_eq!(decision.look_again, "2026-01-01T12:00:40Z".parse().ok(), "it may be mended meanwhile");
    }
    let old = run_of("h", "PreDelete", "Degraded", json!({"creationTimestamp": "2026-01-01T11:00:00Z"}));
    let decision = decided(&application(&[PRE]), &[old], &wanted);
    assert_eq!(said(&decision), ["delete h", "release h"]);
    let after = run_of("h", "PostDelete", "Degraded", json!({}));
    let decision = decided(&application(&[POST]), &[after], &[hook("h", "PostDelete", 0)]);
    assert_eq!(fails(&decision), "PostDelete hook(s) failed: n/h");
    let broken = run_of("h", "PreDelete", "broken", json!({}));
    let decision = decided(&application(&[PRE]), &[broken], &wanted);
    assert_eq!(fails(&decision), "error executing pre-delete hooks: health of batch/Job/n/h: no script");
}

#[test]
fn a_failed_hook_that_git_has_mended_runs_at_once() {
    let app = application(&[PRE]);
    let broken = hook("h", "PreDelete", 0);
    let decision = decided(&app, &[], std::slice::from_ref(&broken));
    let Verb::Apply(apply) = &decision.verbs[0] else { panic!("a creation") };
    let mark = apply.object.annotation(OPERATION).expect("the deletion it runs for");
    let ran = |health: &str| {
        run_of("h", "PreDelete", health, json!({"annotations": {HOOK: "PreDelete", OPERATION: mark}}))
    };
    let mut mended = (*broken).clone();
    mended["spec"] = json!({"mended": true});
    let mended = [Arc::new(mended)];
    assert!(decided(&app, &[ran("Degraded")], &[broken]).verbs.is_empty());
    assert_eq!(said(&decided(&app, &[ran("Degraded")], &mended)), ["delete h", "release h"]);
    // One that is at work, or has done it, is not run again for a change.
    waits(&decided(&app, &[ran("Progressing")], &mended));
    assert_eq!(decided(&app, &[ran("Healthy")], &mended).finalizers, Some(Vec::new()));
}

#[test]
fn a_suspended_hook_has_not_run() {
    let suspended = run_of("h", "PreDelete", "Suspended", json!({}));
    let decision = decided(&application(&[PRE]), &[suspended], &[hook("h", "PreDelete", 0)]);
    assert_eq!((decision.finalizers.clone(), decision.verbs.len()), (None, 0));
    waits(&decision);
}

#[test]
fn a_name_to_be_generated_is_the_same_after_a_restart() {
    let mut generated = (*hook("", "PreDelete", 0)).clone();
    generated["metadata"]["name"] = Value::Null;
    generated["metadata"]["generateName"] = json!("backup-");
    let wanted = [Arc::new(generated)];
    let app = application(&[PRE]);
    assert_eq!(said(&decided(&app, &[], &wanted)), ["create backup-predelete-1767268800"]);
    let done = run_of("backup-predelete-1767268800", "PreDelete", "Healthy", json!({}));
    assert_eq!(decided(&app, &[done], &wanted).finalizers, Some(Vec::new()));
}

#[test]
fn hooks_that_cannot_be_rendered_are_an_error() {
    let app = application(&[PRE]);
    let rules = rules();
    let observation = Observation {
        application: &app,
        project: Project::Found(&rules),
        own_namespace: "argocd",
        cluster: READY,
        live: &[],
        kinds: &kinds,
        hooks: Rendered::Failed("no git"),
        health: &health,
        guarded_in_namespace: &nothing_guarded,
        settings: &DeletionSettings::default(),
        now: DELETED.parse().expect("a time"),
    };
    assert_eq!(fails(&decide(&observation)), "error executing pre-delete hooks: no git");
    let not = Observation { hooks: Rendered::Not, ..observation };
    assert_eq!(waits(&decide(&not)), "waiting for the PreDelete hooks to be rendered");
    assert_eq!(stage(&app).needs_hooks(), Some(HookType::PreDelete));
    assert_eq!(Stage::Cascade.needs_hooks(), None);
}

#[test]
fn hooks_may_wait_for_approval_too() {
    let app = application(&[PRE, RESOURCES]);
    let rules = rules();
    let guarded = [annotated("ConfigMap", "g", json!({SYNC_OPTIONS: "Delete=confirm"}))];
    let wanted = [hook("h", "PreDelete", 0)];
    let decide_with = |hooks_wait_for_approval: bool| {
        decide(&Observation {
            application: &app,
            project: Project::Found(&rules),
            own_namespace: "argocd",
            cluster: READY,
            live: &guarded,
            kinds: &kinds,
            hooks: Rendered::Hooks(&wanted),
            health: &health,
            guarded_in_namespace: &nothing_guarded,
            settings: &DeletionSettings { hooks_wait_for_approval, ..DeletionSettings::default() },
            now: DELETED.parse().expect("a time"),
        })
    };
    assert_eq!(said(&decide_with(false)), ["create h"]);
    assert_eq!(decide_with(true).approvals.len(), 1);
}

#[test]
fn pre_delete_hooks_go_with_the_resources() {
    let app = application(&[RESOURCES, PRE_CLEANUP]);
    let hook = run_of("h", "PreDelete", "Healthy", json!({}));
    let decision = decided(&app, &[hook, live("ConfigMap", "a", json!({}))], &[]);
    assert_eq!(said(&decision), ["release h", "delete h"]);
}

#[test]
fn hooks_are_cleaned_up_as_their_policies_say() {
    let with = |policy: &str, health: &str| {
        let mut object = (*run_of("h", "PostDelete", health, json!({}))).clone();
        if !policy.is_empty() {
            object["metadata"]["annotations"][HOOK_DELETE_POLICY] = json!(policy);
        }
        decided(&application(&[POST_CLEANUP]), &[Arc::new(object)], &[])
    };
    for (policy, health, deleted) in [
        ("", "Healthy", true),
        ("nonsense", "Healthy", true),
        ("HookSucceeded", "Healthy", true),
        ("HookSucceeded", "Degraded", false),
        ("HookFailed", "Healthy", false),
        ("HookFailed", "Degraded", true),
        ("BeforeHookCreation", "Healthy", false),
        ("BeforeHookCreation,HookSucceeded", "Healthy", true),
    ] {
        let decision = with(policy, health);
        if deleted {
            assert_eq!(said(&decision), ["delete h", "release h"], "{policy} {health}");
            assert_eq!(waits(&decision), "waiting for deletion of PostDelete hook batch/Job/h");
        } else {
            assert_eq!(said(&decision), ["release h"], "{policy} {health}");
            assert_eq!(decision.finalizers, Some(Vec::new()));
        }
    }
    let none = decided(&application(&[PRE_CLEANUP, POST_CLEANUP]), &[], &[]);
    assert_eq!(none.finalizers, Some(vec![POST_CLEANUP.to_owned()]));
}

#[test]
fn hooks_are_held_to_the_project() {
    let app = application(&[PRE]);
    let mut refused = (*hook("h", "PreDelete", 0)).clone();
    (refused["apiVersion"], refused["kind"]) = (json!("v1"), json!("Forbidden"));
    let decision = decided(&app, &[], &[Arc::new(refused.clone())]);
    let expected =
        "error executing pre-delete hooks: /Forbidden/n/h: resource :Forbidden is not permitted in project p";
    assert_eq!(fails(&decision), expected);
    refused["kind"] = json!("Nowhere");
    assert!(fails(&decided(&app, &[], &[Arc::new(refused)])).contains("unable to verify permissions"));
}
