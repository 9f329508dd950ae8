//! What is served on `--listen`: health for scripts, first steps for people, the demo hosts of the examples, and what
//! the controllers serve.

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use super::demo;
use super::fleet::Member;

/// Pages for people, and whatever else `beside` serves.
pub(crate) fn router(text: String, beside: Router) -> Router {
    let text = bytes::Bytes::from(text);
    let page = move || std::future::ready(plain(text.clone()));
    let healthy = || std::future::ready(plain("ok\n".into()));
    Router::new()
        .route("/", get(page))
        .route("/healthz", get(healthy))
        .route("/readyz", get(healthy))
        .route(&format!("{}{{*path}}", demo::PREFIX), axum::routing::any(demonstrate))
        .merge(beside)
        .fallback(|| std::future::ready((StatusCode::NOT_FOUND, plain("not found\n".into()))))
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

/// What the page says.
pub(crate) fn text(kubeconfig: &str, members: &[Member]) -> String {
    let mut text = format!(
        "Baton is up.\n\nControl plane:\n  kubectl --kubeconfig {kubeconfig} get applicationsets,secrets -A\n\nMember \
         clusters:\n"
    );
    for member in members {
        text.push_str(&format!("  {}\n", member.name));
    }
    text
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn known_paths_are_answered_and_others_are_not_found() {
        for (path, expected) in [
            ("/", StatusCode::OK),
            ("/healthz", StatusCode::OK),
            ("/demo/gitea/api/v1/version", StatusCode::OK),
            ("/demo/nothing", StatusCode::NOT_FOUND),
            ("/nothing", StatusCode::NOT_FOUND),
        ] {
            let request = Request::builder().uri(path).body(Body::empty()).expect("a request");
            let answer = router(String::new(), Router::new()).oneshot(request).await.expect("an answer");
            assert_eq!(answer.status(), expected, "{path}");
        }
    }
}
