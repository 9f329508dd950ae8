//! Sound objects to start from.

use std::sync::{Arc, LazyLock};

use baton_schema::{Reader, Schema};
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::grown;

/// Objects of the kinds most clients send, each accepted as it stands once what it refers to is there.
pub(crate) static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("templates.json")).expect("the file beside this one is a JSON list")
});

/// A definition with every kind of field: keyed lists, sets, maps, rules, opaque parts, two versions.
pub(crate) static GADGETS: LazyLock<Value> = LazyLock::new(|| {
    let mut gadgets: Value = serde_json::from_str(include_str!("gadgets.json"))
        .expect("the file beside this one is a JSON object");
    // Both versions have one schema: an object written in either can be written back in the other as it stands.
    let schema = gadgets["spec"]["versions"][0]["schema"].clone();
    gadgets["spec"]["versions"][1]["schema"] = schema;
    gadgets
});

/// The schema of [`GADGETS`]' stored version.
pub(crate) static GADGET: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let document = &GADGETS["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut document = document.clone();
    document["properties"]["metadata"] = json!({ "type": "object" });
    Reader::standalone().read(&document).expect("the definition's schema is structural")
});

/// An object of the named kind: the template there is, or one grown out of the kind's schema.
pub(crate) fn object(dice: &mut Dice<'_>, api_version: &str, kind: &str) -> Value {
    let template =
        OBJECTS.iter().find(|object| object["apiVersion"] == api_version && object["kind"] == kind);
    if let Some(template) = template.filter(|_| !dice.one_in(6)) {
        return template.clone();
    }
    let schema = schema(api_version, kind);
    let mut object = schema.map_or(json!({}), |schema| grown::grow(&schema, dice, 7));
    if object.is_object() && !dice.one_in(10) {
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        object["metadata"] = json!({ "name": "web" });
    }
    object
}

/// The schema of a kind served in the fuzzed cluster.
pub(crate) fn schema(api_version: &str, kind: &str) -> Option<Arc<Schema>> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    match group {
        "example.com" => Some(GADGET.clone()),
        _ => baton_kinds::find_kind(group, version, kind).map(|kind| kind.schema()),
    }
}
