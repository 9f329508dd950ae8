//! What programs built on kube-rs do all day, in process under a paused clock, over TLS, and on a real cluster.

use crate::target::{self, Target};
use crate::world::World;
use futures::StreamExt as _;
use k8s_openapi::api::{
    coordination::v1::{Lease, LeaseSpec},
    core::v1::ConfigMap,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
    runtime::{
        Controller, WatchStreamExt as _,
        controller::Action,
        finalizer::{Event, finalizer},
        reflector, watcher,
    },
};
use serde_json::json;
use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};

const SOON: Duration = Duration::from_secs(45);

#[test]
fn a_reflector_follows_the_objects() {
    everywhere(async |world| {
        let api: Api<ConfigMap> = Api::namespaced(world.client(), world.namespace());
        for streaming in [false, true] {
            let config = watcher::Config::default().labels("followed=yes");
            let config = if streaming { config.streaming_lists() } else { config };
            let (store, writer) = reflector::store();
            let objects = reflector::reflector(writer, watcher(api.clone(), config)).applied_objects();
            let following = tokio::spawn(objects.for_each(|_| async {}));
            create(&api, "first", &[("followed", "yes")]).await;
            create(&api, "ignored", &[("followed", "no")]).await;
            eventually("the first object is in the store", || store.state().len() == 1).await;
            let patch = json!({"data": {"key": "changed"}});
            api.patch("first", &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
            eventually("the change is in the store", || {
                store
                    .state()
                    .iter()
                    .any(|found| found.data.as_ref().is_some_and(|data| data["key"] == "changed"))
            })
            .await;
            api.delete("first", &DeleteParams::default()).await.expect("deleted");
            eventually("the store is empty again", || store.state().is_empty()).await;
            api.delete("ignored", &DeleteParams::default()).await.expect("deleted");
            following.abort();
        }
    });
}

#[test]
fn a_controller_with_a_finalizer_cleans_up() {
    everywhere(async |world| {
        let api: Api<ConfigMap> = Api::namespaced(world.client(), world.namespace());
        let config = watcher::Config::default().labels("controlled=yes");
        let context = Arc::new(api.clone());
        let controller =
            Controller::new(api.clone(), config).run(reconcile, |_, _, _| Action::await_change(), context);
        let running = tokio::spawn(controller.for_each(|_| async {}));
        create(&api, "subject", &[("controlled", "yes")]).await;
        eventually_get(&api, "subject", "is finalized and marked", |found| {
            found.finalizers() == ["example.com/clean-up"] && found.annotations().contains_key("reconciled")
        })
        .await;
        api.delete("subject", &DeleteParams::default()).await.expect("deleted");
        eventually_async("the subject is gone and its trace is left", async || {
            let subject = api.get_opt("subject").await.expect("an answer");
            let trace = api.get_opt("subject-was-here").await.expect("an answer");
            subject.is_none() && trace.is_some()
        })
        .await;
        running.abort();
    });
}

/// Marks the object while it lives, and leaves a trace in its place when it goes.
async fn reconcile(
    object: Arc<ConfigMap>,
    api: Arc<Api<ConfigMap>>,
) -> Result<Action, kube::runtime::finalizer::Error<kube::Error>> {
    finalizer(&api, "example.com/clean-up", object, async |event| {
        match event {
            Event::Apply(object) => {
                let patch = json!({"metadata": {"annotations": {"reconciled": "yes"}}});
                api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
            }
            Event::Cleanup(object) => {
                let name = format!("{}-was-here", object.name_any());
                let trace = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
                api.patch(&name, &PatchParams::apply("controller").force(), &Patch::Apply(trace)).await?;
            }
        }
        Ok(Action::await_change())
    })
    .await
}

#[test]
fn a_lease_has_one_holder_at_a_time() {
    everywhere(async |world| {
        let leases: Api<Lease> = Api::namespaced(world.client(), world.namespace());
        let contenders = (0..8).map(|index| try_acquire(&leases, format!("candidate-{index}"), None));
        let winners: Vec<Lease> = futures::future::join_all(contenders).await.into_iter().flatten().collect();
        assert_eq!(winners.len(), 1, "exactly one creates the lease");
        let held = &winners[0];
        let takeovers =
            (0..8).map(|index| try_acquire(&leases, format!("successor-{index}"), Some(held.clone())));
        let winners: Vec<Lease> = futures::future::join_all(takeovers).await.into_iter().flatten().collect();
        assert_eq!(winners.len(), 1, "exactly one replaces the holder it has seen");
        let stored = leases.get("leader").await.expect("the lease");
        assert_eq!(holder(&stored), holder(&winners[0]));
        assert_eq!(stored.spec.and_then(|spec| spec.lease_transitions), Some(1));
        let late = try_acquire(&leases, holder(held), Some(held.clone())).await;
        assert!(late.is_none(), "the old holder cannot renew what it has lost");
    });
}

/// Takes the lease if nobody has written it since it was seen: compare and swap on its resourceVersion.
async fn try_acquire(leases: &Api<Lease>, identity: String, seen: Option<Lease>) -> Option<Lease> {
    let spec = |transitions| LeaseSpec {
        holder_identity: Some(identity),
        lease_duration_seconds: Some(15),
        lease_transitions: Some(transitions),
        ..LeaseSpec::default()
    };
    let attempt = match seen {
        None => {
            let metadata = ObjectMeta { name: Some("leader".to_owned()), ..ObjectMeta::default() };
            leases.create(&PostParams::default(), &Lease { metadata, spec: Some(spec(0)) }).await
        }
        Some(mut lease) => {
            let before = lease.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or(0);
            lease.spec = Some(spec(before + 1));
            leases.replace("leader", &PostParams::default(), &lease).await
        }
    };
    match attempt {
        Ok(lease) => Some(lease),
        Err(kube::Error::Api(status)) if status.is_already_exists() || status.is_conflict() => None,
        Err(other) => panic!("neither won nor lost: {other}"),
    }
}

fn holder(lease: &Lease) -> String {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone()).unwrap_or_default()
}

