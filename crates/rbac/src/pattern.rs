//! Patterns of policies, compiled once: globs of gobwas without separators, or regular expressions of Go.

use std::collections::HashMap;
use std::sync::Arc;

use baton_grammar::globs::gobwas;
use baton_grammar::regexp::{self, Regexp};

/// Characters that are more than text and star in a glob.
const GLOB_SPECIALS: &[char] = &['?', '[', '{', '\\'];

/// Characters that are more than text in a regular expression.
const EXPRESSION_SPECIALS: &[char] = &['\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$'];

/// How the patterns of policies are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MatchMode {
    /// As globs over the whole text, in which `*` matches anything, `/` too.
    #[default]
    Glob,
    /// As regular expressions that match anywhere in the text unless they say `^` and `$`, as in Argo CD. There
    /// `applications` is found in `applicationsets`.
    Regex,
}

/// A compiled pattern. Shapes that most patterns have are compared without running a machine.
#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    Anything,
    Text(Box<str>),
    /// A text that is somewhere in it.
    Holds(Box<str>),
    /// Texts before and after one star. gobwas lets them overlap: `a*a` matches `a`.
    Around(Box<str>, Box<str>),
    /// Texts between more than one star.
    Stars {
        head: Box<str>,
        middle: Vec<Box<str>>,
        tail: Box<str>,
    },
    Glob(gobwas::Pattern),
    Expression(Regexp),
    /// A glob that cannot be read. It matches nothing.
    NoGlob(String),
    /// An expression that cannot be read. Whoever is judged by it is refused.
    NoExpression(String),
}

/// What came of comparing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    Yes,
    No,
    /// The pattern cannot be read.
    Unknown,
}

/// The patterns of one policy, each compiled once however many lines have it.
#[derive(Debug)]
pub(crate) struct Patterns {
    seen: HashMap<(MatchMode, String), Arc<Pattern>>,
    /// What expressions may still take to compile, in microseconds as `regexp` counts them.
    left: u64,
}

/// The expressions of a policy take too much to compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooCostly;

// === impl Patterns ===

impl Patterns {
    /// None yet, of which the expressions together may cost so much.
    pub(crate) fn new(most_cost: u64) -> Patterns {
        Patterns { seen: HashMap::new(), left: most_cost }
    }

    pub(crate) fn compile(&mut self, mode: MatchMode, text: &str) -> Result<Arc<Pattern>, TooCostly> {
        let key = (mode, text.to_owned());
        if let Some(pattern) = self.seen.get(&key) {
            return Ok(pattern.clone());
        }
        let pattern = Arc::new(match mode {
            MatchMode::Glob => Pattern::glob(text),
            MatchMode::Regex => {
                // One that cannot be read costs nothing further.
                let cost = regexp::compile_cost(text).unwrap_or(0);
                self.left = self.left.checked_sub(cost).ok_or(TooCostly)?;
                Pattern::expression(text)
            }
        });
        self.seen.insert(key, pattern.clone());
        Ok(pattern)
    }
}

// === impl Pattern ===

impl Pattern {
    fn glob(text: &str) -> Pattern {
        // More than two stars in a row are no single wildcard to gobwas.
        if text.contains(GLOB_SPECIALS) || text.contains("***") {
            return match gobwas::Pattern::new(text, &[]) {
                Ok(pattern) => Pattern::Glob(pattern),
                Err(error) => Pattern::NoGlob(error.to_string()),
            };
        }
        let text = text.replace("**", "*");
        let parts: Vec<&str> = text.split('*').collect();
        match parts[..] {
            ["", ""] => Pattern::Anything,
            [text] => Pattern::Text(text.into()),
            [head, tail] => Pattern::Around(head.into(), tail.into()),
            [head, ref middle @ .., tail] => Pattern::Stars {
                head: head.into(),
                middle: middle.iter().map(|text| (*text).into()).collect(),
                tail: tail.into(),
            },
            [] => Pattern::Text("".into()),
        }
    }

    fn expression(text: &str) -> Pattern {
        if !text.contains(EXPRESSION_SPECIALS) {
            return Pattern::Holds(text.into());
        }
        match Regexp::parse(text) {
            Ok(expression) => Pattern::Expression(expression),
            Err(error) => Pattern::NoExpression(error.to_string()),
        }
    }

