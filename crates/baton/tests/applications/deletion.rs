//! Sets that delete in an order, on `baton up` with kubectl: what the API's history shows is what happened.

use std::collections::BTreeSet;

use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, WatchEvent, WatchParams};

use crate::process::client;
use crate::stage::{Stage, config_map};

const STEPS: [&str; 3] = ["config", "db", "frontend"];

/// The proposal's set of three services, with its lines about deletion.
fn pricelist(stage: &Stage, services: &[&str], deletion: &str) -> String {
    let step = |srv: &str| {
        format!(
            "        - matchExpressions:\n            - {{key: pricelist-component, operator: In, values: [{srv}]}}\n"
        )
    };
    let elements: Vec<String> =
        services.iter().map(|srv| format!("{{srv: {srv}, path: pricelist-{srv}}}")).collect();
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: pricelist, namespace: argocd}}
spec:
  generators:
    - list: {{elements: [{elements}]}}
  strategy:
    type: RollingSync
    rollingSync:
      steps:
{steps}{deletion}
  template:
    metadata: {{name: 'pricelist-{{{{srv}}}}', labels: {{pricelist-component: '{{{{srv}}}}'}}}}
    spec:
      project: default
      syncPolicy: {{automated: {{prune: true, selfHeal: true}}, syncOptions: [CreateNamespace=true]}}
      source: {{repoURL: {repository}, targetRevision: main, path: '{{{{path}}}}'}}
      destination: {{name: dev, namespace: pricelist}}
",
        elements = elements.join(", "),
        steps = STEPS.map(step).concat(),
        repository = stage.repository(),
    )
}

const REVERSE: &str = "    deletionOrder: Reverse";
const CUSTOM: &str = "    deletionOrder: Custom
    deletionSync:
      steps:
        - matchExpressions:
            - {key: pricelist-component, operator: In, values: [config]}
        - matchExpressions:
            - {key: pricelist-component, operator: In, values: [frontend]}
        - matchExpressions:
            - {key: pricelist-component, operator: In, values: [db]}";

fn deploy(deletion: &str) -> Stage {
    let stage = Stage::start();
    let files: Vec<(String, String)> = STEPS
        .map(|srv| (format!("pricelist-{srv}/settings.yaml"), config_map(srv, "blue", &[])))
        .into_iter()
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    stage.commit(&files);
    stage.apply_to_control(&pricelist(&stage, &STEPS, deletion));
    stage.until("everything is deployed", || deployed(&stage).len() == 3);
    stage
}

fn deployed(stage: &Stage) -> Vec<String> {
    let maps = stage.kubectl("dev", &["get", "configmaps", "-n", "pricelist", "-o", "name"]);
    let ours = maps.lines().filter_map(|line| line.strip_prefix("configmap/"));
    ours.filter(|name| STEPS.contains(name)).map(str::to_owned).collect()
}

fn left(stage: &Stage, kind: &str) -> String {
    stage.control(&["get", kind, "-n", "argocd", "-o", "name"])
}

#[test]
fn the_services_of_a_deleted_set_go_in_its_order_however_it_is_deleted() {
    for (deletion, cascade, order) in [
        (REVERSE, "background", ["frontend", "db", "config"]),
        (CUSTOM, "background", ["config", "frontend", "db"]),
        (CUSTOM, "foreground", ["config", "frontend", "db"]),
    ] {
        let stage = deploy(deletion);
        let cascade = format!("--cascade={cascade}");
        stage.control(&["delete", "applicationset", "pricelist", "-n", "argocd", &cascade, "--timeout=60s"]);
        assert_eq!(left(&stage, "applicationsets") + &left(&stage, "applications"), "");
        assert_eq!(went(&stage), order.map(|srv| format!("pricelist-{srv}")), "{deletion} {cascade}");
        assert_eq!(deployed(&stage), [""; 0]);
        assert!(!left(&stage, "configmaps").contains("baton"), "guard and witness go too");
    }
}

