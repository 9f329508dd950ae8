//! What is known of a cluster's objects.

use std::sync::Arc;
use std::time::Duration;

use baton_api::application_status::HealthCode;
use baton_api::health::Health;
use baton_api::object::Object;
use baton_clusters::{ClusterError, Exclusions, Settings};
use serde_json::{Value, json};

use crate::world::{CONFIG_MAPS, TRACKING, World, access, config_map, key, kinds, settle, until};

fn names(objects: &[Arc<Value>]) -> Vec<&str> {
    let mut names: Vec<&str> = objects.iter().map(|object| object.name()).collect();
    names.sort_unstable();
    names
}

#[tokio::test(start_paused = true)]
async fn tracked_objects_are_known_whole_and_their_changes_are_told_once() {
    let world = World::new(&["east"]);
    let member = world.member("east");
    member.create(CONFIG_MAPS, config_map("a", "shop", json!({"k": "1"}))).await;
    member.create(CONFIG_MAPS, config_map("other", "", json!({}))).await;
    let cluster = world.cluster("east");
    cluster.ready(&kinds(&[("v1", "ConfigMap")])).await.expect("ready");
    let managed = cluster.managed("shop");
    assert_eq!(names(&managed), ["a"]);
    assert_eq!((managed[0].api_version(), managed[0].kind()), ("v1", "ConfigMap"));
    assert_eq!(managed[0]["data"]["k"], "1");
    assert_eq!(cluster.get(&key("", "ConfigMap", "default", "other")), None);
    settle().await;
    world.take_changes();

    member.patch(&format!("{CONFIG_MAPS}/a"), json!({"data": {"k": "2"}})).await;
    settle().await;
    assert_eq!(world.take_changes(), ["managed shop"]);
    assert_eq!(cluster.managed("shop")[0]["data"]["k"], "2");
    member.patch(&format!("{CONFIG_MAPS}/other"), json!({"data": {"k": "2"}})).await;
    settle().await;
    assert_eq!(world.take_changes(), Vec::<String>::new());
    member.delete(&format!("{CONFIG_MAPS}/a")).await;
    settle().await;
    assert_eq!(world.take_changes(), ["managed shop"]);
    assert_eq!(cluster.managed("shop"), Vec::<Arc<Value>>::new());
}

#[tokio::test(start_paused = true)]
async fn an_approval_wakes_and_a_status_without_new_health_does_not() {
    let health = |object: &Value| {
        let code =
            if object["status"]["replicas"] == 3 { HealthCode::Healthy } else { HealthCode::Progressing };
        (object.kind() == "Deployment").then(|| Health::new(code, ""))
    };
    let world = World::with(&["east"], Settings { health: Arc::new(health), ..Settings::default() });
    let member = world.member("east");
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let mut deployment = deployment("web", 0);
    deployment["metadata"]["annotations"] = json!({TRACKING: "shop:apps/Deployment:default/web"});
    member.create(path, deployment).await;
    let cluster = world.cluster("east");
    cluster.ready(&kinds(&[("apps/v1", "Deployment")])).await.expect("ready");
    settle().await;
    world.take_changes();
    let status = |replicas: i32| json!({"status": {"replicas": replicas}});
    member.patch(&format!("{path}/web/status"), status(2)).await;
    settle().await;
    assert_eq!(world.take_changes(), Vec::<String>::new());
    member
        .patch(
            &format!("{path}/web"),
            json!({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": "true"}}}),
        )
        .await;
    settle().await;
    assert_eq!(world.take_changes(), ["managed shop"]);
}

fn deployment(name: &str, replicas: i32) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}}})
}

