//! No template and no input panics or runs past its limits.

use baton_template::{Execution, Limits, Map, MissingKey, SeededEntropy, Template, Value, functions, params};
use proptest::prelude::*;

const LIMITS: Limits = Limits { steps: 2_000, output: 4_096, depth: 200 };

fn execute(text: &str) -> Result<String, String> {
    let template = Template::parse("t", text).map_err(|error| error.to_string())?;
    template.execute(&data(), MissingKey::Default, LIMITS).map_err(|error| error.to_string())
}

fn data() -> Value {
    Value::from(&serde_json::json!({"a": {"b": [1, "x", null]}, "n": 3, "s": "héllo", "l": ["x", "y"]}))
}

/// Pieces that are likely to make sense together.
fn piece() -> impl Strategy<Value = String> {
    let pieces = [
        "{{",
        "}}",
        "{{-",
        " -}}",
        " ",
        "\n",
        ".",
        ".a",
        ".a.b",
        "$",
        "$x",
        ":=",
        "=",
        ",",
        "|",
        "(",
        ")",
        "if",
        "else",
        "end",
        "range",
        "with",
        "break",
        "continue",
        "define",
        "template",
        "block",
        "\"t\"",
        "\"%5.2v\"",
        "`r`",
        "'c'",
        "1",
        "-2.5",
        "0x1f",
        "1e9",
        "true",
        "nil",
        ".n",
        ".s",
        ".l",
        "index",
        "slice",
        "printf",
        "print",
        "eq",
        "lt",
        "and",
        "or",
        "not",
        "len",
        "html",
        "js",
        "urlquery",
        "call",
        "/*",
        "*/",
        "é",
        "\\",
        "{{if .n}}",
        "{{end}}",
        "{{range .l}}",
        "{{else}}",
        "{{$x := .a}}",
        "{{template \"t\" .}}",
        "trunc",
        "substr",
        "repeat",
        "nindent",
        "replace",
        "split",
        "join",
        "default",
        "ternary",
        "slugify",
        "normalize",
        "int",
        "div",
        "first",
        "rest",
        "dig",
        "pick",
        "toJson",
        "fromJson",
        "b64dec",
        "clean",
        "title",
        "quote",
        "cat",
    ];
    proptest::sample::select(pieces.to_vec()).prop_map(str::to_owned)
}

/// Arguments of every type, sound and unsound.
const ARGUMENTS: [&str; 23] = [
    "nil",
    "true",
    "0",
    "3",
    "-7",
    "9223372036854775807",
    "2.5",
    "(float64 `nan`)",
    "``",
    "`a`",
    "`héllo wörld`",
    "`1.2.3`",
    "`[a-z(`",
    "`{\"a\": [1, null]}`",
    "`%5.2v`",
    ".",
    ".a",
    ".l",
    ".missing",
    "(list)",
    "(list 1 `x` nil (list 2))",
    "(dict `a` 1 `b` (list))",
    "(split `-` `a-b`)",
];

fn called(text: &str) {
    let clock = "2024-05-06T07:08:09+02:00[Europe/Berlin]".parse().expect("it is a time");
    let entropy = SeededEntropy::new(7);
    let execution = Execution {
        missing_key: MissingKey::Default,
        limits: LIMITS,
        now: Some(&clock),
        entropy: Some(&entropy),
    };
    let template = Template::parse("t", text).expect("every function is there");
    if let Ok(output) = template.execute_in(&data(), &execution) {
        assert!(output.len() <= LIMITS.output, "{text}");
    }
}

#[test]
fn every_function_takes_or_refuses_any_two_arguments() {
    for name in functions() {
        called(&format!("{{{{{name}}}}}"));
        for first in ARGUMENTS {
            called(&format!("{{{{{name} {first}}}}}"));
            for second in ARGUMENTS {
                called(&format!("{{{{{name} {first} {second}}}}}"));
            }
        }
    }
}

fn call() -> impl Strategy<Value = String> {
    let name = || proptest::sample::select(functions().collect::<Vec<_>>());
    let argument = || proptest::sample::select(ARGUMENTS.to_vec());
    let arguments = || proptest::collection::vec(argument(), 0..5).prop_map(|arguments| arguments.join(" "));
    (name(), arguments(), name(), arguments())
        .prop_map(|(first, some, second, more)| format!("{{{{{second} {more} ({first} {some})}}}}"))
}

proptest! {
    #[test]
    fn any_function_takes_or_refuses_what_any_other_returns(text in call()) {
        called(&text);
    }

    #[test]
    fn any_text_compiles_and_runs_or_is_refused(text in any::<String>()) {
        let _ = execute(&text);
        let _ = params::substitute(&text, &Map::new([]));
    }

    #[test]
    fn near_templates_compile_and_run_or_are_refused(pieces in proptest::collection::vec(piece(), 0..40)) {
        if let Ok(output) = execute(&pieces.concat()) {
            prop_assert!(output.len() <= LIMITS.output);
        }
    }

    #[test]
    fn any_format_is_printed(format in "[%a-zA-Z0-9.*+# \\-\\[\\]é]{0,24}") {
        let _ = execute(&format!("{{{{printf `{format}` .n .s .a 7 nil true}}}}"));
    }
}

