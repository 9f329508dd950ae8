use baton_schema::{Additional, Kind as Type, ListKind, Schema};

use super::*;

fn walk(path: &str, schema: &Schema, depth: usize, visit: &mut dyn FnMut(&str, &Schema)) {
    visit(path, schema);
    // Deeper than any built-in type that does not contain itself.
    assert!(depth < 40, "{path}");
    for (name, child) in &schema.properties {
        walk(&format!("{path}.{name}"), child, depth + 1, visit);
    }
    if let Some(items) = &schema.items {
        walk(&format!("{path}[]"), items, depth + 1, visit);
    }
    if let Additional::Typed(values) = &schema.additional {
        walk(&format!("{path}{{}}"), values, depth + 1, visit);
    }
}

#[test]
fn every_kind_has_a_schema_with_its_head() {
    for kind in crate::all() {
        let schema = kind.schema();
        for field in ["apiVersion", "kind", "metadata"] {
            assert!(schema.properties.contains_key(field), "{} has no {field}", kind.kind);
        }
        assert!(schema.properties["metadata"].properties.contains_key("ownerReferences"), "{}", kind.kind);
    }
}

#[test]
fn every_list_key_is_a_field_of_the_items_and_texts_are_dropped() {
    let mut keyed = 0;
    for kind in crate::all() {
        walk(kind.kind, &kind.schema(), 0, &mut |path, schema| {
            if let ListKind::Map(keys) = &schema.list {
                keyed += 1;
                assert!(!keys.is_empty(), "{path}");
                let items = schema.items.as_ref().unwrap_or_else(|| panic!("{path} has no items"));
                for key in keys {
                    assert!(items.properties.contains_key(key), "{path} has no key {key}");
                }
            }
            if let Some(key) = &schema.patch.merge_key {
                let items = schema.items.as_ref().unwrap_or_else(|| panic!("{path} has no items"));
                assert!(items.properties.contains_key(key), "{path} has no merge key {key}");
            }
        });
    }
    assert!(keyed > 100, "only {keyed} keyed lists");
}

#[test]
fn merge_behaviour_of_a_deployment_is_known() {
    let schema = crate::find("apps", "v1", "deployments").expect("listed").schema();
    let spec = &schema.properties["spec"];
    assert!(spec.properties["strategy"].patch.retain_keys);
    assert!(spec.properties["selector"].atomic_map);
    let pod = &spec.properties["template"].properties["spec"];
    let containers = &pod.properties["containers"];
    assert_eq!(containers.list, ListKind::Map(vec!["name".into()]));
    assert_eq!(containers.patch.merge_key.as_deref(), Some("name"));
    let ports = &containers.items.as_ref().expect("items").properties["ports"];
    assert_eq!(ports.list, ListKind::Map(vec!["containerPort".into(), "protocol".into()]));
    let port = ports.items.as_ref().expect("items");
    assert_eq!(port.properties["protocol"].default, Some("TCP".into()));
    assert_eq!(port.properties["containerPort"].kind, Some(Type::Integer));
    assert!(pod.properties["containers"].items.as_ref().expect("items").properties["resources"].properties
        ["limits"]
        .additional
        != Additional::Closed);
}

/// Ownership of fields depends on these marks: nobody owns what exists in every object.
#[test]
fn what_every_object_has_is_marked() {
    let schema = crate::find("apps", "v1", "deployments").expect("listed").schema();
    let empty = Some(serde_json::json!({}));
    let spec = &schema.properties["spec"];
    let template = &spec.properties["template"];
    for always in [&schema.properties["metadata"], spec, template, &template.properties["spec"]] {
        assert_eq!(always.default, empty);
    }
    assert_eq!(spec.properties["selector"].default, None);
    assert_eq!(template.properties["spec"].limits.required, ["containers"]);
    assert!(schema.limits.required.is_empty() && spec.limits.required.is_empty());
}

#[test]
fn references_are_replaced_as_a_whole_except_where_a_field_says_otherwise() {
    let event = crate::find("", "v1", "events").expect("listed").schema();
    assert!(event.properties["involvedObject"].atomic_map);
    let volume = crate::find("", "v1", "persistentvolumes").expect("listed").schema();
    assert!(!volume.properties["spec"].properties["claimRef"].atomic_map);
    let revision = crate::find("apps", "v1", "controllerrevisions").expect("listed").schema();
    assert!(revision.properties["data"].atomic_map);
}

#[test]
fn recursion_ends_in_opaque_values() {
    let schema =
        crate::find("apiextensions.k8s.io", "v1", "customresourcedefinitions").expect("listed").schema();
    let versions = schema.properties["spec"].properties["versions"].items.clone().expect("items");
    let root = versions.properties["schema"].properties["openAPIV3Schema"].clone();
    assert_eq!(root.properties["description"].kind, Some(Type::String));
    assert!(root.properties["items"].preserve_unknown);
}

/// A generous bound on what all schemas together hold, by counting nodes once each.
#[test]
fn schemas_share_their_nodes() {
    fn count(schema: &Arc<Schema>, seen: &mut std::collections::HashSet<*const Schema>) {
        if !seen.insert(Arc::as_ptr(schema)) {
            return;
        }
        schema.properties.values().for_each(|child| count(child, seen));
        schema.items.iter().for_each(|child| count(child, seen));
        if let Additional::Typed(values) = &schema.additional {
            count(values, seen);
        }
    }
    let mut seen = std::collections::HashSet::new();
    for kind in crate::all() {
        count(&kind.schema(), &mut seen);
    }
    assert!(seen.len() * size_of::<Schema>() < 4 << 20, "{} nodes", seen.len());
}

#[test]
fn parts_of_kinds_are_found_by_name() {
    for name in ["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "io.k8s.api.autoscaling.v1.Scale"] {
        assert!(!definition(name).expect(name).properties.is_empty());
    }
    assert!(definition("io.k8s.api.core.v1.Nothing").is_none());
}
