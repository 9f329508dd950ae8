//! What a custom resource's schema does to its objects: defaults, pruning, validation, rules.

use crate::crds::{group, widget, widget_crd};
use crate::world::{APPLY_PATCH, MERGE_PATCH, World, cause_fields, text};
use serde_json::{Value, json};

pub(crate) async fn defaults_are_filled_in(world: &World) {
    let spec = json!({
        "size": {"type": "integer", "default": 7},
        "inner": {
            "type": "object", "default": {},
            "properties": {"mode": {"type": "string", "default": "auto"}},
        },
        "items": {"type": "array", "items": {
            "type": "object", "properties": {"name": {"type": "string"}, "on": {"type": "boolean", "default": true}},
        }},
        "maybe": {"type": "string", "nullable": true, "default": "filled"},
    });
    let (path, api_version) = installed(world, spec).await;
    let made = world
        .post(&path, &widget(&api_version, "a", json!({"items": [{"name": "x"}], "maybe": null})))
        .await
        .created();
    assert_eq!(
        made["spec"],
        json!({"size": 7, "inner": {"mode": "auto"}, "items": [{"name": "x", "on": true}], "maybe": null})
    );
    let kept = world
        .post(&path, &widget(&api_version, "b", json!({"size": 1, "inner": {"mode": "x"}})))
        .await
        .created();
    assert_eq!(kept["spec"], json!({"size": 1, "inner": {"mode": "x"}, "maybe": "filled"}));
}

pub(crate) async fn unknown_fields_are_pruned_with_a_warning(world: &World) {
    let (path, api_version) = installed(world, json!({"size": {"type": "integer"}})).await;
    let wanted = widget(&api_version, "a", json!({"size": 1, "odd": {"deep": true}}));
    let reply = world.post(&path, &wanted).await;
    assert_eq!(reply.warnings(), ["299 - \"unknown field \\\"spec.odd\\\"\""]);
    assert_eq!(reply.created()["spec"], json!({"size": 1}));
    let mut strict = wanted;
    strict["metadata"]["name"] = json!("b");
    let reply = world.post(&format!("{path}?fieldValidation=Strict"), &strict).await;
    reply.fails_saying(400, "BadRequest", &["strict decoding error: unknown field \"spec.odd\""]);
}

pub(crate) async fn preserved_fields_stay(world: &World) {
    let spec = json!({
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "either": {"x-kubernetes-int-or-string": true},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
    });
    let (path, api_version) = installed(world, spec).await;
    let free = json!({"free": {"a": [1, {"b": null}]}, "either": "50%", "map": {"x": 1}});
    let made = world.post(&path, &widget(&api_version, "a", free.clone())).await.created();
    assert_eq!(made["spec"], free);
    world.post(&path, &widget(&api_version, "b", json!({"either": 3}))).await.created();
    world.post(&path, &widget(&api_version, "c", json!({"either": true}))).await.fails(422, "Invalid");
}

pub(crate) async fn embedded_resources_keep_their_metadata(world: &World) {
    let spec = json!({
        "template": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
    });
    let (path, api_version) = installed(world, spec).await;
    let template =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}});
    let made = world.post(&path, &widget(&api_version, "a", json!({"template": template}))).await.created();
    assert_eq!(made["spec"]["template"], template);
    let reply = world.post(&path, &widget(&api_version, "b", json!({"template": {"data": {}}}))).await;
    let status = reply.fails(422, "Invalid");
    assert!(cause_fields(&status).contains(&"spec.template.apiVersion"), "{status}");
}

