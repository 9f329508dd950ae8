//! The same objects as tables and as bare metadata.

use crate::crds::{Widgets, widget, widgets};
use crate::world::{World, deployment, version};
use http::header;
use serde_json::{Value, json};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

pub(crate) async fn a_list_becomes_a_table(world: &World) {
    world.config_map("settings", json!({})).await;
    let path = format!("{}?labelSelector=", world.core("configmaps"));
    let reply = world.get_as(&path, TABLE).await;
    assert!(reply.header(header::CONTENT_TYPE).starts_with("application/json"));
    let table = reply.ok();
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(columns(&table), ["Name", "Data", "Age"]);
    assert!(!version(&table).is_empty());
    let row = row(&table, "settings");
    assert_eq!(row["cells"][0], "settings");
    assert_eq!(row["cells"][1], 1);
    assert!(row["cells"][2].is_string());
    assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
    assert!(row["object"].get("data").is_none());
}

pub(crate) async fn one_object_becomes_a_table(world: &World) {
    world.config_map("settings", json!({})).await;
    let table = world.get_as(&world.core("configmaps/settings"), TABLE).await.ok();
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["rows"].as_array().map(Vec::len), Some(1));
}

pub(crate) async fn a_table_includes_what_is_asked_for(world: &World) {
    world.config_map("settings", json!({})).await;
    let path = world.core("configmaps/settings");
    let whole = world.get_as(&format!("{path}?includeObject=Object"), TABLE).await.ok();
    assert_eq!(whole["rows"][0]["object"]["kind"], "ConfigMap");
    assert_eq!(whole["rows"][0]["object"]["data"]["key"], "value");
    let none = world.get_as(&format!("{path}?includeObject=None"), TABLE).await.ok();
    assert!(none["rows"][0]["object"].is_null());
}

pub(crate) async fn workload_tables_have_their_columns(world: &World) {
    let deployments = world.in_group("/apis/apps/v1", "deployments");
    world.post(&deployments, &deployment("web", 0)).await.created();
    let table = world.get_as(&deployments, TABLE).await.ok();
    assert_eq!(
        columns(&table),
        ["Name", "Ready", "Up-to-date", "Available", "Age", "Containers", "Images", "Selector"]
    );
    let row = row(&table, "web");
    assert_eq!(row["cells"][1], "0/0");
    assert_eq!(row["cells"][6], "example/main:1");
    assert_eq!(row["cells"][7], "app=web");
    let wide: Vec<bool> = table["columnDefinitions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|column| column["priority"] == 1)
        .collect();
    assert_eq!(wide, [false, false, false, false, false, true, true, true]);
}

pub(crate) async fn pod_and_service_tables_have_their_columns(world: &World) {
    let table = world.get_as(&world.core("pods"), TABLE).await.ok();
    assert_eq!(columns(&table)[..5], ["Name", "Ready", "Status", "Restarts", "Age"]);
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}},
    });
    world.post(&world.core("services"), &service).await.created();
    let table = world.get_as(&world.core("services"), TABLE).await.ok();
    assert_eq!(columns(&table), ["Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector"]);
    let cells = &row(&table, "web")["cells"];
    assert_eq!(
        (&cells[1], &cells[3], &cells[4], &cells[6]),
        (&json!("ClusterIP"), &json!("<none>"), &json!("80/TCP"), &json!("a=b"))
    );
}

/// A star marks a column that only `-o wide` shows.
pub(crate) async fn every_kind_has_the_columns_kubectl_users_know(world: &World) {
    for (path, expected) in [
        ("/api/v1/namespaces", "Name Status Age"),
        (
            "/api/v1/nodes",
            "Name Status Roles Age Version *Internal-IP *External-IP *OS-Image *Kernel-Version *Container-Runtime",
        ),
        ("/api/v1/secrets", "Name Type Data Age"),
        ("/api/v1/serviceaccounts", "Name Age"),
        (
            "/api/v1/events",
            "Last_Seen Type Reason Object *Subobject *Source Message *First_Seen *Count *Name",
        ),
        ("/apis/apps/v1/statefulsets", "Name Ready Age *Containers *Images"),
        (
            "/apis/apps/v1/daemonsets",
            "Name Desired Current Ready Up-to-date Available Node_Selector Age *Containers *Images *Selector",
        ),
        ("/apis/apps/v1/replicasets", "Name Desired Current Ready Age *Containers *Images *Selector"),
        ("/apis/batch/v1/jobs", "Name Status Completions Duration Age *Containers *Images *Selector"),
        (
            "/apis/batch/v1/cronjobs",
            "Name Schedule Timezone Suspend Active Last_Schedule Age *Containers *Images *Selector",
        ),
        ("/apis/networking.k8s.io/v1/ingresses", "Name Class Hosts Address Ports Age"),
        ("/apis/networking.k8s.io/v1/networkpolicies", "Name Pod-Selector Age"),
        ("/apis/rbac.authorization.k8s.io/v1/roles", "Name Created_At"),
        ("/apis/rbac.authorization.k8s.io/v1/rolebindings", "Name Role Age *Users *Groups *ServiceAccounts"),
        (
            "/apis/policy/v1/poddisruptionbudgets",
            "Name Min_Available Max_Unavailable Allowed_Disruptions Age",
        ),
        (
            "/apis/autoscaling/v2/horizontalpodautoscalers",
            "Name Reference Targets MinPods MaxPods Replicas Age",
        ),
        ("/apis/coordination.k8s.io/v1/leases", "Name Holder Age"),
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            "Name Provisioner ReclaimPolicy VolumeBindingMode AllowVolumeExpansion Age",
        ),
        ("/apis/discovery.k8s.io/v1/endpointslices", "Name AddressType Ports Endpoints Age"),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "Name Created_At"),
    ] {
        let table = world.get_as(&format!("{path}?limit=1"), TABLE).await.ok();
        let definitions = table["columnDefinitions"].as_array().into_iter().flatten();
        let found: Vec<String> = definitions
            .map(|column| {
                let star = if column["priority"] == 0 { "" } else { "*" };
                format!("{star}{}", column["name"].as_str().unwrap_or_default().replace(' ', "_"))
            })
            .collect();
        assert_eq!(found.join(" "), expected, "{path}");
    }
}

