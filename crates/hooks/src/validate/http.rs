//! What is wrong with an HTTP call.

use std::collections::BTreeMap;

use baton_api::phases::{ExpectedStatus, HttpCall, HttpMethod};
use http::HeaderName;
use url::{Host, Url};

use super::{Findings, Item, Policy, validate_credential, validate_no_secrets, validate_text};
use crate::http::reserved;
use crate::{credential, text};

const LONGEST_URL: usize = 2048;
const LONGEST_BODY: usize = 256 << 10;
const LONGEST_HEADER: usize = 8 << 10;
const MOST_STATUSES: usize = 20;

pub(super) fn validate(
    item: &Item<'_>,
    call: &HttpCall,
    path: &str,
    policy: &Policy,
    findings: &mut Findings,
) {
    if let Err(why) = policy.calls {
        findings.error(path, why);
    }
    validate_url(item, call, &format!("{path}.url"), policy, findings);
    if let HttpMethod::Other(word) = &call.method
        && !word.is_empty()
    {
        let words = "GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS";
        findings.error(format!("{path}.method"), format!("must be {words}, not {word:?}"));
    }
    validate_headers(item, &call.headers, &format!("{path}.headers"), policy, findings);
    validate_body(item, &call.body, &format!("{path}.body"), policy, findings);
    if let Some(expected) = &call.expected_status {
        validate_status(expected, &format!("{path}.expectedStatus"), findings);
    }
    if call.insecure_skip_verify && !policy.allow_insecure_tls {
        let hint = "add the receiver's authority with --hooks-ca, or let the operator allow it with \
                    --hooks-allow-insecure-tls";
        findings.error(
            format!("{path}.insecureSkipVerify"),
            format!("certificates are always verified here; {hint}"),
        );
    }
}

fn validate_url(item: &Item<'_>, call: &HttpCall, path: &str, policy: &Policy, findings: &mut Findings) {
    let written = call.url.as_str();
    if written.is_empty() {
        return findings.error(path, "a URL is needed");
    }
    if written.len() > LONGEST_URL {
        return findings
            .error(path, format!("a URL may have {LONGEST_URL} bytes, this has {}", written.len()));
    }
    // The reader of URLs drops tabs and line ends silently, so that another URL is called than a person reads.
    if written.chars().any(char::is_control) || written.trim() != written {
        return findings.error(path, "holds a control character, a line end or a blank at its edge");
    }
    validate_text(item, written, path, policy, findings);
    let templated = !policy.filled && text::is_template(written);
    if !policy.filled {
        validate_no_secrets(written, path, "send it in a header", findings);
    }
    let outline = if templated { text::outline(written) } else { written.to_owned() };
    // Where a template makes up the beginning, only the filled-in text can be judged.
    if templated && written.find("{{") < written.find("://") {
        return;
    }
    // The reader of URLs takes what follows for the host, however many slashes stand before it.
    let is_web = |scheme: &str| ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    if let Some((scheme, rest)) = outline.split_once("://")
        && is_web(scheme)
        && rest.starts_with(['/', '\\', '?', '#'])
    {
        return findings.error(path, "the URL has no host");
    }
    match Url::parse(&outline) {
        Ok(url) => validate_parsed(&url, templated && has_open_host(written), path, policy, findings),
        // What templates stand for may be what is missing.
        Err(_) if templated => {}
        Err(fault) => {
            findings.error(path, format!("is no URL: {fault}; write for example https://host/path"))
        }
    }
}

/// Whether a template makes up the host, or a part of it.
fn has_open_host(written: &str) -> bool {
    let rest = written.split_once("://").map_or(written, |(_, rest)| rest);
    rest.split(['/', '\\', '?', '#']).next().is_some_and(|host| host.contains("{{"))
}

