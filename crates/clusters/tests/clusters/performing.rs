//! What a sync decided is done.

use std::sync::Arc;

use baton_api::names::resource::HOOK_FINALIZER;
use baton_api::object::{Object, ResourceKey};
use baton_clusters::{Cluster, PredictError};
use baton_sync::action::{Apply, Delete, Outcome, Propagation, ServerSide, Verb};
use serde_json::{Value, json};

use crate::watching::toy_definition;
use crate::world::{CONFIG_MAPS, World, config_map, key, kinds, settle};

const A: &str = "/api/v1/namespaces/default/configmaps/a";

async fn world() -> (World, Arc<Cluster>) {
    let world = World::new(&["east"]);
    let cluster = world.cluster("east");
    cluster.ready(&kinds(&[("v1", "ConfigMap")])).await.expect("ready");
    (world, cluster)
}

fn wanted(object: Value) -> Apply {
    Apply {
        object: Arc::new(object),
        live: None,
        dry_run: false,
        validate: true,
        replace: false,
        force: false,
        server_side: ServerSide::Default,
        migrate_from: Some("kubectl-client-side-apply".to_owned()),
        guarded: false,
        create_only: false,
    }
}

/// The message of an apply that worked, or the outcome that it had instead.
async fn apply(cluster: &Cluster, wanted: Apply) -> Result<String, Outcome> {
    match cluster.perform(&Verb::Apply(wanted)).await {
        Outcome::Applied { message, .. } => Ok(message),
        other => Err(other),
    }
}

fn said(outcome: Result<String, Outcome>) -> String {
    match outcome {
        Err(Outcome::Failed { message }) => message,
        other => panic!("it did not fail: {other:?}"),
    }
}

async fn live(world: &World, path: &str) -> Arc<Value> {
    Arc::new(world.member("east").get(path).await.expect("it is there"))
}

