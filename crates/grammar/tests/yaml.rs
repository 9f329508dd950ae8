//! YAML against goldens made by `sigs.k8s.io/yaml` 1.6.0 (`YAMLToJSON` and `YAMLToJSONStrict`), and properties.

use baton_grammar::yaml::{self, MAX_BYTES, MAX_DEPTH};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn every_golden_reads_as_in_go() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("goldens/yaml.json")).expect("goldens are JSON");
    let wrong: Vec<String> = cases.iter().filter_map(difference).collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(cases.len() > 400, "goldens went missing: {}", cases.len());
}

fn difference(case: &Value) -> Option<String> {
    let text = case["yaml"].as_str().expect("a case has YAML");
    let read = yaml::first_with_duplicates(text);
    match (&read, case.get("json")) {
        (Err(_), None) => None,
        (Ok((value, duplicates)), Some(wanted)) => {
            let duplicates: Vec<String> = duplicates.iter().map(ToString::to_string).collect();
            let wanted_duplicates = case.get("duplicates").cloned().unwrap_or(json!([]));
            (value != wanted || json!(duplicates) != wanted_duplicates)
                .then(|| format!("{text:?}: {value} {duplicates:?}, not {wanted} {wanted_duplicates}"))
        }
        _ => Some(format!("{text:?}: {read:?}, not {case}")),
    }
}

#[test]
fn every_golden_is_written_as_in_go() {
    let goldens = include_str!("goldens/yaml_out.jsonl");
    let mut wrong = Vec::new();
    for line in goldens.lines() {
        let case: Value = serde_json::from_str(line).expect("goldens are JSON lines");
        let (written, wanted) =
            (yaml::to_string(&case["json"]), case["yaml"].as_str().expect("a case has YAML"));
        if written != wanted {
            wrong.push(format!("{}\n    Go:   {wanted:?}\n    here: {written:?}", case["json"]));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(goldens.lines().count() > 200, "goldens went missing");
}

/// Go writes `<<` as it is, and reads a merge where a key was.
#[test]
fn a_key_of_two_angles_is_quoted() {
    assert_eq!(yaml::to_string(&json!({"<<": {"a": 1}})), "\"<<\":\n  a: 1\n");
}

#[test]
fn streams_hold_documents() {
    assert_eq!(yaml::documents("a: 1\n---\n- 2\n---\n"), Ok(vec![json!({"a": 1}), json!([2]), Value::Null]));
    assert_eq!(yaml::documents("# nothing\n"), Ok(vec![]));
    assert_eq!(yaml::first("# nothing\n"), Ok(Value::Null));
}

#[test]
fn anchors_end_with_their_document() {
    let error = yaml::documents("a: &x 1\n---\nb: *x\n").expect_err("the anchor is of another document");
    assert_eq!(error.to_string(), "yaml: line 3, column 4: unknown anchor 'x' referenced");
}

#[test]
fn errors_say_where() {
    let error = yaml::first("a:\n  - b\n  c: d\n").expect_err("a list cannot go on as a map");
    assert_eq!((error.line, error.column), (3, 3));
    let error = yaml::first("a: b\nc: .inf\n").expect_err("JSON has no infinity");
    assert_eq!(error.to_string(), "yaml: line 2, column 4: json: unsupported value: inf");
}

/// Two differences from Go: its reader does not know JSON's `\\/`, and knows a tag without a value before a comma.
#[test]
fn differences_from_go_are_these() {
    assert_eq!(yaml::first(r#"{"a": "http:\/\/b"}"#), Ok(json!({"a": "http://b"})));
    let error = yaml::first("a: b\nc: [!a, b]").expect_err("the parser does not know it");
    assert_eq!((error.line, error.message.as_str()), (2, "a tag without a value"));
}

#[test]
fn alias_bombs_are_refused() {
    let mut nodes = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        nodes.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let error = yaml::first(&nodes).expect_err("nine to the twelfth");
    assert_eq!(error.message, "document contains excessive aliasing");

    let long_text = format!("a: &a {}\nb: [{}*a]\n", "x".repeat(100_000), "*a, ".repeat(5_000));
    let error = yaml::first(&long_text).expect_err("half a gigabyte of text");
    assert_eq!(error.message, "document contains excessive aliasing");
}

#[test]
fn nesting_and_size_are_bounded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(yaml::first(&nested(MAX_DEPTH)).is_ok());
    assert!(yaml::first(&nested(MAX_DEPTH + 1)).is_err());
    assert!(yaml::first(&"[".repeat(1_000_000)).is_err());
    assert!(yaml::first(&"- ".repeat(100_000)).is_err());
    assert!(yaml::first(&" ".repeat(MAX_BYTES + 1)).is_err());

    let wide_and_deep = "[".repeat(MAX_DEPTH) + &"a,".repeat(400_000);
    let error = yaml::first(&wide_and_deep).expect_err("slow to parse");
    assert_eq!(error.message, "too many deeply nested nodes");

    let half = MAX_DEPTH / 2 + 1;
    let (open, close) = ("[".repeat(half), "]".repeat(half));
    let deep = format!("a: &a {open}{close}\nb: {open}*a{close}\n");
    let error = yaml::first(&deep).expect_err("aliases nest too");
    assert!(error.message.contains("max depth"), "{error}");
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Text YAML can hold unescaped: JSON leaves DEL, the C1 controls and the two non-characters as they are.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z0-9:#?&*!|>'%@,{} \\[\\]\"\\\\-]{0,12}"].prop_map(|text| {
        text.chars()
            .filter(|c| !matches!(c, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}'))
            // Line breaks beyond ASCII are folded inside quotes.
            .filter(|c| !matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}'))
            .collect()
    })
}

/// What becomes of numbers: floats without a fraction are integers in Go's JSON.
fn as_go_writes(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().expect("it is a float");
            let digits = float.to_string();
            let integer = digits.parse::<i64>().map(Value::from);
            let integer = integer.or_else(|_| digits.parse::<u64>().map(Value::from));
            if digits == "-0" { value.clone() } else { integer.unwrap_or(value.clone()) }
        }
        Value::Array(items) => items.iter().map(as_go_writes).collect(),
        Value::Object(map) => Value::Object(map.iter().map(|(k, v)| (k.clone(), as_go_writes(v))).collect()),
        other => other.clone(),
    }
}

