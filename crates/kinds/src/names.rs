//! Rules for names: of objects, containers, ports, keys, labels.
//!
//! Each rule yields what is wrong with a name, in Kubernetes' words; nothing means the name is fine.

use std::sync::OnceLock;

use regex::Regex;

use crate::Kind;

/// A rule for names: what is wrong, or nothing.
pub type NameRule = fn(&str) -> Vec<String>;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const CONFIG_KEY: &str = "[-._a-zA-Z0-9]+";

const LABEL_LENGTH: usize = 63;
const SUBDOMAIN_LENGTH: usize = 253;
/// A CronJob's name plus the suffix of its Jobs must fit the Jobs' own limit.
const CRON_JOB_LENGTH: usize = 52;

impl Kind {
    /// The rule for `metadata.name`.
    pub fn name_rule(&self) -> NameRule {
        match (self.group, self.plural) {
            ("", "namespaces" | "services") => label,
            ("", "events") | ("events.k8s.io", _) | ("rbac.authorization.k8s.io", _) => path_segment,
            ("networking.k8s.io", "ipaddresses") => address,
            ("authentication.k8s.io" | "authorization.k8s.io", _) => anything,
            _ => subdomain,
        }
    }
}

/// What a name that becomes part of a path must obey, whatever its kind.
pub fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    ['/', '%'].iter().filter(|c| name.contains(**c)).map(|c| format!("may not contain '{c}'")).collect()
}

/// A lowercase RFC 1123 label.
pub fn label(name: &str) -> Vec<String> {
    static RULE: OnceLock<Regex> = OnceLock::new();
    let mut wrong = too_long(name, LABEL_LENGTH);
    if !matches(&RULE, LABEL, name) {
        // A name that would do but for its dots deserves to be told so.
        if subdomain(name).is_empty() {
            wrong.push("must not contain dots".into());
        } else {
            wrong.push(mismatch(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
                 end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            ));
        }
    }
    wrong
}

/// A lowercase RFC 1123 subdomain: labels joined by dots.
pub fn subdomain(name: &str) -> Vec<String> {
    static RULE: OnceLock<Regex> = OnceLock::new();
    let mut wrong = too_long(name, SUBDOMAIN_LENGTH);
    if !matches(&RULE, SUBDOMAIN, name) {
        wrong.push(mismatch(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
             and end with an alphanumeric character",
            SUBDOMAIN,
            &["example.com"],
        ));
    }
    wrong
}

/// An RFC 1035 label: a label that starts with a letter.
pub fn label_1035(name: &str) -> Vec<String> {
    static RULE: OnceLock<Regex> = OnceLock::new();
    let mut wrong = too_long(name, LABEL_LENGTH);
    if !matches(&RULE, LABEL_1035, name) {
        wrong.push(mismatch(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character",
            LABEL_1035,
            &["my-name", "abc-123"],
        ));
    }
    wrong
}

/// A subdomain whose first label may be `*`.
pub(crate) fn wildcard_subdomain(name: &str) -> Vec<String> {
    const WILDCARD: &str = r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
    static RULE: OnceLock<Regex> = OnceLock::new();
    let mut wrong = too_long(name, SUBDOMAIN_LENGTH);
    if !matches(&RULE, WILDCARD, name) {
        wrong.push(mismatch(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of \
             lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            WILDCARD,
            &["*.example.com"],
        ));
    }
    wrong
}

/// A label key: a name of at most 63 characters, optionally behind a subdomain and a slash.
pub fn qualified(key: &str) -> Vec<String> {
    static RULE: OnceLock<Regex> = OnceLock::new();
    const TEXT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                        alphanumeric character";
    const EXAMPLES: &[&str] = &["MyName", "my.name", "123-abc"];
    let mut wrong = Vec::new();
    let mut parts = key.split('/');
    let (first, second, rest) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let name = match (second, rest) {
        (None, _) => first,
        (Some(name), None) => {
            if first.is_empty() {
                wrong.push("prefix part must be non-empty".into());
            } else {
                wrong.extend(subdomain(first).into_iter().map(|text| format!("prefix part {text}")));
            }
            name
        }
        (Some(_), Some(_)) => {
            let text = mismatch(&format!("a valid label key {TEXT}"), QUALIFIED, EXAMPLES);
            return vec![format!(
                "{text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".into());
    } else {
        wrong.extend(too_long(name, LABEL_LENGTH).into_iter().map(|text| format!("name part {text}")));
    }
    if !matches(&RULE, QUALIFIED, name) {
        wrong.push(format!("name part {}", mismatch(TEXT, QUALIFIED, EXAMPLES)));
    }
    wrong
}

/// A label value: empty, or like the name part of a label key.
pub fn label_value(value: &str) -> Vec<String> {
    const VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
    static RULE: OnceLock<Regex> = OnceLock::new();
    let mut wrong = too_long(value, LABEL_LENGTH);
    if !matches(&RULE, VALUE, value) {
        wrong.push(mismatch(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
             and end with an alphanumeric character",
            VALUE,
            &["MyValue", "my_value", "12345"],
        ));
    }
    wrong
}

/// A key of a ConfigMap or Secret, which may become a file name.
pub(crate) fn config_key(key: &str) -> Vec<String> {
    static RULE: OnceLock<Regex> = OnceLock::new();
    let mut wrong = too_long(key, SUBDOMAIN_LENGTH);
    if !matches(&RULE, CONFIG_KEY, key) {
        wrong.push(mismatch(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            CONFIG_KEY,
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match key {
        "." => wrong.push("must not be '.'".into()),
        ".." => wrong.push("must not be '..'".into()),
        _ if key.starts_with("..") => wrong.push("must not start with '..'".into()),
        _ => {}
    }
    wrong
}

/// The name of an environment variable: printable ASCII without `=`.
pub(crate) fn environment_variable(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["environment variable name must be non-empty".into()];
    }
    if name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
        return Vec::new();
    }
    vec![
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
            .into(),
    ]
}

/// The name of a port: at most 15 characters with a letter among them.
pub(crate) fn port(name: &str) -> Vec<String> {
    const LONGEST: usize = 15;
    let mut wrong = too_long(name, LONGEST);
    if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".into());
    }
    if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".into());
    }
    if name.contains("--") {
        wrong.push("must not contain consecutive hyphens".into());
    }
    if name.starts_with('-') || name.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".into());
    }
    wrong
}

