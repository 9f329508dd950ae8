//! Rules an operator or a set chooses, and whom a change wakes.

use std::time::Duration;

use baton_controllers::webhook::Refresh;
use baton_controllers::{ObjectKey, Settings};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::faults::Fault;
use crate::scene::{NAMESPACE, Scene, cluster_secret, list, project, set};

#[tokio::test(start_paused = true)]
async fn a_dry_run_asks_for_every_write_and_makes_none() {
    let scene = Scene::new().await;
    scene.put(set("set", list(&["a", "b"]))).await;
    let settings = Settings { dry_run: true, ..scene.settings.clone() };
    let mut scene = scene;
    scene.stop().await;
    let scene = Scene::over(scene.cluster.clone(), settings).await;
    scene.wire.take_calls();
    let revision = scene.revision();
    let mut changed = set("set", list(&["b", "c"]));
    changed["spec"]["template"]["spec"]["source"]["path"] = "moved".into();
    scene.put(changed).await;
    let asked: Vec<String> = scene.wire.take_calls().iter().map(|call| call.method.to_string()).collect();
    assert!(
        ["POST", "DELETE", "PATCH"].iter().all(|method| asked.iter().any(|asked| asked == method)),
        "{asked:?}"
    );
    let written: Vec<_> =
        scene.writes_since(revision).into_iter().map(|write| (write.change, write.name)).collect();
    assert_eq!(written, [("modified", "set".to_owned())], "only what the test wrote");
    assert_eq!(scene.names(), ["a", "b"]);
    assert_eq!(scene.application("b")["spec"]["source"]["path"], "app");
}