pub(crate) async fn custom_tables_have_the_declared_columns(world: &World) {
    let Widgets { path, api_version, .. } = widgets(world).await;
    world.post(&path, &widget(&api_version, "a", json!({"size": 3}))).await.created();
    let table = world.get_as(&path, TABLE).await.ok();
    assert_eq!(columns(&table), ["Name", "Size", "Color", "Age"]);
    let definitions = &table["columnDefinitions"];
    assert_eq!((&definitions[1]["type"], &definitions[2]["priority"]), (&json!("integer"), &json!(1)));
    assert_eq!(definitions[2]["description"], "what it looks like");
    let cells = &row(&table, "a")["cells"];
    assert_eq!((&cells[0], &cells[1], &cells[2]), (&json!("a"), &json!(3), &Value::Null));
    assert!(cells[3].is_string());
}

pub(crate) async fn a_watch_sends_table_rows(world: &World) {
    let path = world.core("configmaps");
    let list = world.get(&path).await.ok();
    let mut watch = world.watch_as(&path, &format!("resourceVersion={}", version(&list)), TABLE).await;
    world.config_map("one", json!({})).await;
    world.config_map("two", json!({})).await;
    let first = watch.expect("ADDED").await;
    assert_eq!(first["kind"], "Table");
    assert_eq!(columns(&first), ["Name", "Data", "Age"]);
    assert_eq!(first["rows"][0]["cells"][0], "one");
    let second = watch.expect("ADDED").await;
    assert_eq!(second["rows"][0]["cells"][0], "two");
    assert!(second["columnDefinitions"].as_array().is_none_or(Vec::is_empty), "columns come once");
}

pub(crate) async fn metadata_alone_can_be_read(world: &World) {
    let made = world.config_map("settings", json!({"a": "b"})).await;
    let partial = world.get_as(&world.core("configmaps/settings"), METADATA).await.ok();
    assert_eq!(
        (&partial["kind"], &partial["apiVersion"]),
        (&json!("PartialObjectMetadata"), &json!("meta.k8s.io/v1"))
    );
    assert_eq!(partial["metadata"], made["metadata"]);
    assert!(partial.get("data").is_none());
}

pub(crate) async fn metadata_alone_can_be_listed(world: &World) {
    world.config_map("settings", json!({"a": "b"})).await;
    let path = format!("{}?labelSelector=a%3Db", world.core("configmaps"));
    let list = world.get_as(&path, METADATA_LIST).await.ok();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
    assert!(list["items"][0].get("data").is_none());
    assert!(!version(&list).is_empty());
}

pub(crate) async fn metadata_alone_can_be_watched(world: &World) {
    let path = world.core("configmaps");
    let list = world.get(&path).await.ok();
    let mut watch = world.watch_as(&path, &format!("resourceVersion={}", version(&list)), METADATA).await;
    world.config_map("one", json!({})).await;
    let seen = watch.expect_named("ADDED", "one").await;
    assert_eq!(
        (&seen["kind"], &seen["apiVersion"]),
        (&json!("PartialObjectMetadata"), &json!("meta.k8s.io/v1"))
    );
    assert!(seen.get("data").is_none());
}

pub(crate) async fn an_unknown_shape_falls_back_to_plain(world: &World) {
    world.config_map("settings", json!({})).await;
    let accept = "application/json;as=Sculpture;g=meta.k8s.io;v=v1,application/json";
    let read = world.get_as(&world.core("configmaps/settings"), accept).await.ok();
    assert_eq!(read["kind"], "ConfigMap");
    let accept = "application/json;as=Sculpture;g=meta.k8s.io;v=v1";
    world.get_as(&world.core("configmaps/settings"), accept).await.fails(406, "NotAcceptable");
}

pub(crate) async fn yaml_answers_are_given(world: &World) {
    world.config_map("settings", json!({})).await;
    let reply = world.get_as(&world.core("configmaps/settings"), "application/yaml").await;
    assert_eq!(reply.code, 200);
    assert_eq!(reply.header(header::CONTENT_TYPE), "application/yaml");
    assert!(String::from_utf8_lossy(&reply.body).contains("kind: ConfigMap"));
}

pub(crate) async fn any_type_means_json(world: &World) {
    world.config_map("settings", json!({})).await;
    for accept in ["*/*", "text/html,application/json;q=0.9", ""] {
        let reply = world.get_as(&world.core("configmaps/settings"), accept).await;
        assert_eq!(reply.header(header::CONTENT_TYPE), "application/json", "{accept:?}");
        reply.ok();
    }
}

fn columns(table: &Value) -> Vec<&str> {
    let columns = table["columnDefinitions"].as_array().into_iter().flatten();
    columns.filter_map(|column| column["name"].as_str()).collect()
}

fn row<'a>(table: &'a Value, name: &str) -> &'a Value {
    let rows = table["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["cells"][0] == name).unwrap_or_else(|| panic!("no row {name} in {table}"))
}
