//! The CRDs: structural, small, complete, and strict where Argo CD has nothing.

use std::collections::HashMap;
use std::fmt::Write;

use baton_api::{AppProject, Application, ApplicationSet};
use serde_json::{Value, json};

use crate::schemas::{complaints, document, fullest_object, lost, validator};

const KINDS: [&str; 3] = ["Application", "ApplicationSet", "AppProject"];

#[test]
fn every_schema_is_structural() {
    for kind in KINDS {
        let problems = baton_schema::structural::check(document(kind), "openAPIV3Schema");
        assert!(problems.is_empty(), "{kind}: {problems:?}");
        assert_every_node(document(kind), kind);
    }
}

/// Rules that hold at every node, checked without the help of the schema crate.
fn assert_every_node(schema: &Value, path: &str) {
    let fields = schema.as_object().unwrap_or_else(|| panic!("{path} is not an object"));
    let shaped = ["x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"];
    assert!(
        schema["type"].is_string() || shaped.iter().any(|key| fields.contains_key(*key)),
        "{path}: no type"
    );
    for keyword in ["$ref", "$defs", "$schema", "definitions", "title", "default", "nullable", "const"] {
        assert!(!fields.contains_key(keyword), "{path}: {keyword}");
    }
    let both = fields.contains_key("properties") && fields.contains_key("additionalProperties");
    assert!(!both, "{path}: additionalProperties beside properties");
    let required = fields.get("required").and_then(Value::as_array).into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        assert!(schema["properties"].get(name).is_some(), "{path}: {name} is required and not defined");
    }
    for (name, property) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
        assert_every_node(property, &format!("{path}.{name}"));
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get(keyword) {
            assert_every_node(inner, &format!("{path}[]"));
        }
    }
}

#[test]
fn definitions_are_the_same_every_time_and_fit_into_a_stored_object() {
    let text = |crds: &[Value]| crds.iter().map(Value::to_string).collect::<Vec<_>>();
    let crds = baton_api::crds();
    assert_eq!(text(&crds), text(&baton_api::crds()));
    for crd in text(&crds) {
        assert!(crd.len() < 512 * 1024, "{} bytes", crd.len());
    }
}

#[test]
fn names_columns_and_subresources_are_argo_cds() {
    let crds = baton_api::crds();
    let names: Vec<&Value> = crds.iter().map(|crd| &crd["metadata"]["name"]).collect();
    assert_eq!(names, ["applications.argoproj.io", "applicationsets.argoproj.io", "appprojects.argoproj.io"]);
    let short: Vec<&Value> = crds.iter().map(|crd| &crd["spec"]["names"]["shortNames"]).collect();
    assert_eq!(
        short,
        [&json!(["app", "apps"]), &json!(["appset", "appsets"]), &json!(["appproj", "appprojs"])]
    );
    let version = |at: usize| &crds[at]["spec"]["versions"][0];
    assert_eq!(version(0)["subresources"], json!({}));
    assert_eq!(version(1)["subresources"], json!({ "status": {} }));
    assert_eq!(version(2).get("subresources"), None);
    let columns = version(0)["additionalPrinterColumns"].as_array().expect("Application has columns");
    let columns: Vec<&Value> = columns.iter().map(|column| &column["name"]).collect();
    assert_eq!(columns, ["Sync Status", "Health Status", "Revision", "Project"]);
}

#[test]
fn definitions_are_readable_as_kubernetes_objects() {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    for crd in baton_api::crds() {
        let typed: CustomResourceDefinition = serde_json::from_value(crd.clone()).expect("a CRD is a CRD");
        assert_eq!(lost(&crd, &serde_json::to_value(&typed).expect("a CRD can be written")), [""; 0]);
    }
}

#[test]
fn every_field_of_every_schema_is_read_and_written() {
    let full = fullest_object("Application");
    let app: Application = serde_json::from_value(full.clone()).expect("a full Application is read");
    assert_eq!(lost(&full, &serde_json::to_value(&app).expect("it can be written")), [""; 0]);
    assert_eq!(complaints(&validator("Application"), &full), [""; 0]);

    let full = fullest_object("ApplicationSet");
    let set: ApplicationSet = serde_json::from_value(full.clone()).expect("a full ApplicationSet is read");
    assert_eq!(lost(&full, &serde_json::to_value(&set).expect("it can be written")), [""; 0]);

    let full = fullest_object("AppProject");
    assert_eq!(complaints(&validator("AppProject"), &full), [""; 0]);
    let project: AppProject = serde_json::from_value(full.clone()).expect("a full AppProject is read");
    assert_eq!(lost(&full, &serde_json::to_value(&project).expect("it can be written")), [""; 0]);
}

#[test]
fn the_zero_object_of_every_kind_is_accepted() {
    let objects = [
        serde_json::to_value(Application::default()),
        serde_json::to_value(ApplicationSet::default()),
        serde_json::to_value(AppProject::default()),
    ];
    for (object, kind) in objects.into_iter().zip(KINDS) {
        let object = object.expect("a zero object can be written");
        assert_eq!(complaints(&validator(kind), &object), [""; 0], "{kind}");
    }
}

