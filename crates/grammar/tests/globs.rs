//! Globs against goldens made by Go's `path.Match`, doublestar 4.10.4 and gobwas/glob 0.2.3, and properties.

use std::time::{Duration, Instant};

use baton_grammar::globs::{Error, MAX_PATTERN, doublestar, gobwas, path};
use proptest::prelude::*;
use serde_json::Value;

type Matcher = Box<dyn Fn(&str) -> bool>;

fn path_matcher(case: &Value) -> Result<Matcher, Error> {
    let pattern = path::Pattern::new(text(&case["pattern"]))?;
    Ok(Box::new(move |name| pattern.matches(name)))
}

fn doublestar_matcher(case: &Value) -> Result<Matcher, Error> {
    let pattern = doublestar::Pattern::new(text(&case["pattern"]))?;
    Ok(Box::new(move |name| pattern.matches(name)))
}

fn gobwas_matcher(case: &Value) -> Result<Matcher, Error> {
    let separators: Vec<char> = text(&case["separators"]).chars().collect();
    let pattern = gobwas::Pattern::new(text(&case["pattern"]), &separators)?;
    Ok(Box::new(move |name| pattern.matches(name)))
}

fn text(value: &Value) -> &str {
    value.as_str().expect("goldens hold text here")
}

fn check(goldens: &str, compile: fn(&Value) -> Result<Matcher, Error>) {
    let goldens: Value = serde_json::from_str(goldens).expect("goldens are JSON");
    let names: Vec<&str> = goldens["names"].as_array().expect("names").iter().map(text).collect();
    let cases = goldens["patterns"].as_array().expect("patterns");
    let mut wrong = Vec::new();
    for case in cases {
        let wanted: Option<Vec<&str>> =
            case["matches"].as_array().map(|names| names.iter().map(text).collect());
        let found: Option<Vec<&str>> =
            compile(case).ok().map(|matches| names.iter().copied().filter(|name| matches(name)).collect());
        if found != wanted {
            wrong.push(format!("{} {}: {found:?}, not {wanted:?}", case["pattern"], case["separators"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(cases.len() > 150, "goldens went missing: {}", cases.len());
}

#[test]
fn path_patterns_match_as_in_go() {
    check(include_str!("goldens/path_match.json"), path_matcher);
}

#[test]
fn doublestar_patterns_match_as_in_go() {
    check(include_str!("goldens/doublestar.json"), doublestar_matcher);
}

#[test]
fn gobwas_patterns_match_as_in_go() {
    check(include_str!("goldens/gobwas.json"), gobwas_matcher);
}

/// The golden file leaves these out: gobwas gets them wrong.
#[test]
fn defects_of_gobwas_are_not_copied() {
    let matches = |pattern, name| gobwas::Pattern::new(pattern, &['/']).expect(pattern).matches(name);
    assert!(matches("?é", "aé") && matches("世?", "世界"), "characters beyond one byte");
    assert!(matches("a***", "a") && matches("a***b", "ab"), "stars in a row");
    assert!(matches("a/{**,x}", "a/b/c") && matches("{**/,}b", "x/b"), "stars in braces");
    assert!(matches("a{}b", "ab") && matches("{,a}{,b}{,c}", "a"), "empty braces");
    assert!(matches("a{/**,}", "a"), "gobwas panics");
    assert!(!matches("?", "") && !matches("[!a]", ""), "nothing is no character");
}

#[test]
fn hostile_patterns_take_no_time() {
    let start = Instant::now();
    let name = "a".repeat(2_000);
    let stars = "*a".repeat(100) + "b";
    assert!(!path::Pattern::new(&stars).expect("stars").matches(&name));
    assert!(
        !doublestar::Pattern::new(&"**/".repeat(100).replace("/", "/*a"))
            .expect("stars")
            .matches(&"a/".repeat(500))
    );
    let braces = "{a,aa,*}".repeat(60) + "b";
    assert!(!doublestar::Pattern::new(&braces).expect("braces").matches(&name));
    assert!(!gobwas::Pattern::new(&braces, &['/']).expect("braces").matches(&name));
    let nested = "{**,".repeat(500) + &"}".repeat(500) + "/b";
    assert!(!doublestar::Pattern::new(&nested).expect("nested").matches(&name));
    // Trying the alternatives one by one would take longer than the universe is old.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    assert!(path::Pattern::new(&"a".repeat(MAX_PATTERN + 1)).is_err());
}

proptest! {
    #[test]
    fn nothing_panics(pattern in "[ab/*?{},!^\\[\\]\\\\é-]{0,24}", name in "[ab/é]{0,12}") {
        let _ = path::Pattern::new(&pattern).map(|compiled| compiled.matches(&name));
        let _ = doublestar::Pattern::new(&pattern).map(|compiled| compiled.matches(&name));
        let _ = gobwas::Pattern::new(&pattern, &['/']).map(|compiled| compiled.matches(&name));
    }

    #[test]
    fn plain_text_matches_itself_only(name in "[a-z/.é-]{0,12}", other in "[a-z/.é-]{0,12}") {
        let same = name == other;
        prop_assert_eq!(path::Pattern::new(&name).expect("plain").matches(&other), same);
        prop_assert_eq!(doublestar::Pattern::new(&name).expect("plain").matches(&other), same);
        prop_assert_eq!(gobwas::Pattern::new(&name, &['/']).expect("plain").matches(&other), same);
    }
}
