//! Streams: a line of JSON for each event, or server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http::Response;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use serde_json::Value;

use crate::error::Error;
use crate::handlers::Updates;
use crate::masking;

/// How often a listener is told that the stream still stands.
const ALIVE: Duration = Duration::from_secs(15);

/// The answer that sends events as they come.
pub(super) fn response(updates: Updates, events: bool) -> Response<Body> {
    let kind = if events { "text/event-stream" } else { "application/json" };
    let mut response = Response::new(Body::from_stream(framed(updates, events)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// The answer that sends what lines of logs say as a file of this name.
pub(super) fn download(updates: Updates, name: &str) -> Response<Body> {
    let sound = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let name: String = name.chars().filter(sound).take(200).collect();
    let lines = updates.filter_map(|update| std::future::ready(logged(update)));
    let mut response = Response::new(Body::from_stream(lines.map(Ok::<Bytes, Infallible>)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    let kept = HeaderValue::from_str(&format!("attachment;filename=\"{name}.log\""));
    headers.extend(kept.ok().map(|kept| (CONTENT_DISPOSITION, kept)));
    response
}

/// What a line of a log says; nothing of what ends it.
fn logged(update: Result<Value, Error>) -> Option<Bytes> {
    let mut line = update.unwrap_or_else(|error| serde_json::json!({"result": {"content": error.message}}));
    masking::hide(&mut line);
    let entry = line.get("result").filter(|entry| entry["last"] != true)?;
    Some(Bytes::from(format!("{}\n", entry["content"].as_str().unwrap_or_default())))
}

fn framed(updates: Updates, events: bool) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    futures::stream::unfold(updates, move |mut updates| async move {
        loop {
            match tokio::time::timeout(ALIVE, updates.next()).await {
                Ok(Some(update)) => return Some((Ok(frame(update, events)), updates)),
                Ok(None) => return None,
                Err(_) if events => return Some((Ok(Bytes::from_static(b":\n\n")), updates)),
                Err(_) => {}
            }
        }
    })
}

fn frame(update: Result<Value, Error>, events: bool) -> Bytes {
    let mut line = update.unwrap_or_else(|error| error.line());
    masking::hide(&mut line);
    Bytes::from(if events { format!("data: {line}\n\n") } else { format!("{line}\n") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    async fn all(updates: Vec<Result<Value, Error>>, events: bool) -> String {
        let framed = framed(futures::stream::iter(updates).boxed(), events);
        let parts: Vec<Result<Bytes, Infallible>> = framed.collect().await;
        parts
            .into_iter()
            .map(|part| String::from_utf8_lossy(&part.unwrap_or_default()).into_owned())
            .collect()
    }

    #[tokio::test]
    async fn events_are_lines_or_server_sent_events() {
        let events = || vec![Ok(json!({"result": "https://a:b@c"})), Err(Error::hidden())];
        let lines = all(events(), false).await;
        assert!(lines.starts_with("{\"result\":\"https://***@c\"}\n{\"error\":{"), "{lines}");
        let sent = all(events(), true).await;
        assert!(sent.starts_with("data: {\"result\":\"https://***@c\"}\n\ndata: {\"error\":"), "{sent}");
    }

    #[tokio::test]
    async fn a_log_is_kept_as_the_lines_it_has() {
        let entry = |content: &str, last: bool| Ok(json!({"result": {"content": content, "last": last}}));
        let updates =
            vec![entry("see https://a:b@c", false), entry("", false), Err(Error::hidden()), entry("", true)];
        let response = download(futures::stream::iter(updates).boxed(), "web\r\n\"x\"/..");
        assert_eq!(response.headers()[CONTENT_DISPOSITION], "attachment;filename=\"webx...log\"");
        let body = axum::body::to_bytes(response.into_body(), 1 << 10).await.expect("a body");
        assert_eq!(body, "see https://***@c\n\npermission denied\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_stream_is_kept_alive() {
        let mut quiet = Box::pin(framed(futures::stream::pending().boxed(), true));
        let started = tokio::time::Instant::now();
        assert_eq!(quiet.next().await, Some(Ok(Bytes::from_static(b":\n\n"))));
        assert_eq!(started.elapsed(), ALIVE);
    }
}
