//! Custom resources: how a definition comes to be served, what it announces, and how it goes.

use crate::world::{
    APPLY_PATCH, CRDS, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, World, cause_fields, condition, config_map,
    names, text, version,
};
use serde_json::{Value, json};

/// An installed definition.
pub(crate) struct Widgets {
    pub(crate) path: String,
    pub(crate) api_version: String,
    pub(crate) kind: &'static str,
    pub(crate) definition: String,
    pub(crate) group: String,
}

/// Installs a namespaced kind with status, scale, printer columns and a short name, in a group of the case's own.
pub(crate) async fn widgets(world: &World) -> Widgets {
    let group = group(world);
    world.install(&widget_crd(&group, widget_schema())).await;
    Widgets {
        path: world.in_group(&format!("/apis/{group}/v1"), "widgets"),
        api_version: format!("{group}/v1"),
        kind: "Widget",
        definition: format!("{CRDS}/widgets.{group}"),
        group,
    }
}

pub(crate) fn group(world: &World) -> String {
    format!("{}.baton-behaviour.example", world.unique())
}

fn widget_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer"}, "replicas": {"type": "integer"},
                    "color": {"type": "string"}, "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                },
            },
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    })
}

pub(crate) fn widget_crd(group: &str, schema: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {
                "plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"], "categories": ["toys"],
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1, "description": "what it looks like"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
            }],
        },
    })
}

