//! Slack: `chat.postMessage`, and a look at the channel's history where an earlier attempt may have arrived.

use baton_hooks::{Connector, Secret};
use http::{HeaderValue, Method, header};
use serde_json::{Map, Value as Json, json};

use super::call::{Call, retry_after, url};
use super::{Doubt, Failure};
use crate::config::SlackConfig;
use crate::message::Part;
use crate::outbox::{Entry, Wait};

/// What a message's metadata calls itself.
const EVENT_TYPE: &str = "baton_notification";

/// How many of a channel's last messages are looked at.
const LOOK_BACK: u32 = 100;

pub(super) async fn deliver(
    connector: &Connector,
    config: &SlackConfig,
    entry: &Entry,
    doubt: Doubt,
) -> Result<(), Failure> {
    // Without the right to read the channel nobody can say; then it is sent again.
    if doubt == Doubt::MayHaveArrived && has_arrived(connector, config, entry).await.unwrap_or(false) {
        return Ok(());
    }
    ask(connector, config, entry, "chat.postMessage", &message(config, entry)?).await.map(|_| ())
}

async fn has_arrived(connector: &Connector, config: &SlackConfig, entry: &Entry) -> Result<bool, Failure> {
    let question = json!({
        "channel": entry.recipient,
        "limit": LOOK_BACK,
        "include_all_metadata": true,
        "oldest": entry.queued_at.as_second().to_string(),
    });
    let answer = ask(connector, config, entry, "conversations.history", &question).await?;
    let messages = answer.get("messages").and_then(Json::as_array);
    let id = |message: &Json| {
        message.pointer("/metadata/event_payload/id").and_then(Json::as_str) == Some(entry.id.as_str())
    };
    Ok(messages.is_some_and(|messages| messages.iter().any(id)))
}

fn message(config: &SlackConfig, entry: &Entry) -> Result<Json, Failure> {
    let mut body = Map::new();
    let mut set = |name: &str, value: Json| body.insert(name.to_owned(), value);
    set("channel", entry.recipient.as_str().into());
    set("text", entry.message.first(&[Part::Message]).into());
    set("metadata", json!({"event_type": EVENT_TYPE, "event_payload": {"id": entry.id.as_str()}}));
    for (part, name) in [(Part::SlackBlocks, "blocks"), (Part::SlackAttachments, "attachments")] {
        if let Some(text) = entry.message.get(part) {
            set(name, list(text, name)?);
        }
    }
    let username = entry.message.get(Part::SlackUsername).unwrap_or(&config.username);
    if !username.is_empty() {
        set("username", username.into());
    }
    match entry.message.get(Part::SlackIcon).unwrap_or(&config.icon) {
        icon if icon.len() > 2 && icon.starts_with(':') && icon.ends_with(':') => {
            set("icon_emoji", icon.into());
        }
        icon if icon.starts_with("https://") || icon.starts_with("http://") => {
            set("icon_url", icon.into());
        }
        _ => {}
    }
    if config.disable_unfurl {
        set("unfurl_links", false.into());
        set("unfurl_media", false.into());
    }
    Ok(Json::Object(body))
}

fn list(text: &str, name: &str) -> Result<Json, Failure> {
    match serde_json::from_str(text) {
        Ok(Json::Array(items)) => Ok(Json::Array(items)),
        Ok(_) => Err(Failure::lasting(format!("the template's slack.{name} are no JSON list"))),
        Err(error) => Err(Failure::lasting(format!(
            "the template's slack.{name} are no JSON: line {}, column {}",
            error.line(),
            error.column()
        ))),
    }
}

async fn ask(
    connector: &Connector,
    config: &SlackConfig,
    entry: &Entry,
    method: &str,
    body: &Json,
) -> Result<Json, Failure> {
    let target = url(&format!("{}/{method}", config.api_url.trim_end_matches('/')))?;
    let body = body.to_string();
    let mut call = Call::new(Method::POST, target, &entry.id, body.as_bytes())?;
    call.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
    call.set(header::AUTHORIZATION, &Secret::new(format!("Bearer {}", config.token.expose())))?;
    call.insecure = config.insecure;
    let reply = call.make(connector).await?;
    let Ok(answer) = serde_json::from_slice::<Json>(&reply.body) else {
        return Err(Failure::new("Slack answered with what is no JSON"));
    };
    if answer.get("ok") == Some(&Json::Bool(true)) {
        return Ok(answer);
    }
    let error = answer.get("error").and_then(Json::as_str).unwrap_or("no reason");
    let error: String = error.chars().filter(|char| !char.is_control()).take(100).collect();
    let wait = match (error.as_str(), retry_after(&reply.headers)) {
        (_, Some(after)) => Wait::AtLeast(after),
        ("ratelimited" | "rate_limited" | "internal_error" | "fatal_error" | "service_unavailable", None) => {
            Wait::Usual
        }
        _ => Wait::Longest,
    };
    Err(Failure { message: format!("Slack refused {method}: {error}"), wait })
}
