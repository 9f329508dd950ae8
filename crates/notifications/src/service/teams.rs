//! Channels of Teams: message cards for connectors, adaptive cards for workflows.

use baton_hooks::Connector;
use http::{HeaderValue, Method, header};
use serde_json::{Map, Value as Json, json};

use super::Failure;
use super::call::{Call, url};
use crate::config::{Card, TeamsConfig};
use crate::message::{Message, Part};
use crate::outbox::Entry;

pub(super) async fn deliver(
    connector: &Connector,
    config: &TeamsConfig,
    entry: &Entry,
) -> Result<(), Failure> {
    let Some(target) = config.urls.get(&entry.recipient) else {
        return Err(Failure::lasting(format!("the service knows no channel {:?}", entry.recipient)));
    };
    let card = match config.card {
        Card::Message => message_card(&entry.message)?,
        Card::Adaptive => in_message(adaptive_card(&entry.message)?),
        Card::RawAdaptive => adaptive_card(&entry.message)?,
    };
    let body = card.to_string();
    let mut call = Call::new(Method::POST, url(target.expose())?, &entry.id, body.as_bytes())?;
    call.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    call.make(connector).await.map(|_| ())
}

fn message_card(message: &Message) -> Result<Json, Failure> {
    if let Some(text) = message.get(Part::TeamsTemplate) {
        return parsed(text, "teams.template");
    }
    let mut card = Map::new();
    card.insert("@type".into(), "MessageCard".into());
    card.insert("@context".into(), "https://schema.org/extensions".into());
    card.insert("text".into(), message.first(&[Part::TeamsText, Part::Message]).into());
    for (part, name) in
        [(Part::TeamsTitle, "title"), (Part::TeamsSummary, "summary"), (Part::TeamsThemeColor, "themeColor")]
    {
        if let Some(text) = message.get(part) {
            card.insert(name.into(), text.into());
        }
    }
    let mut sections = listed(message, Part::TeamsSections)?;
    let facts = listed(message, Part::TeamsFacts)?;
    if !facts.is_empty() {
        sections.push(json!({ "facts": facts }));
    }
    if !sections.is_empty() {
        card.insert("sections".into(), sections.into());
    }
    let actions = listed(message, Part::TeamsPotentialAction)?;
    if !actions.is_empty() {
        card.insert("potentialAction".into(), actions.into());
    }
    Ok(Json::Object(card))
}

fn adaptive_card(message: &Message) -> Result<Json, Failure> {
    if let Some(text) = message.get(Part::WorkflowsAdaptiveCard) {
        return parsed(text, "teams-workflows.adaptiveCard");
    }
    let mut body = Vec::new();
    if let Some(title) = message.get(Part::WorkflowsTitle) {
        let mut block =
            json!({"type": "TextBlock", "text": title, "size": "Large", "weight": "Bolder", "wrap": true});
        if let Some(color) = message.get(Part::WorkflowsThemeColor) {
            block["color"] = color.into();
        }
        body.push(block);
    }
    let text = message.first(&[Part::WorkflowsText, Part::Message]);
    if !text.is_empty() {
        body.push(json!({"type": "TextBlock", "text": text, "wrap": true}));
    }
    let mut facts = listed(message, Part::WorkflowsFacts)?;
    for section in listed(message, Part::WorkflowsSections)? {
        facts.extend(section.get("facts").and_then(Json::as_array).cloned().unwrap_or_default());
    }
    let fact = |fact: &Json| json!({"title": fact.get("name"), "value": fact.get("value")});
    if !facts.is_empty() {
        body.push(json!({"type": "FactSet", "facts": facts.iter().map(fact).collect::<Vec<_>>()}));
    }
    let actions = listed(message, Part::WorkflowsPotentialAction)?;
    let actions: Vec<Json> = actions.iter().filter_map(open_url).collect();
    let mut card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
    });
    if !actions.is_empty() {
        card["actions"] = actions.into();
    }
    Ok(card)
}

fn open_url(action: &Json) -> Option<Json> {
    if action.get("@type").and_then(Json::as_str) != Some("OpenUri") {
        return None;
    }
    let target = action.pointer("/targets/0/uri")?;
    Some(json!({"type": "Action.OpenUrl", "title": action.get("name"), "url": target}))
}

fn in_message(card: Json) -> Json {
    json!({
        "type": "message",
        "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}],
    })
}

fn listed(message: &Message, part: Part) -> Result<Vec<Json>, Failure> {
    let (block, field) = part.place();
    match message.get(part) {
        None => Ok(Vec::new()),
        Some(text) => match parsed(text, &format!("{block}.{field}"))? {
            Json::Array(items) => Ok(items),
            _ => Err(Failure::lasting(format!("the template's {block}.{field} is no JSON list"))),
        },
    }
}

fn parsed(text: &str, name: &str) -> Result<Json, Failure> {
    serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Failure::lasting(format!("the template's {name} is no JSON: line {line}, column {column}"))
    })
}