    pub(crate) fn compare(&self, text: &str) -> Match {
        let matches = match self {
            Pattern::Anything => true,
            Pattern::Text(wanted) => **wanted == *text,
            Pattern::Holds(wanted) => text.contains(&**wanted),
            Pattern::Around(head, tail) => text.starts_with(&**head) && text.ends_with(&**tail),
            Pattern::Stars { head, middle, tail } => between_stars(text, head, middle, tail),
            Pattern::Glob(pattern) => pattern.matches(text),
            Pattern::Expression(expression) => expression.is_match(text),
            Pattern::NoGlob(_) => false,
            Pattern::NoExpression(_) => return Match::Unknown,
        };
        if matches { Match::Yes } else { Match::No }
    }

    /// Whether a text with such a beginning can match at all, by the text before the first star.
    pub(crate) fn may_begin_with(&self, beginning: &str) -> bool {
        match self {
            Pattern::Text(head) | Pattern::Around(head, _) | Pattern::Stars { head, .. } => {
                head.starts_with(beginning) || beginning.starts_with(&**head)
            }
            _ => true,
        }
    }

    /// Whether comparing leads to no answer.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Pattern::NoExpression(_))
    }

    /// Why it cannot be read.
    pub(crate) fn fault(&self) -> Option<&str> {
        match self {
            Pattern::NoGlob(why) | Pattern::NoExpression(why) => Some(why),
            _ => None,
        }
    }
}

/// Whether the texts stand in this order, none over another. Taking each as early as possible leaves most to the next.
fn between_stars(text: &str, head: &str, middle: &[Box<str>], tail: &str) -> bool {
    let Some(mut rest) = text.strip_prefix(head) else { return false };
    for part in middle {
        let Some(at) = rest.find(&**part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn compare(mode: MatchMode, pattern: &str, text: &str) -> Match {
        Patterns::new(1_000_000).compile(mode, pattern).expect("one pattern is cheap").compare(text)
    }

    #[test]
    fn globs_have_no_separators() {
        for (pattern, text, matches) in [
            ("*", "", true),
            ("*", "a/b", true),
            ("*/*", "a/b/c", true),
            ("*/*", "a", false),
            ("p/*", "p/ns/app", true),
            ("p/*", "p", false),
            ("p/?pp", "p/app", true),
            ("p/?pp", "p//pp", true),
            ("p/[a-c]*", "p/beta", true),
            ("p/[!a-c]*", "p/beta", false),
            ("{p,q}/*", "q/x", true),
            ("{p,q}/*", "r/x", false),
            ("action/*/*/approve-deletion", "action//Pod/approve-deletion", true),
            ("action/*/Rollout/*", "action/argoproj.io/Rollout/resume", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("", "", true),
            ("", "a", false),
            ("A", "a", false),
            ("ü*", "über", true),
        ] {
            let expected = if matches { Match::Yes } else { Match::No };
            assert_eq!(compare(MatchMode::Glob, pattern, text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn a_glob_that_cannot_be_read_matches_nothing_and_such_an_expression_is_no_answer() {
        for pattern in ["[", "[]", "[b-a]", "a[!", "[a-zx]"] {
            assert_eq!(compare(MatchMode::Glob, pattern, pattern), Match::No, "{pattern}");
        }
        for pattern in ["*/*", "(", "a**", "[b-a]", "\\"] {
            assert_eq!(compare(MatchMode::Regex, pattern, pattern), Match::Unknown, "{pattern}");
        }
    }

    #[test]
    fn expressions_match_anywhere() {
        for (pattern, text, matches) in [
            ("applications", "applicationsets", true),
            ("^applications$", "applicationsets", false),
            ("get|sync", "sync", true),
            ("^p/.*-prod$", "p/web-prod", true),
            ("", "anything", true),
        ] {
            let expected = if matches { Match::Yes } else { Match::No };
            assert_eq!(compare(MatchMode::Regex, pattern, text), expected, "{pattern} on {text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn the_fast_shapes_match_what_gobwas_matches(pattern in "[ab*/]{0,7}", text in "[ab/]{0,9}") {
            let expected = gobwas::Pattern::new(&pattern, &[]).expect("stars and text are a glob").matches(&text);
            prop_assert_eq!(compare(MatchMode::Glob, &pattern, &text) == Match::Yes, expected);
        }

        #[test]
        fn what_cannot_begin_like_a_text_does_not_match_it(pattern in "[ab*/]{0,5}", text in "[ab/]{0,9}", at in 0..9usize) {
            let compiled = Pattern::glob(&pattern);
            let beginning = &text[..at.min(text.len())];
            prop_assert!(compiled.may_begin_with(beginning) || compiled.compare(&text) != Match::Yes);
        }

        #[test]
        fn no_pattern_panics(pattern in ".{0,40}", text in ".{0,40}") {
            compare(MatchMode::Glob, &pattern, &text);
            compare(MatchMode::Regex, &pattern, &text);
        }
    }
}
