//! Regular expressions against goldens made by Go 1.26's `regexp`, and properties.

use baton_grammar::regexp::{Exhausted, Regexp, Work, compile_cost, quote_meta};
use proptest::prelude::*;
use serde_json::{Value, json};

fn goldens() -> Value {
    serde_json::from_str(include_str!("goldens/regexp.json")).expect("goldens are JSON")
}

const ENOUGH: Work = Work { bytes: 1 << 30, longest: 1000 };

fn text<'v>(case: &'v Value, key: &str) -> &'v str {
    case[key].as_str().expect("a case has texts")
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("goldens are lists")
}

#[test]
fn every_expression_matches_as_in_go() {
    let goldens = goldens();
    let texts: Vec<&str> = list(&goldens["texts"]).iter().filter_map(Value::as_str).collect();
    let mut wrong = Vec::new();
    for case in list(&goldens["expressions"]) {
        let expression = text(case, "text");
        let here = match Regexp::parse(expression) {
            Ok(regexp) => json!({
                "text": expression,
                "all": texts.iter().map(|text| regexp.find_all(text, usize::MAX, &mut ENOUGH.clone()).expect("short")).collect::<Vec<_>>(),
                "split": texts.iter().map(|text| regexp.split(text, usize::MAX, &mut ENOUGH.clone()).expect("short")).collect::<Vec<_>>(),
                "replaced": texts.iter().map(|text| regexp.replace_all(text, "<$0>", &mut ENOUGH.clone())).collect::<Result<Vec<_>, _>>().expect("short"),
                "names": regexp.names().map(Option::unwrap_or_default).collect::<Vec<_>>(),
            }),
            Err(error) => json!({"text": expression, "error": error.to_string()}),
        };
        if &here != case {
            wrong.push(format!("{expression}\n  Go:   {case}\n  here: {here}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn replacements_are_expanded_as_in_go() {
    for case in list(&goldens()["templates"]) {
        let regexp = Regexp::parse(text(case, "text")).expect("the goldens say so");
        let (on, template) = (text(case, "on"), text(case, "template"));
        assert_eq!(
            regexp.replace_all(on, template, &mut ENOUGH.clone()).as_deref(),
            Ok(text(case, "replaced")),
            "{case}"
        );
        assert_eq!(
            regexp.replace_all_literal(on, template, &mut ENOUGH.clone()).as_deref(),
            Ok(text(case, "literal")),
            "{case}"
        );
    }
}

#[test]
fn texts_are_split_as_in_go() {
    for case in list(&goldens()["splits"]) {
        let regexp = Regexp::parse(text(case, "text")).expect("the goldens say so");
        let limit = case["limit"].as_i64().expect("a case has a limit");
        let parts = regexp
            .split(text(case, "on"), usize::try_from(limit).unwrap_or(usize::MAX), &mut ENOUGH.clone())
            .expect("short");
        let parts = if limit == 0 { Value::Null } else { json!(parts) };
        assert_eq!(parts, case["parts"], "{case}");
    }
}

#[test]
fn texts_are_quoted_as_in_go() {
    for case in list(&goldens()["quoted"]) {
        assert_eq!(quote_meta(text(case, "text")), text(case, "quoted"));
    }
}

#[test]
fn groups_are_read_from_the_first_match() {
    let regexp = Regexp::parse("(?P<kind>feat|fix)/(x)?").expect("an expression");
    assert_eq!(regexp.captures("a feat/y"), Some(vec![Some("feat/"), Some("feat"), None]));
    assert_eq!(regexp.names().collect::<Vec<_>>(), [None, Some("kind"), None]);
    assert_eq!(regexp.captures("nothing"), None);
}

#[test]
fn large_expressions_and_results_are_refused() {
    for (expression, reason) in [
        ("(\\pL{1000}|\\pN{900})".to_owned(), "expression too large: `(\\pL{1000}|"),
        ("a".repeat(70_000), "expression too large: `aaa"),
        ("(".repeat(5_000), "expression nests too deeply: `((("),
    ] {
        let error = Regexp::parse(&expression).expect_err("refused").to_string();
        assert!(error.contains(reason) && error.len() < 400, "{error}");
    }
    let deepest = format!("{}a{}", "(?:(?i:b*".repeat(50), ")*)*".repeat(50));
    assert!(Regexp::parse(&deepest).expect("just within the limits").is_match("bA"));
    let regexp = Regexp::parse("a").expect("an expression");
    let mut short = Work { bytes: 10_000, longest: 150 };
    assert_eq!(regexp.replace_all(&"a".repeat(100), "$0$0", &mut short), Err(Exhausted::Length(150)));
    assert_eq!(regexp.replace_all_literal(&"a".repeat(80), "xx", &mut short), Err(Exhausted::Length(150)));
    // Every search but the last runs to the end of the text.
    let again_and_again = Regexp::parse(".*[^A-Z]|[A-Z]").expect("an expression");
    let text = "A".repeat(1_000);
    let mut little = Work { bytes: 100_000, longest: 1_000 };
    assert_eq!(again_and_again.find_all(&text, usize::MAX, &mut little), Err(Exhausted::Bytes));
    let large = Regexp::parse("(a?b{0,500}){2}").expect("an expression");
    assert_eq!(large.find_all(&text, 1, &mut little), Err(Exhausted::Bytes));
}

#[test]
fn compiling_costs_by_what_there_is_to_compile() {
    for (expression, least, most) in [
        ("a-b", 1, 10),
        ("[a-z0-9]+", 5, 50),
        ("\\pL{20}", 5_000, 20_000),
        ("((\\pL{10}){10}){10}", 50_000, 50_000),
    ] {
        let cost = compile_cost(expression).expect("an expression");
        assert!((least..=most).contains(&cost), "{expression}: {cost}");
    }
    assert!(compile_cost("(").is_err());
}

proptest! {
    #[test]
    fn no_expression_panics(
        any in any::<String>(),
        like in "([a-cé.^$|*+?]|\\(\\?[imsUP<:a>)]{0,3}|[()]|\\\\[a-zA-Z0-9{}]|\\[\\^?|\\]|[a\\-]|\\{[0-9,]{0,3}\\}?|\\[:alpha:\\]){0,16}",
        on in "[abcé\\n ☃]{0,12}",
        template in "([$]|[{}]|[0-2a-c]){0,8}",
    ) {
        for expression in [&any, &like] {
            if let Ok(regexp) = Regexp::parse(expression) {
                regexp.is_match(&on);
                regexp.captures(&on);
                let parts = regexp.split(&on, usize::MAX, &mut ENOUGH.clone()).unwrap_or_default();
                prop_assert!(parts.iter().map(|part| part.len()).sum::<usize>() <= on.len());
                let mut short = Work { bytes: 1 << 30, longest: 64 };
                if let Ok(replaced) = regexp.replace_all(&on, &template, &mut short) {
                    prop_assert!(replaced.len() <= 64);
                }
            }
        }
    }

    #[test]
    fn what_is_quoted_matches_itself(text in any::<String>()) {
        let regexp = Regexp::parse(&format!("\\A{}\\z", quote_meta(&text))).expect("quoted");
        prop_assert!(regexp.is_match(&text));
    }
}
