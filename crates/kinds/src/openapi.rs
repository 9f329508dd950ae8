//! The OpenAPI v3 definitions of one group and version.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::registry::definition_name;
use crate::schemas::definitions;
use crate::{Subresource, Verbs, all};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// The `components` part of the OpenAPI v3 document of a group and version: every kind served there, its list, the kinds of
/// its subresources, and everything these refer to.
///
/// Generated anew on each call, so that the texts cost no memory while nobody asks; keep the result if you serve it often.
pub fn openapi(group: &str, version: &str) -> Value {
    let mut definitions = definitions();
    let mut wanted = BTreeSet::new();
    let served: Vec<_> = all().iter().filter(|kind| kind.group == group && kind.version == version).collect();
    for kind in &served {
        let name = kind.definition();
        tag(&mut definitions, &name, kind.group, kind.version, kind.kind);
        if kind.verbs != Verbs::CreateOnly {
            let list = format!("{name}List");
            definitions.insert(list.clone(), list_definition(kind.kind, &name));
            tag(&mut definitions, &list, kind.group, kind.version, &format!("{}List", kind.kind));
            wanted.insert(list);
        }
        wanted.insert(name);
        for subresource in kind.subresources {
            let (group, version, kind) = match *subresource {
                Subresource::Status => continue,
                Subresource::Scale { .. } => ("autoscaling", "v1", "Scale"),
                Subresource::Own { group, version, kind, .. } => (group, version, kind),
            };
            let name = definition_name(group, version, kind);
            tag(&mut definitions, &name, group, version, kind);
            wanted.insert(name);
        }
    }
    if !served.is_empty() {
        for name in ["DeleteOptions", "Patch", "Status"] {
            let definition = format!("{META}{name}");
            tag(&mut definitions, &definition, "", "v1", name);
            wanted.insert(definition);
        }
    }
    let reachable = closure(&definitions, wanted);
    let schemas: Map<String, Value> =
        definitions.into_iter().filter(|(name, _)| reachable.contains(name)).map(published).collect();
    json!({"components": {"schemas": schemas}})
}

fn tag(definitions: &mut Map<String, Value>, name: &str, group: &str, version: &str, kind: &str) {
    if let Some(Value::Object(definition)) = definitions.get_mut(name) {
        definition.insert(
            "x-kubernetes-group-version-kind".into(),
            json!([{"group": group, "kind": kind, "version": version}]),
        );
    }
}

fn list_definition(kind: &str, item: &str) -> Value {
    json!({
        "description": format!("{kind}List is a list of {kind} objects."),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": "The version of this representation of the list."},
            "kind": {"type": "string", "description": "The name of the list's kind."},
            "metadata": {"$ref": reference(&format!("{META}ListMeta")), "description": "Where the list stands in the history."},
            "items": {
                "type": "array",
                "items": {"$ref": reference(item)},
                "description": format!("The {kind} objects."),
            },
        },
    })
}

fn reference(name: &str) -> String {
    format!("#/components/schemas/{name}")
}

/// The definitions reachable from some by `$ref`.
fn closure(definitions: &Map<String, Value>, start: BTreeSet<String>) -> BTreeSet<String> {
    let mut open: Vec<String> = start.iter().cloned().collect();
    let mut reached = start;
    while let Some(name) = open.pop() {
        let Some(definition) = definitions.get(&name) else { continue };
        references(definition, &mut |name| {
            if reached.insert(name.to_owned()) {
                open.push(name.to_owned());
            }
        });
    }
    reached
}

fn references(node: &Value, found: &mut dyn FnMut(&str)) {
    match node {
        Value::Object(fields) => {
            if let Some(name) =
                fields.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next())
            {
                found(name);
            }
            fields.values().for_each(|child| references(child, found));
        }
        Value::Array(items) => items.iter().for_each(|child| references(child, found)),
        _ => {}
    }
}

fn published((name, mut definition): (String, Value)) -> (String, Value) {
    wrap_references(&mut definition);
    // Clients know these two by their form alone.
    if let Some(fields) = definition.as_object_mut() {
        fields.remove("x-kubernetes-int-or-string");
    }
    (name, definition)
}

/// OpenAPI v3.0 ignores what stands beside a `$ref`, so a described reference becomes `allOf` with one element.
fn wrap_references(node: &mut Value) {
    match node {
        Value::Object(fields) => {
            fields.values_mut().for_each(wrap_references);
            // JSONSchemaProps has a *property* of that name, which is no reference.
            if fields.len() > 1
                && fields.get("$ref").is_some_and(Value::is_string)
                && let Some(target) = fields.remove("$ref")
            {
                fields.insert("allOf".into(), json!([{"$ref": target}]));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(wrap_references),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_is_defined_in_the_same_document() {
        for (group, version) in all().iter().map(|kind| (kind.group, kind.version)).collect::<BTreeSet<_>>() {
            let document = openapi(group, version);
            let schemas = document["components"]["schemas"].as_object().expect("schemas");
            references(&document, &mut |name| assert!(schemas.contains_key(name), "{group} {name}"));
            for kind in all().iter().filter(|kind| kind.group == group && kind.version == version) {
                let definition = &schemas[&kind.definition()];
                assert_eq!(
                    definition["x-kubernetes-group-version-kind"],
                    json!([{"group": group, "kind": kind.kind, "version": version}])
                );
                assert!(definition["description"].is_string(), "{}", kind.kind);
            }
        }
    }

    #[test]
    fn described_references_keep_their_text_and_their_extensions() {
        let document = openapi("apps", "v1");
        let schemas = &document["components"]["schemas"];
        let strategy = &schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"];
        assert_eq!(strategy["allOf"][0]["$ref"], reference("io.k8s.api.apps.v1.DeploymentStrategy"));
        assert_eq!(strategy["x-kubernetes-patch-strategy"], "retainKeys");
        assert!(strategy["description"].is_string());
        let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
        assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
        assert_eq!(schemas["io.k8s.api.core.v1.PodSpec"]["required"], json!(["containers"]));
        assert!(schemas.get("io.k8s.api.apps.v1.DeploymentList").is_some());
        assert!(schemas.get("io.k8s.api.autoscaling.v1.Scale").is_some());
    }

    #[test]
    fn a_property_called_ref_is_not_taken_for_a_reference() {
        let document = openapi("apiextensions.k8s.io", "v1");
        let name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
        let properties = &document["components"]["schemas"][name]["properties"];
        assert_eq!(properties["$ref"]["type"], "string");
        assert_eq!(properties["allOf"]["type"], "array");
    }

    #[test]
    fn a_group_nobody_serves_is_empty() {
        assert_eq!(openapi("nobody.example", "v1"), json!({"components": {"schemas": {}}}));
    }
}
