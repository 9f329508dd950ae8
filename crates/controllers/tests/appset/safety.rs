//! Whatever fails, and wherever: nothing is deleted that should stay, and once it is over everything is right.

use std::time::Duration;

use serde_json::json;

use crate::faults::Fault;
use crate::scene::{Scene, cluster_secret, list, set};

/// What happens in each scenario: an Application is created, one changed, one deleted, two stay; the set asks for a
/// refresh.
const BEFORE: [&str; 4] = ["change", "delete", "stay", "stay-too"];
const AFTER: [&str; 4] = ["change", "create", "stay", "stay-too"];

#[tokio::test(start_paused = true)]
async fn any_failing_request_is_made_good_later() {
    let faults = [
        Fault::Refused(500, "injected".into()),
        Fault::Refused(429, "injected".into()),
        Fault::Refused(409, "injected".into()),
        Fault::Done(500, "injected".into()),
        Fault::Done(504, "injected".into()),
        Fault::Silent,
    ];
    let scene = Scene::new().await;
    let requests = scenario(&scene, None).await;
    assert!(
        requests >= 6,
        "the scenario makes {requests} requests: a create, two patches, a delete, a status …"
    );
    for fault in faults {
        for number in 0..requests + 2 {
            scenario(&scene, Some((number, fault.clone()))).await;
        }
    }
}

/// Plays the scenario with one request failing, checks its end, and tells how many requests it made.
async fn scenario(scene: &Scene, fault: Option<(usize, Fault)>) -> usize {
    let shown = format!("{fault:?}");
    let mut first = set("set", elements(&BEFORE, "v1"));
    first["spec"]["syncPolicy"] = json!({"preserveResourcesOnDeletion": true});
    scene.put(first.clone()).await;
    assert_eq!(scene.names(), BEFORE, "before {shown}");
    let revision = scene.revision();
    scene.wire.fail(move |number, _| {
        let (at, fault) = fault.as_ref()?;
        (number == *at).then(|| fault.clone())
    });
    let mut second = set("set", elements(&AFTER, "v2"));
    second["spec"]["syncPolicy"] = json!({"preserveResourcesOnDeletion": true});
    second["metadata"]["annotations"] = json!({"argocd.argoproj.io/application-set-refresh": "true"});
    scene.put(second).await;
    scene.wire.heal();
    let requests = scene.wire.take_calls().len();
    // Long enough for an answer that never comes, and for retries.
    tokio::time::sleep(Duration::from_secs(240)).await;
    scene.settle().await;

    assert_eq!(scene.names(), AFTER, "after {shown}");
    let deleted =
        scene.application_writes_since(revision).into_iter().filter(|write| write.starts_with("deleted"));
    assert_eq!(deleted.collect::<Vec<_>>(), ["deleted delete"], "{shown}");
    assert_eq!(scene.application("change")["spec"]["source"]["targetRevision"], "v2", "{shown}");
    let set = scene.set("set");
    assert!(set["metadata"].get("annotations").is_none(), "the refresh is granted: {shown}");
    assert_eq!(set["status"]["resourcesCount"], 4, "{shown}");
    assert_eq!(set["status"]["health"]["status"], "Healthy", "{shown}");
    let quiet = scene.revision();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(scene.writes_since(quiet), [], "quiet again after {shown}");

    scene.remove("ApplicationSet", "set").await;
    assert_eq!(scene.names(), Vec::<String>::new());
    requests
}

fn elements(names: &[&str], revision: &str) -> serde_json::Value {
    let mut generators = list(names);
    for element in generators[0]["list"]["elements"].as_array_mut().expect("elements") {
        element["revision"] = match element["name"] == "change" {
            true => revision.into(),
            false => "HEAD".into(),
        };
    }
    let mut template = json!({"metadata": {}, "spec": {"project": "", "destination": {}}});
    template["spec"]["source"] = json!({"repoURL": "", "targetRevision": "{{revision}}"});
    generators[0]["list"]["template"] = template;
    generators
}

#[tokio::test(start_paused = true)]
async fn a_failing_generator_deletes_nothing_and_says_why() {
    let scene = Scene::new().await;
    scene.put(set("set", list(&["a", "b"]))).await;
    let broken = [
        json!([{"list": {"elements": [{"name": ["not", "a", "string"]}]}}]),
        json!([{"list": {"elements": [{"name": "a"}]}}, {"matrix": {"generators": [{"list": {"elements": []}}]}}]),
        json!([{"git": {"repoURL": "https://git.example.com/apps.git", "revision": "HEAD"}}]),
        json!([{"clusterDecisionResource": {"configMapRef": "missing", "name": "x"}}]),
        json!([{"plugin": {"configMapRef": {"name": "missing"}}}]),
        json!([{"scmProvider": {"github": {"organization": "x", "tokenRef": {"secretName": "missing", "key": "k"}}}}]),
    ];
    for generators in broken {
        let revision = scene.revision();
        scene.put(set("set", generators.clone())).await;
        assert_eq!(scene.application_writes_since(revision), Vec::<String>::new(), "{generators}");
        let conditions = scene.conditions("set");
        assert!(
            conditions[0]
                .starts_with("ErrorOccurred=True ApplicationGenerationFromParamsError: spec.generators["),
            "{conditions:?}"
        );
        assert!(conditions[1].starts_with("ParametersGenerated=False ErrorOccurred: "), "{conditions:?}");
    }
    scene.put(set("set", list(&["a", "b"]))).await;
    assert!(scene.conditions("set")[0].starts_with("ErrorOccurred=False"), "{:?}", scene.conditions("set"));
}

#[tokio::test(start_paused = true)]
async fn a_template_that_fails_for_one_deletes_nothing() {
    let scene = Scene::new().await;
    scene.put(set("set", list(&["a", "b"]))).await;
    let mut failing = set("set", list(&["a"]));
    failing["spec"]["goTemplate"] = true.into();
    failing["spec"]["goTemplateOptions"] = json!(["missingkey=error"]);
    failing["spec"]["template"]["metadata"]["name"] = "{{ .nope }}".into();
    let revision = scene.revision();
    scene.put(failing).await;
    assert_eq!(scene.application_writes_since(revision), Vec::<String>::new());
    assert!(scene.conditions("set")[0].starts_with("ErrorOccurred=True RenderTemplateParamsError: "));
}

#[tokio::test(start_paused = true)]
async fn cut_watches_and_failing_lists_delete_nothing() {
    let scene = Scene::new().await;
    scene.put(cluster_secret("east", json!({}))).await;
    scene.put(set("set", json!([{"clusters": {"selector": {"matchLabels": {"argocd.argoproj.io/secret-type": "cluster"}}}}]))).await;
    assert_eq!(scene.names(), ["east"]);
    let revision = scene.revision();
    // Every read fails for ten minutes: watches end, and cannot be opened again.
    scene
        .wire
        .fail(|_, call| (call.method == http::Method::GET).then(|| Fault::Refused(500, "injected".into())));
    tokio::time::sleep(Duration::from_secs(600)).await;
    scene.controller.wake(baton_controllers::ObjectKey::new("argocd", "set"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    scene.wire.heal();
    tokio::time::sleep(Duration::from_secs(60)).await;
    scene.settle().await;
    assert_eq!(scene.writes_since(revision), []);
    scene.put(cluster_secret("west", json!({}))).await;
    assert_eq!(scene.names(), ["east", "west"], "watches are open again");
}
