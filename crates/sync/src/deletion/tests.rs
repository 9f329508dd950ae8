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

mod cascade;
mod hook_runs;

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
        Verb::Revoke { key, .. } => format!("revoke {}", key.name),
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