#[tokio::test(start_paused = true)]
async fn children_are_found_below_their_roots_and_wake_at_the_lower_level() {
    let world = World::new(&["east"]);
    let member = world.member("east");
    let cluster = world.cluster("east");
    cluster.ready(&kinds(&[("apps/v1", "Deployment")])).await.expect("ready");
    let mut web = deployment("web", 2);
    web["metadata"]["annotations"] = json!({TRACKING: "shop:apps/Deployment:default/web"});
    member.create("/apis/apps/v1/namespaces/default/deployments", web).await;
    let root = key("apps", "Deployment", "default", "web");
    until("both Pods are there", || cluster.tree(std::slice::from_ref(&root)).len() == 4).await;
    let tree = cluster.tree(std::slice::from_ref(&root));
    let shape: Vec<(&str, Vec<&str>)> = tree
        .iter()
        .map(|node| {
            (node.key.kind.as_str(), node.parents.iter().map(|parent| parent.kind.as_str()).collect())
        })
        .collect();
    assert_eq!(
        shape,
        [
            ("Deployment", vec![]),
            ("ReplicaSet", vec!["Deployment"]),
            ("Pod", vec!["ReplicaSet"]),
            ("Pod", vec!["ReplicaSet"])
        ]
    );
    assert_eq!(tree[2].images, ["nginx:1"]);
    assert!(tree.iter().all(|node| node.created.is_some() && !node.uid.is_empty()));
    settle().await;
    world.take_changes();
    member.delete(&format!("/api/v1/namespaces/default/pods/{}", tree[2].key.name)).await;
    until("the Pod is gone", || {
        !cluster.tree(std::slice::from_ref(&root)).iter().any(|node| node.uid == tree[2].uid)
    })
    .await;
    assert!(world.take_changes().contains(&"child shop".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn kinds_that_nobody_asks_for_are_found_by_the_objects_that_are_tracked() {
    let world = World::new(&["east"]);
    let member = world.member("east");
    let mut left = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "left", "namespace": "default"}});
    left["metadata"]["annotations"] = json!({TRACKING: "shop:/ServiceAccount:default/left"});
    member.create("/api/v1/namespaces/default/serviceaccounts", left).await;
    let cluster = world.cluster("east");
    cluster.ready(&[]).await.expect("ready");
    assert_eq!(names(&cluster.managed("shop")), ["left"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_held_is_known_whole_until_it_is_let_go() {
    let world = World::new(&["east"]);
    let member = world.member("east");
    member.create(CONFIG_MAPS, config_map("plain", "", json!({"k": "1"}))).await;
    let cluster = world.cluster("east");
    cluster.ready(&kinds(&[("v1", "ConfigMap")])).await.expect("ready");
    let plain = key("", "ConfigMap", "default", "plain");
    let absent = key("", "ConfigMap", "default", "absent");
    cluster.hold("shop", &[plain.clone(), absent.clone()]).await.expect("read");
    assert_eq!(cluster.get(&plain).expect("whole")["data"]["k"], "1");
    assert_eq!(cluster.get(&absent), None);
    world.take_changes();
    member.wire.take_log();
    cluster.hold("shop", &[plain.clone(), absent.clone()]).await.expect("nothing to read");
    assert_eq!(member.wire.take_log(), Vec::<String>::new());

    member.patch(&format!("{CONFIG_MAPS}/plain"), json!({"data": {"k": "2"}})).await;
    member.create(CONFIG_MAPS, config_map("absent", "", json!({}))).await;
    settle().await;
    assert_eq!(world.take_changes(), ["managed shop"]);
    assert_eq!(cluster.get(&plain).expect("whole")["data"]["k"], "2");
    assert!(cluster.get(&absent).is_some());
    cluster.forget("shop");
    assert_eq!(cluster.get(&plain), None);
}

#[tokio::test(start_paused = true)]
async fn a_cut_watch_goes_on_where_it_was_and_an_expired_one_lists_again() {
    let world = World::new(&["east"]);
    let member = world.member("east");
    for name in ["a", "b"] {
        member.create(CONFIG_MAPS, config_map(name, "shop", json!({}))).await;
    }
    let cluster = world.cluster("east");
    cluster.ready(&kinds(&[("v1", "ConfigMap")])).await.expect("ready");
    settle().await;
    member.wire.take_log();
    member.wire.cut_watches();
    settle().await;
    let lists = |log: &[String]| log.iter().filter(|line| line.contains("/configmaps?limit")).count();
    assert_eq!(lists(&member.wire.take_log()), 0);

    member.wire.refuse("GET", "/configmaps?watch=true", 410, 1);
    member.wire.cut_watches();
    member.delete(&format!("{CONFIG_MAPS}/a")).await;
    settle().await;
    assert_eq!(lists(&member.wire.take_log()), 1);
    assert_eq!(names(&cluster.managed("shop")), ["b"]);
    member.create(CONFIG_MAPS, config_map("c", "shop", json!({}))).await;
    until("c is seen", || cluster.managed("shop").len() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_failing_list_keeps_what_was_known() {
    let world = World::new(&["east"]);
    let member = world.member("east");
    member.create(CONFIG_MAPS, config_map("a", "shop", json!({}))).await;
    let cluster = world.cluster("east");
    let wanted = kinds(&[("v1", "ConfigMap")]);
    cluster.ready(&wanted).await.expect("ready");
    member.wire.refuse("GET", "/configmaps", 500, u32::MAX);
    member.wire.cut_watches();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(names(&cluster.managed("shop")), ["a"]);
    cluster.ready(&wanted).await.expect("what is known is not old yet");
    tokio::time::sleep(Duration::from_secs(90)).await;
    let error = cluster.ready(&wanted).await.expect_err("too old to rely upon");
    assert!(error.to_string().contains("v1 ConfigMap cannot be watched"), "{error}");
    cluster.ready(&kinds(&[("v1", "ServiceAccount")])).await.expect("other kinds are well");
    member.wire.stop_refusing();
    until("it is watched again", || {
        futures::FutureExt::now_or_never(cluster.ready(&wanted)).is_some_and(|ready| ready.is_ok())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_lagging_watch_does_not_undo_an_own_write() {
    use baton_sync::action::{Apply, Outcome, ServerSide, Verb};
    let world = World::new(&["east"]);
    let member = world.member("east");
    let cluster = world.cluster("east");
    cluster.ready(&kinds(&[("v1", "ConfigMap")])).await.expect("ready");
    settle().await;
    member.wire.set_lagging(true);
    // An older write of somebody else is still under way in the watch.
    member.create(CONFIG_MAPS, config_map("a", "shop", json!({"k": "0"}))).await;
    let apply = Apply {
        object: Arc::new(config_map("a", "shop", json!({"k": "1"}))),
        live: None,
        dry_run: false,
        validate: true,
        replace: false,
        force: false,
        server_side: ServerSide::Default,
        migrate_from: None,
        guarded: false,
        create_only: false,
    };
    let outcome = cluster.perform(&Verb::Apply(apply)).await;
    assert!(matches!(outcome, Outcome::Applied { .. }), "{outcome:?}");
    assert_eq!(cluster.managed("shop")[0]["data"]["k"], "1");
    member.wire.set_lagging(false);
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(cluster.managed("shop")[0]["data"]["k"], "1");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_comes_to_be_is_served_and_watched() {
    let world = World::new(&["east"]);
    let member = world.member("east");
    let cluster = world.cluster("east");
    let wanted = kinds(&[("example.com/v1", "Toy")]);
    cluster.ready(&wanted).await.expect("a kind that is not there is no error");
    assert_eq!(cluster.kind("example.com/v1", "Toy").expect("known"), None);
    member.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", toy_definition()).await;
    until("the kind is known", || cluster.kind("example.com/v1", "Toy").expect("known").is_some()).await;
    assert!(cluster.api_versions().contains(&"example.com/v1/Toy".to_owned()));
    let mut toy = json!({"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": "t", "namespace": "default"}});
    toy["metadata"]["annotations"] = json!({TRACKING: "shop:example.com/Toy:default/t"});
    member.create("/apis/example.com/v1/namespaces/default/toys", toy).await;
    until("the toy is seen", || cluster.managed("shop").len() == 1).await;
    member.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/toys.example.com").await;
    until("the kind is gone", || cluster.kind("example.com/v1", "Toy").expect("known").is_none()).await;
    until("its objects are", || cluster.managed("shop").is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn of_a_kind_that_somebody_removed_nothing_is_there_to_be_read() {
    let world = World::new(&["east"]);
    let member = world.member("east");
    let cluster = world.cluster("east");
    member.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", toy_definition()).await;
    let toy = json!({"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": "t", "namespace": "default"}});
    member.create("/apis/example.com/v1/namespaces/default/toys", toy).await;
    cluster.ready(&kinds(&[("example.com/v1", "Toy")])).await.expect("a kind");
    until("the kind is known", || cluster.kind("example.com/v1", "Toy").expect("known").is_some()).await;
    let key = key("example.com", "Toy", "default", "t");
    let fetched = async || cluster.fetch("example.com/v1", &key).await.expect("an answer");
    assert!(fetched().await.is_some());
    // While what is known lags behind, the API itself says that there is no such thing.
    member.wire.set_lagging(true);
    member.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/toys.example.com").await;
    assert!(fetched().await.is_none());
    member.wire.set_lagging(false);
    until("the kind is gone", || cluster.kind("example.com/v1", "Toy").expect("known").is_none()).await;
    assert!(fetched().await.is_none());
}

pub(crate) fn toy_definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "toys.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "toys", "kind": "Toy"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_kind_is_an_error_for_who_wants_it_and_for_nobody_else() {
    for respect_rbac in [false, true] {
        let world = World::with(&["east"], Settings { respect_rbac, ..Settings::default() });
        let member = world.member("east");
        member.wire.refuse("GET", "/secrets", 403, u32::MAX);
        let cluster = world.cluster("east");
        cluster.ready(&kinds(&[("v1", "ConfigMap")])).await.expect("not concerned");
        let secrets = cluster.ready(&kinds(&[("v1", "Secret")])).await;
        match respect_rbac {
            true => assert_eq!(secrets, Ok(())),
            false => assert!(matches!(secrets, Err(ClusterError::Forbidden(_))), "{secrets:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespaced_cluster_is_looked_at_in_its_namespaces_only() {
    let world = World::new(&["east"]);
    let member = world.member("east");
    for namespace in ["one", "two"] {
        member
            .create(
                "/api/v1/namespaces",
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            )
            .await;
        let mut map = config_map("a", "shop", json!({}));
        map["metadata"]["namespace"] = namespace.into();
        member.create(&format!("/api/v1/namespaces/{namespace}/configmaps"), map).await;
    }
    let mut narrow = access("east");
    narrow.namespaces = vec!["one".to_owned()];
    world.clusters.set(vec![narrow]);
    let cluster = world.cluster("east");
    member.wire.take_log();
    cluster.ready(&kinds(&[("v1", "ConfigMap"), ("v1", "Namespace")])).await.expect("ready");
    let managed = cluster.managed("shop");
    assert_eq!(managed.iter().map(|object| object.namespace()).collect::<Vec<_>>(), ["one"]);
    let outside = member
        .wire
        .take_log()
        .into_iter()
        .find(|line| line.contains("?limit") && !line.contains("/namespaces/one/"));
    assert_eq!(outside, None);
    let info = cluster.kind("v1", "ConfigMap").expect("known").expect("served");
    let refused = cluster.check_scope(&key("", "ConfigMap", "two", "a"), &info);
    assert_eq!(refused, Err("namespace \"two\" for ConfigMap \"a\" is not managed".to_owned()));
    let info = cluster.kind("v1", "Namespace").expect("known").expect("served");
    let refused = cluster.check_scope(&key("", "Namespace", "", "two"), &info);
    assert_eq!(
        refused,
        Err("cluster level Namespace \"two\" can not be managed when in namespaced mode".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn settings_are_exchanged_while_watches_run() {
    let world = World::new(&["east"]);
    let member = world.member("east");
    member.create(CONFIG_MAPS, config_map("a", "shop", json!({}))).await;
    let cluster = world.cluster("east");
    cluster.ready(&kinds(&[("v1", "ConfigMap")])).await.expect("ready");
    assert_eq!(cluster.managed("shop").len(), 1);
    let by_name =
        |object: &Value| Some(format!("app-{}", object.name())).filter(|_| object.kind() == "ConfigMap");
    world.clusters.configure(Settings { instance_of: Arc::new(by_name), ..Settings::default() });
    until("the new owner is known", || cluster.managed("app-a").len() == 1).await;
    assert_eq!(cluster.managed("shop").len(), 0);
    let none = [("resource.exclusions".to_owned(), "- kinds: [ConfigMap]".to_owned())].into();
    let exclusions = Exclusions::read(&none).expect("a rule");
    world.clusters.configure(Settings { exclusions, ..Settings::default() });
    until("nothing of it is known", || {
        cluster.managed("shop").is_empty() && cluster.managed("app-a").is_empty()
    })
    .await;
    assert!(cluster.is_excluded("", "ConfigMap"));
}

#[tokio::test(start_paused = true)]
async fn guarded_objects_and_orphans_of_a_namespace_are_found() {
    let world = World::new(&["east"]);
    let member = world.member("east");
    let mut guarded = config_map("guarded", "", json!({}));
    guarded["metadata"]["annotations"] = json!({"argocd.argoproj.io/sync-options": "Prune=confirm"});
    member.create(CONFIG_MAPS, guarded).await;
    member.create(CONFIG_MAPS, config_map("tracked", "shop", json!({}))).await;
    let cluster = world.cluster("east");
    cluster.ready(&[]).await.expect("ready");
    let guarded = cluster.guarded_in_namespace("default");
    assert_eq!(guarded.iter().map(|(key, _)| key.name.as_str()).collect::<Vec<_>>(), ["guarded"]);
    assert!(cluster.guarded_in_namespace("other").is_empty());
    let managed = cluster.managed_in_namespace("default");
    assert_eq!(managed.iter().map(|(instance, _)| &**instance).collect::<Vec<_>>(), ["shop"]);
    let orphans = cluster.orphans("default").await.expect("read");
    assert!(orphans.contains(&key("", "ConfigMap", "default", "guarded")));
    assert!(!orphans.contains(&key("", "ConfigMap", "default", "tracked")));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_searched_past_what_is_known_and_wholly_or_not_at_all() {
    let world = World::new(&["east"]);
    let member = world.member("east");
    let cluster = world.cluster("east");
    cluster.ready(&[]).await.expect("ready");
    // Of a kind that nobody watches, made after the sweep.
    let guarded = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "g", "namespace": "default",
        "annotations": {"argocd.argoproj.io/sync-options": "Delete=confirm"}}});
    member.create("/api/v1/namespaces/default/serviceaccounts", guarded).await;
    member.create(CONFIG_MAPS, config_map("tracked", "shop", json!({}))).await;
    member.create(CONFIG_MAPS, config_map("plain", "", json!({}))).await;
    assert!(cluster.guarded_in_namespace("default").is_empty());
    let found = cluster.search_namespace("default").await.expect("read");
    let found: Vec<String> = found.iter().map(|object| object.key().to_string()).collect();
    assert_eq!(found, ["/ConfigMap/default/tracked", "/ServiceAccount/default/g"]);
    member.wire.refuse("GET", "/secrets", 503, u32::MAX);
    let error = cluster.search_namespace("default").await.expect_err("not wholly");
    assert!(error.to_string().contains("Secret cannot be read"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_told_it_is_too_old_lists_again() {
    let world = World::new(&["east"]);
    let member = world.member("east");
    member.create(CONFIG_MAPS, config_map("a", "shop", json!({}))).await;
    let cluster = world.cluster("east");
    cluster.ready(&kinds(&[("v1", "ConfigMap")])).await.expect("ready");
    settle().await;
    member.wire.take_log();
    member.wire.expire_watches();
    member.delete(&format!("{CONFIG_MAPS}/a")).await;
    until("the loss is seen", || cluster.managed("shop").is_empty()).await;
    assert!(member.wire.take_log().iter().any(|line| line.contains("/configmaps?limit")));
}

#[tokio::test(start_paused = true)]
async fn a_restored_backup_is_believed_in_the_end() {
    let world = World::new(&["east", "backup"]);
    let (member, backup) = (world.member("east"), world.member("backup"));
    backup.create(CONFIG_MAPS, config_map("old", "shop", json!({}))).await;
    for number in 0..300 {
        member.create(CONFIG_MAPS, config_map(&format!("new-{number}"), "shop", json!({}))).await;
    }
    let cluster = world.cluster("east");
    cluster.ready(&kinds(&[("v1", "ConfigMap")])).await.expect("ready");
    assert_eq!(cluster.managed("shop").len(), 300);
    member.wire.answer_from(&backup.server);
    tokio::time::sleep(Duration::from_secs(2 * 60 * 60)).await;
    until("the backup is what is known", || names(&cluster.managed("shop")) == ["old"]).await;
    let log = member.wire.take_log();
    assert!(
        log.iter().any(|line| line.contains("/configmaps?limit=1000")),
        "what is so old is asked for twice"
    );
}

#[tokio::test(start_paused = true)]
async fn lists_longer_than_a_page_are_read_to_their_end() {
    let world = World::new(&["east"]);
    let member = world.member("east");
    for number in 0..510 {
        member.create(CONFIG_MAPS, config_map(&format!("m-{number}"), "shop", json!({}))).await;
    }
    let cluster = world.cluster("east");
    cluster.ready(&kinds(&[("v1", "ConfigMap")])).await.expect("ready");
    assert_eq!(cluster.managed("shop").len(), 510);
    assert!(member.wire.take_log().iter().any(|line| line.contains("/configmaps?limit=500&continue=")));
}

#[tokio::test(start_paused = true)]
async fn an_old_server_is_asked_kind_by_kind_and_says_the_same() {
    let world = World::new(&["new", "old"]);
    world.member("old").wire.set_plain();
    let (new, old) = (world.cluster("new"), world.cluster("old"));
    new.ready(&[]).await.expect("ready");
    old.ready(&[]).await.expect("ready");
    assert_eq!(new.api_versions(), old.api_versions());
    let info = old.kind("apps/v1", "Deployment").expect("known").expect("served");
    assert_eq!(Some(info), new.kind("apps/v1", "Deployment").expect("known"));
    assert!(world.member("old").wire.take_log().contains(&"GET /apis/apps/v1".to_owned()));
}
