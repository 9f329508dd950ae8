//! Any HTTP endpoint.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_hooks::{Connector, Secret};
use http::{HeaderValue, Method, header};

use super::Failure;
use super::call::{Call, url};
use crate::config::WebhookConfig;
use crate::message::Part;
use crate::outbox::Entry;

pub(super) async fn deliver(
    connector: &Connector,
    config: &WebhookConfig,
    entry: &Entry,
) -> Result<(), Failure> {
    let message = &entry.message;
    let target = match message.get(Part::WebhookPath) {
        Some(path) => {
            let base = config.url.expose().trim_end_matches('/');
            url(&format!("{base}/{}", path.trim_start_matches('/')))?
        }
        None => url(config.url.expose())?,
    };
    let method = method(message.get(Part::WebhookMethod).unwrap_or("GET"))?;
    let body = message.first(&[Part::WebhookBody, Part::Message]);
    let mut call = Call::new(method, target, &entry.id, body.as_bytes())?;
    for (name, value) in &config.headers {
        call.set(name.clone(), value)?;
    }
    if let Some((user, password)) = &config.basic_auth {
        let both = STANDARD.encode(format!("{}:{}", user.expose(), password.expose()));
        call.set(header::AUTHORIZATION, &Secret::new(format!("Basic {both}")))?;
    }
    if !call.headers.contains_key(header::CONTENT_TYPE)
        && serde_json::from_str::<serde::de::IgnoredAny>(body).is_ok()
    {
        call.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    call.insecure = config.insecure;
    call.make(connector).await.map(|_| ())
}

/// A method that sends a message; others mean something to the connection.
fn method(name: &str) -> Result<Method, Failure> {
    let known = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::HEAD];
    let found = known.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(name.trim()));
    found
        .ok_or_else(|| Failure::lasting("the template's method is not GET, POST, PUT, PATCH, DELETE or HEAD"))
}