pub(crate) async fn every_bound_is_checked(world: &World) {
    let spec = json!({
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "ratio": {"type": "number", "exclusiveMinimum": true, "minimum": 0, "multipleOf": 0.5},
        "color": {"type": "string", "enum": ["red", "green"]},
        "code": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 4},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        "map": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 1},
        "when": {"type": "string", "format": "date-time"},
        "pair": {"type": "object", "required": ["left"], "properties": {"left": {"type": "string"}}},
        "flag": {"type": "boolean"},
    });
    let (path, api_version) = installed(world, spec).await;
    let cases = [
        (json!({"size": 0}), "spec.size", "should be greater than or equal to 1"),
        (json!({"size": 10}), "spec.size", "should be less than or equal to 9"),
        (json!({"size": "one"}), "spec.size", "must be of type integer: \"string\""),
        (json!({"size": 1.5}), "spec.size", "must be of type integer: \"number\""),
        (json!({"ratio": 0}), "spec.ratio", "should be greater than 0"),
        (json!({"ratio": 0.3}), "spec.ratio", "should be a multiple of 0.5"),
        (
            json!({"color": "blue"}),
            "spec.color",
            "Unsupported value: \"blue\": supported values: \"red\", \"green\"",
        ),
        (json!({"code": "AB"}), "spec.code", "should match '^[a-z]+$'"),
        (json!({"code": "a"}), "spec.code", "should be at least 2 chars long"),
        (json!({"code": "abcde"}), "spec.code", "Too long: may not be more than 4 bytes"),
        (json!({"tags": []}), "spec.tags", "should have at least 1 items"),
        (json!({"tags": ["a", "b", "c"]}), "spec.tags", "must have at most 2 items"),
        (json!({"tags": ["a", 2]}), "spec.tags[1]", "must be of type string: \"integer\""),
        (json!({"map": {"a": "1", "b": "2"}}), "spec.map", "must have at most 1 "),
        (json!({"map": {"a": 1}}), "spec.map.a", "must be of type string: \"integer\""),
        (json!({"when": "yesterday"}), "spec.when", "must be of type date-time"),
        (json!({"pair": {}}), "spec.pair.left", "Required value"),
        (json!({"flag": "yes"}), "spec.flag", "must be of type boolean: \"string\""),
        (json!("text"), "spec", "must be of type object: \"string\""),
    ];
    for (spec, field, part) in cases {
        let reply = world.post(&path, &widget(&api_version, "bad", spec)).await;
        let status = reply.fails(422, "Invalid");
        assert!(cause_fields(&status).contains(&field), "{field}: {status}");
        assert!(text(&status, "/message").contains(part), "{part}: {}", status["message"]);
        assert_eq!(status["details"]["name"], "bad");
        assert_eq!(status["details"]["kind"], "Widget");
    }
    world.get(&format!("{path}/bad")).await.fails(404, "NotFound");
}

pub(crate) async fn logical_combinations_are_checked(world: &World) {
    let spec = json!({
        "a": {"type": "string"}, "b": {"type": "string"},
    });
    let group = group(world);
    let mut schema = schema_of(spec);
    schema["properties"]["spec"]["oneOf"] = json!([{"required": ["a"]}, {"required": ["b"]}]);
    world.install(&widget_crd(&group, schema)).await;
    let path = world.in_group(&format!("/apis/{group}/v1"), "widgets");
    let api_version = format!("{group}/v1");
    world.post(&path, &widget(&api_version, "one", json!({"a": "x"}))).await.created();
    let reply = world.post(&path, &widget(&api_version, "both", json!({"a": "x", "b": "y"}))).await;
    reply.fails_saying(422, "Invalid", &["must validate one and only one schema (oneOf)"]);
    world.post(&path, &widget(&api_version, "none", json!({}))).await.fails(422, "Invalid");
}

pub(crate) async fn rules_are_evaluated(world: &World) {
    let group = group(world);
    let mut schema = schema_of(json!({
        "min": {"type": "integer"}, "max": {"type": "integer"},
        "name": {"type": "string", "maxLength": 20, "x-kubernetes-validations": [
            {"rule": "self.startsWith('w-')", "message": "names start with w-"},
        ]},
    }));
    schema["properties"]["spec"]["x-kubernetes-validations"] = json!([
        {"rule": "!has(self.min) || !has(self.max) || self.min <= self.max", "messageExpression": "has(self.name) ? 'min of ' + self.name + ' is above max' : 'min is above max'"},
        {"rule": "self.min == oldSelf.min", "message": "min is immutable", "fieldPath": ".min", "reason": "FieldValueForbidden"},
    ]);
    world.install(&widget_crd(&group, schema)).await;
    let path = world.in_group(&format!("/apis/{group}/v1"), "widgets");
    let api_version = format!("{group}/v1");
    let reply =
        world.post(&path, &widget(&api_version, "a", json!({"min": 5, "max": 2, "name": "w-1"}))).await;
    let status = reply.fails_saying(422, "Invalid", &["min of w-1 is above max"]);
    assert_eq!(cause_fields(&status), ["spec"]);
    let reply = world.post(&path, &widget(&api_version, "a", json!({"name": "x"}))).await;
    let status = reply.fails_saying(422, "Invalid", &["spec.name: Invalid value", "names start with w-"]);
    assert_eq!(cause_fields(&status), ["spec.name"]);
    world.post(&path, &widget(&api_version, "a", json!({"min": 1, "max": 2, "name": "w-1"}))).await.created();
    let reply = world.patch(&format!("{path}/a"), MERGE_PATCH, &json!({"spec": {"min": 2}})).await;
    let status = reply.fails_saying(422, "Invalid", &["spec.min: Forbidden: min is immutable"]);
    assert_eq!(cause_fields(&status), ["spec.min"]);
    world.patch(&format!("{path}/a"), MERGE_PATCH, &json!({"spec": {"max": 9}})).await.ok();
}

