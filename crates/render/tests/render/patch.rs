//! `templatePatch` (2.5). Expected values are worked by hand.

use crate::support::{GO, STRICT, render, rendered, yaml};
use baton_render::{Engine, Subject};
use serde_json::{Value, json};

const APPLICATION: &str = r#"
    metadata:
      name: '{{ .name }}'
      labels: {a: '1', b: '2'}
      finalizers: [one, two]
    spec:
      project: blue
      source: {repoURL: r, path: p, helm: {valueFiles: [a, b], valuesObject: {deep: {x: 1}}}}
      destination: {name: here, namespace: ns}
"#;

fn patched(patch: &str) -> Result<Value, String> {
    rendered(GO, APPLICATION, Some(patch), "{name: app, extra: [x, z], auto: true}")
}

#[test]
fn maps_merge_lists_replace_nulls_delete() {
    let object = patched(
        r#"
        metadata: {labels: {b: null, c: '3'}}
        spec:
          source:
            path: null
            helm:
              valueFiles:
              {{- range .extra }}
              - {{ . }}.yaml
              {{- end }}
              valuesObject: {deep: {z: 2}}
          {{- if .auto }}
          syncPolicy: {automated: {prune: true}}
          {{- end }}
        "#,
    );
    assert_eq!(
        object,
        Ok(yaml(
            r#"
            metadata:
              name: app
              namespace: argocd
              labels: {a: '1', c: '3'}
              finalizers: [one, two]
            spec:
              project: blue
              source: {repoURL: r, helm: {valueFiles: [x.yaml, z.yaml], valuesObject: {deep: {x: 1, z: 2}}}}
              destination: {name: here, namespace: ns}
              syncPolicy: {automated: {prune: true}}
            "#
        ))
    );
}

#[test]
fn finalizers_merge_as_a_set_and_directives_are_obeyed() {
    for (patch, at, expected) in [
        ("metadata: {finalizers: [three, one]}", "/metadata/finalizers", json!(["three", "one", "two"])),
        ("metadata: {$deleteFromPrimitiveList/finalizers: [one]}", "/metadata/finalizers", json!(["two"])),
        (
            "metadata: {$setElementOrder/finalizers: [two, one, three], finalizers: [three]}",
            "/metadata/finalizers",
            json!(["two", "one", "three"]),
        ),
        ("spec: {destination: {$patch: replace, server: s}}", "/spec/destination", json!({"server": "s"})),
        (
            "spec: {destination: {$retainKeys: [server], server: s}}",
            "/spec/destination",
            json!({"server": "s"}),
        ),
        ("spec: {source: {helm: {$patch: delete}}}", "/spec/source/helm", json!({})),
        ("spec: {destination: {$patch: delete}}", "/spec/destination", json!({})),
    ] {
        let object = patched(patch).unwrap_or_else(|error| panic!("{patch}: {error}"));
        assert_eq!(object.pointer(at), Some(&expected), "{patch}");
    }
}

/// The project stays, silently; the namespace is forced; `spec: null` wipes all but the project.
#[test]
fn project_and_namespace_cannot_be_changed() {
    let object =
        patched("{\"spec\": {\"project\": \"admin\"}, \"metadata\": {\"namespace\": \"kube-system\"}}")
            .expect("an Application");
    assert_eq!(
        (&object["spec"]["project"], &object["metadata"]["namespace"]),
        (&json!("blue"), &json!("argocd"))
    );
    let object = patched("spec: null").expect("an Application");
    assert_eq!(object["spec"], json!({"project": "blue", "destination": {}}));
    let object = patched("{apiVersion: v1, kind: Pod}").expect_err("no JSON");
    assert!(object.contains("invalid templatePatch"), "{object}");
}

