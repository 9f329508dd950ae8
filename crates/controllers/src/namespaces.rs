//! Which namespaces ApplicationSets may live in.

use baton_grammar::globs::gobwas;
use regex::{Regex, RegexBuilder};

/// Largest compiled form of one regular expression.
const REGEX_BYTES: usize = 1 << 20;

/// Namespaces by globs, and by regular expressions between slashes.
#[derive(Debug, Clone)]
pub struct AllowedNamespaces {
    own: String,
    patterns: Vec<Pattern>,
}

#[derive(Debug, Clone)]
enum Pattern {
    Glob(gobwas::Pattern),
    Regex(Regex),
}

/// A pattern that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("namespace pattern {pattern:?}: {why}")]
pub struct PatternError {
    pattern: String,
    why: String,
}

impl AllowedNamespaces {
    /// The controller's own namespace, which is always allowed, and those that match a pattern.
    ///
    /// # Errors
    /// A pattern that is neither a glob nor a regular expression.
    pub fn new(own: &str, patterns: &[String]) -> Result<AllowedNamespaces, PatternError> {
        let patterns = patterns.iter().filter(|pattern| *pattern != own).map(|pattern| read(pattern));
        Ok(AllowedNamespaces { own: own.to_owned(), patterns: patterns.collect::<Result<_, _>>()? })
    }

    /// The controller's own namespace and no other.
    pub(crate) fn only_own(own: &str) -> AllowedNamespaces {
        AllowedNamespaces { own: own.to_owned(), patterns: Vec::new() }
    }

    /// Whether an ApplicationSet may live there.
    pub fn contains(&self, namespace: &str) -> bool {
        let matches = |pattern: &Pattern| match pattern {
            Pattern::Glob(glob) => glob.matches(namespace),
            Pattern::Regex(regex) => regex.is_match(namespace),
        };
        namespace == self.own || self.patterns.iter().any(matches)
    }

    /// The only namespace there is to watch, or none if there may be several.
    pub fn only(&self) -> Option<&str> {
        self.patterns.is_empty().then_some(self.own.as_str())
    }
}

fn read(pattern: &str) -> Result<Pattern, PatternError> {
    let fault = |why: String| PatternError { pattern: pattern.to_owned(), why };
    let inner = pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
    match inner {
        Some(expression) => {
            let built = RegexBuilder::new(expression).size_limit(REGEX_BYTES).build();
            built.map(Pattern::Regex).map_err(|error| fault(error.to_string()))
        }
        None => {
            gobwas::Pattern::new(pattern, &[]).map(Pattern::Glob).map_err(|error| fault(error.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(patterns: &[&str]) -> AllowedNamespaces {
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        AllowedNamespaces::new("argocd", &patterns).expect("patterns")
    }

    #[test]
    fn the_own_namespace_is_always_allowed() {
        assert!(allowed(&[]).contains("argocd"));
        assert!(!allowed(&[]).contains("team"));
        assert_eq!(allowed(&["argocd"]).only(), Some("argocd"));
    }

    #[test]
    fn globs_and_regular_expressions_allow_more() {
        let namespaces = allowed(&["team-*", "/^env-[0-9]+$/", "exact"]);
        for (namespace, expected) in [
            ("team-a", true),
            ("team", false),
            ("env-12", true),
            ("env-x", false),
            ("my-env-1", false),
            ("exact", true),
            ("exactly", false),
        ] {
            assert_eq!(namespaces.contains(namespace), expected, "{namespace}");
        }
        assert_eq!(namespaces.only(), None);
    }

    #[test]
    fn a_broken_pattern_is_named() {
        let error = AllowedNamespaces::new("argocd", &["/(/".to_owned()]).expect_err("broken");
        assert!(error.to_string().starts_with("namespace pattern \"/(/\": "), "{error}");
    }
}
