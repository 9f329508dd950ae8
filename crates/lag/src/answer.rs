//! Answers: those of the proxy itself, and what of a head may be passed on.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use crate::fate::Gone;

/// Whatever can go wrong while a body is read.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// A body, whole or as it comes.
pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;

/// Headers that concern one connection only.
const HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A body that is known as a whole.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A refusal in the form that clients of Kubernetes read.
pub(crate) fn refusal(code: StatusCode, reason: &str, message: &str) -> Response<Body> {
    json_answer(code, &status(code, reason, message))
}

/// A watch that cannot go on where another ended.
pub(crate) fn gone(version: &str, how: Gone) -> Response<Body> {
    let message = format!("too old resource version: {version} (so says the lagging proxy)");
    let status = status(StatusCode::GONE, "Expired", &message);
    match how {
        Gone::Answer => json_answer(StatusCode::GONE, &status),
        Gone::Event => json_answer(StatusCode::OK, &json!({"type": "ERROR", "object": status})),
    }
}

fn status(code: StatusCode, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    })
}

fn json_answer(code: StatusCode, value: &Value) -> Response<Body> {
    let mut answer = Response::new(whole(format!("{value}\n")));
    *answer.status_mut() = code;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// Takes out what concerns only the connection a head came by.
pub(crate) fn strip_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in HOP {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_a_connection_are_not_passed_on() {
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("connection", "close, X-Mine"), ("x-mine", "1"), ("te", "trailers"), ("accept", "*/*")]
        {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        strip_hop(&mut headers);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["accept"]);
    }
}
