//! Source code hosts and a plugin as the examples need them: fixed answers under `/demo`, for trying generators
//! where none of them can be reached.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;

/// What the path of a demo answer begins with.
pub(crate) const PREFIX: &str = "/demo/";

#[derive(Deserialize)]
struct Fixed {
    status: u16,
    body: Value,
}

/// Answers by method and path.
static ANSWERS: LazyLock<HashMap<String, Fixed>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../examples/hosts.json"))
        .expect("a file of this repository that a test reads")
});

/// The kind that an example reads decisions from.
pub(crate) fn placements() -> Value {
    baton_grammar::yaml::first(include_str!("../../../../examples/placements.yaml"))
        .expect("a file of this repository that a test reads")
}

/// The answer to a request; whatever is asked for in its query, there is one page.
pub(crate) fn answer(method: &Method, path: &str) -> Response {
    let (status, body) = match ANSWERS.get(&format!("{method} {path}")) {
        Some(fixed) => (
            StatusCode::from_u16(fixed.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            Body::from(fixed.body.to_string()),
        ),
        None => (StatusCode::NOT_FOUND, Body::from(r#"{"message": "Not Found"}"#)),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_of_the_examples_answer() {
        assert!(
            ANSWERS.keys().all(|key| key.split_once(' ').is_some_and(|(_, path)| path.starts_with(PREFIX)))
        );
        assert_eq!(placements()["kind"], "CustomResourceDefinition");
        assert_eq!(answer(&Method::GET, "/demo/github/api/v3/orgs/fleet/repos").status(), StatusCode::OK);
        assert_eq!(
            answer(&Method::POST, "/demo/github/api/v3/orgs/fleet/repos").status(),
            StatusCode::NOT_FOUND
        );
    }
}
