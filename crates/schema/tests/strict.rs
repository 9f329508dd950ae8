//! Reading JSON strictly.

use baton_schema::strict::{DEEPEST, duplicate_fields, parse};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn errors_have_the_words_of_go() {
    for (text, expected) in [
        ("", "unexpected end of JSON input"),
        ("  ", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ("[1,", "unexpected end of JSON input"),
        ("\"a", "unexpected end of JSON input"),
        ("x", "invalid character 'x' looking for beginning of value"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
        ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
        ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
        ("{\"a\" 1}", "invalid character '1' after object key"),
        ("{\"a\":1 \"b\":2}", "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("tru3", "invalid character '3' in literal true (expecting 'e')"),
        ("nul", "unexpected end of JSON input"),
        ("01", "invalid character '1' after top-level value"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1ex", "invalid character 'x' in exponent of numeric literal"),
        ("\"\n\"", "invalid character '\\n' in string literal"),
        ("\"\\x\"", "invalid character 'x' in string escape code"),
        ("\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"),
        ("1e999", "json: cannot unmarshal number 1e999 into Go value of type float64"),
    ] {
        let error = parse(text.as_bytes(), DEEPEST).expect_err(text);
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

#[test]
fn numbers_follow_go() {
    for (text, expected) in [
        ("9223372036854775807", json!(i64::MAX)),
        ("9223372036854775808", json!(9_223_372_036_854_775_808.0)),
        ("-0", json!(0)),
        ("1.0", json!(1)),
        ("1e2", json!(100)),
        ("2.50", json!(2.5)),
    ] {
        assert_eq!(parse(text.as_bytes(), DEEPEST).expect(text).0, expected, "{text}");
    }
}

#[test]
fn strings_are_made_whole() {
    for (text, expected) in [
        (&b"\"\\ud83d\\ude00\""[..], "😀"),
        (b"\"\\ud83dx\"", "\u{fffd}x"),
        (b"\"\\ud83d\\u0041\"", "\u{fffd}A"),
        (b"\"\xff\"", "\u{fffd}"),
        (b"\"\\/\\b\\f\\n\\r\\t\\\"\\\\\"", "/\u{8}\u{c}\n\r\t\"\\"),
    ] {
        assert_eq!(parse(text, DEEPEST).expect("valid").0, json!(expected));
    }
}

#[test]
fn keys_that_occur_twice_are_named_once_and_the_last_wins() {
    let text = br#"{"a":1,"a":2,"a":3,"spec":{"l":[{"x":1},{"x":1,"x":{"y":1,"y":2}}],"l2":1,"l2":2}}"#;
    let (value, duplicates) = parse(text, DEEPEST).expect("valid");
    assert_eq!(value, json!({"a": 3, "spec": {"l": [{"x": 1}, {"x": {"y": 2}}], "l2": 2}}));
    assert_eq!(duplicates, ["a", "spec.l[1].x", "spec.l[1].x.y", "spec.l2"]);
    assert_eq!(duplicate_fields(text), duplicates);
    assert!(duplicate_fields(b"{").is_empty());
}

#[test]
fn depth_is_bounded() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        assert!(parse(nested(DEEPEST).as_bytes(), DEEPEST).is_ok());
        let error = parse(nested(DEEPEST + 1).as_bytes(), DEEPEST).expect_err("too deep");
        let first = open.chars().next().expect("a bracket");
        assert_eq!(error.to_string(), format!("invalid character '{first}' exceeded max depth"));
        assert!(parse(nested(100_000).as_bytes(), DEEPEST).is_err());
        assert!(parse(open.repeat(1_000_000).as_bytes(), DEEPEST).is_err());
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes, 8);
    }

    #[test]
    fn near_json_agrees_with_another_parser(text in r#"[\[\]{}:,"a1\-.eu\\ ntrfl]{0,40}"#) {
        let ours = parse(text.as_bytes(), 64);
        let theirs = serde_json::from_str::<Value>(&text);
        prop_assert_eq!(ours.is_ok(), theirs.is_ok() || lone_surrogate(&text, &theirs), "{} {:?} {:?}", text, ours, theirs);
    }
}

/// Go reads a lone surrogate as U+FFFD where others refuse it.
fn lone_surrogate(text: &str, result: &Result<Value, serde_json::Error>) -> bool {
    text.contains("\\u")
        && result.as_ref().is_err_and(|error| {
            error.to_string().contains("surrogate") || error.to_string().contains("hex escape")
        })
}
