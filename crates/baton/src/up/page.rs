//! What is served on `--listen`: health for scripts, the API and the pages for people, the demo hosts of the examples, and
//! webhooks.

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use super::demo;

/// What is for people, and whatever else `beside` serves.
pub(crate) fn router(for_people: Router, beside: Router) -> Router {
    let healthy = || std::future::ready(plain("ok\n".into()));
    Router::new()
        .route("/healthz", get(healthy))
        .route("/readyz", get(healthy))
        .route(&format!("{}{{*path}}", demo::PREFIX), axum::routing::any(demonstrate))
        .merge(beside)
        .fallback_service(for_people)
}

async fn demonstrate(request: Request) -> Response {
    demo::answer(request.method(), request.uri().path())
}

fn plain(body: bytes::Bytes) -> Response {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::StatusCode;
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn known_paths_are_answered_and_others_are_for_people() {
        let for_people = Router::new().fallback(|| std::future::ready(StatusCode::IM_A_TEAPOT));
        let beside = Router::new().route("/api/webhook", get(|| std::future::ready(StatusCode::ACCEPTED)));
        for (path, expected) in [
            ("/", StatusCode::IM_A_TEAPOT),
            ("/healthz", StatusCode::OK),
            ("/readyz", StatusCode::OK),
            ("/api/webhook", StatusCode::ACCEPTED),
            ("/api/v1/applications", StatusCode::IM_A_TEAPOT),
            ("/demo/gitea/api/v1/version", StatusCode::OK),
            ("/demo/nothing", StatusCode::NOT_FOUND),
        ] {
            let request = Request::builder().uri(path).body(Body::empty()).expect("a request");
            let answer =
                router(for_people.clone(), beside.clone()).oneshot(request).await.expect("an answer");
            assert_eq!(answer.status(), expected, "{path}");
        }
    }
}
