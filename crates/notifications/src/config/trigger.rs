//! `trigger.<name>`: when something is told.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value as Json;
use sha1::{Digest, Sha1};

use super::Finding;
use super::document::Document;
use crate::expression::Expression;
use crate::subject::Kind;

/// Most conditions of one trigger.
const MOST_CONDITIONS: usize = 64;

/// One condition of a trigger.
#[derive(Debug, Clone)]
pub struct Condition {
    /// When it is met.
    pub when: Expression,
    /// What makes one occasion differ from the next; without it, that it was not met in between.
    pub once_per: Option<Expression>,
    /// The templates the message is made of.
    pub send: Vec<String>,
    /// In words.
    pub description: String,
    /// Tried again for as long as it is met, however long that is. Baton's own, for what waits for a person.
    pub until_delivered: bool,
    /// The kind of objects it is about: sets if it mentions `appset`, otherwise Applications.
    pub kind: Kind,
    /// Whether time alone can make it true.
    pub depends_on_time: bool,
    /// What tells the condition from others of its trigger: its place, and the hash of its text.
    pub(crate) key: String,
}

pub(super) fn conditions(document: &Document<'_>) -> Result<Vec<Condition>, Finding> {
    let items = match &document.value {
        Json::Array(items) => items.as_slice(),
        Json::Null => &[],
        _ => return Err(document.error("", "a list of conditions is wanted")),
    };
    if items.len() > MOST_CONDITIONS {
        return Err(document.error("", format!("there are more than {MOST_CONDITIONS} conditions")));
    }
    items.iter().enumerate().map(|(index, item)| condition(document, index, item)).collect()
}

fn condition(document: &Document<'_>, index: usize, item: &Json) -> Result<Condition, Finding> {
    let path = format!("[{index}]");
    let Some(map) = item.as_object() else {
        return Err(document.error(&path, "a condition is a map with when and send"));
    };
    let when = document.text(map, &path, "when")?;
    let once_per = document.text(map, &path, "oncePer")?;
    let read = |name: &str, text: &str| {
        let wrong = |error| document.error(&format!("{path}.{name}"), format!("{name}: {error}"));
        Expression::parse(text).map_err(wrong)
    };
    let key = format!("[{index}].{}", URL_SAFE_NO_PAD.encode(Sha1::digest(when.as_bytes())));
    // A condition without one is never met.
    let when = read("when", if when.is_empty() { "false" } else { &when })?;
    let once_per = if once_per.is_empty() { None } else { Some(read("oncePer", &once_per)?) };
    let is_about_sets = |expression: &Expression| expression.mentions().contains("appset");
    let about_sets = is_about_sets(&when) || once_per.as_ref().is_some_and(is_about_sets);
    Ok(Condition {
        kind: if about_sets { Kind::ApplicationSet } else { Kind::Application },
        depends_on_time: when.mentions().contains("time") || when.text().contains("now("),
        key,
        when,
        once_per,
        send: document.list(map, &path, "send")?,
        description: document.text(map, &path, "description")?,
        until_delivered: document.flag(map, &path, "untilDelivered")?,
    })
}
