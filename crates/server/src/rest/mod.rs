//! The API over HTTP: Argo CD's paths and JSON.
//!
//! A thin layer: it finds out which call a request is, reads it within bounds, and writes the answer. Paths are matched as
//! they were sent, so that a `%2F` stays in its segment.

mod answer;
mod document;
mod guard;
mod lines;
mod loose;
mod operation;
mod query;
mod route;
mod routes;
mod serving;
mod table;

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Limited};
use tower::ServiceExt as _;

pub use serving::serve;

use crate::auth::cookie::{self, COMPANION};
use crate::error::{Code, Error};
use crate::server::{Context, Server};
use answer::Answer;
use operation::{Form, Operation};
use route::Route;

/// Largest body of a request.
const LARGEST: usize = 4 << 20;
/// Largest body of a request of somebody who is not known yet.
const LARGEST_OF_STRANGERS: usize = 16 << 10;
/// How long a body may take.
const BODY_TIME: Duration = Duration::from_secs(30);

/// The routes of the API. What is no path of it answers 404.
pub fn router(server: Server) -> Router {
    Router::new().fallback(handle).with_state(server)
}

/// A request whose sender was found out.
pub(crate) struct Incoming {
    pub(crate) server: Server,
    pub(crate) context: Context,
    pub(crate) names: operation::Names,
    pub(crate) query: query::Query,
    /// The `Cookie` lines.
    pub(crate) cookies: Vec<String>,
    pub(crate) body: Bytes,
}

async fn handle(State(server): State<Server>, request: Request<Body>) -> Response<Body> {
    let id = guard::request_id(request.headers());
    let events = guard::wants_events(request.headers());
    let is_api = request.uri().path().starts_with("/api/");
    let operation = operation_of(&request);
    let streamed = operation.is_some_and(|operation| operation.form == Form::Stream);
    let operation = operation.map(|operation| operation.route);
    let mut kept = Vec::new();
    let mut response = match (&server.0.settings.webhooks, operation) {
        // Hosts send what they send: it is read, bounded and judged where webhooks are.
        (Some(webhooks), Some(Route::Webhook)) => match webhooks.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        },
        _ => match answered(&server, request, &id, &mut kept).await {
            Ok(answer) => answer.respond(events),
            Err(error) => answer::failure(&error, streamed),
        },
    };
    // What was renewed on the way is kept also where the call failed: the issuer gives it once.
    answer::keep(&mut response, &kept);
    guard::protect(response.headers_mut(), &id, is_api, server.0.settings.secure);
    if operation == Some(Route::Badge) {
        guard::open_to_pages(response.headers_mut());
    }
    response
}

/// The call that a request is, if it is one.
fn operation_of(request: &Request<Body>) -> Option<&'static Operation> {
    let segments = route::segments(request.uri().path()).ok()?;
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    route::find(request.method(), &segments).ok().map(|(operation, _)| operation)
}

