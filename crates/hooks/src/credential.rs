//! What carries credentials by its name, and what of its value is one.
//!
//! Credentials belong into Secrets. Who writes one out in a set is warned, and it is kept out of what is told all the
//! same.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_api::phases::{CommandCall, HttpCall};
use http::{HeaderName, header};

/// How names of headers end that carry credentials.
const HEADERS: [&str; 9] = [
    "authorization",
    "token",
    "api-key",
    "apikey",
    "access-key",
    "secret",
    "password",
    "credential",
    "credentials",
];

/// How names of variables end that hold credentials.
const VARIABLES: [&str; 14] = [
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "SECRET",
    "CREDENTIAL",
    "CREDENTIALS",
    "API_KEY",
    "APIKEY",
    "ACCESS_KEY",
    "SECRET_KEY",
    "PRIVATE_KEY",
    "AUTHORIZATION",
    "COOKIE",
];

/// Whether a header carries credentials.
pub(crate) fn is_header(name: &HeaderName) -> bool {
    *name == header::COOKIE
        || name.as_str().starts_with("proxy-")
        || HEADERS.iter().any(|end| name.as_str().ends_with(end))
}

/// Whether a variable holds a credential.
pub(crate) fn is_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    VARIABLES.iter().any(|end| name.ends_with(end))
}

/// Whether a header carries credentials, by a name that may be none.
pub(crate) fn is_header_named(name: &str) -> bool {
    HeaderName::try_from(name).is_ok_and(|name| is_header(&name))
}

/// The credentials of a call, by the names of its headers and variables.
pub(crate) fn of_call(http: Option<&HttpCall>, command: Option<&CommandCall>) -> Vec<String> {
    let headers = http.into_iter().flat_map(|call| &call.headers).filter(|(name, _)| is_header_named(name));
    let variables = command.into_iter().flat_map(|call| &call.env).filter(|(name, _)| is_variable(name));
    let of_headers = headers.flat_map(|(_, value)| parts(value));
    let all = of_headers.chain(variables.map(|(_, value)| value.clone()));
    // The name of a Secret is none: to hide it would hide from people what is missing.
    all.filter(|part| !part.contains("{{")).collect()
}

/// What is a credential in the value of a header: what follows the name of a scheme, the values of cookies, and the
/// password that `Basic` wraps.
pub(crate) fn parts(value: &str) -> Vec<String> {
    let value = value.trim();
    let mut parts = Vec::new();
    let (scheme, rest) = value.split_once(' ').unwrap_or(("", value));
    let is_scheme =
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let bare = if is_scheme { rest.trim() } else { value };
    parts.push(bare.to_owned());
    for pair in bare.split([';', ',']) {
        if let Some((_, value)) = pair.split_once('=') {
            parts.push(value.trim().trim_matches('"').to_owned());
        }
    }
    let pair = STANDARD.decode(bare).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    if let Some((_, password)) = pair.as_deref().and_then(|pair| pair.split_once(':')) {
        parts.push(password.to_owned());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_known_by_the_names_people_give_them() {
        for (name, expected) in [
            ("Authorization", true),
            ("cookie", true),
            ("Proxy-Anything", true),
            ("X-Api-Key", true),
            ("DD-API-KEY", true),
            ("Private-Token", true),
            ("X-Vault-Token", true),
            ("X-Webhook-Secret", true),
            ("Content-Type", false),
            ("X-Token-Count", false),
            ("not a name", false),
        ] {
            assert_eq!(is_header_named(name), expected, "{name}");
        }
        for (name, expected) in [
            ("API_TOKEN", true),
            ("db_password", true),
            ("AWS_SECRET_ACCESS_KEY", true),
            ("SIGNING_PRIVATE_KEY", true),
            ("TOKEN_FILE", false),
            ("TARGET", false),
        ] {
            assert_eq!(is_variable(name), expected, "{name}");
        }
    }

    #[test]
    fn of_a_header_the_credential_is_found_and_not_its_scheme() {
        assert_eq!(parts("Bearer abc.def"), ["abc.def"]);
        assert_eq!(parts("plain-key"), ["plain-key"]);
        assert_eq!(parts("session=abcd; theme=\"dark\""), ["session=abcd; theme=\"dark\"", "abcd", "dark"]);
        // alice:opensesame
        assert_eq!(parts("Basic YWxpY2U6b3BlbnNlc2FtZQ=="), ["YWxpY2U6b3BlbnNlc2FtZQ==", "=", "opensesame"]);
    }
}
