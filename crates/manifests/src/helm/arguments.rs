//! The words of `helm template`.

use std::ffi::OsString;
use std::path::Path;

use baton_api::source::HelmSource;

use super::values::Files;
use crate::environment::Environment;
use crate::error::Fault;
use crate::request::Request;

/// Longest word the system takes, with room to spare.
const MAX_WORD: usize = 100 << 10;

/// The words for a source, the same for the same source.
pub(super) fn of(
    options: &HelmSource,
    environment: &Environment,
    request: &Request<'_>,
    files: &Files,
) -> Result<Vec<OsString>, Fault> {
    let release = stated(&options.release_name, request.name);
    let namespace = stated(&options.namespace, request.namespace);
    let kube_version = kube_version(stated(&options.kube_version, request.kube_version))?;
    let api_versions =
        if options.api_versions.is_empty() { request.api_versions } else { &options.api_versions };
    let mut words = Words(vec!["template".into(), ".".into()]);
    words.pair("--name-template", release);
    if !namespace.is_empty() {
        words.pair("--namespace", namespace);
    }
    if !kube_version.is_empty() {
        words.pair("--kube-version", &kube_version);
    }
    for (at, parameter) in options.parameters.iter().enumerate() {
        let is_same = |other: &baton_api::source::HelmParameter| {
            other.name == parameter.name && other.force_string == parameter.force_string
        };
        // Of several of a name the last counts.
        if options.parameters[at + 1..].iter().any(is_same) {
            continue;
        }
        let word = format!("{}={}", parameter.name, escaped(&environment.expand(&parameter.value)));
        if word.len() > MAX_WORD {
            return Err(Fault::Limit(format!(
                "helm parameter {:?} has more than {MAX_WORD} bytes: use values or a value file",
                parameter.name.chars().take(100).collect::<String>()
            )));
        }
        words.pair(if parameter.force_string { "--set-string" } else { "--set" }, &word);
    }
    for (name, path) in &files.parameters {
        words.pair("--set-file", &format!("{name}={}", escaped(&path.to_string_lossy())));
    }
    for path in &files.values {
        words.path("--values", path);
    }
    for version in api_versions {
        words.pair("--api-versions", version);
    }
    for (is_set, flag) in [
        (!options.skip_crds, "--include-crds"),
        (options.skip_schema_validation, "--skip-schema-validation"),
        (options.skip_tests, "--skip-tests"),
    ] {
        if is_set {
            words.0.push(flag.into());
        }
    }
    Ok(words.0)
}

struct Words(Vec<OsString>);

impl Words {
    /// An option and its value in one word, so that no value can be taken for an option.
    fn pair(&mut self, option: &str, value: &str) {
        self.0.push(format!("{option}={value}").into());
    }

    fn path(&mut self, option: &str, path: &Path) {
        let mut word = OsString::from(option);
        word.push("=");
        word.push(path);
        self.0.push(word);
    }
}

fn stated<'a>(own: &'a str, otherwise: &'a str) -> &'a str {
    if own.is_empty() { otherwise } else { own }
}

/// A parameter's value with its commas escaped, which would begin another parameter; a list in braces is left as it is.
fn escaped(value: &str) -> String {
    if value.starts_with('{') && value.ends_with('}') {
        return value.to_owned();
    }
    let mut escaped = String::with_capacity(value.len());
    let mut before = None;
    for char in value.chars() {
        if char == ',' && before != Some('\\') {
            escaped.push('\\');
        }
        escaped.push(char);
        before = Some(char);
    }
    escaped
}

/// The numbers of a Kubernetes version, which may say more than helm understands: `v1.33.1-gke.100`.
fn kube_version(text: &str) -> Result<String, Fault> {
    if text.is_empty() {
        return Ok(String::new());
    }
    let fault = || {
        let shown: String = text.chars().take(100).collect();
        Fault::Options(format!("could not parse kubernetes version {shown}"))
    };
    let numbers = text.trim().trim_start_matches('v');
    let end = numbers.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(numbers.len());
    let parts: Vec<&str> = numbers[..end].split('.').filter(|part| !part.is_empty()).take(3).collect();
    if parts.len() < 2 || parts.iter().any(|part| part.parse::<u32>().is_err()) {
        return Err(fault());
    }
    Ok(parts.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_are_escaped_outside_lists() {
        let cases = [("a,b", r"a\,b"), (r"a\,b", r"a\,b"), ("{a,b}", "{a,b}"), (",", r"\,"), ("é,", r"é\,")];
        for (value, expected) in cases {
            assert_eq!(escaped(value), expected);
        }
    }

    #[test]
    fn kubernetes_versions_lose_what_helm_does_not_understand() {
        let cases = [
            ("", Some("")),
            ("1.33.1", Some("1.33.1")),
            ("v1.33.1-gke.100", Some("1.33.1")),
            ("1.33+", Some("1.33")),
            ("v1.33.1+k3s1", Some("1.33.1")),
            ("1", None),
            ("latest", None),
            ("1.99999999999", None),
        ];
        for (text, expected) in cases {
            assert_eq!(kube_version(text).ok().as_deref(), expected, "{text}");
        }
    }
}