#[tokio::test(start_paused = true)]
async fn an_apply_says_what_kubectl_says() {
    let (world, cluster) = world().await;
    let one = || wanted(config_map("a", "shop", json!({"k": "1", "gone": "1"})));
    assert_eq!(apply(&cluster, one()).await, Ok("configmap/a created".to_owned()));
    let again = Apply { live: Some(live(&world, A).await), ..one() };
    assert_eq!(apply(&cluster, again).await, Ok("configmap/a unchanged".to_owned()));
    let two =
        Apply { live: Some(live(&world, A).await), ..wanted(config_map("a", "shop", json!({"k": "2"}))) };
    assert_eq!(apply(&cluster, two.clone()).await, Ok("configmap/a configured".to_owned()));
    assert_eq!(live(&world, A).await["data"], json!({"k": "2"}));
    let asked = Apply { server_side: ServerSide::Asked, ..two };
    assert_eq!(apply(&cluster, asked).await, Ok("configmap/a serverside-applied".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn whoever_loses_the_race_to_create_an_object_applies_to_the_one_that_won() {
    for (replace, server_side) in
        [(false, ServerSide::Default), (false, ServerSide::Refused), (true, ServerSide::Default)]
    {
        let (world, cluster) = world().await;
        let own =
            |name| Apply { replace, server_side, ..wanted(config_map(name, "shop", json!({"k": "1"}))) };
        world.member("east").wire.lose_races(1);
        apply(&cluster, own("a")).await.expect("applied");
        assert_eq!(live(&world, A).await["data"], json!({"k": "1"}));
        world.member("east").wire.lose_races(100);
        said(apply(&cluster, own("b")).await);
    }
}

#[tokio::test(start_paused = true)]
async fn fields_of_client_side_apply_are_taken_over_first() {
    let (world, cluster) = world().await;
    let before = config_map("a", "", json!({"stays": "1", "goes": "1"}));
    let path = format!("{CONFIG_MAPS}?fieldManager=kubectl-client-side-apply");
    world.member("east").create(&path, before).await;
    let target = config_map("a", "shop", json!({"stays": "1"}));
    let untouched = Apply { live: Some(live(&world, A).await), migrate_from: None, ..wanted(target.clone()) };
    apply(&cluster, untouched).await.expect("applied");
    assert_eq!(live(&world, A).await["data"], json!({"stays": "1", "goes": "1"}));
    let taken = Apply { live: Some(live(&world, A).await), ..wanted(target) };
    apply(&cluster, taken).await.expect("applied");
    assert_eq!(live(&world, A).await["data"], json!({"stays": "1"}));
}

#[tokio::test(start_paused = true)]
async fn client_side_apply_merges_what_was_is_and_shall_be() {
    let (world, cluster) = world().await;
    let refused =
        |data: Value| Apply { server_side: ServerSide::Refused, ..wanted(config_map("a", "shop", data)) };
    assert_eq!(
        apply(&cluster, refused(json!({"k": "1", "gone": "1"}))).await,
        Ok("configmap/a created".to_owned())
    );
    assert_eq!(
        apply(&cluster, refused(json!({"k": "1", "gone": "1"}))).await,
        Ok("configmap/a unchanged".to_owned())
    );
    world.member("east").patch(A, json!({"data": {"theirs": "1"}})).await;
    assert_eq!(apply(&cluster, refused(json!({"k": "2"}))).await, Ok("configmap/a configured".to_owned()));
    assert_eq!(live(&world, A).await["data"], json!({"k": "2", "theirs": "1"}));
}

#[tokio::test(start_paused = true)]
async fn client_side_apply_of_a_workload_keeps_injected_containers() {
    let (world, cluster) = world().await;
    let path = "/apis/apps/v1/namespaces/default/deployments/web";
    let deployment = |containers: Value| {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}}});
        Apply { server_side: ServerSide::Refused, ..wanted(object) }
    };
    let first = json!([{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "1"}]);
    apply(&cluster, deployment(first)).await.expect("created");
    let mut containers = live(&world, path).await["spec"]["template"]["spec"]["containers"].clone();
    containers.as_array_mut().expect("containers").push(json!({"name": "injected", "image": "9"}));
    world
        .member("east")
        .patch(path, json!({"spec": {"template": {"spec": {"containers": containers}}}}))
        .await;
    apply(&cluster, deployment(json!([{"name": "a", "image": "2"}]))).await.expect("configured");
    let live = live(&world, path).await;
    let containers = live["spec"]["template"]["spec"]["containers"].as_array().expect("containers");
    let shape: Vec<(&str, &str, bool)> = containers
        .iter()
        .map(|container| {
            let text = |field: &str| container[field].as_str().unwrap_or_default();
            (text("name"), text("image"), container.get("env").is_some())
        })
        .collect();
    assert_eq!(shape, [("a", "2", false), ("injected", "9", false)]);
}