pub(crate) fn widget(api_version: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": api_version, "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

pub(crate) async fn a_definition_becomes_established(world: &World) {
    let group = group(world);
    let crd = world.install(&widget_crd(&group, widget_schema())).await;
    let accepted = condition(&crd, "NamesAccepted").expect("a condition on names");
    assert_eq!((&accepted["status"], &accepted["reason"]), (&json!("True"), &json!("NoConflicts")));
    assert_eq!(accepted["message"], "no conflicts found");
    let established = condition(&crd, "Established").expect("a condition on serving");
    assert_eq!(established["reason"], "InitialNamesAccepted");
    assert_eq!(established["message"], "the initial names have been accepted");
    assert_eq!(crd["status"]["acceptedNames"]["listKind"], "WidgetList");
    assert_eq!(crd["status"]["acceptedNames"]["shortNames"], json!(["wd"]));
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(crd["spec"]["names"]["listKind"], "WidgetList");
}

pub(crate) async fn custom_objects_live_like_others(world: &World) {
    let w = widgets(world).await;
    let made = world.post(&w.path, &widget(&w.api_version, "a", json!({"size": 1}))).await.created();
    assert_eq!(made["kind"], w.kind);
    assert_eq!(made["apiVersion"], w.api_version);
    let again =
        world.post(&w.path, &widget(&w.api_version, "a", json!({}))).await.fails(409, "AlreadyExists");
    assert_eq!(again["message"], format!("widgets.{} \"a\" already exists", w.group));
    let mut stale = made.clone();
    world.patch(&format!("{}/a", w.path), MERGE_PATCH, &json!({"spec": {"size": 2}})).await.ok();
    stale["spec"]["size"] = json!(3);
    world.put(&format!("{}/a", w.path), &stale).await.fails(409, "Conflict");
    let list = world.get(&w.path).await.ok();
    assert_eq!(list["kind"], "WidgetList");
    assert_eq!(list["apiVersion"], w.api_version);
    assert_eq!(names(&list), ["a"]);
    assert_eq!(list["items"][0]["kind"], "Widget", "items of a custom list carry their type");
    let mut watch = world.watch(&w.path, &format!("resourceVersion={}", version(&list))).await;
    world.delete(&format!("{}/a", w.path)).await.ok();
    let gone = watch.expect_named("DELETED", "a").await;
    assert_eq!(gone["spec"]["size"], 2);
    world.get(&format!("{}/a", w.path)).await.fails(404, "NotFound");
}

pub(crate) async fn custom_updates_need_a_version(world: &World) {
    let w = widgets(world).await;
    world.post(&w.path, &widget(&w.api_version, "a", json!({"size": 1}))).await.created();
    let reply = world.put(&format!("{}/a", w.path), &widget(&w.api_version, "a", json!({"size": 2}))).await;
    reply.fails_saying(
        422,
        "Invalid",
        &["metadata.resourceVersion: Invalid value", "must be specified for an update"],
    );
}

pub(crate) async fn strategic_patches_are_for_built_in_kinds(world: &World) {
    let w = widgets(world).await;
    world.post(&w.path, &widget(&w.api_version, "a", json!({"size": 1}))).await.created();
    let reply = world.patch(&format!("{}/a", w.path), STRATEGIC_PATCH, &json!({"spec": {"size": 2}})).await;
    let status = reply.fails(415, "UnsupportedMediaType");
    assert!(text(&status, "/message").contains(MERGE_PATCH), "{status}");
    assert!(!text(&status, "/message").contains(STRATEGIC_PATCH), "{status}");
}

pub(crate) async fn custom_objects_are_applied_by_schema(world: &World) {
    let w = widgets(world).await;
    let path = format!("{}/a?fieldManager=first", w.path);
    let wanted = widget(&w.api_version, "a", json!({"size": 1, "labels": {"x": "1"}}));
    let made = world.patch(&path, APPLY_PATCH, &wanted).await.created();
    let fields = &made["metadata"]["managedFields"][0]["fieldsV1"];
    assert_eq!(fields, &json!({"f:spec": {"f:size": {}, "f:labels": {"f:x": {}}}}));
    let path = format!("{}/a?fieldManager=second", w.path);
    let wanted = widget(&w.api_version, "a", json!({"size": 2}));
    let status = world.patch(&path, APPLY_PATCH, &wanted).await.fails(409, "Conflict");
    assert_eq!(status["message"], "Apply failed with 1 conflict: conflict with \"first\": .spec.size");
}

pub(crate) async fn empty_labels_are_left_out(world: &World) {
    let w = widgets(world).await;
    let mut wanted = widget(&w.api_version, "a", json!({"size": 1}));
    wanted["metadata"]["labels"] = json!({});
    wanted["metadata"]["annotations"] = json!({});
    let made = world.post(&w.path, &wanted).await.created();
    let path = format!("{}/a", w.path);
    wanted["spec"]["size"] = json!(2);
    let applied = world.apply(&path, "first", "&force=true", &wanted).await.ok();
    let patch = json!({"metadata": {"labels": {}}, "spec": {"size": 3}});
    let patched = world.patch(&path, MERGE_PATCH, &patch).await.ok();
    for object in [made, applied, patched] {
        assert!(object["metadata"].get("labels").is_none(), "{object}");
        assert!(object["metadata"].get("annotations").is_none(), "{object}");
    }
}

pub(crate) async fn discovery_announces_the_kind(world: &World) {
    let w = widgets(world).await;
    let path = format!("/apis/{}/v1", w.group);
    let list = world
        .eventually("discovery has the kind", async || {
            let reply = world.get(&path).await;
            (reply.code == 200)
                .then(|| reply.json())
                .filter(|list| list["resources"].as_array().is_some_and(|resources| resources.len() == 3))
        })
        .await;
    let resources = list["resources"].as_array().expect("resources");
    let main = resources.iter().find(|resource| resource["name"] == "widgets").expect("widgets");
    assert_eq!(main["singularName"], "widget");
    assert_eq!(main["kind"], "Widget");
    assert_eq!(main["namespaced"], true);
    assert_eq!(main["shortNames"], json!(["wd"]));
    assert_eq!(main["categories"], json!(["toys"]));
    for verb in ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"] {
        assert!(main["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!(verb))), "{verb}");
    }
    let scale = resources.iter().find(|resource| resource["name"] == "widgets/scale").expect("scale");
    assert_eq!(
        (&scale["kind"], &scale["group"], &scale["version"]),
        (&json!("Scale"), &json!("autoscaling"), &json!("v1"))
    );
    assert!(resources.iter().any(|resource| resource["name"] == "widgets/status"));
    let group = world
        .eventually("the group is listed", async || {
            let groups = world.get("/apis").await.ok();
            let groups = groups["groups"].as_array().cloned().unwrap_or_default();
            groups.into_iter().find(|group| group["name"] == w.group.as_str())
        })
        .await;
    assert_eq!(group["preferredVersion"], json!({"groupVersion": w.api_version, "version": "v1"}));
}

pub(crate) async fn deleting_the_definition_removes_its_objects(world: &World) {
    let w = widgets(world).await;
    let mut held = widget(&w.api_version, "held", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.post(&w.path, &held).await.created();
    world.post(&w.path, &widget(&w.api_version, "free", json!({}))).await.created();
    world.delete(&w.definition).await.ok();
    let path = format!("{}/held", w.path);
    world.until(&path, "is being deleted", |held| held["metadata"]["deletionTimestamp"].is_string()).await;
    let crd = world
        .until(&w.definition, "says it is terminating", |crd| {
            condition(crd, "Terminating").is_some_and(|found| found["status"] == "True")
        })
        .await;
    assert!(crd["metadata"]["finalizers"].to_string().contains("customresourcecleanup.apiextensions.k8s.io"));
    let reply = world.post(&w.path, &widget(&w.api_version, "late", json!({}))).await;
    assert!(matches!(reply.code, 403..=405), "{}", reply.code);
    world.patch(&path, MERGE_PATCH, &json!({"metadata": {"finalizers": null}})).await.ok();
    world.until_gone(&w.definition).await;
    world.eventually("the path is gone", async || (world.get(&w.path).await.code == 404).then_some(())).await;
}

pub(crate) async fn stored_objects_are_read_by_the_present_schema(world: &World) {
    let w = widgets(world).await;
    world.post(&w.path, &widget(&w.api_version, "a", json!({"size": 4, "replicas": 1}))).await.created();
    let path = format!("{}/a", w.path);
    let properties = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let change = json!([
        {"op": "add", "path": format!("{properties}/color/default"), "value": "red"},
        {"op": "remove", "path": format!("{properties}/size")},
    ]);
    world.patch(&w.definition, JSON_PATCH, &change).await.ok();
    world.until(&path, "has the new default", |read| read["spec"]["color"] == "red").await;
    // A real server turns requests away for a moment while it takes the new definition in.
    let list = world
        .eventually("the list is served", async || {
            let reply = world.get(&w.path).await;
            (reply.code == 200).then(|| reply.json())
        })
        .await;
    assert_eq!(list["items"][0]["spec"], json!({"color": "red", "replicas": 1}));
    let change = json!({"spec": {"replicas": 2}});
    let after = world
        .eventually("the object can be written", async || {
            let reply = world.patch(&path, MERGE_PATCH, &change).await;
            (reply.code == 200).then(|| reply.json())
        })
        .await;
    assert_eq!(after["spec"], json!({"color": "red", "replicas": 2}));
    assert_eq!(after["metadata"]["uid"], list["items"][0]["metadata"]["uid"]);
}

pub(crate) async fn a_version_shows_and_stores_what_its_schema_has(world: &World) {
    let group = group(world);
    let schema = |field: &str| {
        json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {field: {"type": "string"}}},
        }})
    };
    let mut crd = widget_crd(&group, schema("old"));
    let mut second = crd["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    second["schema"]["openAPIV3Schema"] = schema("new");
    for version in [&mut crd["spec"]["versions"][0], &mut second] {
        version.as_object_mut().expect("a version").remove("subresources");
        version.as_object_mut().expect("a version").remove("additionalPrinterColumns");
    }
    crd["spec"]["versions"].as_array_mut().expect("versions").push(second);
    world.install(&crd).await;
    let old = world.in_group(&format!("/apis/{group}/v1"), "widgets");
    let new = world.in_group(&format!("/apis/{group}/v2"), "widgets");
    world.post(&old, &widget(&format!("{group}/v1"), "a", json!({"old": "x"}))).await.created();
    assert_eq!(world.get(&format!("{new}/a")).await.ok()["spec"], json!({}));
    assert_eq!(world.get(&format!("{old}/a")).await.ok()["spec"], json!({"old": "x"}));
    world.post(&new, &widget(&format!("{group}/v2"), "b", json!({"new": "y"}))).await.created();
    assert_eq!(
        world.get(&format!("{new}/b")).await.ok()["spec"],
        json!({}),
        "the stored version has no such field"
    );
}