#[test]
fn orphans_stay_with_all_they_deployed() {
    let stage = deploy(REVERSE);
    stage.control(&[
        "delete",
        "applicationset",
        "pricelist",
        "-n",
        "argocd",
        "--cascade=orphan",
        "--timeout=60s",
    ]);
    assert_eq!(left(&stage, "applicationsets"), "");
    assert_eq!(left(&stage, "applications").lines().count(), 3);
    assert_eq!(deployed(&stage).len(), 3);
    assert_eq!(went(&stage), [""; 0]);
    assert!(!left(&stage, "configmaps").contains("baton"));
}

#[test]
fn services_that_a_generator_drops_go_in_order() {
    let stage = deploy(REVERSE);
    stage.apply_to_control(&pricelist(&stage, &["frontend"], REVERSE));
    stage.until("two are gone", || left(&stage, "applications").lines().count() == 1);
    assert_eq!(went(&stage), ["pricelist-db", "pricelist-config"]);
    assert_eq!(deployed(&stage), ["frontend"]);
}

#[test]
fn a_mass_deletion_waits_for_a_person() {
    let stage = Stage::start();
    let names = ["a", "b", "c", "d", "e", "f"];
    stage.apply_to_control(&pricelist(&stage, &names, ""));
    stage.until("they are there", || left(&stage, "applications").lines().count() == 6);
    assert!(stage.ok(&["appset", "approve-deletion", "pricelist"]).starts_with("nothing waits"));
    stage.apply_to_control(&pricelist(&stage, &[], ""));
    let held = "jsonpath={.status.conditions[?(@.type=='DeletionHeld')].message}";
    let message = || stage.control(&["get", "applicationset", "pricelist", "-n", "argocd", "-o", held]);
    stage.until("the fuse holds", || message().contains("6 of 6 Applications"));
    let refused = stage.baton(&["appset", "approve-deletion", "pricelist"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("pricelist-a, pricelist-b"), "{refused:?}");
    assert_eq!(left(&stage, "applications").lines().count(), 6);
    let approved = stage.ok(&["appset", "approve-deletion", "pricelist", "--yes"]);
    assert_eq!(approved, "applicationset.argoproj.io/pricelist deletion approved\n");
    stage.until("they are gone", || left(&stage, "applications").is_empty());
    stage.until("the approval is used up", || {
        let set = stage.control(&["get", "applicationset", "pricelist", "-n", "argocd", "-o", "json"]);
        !set.contains("baton.dev/deletion-approved") && !set.contains("DeletionHeld")
    });
}

/// Applications in the order in which their deletion began; each was gone before the next began.
fn went(stage: &Stage) -> Vec<String> {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = client(&stage.kubeconfig()).await;
        let api: Api<baton_api::Application> = Api::namespaced(client, "argocd");
        let newest = api.list(&Default::default()).await.expect("a list").metadata.resource_version;
        let newest: u64 = newest.unwrap_or_default().parse().expect("a number");
        let mut began = Vec::new();
        let mut going: BTreeSet<String> = BTreeSet::new();
        // From the beginning to now: the store forgets nothing in so short a life.
        let parameters = WatchParams::default().timeout(3);
        let mut events = api.watch(&parameters, "1").await.expect("a watch").boxed();
        while let Some(event) = events.try_next().await.expect("an event") {
            let (object, gone) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                _ => continue,
            };
            let name = object.metadata.name.clone().unwrap_or_default();
            let marked = object.metadata.deletion_timestamp.is_some() || gone;
            if marked && !began.contains(&name) {
                assert!(going.is_empty(), "{name} goes beside {going:?}");
                began.push(name.clone());
                going.insert(name.clone());
            }
            if gone {
                going.remove(&name);
            }
            let version = object.metadata.resource_version.as_deref().unwrap_or_default();
            if version.parse::<u64>().is_ok_and(|version| version >= newest) {
                break;
            }
        }
        began
    })
}
