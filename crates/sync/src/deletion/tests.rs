use super::*;
use baton_api::application_status::HealthCode;
use baton_api::health::Health;
use baton_api::names::baton::OPERATION;
use baton_api::names::finalizer::{RESOURCES, RESOURCES_BACKGROUND};
use baton_api::names::resource::{
    DELETION_APPROVED, HELM_RESOURCE_POLICY, HOOK, HOOK_DELETE_POLICY, HOOK_FINALIZER, SYNC_OPTIONS,
    SYNC_WAVE,
};
use baton_api::object::KindInfo;
use baton_api::project::AppProject;
use serde_json::json;

use crate::action::Propagation;
use crate::conditions::DELETION_APPROVAL_REQUIRED_INFO;

const DELETED: &str = "2026-01-01T12:00:00Z";
const STAMP: &str = "delete/2026-01-01T12:00:00Z";
const PRE: &str = "pre-delete-finalizer.argocd.argoproj.io";
const PRE_CLEANUP: &str = "pre-delete-finalizer.argocd.argoproj.io/cleanup";
const POST: &str = "post-delete-finalizer.argocd.argoproj.io";
const POST_CLEANUP: &str = "post-delete-finalizer.argocd.argoproj.io/cleanup";

fn application(finalizers: &[&str]) -> Application {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "argocd", "uid": "u", "deletionTimestamp": DELETED,
            "finalizers": finalizers},
        "spec": {"project": "p", "destination": {"name": "c", "namespace": "n"}},
    }))
    .expect("an Application")
}

/// Something live, whose health stands in `health`.
fn live(kind: &str, name: &str, change: Value) -> Arc<Value> {
    let mut object = json!({"apiVersion": "v1", "kind": kind, "health": "", "metadata": {"name": name,
        "namespace": if kind == "Namespace" { "" } else { "n" }, "uid": format!("uid-{name}"),
        "resourceVersion": "7", "creationTimestamp": "2026-01-01T12:00:10Z"}});
    for (field, value) in change.as_object().expect("fields") {
        match field.as_str() {
            "health" => object["health"] = value.clone(),
            field => object["metadata"][field] = value.clone(),
        }
    }
    Arc::new(object)
}

fn annotated(kind: &str, name: &str, annotations: Value) -> Arc<Value> {
    live(kind, name, json!({"annotations": annotations}))
}

fn hook(name: &str, stage: &str, wave: i64) -> Arc<Value> {
    Arc::new(json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "n",
        "annotations": {HOOK: stage, SYNC_WAVE: wave.to_string()}}}))
}

/// A hook that runs or ran for this deletion.
fn run_of(name: &str, stage: &str, health: &str, change: Value) -> Arc<Value> {
    let mut object = (*live("Job", name, json!({"health": health}))).clone();
    object["apiVersion"] = json!("batch/v1");
    object["metadata"]["annotations"] = json!({HOOK: stage, OPERATION: STAMP});
    object["metadata"]["finalizers"] = json!([HOOK_FINALIZER]);
    for (field, value) in change.as_object().expect("fields") {
        object["metadata"][field] = value.clone();
    }
    Arc::new(object)
}

fn health(object: &Value) -> Result<Option<Health>, String> {
    match object["health"].as_str().unwrap_or_default() {
        "" => Ok(None),
        "broken" => Err("no script".to_owned()),
        word => Ok(Some(Health::new(HealthCode::from(word.to_owned()), ""))),
    }
}

fn nothing_guarded(_: &str) -> Vec<(ResourceKey, Arc<Value>)> {
    Vec::new()
}

fn kinds(_: &str, kind: &str) -> Result<Option<KindInfo>, String> {
    match kind {
        "Nowhere" => Ok(None),
        kind => Ok(Some(KindInfo { plural: String::new(), namespaced: kind != "Namespace" })),
    }
}

