//! `docs/fields.md` tells of every field of the three kinds, and only of those there are. It is made of the definitions:
//! `BATON_WRITE_DOCS=1 cargo test -p baton-api --test api reference` writes it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use baton_api::crd;
use serde_json::Value;

const PREFACE: &str = "# Every field

Of Application, ApplicationSet and AppProject (`argoproj.io/v1alpha1`), as `baton crds` defines them; this page is made of those definitions. A structure that
stands in several places is told of once. **Bold** fields must be there. `{}` is a map with any keys, `[]` a list.
";

/// The page on its way.
#[derive(Default)]
struct Page {
    text: String,
    /// Where each structure that was told of stands, by its schema without its descriptions.
    known: BTreeMap<String, String>,
    headings: BTreeSet<String>,
}

impl Page {
    fn kind(&mut self, definition: &Value) {
        let kind = definition["spec"]["names"]["kind"].as_str().expect("a kind");
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let _ = writeln!(self.text, "\n## {kind}\n\n{}", told(schema));
        for part in ["spec", "status", "operation"] {
            let structure = &schema["properties"][part];
            if structure.is_object() {
                self.structure(&format!("{kind}.{part}"), structure);
            }
        }
    }

    /// A structure with all that stand in it.
    fn structure(&mut self, path: &str, schema: &Value) {
        self.known.insert(outline(schema), path.to_owned());
        assert!(self.headings.insert(anchor(path)), "two headings lead to {path}");
        let _ = writeln!(self.text, "\n### {path}\n");
        if !told(schema).is_empty() {
            let _ = writeln!(self.text, "{}\n", told(schema));
        }
        let _ = writeln!(self.text, "| field | type | |\n|---|---|---|");
        let must: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut inner = Vec::new();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let (suffix, element) = element(field);
            let within = format!("{path}.{name}{suffix}");
            let kind = match self.known.get(&outline(element)) {
                _ if !has_fields(element) => kind(field),
                Some(place) => format!("{} as [{place}](#{})", kind(field), anchor(place)),
                None => {
                    // Whoever comes later refers to it, also out of itself.
                    self.known.insert(outline(element), within.clone());
                    inner.push((within.clone(), element));
                    format!("{}: [below](#{})", kind(field), anchor(&within))
                }
            };
            let name = if must.contains(&name.as_str()) { format!("**{name}**") } else { name.clone() };
            let _ = writeln!(
                self.text,
                "| {name} | {kind} | {} |",
                cell(&format!("{}{}", told(field), bounds(field)))
            );
        }
        for (within, element) in inner {
            self.structure(&within, element);
        }
    }
}

fn told(schema: &Value) -> &str {
    schema["description"].as_str().unwrap_or_default()
}

fn has_fields(schema: &Value) -> bool {
    schema["properties"].as_object().is_some_and(|fields| !fields.is_empty())
}

/// What a list or a map holds, with how that is written.
fn element(schema: &Value) -> (String, &Value) {
    for (key, suffix) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[key].is_object() {
            let (more, element) = element(&schema[key]);
            return (format!("{suffix}{more}"), element);
        }
    }
    (String::new(), schema)
}

fn kind(schema: &Value) -> String {
    let (suffix, element) = element(schema);
    let kind = match element["type"].as_str() {
        _ if element["x-kubernetes-int-or-string"] == true => "integer or text",
        Some("string") => "text",
        Some("object") => "object",
        Some(other) => other,
        None => "anything",
    };
    let format = element["format"].as_str().filter(|format| !format.starts_with("int"));
    let format = format.map(|format| format!(" ({format})")).unwrap_or_default();
    format!("{kind}{suffix}{format}")
}

/// What a definition demands of a value.
fn bounds(schema: &Value) -> String {
    let mut texts = Vec::new();
    let list = |values: &Value| {
        let words = values.as_array().into_iter().flatten();
        words.map(|word| format!("`{}`", word.to_string().trim_matches('"'))).collect::<Vec<_>>().join(", ")
    };
    if schema["enum"].is_array() {
        texts.push(format!("One of {}.", list(&schema["enum"])));
    }
    for (key, words) in [
        ("minimum", "At least"),
        ("maximum", "At most"),
        ("maxLength", "Characters at most:"),
        ("maxItems", "Entries at most:"),
        ("minItems", "Entries at least:"),
        ("default", "Default:"),
    ] {
        if !schema[key].is_null() {
            texts.push(format!("{words} {}.", schema[key]));
        }
    }
    let text = texts.join(" ");
    if text.is_empty() || told(schema).is_empty() { text } else { format!(" {text}") }
}

/// A schema as far as it says which values there may be.
fn outline(schema: &Value) -> String {
    fn bare(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                // A field may have the name, and is no text then.
                let says = |(key, value): &(&String, &Value)| *key != "description" || !value.is_string();
                fields.iter().filter(says).map(|(key, value)| (key.clone(), bare(value))).collect()
            }
            Value::Array(values) => values.iter().map(bare).collect(),
            other => other.clone(),
        }
    }
    bare(schema).to_string()
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c));
    kept.flat_map(char::to_lowercase).collect()
}

/// A text as a cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|").replace('<', "&lt;")
}

#[test]
fn every_field_is_told_of() {
    let mut page = Page::default();
    page.text.push_str(PREFACE);
    crd::crds().iter().for_each(|definition| page.kind(definition));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fields.md");
    if std::env::var_os("BATON_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page.text).expect("docs/fields.md can be written");
    }
    let found = std::fs::read_to_string(&path).expect("docs/fields.md");
    let differs = found.lines().zip(page.text.lines()).find(|(found, made)| found != made);
    assert!(
        found == page.text,
        "docs/fields.md is not as the definitions are (first at {differs:?}): BATON_WRITE_DOCS=1 writes it anew"
    );
}

#[test]
fn no_field_is_without_a_word() {
    let mut mute = Vec::new();
    for definition in crd::crds() {
        let kind = definition["spec"]["names"]["kind"].as_str().expect("a kind").to_owned();
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        for part in ["spec", "status"] {
            for (name, field) in schema["properties"][part]["properties"].as_object().into_iter().flatten() {
                if told(field).is_empty() {
                    mute.push(format!("{kind}.{part}.{name}"));
                }
            }
        }
    }
    assert_eq!(mute, [""; 0], "fields that nothing is said of");
}