#[tokio::test(start_paused = true)]
async fn a_replacement_leaves_nothing_of_what_was() {
    let (world, cluster) = world().await;
    let replace = |data: Value| Apply { replace: true, ..wanted(config_map("a", "shop", data)) };
    assert_eq!(apply(&cluster, replace(json!({"k": "1"}))).await, Ok("configmap/a created".to_owned()));
    world.member("east").patch(A, json!({"data": {"theirs": "1"}})).await;
    let uid = live(&world, A).await.uid().to_owned();
    assert_eq!(apply(&cluster, replace(json!({"k": "2"}))).await, Ok("configmap/a replaced".to_owned()));
    let after = live(&world, A).await;
    assert_eq!((after.uid(), &after["data"]), (uid.as_str(), &json!({"k": "2"})));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_updated_in_place_even_by_force() {
    let (world, cluster) = world().await;
    let path = "/api/v1/namespaces/team";
    let namespace = |labels: Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": labels}});
    world.member("east").create("/api/v1/namespaces", namespace(json!({}))).await;
    let uid = live(&world, path).await.uid().to_owned();
    let replace = Apply { replace: true, force: true, ..wanted(namespace(json!({"a": "b"}))) };
    assert_eq!(apply(&cluster, replace).await, Ok("Namespace/team updated".to_owned()));
    let after = live(&world, path).await;
    assert_eq!((after.uid(), after.label("a")), (uid.as_str(), Some("b")));
}

#[tokio::test(start_paused = true)]
async fn force_creates_anew_what_cannot_be_changed_unless_it_is_guarded() {
    let (world, cluster) = world().await;
    let mut fixed = config_map("a", "shop", json!({"k": "1"}));
    fixed["immutable"] = true.into();
    apply(&cluster, wanted(fixed.clone())).await.expect("created");
    let before = live(&world, A).await;
    fixed["data"]["k"] = "2".into();
    let change = |force: bool, guarded: bool, dry_run: bool| Apply {
        live: Some(before.clone()),
        force,
        guarded,
        dry_run,
        ..wanted(fixed.clone())
    };
    let refused = said(apply(&cluster, change(false, false, false)).await);
    assert!(refused.contains("immutable"), "{refused}");
    for dry_run in [true, false] {
        assert_eq!(apply(&cluster, change(true, true, dry_run)).await, Err(Outcome::NeedsApproval));
    }
    assert_eq!(
        apply(&cluster, change(true, false, true)).await,
        Ok("configmap/a configured (dry run)".to_owned())
    );
    assert_eq!(live(&world, A).await, before);
    assert_eq!(apply(&cluster, change(true, false, false)).await, Ok("configmap/a configured".to_owned()));
    let after = live(&world, A).await;
    assert!(after.uid() != before.uid() && after["data"]["k"] == "2");
    assert_eq!(cluster.managed("shop")[0].uid(), after.uid());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_deleted_for_an_object_that_the_api_would_not_take() {
    let (world, cluster) = world().await;
    apply(&cluster, wanted(config_map("a", "shop", json!({"k": "1"})))).await.expect("created");
    let before = live(&world, A).await;
    let broken = config_map("a", "shop", json!({"not a key!": "1"}));
    for replace in [false, true] {
        let broken = Apply { live: Some(before.clone()), force: true, replace, ..wanted(broken.clone()) };
        let refused = said(apply(&cluster, broken).await);
        assert!(refused.contains("not a key!"), "{refused}");
        assert_eq!(live(&world, A).await, before);
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_became_guarded_meanwhile_is_not_deleted() {
    let (world, cluster) = world().await;
    apply(&cluster, wanted(config_map("a", "shop", json!({})))).await.expect("created");
    let judged = live(&world, A).await;
    let guard = json!({"metadata": {"annotations": {"argocd.argoproj.io/sync-options": "Delete=confirm"}}});
    world.member("east").patch(A, guard).await;
    let replace = Apply {
        live: Some(judged),
        replace: true,
        force: true,
        ..wanted(config_map("a", "shop", json!({})))
    };
    assert_eq!(apply(&cluster, replace).await, Err(Outcome::NeedsApproval));
}

#[tokio::test(start_paused = true)]
async fn another_role_needs_another_binding() {
    let (world, cluster) = world().await;
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/b";
    let binding = |role: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "b"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}]})
    };
    apply(&cluster, wanted(binding("one"))).await.expect("created");
    let before = live(&world, path).await;
    let other = |server_side: ServerSide, guarded: bool| Apply {
        live: Some(before.clone()),
        server_side,
        guarded,
        ..wanted(binding("two"))
    };
    assert_eq!(apply(&cluster, other(ServerSide::Default, true)).await, Err(Outcome::NeedsApproval));
    said(apply(&cluster, other(ServerSide::Asked, false)).await);
    assert_eq!(live(&world, path).await, before);
    let done = apply(&cluster, other(ServerSide::Default, false)).await;
    assert_eq!(done, Ok("clusterrolebinding.rbac.authorization.k8s.io/b configured".to_owned()));
    assert_eq!(live(&world, path).await["roleRef"]["name"], "two");
}

