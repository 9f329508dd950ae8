//! What the server says about itself: groups, kinds, schemas, version, health.

use crate::crds::{Widgets, widgets};
use crate::world::{JSON, World, text};
use http::header;
use serde_json::{Value, json};

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

pub(crate) async fn the_core_group_is_listed(world: &World) {
    let versions = world.get("/api").await.ok();
    assert_eq!(versions["kind"], "APIVersions");
    assert_eq!(versions["versions"], json!(["v1"]));
    let list = world.get("/api/v1").await.ok();
    assert_eq!((&list["kind"], &list["groupVersion"]), (&json!("APIResourceList"), &json!("v1")));
    for (name, kind, short, namespaced) in [
        ("pods", "Pod", json!(["po"]), true),
        ("configmaps", "ConfigMap", json!(["cm"]), true),
        ("namespaces", "Namespace", json!(["ns"]), false),
        ("services", "Service", json!(["svc"]), true),
        ("nodes", "Node", json!(["no"]), false),
        ("secrets", "Secret", Value::Null, true),
    ] {
        let found = resource(&list, name);
        assert_eq!(found["kind"], kind);
        assert_eq!(found["shortNames"], short, "{name}");
        assert_eq!(found["namespaced"], namespaced, "{name}");
    }
    assert_eq!(resource(&list, "namespaces/finalize")["verbs"], json!(["update"]));
    assert_eq!(resource(&list, "pods/status")["kind"], "Pod");
}

pub(crate) async fn every_group_of_the_contract_is_listed(world: &World) {
    let groups = world.get("/apis").await.ok();
    assert_eq!(groups["kind"], "APIGroupList");
    let found: Vec<&str> = groups["groups"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|group| text(group, "/preferredVersion/groupVersion"))
        .collect();
    for wanted in [
        "apps/v1",
        "batch/v1",
        "networking.k8s.io/v1",
        "rbac.authorization.k8s.io/v1",
        "policy/v1",
        "autoscaling/v2",
        "coordination.k8s.io/v1",
        "events.k8s.io/v1",
        "storage.k8s.io/v1",
        "scheduling.k8s.io/v1",
        "discovery.k8s.io/v1",
        "apiextensions.k8s.io/v1",
        "authentication.k8s.io/v1",
        "authorization.k8s.io/v1",
    ] {
        assert!(found.contains(&wanted), "{wanted} is not among {found:?}");
        let list = world.get(&format!("/apis/{wanted}")).await.ok();
        assert_eq!(list["kind"], "APIResourceList");
        let group = wanted.split('/').next().unwrap_or_default();
        assert_eq!(world.get(&format!("/apis/{group}")).await.ok()["kind"], "APIGroup");
    }
}

pub(crate) async fn deployments_announce_their_subresources(world: &World) {
    let list = world.get("/apis/apps/v1").await.ok();
    let deployments = resource(&list, "deployments");
    assert_eq!(deployments["categories"], json!(["all"]));
    assert_eq!(deployments["shortNames"], json!(["deploy"]));
    assert_eq!(deployments["singularName"], "deployment");
    let scale = resource(&list, "deployments/scale");
    assert_eq!(
        (&scale["kind"], &scale["group"], &scale["version"]),
        (&json!("Scale"), &json!("autoscaling"), &json!("v1"))
    );
    assert_eq!(resource(&list, "deployments/status")["verbs"], json!(["get", "patch", "update"]));
}

