//! Kubernetes objects of any kind, held as JSON: what identifies one, and what is read of its metadata.
//!
//! Nothing is assumed of an object's shape: what is absent or of another type reads as empty.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// What identifies an object among all of a cluster, whichever version it is written in.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceKey {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// A kind as a cluster serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindInfo {
    /// Plural name, which stands in URLs.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// Reads an object as a type.
///
/// # Errors
/// Where it is not of that type: the field, and what is wrong with it.
pub fn read<T: DeserializeOwned>(object: &Value) -> Result<T, String> {
    serde_path_to_error::deserialize(object).map_err(|error| error.to_string())
}

/// Reads what is common to all objects.
pub trait Object {
    /// The object as JSON.
    fn json(&self) -> &Value;

    /// `apiVersion`.
    fn api_version(&self) -> &str {
        self.json()["apiVersion"].as_str().unwrap_or_default()
    }

    /// API group; empty for the core group.
    fn group(&self) -> &str {
        group_version(self.api_version()).0
    }

    /// API version inside the group.
    fn version(&self) -> &str {
        group_version(self.api_version()).1
    }

    /// `kind`.
    fn kind(&self) -> &str {
        self.json()["kind"].as_str().unwrap_or_default()
    }

    /// A text of the metadata.
    fn metadata(&self, field: &str) -> &str {
        self.json()["metadata"][field].as_str().unwrap_or_default()
    }

    /// `metadata.name`.
    fn name(&self) -> &str {
        self.metadata("name")
    }

    /// `metadata.namespace`.
    fn namespace(&self) -> &str {
        self.metadata("namespace")
    }

    /// `metadata.uid`.
    fn uid(&self) -> &str {
        self.metadata("uid")
    }

    /// `metadata.resourceVersion`.
    fn resource_version(&self) -> &str {
        self.metadata("resourceVersion")
    }

    /// `metadata.deletionTimestamp`, where the object is being deleted.
    fn deletion_timestamp(&self) -> Option<&str> {
        self.json()["metadata"]["deletionTimestamp"].as_str()
    }

    /// One annotation.
    fn annotation(&self, name: &str) -> Option<&str> {
        self.json()["metadata"]["annotations"][name].as_str()
    }

    /// One label.
    fn label(&self, name: &str) -> Option<&str> {
        self.json()["metadata"]["labels"][name].as_str()
    }

    /// `metadata.finalizers`.
    fn finalizers(&self) -> Vec<&str> {
        texts(&self.json()["metadata"]["finalizers"])
    }

    /// UIDs of `metadata.ownerReferences`.
    fn owners(&self) -> Vec<&str> {
        let owners = self.json()["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
        owners.iter().filter_map(|owner| owner["uid"].as_str()).collect()
    }

    /// What identifies it, with the namespace it states.
    fn key(&self) -> ResourceKey {
        ResourceKey {
            group: self.group().to_owned(),
            kind: self.kind().to_owned(),
            namespace: self.namespace().to_owned(),
            name: self.name().to_owned(),
        }
    }
}

impl Object for Value {
    fn json(&self) -> &Value {
        self
    }
}

/// Group and version of an `apiVersion`.
pub fn group_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// `metadata.annotations` to write to, made where it is absent or no map.
///
/// Does nothing to a value that is no object: `None`.
pub fn annotations_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    metadata_map_mut(object, "annotations")
}

/// `metadata.labels` to write to, likewise.
pub fn labels_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    metadata_map_mut(object, "labels")
}

fn metadata_map_mut<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    let metadata = map_mut(object.as_object_mut()?, "metadata")?;
    map_mut(metadata, field)
}

fn map_mut<'a>(parent: &'a mut Map<String, Value>, field: &str) -> Option<&'a mut Map<String, Value>> {
    let value = parent.entry(field).or_insert_with(|| Value::Object(Map::new()));
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().map_or(&[][..], Vec::as_slice).iter().filter_map(Value::as_str).collect()
}

// === impl ResourceKey ===

impl ResourceKey {
    /// The same object in another namespace, or in none.
    pub fn in_namespace(&self, namespace: &str) -> ResourceKey {
        ResourceKey { namespace: namespace.to_owned(), ..self.clone() }
    }
}

impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.group, self.kind, self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_of_its_type_is_named_by_its_field() {
        let phase = json!({"name": "dev", "targets": [], "maxUpdate": 99_999_999_999_i64});
        let set = json!({"metadata": {"name": "web"}, "spec": {"template": {}, "generators": [
            {"list": {}, "deploymentStrategy": {"type": "phaseDeployment", "phases": [phase]}}]}});
        let error = read::<crate::ApplicationSet>(&set).expect_err("it is out of range");
        let field = "spec.generators[0].deploymentStrategy.phases[0].maxUpdate: ";
        assert!(error.starts_with(field) && error.contains("99999999999"), "{error}");
    }

    #[test]
    fn an_object_says_what_it_is() {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {
            "name": "web", "namespace": "shop", "annotations": {"a": "b"}, "finalizers": ["x"],
            "ownerReferences": [{"uid": "u1"}]}});
        assert_eq!(object.key().to_string(), "apps/Deployment/shop/web");
        assert_eq!((object.group(), object.version()), ("apps", "v1"));
        assert_eq!(object.annotation("a"), Some("b"));
        assert_eq!((object.finalizers(), object.owners()), (vec!["x"], vec!["u1"]));
        assert_eq!(object.deletion_timestamp(), None);
    }

    #[test]
    fn nothing_is_assumed_of_an_object() {
        for odd in [json!(null), json!([]), json!({"metadata": 3, "apiVersion": {}})] {
            assert_eq!(odd.key(), ResourceKey::default());
        }
    }

    #[test]
    fn a_map_is_made_where_there_is_none() {
        let mut object = json!({"metadata": {"annotations": null}});
        annotations_mut(&mut object).expect("an object").insert("a".to_owned(), json!("b"));
        assert_eq!(object, json!({"metadata": {"annotations": {"a": "b"}}}));
        assert!(annotations_mut(&mut json!(1)).is_none());
    }
}