fn rules() -> ProjectRules {
    let spec = json!({"destinations": [{"server": "*", "namespace": "*"}],
        "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        "namespaceResourceBlacklist": [{"group": "", "kind": "Forbidden"}]});
    let project: AppProject =
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).expect("a project");
    ProjectRules::new(&project, &[], &[], &[])
}

const READY: Cluster<'_> = Cluster::Ready(DestinationCluster { server: "https://c", name: "c" });

fn decided(app: &Application, live: &[Arc<Value>], hooks: &[Arc<Value>]) -> Decision {
    decide(&Observation {
        application: app,
        project: Project::Found(&rules()),
        own_namespace: "argocd",
        cluster: READY,
        live,
        kinds: &kinds,
        hooks: Rendered::Hooks(hooks),
        health: &health,
        guarded_in_namespace: &nothing_guarded,
        settings: &DeletionSettings::default(),
        now: "2026-01-01T12:00:30Z".parse().expect("a time"),
    })
}

/// Verbs in a line each.
fn said(decision: &Decision) -> Vec<String> {
    let verb = |verb: &Verb| match verb {
        Verb::Apply(apply) => format!("create {}", apply.object.name()),
        Verb::Delete(delete) => format!("delete {}", delete.key.name),
        Verb::ReleaseHook { key, .. } => format!("release {}", key.name),
        Verb::Look { key, .. } => format!("look {}", key.name),
    };
    decision.verbs.iter().map(verb).collect()
}

fn condition(decision: &Decision) -> (&str, &str) {
    match &decision.found[..] {
        [found] => (&found.kind, &found.message),
        other => panic!("one condition, not {other:?}"),
    }
}

fn waits(decision: &Decision) -> &str {
    let (kind, message) = condition(decision);
    assert_eq!(kind, DELETION_WAITING_INFO);
    message
}

fn fails(decision: &Decision) -> &str {
    let (kind, message) = condition(decision);
    assert_eq!(kind, DELETION_ERROR);
    message
}

#[test]
fn the_stages_stand_in_the_finalizers() {
    let all = [RESOURCES, PRE, PRE_CLEANUP, POST, POST_CLEANUP];
    for (goes, expected) in [
        (PRE, Stage::Hooks(HookType::PreDelete)),
        (RESOURCES, Stage::Cascade),
        (POST, Stage::Hooks(HookType::PostDelete)),
        (PRE_CLEANUP, Stage::Cleanup(HookType::PreDelete)),
        (POST_CLEANUP, Stage::Cleanup(HookType::PostDelete)),
    ] {
        let order = [PRE, RESOURCES, POST, PRE_CLEANUP, POST_CLEANUP];
        let gone = order.iter().position(|finalizer| *finalizer == goes).expect("listed");
        let left: Vec<&str> =
            all.into_iter().filter(|finalizer| !order[..gone].contains(finalizer)).collect();
        assert_eq!(stage(&application(&left)), expected);
    }
    assert_eq!(stage(&application(&["other"])), Stage::Done);
    assert_eq!(decided(&application(&["other"]), &[], &[]), Decision::default());
}

#[test]
fn a_running_operation_ends_first() {
    let mut app = application(&[RESOURCES]);
    app.operation = Some(baton_api::operation::Operation::default());
    let decision = decided(&app, &[live("ConfigMap", "a", json!({}))], &[]);
    assert_eq!(waits(&decision), "waiting for the running operation to end or be terminated");
    assert!(decision.verbs.is_empty());
}

#[test]
fn an_unknown_cluster_leaves_everything_behind() {
    let app = application(&["other", RESOURCES, PRE, PRE_CLEANUP, POST_CLEANUP]);
    let rules = rules();
    let observation = Observation {
        application: &app,
        project: Project::Missing,
        own_namespace: "argocd",
        cluster: Cluster::Unknown("there are no clusters with this name: c"),
        live: &[],
        kinds: &kinds,
        hooks: Rendered::Not,
        health: &health,
        guarded_in_namespace: &nothing_guarded,
        settings: &DeletionSettings::default(),
        now: DELETED.parse().expect("a time"),
    };
    let decision = decide(&observation);
    assert_eq!(decision.finalizers, Some(vec!["other".to_owned()]));
    assert!(decision.event.is_some_and(|event| event.contains("no clusters with this name")));
    let unreachable = Observation { cluster: Cluster::Unreachable("timed out"), ..observation };
    let decision = decide(&unreachable);
    assert_eq!(fails(&decision), "the destination cluster cannot be reached: timed out");
    assert_eq!(decision.finalizers, None);
    let no_project = Observation { cluster: READY, ..observation };
    assert_eq!(fails(&decide(&no_project)), "Application referencing project p which does not exist");
    let failed = Observation { project: Project::Failed("no list"), ..no_project };
    assert_eq!(fails(&decide(&failed)), "no list");
    let mut elsewhere = app.clone();
    elsewhere.metadata.namespace = Some("team".to_owned());
    let refused = Observation { application: &elsewhere, project: Project::Found(&rules), ..no_project };
    assert!(fails(&decide(&refused)).contains("is not permitted to use project 'p'"));
}

#[test]
fn the_highest_wave_goes_first_and_kinds_in_reverse() {
    let app = application(&[RESOURCES]);
    let mut objects = vec![
        annotated("ConfigMap", "early", json!({SYNC_WAVE: "-1"})),
        live("Namespace", "n", json!({})),
        live("Service", "web", json!({})),
        live("Widget", "custom", json!({})),
        annotated("ConfigMap", "late", json!({SYNC_WAVE: "5"})),
        annotated("Secret", "late-too", json!({SYNC_WAVE: "5"})),
    ];
    let mut order = Vec::new();
    while !objects.is_empty() {
        let decision = decided(&app, &objects, &[]);
        assert_eq!(decision.finalizers, None);
        let goes: Vec<String> = decision
            .verbs
            .iter()
            .map(|verb| match verb {
                Verb::Delete(delete) => delete.key.name.clone(),
                other => panic!("a deletion, not {other:?}"),
            })
            .collect();
        objects.retain(|object| !goes.contains(&object.name().to_owned()));
        order.push(goes.join(" "));
    }
    assert_eq!(order, ["late", "late-too", "custom", "web", "n", "early"]);
    assert_eq!(decided(&app, &[], &[]).finalizers, Some(Vec::new()));
}

#[test]
fn what_is_being_deleted_is_waited_for() {
    let app = application(&[RESOURCES]);
    let going = live(
        "Widget",
        "x",
        json!({"deletionTimestamp": DELETED,
        "finalizers": ["foregroundDeletion", "example.com/keep"]}),
    );
    let decision = decided(&app, &[going, live("ConfigMap", "later", json!({}))], &[]);
    assert_eq!(waits(&decision), "waiting for deletion of /Widget/x, held by finalizers example.com/keep");
    assert!(decision.verbs.is_empty());
    let objects: Vec<_> = (0..3).map(|index| live("ConfigMap", &format!("c{index}"), json!({}))).collect();
    let decision = decided(&app, &objects, &[]);
    assert_eq!(waits(&decision), "waiting for deletion of /ConfigMap/c0 and 2 more resources");
    assert_eq!(decision.verbs.len(), 3);
}

#[test]
fn dependants_go_as_the_first_finalizer_says() {
    for (finalizers, expected) in [
        (vec![RESOURCES], Propagation::Foreground),
        (vec![RESOURCES_BACKGROUND, RESOURCES], Propagation::Background),
        (vec![RESOURCES, RESOURCES_BACKGROUND], Propagation::Foreground),
    ] {
        let decision = decided(&application(&finalizers), &[live("ConfigMap", "a", json!({}))], &[]);
        let Verb::Delete(delete) = &decision.verbs[0] else { panic!("a deletion") };
        assert_eq!((delete.propagation, delete.uid.as_str()), (expected, "uid-a"));
        assert_eq!(delete.resource_version, None);
    }
    let both = application(&[RESOURCES_BACKGROUND, RESOURCES, "other"]);
    assert_eq!(decided(&both, &[], &[]).finalizers, Some(vec!["other".to_owned()]));
}

#[test]
fn some_objects_outlive_the_application() {
    let app = application(&[RESOURCES]);
    let definition =
        Arc::new(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "crd"}}));
    let itself = Arc::new(json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "web", "namespace": "argocd", "uid": "u"}}));
    let objects = [
        definition,
        itself,
        annotated("ConfigMap", "kept", json!({SYNC_OPTIONS: "Delete=false"})),
        annotated("ConfigMap", "helm", json!({HELM_RESOURCE_POLICY: "keep"})),
        live("Forbidden", "secret", json!({"deletionTimestamp": DELETED})),
    ];
    let decision = decided(&app, &objects, &[]);
    assert_eq!(decision.finalizers, Some(Vec::new()));
    let kept: Vec<(&str, Kept)> = decision.kept.iter().map(|(key, why)| (key.name.as_str(), *why)).collect();
    assert_eq!(
        kept,
        [
            ("crd", Kept::Definition),
            ("web", Kept::Itself),
            ("kept", Kept::Option),
            ("helm", Kept::HelmPolicy),
            ("secret", Kept::NotPermitted),
        ]
    );
    // The Application's default holds for objects that say nothing.
    let mut by_default = app;
    by_default.spec.sync_policy =
        serde_json::from_value(json!({"syncOptions": ["Delete=false"]})).expect("a policy");
    let objects = [
        live("ConfigMap", "kept", json!({})),
        annotated("ConfigMap", "goes", json!({SYNC_OPTIONS: "Delete=true"})),
    ];
    assert_eq!(said(&decided(&by_default, &objects, &[])), ["delete goes"]);
}