/// The extra limit on CronJob names.
pub(crate) fn cron_job_length(name: &str) -> Option<String> {
    (name.len() > CRON_JOB_LENGTH).then(|| format!("must be no more than {CRON_JOB_LENGTH} characters"))
}

fn address(name: &str) -> Vec<String> {
    match name.parse::<std::net::IpAddr>() {
        Ok(address) if address.to_string() == name => Vec::new(),
        Ok(_) => vec!["must be in canonical form".into()],
        Err(_) => vec!["must be a valid IP address".into()],
    }
}

fn anything(_: &str) -> Vec<String> {
    Vec::new()
}

fn too_long(name: &str, longest: usize) -> Vec<String> {
    if name.len() > longest { vec![format!("must be no more than {longest} characters")] } else { Vec::new() }
}

fn matches(rule: &OnceLock<Regex>, pattern: &str, name: &str) -> bool {
    let compile = || Regex::new(&format!("^(?:{pattern})$")).expect("the patterns in this file are valid");
    // `$` would match before a final line break, which no name may carry.
    !name.contains('\n') && rule.get_or_init(compile).is_match(name)
}

fn mismatch(text: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}'")).collect();
    format!("{text} (e.g. {}, regex used for validation is '{pattern}')", examples.join(",  or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_names_are_explained_in_kubernetes_words() {
        let label_text = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                          and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation \
                          is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
        assert_eq!(label("A"), [label_text]);
        assert_eq!(label("a.b"), ["must not contain dots"]);
        assert_eq!(label(&"a".repeat(64)), ["must be no more than 63 characters"]);
        assert_eq!(
            subdomain("A"),
            [
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
              and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
              '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
        assert_eq!(path_segment(".."), ["may not be '..'"]);
        assert_eq!(path_segment("a/b%c"), ["may not contain '/'", "may not contain '%'"]);
        assert_eq!(subdomain("a\n").len(), 1);
    }

    #[test]
    fn rules_follow_the_kind() {
        for (group, plural, good, bad) in [
            ("", "namespaces", "a-1", "a.b"),
            ("", "services", "1a", "a.b"),
            ("", "configmaps", "a.b", "a_b"),
            ("rbac.authorization.k8s.io", "roles", "system:node", "a/b"),
            ("", "events", "A.1", ".."),
            ("networking.k8s.io", "ipaddresses", "::1", "0:0::1"),
        ] {
            let rule = crate::find(group, "v1", plural).expect(plural).name_rule();
            assert!(rule(good).is_empty(), "{plural} {good}");
            assert!(!rule(bad).is_empty(), "{plural} {bad}");
        }
    }

    #[test]
    fn keys_values_ports_and_variables_have_their_own_rules() {
        assert!(qualified("example.com/My_name.1").is_empty());
        assert_eq!(qualified("/a"), ["prefix part must be non-empty"]);
        assert_eq!(qualified("a/b/c").len(), 1);
        assert_eq!(qualified("a/").len(), 2);
        assert!(label_value("").is_empty());
        assert_eq!(label_value("-").len(), 1);
        assert!(config_key("..data").contains(&"must not start with '..'".to_owned()));
        assert!(environment_variable("a b-c.d").is_empty());
        assert_eq!(environment_variable("a=b").len(), 1);
        assert_eq!(environment_variable("").len(), 1);
        assert!(port("http-2").is_empty());
        assert_eq!(port("80"), ["must contain at least one letter (a-z)"]);
        assert_eq!(port("-a--").len(), 2);
        assert!(wildcard_subdomain("*.a.b").is_empty());
        assert_eq!(wildcard_subdomain("*.").len(), 1);
    }
}