#[tokio::test(start_paused = true)]
async fn of_two_controllers_one_leads_and_the_other_follows_on() {
    let settings = Settings { leader_election: true, ..Settings::new(NAMESPACE) };
    let mut first = Scene::with(settings).await;
    first.put(set("set", list(&["a"]))).await;
    let second = Scene::start(first.cluster.clone(), first.settings.clone());
    tokio::time::sleep(Duration::from_secs(20)).await;
    first.put(set("set", list(&["a", "b"]))).await;
    assert_eq!(first.names(), ["a", "b"]);
    let wrote = |scene: &Scene| {
        let calls = scene.wire.take_calls().into_iter();
        calls.filter(|call| call.method != http::Method::GET && !call.path.contains("/leases")).count()
    };
    assert_eq!(wrote(&second), 0, "the second only watches");
    // Nobody's work is measured twice.
    let measured = |scene: &Scene, line: &str| scene.metrics().lines().any(|told| told.starts_with(line));
    assert!(measured(&first, "baton_leader{name=\"applicationset\"} 1"), "{}", first.metrics());
    assert!(measured(&first, "argocd_appset_info{"), "{}", first.metrics());
    for line in ["baton_leader{name=\"applicationset\"} 0", "workqueue_depth{name=\"applicationset\"} 0"] {
        assert!(measured(&second, line), "{line}: {}", second.metrics());
    }
    assert!(!measured(&second, "argocd_appset_info{"), "{}", second.metrics());
    first.stop().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    second.put(set("set", list(&["a", "b", "c"]))).await;
    assert_eq!(second.names(), ["a", "b", "c"]);
    assert!(wrote(&second) > 0);
    assert!(
        measured(&second, "baton_leader{name=\"applicationset\"} 1")
            && measured(&second, "argocd_appset_info{")
    );
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_before_another_begins() {
    let settings = Settings { leader_election: true, ..Settings::new(NAMESPACE) };
    let mut first = Scene::with(settings).await;
    first.wire.fail(|_, call| call.path.contains("/leases").then(|| Fault::Refused(500, "injected".into())));
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(
        first.ended().await,
        Err("another controller may lead: the lease could not be renewed".to_owned())
    );
    let second = Scene::start(first.cluster.clone(), first.settings.clone());
    tokio::time::sleep(Duration::from_secs(30)).await;
    second.put(set("set", list(&["a"]))).await;
    assert_eq!(second.names(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_name_is_taken_over_once_its_last_holder_is_gone() {
    let scene = Scene::new().await;
    let mut holder = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "a", "namespace": NAMESPACE, "finalizers": ["example.com/hold"]},
        "spec": {"project": "default", "destination": {"server": "https://elsewhere"}},
    });
    scene.put(holder.clone()).await;
    scene.remove("Application", "a").await;
    scene.put(set("set", list(&["a"]))).await;
    assert!(scene.conditions("set")[0].contains("is being deleted"), "{:?}", scene.conditions("set"));
    assert_eq!(scene.application("a")["spec"]["destination"]["server"], "https://elsewhere", "left alone");
    holder["metadata"]["finalizers"] = json!([]);
    scene.apply(holder).await;
    tokio::time::sleep(Duration::from_secs(240)).await;
    scene.settle().await;
    assert_eq!(scene.application("a")["metadata"]["labels"], json!({"from": "set"}));
    assert!(scene.conditions("set")[0].starts_with("ErrorOccurred=False"));
}

#[tokio::test(start_paused = true)]
async fn sets_live_only_where_they_may() {
    let settings = Settings {
        application_set_namespaces: vec!["te*".to_owned()],
        scm_providers: false,
        ..Settings::new(NAMESPACE)
    };
    let scene = Scene::with(settings).await;
    for namespace in ["team", "other"] {
        let mut wanted = set("set", list(&[namespace]));
        wanted["metadata"]["namespace"] = namespace.into();
        scene.put(wanted).await;
    }
    assert_eq!(scene.controller.pass(&ObjectKey::new("other", "set")).await, Ok(None), "not even when asked");
    assert_eq!(scene.controller.application_sets().len(), 1);
    assert_eq!(scene.names(), ["team"]);
    assert_eq!(scene.application("team")["metadata"]["namespace"], "team");
    let other = scene.cluster.store().list("applicationsets.argoproj.io", Some("other"), Default::default());
    let other: Value = serde_json::from_slice(&other.expect("a list").records[0].json()).expect("JSON");
    assert!(other.get("status").is_none(), "a set elsewhere is nobody's business");
}

#[tokio::test(start_paused = true)]
async fn a_set_goes_on_as_soon_as_what_it_misses_is_there() {
    let scene = Scene::new().await;
    let mut wanted = set("set", list(&["a"]));
    wanted["spec"]["template"]["spec"]["project"] = "late".into();
    wanted["spec"]["template"]["spec"]["destination"] = json!({"name": "late", "namespace": "demo"});
    scene.put(wanted).await;
    let told = |scene: &Scene| scene.conditions("set")[0].clone();
    assert_eq!(
        told(&scene),
        "ErrorOccurred=True ApplicationValidationError: application references project late which does not exist"
    );
    let begin = tokio::time::Instant::now();
    scene.put(project("late")).await;
    assert_eq!(
        told(&scene),
        "ErrorOccurred=True ApplicationValidationError: application destination spec is invalid: there are no \
         clusters with this name: late"
    );
    scene.put(cluster_secret("late", json!({}))).await;
    assert_eq!(scene.names(), ["a"]);
    assert!(begin.elapsed() < Duration::from_secs(60), "nobody waited for the next look");
}

#[tokio::test(start_paused = true)]
async fn many_applications_are_looked_at_with_one_list() {
    let scene = Scene::new().await;
    let names: Vec<String> = (0..120).map(|number| format!("app-{number:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut wanted = set("set", list(&names));
    wanted["spec"]["syncPolicy"] = json!({"preserveResourcesOnDeletion": true});
    scene.put(wanted.clone()).await;
    assert_eq!(scene.names(), names);
    let reads = |scene: &Scene| {
        scene.wire.take_calls().iter().filter(|call| call.method == http::Method::GET).count()
    };
    reads(&scene);
    let scene = scene.restart().await;
    assert!(reads(&scene) < 20, "a new controller compares all with one list");

    wanted["spec"]["template"]["spec"]["source"]["path"] = "moved".into();
    let revision = scene.revision();
    scene.put(wanted.clone()).await;
    assert_eq!(scene.application_writes_since(revision).len(), 120);
    assert_eq!(reads(&scene), 1, "one list");

    wanted["spec"]["generators"] = list(&names[..20]);
    scene.put(wanted).await;
    assert_eq!(scene.names(), &names[..20]);
    assert_eq!(reads(&scene), 1, "one list");
    assert_eq!(scene.set("set")["status"]["resourcesCount"], 20);
}

#[tokio::test(start_paused = true)]
async fn several_applications_may_be_written_at_once() {
    let settings = Settings { concurrent_application_updates: 8, ..Settings::new(NAMESPACE) };
    let scene = Scene::with(settings).await;
    let mut wanted = set("set", list(&["a", "b", "c", "d", "e"]));
    scene.put(wanted.clone()).await;
    wanted["spec"]["generators"] = list(&["a", "c", "f"]);
    scene.put(wanted).await;
    let applications = scene.applications();
    let going = applications.values().filter(|app| app["metadata"]["deletionTimestamp"].is_string()).count();
    assert_eq!((applications.len(), going), (6, 3));
}

#[tokio::test(start_paused = true)]
async fn a_set_that_cannot_be_read_says_so_and_harms_nobody() {
    let scene = Scene::new().await;
    let mut unreadable = set("bad", list(&["x"]));
    unreadable["spec"]["generators"] = json!("not a list");
    scene.put(unreadable).await;
    scene.put(set("good", list(&["a"]))).await;
    assert_eq!(scene.names(), ["a"]);
    let told = scene.conditions("bad");
    assert!(
        told[0].starts_with("ErrorOccurred=True ErrorOccurred: the ApplicationSet cannot be read: "),
        "{told:?}"
    );
    let revision = scene.revision();
    scene.wake("bad").await;
    assert_eq!(scene.revision(), revision, "said once");
    scene.put(set("bad", list(&["x"]))).await;
    assert_eq!(scene.names(), ["a", "x"]);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_makes_a_set_look_again_once() {
    let scene = Scene::new().await;
    scene.put(set("set", list(&["a"]))).await;
    let sets = scene.controller.sets().await.expect("the sets");
    assert_eq!(sets.len(), 1);
    assert!(sets[0].read.as_ref().is_some_and(|read| read.is_empty()), "its pass read no repository");
    let revision = scene.revision();
    scene.controller.refresh(NAMESPACE, "set").await.expect("asked");
    scene.settle().await;
    let writes: Vec<_> = scene.writes_since(revision).into_iter().map(|write| write.name).collect();
    assert_eq!(writes, ["set", "set"], "asked for, and granted");
    assert!(scene.set("set")["metadata"].get("annotations").is_none());
    assert_eq!(scene.controller.refresh(NAMESPACE, "gone").await, Ok(()));
}

/// What the controller answers to a GET.
async fn ask(scene: &Scene, path: &str) -> (u16, String) {
    let request = http::Request::get(path).body(axum::body::Body::empty()).expect("a request");
    let answer = scene.controller.router().oneshot(request).await.expect("an answer");
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    (status, String::from_utf8(body.to_vec()).expect("text"))
}

#[tokio::test(start_paused = true)]
async fn a_controller_whose_api_is_away_lives_and_is_not_ready() {
    let mut scene = Scene::new().await;
    scene.put(set("set", list(&["a"]))).await;
    scene.stop().await;
    let scene = Scene::start(scene.cluster.clone(), scene.settings.clone());
    scene.wire.fail(|_, _| Some(Fault::Refused(503, "the API is away".into())));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(ask(&scene, "/healthz").await, (200, "ok".to_owned()));
    let (status, told) = ask(&scene, "/readyz").await;
    assert_eq!((status, told.as_str()), (503, "caches are not filled yet"));
    assert_eq!(ask(&scene, "/metrics").await.0, 200);
    scene.wire.heal();
    tokio::time::sleep(Duration::from_secs(300)).await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(ask(&scene, path).await, (200, "ok".to_owned()), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn metrics_have_argo_cds_names() {
    let settings =
        Settings { metrics_labels: vec!["team.example.com/name".to_owned()], ..Settings::new(NAMESPACE) };
    let scene = Scene::with(settings).await;
    let mut wanted = set("set", list(&["a", "b"]));
    wanted["metadata"]["labels"] = json!({"team.example.com/name": "blue"});
    scene.put(wanted).await;
    let (status, text) = ask(&scene, "/metrics").await;
    assert_eq!(status, 200);
    for line in [
        r#"argocd_appset_info{namespace="argocd",name="set",resource_update_status="ApplicationSetUpToDate"} 1"#,
        r#"argocd_appset_owned_applications{namespace="argocd",name="set"} 2"#,
        r#"argocd_appset_labels{namespace="argocd",name="set",label_team_example_com_name="blue"} 1"#,
        r#"workqueue_adds_total{name="applicationset"} "#,
        r#"argocd_appset_reconcile_bucket{le="0.005",namespace="argocd",name="set"} "#,
    ] {
        assert!(text.contains(line), "{line} is missing in:\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_real_definitions_take_everything_the_controller_writes() {
    let scene = Scene::defined_by(baton_api::crds(), Settings::new(NAMESPACE)).await;
    let mut wanted = set("set", list(&["a", "b"]));
    wanted["spec"]["ignoreApplicationDifferences"] = json!([{"jqPathExpressions": [".spec.source.path"]}]);
    wanted["spec"]["preservedFields"] = json!({"annotations": ["mine"]});
    scene.put(wanted.clone()).await;
    assert_eq!(scene.names(), ["a", "b"]);
    let mut changed = scene.application("a");
    changed["metadata"]["managedFields"] = Value::Null;
    changed["metadata"]["annotations"] = json!({"mine": "kept", "other": "lost"});
    changed["spec"]["source"]["path"] = "ignored".into();
    changed["spec"]["project"] = "undone".into();
    scene.put(changed).await;
    let a = scene.application("a");
    assert_eq!(a["metadata"]["annotations"], json!({"mine": "kept"}));
    assert_eq!((&a["spec"]["source"]["path"], &a["spec"]["project"]), (&json!("ignored"), &json!("default")));
    let revision = scene.revision();
    let scene = scene.restart().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(scene.writes_since(revision), []);
}

#[tokio::test(start_paused = true)]
async fn a_pass_by_hand_tells_when_it_wants_the_next() {
    let scene = Scene::new().await;
    let mut lost = set("set", list(&["a"]));
    lost["spec"]["template"]["spec"]["project"] = "nowhere".into();
    let mut scene = scene;
    scene.stop().await;
    scene.apply(lost).await;
    let scene = Scene::over(scene.cluster.clone(), scene.settings.clone()).await;
    let next = scene.controller.pass(&ObjectKey::new(NAMESPACE, "set")).await;
    assert_eq!(next, Ok(Some(Duration::from_secs(180))));
    assert_eq!(scene.controller.pass(&ObjectKey::new(NAMESPACE, "none")).await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn a_project_that_takes_only_signed_commits_gets_none_that_nobody_verified() {
    let scene = Scene::new().await;
    let strict = |keys: Value| {
        let mut project = project("strict");
        project["spec"]["signatureKeys"] = keys;
        project
    };
    scene.put(strict(json!([{"keyID": "4AEE18F83AFDEB23"}]))).await;
    let git = json!([{"git": {
        "repoURL": "https://git.example.com/none.git", "revision": "main", "directories": [{"path": "*"}],
    }}]);
    let mut wanted = set("set", git);
    wanted["spec"]["template"]["spec"]["project"] = "strict".into();
    scene.put(wanted).await;
    let said = scene.conditions("set").join("\n");
    assert!(said.contains("only signed commits"), "{said}");
    // A change of the project is enough to make the set look again: now it is git that fails.
    scene.put(strict(json!([]))).await;
    let said = scene.conditions("set").join("\n");
    assert!(!said.contains("only signed commits") && said.contains("ErrorOccurred=True"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_set_that_fails_can_be_asked_to_look_again_and_again() {
    let scene = Scene::new().await;
    let mut broken = set("set", json!([{"plugin": {"configMapRef": {"name": "missing"}}}]));
    broken["metadata"]["annotations"] = json!({"argocd.argoproj.io/application-set-refresh": "true"});
    for _ in 0..2 {
        scene.put(broken.clone()).await;
        assert!(scene.conditions("set").iter().any(|said| said.starts_with("ErrorOccurred=True")));
        assert_eq!(
            scene.set("set")["metadata"]["annotations"],
            Value::Null,
            "the next wish is a change again"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn phases_are_refused_where_ordered_rollouts_are_switched_off_which_they_are_unless_said() {
    let phases =
        json!([{"name": "all", "targets": [{"matchExpressions": [{"key": "name", "operator": "Exists"}]}]}]);
    let mut generators = list(&["one", "two"]);
    generators[0]["deploymentStrategy"] = json!({"type": "phaseDeployment", "phases": phases});
    let scene = Scene::new().await;
    scene.put(set("set", generators)).await;
    assert!(scene.names().is_empty(), "nobody is made, in no order either");
    let told = scene.conditions("set").join("\n");
    assert!(
        told.contains("ErrorOccurred=True ErrorOccurred: ") && told.contains("--enable-progressive-syncs"),
        "{told}"
    );
    // Without the field it goes on.
    scene.put(set("set", list(&["one", "two"]))).await;
    assert_eq!(scene.names(), ["one", "two"]);
    assert!(scene.conditions("set").join("\n").contains("ErrorOccurred=False"));
}