#[tokio::test(start_paused = true)]
async fn what_must_not_exist_is_left_alone() {
    let (world, cluster) = world().await;
    let only = |data: Value| Apply { create_only: true, ..wanted(config_map("a", "shop", data)) };
    assert_eq!(apply(&cluster, only(json!({"k": "1"}))).await, Ok("configmap/a created".to_owned()));
    let there = live(&world, A).await;
    assert_eq!(apply(&cluster, only(json!({"k": "2"}))).await, Err(Outcome::Exists(there.clone())));
    assert_eq!(live(&world, A).await, there);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_checks_and_writes_nothing() {
    let (world, cluster) = world().await;
    for server_side in [ServerSide::Default, ServerSide::Refused] {
        let dry = |object: Value| Apply { dry_run: true, server_side, ..wanted(object) };
        let done = apply(&cluster, dry(config_map("a", "shop", json!({})))).await;
        assert_eq!(done, Ok("configmap/a created (dry run)".to_owned()));
        let mut elsewhere = config_map("a", "shop", json!({}));
        elsewhere["metadata"]["namespace"] = "not-there-yet".into();
        let done = apply(&cluster, dry(elsewhere)).await;
        assert_eq!(done, Ok("configmap/a created (dry run)".to_owned()));
        said(apply(&cluster, dry(config_map("a", "shop", json!({"not a key!": "1"})))).await);
    }
    assert_eq!(world.member("east").get(A).await, None);
    assert!(cluster.managed("shop").is_empty());
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_are_refused_unless_the_user_wants_no_validation() {
    let (world, cluster) = world().await;
    let mut odd = config_map("a", "shop", json!({"k": "1"}));
    odd["dta"] = json!({});
    for server_side in [ServerSide::Default, ServerSide::Refused] {
        let refused = said(apply(&cluster, Apply { server_side, ..wanted(odd.clone()) }).await);
        assert!(refused.contains("dta"), "{refused}");
    }
    apply(&cluster, Apply { validate: false, ..wanted(odd) }).await.expect("passed over");
    assert_eq!(live(&world, A).await["data"], json!({"k": "1"}));
}

#[tokio::test(start_paused = true)]
async fn a_new_kind_can_be_used_at_once_and_a_missing_one_is_explained() {
    let (world, cluster) = world().await;
    let toy = json!({"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": "t", "namespace": "default"}});
    let missing = said(apply(&cluster, wanted(toy.clone())).await);
    assert_eq!(
        missing,
        "The Kubernetes API could not find example.com/Toy for requested resource default/t. Make sure the \"Toy\" CRD \
         is installed on the destination cluster."
    );
    apply(&cluster, wanted(toy_definition())).await.expect("created");
    assert_eq!(apply(&cluster, wanted(toy.clone())).await, Ok("toy.example.com/t created".to_owned()));
    let mut newer = toy;
    newer["apiVersion"] = "example.com/v2".into();
    let missing = said(apply(&cluster, wanted(newer)).await);
    assert!(missing.contains("Version \"v1\" of example.com/Toy is installed"), "{missing}");
    assert!(world.member("east").get("/apis/example.com/v1/namespaces/default/toys/t").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_leaves_doubt_and_the_next_look_settles_it() {
    let (world, cluster) = world().await;
    world.member("east").wire.lose_answer("/configmaps/a");
    let doubt = said(apply(&cluster, wanted(config_map("a", "shop", json!({})))).await);
    assert!(doubt.contains("whether it took effect is not known"), "{doubt}");
    settle().await;
    assert_eq!(cluster.managed("shop").len(), 1);
    let look = Verb::Look { key: key("", "ConfigMap", "default", "a"), api_version: "v1".to_owned() };
    assert!(matches!(cluster.perform(&look).await, Outcome::Found(_)));
}

#[tokio::test(start_paused = true)]
async fn a_name_never_leads_to_another_object() {
    let (world, cluster) = world().await;
    world
        .member("east")
        .create(
            "/api/v1/namespaces/default/secrets",
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}),
        )
        .await;
    for name in ["../secrets/s", "..", "s?x=y"] {
        let sly = config_map(name, "shop", json!({}));
        said(apply(&cluster, wanted(sly)).await);
        let delete = deletion(&key("", "ConfigMap", "default", name), "u", None);
        let outcome = cluster.perform(&delete).await;
        assert!(matches!(outcome, Outcome::Failed { .. } | Outcome::Gone), "{outcome:?}");
    }
    assert!(world.member("east").get("/api/v1/namespaces/default/secrets/s").await.is_some());
}

fn deletion(key: &ResourceKey, uid: &str, resource_version: Option<&str>) -> Verb {
    Verb::Delete(Delete {
        key: key.clone(),
        api_version: "v1".to_owned(),
        uid: uid.to_owned(),
        resource_version: resource_version.map(str::to_owned),
        propagation: Propagation::Foreground,
    })
}

#[tokio::test(start_paused = true)]
async fn only_the_object_that_was_judged_is_deleted() {
    let (world, cluster) = world().await;
    apply(&cluster, wanted(config_map("a", "shop", json!({"k": "1"})))).await.expect("created");
    let (there, a) = (live(&world, A).await, key("", "ConfigMap", "default", "a"));
    assert_eq!(cluster.perform(&deletion(&a, "another", None)).await, Outcome::Gone);
    assert!(world.member("east").get(A).await.is_some());
    world.member("east").patch(A, json!({"data": {"k": "2"}})).await;
    let judged = deletion(&a, there.uid(), Some(there.resource_version()));
    assert_eq!(cluster.perform(&judged).await, Outcome::Changed);
    assert!(world.member("east").get(A).await.is_some());
    world.member("east").patch(A, json!({"metadata": {"finalizers": ["example.com/wait"]}})).await;
    world.member("east").wire.set_lagging(true);
    let plain = deletion(&a, there.uid(), None);
    assert_eq!(cluster.perform(&plain).await, Outcome::Terminating);
    assert!(cluster.managed("shop")[0].deletion_timestamp().is_some());
    world.member("east").patch(A, json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(cluster.perform(&plain).await, Outcome::Gone);
    assert!(cluster.managed("shop").is_empty());
    world.member("east").wire.set_lagging(false);
    settle().await;
    assert!(cluster.managed("shop").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_hook_is_released_in_spite_of_others_who_write() {
    let (world, cluster) = world().await;
    let mut hook = config_map("a", "shop", json!({}));
    hook["metadata"]["finalizers"] = json!([HOOK_FINALIZER, "example.com/other"]);
    world.member("east").create(CONFIG_MAPS, hook).await;
    world.member("east").wire.refuse("PATCH", "/configmaps/a", 409, 2);
    let release =
        Verb::ReleaseHook { key: key("", "ConfigMap", "default", "a"), api_version: "v1".to_owned() };
    assert_eq!(cluster.perform(&release).await, Outcome::Done);
    assert_eq!(live(&world, A).await.finalizers(), ["example.com/other"]);
    world.member("east").wire.take_log();
    assert_eq!(cluster.perform(&release).await, Outcome::Done);
    assert!(world.member("east").wire.take_log().iter().all(|line| line.starts_with("GET")));
    world.member("east").patch(A, json!({"metadata": {"finalizers": null}})).await;
    world.member("east").delete(A).await;
    assert_eq!(cluster.perform(&release).await, Outcome::Done);
}

#[tokio::test(start_paused = true)]
async fn a_prediction_is_what_an_apply_would_give() {
    let (world, cluster) = world().await;
    apply(&cluster, wanted(config_map("a", "shop", json!({"k": "1", "gone": "1"})))).await.expect("created");
    world.member("east").patch(A, json!({"data": {"theirs": "1"}})).await;
    let before = live(&world, A).await;
    let predicted = cluster.predict(&config_map("a", "shop", json!({"k": "2"}))).await.expect("a prediction");
    assert_eq!(predicted["data"], json!({"k": "2", "theirs": "1"}));
    assert!(predicted["metadata"]["managedFields"].is_array());
    assert_eq!(live(&world, A).await, before);
    let mut elsewhere = config_map("a", "shop", json!({}));
    elsewhere["metadata"]["namespace"] = "nowhere".into();
    assert!(matches!(cluster.predict(&elsewhere).await, Err(PredictError::Missing(_))));
    let broken = config_map("a", "shop", json!({"not a key!": "1"}));
    assert!(matches!(cluster.predict(&broken).await, Err(PredictError::Invalid(_))));
}
