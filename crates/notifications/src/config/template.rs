//! `template.<name>`: what is told, for each kind of service.

use std::collections::BTreeMap;

use baton_template::Template;
use serde_json::{Map, Value as Json};

use super::Finding;
use super::document::{Document, joined};
use crate::message::Part;

/// The texts a message is made of, each of them a template.
#[derive(Debug, Default)]
pub struct MessageTemplate {
    /// Those of `message` and of the blocks of services.
    pub(crate) parts: BTreeMap<Part, Template>,
    /// Those of `webhook`, by name of the service.
    pub(crate) webhooks: BTreeMap<String, BTreeMap<Part, Template>>,
}

/// Fields that are known and do nothing here.
const WITHOUT_EFFECT: [(&str, &str); 2] = [("slack", "groupingKey"), ("slack", "deliveryPolicy")];

pub(super) fn message_template(
    document: &Document<'_>,
    findings: &mut Vec<Finding>,
) -> Result<MessageTemplate, Finding> {
    let root = document.map()?;
    let mut template = MessageTemplate::default();
    for part in Part::ALL {
        let (block, field) = part.place();
        let map = match block {
            "" => Some(root),
            "webhook" => continue,
            block => block_of(document, root, "", block)?,
        };
        if let Some(map) = map
            && let Some(text) = compiled(document, map, block, field)?
        {
            template.parts.insert(part, text);
        }
    }
    for (block, field) in WITHOUT_EFFECT {
        if root.get(block).and_then(|map| map.get(field)).is_some() {
            let path = joined(block, field);
            findings.push(
                document.warning(&path, format!("{path} has no effect: messages are not put in threads")),
            );
        }
    }
    if let Some(services) = block_of(document, root, "", "webhook")? {
        for service in services.keys() {
            let Some(map) = block_of(document, services, "webhook", service)? else { continue };
            let path = joined("webhook", service);
            let mut parts = BTreeMap::new();
            for part in Part::ALL.into_iter().filter(|part| part.place().0 == "webhook") {
                if let Some(text) = compiled(document, map, &path, part.place().1)? {
                    parts.insert(part, text);
                }
            }
            template.webhooks.insert(service.clone(), parts);
        }
    }
    Ok(template)
}

fn block_of<'d>(
    document: &Document<'_>,
    map: &'d Map<String, Json>,
    path: &str,
    name: &str,
) -> Result<Option<&'d Map<String, Json>>, Finding> {
    match map.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::Object(map)) => Ok(Some(map)),
        Some(_) => Err(document.error(&joined(path, name), format!("{name} must be a map"))),
    }
}

fn compiled(
    document: &Document<'_>,
    map: &Map<String, Json>,
    path: &str,
    name: &str,
) -> Result<Option<Template>, Finding> {
    if !map.contains_key(name) {
        return Ok(None);
    }
    let text = document.text(map, path, name)?;
    let path = joined(path, name);
    Template::parse(&path, &text).map(Some).map_err(|error| document.error(&path, error.to_string()))
}