#[test]
fn nothing_goes_before_everything_guarded_is_approved() {
    let app = application(&[RESOURCES]);
    let guarded = annotated("ConfigMap", "guarded", json!({SYNC_OPTIONS: "Delete=confirm", SYNC_WAVE: "-9"}));
    let other = live("ConfigMap", "other", json!({}));
    let decision = decided(&app, &[guarded.clone(), other.clone()], &[]);
    assert_eq!(decision.verbs, Vec::new());
    let expected = "waiting for deletion confirmation of /ConfigMap/guarded";
    assert_eq!(condition(&decision), (DELETION_APPROVAL_REQUIRED_INFO, expected));
    assert_eq!(decision.approvals, [guarded.key()]);
    for (time, approved) in
        [("2026-01-01T11:59:59Z", false), ("2026-01-01T12:00:00.5Z", true), ("true", false)]
    {
        let mut app = app.clone();
        app.metadata.annotations = Some([(DELETION_APPROVED.to_owned(), time.to_owned())].into());
        let decision = decided(&app, &[guarded.clone(), other.clone()], &[]);
        assert_eq!(said(&decision).is_empty(), !approved, "{time}");
    }
    // Guarded objects are deleted in the version whose approval was read.
    let mut approved = app.clone();
    approved.metadata.annotations = Some([(DELETION_APPROVED.to_owned(), DELETED.to_owned())].into());
    let decision = decided(&approved, &[guarded], &[]);
    let Verb::Delete(delete) = &decision.verbs[0] else { panic!("a deletion") };
    assert_eq!(delete.resource_version.as_deref(), Some("7"));
}