/// A negative zero is a plain one after Go wrote it.
fn positive_zeros(value: Value) -> Value {
    match value {
        Value::Number(number) if number.as_f64() == Some(0.0) => Value::from(0),
        Value::Array(items) => items.into_iter().map(positive_zeros).collect(),
        Value::Object(map) => Value::Object(map.into_iter().map(|(k, v)| (k, positive_zeros(v))).collect()),
        other => other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn json_is_yaml(value in json_value()) {
        let wanted = as_go_writes(&value);
        prop_assert_eq!(yaml::first(&value.to_string()), Ok(wanted.clone()));
        let pretty = serde_json::to_string_pretty(&value).expect("a value prints");
        prop_assert_eq!(yaml::first(&pretty), Ok(wanted));
    }

    #[test]
    fn what_is_written_reads_back_the_same(value in json_value()) {
        let wanted = positive_zeros(as_go_writes(&value));
        prop_assert_eq!(yaml::first(&yaml::to_string(&value)), Ok(wanted));
    }

    #[test]
    fn any_text_is_written_and_reads_back_the_same(key in any::<String>(), text in any::<String>()) {
        let value = json!({ key: [text] });
        prop_assert_eq!(yaml::first(&yaml::to_string(&value)), Ok(value));
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = yaml::documents(&text);
    }

    #[test]
    fn no_yaml_like_text_panics(text in "([-?:,\\[\\]{}#&*!|>'\"%@` \n\t~.a0x<+e\\\\\u{e9}\u{feff}\r]|---\n|: |- |<<: ){0,40}") {
        let _ = yaml::documents(&text);
    }
}
