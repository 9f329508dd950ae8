//! No template and no input panics or runs past its limits.

use baton_template::{Limits, Map, MissingKey, Template, Value, params};
use proptest::prelude::*;

const LIMITS: Limits = Limits { steps: 2_000, output: 4_096, depth: 200 };

fn execute(text: &str) -> Result<String, String> {
    let data: serde_json::Value =
        serde_json::json!({"a": {"b": [1, "x", null]}, "n": 3, "s": "héllo", "l": ["x", "y"]});
    let template = Template::parse("t", text).map_err(|error| error.to_string())?;
    template.execute(&Value::from(&data), MissingKey::Default, LIMITS).map_err(|error| error.to_string())
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

proptest! {
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
        ("{{printf \"%999999d\" 1}}", "took more than 2000 steps"),
        ("{{$x := repeat 4000 .s}}{{range 100}}{{$x = print $x}}{{end}}", "longer than 4096 bytes"),
        ("{{$x := repeat 600 .s}}{{range 200}}{{$x = print $x}}{{end}}", "took more than 2000 steps"),
    ] {
        let error = execute(text).expect_err("a limit is reached");
        assert!(error.contains(expected), "{text}: {error}");
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