#[test]
fn what_the_last_comparison_saw_guards_too() {
    let mut app = application(&[RESOURCES]);
    app.status.resources = serde_json::from_value(json!([
        {"kind": "ConfigMap", "namespace": "n", "name": "a", "requiresDeletionConfirmation": true}]))
    .expect("rows");
    let decision = decided(&app, &[live("ConfigMap", "a", json!({}))], &[]);
    assert_eq!(decision.approvals.len(), 1);
    let own_word = annotated("ConfigMap", "a", json!({SYNC_OPTIONS: "Delete=true"}));
    assert_eq!(said(&decided(&app, &[own_word], &[])), ["delete a"]);
}

#[test]
fn a_namespace_is_as_guarded_as_what_it_holds() {
    let app = application(&[RESOURCES]);
    let inside = |name: &str| -> Vec<(ResourceKey, Arc<Value>)> {
        let object = annotated("Secret", "inside", json!({SYNC_OPTIONS: "Delete=confirm"}));
        if name == "n" { vec![(object.key(), object)] } else { Vec::new() }
    };
    let rules = rules();
    let decide_on = |namespace: &str| {
        decide(&Observation {
            application: &app,
            project: Project::Found(&rules),
            own_namespace: "argocd",
            cluster: READY,
            live: &[live("Namespace", namespace, json!({}))],
            kinds: &kinds,
            hooks: Rendered::Not,
            health: &health,
            guarded_in_namespace: &inside,
            settings: &DeletionSettings::default(),
            now: DELETED.parse().expect("a time"),
        })
    };
    assert_eq!(decide_on("n").approvals[0].name, "inside");
    assert_eq!(said(&decide_on("m")), ["delete m"]);
}

