//! What a client asks for, as far as the proxy cares.

use std::fmt::Write;

use http::header::{CONNECTION, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, Method};
use percent_encoding::percent_decode_str;

/// The kinds of requests that are treated differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Events of a collection.
    Watch {
        /// The collection and what is wanted of it, the same for each watch that goes on where another ended.
        of: String,
        /// The version it goes on from; `None` begins anew.
        from: Option<String>,
    },
    /// A collection from its first object on, which a cache may answer.
    List {
        /// The collection and what is wanted of it, however new.
        of: String,
        /// Whether it has to be the newest.
        is_consistent: bool,
    },
    /// A connection for something that is not HTTP.
    Upgrade,
    /// Anything else: passed on as it is.
    Other,
}

/// Parameters that say how new an answer has to be and for how long it may take, not what is wanted.
const FRESHNESS: [&str; 3] = ["resourceVersion", "resourceVersionMatch", "timeoutSeconds"];

/// Reads a request.
pub(crate) fn asked(head: &Parts) -> Asked {
    if is_upgrade(&head.headers) || head.method == Method::CONNECT {
        return Asked::Upgrade;
    }
    if head.method != Method::GET {
        return Asked::Other;
    }
    let path = head.uri.path();
    let query = Query::read(head.uri.query().unwrap_or_default());
    match place(path) {
        Place::Collection if query.flag("watch") => watch(path, &query),
        Place::Watched => watch(path, &query),
        Place::Collection => list(head, &query),
        Place::Other => Asked::Other,
    }
}

fn watch(path: &str, query: &Query) -> Asked {
    let version = query.get("resourceVersion").filter(|version| !["", "0"].contains(version));
    let from = version.filter(|_| !query.flag("sendInitialEvents")).map(str::to_owned);
    Asked::Watch { of: query.of(path), from }
}

fn list(head: &Parts, query: &Query) -> Asked {
    // An answer is kept for whoever asks the same; who asks for somebody else, or in pages, is not answered by it.
    let asks_for_others = head.headers.keys().any(|name| name.as_str().starts_with("impersonate-"));
    if asks_for_others || query.get("continue").is_some_and(|page| !page.is_empty()) {
        return Asked::Other;
    }
    let accept =
        head.headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("*/*");
    let of = format!("{} as {accept}", query.of(head.uri.path()));
    match query.get("resourceVersion").unwrap_or_default() {
        "" => Asked::List { of, is_consistent: true },
        "0" => Asked::List { of, is_consistent: false },
        // At least, or exactly, that version: an older one would be a lie.
        _ => Asked::Other,
    }
}

/// Whether the client wants to speak something else than HTTP: exec, attach and port-forward do.
fn is_upgrade(headers: &HeaderMap) -> bool {
    let asks = |value: &http::HeaderValue| {
        value
            .to_str()
            .is_ok_and(|text| text.split(',').any(|word| word.trim().eq_ignore_ascii_case("upgrade")))
    };
    headers.contains_key(UPGRADE) || headers.get_all(CONNECTION).iter().any(asks)
}

/// What a path names.
enum Place {
    /// All objects of a kind, or those in a namespace.
    Collection,
    /// The old form of a watch, `/api/v1/watch/…`.
    Watched,
    Other,
}

fn place(path: &str) -> Place {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let rest = match parts.as_slice() {
        ["api", _version, rest @ ..] | ["apis", _, _version, rest @ ..] => rest,
        _ => return Place::Other,
    };
    match rest {
        ["watch", _, ..] => Place::Watched,
        // Subresources of a namespace itself.
        ["namespaces", _, "status" | "finalize"] => Place::Other,
        [_plural] | ["namespaces", _, _plural] => Place::Collection,
        _ => Place::Other,
    }
}

/// The parameters of a request.
struct Query(Vec<(String, String)>);

