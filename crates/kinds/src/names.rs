//! Rules for names that are particular to some kinds; the general ones are in [`baton_schema::names`].
//!
//! Each rule yields what is wrong with a name, in Kubernetes' words; nothing means the name is fine.

use baton_schema::names::{
    NameRule, SUBDOMAIN_LONGEST, dns1123_label, dns1123_subdomain, longer_than, path_segment_name,
    pattern_text,
};

use crate::Kind;

/// A CronJob's name plus the suffix of its Jobs must fit the Jobs' own limit.
const CRON_JOB_LONGEST: usize = 52;

impl Kind {
    /// The rule for `metadata.name`.
    pub fn name_rule(&self) -> NameRule {
        match (self.group, self.plural) {
            ("", "namespaces" | "services") => dns1123_label,
            ("", "events") | ("events.k8s.io", _) | ("rbac.authorization.k8s.io", _) => path_segment_name,
            ("networking.k8s.io", "ipaddresses") => address,
            ("authentication.k8s.io" | "authorization.k8s.io", _) => anything,
            ("batch", "cronjobs") => cron_job,
            _ => dns1123_subdomain,
        }
    }
}

/// A key of a ConfigMap or Secret, which may become a file name.
pub(crate) fn config_key(key: &str) -> Vec<String> {
    let mut wrong = longer_than(key, SUBDOMAIN_LONGEST);
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if key.is_empty() || !key.bytes().all(known) {
        wrong.push(pattern_text(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
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
pub(crate) fn variable_name(name: &str) -> Vec<String> {
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
pub(crate) fn port_name(name: &str) -> Vec<String> {
    const LONGEST: usize = 15;
    let mut wrong = longer_than(name, LONGEST);
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

fn cron_job(name: &str) -> Vec<String> {
    let mut wrong = dns1123_subdomain(name);
    wrong.extend(longer_than(name, CRON_JOB_LONGEST));
    wrong
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn keys_ports_and_variables_have_their_own_rules() {
        assert!(config_key("..data").contains(&"must not start with '..'".to_owned()));
        assert!(variable_name("a b-c.d").is_empty());
        assert_eq!(variable_name("a=b").len(), 1);
        assert_eq!(variable_name("").len(), 1);
        assert!(port_name("http-2").is_empty());
        assert_eq!(port_name("80"), ["must contain at least one letter (a-z)"]);
        assert_eq!(port_name("-a--").len(), 2);
    }
}