pub(crate) async fn versions_convert_by_name_only(world: &World) {
    let group = group(world);
    let mut crd = widget_crd(&group, widget_schema());
    let mut second = crd["spec"]["versions"][0].clone();
    second["name"] = json!("v1beta1");
    second["storage"] = json!(false);
    second["deprecated"] = json!(true);
    crd["spec"]["versions"].as_array_mut().expect("versions").push(second);
    world.install(&crd).await;
    let old = world.in_group(&format!("/apis/{group}/v1beta1"), "widgets");
    let new = world.in_group(&format!("/apis/{group}/v1"), "widgets");
    let reply = world.post(&old, &widget(&format!("{group}/v1beta1"), "a", json!({"size": 4}))).await;
    assert_eq!(
        reply.warnings(),
        [format!("299 - \"{group}/v1beta1 Widget is deprecated; use {group}/v1 Widget\"")]
    );
    reply.created();
    let read = world.get(&format!("{new}/a")).await.ok();
    assert_eq!(read["apiVersion"], format!("{group}/v1"));
    assert_eq!(read["spec"]["size"], 4);
    let group = world
        .eventually("both versions are listed", async || {
            let reply = world.get(&format!("/apis/{group}")).await;
            (reply.code == 200)
                .then(|| reply.json())
                .filter(|group| group["versions"].as_array().is_some_and(|versions| versions.len() == 2))
        })
        .await;
    let versions: Vec<_> =
        group["versions"].as_array().into_iter().flatten().map(|v| text(v, "/version")).collect();
    assert_eq!(versions, ["v1", "v1beta1"], "stable versions come first");
}

