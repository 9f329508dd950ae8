use baton_grammar::yaml;
use serde_json::{Value, json};

use super::edited;
use crate::environment::{Environment, Facts};

fn environment() -> Environment {
    Environment::new(Facts {
        instance: "shop",
        namespace: "prod",
        project: "team",
        revision: "0123456789",
        repo_url: "https://host/r",
        path: "app",
        target_revision: "main",
    })
}

fn edit(kustomization: &str, options: Value) -> Result<Value, String> {
    let Value::Object(before) = yaml::first(kustomization).expect("YAML") else { panic!("no kustomization") };
    let options = serde_json::from_value(options).expect("options");
    let edited = edited(&before, &options, &environment(), |component| component != "gone");
    match edited.map_err(|fault| fault.to_string())? {
        Some(edited) => Ok(Value::Object(edited)),
        None => Ok(Value::Object(before)),
    }
}

#[test]
fn names_and_namespace_replace_those_that_stand_there() {
    let edited = edit(
        "namePrefix: old-\nresources: [a.yaml]\n",
        json!({"namePrefix": "new-", "nameSuffix": "-x", "namespace": "n"}),
    );
    let expected =
        json!({"namePrefix": "new-", "resources": ["a.yaml"], "nameSuffix": "-x", "namespace": "n"});
    assert_eq!(edited, Ok(expected));
}

#[test]
fn images_are_set_by_name() {
    let before = "images: [{name: nginx, newName: mirror/nginx, newTag: '1'}, {name: keep, newTag: '2'}]\n";
    let cases = [
        ("nginx:3", json!({"name": "nginx", "newTag": "3"})),
        (
            "nginx=other/nginx:3@sha256:ab",
            json!({"name": "nginx", "newName": "other/nginx", "newTag": "3", "digest": "sha256:ab"}),
        ),
        ("nginx@sha256:ab", json!({"name": "nginx", "digest": "sha256:ab"})),
        ("nginx=*:4", json!({"name": "nginx", "newName": "mirror/nginx", "newTag": "4"})),
        ("nginx=host:5000/nginx", json!({"name": "nginx", "newName": "host:5000/nginx"})),
        ("nginx:${ARGOCD_APP_REVISION_SHORT}", json!({"name": "nginx", "newTag": "0123456"})),
    ];
    for (image, expected) in cases {
        let edited = edit(before, json!({"images": [image]})).expect(image);
        assert_eq!(edited["images"], json!([{"name": "keep", "newTag": "2"}, expected]), "{image}");
    }
    for image in ["nginx", "host:5000/nginx"] {
        let message = edit(before, json!({"images": [image]})).expect_err(image);
        assert!(message.contains("changes nothing"), "{message}");
    }
}

#[test]
fn replicas_are_set_by_name_and_must_be_numbers() {
    let before = "replicas: [{name: a, count: 1}]\n";
    let options = json!({"replicas": [{"name": "a", "count": "3"}, {"name": "b", "count": 2}]});
    let edited = edit(before, options).expect("edited");
    assert_eq!(edited["replicas"], json!([{"name": "a", "count": 3}, {"name": "b", "count": 2}]));
    let message = edit(before, json!({"replicas": [{"name": "a", "count": "many"}]})).expect_err("no number");
    assert_eq!(message, "expected integer value for count. Received: \"many\"");
}

#[test]
fn labels_and_annotations_that_stand_there_are_overwritten_only_by_force() {
    let before = "commonLabels: {app: old}\ncommonAnnotations: {note: old}\n";
    for (options, message) in [
        (json!({"commonLabels": {"app": "new"}}), "label app already in kustomization file"),
        (json!({"commonAnnotations": {"note": "new"}}), "annotation note already in kustomization file"),
        (
            json!({"commonLabels": {"x": "y"}, "labelIncludeTemplates": true}),
            "kustomize.labelIncludeTemplates needs kustomize.labelWithoutSelector",
        ),
    ] {
        assert_eq!(edit(before, options).expect_err(message), message);
    }
    let forced = edit(
        before,
        json!({"commonLabels": {"app": "$ARGOCD_APP_NAME"}, "forceCommonLabels": true,
               "commonAnnotations": {"note": "$ARGOCD_APP_NAME"}, "forceCommonAnnotations": true}),
    );
    let plain = json!({"commonLabels": {"app": "shop"}, "commonAnnotations": {"note": "$ARGOCD_APP_NAME"}});
    assert_eq!(forced, Ok(plain));
    let expanded = edit(
        "{}",
        json!({"commonAnnotations": {"n": "$ARGOCD_APP_NAME"}, "commonAnnotationsEnvsubst": true}),
    );
    assert_eq!(expanded, Ok(json!({"commonAnnotations": {"n": "shop"}})));
}

#[test]
fn labels_without_selector_are_an_entry_of_their_own() {
    let edited = edit(
        "labels: [{pairs: {a: b}}]\n",
        json!({"commonLabels": {"a": "c"}, "labelWithoutSelector": true, "labelIncludeTemplates": true}),
    );
    let expected =
        json!({"labels": [{"pairs": {"a": "b"}}, {"pairs": {"a": "c"}, "includeTemplates": true}]});
    assert_eq!(edited, Ok(expected));
}

#[test]
fn patches_and_components_are_added() {
    let edited = edit(
        "patches: [{path: own.yaml}]\ncomponents: [../a]\n",
        json!({"patches": [{"patch": "x", "target": {"kind": "Deployment"}, "options": {"allowNameChange": true}}],
               "components": ["../a", "../b", "gone"], "ignoreMissingComponents": true}),
    );
    let expected = json!({
        "patches": [{"path": "own.yaml"}, {"patch": "x", "target": {"kind": "Deployment"}, "options": {"allowNameChange": true}}],
        "components": ["../a", "../b"],
    });
    assert_eq!(edited, Ok(expected));
    let message = edit("patches: text\n", json!({"patches": [{"patch": "x"}]})).expect_err("no list");
    assert_eq!(message, "patches of the kustomization file is no list");
}

#[test]
fn without_options_nothing_is_edited() {
    assert_eq!(edit("namePrefix: a\n", json!({"forceCommonLabels": true})), Ok(json!({"namePrefix": "a"})));
}