#[test]
fn server_side_apply_reports_a_conflict_until_forced() {
    everywhere(async |world| {
        let api: Api<ConfigMap> = Api::namespaced(world.client(), world.namespace());
        let wanted = |value: &str| {
            Patch::Apply(json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"key": value},
            }))
        };
        api.patch("shared", &PatchParams::apply("first"), &wanted("one")).await.expect("applied");
        let refused = api.patch("shared", &PatchParams::apply("second"), &wanted("two")).await;
        let Err(kube::Error::Api(status)) = refused else { panic!("not refused: {refused:?}") };
        assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
        assert!(status.message.contains("conflict with \"first\": .data.key"), "{}", status.message);
        let forced =
            api.patch("shared", &PatchParams::apply("second").force(), &wanted("two")).await.expect("forced");
        assert_eq!(forced.data, Some(BTreeMap::from([("key".to_owned(), "two".to_owned())])));
        let managers: Vec<_> =
            forced.managed_fields().iter().filter_map(|entry| entry.manager.as_deref()).collect();
        assert_eq!(managers, ["second"]);
    });
}

/// Runs the scenario on each target in turn.
fn everywhere(scenario: impl AsyncFn(&World)) {
    target::paused_runtime().block_on(once(async || Some(Target::in_process()), &scenario));
    target::runtime().block_on(once(async || Some(Target::tls().await), &scenario));
    target::runtime().block_on(once(Target::from_environment, &scenario));
}

async fn once<F: Future<Output = Option<Target>>>(
    target: impl FnOnce() -> F,
    scenario: &impl AsyncFn(&World),
) {
    if let Some(target) = target().await {
        let world = World::new(&target).await;
        scenario(&world).await;
        world.clean_up().await;
        println!("client scenario on {}: passed", target.name());
    }
}

async fn create(api: &Api<ConfigMap>, name: &str, labels: &[(&str, &str)]) {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let metadata = ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() };
    let object = ConfigMap { metadata, ..ConfigMap::default() };
    api.create(&PostParams::default(), &object).await.expect("created");
}

async fn eventually(what: &str, condition: impl Fn() -> bool) {
    eventually_async(what, async || condition()).await;
}

async fn eventually_get(
    api: &Api<ConfigMap>,
    name: &str,
    what: &str,
    condition: impl Fn(&ConfigMap) -> bool,
) {
    let found = async || api.get_opt(name).await.expect("an answer").is_some_and(|found| condition(&found));
    eventually_async(&format!("{name} {what}"), found).await;
}

async fn eventually_async(what: &str, condition: impl AsyncFn() -> bool) {
    let looking = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, looking).await.unwrap_or_else(|_| panic!("waited in vain until {what}"));
}
