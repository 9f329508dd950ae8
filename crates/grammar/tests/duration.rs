//! Durations against goldens made by Go's `time.ParseDuration` and `Duration.String`, and properties.

use baton_grammar::duration::Duration;
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn every_golden_reads_and_prints_as_in_go() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("goldens/duration.json")).expect("goldens are JSON");
    for case in &cases {
        let text = case["text"].as_str().expect("a case has text");
        let read = match text.parse::<Duration>() {
            Ok(read) => {
                json!({"text": text, "nanoseconds": read.nanoseconds(), "printed": read.to_string()})
            }
            Err(error) => json!({"text": text, "error": error.to_string()}),
        };
        assert_eq!(&read, case);
    }
    assert!(cases.len() > 100, "goldens went missing: {}", cases.len());
}

#[test]
fn only_spans_forward_are_spans_of_the_standard_library() {
    let second = Duration::from_nanoseconds(1_000_000_000);
    assert_eq!(second.to_std(), Some(std::time::Duration::from_secs(1)));
    assert_eq!(Duration::from_nanoseconds(-1).to_std(), None);
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(nanoseconds in any::<i64>(), shift in 0u32..63) {
        let duration = Duration::from_nanoseconds(nanoseconds >> shift);
        prop_assert_eq!(duration.to_string().parse(), Ok(duration));
    }

    #[test]
    fn no_text_panics(any in any::<String>(), like in "[-+]?([0-9.]{0,24}(ns|us|µs|ms|s|m|h|é)?){0,5}") {
        let _ = any.parse::<Duration>();
        let _ = like.parse::<Duration>();
    }
}