#[test]
fn hooks_run_once_wave_by_wave_and_are_recorded() {
    let app = application(&[PRE, RESOURCES, PRE_CLEANUP]);
    let wanted = [hook("second", "PreDelete", 2), hook("first", "PreDelete", 1)];
    let decision = decided(&app, &[], &wanted);
    assert_eq!(said(&decision), ["create first"]);
    assert_eq!(waits(&decision), "waiting for completion of PreDelete hook batch/Job/first");
    let Verb::Apply(apply) = &decision.verbs[0] else { panic!("a creation") };
    assert!(apply.create_only);
    assert_eq!(apply.object.annotation(OPERATION), Some(STAMP));
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
        assert_eq!(decision.look_again, "2026-01-01T12:01:10Z".parse().ok());
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
fn finalizers_follow_the_hooks_in_the_source() {
    let mut app = application(&["other"]);
    assert_eq!(for_hooks(&app, true, false), None, "an Application that is being deleted keeps what it has");
    app.metadata.deletion_timestamp = None;
    let both = for_hooks(&app, true, true).expect("a change");
    assert_eq!(both, ["other", PRE, PRE_CLEANUP, POST, POST_CLEANUP]);
    app.metadata.finalizers = Some(both);
    assert_eq!(for_hooks(&app, true, true), None);
    assert_eq!(for_hooks(&app, false, true), Some(["other", POST, POST_CLEANUP].map(str::to_owned).to_vec()));
}

#[test]
fn what_went_wrong_is_named() {
    let verb = Verb::ReleaseHook { key: hook("h", "PreDelete", 0).key(), api_version: "batch/v1".to_owned() };
    let failed = failure(&verb, &Outcome::Failed { message: "forbidden".to_owned() }).expect("a failure");
    assert_eq!(failed.message, "batch/Job/n/h: forbidden");
    assert!(failure(&verb, &Outcome::Exists(hook("h", "PreDelete", 0))).is_some());
    let created = &decided(&application(&[PRE]), &[], &[hook("h", "PreDelete", 0)]).verbs[0];
    assert_eq!(failure(created, &Outcome::Exists(run_of("h", "PreDelete", "Healthy", json!({})))), None);
    let foreign = failure(created, &Outcome::Exists(hook("h", "PreDelete", 0))).expect("a failure");
    assert!(
        foreign.message.ends_with("an object of this name exists that does not belong to the application")
    );
    for fine in [Outcome::Gone, Outcome::Done, Outcome::Terminating, Outcome::Changed] {
        assert_eq!(failure(&verb, &fine), None);
    }
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

#[test]
fn hooks_need_no_approval() {
    let mut app = application(&[RESOURCES]);
    app.spec.sync_policy =
        serde_json::from_value(json!({"syncOptions": ["Delete=confirm"]})).expect("a policy");
    let left = annotated("Job", "hook", json!({HOOK: "PreSync"}));
    assert_eq!(said(&decided(&app, std::slice::from_ref(&left), &[])), ["delete hook"]);
    let now = DELETED.parse().expect("a time");
    assert!(!awaits_approval(&app, &left, now));
    assert!(awaits_approval(&app, &live("ConfigMap", "a", json!({})), now));
}

#[test]
fn what_was_just_written_is_looked_for() {
    let mut app = application(&[RESOURCES]);
    app.status.operation_state = serde_json::from_value(json!({
        "phase": "Succeeded", "finishedAt": "2026-01-01T11:59:00Z", "syncResult": {"revision": "x", "resources": [
            {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "n", "name": "new", "status": "Synced"},
            {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "n", "name": "seen", "status": "Synced"},
            {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "n", "name": "gone", "status": "Pruned"},
        ]}}))
    .ok();
    let seen = [live("ConfigMap", "seen", json!({}))];
    let found = unseen(&app, &seen, DELETED.parse().expect("a time"));
    let found: Vec<String> = found.iter().map(|(version, key)| format!("{version} {key}")).collect();
    assert_eq!(found, ["apps/v1 apps/Deployment/n/new"]);
    assert_eq!(unseen(&app, &seen, "2026-01-01T12:01:01Z".parse().expect("a time")), []);
    assert_eq!(unseen(&application(&[]), &[], DELETED.parse().expect("a time")), []);
}
