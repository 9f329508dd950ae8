//! Who owns which fields: `metadata.managedFields`, read without a schema.

use std::collections::BTreeMap;

use baton_api::names::FIELD_MANAGER;
use serde_json::{Map, Value};

/// Deepest nesting that is read. The API itself reads no deeper documents.
pub(crate) const DEEPEST: usize = 128;

/// A set of fields, as a tree.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Fields {
    /// Whether the node itself is in the set.
    pub(crate) itself: bool,
    /// What below it is in the set. A node in the set without any is in it with all that it holds.
    pub(crate) parts: Vec<(Part, Fields)>,
}

/// Which part of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    /// A field of an object.
    Field(String),
    /// The item of a list that has these fields.
    Item(Map<String, Value>),
    /// The item of a list that is this value.
    Member(Value),
    /// The item of a list at this place.
    Place(usize),
}

/// An entry of `metadata.managedFields`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    json: &'a Value,
}

/// The entries of an object.
pub(crate) fn entries(object: &Value) -> impl Iterator<Item = Entry<'_>> {
    let entries = object["metadata"]["managedFields"].as_array().map_or(&[][..], Vec::as_slice);
    entries.iter().map(|json| Entry { json })
}

/// What our applies own in an object; `None` where that is not said, or cannot be read.
pub(crate) fn applied(object: &Value) -> Option<Fields> {
    entries(object).find(|entry| entry.is_ours())?.fields()
}

/// What the API server sets by itself, and nobody owns.
pub(crate) const UNOWNED_METADATA: [&str; 8] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "selfLink",
    "managedFields",
];

// === impl Entry ===

impl<'a> Entry<'a> {
    pub(crate) fn manager(self) -> &'a str {
        self.text("manager")
    }

    pub(crate) fn api_version(self) -> &'a str {
        self.text("apiVersion")
    }

    pub(crate) fn is_update(self) -> bool {
        self.text("operation") == "Update"
    }

    /// Whether it is about the main resource.
    pub(crate) fn is_main(self) -> bool {
        self.text("subresource").is_empty()
    }

    /// Whether it is what our server-side applies left.
    pub(crate) fn is_ours(self) -> bool {
        self.manager() == FIELD_MANAGER && self.text("operation") == "Apply" && self.is_main()
    }

    /// The fields; `None` where they cannot be read.
    pub(crate) fn fields(self) -> Option<Fields> {
        Fields::of_object(&self.json["fieldsV1"])
    }

    pub(crate) fn json(self) -> &'a Value {
        self.json
    }

    fn text(self, field: &str) -> &'a str {
        self.json[field].as_str().unwrap_or_default()
    }
}

// === impl Fields ===

impl Fields {
    /// Reads what of an object is in a set; `None` where that cannot be read.
    pub(crate) fn of_object(json: &Value) -> Option<Fields> {
        let mut fields = Fields::read(json, 0)?;
        // Nobody owns an object as a whole: an empty set is empty.
        fields.itself = false;
        Some(fields)
    }

    fn read(json: &Value, depth: usize) -> Option<Fields> {
        let json = json.as_object().filter(|_| depth < DEEPEST)?;
        let mut fields = Fields { itself: json.is_empty() || json.contains_key("."), parts: Vec::new() };
        for (part, below) in json.iter().filter(|(part, _)| *part != ".") {
            fields.parts.push((Part::read(part)?, Fields::read(below, depth + 1)?));
        }
        Some(fields)
    }

    /// Whether nothing is in the set.
    pub(crate) fn is_empty(&self) -> bool {
        !self.itself && self.parts.is_empty()
    }

    /// Whether the node is in the set with all that it holds.
    pub(crate) fn is_leaf(&self) -> bool {
        self.itself && self.parts.is_empty()
    }

    /// What is in the set below each field; `None` where the parts are not fields.
    pub(crate) fn named(&self) -> Option<BTreeMap<&str, &Fields>> {
        let named = self.parts.iter().map(|(part, below)| match part {
            Part::Field(name) => Some((name.as_str(), below)),
            _ => None,
        });
        named.collect()
    }
}

// === impl Part ===

impl Part {
    fn read(text: &str) -> Option<Part> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Part::Field(rest.to_owned())),
            "k" => serde_json::from_str(rest).ok().map(Part::Item),
            "v" => serde_json::from_str(rest).ok().map(Part::Member),
            "i" => rest.parse().ok().map(Part::Place),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_form_of_a_path_is_read() {
        let object = json!({"metadata": {"managedFields": [
            {"manager": "argocd-controller", "operation": "Update", "fieldsV1": {"f:other": {}}},
            {"manager": "argocd-controller", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:other": {}}},
            {"manager": "argocd-controller", "operation": "Apply", "fieldsV1": {
                "f:a": {".": {}, "k:{\"name\":\"x:y\"}": {}}, "f:b:c": {"v:\"m\"": {}, "i:3": {}}}},
        ]}});
        let leaf = Fields { itself: true, parts: Vec::new() };
        let key = json!({"name": "x:y"}).as_object().cloned().expect("a map");
        assert_eq!(
            applied(&object),
            Some(Fields {
                itself: false,
                parts: vec![
                    (
                        Part::Field("a".to_owned()),
                        Fields { itself: true, parts: vec![(Part::Item(key), leaf.clone())] }
                    ),
                    (
                        Part::Field("b:c".to_owned()),
                        Fields {
                            itself: false,
                            parts: vec![(Part::Place(3), leaf.clone()), (Part::Member(json!("m")), leaf)]
                        }
                    ),
                ]
            })
        );
    }

    #[test]
    fn what_cannot_be_read_is_not_guessed() {
        let mut deep = json!({});
        for _ in 0..200 {
            deep = json!({"f:a": deep});
        }
        for fields in [json!(null), json!({"x:a": {}}), json!({"k:{": {}}), json!({"f:a": 1}), deep] {
            let entry = json!({"manager": "argocd-controller", "operation": "Apply", "fieldsV1": fields});
            assert_eq!(applied(&json!({"metadata": {"managedFields": [entry]}})), None);
        }
    }
}