impl Query {
    fn read(text: &str) -> Query {
        let decode =
            |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        });
        Query(pairs.collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// As Kubernetes reads one: everything but no is yes.
    fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// What is asked for, in one spelling however the parameters are ordered.
    fn of(&self, path: &str) -> String {
        let mut wanted: Vec<&(String, String)> =
            self.0.iter().filter(|(key, _)| !FRESHNESS.contains(&key.as_str())).collect();
        wanted.sort();
        let mut text = path.to_owned();
        for (key, value) in wanted {
            // Quoted, so that no value looks like a parameter. Writing to a text cannot fail.
            let _ = write!(text, " {key:?}={value:?}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &str, uri: &str, headers: &[(&str, &str)]) -> Asked {
        let mut request = http::Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        asked(&request.body(()).expect("a request").into_parts().0)
    }

    fn get(uri: &str) -> Asked {
        of("GET", uri, &[])
    }

    fn from(uri: &str) -> Option<String> {
        match get(uri) {
            Asked::Watch { from, .. } => from,
            other => panic!("{uri} is {other:?}"),
        }
    }

    #[test]
    fn watches_are_told_from_lists_and_objects() {
        for uri in [
            "/api/v1/pods?watch=true",
            "/api/v1/pods?watch",
            "/api/v1/namespaces?watch=1",
            "/api/v1/namespaces/a/pods?watch=1&resourceVersion=5",
            "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications?watch=True",
            "/api/v1/watch/namespaces/a/pods/web",
        ] {
            assert!(matches!(get(uri), Asked::Watch { .. }), "{uri}");
        }
        for uri in
            ["/api/v1/pods", "/api/v1/namespaces/a/pods?watch=false", "/apis/apps/v1/deployments?watch=0"]
        {
            assert!(matches!(get(uri), Asked::List { .. }), "{uri}");
        }
        for uri in [
            "/",
            "/version",
            "/api/v1",
            "/apis/apps/v1",
            "/api/v1/namespaces/a",
            "/api/v1/namespaces/a/status",
            "/api/v1/namespaces/a/pods/web?watch=true",
            "/api/v1/namespaces/a/pods/web/log?follow=true",
            "/api/v1/pods?continue=abc",
            "/api/v1/pods?resourceVersion=7",
        ] {
            assert_eq!(get(uri), Asked::Other, "{uri}");
        }
        for method in ["POST", "DELETE"] {
            assert_eq!(of(method, "/api/v1/namespaces/a/pods?watch=true", &[]), Asked::Other);
        }
        assert_eq!(of("GET", "/api/v1/pods", &[("impersonate-user", "jane")]), Asked::Other);
    }

    #[test]
    fn only_a_watch_that_goes_on_has_a_version() {
        assert_eq!(from("/api/v1/pods?watch=1&resourceVersion=5").as_deref(), Some("5"));
        for query in
            ["", "&resourceVersion=", "&resourceVersion=0", "&resourceVersion=5&sendInitialEvents=true"]
        {
            assert_eq!(from(&format!("/api/v1/pods?watch=1{query}")), None, "{query}");
        }
    }

    #[test]
    fn a_list_may_be_old_where_the_client_says_so() {
        let consistent = |uri: &str| match get(uri) {
            Asked::List { is_consistent, .. } => is_consistent,
            other => panic!("{uri} is {other:?}"),
        };
        assert!(consistent("/api/v1/pods?limit=500"));
        assert!(consistent("/api/v1/pods?resourceVersion="));
        assert!(!consistent("/api/v1/pods?resourceVersion=0"));
        assert!(!consistent("/api/v1/pods?resource%56ersion=0"));
    }

    #[test]
    fn the_same_is_asked_for_however_it_is_written() {
        assert_eq!(
            get("/api/v1/pods?limit=5&labelSelector=a%3Db&resourceVersion=0"),
            get("/api/v1/pods?resourceVersion=0&labelSelector=a=b&limit=5&timeoutSeconds=3")
        );
        assert_ne!(get("/api/v1/pods?limit=5"), get("/api/v1/pods?limit=6"));
        let table = of("GET", "/api/v1/pods", &[("accept", "application/json;as=Table")]);
        assert_ne!(get("/api/v1/pods"), table, "another form is another answer");
        // A value that looks like another parameter does not become one.
        assert_ne!(get("/api/v1/pods?a=1%22%20b=%222"), get("/api/v1/pods?a=1&b=2"));
    }

    #[test]
    fn what_is_no_http_is_told() {
        for (name, value) in [("upgrade", "SPDY/3.1"), ("connection", "keep-alive, Upgrade")] {
            assert_eq!(of("POST", "/api/v1/namespaces/a/pods/web/exec", &[(name, value)]), Asked::Upgrade);
        }
        assert_eq!(of("CONNECT", "example.com:443", &[]), Asked::Upgrade);
        assert_eq!(of("GET", "/version", &[("connection", "keep-alive")]), Asked::Other);
    }
}