pub(crate) async fn a_version_can_stop_being_served(world: &World) {
    let w = widgets(world).await;
    let mut crd = world.get(&w.definition).await.ok();
    let mut next = crd["spec"]["versions"][0].clone();
    next["name"] = json!("v2");
    next["storage"] = json!(false);
    crd["spec"]["versions"][0]["served"] = json!(false);
    crd["spec"]["versions"].as_array_mut().expect("versions").push(next);
    world
        .eventually("the new version is accepted", async || {
            crd["metadata"]["resourceVersion"] =
                world.get(&w.definition).await.ok()["metadata"]["resourceVersion"].clone();
            (world.put(&w.definition, &crd).await.code == 200).then_some(())
        })
        .await;
    world.eventually("v1 is gone", async || (world.get(&w.path).await.code == 404).then_some(())).await;
    let new = world.in_group(&format!("/apis/{}/v2", w.group), "widgets");
    world.eventually("v2 is there", async || (world.get(&new).await.code == 200).then_some(())).await;
}

pub(crate) async fn a_missing_definition_is_not_found(world: &World) {
    let path = world.in_group("/apis/absent.example/v1", "widgets");
    let reply = world.post(&path, &widget("absent.example/v1", "a", json!({}))).await;
    assert_eq!(reply.code, 404);
}