fn validate_parsed(url: &Url, open_host: bool, path: &str, policy: &Policy, findings: &mut Findings) {
    match url.scheme() {
        "https" => {}
        "http" if policy.allow_http => {}
        "http" => findings.error(
            path,
            "http:// is not encrypted; use https://, or let the operator allow it with --hooks-allow-http",
        ),
        other => return findings.error(path, format!("the scheme {other:?} is not allowed; use https://")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        let hint = "use an Authorization header filled in from secretRefs";
        findings.error(path, format!("user names and passwords do not belong into a URL; {hint}"));
    }
    // With a template in the host, what stands beside it is a part of a name only.
    let address = match url.host() {
        Some(Host::Ipv4(address)) => address.into(),
        Some(Host::Ipv6(address)) => address.into(),
        Some(Host::Domain(name)) if is_local(name) => std::net::Ipv4Addr::LOCALHOST.into(),
        Some(Host::Domain(_)) => return,
        None => return findings.error(path, "the URL has no host"),
    };
    let host = url.host_str().unwrap_or_default();
    if !open_host && let Err(inward) = policy.allow.check(host, address) {
        let how = if inward.needs_its_own_entry() { " and this very address" } else { "" };
        let message =
            format!("{host} {}; the operator can allow it with --hooks-allow{how}", inward.describe());
        findings.error(path, message);
    }
}

fn is_local(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

fn validate_headers(
    item: &Item<'_>,
    headers: &BTreeMap<String, String>,
    path: &str,
    policy: &Policy,
    findings: &mut Findings,
) {
    let most = policy.limits.headers;
    if headers.len() > most {
        findings.error(path, format!("{} headers are more than the {most} that are allowed", headers.len()));
    }
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (written, value) in headers {
        let path = format!("{path}[{}]", written.escape_debug());
        let Ok(name) = HeaderName::try_from(written.as_str()) else {
            findings.error(path, "is no name of a header");
            continue;
        };
        if let Some(other) = seen.insert(name.as_str().to_owned(), written) {
            findings.error(path, format!("is the same header as {other}; case makes no difference"));
            continue;
        }
        if let Some(why) = reserved(&name) {
            findings.error(path, format!("{why} and cannot be given; remove it"));
            continue;
        }
        validate_value(value, &path, findings);
        match credential::is_header(&name) {
            true => validate_credential(item, value, &path, policy, findings),
            false => validate_text(item, value, &path, policy, findings),
        }
    }
}

fn validate_value(value: &str, path: &str, findings: &mut Findings) {
    if value.len() > LONGEST_HEADER {
        findings.error(path, format!("a header may have {LONGEST_HEADER} bytes, this has {}", value.len()));
    } else if !value.bytes().all(|byte| byte == b'\t' || byte == b' ' || byte.is_ascii_graphic()) {
        findings.error(path, "the value holds a line end, a control character or other text than ASCII");
    }
}

fn validate_body(item: &Item<'_>, body: &str, path: &str, policy: &Policy, findings: &mut Findings) {
    if body.len() > LONGEST_BODY {
        findings.error(path, format!("a body may have {LONGEST_BODY} bytes, this has {}", body.len()));
    }
    validate_text(item, body, path, policy, findings);
}

fn validate_status(expected: &ExpectedStatus, path: &str, findings: &mut Findings) {
    let statuses = match expected {
        ExpectedStatus::One(status) => std::slice::from_ref(status),
        ExpectedStatus::AnyOf(statuses) => statuses.as_slice(),
        ExpectedStatus::Other(serde_json::Value::String(text)) if text.parse::<u16>().is_ok() => {
            return findings.error(path, format!("must be a number: write {text} without quotes"));
        }
        ExpectedStatus::Other(_) => {
            return findings.error(path, "must be a status such as 200, or a list such as [200, 204]");
        }
    };
    if statuses.is_empty() {
        findings.error(path, "an empty list would accept no answer; leave it out for 200");
    }
    if statuses.len() > MOST_STATUSES {
        findings.error(
            path,
            format!("{} statuses are more than the {MOST_STATUSES} that are allowed", statuses.len()),
        );
    }
    for status in statuses.iter().filter(|status| !(200..=599).contains(*status)) {
        findings.error(path, format!("{status} is not the status of an answer, which is from 200 to 599"));
    }
}
