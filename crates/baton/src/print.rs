//! Whole objects on standard output.

use std::io::Write as _;

use clap::ValueEnum;
use serde_json::Value;

use crate::failure::Failure;

/// How objects are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// A table with more columns.
    Wide,
    /// Whole objects, as YAML.
    Yaml,
    /// Whole objects, as JSON.
    Json,
    /// Kinds and names only.
    Name,
}

/// Writes to standard output. A reader that has seen enough, as `head` has, is no failure.
pub(crate) fn out(text: &str) -> Result<(), Failure> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        outcome => {
            outcome.map_err(|error| Failure::failed(format!("cannot write to standard output: {error}")))
        }
    }
}

/// Objects as a YAML stream.
pub(crate) fn yaml(objects: &[Value]) -> Result<String, Failure> {
    let mut text = String::new();
    for (index, object) in objects.iter().enumerate() {
        if index > 0 {
            text.push_str("---\n");
        }
        text.push_str(&serde_saphyr::to_string(object).map_err(|error| Failure::failed(error.to_string()))?);
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    Ok(text)
}

/// One object, or a `List` of them.
pub(crate) fn json(objects: &[Value], single: bool) -> Result<String, Failure> {
    let text = match objects {
        [object] if single => serde_json::to_string_pretty(object),
        _ => serde_json::to_string_pretty(
            &serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects}),
        ),
    };
    text.map(|text| text + "\n").map_err(|error| Failure::failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_only_look_like_other_types_stay_texts() {
        let object = serde_json::json!({"a": "yes", "b": "012", "c": "1e3", "d": "123e4567", "e": "on", "f": "2001-01-01", "g": "null", "h": "a: b", "i": "x\ny\n"});
        let text = yaml(std::slice::from_ref(&object)).expect("YAML");
        assert_eq!(baton_grammar::yaml::first(&text).expect("YAML"), object);
    }
}
