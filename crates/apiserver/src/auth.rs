//! Who is asking.

use std::fmt;

use crate::authorization::account_groups;

/// A caller that has been let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// User name.
    pub name: String,
    /// Group names.
    pub groups: Vec<String>,
}

impl User {
    /// The owner of the cluster.
    pub fn admin() -> User {
        User {
            name: "kubernetes-admin".into(),
            groups: vec!["system:masters".into(), "system:authenticated".into()],
        }
    }
}

impl User {
    /// The service account of this name.
    pub fn service_account(namespace: &str, name: &str) -> User {
        let groups = account_groups(namespace).into_iter().chain(["system:authenticated".to_owned()]);
        User { name: format!("system:serviceaccount:{namespace}:{name}"), groups: groups.collect() }
    }
}

/// A text that must not be printed.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The secret itself, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not tell where the texts differ.
    pub fn matches(&self, candidate: &str) -> bool {
        let (own, other) = (self.0.as_bytes(), candidate.as_bytes());
        own.len() == other.len() && own.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_compare_and_do_not_print() {
        let secret = Secret::new("abc");
        assert!(secret.matches("abc"));
        assert!(!secret.matches("abd"));
        assert!(!secret.matches("ab"));
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}