async fn answered(
    server: &Server,
    request: Request<Body>,
    id: &str,
    kept: &mut Vec<String>,
) -> Result<Answer, Error> {
    let (parts, body) = request.into_parts();
    let (method, headers) = (&parts.method, &parts.headers);
    let segments = route::segments(parts.uri.path())?;
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (operation, names) = route::find(method, &segments)?;
    guard::check_content(method, headers)?;
    if matches!(operation.route, Route::Health) {
        // Whether this process answers does not depend on an API that may be away.
        return Ok(Answer::text("ok"));
    }
    let token = Token::of(headers);
    if token.by_cookie && *method != Method::GET {
        let url = server.open_context(None, id).await?.configuration.setting("url").map(str::to_owned);
        guard::check_origin(headers, url.as_deref())?;
    }
    let query = query::Query::read(parts.uri.query().unwrap_or_default(), operation.query)?;
    let leaves = matches!(operation.route, Route::SignOut | Route::SignOff);
    let secure = server.0.settings.secure;
    let prolonged = match (&token.text, &token.companion) {
        (Some(text), Some((companion, _))) if token.by_cookie => server.prolonged(text, companion).await,
        _ => None,
    };
    if let Some(prolonged) = prolonged.as_ref().filter(|_| !leaves) {
        if prolonged.renewed {
            kept.extend(cookie::kept(&prolonged.token, secure, token.cookies));
        }
        let key = server.0.configured.get().await?.key.clone();
        let locked = key.filter(|_| prolonged.changed).and_then(|key| prolonged.companion.locked(&key));
        let stale = token.companion.as_ref().map_or(1, |(_, cookies)| *cookies);
        kept.extend(locked.into_iter().flat_map(|text| cookie::kept_as(COMPANION, &text, secure, stale)));
    }
    let shown = prolonged.as_ref().map(|prolonged| prolonged.token.as_str()).or(token.text.as_deref());
    let context = match operation.open {
        true => server.open_context(shown, id).await?,
        false => server.context(shown, id).await?,
    };
    let context = match &prolonged {
        Some(prolonged) => server.with_session(context, &prolonged.companion),
        None => context,
    };
    // Nobody's body is read before it is known who sends it.
    let most = if context.caller.is_known() { LARGEST } else { LARGEST_OF_STRANGERS };
    let body = read(method, headers, body, most).await?;
    let renewed = server.renewal(&context).filter(|_| token.by_cookie && !leaves);
    let cookies = headers.get_all(http::header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let cookies = cookies.map(str::to_owned).collect();
    let denied = (context.clone(), names.clone(), query.text("appNamespace"), query.text("appsetNamespace"));
    let incoming = Incoming { server: server.clone(), context, names, query, cookies, body };
    let mut answer = match routes::call(operation.route, incoming).await {
        Ok(answer) => answer,
        Err(error) => {
            let (context, names, application, set) = denied;
            // Most calls write down themselves that they were denied.
            if let Some((verb, kind)) = operation.changes().filter(|_| context.records() == 0) {
                let namespace = if kind == "ApplicationSet" { &set } else { &application };
                let at = (namespace.as_str(), names.first());
                server.denied(&context, verb, operation.path, kind, at, &error).await;
            }
            return Err(error);
        }
    };
    if let Some(renewed) = renewed {
        answer.cookies = cookie::kept(renewed.expose(), secure, token.cookies);
    }
    if answer.forgets {
        answer.cookies.extend(cookie::forgotten(secure, token.cookies));
        let companion = token.companion.as_ref().map(|(_, cookies)| *cookies);
        let gone = companion.into_iter().flat_map(|held| cookie::forgotten_as(COMPANION, secure, held));
        answer.cookies.extend(gone);
    }
    Ok(answer)
}

async fn read(method: &Method, headers: &HeaderMap, body: Body, most: usize) -> Result<Bytes, Error> {
    if *method == Method::GET || *method == Method::HEAD {
        return Ok(Bytes::new());
    }
    let told = headers.get(http::header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let too_large = || Error::new(Code::ResourceExhausted, format!("the body is larger than {most} bytes"));
    if told.and_then(|length| length.parse::<usize>().ok()).is_some_and(|length| length > most) {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_TIME, Limited::new(body, most).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Error::invalid("the body was cut off")),
        Err(_) => Err(Error::new(Code::DeadlineExceeded, guard::SLOW)),
    }
}

/// What a request shows of its sender.
struct Token {
    text: Option<String>,
    by_cookie: bool,
    cookies: usize,
    /// What prolongs a sign-in by an issuer, and in how many cookies it came.
    companion: Option<(String, usize)>,
}

// === impl Token ===

impl Token {
    fn of(headers: &HeaderMap) -> Token {
        let bearer = headers.get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer =
            bearer.and_then(|text| text.strip_prefix("Bearer ").or_else(|| text.strip_prefix("bearer ")));
        let lines = || headers.get_all(http::header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let companion = cookie::read_as(COMPANION, lines());
        let (kept, cookies) =
            cookie::read(lines()).map_or((None, 1), |(token, cookies)| (Some(token), cookies));
        match bearer.map(str::trim).filter(|token| !token.is_empty()) {
            Some(token) => Token { text: Some(token.to_owned()), by_cookie: false, cookies, companion },
            None => Token { by_cookie: kept.is_some(), text: kept, cookies, companion },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for_without_end() {
        let never = futures::stream::pending::<Result<Bytes, std::convert::Infallible>>();
        let read = read(&Method::POST, &HeaderMap::new(), Body::from_stream(never), 10).await;
        let error = read.expect_err("nothing came");
        assert_eq!(answer::failure(&error, false).status(), http::StatusCode::REQUEST_TIMEOUT);
    }
}
