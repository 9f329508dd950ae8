//! How answers are written.

use axum::body::Body;
use http::header::{CONTENT_TYPE, HeaderValue, LOCATION, SET_COOKIE};
use http::{Response, StatusCode};
use serde::Serialize;
use serde_json::Value;

use super::guard::{SLOW, UNSUPPORTED};
use super::lines;
use crate::error::{Code, Error};
use crate::fields::Fields;
use crate::handlers::Updates;
use crate::masking;

/// What a call answers.
pub(super) struct Answer {
    content: Content,
    /// Lines that make a browser keep or forget its token.
    pub(super) cookies: Vec<String>,
    /// Whether the browser is to forget its token.
    pub(super) forgets: bool,
}

enum Content {
    Text(&'static str),
    /// JSON that is the same for everybody and holds nothing of anybody.
    Document(&'static str),
    Json(Value),
    Stream(Updates),
    /// What of a stream of logs are lines, to be kept under a name.
    Download(Updates, String),
    /// SVG that holds nothing of anybody who may not be known to all.
    Picture(String),
    /// The browser goes there.
    Elsewhere(String),
}

// === impl Answer ===

impl Answer {
    pub(super) fn json(value: impl Serialize) -> Result<Answer, Error> {
        let value = serde_json::to_value(value).map_err(|error| Error::internal(error.to_string()))?;
        Ok(Answer { content: Content::Json(value), cookies: Vec::new(), forgets: false })
    }

    pub(super) fn text(text: &'static str) -> Answer {
        Answer { content: Content::Text(text), cookies: Vec::new(), forgets: false }
    }

    pub(super) fn document(text: &'static str) -> Answer {
        Answer { content: Content::Document(text), cookies: Vec::new(), forgets: false }
    }

    pub(super) fn stream(updates: Updates) -> Answer {
        Answer { content: Content::Stream(updates), cookies: Vec::new(), forgets: false }
    }

    /// What a stream of logs says, as a file.
    pub(super) fn download(updates: Updates, name: String) -> Answer {
        Answer { content: Content::Download(updates, name), cookies: Vec::new(), forgets: false }
    }

    pub(super) fn picture(svg: String) -> Answer {
        Answer { content: Content::Picture(svg), cookies: Vec::new(), forgets: false }
    }

    /// Sends a browser elsewhere.
    pub(super) fn elsewhere(location: String, cookies: Vec<String>) -> Answer {
        Answer { content: Content::Elsewhere(location), cookies, forgets: false }
    }

    /// The parts that are wanted of it.
    pub(super) fn only(self, fields: &str) -> Result<Answer, Error> {
        let fields = Fields::read(fields)?;
        let content = match self.content {
            Content::Json(value) => {
                // By it a client that has listed goes on watching, whatever else it wants to know.
                let version =
                    value.pointer("/metadata/resourceVersion").filter(|_| value["items"].is_array());
                let version = version.cloned();
                let mut chosen = fields.of(value);
                if let Some(version) = version {
                    chosen["metadata"]["resourceVersion"] = version;
                }
                Content::Json(chosen)
            }
            other => other,
        };
        Ok(Answer { content, ..self })
    }

    /// Everything that leaves passes here, or line by line the same way: nothing hidden leaves.
    pub(super) fn respond(self, events: bool) -> Response<Body> {
        let mut response = match self.content {
            Content::Text(text) => plain(StatusCode::OK, "text/plain; charset=utf-8", text.to_owned()),
            Content::Document(text) => plain(StatusCode::OK, "application/json", text.to_owned()),
            Content::Json(value) => json(StatusCode::OK, value),
            Content::Stream(updates) => lines::response(updates, events),
            Content::Download(updates, name) => lines::download(updates, &name),
            Content::Picture(svg) => plain(StatusCode::OK, "image/svg+xml", svg),
            Content::Elsewhere(location) => elsewhere(&location),
        };
        keep(&mut response, &self.cookies);
        response
    }
}

/// Makes a browser keep or forget something.
pub(super) fn keep(response: &mut Response<Body>, cookies: &[String]) {
    for cookie in cookies {
        if let Ok(line) = HeaderValue::from_str(cookie) {
            response.headers_mut().append(SET_COOKIE, line);
        }
    }
}

fn elsewhere(location: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    match HeaderValue::from_str(location) {
        Ok(location) => {
            *response.status_mut() = StatusCode::SEE_OTHER;
            response.headers_mut().insert(LOCATION, location);
        }
        Err(_) => *response.status_mut() = StatusCode::BAD_GATEWAY,
    }
    response
}

/// The answer of a call that failed.
pub(super) fn failure(error: &Error, streamed: bool) -> Response<Body> {
    let status = match (error.code, error.message.as_str()) {
        (Code::InvalidArgument, UNSUPPORTED) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        (Code::Unimplemented, "Method Not Allowed") => StatusCode::METHOD_NOT_ALLOWED,
        (Code::DeadlineExceeded, SLOW) => StatusCode::REQUEST_TIMEOUT,
        (Code::ResourceExhausted, message) if message.starts_with("the body is larger") => {
            StatusCode::PAYLOAD_TOO_LARGE
        }
        (code, _) => code.status(),
    };
    json(status, if streamed { error.unstreamed() } else { error.body() })
}

fn json(status: StatusCode, mut value: Value) -> Response<Body> {
    masking::hide(&mut value);
    plain(status, "application/json", value.to_string())
}

fn plain(status: StatusCode, kind: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
