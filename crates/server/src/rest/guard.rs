//! What a request must carry, and what an answer carries, whatever they are about.

use http::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN};
use http::{HeaderMap, Method};

use crate::error::{Code, Error};

/// Says which request it is.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// What a page of ours may do: everything from here, nothing from elsewhere.
const POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
    connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
/// What the answer of the API may do as a page: nothing.
const API_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";

/// The id of a request: the sender's, where it is one that can stand in a log, or a new one.
pub(super) fn request_id(headers: &HeaderMap) -> String {
    let sound = |text: &&str| {
        (1..=64).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let given = headers.get(&REQUEST_ID).and_then(|value| value.to_str().ok()).filter(sound);
    given.map_or_else(crate::auth::fresh_id, str::to_owned)
}

/// Whether the sender wants server-sent events.
pub(super) fn wants_events(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(http::header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepts.into_iter().any(|value| value.contains("text/event-stream"))
}

/// Lets only requests change something that a form of a foreign page cannot make.
///
/// # Errors
/// It is not JSON by its own word.
pub(super) fn check_content(method: &Method, headers: &HeaderMap) -> Result<(), Error> {
    if matches!(*method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (kind, parameter) = kind.split_once(';').unwrap_or((kind, ""));
    let utf8 =
        matches!(parameter.trim().to_ascii_lowercase().as_str(), "" | "charset=utf-8" | "charset=\"utf-8\"");
    match kind.trim().eq_ignore_ascii_case("application/json") && utf8 {
        true => Ok(()),
        false => Err(Error::new(Code::InvalidArgument, UNSUPPORTED)),
    }
}

/// What stands for a body of another kind; it has a status of its own.
pub(super) const UNSUPPORTED: &str = "Invalid content type";
/// What stands for a body that is not sent; it has a status of its own too.
pub(super) const SLOW: &str = "the body did not come in time";

/// Lets a request that a browser sends by itself change something only if a page of ours made it.
///
/// # Errors
/// A page of another origin made it, or nobody says.
pub(super) fn check_origin(headers: &HeaderMap, url: Option<&str>) -> Result<(), Error> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let foreign = || Error::new(Code::PermissionDenied, "the request comes from a page of another origin");
    let site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    if site.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
        return Err(foreign());
    }
    let Some(origin) = text(&ORIGIN) else {
        // Browsers send one of the two with every request that changes something.
        return if site.is_some() { Ok(()) } else { Err(foreign()) };
    };
    let host = origin.split_once("://").map(|(_, host)| host);
    let own = text(&HOST).is_some_and(|own| host == Some(own));
    let known = url
        .map(|url| url.trim_end_matches('/'))
        .is_some_and(|url| url == origin || url.starts_with(&format!("{origin}/")));
    if own || known { Ok(()) } else { Err(foreign()) }
}

/// Adds what every answer carries.
pub(super) fn protect(headers: &mut HeaderMap, id: &str, is_api: bool, secure: bool) {
    let policy = if is_api { API_POLICY } else { POLICY };
    for (name, value) in [
        ("content-security-policy", policy),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if secure {
        let value = HeaderValue::from_static("max-age=31536000");
        headers.insert(HeaderName::from_static("strict-transport-security"), value);
    }
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, id);
    }
}

/// Lets pages of others show an answer: a badge is made for them.
pub(super) fn open_to_pages(headers: &mut HeaderMap) {
    for (name, value) in
        [("cross-origin-resource-policy", "cross-origin"), ("access-control-allow-origin", "*")]
    {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().expect("a name"), HeaderValue::from_str(value).expect("a value"))
        };
        all.iter().map(pair).collect()
    }

    #[test]
    fn only_json_changes_something() {
        for (kind, sound) in [
            ("application/json", true),
            ("application/json; charset=utf-8", true),
            ("Application/JSON", true),
            ("application/json; charset=latin1", false),
            ("application/json; boundary=x", false),
            ("application/x-www-form-urlencoded", false),
            ("text/plain", false),
            ("", false),
        ] {
            let checked = check_content(&Method::DELETE, &headers(&[("content-type", kind)]));
            assert_eq!(checked.is_ok(), sound, "{kind}");
        }
        assert!(check_content(&Method::GET, &HeaderMap::new()).is_ok());
        assert!(check_content(&Method::DELETE, &HeaderMap::new()).is_err());
    }

    #[test]
    fn only_our_own_pages_use_our_cookie() {
        let own = ("host", "cd.example.com");
        for (sent, sound) in [
            (vec![own, ("origin", "https://cd.example.com")], true),
            (vec![own, ("origin", "https://evil.example.com")], false),
            (vec![own, ("origin", "null")], false),
            (vec![own, ("origin", "https://cd.example.com.evil.com")], false),
            (vec![own, ("sec-fetch-site", "same-origin")], true),
            (vec![own, ("sec-fetch-site", "same-site"), ("origin", "https://cd.example.com")], false),
            (vec![own, ("sec-fetch-site", "cross-site")], false),
            (vec![own], false),
        ] {
            assert_eq!(check_origin(&headers(&sent), None).is_ok(), sound, "{sent:?}");
        }
        let behind = headers(&[("host", "10.0.0.1:8080"), ("origin", "https://cd.example.com")]);
        assert!(check_origin(&behind, Some("https://cd.example.com/")).is_ok());
        assert!(check_origin(&behind, Some("https://cd.example.community")).is_err());
    }

    #[test]
    fn an_id_that_could_forge_a_line_is_none() {
        assert_eq!(request_id(&headers(&[("x-request-id", "abc-1")])), "abc-1");
        for id in ["a b", "a\tb", "<x>", &"x".repeat(65)] {
            assert_ne!(request_id(&headers(&[("x-request-id", id)])), id);
        }
    }
}