#[test]
fn a_blank_patch_changes_nothing() {
    let plain = rendered(GO, APPLICATION, None, "{name: app}");
    for patch in ["", "  \n", "{{ if false }}spec: {}{{ end }}", "# nothing\n", "null", "{}"] {
        assert_eq!(rendered(GO, APPLICATION, Some(patch), "{name: app}"), plain, "{patch:?}");
    }
}

/// The finalizer is decided before the patch, and a patch is rendered even where the template is not.
#[test]
fn the_patch_comes_last() {
    let application = "{metadata: {name: '{{ .name }}'}, spec: {project: p}}";
    let object = rendered(GO, application, Some("metadata: {finalizers: [own]}"), "{name: app}");
    assert_eq!(
        object.expect("an Application")["metadata"]["finalizers"],
        json!(["own", "resources-finalizer.argocd.argoproj.io"])
    );
    let object = rendered(GO, application, Some("metadata: {name: 'x{{ .name }}'}"), "{}");
    assert_eq!(
        object.expect("an Application")["metadata"],
        json!({"name": "x<no value>", "namespace": "argocd"})
    );
}

/// The code allows patches without goTemplate, whatever the documentation says.
#[test]
fn substitution_works_in_patches_too() {
    let object =
        rendered(Engine::Fast, APPLICATION, Some("metadata: {labels: {'{{k}}': '{{v}}'}}"), "{k: x, v: z}");
    assert_eq!(object.expect("an Application")["metadata"]["labels"], json!({"a": "1", "b": "2", "x": "z"}));
}

/// What an Application does not have is dropped when the patched object is read, and so is a status.
#[test]
fn unknown_fields_of_a_patch_are_dropped() {
    let object = patched("{spec: {nonsense: 1}, other: 2, operation: {sync: {prune: true}}}");
    assert!(object.is_err(), "text that starts as JSON is read as JSON");
    let object =
        patched("spec: {nonsense: 1}\nother: 2\nstatus: {health: {status: Healthy}}\noperation: {sync: {prune: true}}").expect("an Application");
    assert_eq!(object["spec"].get("nonsense"), None);
    assert_eq!((object.get("other"), object.get("status")), (None, None));
    assert_eq!(object["operation"], json!({"sync": {"prune": true}}));
}

#[test]
fn errors_name_the_patch_and_the_place_in_it() {
    for (patch, expected) in [
        (
            "metadata:\n  name: {{ .gone }}\n",
            "spec.templatePatch, line 2, column 12: error replacing values in templatePatch: failed to execute go template metadata:\n  name: {{ .gone }}\n: executing \"base\" at <.gone>: map has no entry for key \"gone\"",
        ),
        (
            "spec:\n  {{ end }}",
            "spec.templatePatch, line 2, column 3: error replacing values in templatePatch: failed to parse template spec:\n  {{ end }}: unexpected {{end}}",
        ),
        (
            "spec: {project: 5}",
            "spec.templatePatch: invalid templatePatch: json: cannot unmarshal number into Go struct field ApplicationSpec.spec.project of type string",
        ),
        (
            "spec: {source: [a, b]}",
            "spec.templatePatch: invalid templatePatch: json: cannot unmarshal array into Go struct field ApplicationSpec.spec.source of type v1.Source",
        ),
        (
            "- a\n- b",
            "spec.templatePatch: invalid templatePatch: json: cannot unmarshal array into Go value of type v1alpha1.Application",
        ),
        (
            "spec: {destination: {$patch: explode}}",
            "spec.templatePatch: error while applying templatePatch: unknown patch type: explode in map: map[$patch:explode]",
        ),
    ] {
        let error = render(STRICT, APPLICATION, Some(patch), "{name: app}").expect_err(patch);
        assert_eq!(error.to_string(), expected);
        assert_eq!((error.subject(), error.reason()), (Subject::Patch, "RenderTemplateParamsError"));
    }
    let error = patched("spec:\n  a: [\n").expect_err("no YAML");
    assert!(error.starts_with("spec.templatePatch, line "), "{error}");
}