pub(crate) async fn aggregated_discovery_has_all_in_one(world: &World) {
    let Widgets { group, .. } = widgets(world).await;
    let reply = world.get_as("/api", AGGREGATED).await;
    let media = reply.header(header::CONTENT_TYPE).to_owned();
    assert!(media.contains("as=APIGroupDiscoveryList") && media.contains("g=apidiscovery.k8s.io"), "{media}");
    let core = reply.ok();
    assert_eq!(
        (&core["kind"], &core["apiVersion"]),
        (&json!("APIGroupDiscoveryList"), &json!("apidiscovery.k8s.io/v2"))
    );
    let pods = discovered(&core, "", "pods").expect("pods");
    assert_eq!(pods["responseKind"]["kind"], "Pod");
    assert_eq!(pods["scope"], "Namespaced");
    assert_eq!(pods["singularResource"], "pod");
    assert!(pods["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!("watch"))));
    let found = world
        .eventually("the custom kind is in the aggregate", async || {
            let list = world.get_as("/apis", AGGREGATED).await.ok();
            discovered(&list, &group, "widgets").cloned()
        })
        .await;
    assert_eq!(found["shortNames"], json!(["wd"]));
    assert_eq!(found["responseKind"]["group"], group.as_str());
    let subresources: Vec<&str> =
        found["subresources"].as_array().into_iter().flatten().map(|sub| text(sub, "/subresource")).collect();
    assert!(subresources.contains(&"status") && subresources.contains(&"scale"));
    let list = world.get_as("/apis", AGGREGATED).await.ok();
    assert!(discovered(&list, "apps", "deployments").is_some());
}

pub(crate) async fn the_version_is_recent_enough(world: &World) {
    let info = world.get("/version").await.ok();
    assert_eq!(info["major"], "1");
    let minor: u32 = text(&info, "/minor").trim_end_matches('+').parse().expect("a number");
    assert!(minor >= 33, "{info}");
    assert!(text(&info, "/gitVersion").starts_with("v1."));
    assert!(text(&info, "/platform").contains('/'));
}

pub(crate) async fn health_is_plain_text(world: &World) {
    for path in ["/healthz", "/livez", "/readyz"] {
        let reply = world.get(path).await;
        assert_eq!((reply.code, &reply.body[..]), (200, &b"ok"[..]), "{path}");
        assert!(reply.header(header::CONTENT_TYPE).starts_with("text/plain"));
        let verbose = world.get(&format!("{path}?verbose")).await;
        assert!(String::from_utf8_lossy(&verbose.body).contains("check passed"), "{path}");
    }
}

pub(crate) async fn open_api_has_an_index(world: &World) {
    let index = world.get_as("/openapi/v3", JSON).await.ok();
    for path in ["api/v1", "apis/apps/v1", "apis/apiextensions.k8s.io/v1"] {
        let url =
            index["paths"][path]["serverRelativeURL"].as_str().unwrap_or_else(|| panic!("{path} in {index}"));
        assert!(url.starts_with(&format!("/openapi/v3/{path}?hash=")), "{url}");
    }
}

pub(crate) async fn open_api_describes_kinds_and_patches(world: &World) {
    let document = world.get_as("/openapi/v3/apis/apps/v1", JSON).await.ok();
    assert!(text(&document, "/openapi").starts_with("3."));
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    let wanted = json!({"group": "apps", "kind": "Deployment", "version": "v1"});
    let deployment = schemas
        .values()
        .find(|schema| {
            schema["x-kubernetes-group-version-kind"].as_array().is_some_and(|kinds| kinds.contains(&wanted))
        })
        .expect("a schema for Deployment");
    assert!(deployment["properties"]["spec"].is_object());
    let patch = document
        .pointer("/paths/~1apis~1apps~1v1~1namespaces~1{namespace}~1deployments~1{name}/patch")
        .expect("the patch operation");
    assert_eq!(patch["x-kubernetes-group-version-kind"], wanted);
    let parameters = patch["parameters"].as_array().expect("parameters");
    for name in ["fieldValidation", "dryRun", "fieldManager", "force"] {
        assert!(parameters.iter().any(|parameter| parameter["name"] == name), "{name}");
    }
}

pub(crate) async fn open_api_describes_custom_kinds(world: &World) {
    let Widgets { group, .. } = widgets(world).await;
    let path = format!("/openapi/v3/apis/{group}/v1");
    let document = world
        .eventually("the document is there", async || {
            let reply = world.get_as(&path, JSON).await;
            (reply.code == 200).then(|| reply.json())
        })
        .await;
    let wanted = json!({"group": group, "kind": "Widget", "version": "v1"});
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    let found = schemas
        .values()
        .find(|schema| {
            schema["x-kubernetes-group-version-kind"].as_array().is_some_and(|kinds| kinds.contains(&wanted))
        })
        .expect("a schema for Widget");
    assert_eq!(found["properties"]["spec"]["properties"]["size"]["type"], "integer");
    let index = world.get_as("/openapi/v3", JSON).await.ok();
    assert!(index["paths"][format!("apis/{group}/v1")].is_object());
}

pub(crate) async fn merge_keys_are_in_the_schemas(world: &World) {
    let document = world.get_as("/openapi/v3/apis/apps/v1", JSON).await.ok();
    let containers = document
        .pointer("/components/schemas/io.k8s.api.core.v1.PodSpec/properties/containers")
        .expect("containers of a pod");
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(containers["x-kubernetes-list-type"], "map");
    assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
}

fn resource<'a>(list: &'a Value, name: &str) -> &'a Value {
    let resources = list["resources"].as_array().expect("resources");
    resources.iter().find(|resource| resource["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

fn discovered<'a>(list: &'a Value, group: &str, plural: &str) -> Option<&'a Value> {
    let groups = list["items"].as_array()?.iter();
    let mut groups = groups.filter(|found| found["metadata"]["name"].as_str().unwrap_or_default() == group);
    let resources = groups.next()?["versions"][0]["resources"].as_array()?;
    resources.iter().find(|resource| resource["resource"] == plural)
}