#[test]
fn property_paths_are_as_reviewed() {
    for kind in KINDS {
        insta::assert_snapshot!(format!("paths-{kind}"), outline(document(kind)));
    }
}

/// One line a field, `*` where it is required; a large part that has stood before is named instead of repeated.
fn outline(schema: &Value) -> String {
    let mut text = String::new();
    outline_node(schema, "", "", &mut HashMap::new(), &mut text);
    text
}

fn outline_node(
    schema: &Value,
    path: &str,
    mark: &str,
    seen: &mut HashMap<String, String>,
    text: &mut String,
) {
    const REPEATED: usize = 150;
    let bare = undescribed(schema).to_string();
    let mut facts = undescribed(schema);
    let required: Vec<Value> = facts["required"].as_array().cloned().unwrap_or_default();
    for keyword in ["properties", "items", "additionalProperties", "required", "type"] {
        facts.as_object_mut().map(|facts| facts.remove(keyword));
    }
    let mut line = format!("{path}{mark}: {}", schema["type"].as_str().unwrap_or("any"));
    if facts != json!({}) {
        let _ = write!(line, " {facts}");
    }
    if bare.len() > REPEATED {
        if let Some(before) = seen.get(&bare) {
            let _ = writeln!(text, "{line} = {before}");
            return;
        }
        seen.insert(bare, path.to_owned());
    }
    let _ = writeln!(text, "{line}");
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let mark = if required.iter().any(|required| required == name) { "*" } else { "" };
        outline_node(property, &format!("{path}.{name}"), mark, seen, text);
    }
    for (keyword, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(inner) = schema.get(keyword) {
            outline_node(inner, &format!("{path}{mark}"), "", seen, text);
        }
    }
}

fn undescribed(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else { return schema.clone() };
    let kept = fields.iter().filter(|(name, _)| *name != "description");
    let kept = kept.map(|(name, value)| {
        let value = match (name.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.iter().map(|(name, property)| (name.clone(), undescribed(property))).collect()
            }
            ("items" | "additionalProperties", inner) => undescribed(inner),
            (_, value) => value.clone(),
        };
        (name.clone(), value)
    });
    kept.collect()
}

/// A set with one phase, changed by the caller.
fn with_phase(change: impl FnOnce(&mut Value)) -> Value {
    let mut set = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": { "name": "s" },
        "spec": {
            "generators": [{ "clusters": {}, "deploymentStrategy": {
                "type": "phaseDeployment",
                "phases": [{ "name": "dev", "targets": [{ "clusters": ["a"] }] }],
            } }],
            "template": { "metadata": {}, "spec": { "project": "default", "destination": {} } },
        },
    });
    change(&mut set["spec"]["generators"][0]["deploymentStrategy"]);
    set
}

fn http_hook() -> Value {
    json!({ "name": "h", "type": "http", "http": { "url": "https://example.com" } })
}

#[test]
fn new_structures_accept_what_is_right() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change); 10] = [
        ("nothing else", |_| {}),
        ("a name of letters, digits and dashes", |s| s["phases"][0]["name"] = json!("2-eu-west")),
        ("hooks only", |s| s["phases"][0]["percentage"] = json!(0)),
        ("a share by count", |s| s["phases"][0]["maxUpdate"] = json!("25%")),
        ("concurrency", |s| s["phases"][0]["maxConcurrent"] = json!(3)),
        ("history", |s| s["revisionHistoryLimit"] = json!(5)),
        ("one expected status", |s| {
            let mut hook = http_hook();
            hook["http"]["expectedStatus"] = json!(201);
            s["phases"][0]["preHooks"] = json!([hook]);
        }),
        ("several expected statuses", |s| {
            let mut hook = http_hook();
            hook["http"]["expectedStatus"] = json!([200, 204]);
            s["phases"][0]["checks"] = json!([hook]);
        }),
        ("every option of a hook", |s| {
            let mut hook = http_hook();
            hook["retry"] = json!({ "interval": "30s", "deadline": "24h" });
            hook["parallel"] = json!(true);
            hook["scope"] = json!("target");
            hook["failurePolicy"] = json!("abort");
            hook["secretRefs"] = json!([{ "name": "servicenow", "keys": ["token"] }]);
            s["phases"][0]["postHooks"] = json!([hook]);
        }),
        ("labels that exist", |s| {
            let expression = json!({ "key": "env", "operator": "Exists" });
            s["phases"][0]["targets"] = json!([{ "matchExpressions": [expression] }]);
        }),
    ];
    let validator = validator("ApplicationSet");
    for (case, change) in cases {
        assert_eq!(complaints(&validator, &with_phase(change)), [""; 0], "{case}");
    }
}

