//! The web pages, which are a part of the binary.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use bytes::Bytes;

/// Path and content of every file that was there when the binary was built.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The page that stands for every path of the pages themselves.
const INDEX: &str = "/index.html";
/// Files under it have their hash in their name.
const HASHED: &str = "/assets/";
/// What there is instead of pages in a binary without them.
const MISSING: &str = include_str!("missing.html");

/// What a page may do: everything from here, nothing from elsewhere.
const POLICY: &str = "default-src 'self'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
    object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The answer to a request for a page: a file of this path, or the page that finds its way from any other.
pub(crate) fn answer(method: &Method, path: &str, secure: bool) -> Response<Body> {
    answered(FILES, method, path, secure)
}

fn answered(
    files: &[(&'static str, &'static [u8])],
    method: &Method,
    path: &str,
    secure: bool,
) -> Response<Body> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "there is only GET here\n", secure);
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let file = |wanted: &str| files.iter().find(|(name, _)| *name == wanted);
    let (name, content) = match file(path).or_else(|| file(INDEX).filter(|_| !path.starts_with(HASHED))) {
        Some((name, content)) => (*name, *content),
        // A page of another version asks for what is gone; another page in its place would be read as a script.
        None if !files.is_empty() => return plain(StatusCode::NOT_FOUND, "not found\n", secure),
        None => (INDEX, MISSING.as_bytes()),
    };
    let mut response = Response::new(match *method {
        Method::HEAD => Body::empty(),
        _ => Body::from(Bytes::from_static(content)),
    });
    let headers = response.headers_mut();
    protect(headers, secure);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(name)));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(content.len()));
    let kept = if name.starts_with(HASHED) { "public, max-age=31536000, immutable" } else { "no-cache" };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
    response
}

fn plain(status: StatusCode, text: &'static str, secure: bool) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    protect(response.headers_mut(), secure);
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn protect(headers: &mut HeaderMap, secure: bool) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if secure {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
}

/// What a file is, by its name.
fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: &[(&str, &[u8])] =
        &[("/assets/index-Ab12.js", b"1"), ("/baton.svg", b"<svg/>"), ("/index.html", b"<!doctype html>")];

    fn header(response: &Response<Body>, name: HeaderName) -> &str {
        response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    #[test]
    fn files_are_told_by_their_names_and_any_other_path_is_the_index() {
        for (path, kind, kept) in [
            ("/", "text/html; charset=utf-8", "no-cache"),
            ("/rollouts/argocd/web", "text/html; charset=utf-8", "no-cache"),
            ("/../etc/passwd", "text/html; charset=utf-8", "no-cache"),
            ("/baton.svg", "image/svg+xml", "no-cache"),
            (
                "/assets/index-Ab12.js",
                "text/javascript; charset=utf-8",
                "public, max-age=31536000, immutable",
            ),
        ] {
            let answer = answered(SOME, &Method::GET, path, false);
            assert_eq!(answer.status(), StatusCode::OK, "{path}");
            assert_eq!(header(&answer, header::CONTENT_TYPE), kind, "{path}");
            assert_eq!(header(&answer, header::CACHE_CONTROL), kept, "{path}");
            assert!(header(&answer, header::CONTENT_SECURITY_POLICY).contains("default-src 'self'"));
        }
    }

    #[test]
    fn what_is_gone_is_not_found_and_nothing_is_written() {
        assert_eq!(
            answered(SOME, &Method::GET, "/assets/index-Old1.js", false).status(),
            StatusCode::NOT_FOUND
        );
        assert_eq!(answered(SOME, &Method::POST, "/", false).status(), StatusCode::METHOD_NOT_ALLOWED);
    }

    #[test]
    fn a_binary_without_pages_says_how_to_get_them() {
        let answer = answered(&[], &Method::GET, "/approvals", true);
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(header(&answer, header::STRICT_TRANSPORT_SECURITY), "max-age=31536000");
        assert!(MISSING.contains("make ui"));
    }
}
