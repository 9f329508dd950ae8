//! What an answer looks like, without what it says: names of fields, and of what type each is.

use std::collections::BTreeSet;

use serde_json::Value;

/// A line for every field there is: its path and its type. A field of several types has several lines, and elements of an array
/// are taken together.
pub(super) type Shape = BTreeSet<String>;

/// Fields whose keys are somebody's data.
const MAPS: &[&str] = &["labels", "annotations", "matchLabels", "resourceOverrides"];
/// Fields whose content is not the API's to shape.
const OPAQUE: &[&str] = &["fieldsV1"];

/// The shape of a value.
pub(super) fn of(value: &Value) -> Shape {
    let mut shape = Shape::new();
    collect(value, &mut String::new(), &mut shape);
    shape
}

fn collect(value: &Value, path: &mut String, shape: &mut Shape) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(text) => kind_of(text),
        Value::Array(all) if all.is_empty() => "empty list",
        Value::Object(all) if all.is_empty() => "empty object",
        Value::Array(all) => {
            all.iter().for_each(|one| below(path, "[]", |path| collect(one, path, shape)));
            return;
        }
        Value::Object(all) => {
            let last = path.rsplit('.').next().unwrap_or_default();
            if OPAQUE.contains(&last) {
                shape.insert(format!("{path} object"));
                return;
            }
            let data = MAPS.contains(&last);
            for (name, one) in all {
                let name = if data { ".*".to_owned() } else { format!(".{name}") };
                below(path, &name, |path| collect(one, path, shape));
            }
            return;
        }
    };
    let path = if path.is_empty() { "." } else { path };
    shape.insert(format!("{path} {kind}"));
}

fn below(path: &mut String, part: &str, then: impl FnOnce(&mut String)) {
    let whole = path.len();
    path.push_str(part);
    then(path);
    path.truncate(whole);
}

/// Of what kind a text is: some clients read times, and JSON within JSON.
fn kind_of(text: &str) -> &'static str {
    if text.parse::<jiff::Timestamp>().is_ok() {
        return "time";
    }
    match text.starts_with('{') && serde_json::from_str::<Value>(text).is_ok() {
        true => "JSON",
        false => "string",
    }
}

#[test]
fn a_shape_tells_names_and_types_and_nothing_else() {
    let value = serde_json::json!({
        "items": [
            {"at": "2026-01-02T03:04:05Z", "labels": {"a": "b", "c/d": ""}, "of": null},
            {"of": 1, "text": "x", "target": "{\"a\":1}", "none": [], "fieldsV1": {"f:a": {}}, "deep": {"flag": true}},
        ],
        "metadata": {},
    });
    let lines = [
        ".items[].at time",
        ".items[].deep.flag boolean",
        ".items[].fieldsV1 object",
        ".items[].labels.* string",
        ".items[].none empty list",
        ".items[].of null",
        ".items[].of number",
        ".items[].target JSON",
        ".items[].text string",
        ".metadata empty object",
    ];
    assert_eq!(of(&value), lines.map(str::to_owned).into());
    assert_eq!(of(&Value::Null), [". null".to_owned()].into());
}