#[test]
fn endless_templates_end_with_an_error() {
    for (text, expected) in [
        ("{{template \"t\" .}}", "exceeded maximum template depth"),
        ("{{range 1000000000}}{{end}}", "took more than 2000 steps"),
        ("{{range 1000000000}}xxxxxxxxxx{{end}}", "longer than 4096 bytes"),
        ("{{$x := .s}}{{range 1000}}{{$x = print $x $x}}{{end}}", "longer than 4096 bytes"),
        ("{{printf \"%999999d\" 1}}", "longer than 4096 bytes"),
        ("{{$x := repeat 4000 .s}}{{range 100}}{{$x = print $x}}{{end}}", "longer than 4096 bytes"),
        ("{{$x := repeat 600 .s}}{{range 200}}{{$x = print $x}}{{end}}", "took more than 2000 steps"),
    ] {
        let error = execute(text).expect_err("a limit is reached");
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_map_is_never_put_inside_itself() {
    for text in [
        "{{$d := dict}}{{$_ := set $d `a` $d}}",
        "{{$d := dict}}{{$_ := set $d `a` (list 1 (list $d))}}",
        "{{$d := dict `b` (dict)}}{{$_ := set $d.b `a` $d}}",
        "{{$d := dict}}{{$_ := merge $d (dict `x` (dict `y` $d))}}",
        "{{$d := dict `x` 1}}{{$_ := mustMergeOverwrite $d (dict `x` (list $d))}}",
        "{{$d := dict `b` (dict `c` 1)}}{{$_ := merge $d (dict `b` (dict `d` $d))}}",
        "{{$_ := set . `self` .}}",
    ] {
        let error = execute(text).expect_err("the map would hold itself");
        assert!(error.contains("a map cannot be put inside itself"), "{text}: {error}");
    }
    assert_eq!(
        execute("{{$d := dict}}{{$e := dict `d` $d}}{{$_ := set $d `a` 1}}{{$e}}").as_deref(),
        Ok("map[d:map[a:1]]")
    );
}

#[test]
fn values_that_share_their_parts_are_worked_on_within_the_limits() {
    let grow = |body: &str| {
        format!("{{{{$x := list 1}}}}{{{{range 100}}}}{{{{$x = {body}}}}}{{{{end}}}}{{{{$y := $x}}}}")
    };
    for body in ["list $x $x", "dict `a` $x `b` $x"] {
        for used in [
            "{{$x}}",
            "{{print $x}}",
            "{{printf `%v` $x}}",
            "{{printf `%#v` $x}}",
            "{{printf `%d` $x}}",
            "{{toJson $x}}",
            "{{toPrettyJson $x}}",
            "{{mustToRawJson $x}}",
            "{{toString $x}}",
            "{{quote $x}}",
            "{{cat $x}}",
            "{{join `,` (list $x)}}",
            "{{sortAlpha (list $x)}}",
            "{{deepCopy $x}}",
            "{{html $x}}",
            "{{deepEqual $x (list 1)}}{{deepEqual (list $x) (list (deepCopy $x))}}",
            "{{eq $x $x}}",
            "{{fail (toString $x)}}",
        ] {
            let text = grow(body) + used;
            assert!(execute(&text).is_err(), "{text}");
        }
    }
    // Comparing a value with itself, or putting it somewhere, looks at each part once.
    for used in ["{{deepEqual $x $y}}", "{{has $x (list 1 $y)}}", "{{$_ := set (dict) `a` $x}}"] {
        let text = grow("list $x $x") + used;
        assert!(execute(&text).is_ok(), "{text}: {:?}", execute(&text));
    }
}

#[test]
fn values_may_nest_deeper_than_the_stack() {
    let limits = Limits { steps: 10_000_000, ..Limits::default() };
    for body in ["list $x", "dict `a` $x", "list (dict `a` $x)"] {
        for used in ["", "{{$x}}", "{{toJson $x}}", "{{deepCopy $x}}", "{{merge (dict) (dict `a` $x)}}"] {
            let text = format!("{{{{$x := 1}}}}{{{{range 50000}}}}{{{{$x = {body}}}}}{{{{end}}}}{used}");
            let template = Template::parse("t", &text).expect("the text is a template");
            let result = template.execute(&Value::Nil, MissingKey::Default, limits);
            assert_eq!(result.is_ok(), used.is_empty(), "{text}: {:.200?}", result);
        }
    }
}

#[test]
fn large_values_are_refused_before_they_are_made() {
    for text in [
        "{{until 1000000000000}}",
        "{{untilStep 0 9223372036854775807 1}}",
        "{{seq 1000000000000}}",
        "{{seq 0 1 9223372036854775806}}",
        "{{repeat 1000000000 `x`}}",
        "{{indent 1000000000 `x`}}",
        "{{$x := list}}{{range 300}}{{$x = append $x (splitList `` (repeat 4000 `x`))}}{{end}}",
        "{{$x := list 1}}{{range 64}}{{$x = concat $x $x}}{{end}}",
        "{{$x := dict}}{{range $i := 100000}}{{$_ := set $x (toString $i) $i}}{{end}}",
        "{{$x := list}}{{range $i := 100000}}{{$x = append $x $i}}{{end}}",
    ] {
        assert!(execute(text).is_err(), "{text}");
    }
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("(", ")"), ("{{if 1}}", "{{end}}"), ("{{if 1}}{{else if 1}}", "{{end}}")] {
        let inner = if open == "(" { "1" } else { "x" };
        let text = format!("{}{inner}{}", open.repeat(100_000), close.repeat(100_000));
        let text = if open == "(" { format!("{{{{{text}}}}}") } else { text };
        assert!(execute(&text).is_err());
    }
}