pub(crate) async fn invalid_definitions_are_refused(world: &World) {
    let group = group(world);
    // With one version, a schema's fault is reported below `spec.validation`, as it was in the first CRD API; only
    // the end of the path is compared.
    let good = widget_crd(&group, widget_schema());
    type Spoil = fn(&mut Value);
    let cases: [(&str, Spoil); 14] = [
        ("metadata.name", |crd| crd["metadata"]["name"] = json!("gadgets.example")),
        ("spec.group", |crd| crd["spec"]["group"] = json!("")),
        ("spec.scope", |crd| crd["spec"]["scope"] = json!("Planetary")),
        ("spec.names.kind", |crd| crd["spec"]["names"]["kind"] = json!("")),
        ("spec.versions", |crd| crd["spec"]["versions"][0]["storage"] = json!(false)),
        ("spec.versions[0].name", |crd| crd["spec"]["versions"][0]["name"] = json!("Version One")),
        ("spec.versions[0].schema.openAPIV3Schema", |crd| {
            crd["spec"]["versions"][0].as_object_mut().expect("a version").remove("schema");
        }),
        ("openAPIV3Schema.properties[spec].type", |crd| {
            let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
            spec.as_object_mut().expect("a schema").remove("type");
        }),
        ("spec.names.shortNames[0]", |crd| crd["spec"]["names"]["shortNames"] = json!(["Short"])),
        ("spec.names.listKind", |crd| crd["spec"]["names"]["listKind"] = json!("Widget")),
        ("spec.preserveUnknownFields", |crd| crd["spec"]["preserveUnknownFields"] = json!(true)),
        ("selectableFields[0].jsonPath", |crd| {
            crd["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.absent"}]);
        }),
        ("metadata.annotations[api-approved.kubernetes.io]", |crd| {
            crd["spec"]["group"] = json!("behaviour.k8s.io");
            crd["metadata"]["name"] = json!("widgets.behaviour.k8s.io");
        }),
        ("additionalPrinterColumns[0].JSONPath", |crd| {
            crd["spec"]["versions"][0]["additionalPrinterColumns"][0]["jsonPath"] = json!("spec.size");
        }),
    ];
    for (field, spoil) in cases {
        let mut crd = good.clone();
        spoil(&mut crd);
        let status = world.post(CRDS, &crd).await.fails(422, "Invalid");
        assert!(cause_fields(&status).iter().any(|found| found.ends_with(field)), "{field}: {status}");
    }
    world.get(&format!("{CRDS}/widgets.{group}")).await.fails(404, "NotFound");
}

pub(crate) async fn conflicting_names_are_not_accepted(world: &World) {
    let w = widgets(world).await;
    let mut other = widget_crd(&w.group, widget_schema());
    other["metadata"]["name"] = json!(format!("contraptions.{}", w.group));
    other["spec"]["names"] = json!({"plural": "contraptions", "kind": "Widget", "listKind": "ContraptionList", "shortNames": ["ct"]});
    let path = format!("{CRDS}/contraptions.{}", w.group);
    world.delete_at_end(path.clone());
    world.post(CRDS, &other).await.created();
    let crd = world
        .until(&path, "has a verdict on its names", |crd| condition(crd, "NamesAccepted").is_some())
        .await;
    let accepted = condition(&crd, "NamesAccepted").expect("just seen");
    assert_eq!(
        (&accepted["status"], &accepted["reason"]),
        (&json!("False"), &json!("KindConflict")),
        "{accepted}"
    );
    let established = condition(&crd, "Established").expect("a condition on serving");
    assert_eq!(established["status"], "False");
    let contraptions = format!("/apis/{}/v1/contraptions", w.group);
    assert_eq!(world.get(&contraptions).await.code, 404);
}

pub(crate) async fn cluster_scoped_kinds_have_no_namespace(world: &World) {
    let group = group(world);
    let mut crd = widget_crd(&group, widget_schema());
    crd["spec"]["scope"] = json!("Cluster");
    world.install(&crd).await;
    let path = format!("/apis/{group}/v1/widgets");
    let made = world.post(&path, &widget(&format!("{group}/v1"), "global", json!({}))).await.created();
    assert!(made["metadata"].get("namespace").is_none());
    world.get(&format!("{path}/global")).await.ok();
    let inside = world.in_group(&format!("/apis/{group}/v1"), "widgets/global");
    assert_eq!(world.get(&inside).await.code, 404);
}

pub(crate) async fn custom_objects_own_and_are_owned(world: &World) {
    let w = widgets(world).await;
    let owner = world.post(&w.path, &widget(&w.api_version, "owner", json!({}))).await.created();
    let mut child = config_map("child", json!({}));
    child["metadata"]["ownerReferences"] = json!([{
        "apiVersion": w.api_version, "kind": "Widget", "name": "owner", "uid": owner["metadata"]["uid"],
    }]);
    world.post(&world.core("configmaps"), &child).await.created();
    // A garbage collector learns of a new kind only after a while; the owner must be known to it before it goes.
    world.delete_with(&format!("{}/owner", w.path), &json!({"propagationPolicy": "Background"})).await.ok();
    world.until_gone(&world.core("configmaps/child")).await;
}
