//! The page on `--listen`: health for scripts, first steps for people.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use super::fleet::Member;

/// Answers until dropped.
pub(crate) async fn serve(listener: TcpListener, text: String) -> Infallible {
    let text = Bytes::from(text);
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let text = text.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let answer = answer(request.uri().path(), text.clone());
                async move { Ok::<_, Infallible>(answer) }
            });
            let _ = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(std::time::Duration::from_secs(15))
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

fn answer(path: &str, text: Bytes) -> Response<Full<Bytes>> {
    let (status, body) = match path {
        "/healthz" | "/readyz" => (StatusCode::OK, Bytes::from_static(b"ok\n")),
        "/" => (StatusCode::OK, text),
        _ => (StatusCode::NOT_FOUND, Bytes::from_static(b"not found\n")),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert("content-type", http::HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert("x-content-type-options", http::HeaderValue::from_static("nosniff"));
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
    use super::*;

    #[test]
    fn health_is_ok_and_unknown_paths_are_not_found() {
        assert_eq!(answer("/healthz", Bytes::new()).status(), StatusCode::OK);
        assert_eq!(answer("/nothing", Bytes::new()).status(), StatusCode::NOT_FOUND);
    }
}
