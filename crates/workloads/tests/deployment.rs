//! Deployments as `kubectl` and Argo CD's health rules see them.

mod world;

use baton_workloads::Kind;
use proptest::prelude::*;
use serde_json::{Value, json};
use world::{World, condition, image, is_leaving, is_ready, workload};

fn deployed(replicas: i64) -> World {
    let mut world = World::with_nodes(3);
    world.create(workload(Kind::Deployment, "web", json!({"replicas": replicas})));
    world.run();
    world
}

/// Argo CD's rule for Deployments (and `kubectl rollout status`).
fn health(world: &World) -> &'static str {
    let web = world.get(Kind::Deployment, "web");
    let count = |key: &str| web["status"][key].as_i64().unwrap_or(0);
    if web["metadata"]["generation"].as_i64() > web["status"]["observedGeneration"].as_i64() {
        "Progressing"
    } else if condition(web, "Progressing")["reason"] == "ProgressDeadlineExceeded" {
        "Degraded"
    } else if count("updatedReplicas") < web["spec"]["replicas"].as_i64().unwrap_or(1)
        || count("replicas") > count("updatedReplicas")
        || count("availableReplicas") < count("updatedReplicas")
    {
        "Progressing"
    } else {
        "Healthy"
    }
}

#[test]
fn a_new_deployment_becomes_available_after_the_delay() {
    let mut world = World::with_nodes(2);
    world.create(workload(Kind::Deployment, "web", json!({"replicas": 3})));
    world.advance(1);
    assert_eq!(health(&world), "Progressing");
    assert_eq!(condition(world.get(Kind::Deployment, "web"), "Available")["status"], "False");
    world.run();
    let web = world.get(Kind::Deployment, "web");
    assert_eq!(health(&world), "Healthy");
    assert_eq!(web["status"]["readyReplicas"], 3);
    assert_eq!(condition(web, "Available")["reason"], "MinimumReplicasAvailable");
    assert_eq!(condition(web, "Progressing")["reason"], "NewReplicaSetAvailable");
    assert_eq!(web["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    let set = world.list(Kind::ReplicaSet)[0];
    let hash = set["metadata"]["labels"]["pod-template-hash"].as_str().expect("the set carries its hash");
    assert_eq!(set["metadata"]["name"], format!("web-{hash}"));
    assert_eq!(set["spec"]["selector"]["matchLabels"]["pod-template-hash"], hash);
    for pod in world.list(Kind::Pod) {
        assert_eq!(pod["status"]["phase"], "Running");
        assert!(is_ready(pod) && pod["spec"]["nodeName"].is_string() && pod["status"]["podIP"].is_string());
    }
}

#[test]
fn a_new_image_gets_a_new_revision_and_is_never_reported_done_too_early() {
    let mut world = deployed(3);
    world.patch(Kind::Deployment, "web", image("2"));
    world.check = Some(|world| {
        let old_left = world
            .list(Kind::Pod)
            .iter()
            .any(|pod| !is_leaving(pod) && pod["spec"]["containers"][0]["image"] == "app:1");
        let seen = world.get(Kind::Deployment, "web")["status"]["observedGeneration"] == 2;
        assert!(!(seen && old_left && health(world) == "Healthy"), "healthy with old pods");
    });
    world.run();
    assert_eq!(health(&world), "Healthy");
    let web = world.get(Kind::Deployment, "web");
    assert_eq!(web["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2");
    assert_eq!(world.list(Kind::Pod).len(), 3);
    assert_eq!(world.list(Kind::ReplicaSet).len(), 2);
}

#[test]
fn going_back_reuses_the_old_set_under_a_newer_revision() {
    let mut world = deployed(2);
    let first = world.list(Kind::ReplicaSet)[0]["metadata"]["name"].clone();
    world.patch(Kind::Deployment, "web", image("2"));
    world.run();
    world.patch(Kind::Deployment, "web", image("1"));
    world.run();
    let set = world.get(Kind::ReplicaSet, first.as_str().expect("sets have names"));
    assert_eq!(set["spec"]["replicas"], 2);
    assert_eq!(set["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "3");
    assert_eq!(health(&world), "Healthy");
}

#[test]
fn history_is_kept_to_its_limit() {
    let mut world = World::with_nodes(1);
    world.create(workload(Kind::Deployment, "web", json!({"replicas": 1, "revisionHistoryLimit": 1})));
    for tag in ["1", "2", "3", "4"] {
        world.patch(Kind::Deployment, "web", image(tag));
        world.run();
    }
    assert_eq!(world.list(Kind::ReplicaSet).len(), 2);
}

#[test]
fn scaling_reaches_the_pods_both_ways_without_a_new_revision() {
    let mut world = deployed(2);
    for size in [5, 1, 0, 2] {
        world.patch(Kind::Deployment, "web", json!({"spec": {"replicas": size}}));
        world.run();
        assert_eq!(world.list(Kind::Pod).len(), size);
        assert_eq!(health(&world), "Healthy");
    }
    assert_eq!(world.list(Kind::ReplicaSet).len(), 1);
    assert_eq!(
        condition(world.get(Kind::Deployment, "web"), "Progressing")["reason"],
        "NewReplicaSetAvailable"
    );
}

#[test]
fn recreate_never_runs_old_and_new_pods_together() {
    let mut world = World::with_nodes(2);
    world.create(workload(Kind::Deployment, "web", json!({"replicas": 3, "strategy": {"type": "Recreate"}})));
    world.run();
    world.check = Some(|world| {
        let images: std::collections::BTreeSet<_> = world
            .list(Kind::Pod)
            .iter()
            .map(|pod| pod["spec"]["containers"][0]["image"].to_string())
            .collect();
        assert!(images.len() <= 1, "{images:?}");
    });
    world.patch(Kind::Deployment, "web", image("2"));
    world.run();
    assert_eq!(world.list(Kind::Pod).len(), 3);
    assert_eq!(health(&world), "Healthy");
}

#[test]
fn a_paused_deployment_scales_but_does_not_roll() {
    let mut world = deployed(2);
    world.patch(Kind::Deployment, "web", json!({"spec": {"paused": true, "replicas": 4}}));
    world.patch(Kind::Deployment, "web", image("2"));
    world.run();
    let pods = world.list(Kind::Pod);
    assert_eq!(pods.len(), 4);
    assert!(pods.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "app:1"));
    assert_eq!(condition(world.get(Kind::Deployment, "web"), "Progressing")["reason"], "DeploymentPaused");
    world.patch(Kind::Deployment, "web", json!({"spec": {"paused": null}}));
    world.run();
    assert!(world.list(Kind::Pod).iter().all(|pod| pod["spec"]["containers"][0]["image"] == "app:2"));
    assert_eq!(health(&world), "Healthy");
}

#[test]
fn stuck_pods_exceed_the_deadline_and_go_on_when_released() {
    let mut world = World::with_nodes(1);
    let mut web = workload(Kind::Deployment, "web", json!({"replicas": 2, "progressDeadlineSeconds": 60}));
    web["metadata"]["annotations"] = json!({"sim.baton.dev/stuck": "true"});
    world.create(web);
    world.advance(59);
    assert_eq!(health(&world), "Progressing");
    world.run();
    assert_eq!(health(&world), "Degraded");
    world.annotate(Kind::Deployment, "web", "stuck", None);
    world.advance(0);
    assert_eq!(health(&world), "Healthy");
    world.run();
}

#[test]
fn a_stuck_template_leaves_the_old_pods_serving() {
    let mut world = deployed(4);
    world.patch(
        Kind::Deployment,
        "web",
        json!({"spec": {"template": {"metadata": {"annotations": {"sim.baton.dev/stuck": "true"}}}}}),
    );
    world.run();
    let serving = world.list(Kind::Pod).into_iter().filter(|pod| is_ready(pod)).count();
    assert_eq!(serving, 3);
    assert_eq!(health(&world), "Degraded");
}

#[test]
fn a_failure_reaches_running_pods_and_heals() {
    let mut world = deployed(2);
    world.annotate(Kind::Deployment, "web", "fail", Some("ImagePullBackOff"));
    world.run();
    for pod in world.list(Kind::Pod) {
        assert_eq!(pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"], "ImagePullBackOff");
    }
    assert_eq!(health(&world), "Progressing");
    assert_eq!(condition(world.get(Kind::Deployment, "web"), "Available")["status"], "False");
    world.annotate(Kind::Deployment, "web", "fail", Some("false"));
    world.run();
    assert_eq!(health(&world), "Healthy");
}

#[test]
fn a_slow_deployment_takes_as_long_as_told() {
    let mut world = World::with_nodes(1);
    let mut web = workload(Kind::Deployment, "web", json!({"replicas": 1}));
    web["metadata"]["annotations"] = json!({"sim.baton.dev/delay": "30s"});
    world.create(web);
    world.advance(29);
    assert_eq!(health(&world), "Progressing");
    world.advance(1);
    assert_eq!(health(&world), "Healthy");
    world.run();
}

#[test]
fn orphaned_sets_are_adopted_again() {
    let mut world = deployed(2);
    let set =
        world.list(Kind::ReplicaSet)[0]["metadata"]["name"].as_str().expect("sets have names").to_owned();
    world.patch(Kind::ReplicaSet, &set, json!({"metadata": {"ownerReferences": null}}));
    world.delete(Kind::Deployment, "web");
    world.run();
    assert_eq!(world.list(Kind::Pod).len(), 2);
    world.create(workload(Kind::Deployment, "web", json!({"replicas": 2})));
    world.run();
    assert_eq!(world.list(Kind::ReplicaSet).len(), 1);
    assert_eq!(health(&world), "Healthy");
}

#[test]
fn a_size_beyond_the_limit_is_reported_and_bounded() {
    let mut world = World::with_nodes(1);
    world.settings.max_pods_per_owner = 5;
    world.create(workload(Kind::Deployment, "web", json!({"replicas": 2_000_000_000})));
    world.run();
    assert_eq!(world.list(Kind::Pod).len(), 5);
    assert_eq!(condition(world.list(Kind::ReplicaSet)[0], "ReplicaFailure")["status"], "True");
}

/// `maxSurge` and `maxUnavailable` of the world's Deployment in pods, kept where a plain `fn` check reads them.
fn bounds(world: &World) -> (i64, i64, i64) {
    let web = world.get(Kind::Deployment, "web");
    let rolling = &web["spec"]["strategy"]["rollingUpdate"];
    let (surge, unavailable) =
        (rolling["maxSurge"].as_i64().unwrap_or(0), rolling["maxUnavailable"].as_i64().unwrap_or(0));
    let replicas = web["spec"]["replicas"].as_i64().unwrap_or(1);
    if surge == 0 && unavailable == 0 { (replicas, 0, 1) } else { (replicas, surge, unavailable) }
}

fn within_bounds(world: &World) {
    let (replicas, surge, unavailable) = bounds(world);
    let pods: Vec<&Value> = world.list(Kind::Pod).into_iter().filter(|pod| !is_leaving(pod)).collect();
    let ready = i64::try_from(pods.iter().filter(|pod| is_ready(pod)).count()).expect("few pods");
    let all = i64::try_from(pods.len()).expect("few pods");
    assert!(all <= replicas + surge, "{all} pods, {replicas}+{surge} allowed");
    assert!(ready >= replicas - unavailable, "{ready} ready, {replicas}-{unavailable} wanted");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_rolling_update_stays_within_its_bounds_at_every_moment(
        replicas in 0i64..7,
        surge in 0i64..4,
        unavailable in 0i64..4,
        min_ready in 0i64..4,
        interruption in 0i64..8,
        order in any::<u64>(),
    ) {
        let mut world = World::with_nodes(2);
        world.order = order;
        world.create(workload(Kind::Deployment, "web", json!({
            "replicas": replicas,
            "minReadySeconds": min_ready,
            "strategy": {"type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}},
        })));
        world.run();
        world.check = Some(within_bounds);
        world.patch(Kind::Deployment, "web", image("2"));
        world.advance(interruption);
        world.patch(Kind::Deployment, "web", image("3"));
        world.run();
        prop_assert_eq!(health(&world), "Healthy");
        let pods = world.list(Kind::Pod);
        prop_assert_eq!(i64::try_from(pods.len()).expect("few pods"), replicas);
        prop_assert!(pods.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "app:3"));
    }
}