pub(crate) async fn a_rule_that_does_not_compile_is_refused(world: &World) {
    let group = group(world);
    let mut schema = schema_of(json!({"size": {"type": "integer"}}));
    for rule in
        ["self.size >", "self.absent == 1", "self.size", "self.size + 1", "1 + 1", "self.size == 'text'"]
    {
        schema["properties"]["spec"]["x-kubernetes-validations"] = json!([{"rule": rule}]);
        let status =
            world.post(crate::world::CRDS, &widget_crd(&group, schema.clone())).await.fails(422, "Invalid");
        let end = "openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule";
        assert!(cause_fields(&status).iter().any(|found| found.ends_with(end)), "{rule}: {status}");
    }
}

pub(crate) async fn keyed_lists_are_unique_and_owned_by_key(world: &World) {
    let spec = json!({
        "ports": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object", "required": ["name"],
                "properties": {"name": {"type": "string"}, "port": {"type": "integer"}},
            },
        },
        "words": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
    });
    let (path, api_version) = installed(world, spec).await;
    let twice = json!({"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]});
    let status = world.post(&path, &widget(&api_version, "bad", twice)).await.fails(422, "Invalid");
    assert_eq!(cause_fields(&status), ["spec.ports[1]"]);
    assert_eq!(status["details"]["causes"][0]["reason"], "FieldValueDuplicate");
    world.post(&path, &widget(&api_version, "bad", json!({"words": ["x", "x"]}))).await.fails(422, "Invalid");
    let apply = async |manager: &str, spec: Value| {
        let path = format!("{path}/a?fieldManager={manager}");
        world.patch(&path, APPLY_PATCH, &widget(&api_version, "a", spec)).await
    };
    apply("first", json!({"ports": [{"name": "a", "port": 1}], "words": ["x"]})).await.created();
    let both = apply("second", json!({"ports": [{"name": "b", "port": 2}], "words": ["y"]})).await.ok();
    assert_eq!(both["spec"]["ports"], json!([{"name": "a", "port": 1}, {"name": "b", "port": 2}]));
    assert_eq!(both["spec"]["words"], json!(["x", "y"]));
    let status = apply("second", json!({"ports": [{"name": "a", "port": 9}]})).await.fails(409, "Conflict");
    assert_eq!(
        status["message"],
        "Apply failed with 1 conflict: conflict with \"first\": .spec.ports[name=\"a\"].port"
    );
    apply("first", json!({"whole": {"a": "1"}})).await.ok();
    let status = apply("second", json!({"whole": {"b": "1"}})).await.fails(409, "Conflict");
    assert_eq!(cause_fields(&status), [".spec.whole"]);
}

pub(crate) async fn metadata_of_custom_objects_is_validated(world: &World) {
    let (path, api_version) = installed(world, json!({"size": {"type": "integer"}})).await;
    let mut wanted = widget(&api_version, "a", json!({}));
    wanted["metadata"]["labels"] = json!({"bad key!": "x"});
    world.post(&path, &wanted).await.fails(422, "Invalid");
    world.post(&path, &widget(&api_version, "Bad_Name", json!({}))).await.fails(422, "Invalid");
    let mut wanted = widget(&api_version, "a", json!({}));
    wanted["metadata"]["labels"] = json!({"key": 7});
    let reply = world.post(&path, &wanted).await;
    assert!(matches!(reply.code, 400 | 422), "{}", reply.code);
}

pub(crate) async fn selectable_fields_select(world: &World) {
    let group = group(world);
    let mut crd = widget_crd(&group, schema_of(json!({"color": {"type": "string"}})));
    crd["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    world.install(&crd).await;
    let path = world.in_group(&format!("/apis/{group}/v1"), "widgets");
    for (name, color) in [("a", "red"), ("b", "green")] {
        world.post(&path, &widget(&format!("{group}/v1"), name, json!({"color": color}))).await.created();
    }
    let list = world.get(&format!("{path}?fieldSelector=spec.color%3Dgreen")).await.ok();
    assert_eq!(crate::world::names(&list), ["b"]);
    let reply = world.get(&format!("{path}?fieldSelector=spec.size%3D1")).await;
    reply.fails_saying(400, "BadRequest", &["field label not supported: spec.size"]);
}

pub(crate) async fn a_stricter_schema_spares_what_does_not_change(world: &World) {
    let (path, api_version) =
        installed(world, json!({"size": {"type": "integer"}, "color": {"type": "string"}})).await;
    world.post(&path, &widget(&api_version, "old", json!({"size": 1}))).await.created();
    let definition = format!("{}/widgets.{}", crate::world::CRDS, group(world));
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/minimum";
    let patch = json!([{"op": "add", "path": field, "value": 5}]);
    world.patch(&definition, crate::world::JSON_PATCH, &patch).await.ok();
    world
        .eventually("the new schema is in force", async || {
            let reply = world
                .post(&format!("{path}?dryRun=All"), &widget(&api_version, "new", json!({"size": 1})))
                .await;
            (reply.code == 422).then_some(())
        })
        .await;
    let path = format!("{path}/old");
    world.patch(&path, MERGE_PATCH, &json!({"spec": {"color": "red"}})).await.ok();
    world.patch(&path, MERGE_PATCH, &json!({"spec": {"size": 2}})).await.fails(422, "Invalid");
    world.patch(&path, MERGE_PATCH, &json!({"spec": {"size": 6}})).await.ok();
}

pub(crate) async fn the_type_of_a_custom_object_cannot_change(world: &World) {
    let (path, api_version) = installed(world, json!({"size": {"type": "integer"}})).await;
    let mut wrong = widget(&api_version, "a", json!({}));
    wrong["kind"] = json!("Gadget");
    let reply = world.post(&path, &wrong).await;
    assert!(matches!(reply.code, 400 | 422), "{}", reply.code);
    let made = world.post(&path, &widget(&api_version, "a", json!({"size": 1}))).await.created();
    let reply = world.patch(&format!("{path}/a"), MERGE_PATCH, &json!({"kind": "Gadget"})).await;
    assert!(matches!(reply.code, 400 | 422), "{}", reply.code);
    assert_eq!(world.get(&format!("{path}/a")).await.ok(), made);
}

pub(crate) async fn whole_numbers_are_integers_however_written(world: &World) {
    let (path, api_version) =
        installed(world, json!({"size": {"type": "integer"}, "ratio": {"type": "number"}})).await;
    let body = format!(
        r#"{{"apiVersion":"{api_version}","kind":"Widget","metadata":{{"name":"a"}},"spec":{{"size":3.0,"ratio":2.50}}}}"#
    );
    let made = world.call("POST", &path, &[("content-type", crate::world::JSON)], body).await.created();
    assert_eq!(made["spec"].to_string(), r#"{"ratio":2.5,"size":3}"#);
}

pub(crate) async fn undeclared_fields_are_not_applied(world: &World) {
    let (path, api_version) = installed(world, json!({"size": {"type": "integer"}})).await;
    let wanted = widget(&api_version, "a", json!({"size": 1, "odd": 2}));
    let reply = world.patch(&format!("{path}/a?fieldManager=first"), APPLY_PATCH, &wanted).await;
    assert!(reply.code >= 400, "{}", reply.code);
    assert!(text(&reply.json(), "/message").contains(".spec.odd: field not declared in schema"));
    world.get(&format!("{path}/a")).await.fails(404, "NotFound");
}

async fn installed(world: &World, spec: Value) -> (String, String) {
    let group = group(world);
    world.install(&widget_crd(&group, schema_of(spec))).await;
    (world.in_group(&format!("/apis/{group}/v1"), "widgets"), format!("{group}/v1"))
}

fn schema_of(spec: Value) -> Value {
    json!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    })
}