#[test]
fn new_structures_refuse_what_is_wrong() {
    type Change = fn(&mut Value);
    let cases: [(&str, &str, Change); 26] = [
        ("unknown type", "type", |s| s["type"] = json!("canary")),
        ("no type", "type", |s| drop(s.as_object_mut().map(|s| s.remove("type")))),
        ("no phases", "phases", |s| s["phases"] = json!([])),
        ("too many phases", "phases", |s| {
            let phase = |at: usize| json!({ "name": format!("p{at}"), "targets": [{ "clusters": ["a"] }] });
            s["phases"] = (0..51).map(phase).collect();
        }),
        ("two phases of one name", "phases[1]", |s| s["phases"] = json!([s["phases"][0], s["phases"][0]])),
        ("a name no annotation can hold", "name: use lower case", |s| {
            s["phases"][0]["name"] = json!("Dev Phase")
        }),
        ("a name of more lines than one", "name: use lower case", |s| {
            s["phases"][0]["name"] = json!("dev\nprod")
        }),
        ("a name that begins with a dash", "name: use lower case", |s| {
            s["phases"][0]["name"] = json!("-dev")
        }),
        ("a name that ends with a dash", "name: use lower case", |s| s["phases"][0]["name"] = json!("dev-")),
        ("a name too long", "name", |s| s["phases"][0]["name"] = json!("a".repeat(41))),
        ("no targets", "targets", |s| s["phases"][0]["targets"] = json!([])),
        ("a target that says nothing", "targets[0]", |s| s["phases"][0]["targets"] = json!([{}])),
        ("a share above 100", "percentage", |s| s["phases"][0]["percentage"] = json!(101)),
        ("both shares", "percentage and maxUpdate exclude each other", |s| {
            s["phases"][0]["percentage"] = json!(10);
            s["phases"][0]["maxUpdate"] = json!(1);
        }),
        ("a wait that is no duration", "waitDuration", |s| s["phases"][0]["waitDuration"] = json!("soon")),
        ("an unknown action", "action", |s| s["phases"][0]["onFailure"] = json!({ "action": "panic" })),
        ("an operator without values", "In and NotIn need values", |s| {
            let expression = json!({ "key": "env", "operator": "In" });
            s["phases"][0]["targets"] = json!([{ "matchExpressions": [expression] }]);
        }),
        ("an http hook without a call", "type http needs the field http", |s| {
            s["phases"][0]["preHooks"] = json!([{ "name": "h", "type": "http" }]);
        }),
        ("a check with both", "type http needs the field http", |s| {
            let mut check = http_hook();
            check["command"] = json!({ "command": ["true"] });
            s["phases"][0]["checks"] = json!([check]);
        }),
        ("an unknown policy", "failurePolicy", |s| {
            let mut hook = http_hook();
            hook["failurePolicy"] = json!("Fail");
            s["phases"][0]["preHooks"] = json!([hook]);
        }),
        ("too many headers", "headers", |s| {
            let mut hook = http_hook();
            hook["http"]["headers"] = (0..51).map(|at| (format!("X-{at}"), json!("v"))).collect();
            s["phases"][0]["preHooks"] = json!([hook]);
        }),
        ("a status out of range", "expectedStatus", |s| {
            let mut hook = http_hook();
            hook["http"]["expectedStatus"] = json!(99);
            s["phases"][0]["preHooks"] = json!([hook]);
        }),
        ("a status in quotes", "a number without quotes", |s| {
            let mut hook = http_hook();
            hook["http"]["expectedStatus"] = json!("200");
            s["phases"][0]["preHooks"] = json!([hook]);
        }),
        ("no key of a Secret", "keys", |s| {
            let mut hook = http_hook();
            hook["secretRefs"] = json!([{ "name": "servicenow", "keys": [] }]);
            s["phases"][0]["preHooks"] = json!([hook]);
        }),
        ("more than can be counted", "2147483647", |s| {
            s["phases"][0]["maxUpdate"] = json!(99_999_999_999_i64);
        }),
        ("too many variables", "env", |s| {
            let env: Value = (0..101).map(|at| (format!("V{at}"), json!("v"))).collect();
            let command = json!({ "command": ["true"], "env": env });
            s["phases"][0]["preHooks"] = json!([{ "name": "h", "type": "command", "command": command }]);
        }),
    ];
    let validator = validator("ApplicationSet");
    for (case, told, change) in cases {
        let complaints = complaints(&validator, &with_phase(change));
        assert!(complaints.iter().any(|line| line.contains(told)), "{case}: {complaints:?}");
    }
}

#[test]
fn what_the_controller_judges_is_accepted() {
    let mut set = with_phase(|_| {});
    set["spec"]["strategy"] = json!({
        "type": "Sideways",
        "deletionOrder": "Backwards",
        "rollingSync": { "steps": [{ "matchExpressions": [{ "operator": "Like" }], "maxUpdate": "x" }] },
    });
    assert_eq!(complaints(&validator("ApplicationSet"), &set), [""; 0]);
}
