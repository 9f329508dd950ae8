//! Versions and constraints against goldens made by Masterminds/semver 3.4.0, and properties.

use std::cmp::Ordering;

use baton_grammar::semver::{Constraint, Version, is_constraint};
use proptest::prelude::*;
use serde_json::{Value, json};

fn goldens(kind: &str) -> Vec<Value> {
    let goldens: Value = serde_json::from_str(include_str!("goldens/semver.json")).expect("goldens are JSON");
    goldens[kind].as_array().expect("goldens are lists").clone()
}

fn text(case: &Value) -> &str {
    case["text"].as_str().expect("a case has text")
}

#[test]
fn every_version_reads_as_in_go() {
    for case in goldens("versions") {
        let text = text(&case);
        let read = match Version::parse(text) {
            Ok(read) => json!({
                "text": text, "constraint": is_constraint(text), "string": read.to_string(),
                "major": read.major(), "minor": read.minor(), "patch": read.patch(),
                "prerelease": read.prerelease(), "metadata": read.metadata(),
                "next": [read.next_patch().original(), read.next_minor().original(), read.next_major().original()],
            }),
            Err(error) => {
                json!({"text": text, "constraint": is_constraint(text), "error": error.to_string()})
            }
        };
        assert_eq!(read, case);
    }
}

#[test]
fn versions_are_ordered_as_in_go() {
    let cases = goldens("order");
    let name = |case: &Value| case["version"].as_str().expect("a case has a version").to_owned();
    let versions: Vec<Version> =
        cases.iter().map(|case| Version::parse(&name(case)).expect("the goldens say so")).collect();
    for case in &cases {
        let version = Version::parse(&name(case)).expect("the goldens say so");
        let those = |order: Ordering| -> Value {
            let like = versions.iter().filter(|other| version.compare(other) == order);
            let names: Vec<&str> = like.map(Version::original).collect();
            if names.is_empty() { Value::Null } else { json!(names) }
        };
        assert_eq!(those(Ordering::Greater), case["above"], "{version}");
        assert_eq!(those(Ordering::Equal), case["equal"], "{version}");
    }
}

#[test]
fn every_constraint_matches_as_in_go() {
    let names = goldens("order");
    let names: Vec<&str> = names.iter().filter_map(|case| case["version"].as_str()).collect();
    for case in goldens("constraints") {
        let text = text(&case);
        let read = match Constraint::parse(text) {
            Ok(constraint) => {
                let within =
                    |name: &&&str| constraint.matches(&Version::parse(name).expect("the goldens say so"));
                let matching: Vec<&&str> = names.iter().filter(within).collect();
                let matching = if matching.is_empty() { Value::Null } else { json!(matching) };
                json!({"text": text, "string": constraint.to_string(), "matches": matching})
            }
            // Go's message shows a range as the comparisons it was rewritten to.
            Err(_) if text.contains(" - ") => json!({"text": text, "error": case["error"]}),
            Err(error) => json!({"text": text, "error": error.to_string()}),
        };
        assert_eq!(read, case);
    }
}

#[test]
fn the_highest_tag_is_the_first_of_the_highest_precedence() {
    let highest = |constraint: &str, tags: &[&'static str]| {
        Constraint::parse(constraint).expect("a constraint").highest(tags.iter().copied())
    };
    assert_eq!(highest("1.x", &["v1.2.0", "1.10.0", "latest", "1.9.0", "2.0.0"]), Some("1.10.0"));
    assert_eq!(highest("^1", &["1.2.0+b", "v1.2.0", "1.2.1-rc.1"]), Some("1.2.0+b"));
    assert_eq!(highest(">=1.0.0-0", &["1.0.0", "1.1.0-rc.1"]), Some("1.1.0-rc.1"));
    assert_eq!(highest("^3", &["1.0.0", "2.0.0-01", "99999999999999999999.0.0"]), None);
}

#[test]
fn long_constraints_are_refused() {
    assert!(Constraint::parse("1||".repeat(1_300).trim_end_matches('|')).is_ok());
    let error = Constraint::parse(&"1||".repeat(100_000)).expect_err("refused").to_string();
    assert!(error.starts_with("improper constraint: 1||1||") && error.len() < 200, "{error}");
}

#[test]
fn parts_are_replaced_when_they_may_stand_there() {
    let version = Version::parse("v1.2.3-a+b").expect("a version");
    assert_eq!(version.with_prerelease("rc.1").expect("valid").original(), "v1.2.3-rc.1+b");
    assert_eq!(version.with_prerelease("").expect("valid").original(), "v1.2.3+b");
    assert_eq!(version.with_metadata("").expect("valid").original(), "v1.2.3-a");
    assert_eq!(
        version.with_prerelease("01").expect_err("refused").to_string(),
        "version segment starts with 0"
    );
    assert_eq!(version.with_prerelease("a_b").expect_err("refused").to_string(), "invalid prerelease string");
    assert_eq!(version.with_metadata("a b").expect_err("refused").to_string(), "invalid metadata string");
}

proptest! {
    #[test]
    fn no_text_panics(any in any::<String>(), like in "[v0-9xX*.|, <>=!~^+-]{0,24}", version in "v?[0-9.a+-]{0,12}") {
        for text in [&any, &like, &version] {
            let version = Version::parse(text);
            if let (Ok(constraint), Ok(version)) = (Constraint::parse(&like), &version) {
                constraint.matches(version);
            }
            is_constraint(text);
        }
    }

    #[test]
    fn what_is_printed_reads_back(text in "v?[0-9]{1,3}(\\.[0-9]{1,3}){0,2}(-[a-z]{1,3}\\.[1-9])?(\\+[a-z0-9]{1,3})?") {
        let version = Version::parse(&text).expect("a version");
        let again = Version::parse(&version.to_string()).expect("a version");
        prop_assert_eq!(version.compare(&again), Ordering::Equal);
        let itself = Constraint::parse(&format!("={version}")).expect("a constraint");
        prop_assert!(itself.matches(&version));
    }
}
