//! `{{param}}` substitution: the language of ApplicationSets without `goTemplate`.

use crate::value::{Map, Value};

/// A tag was opened and never closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid template: \"{{{{\" at byte {offset} has no \"}}}}\"")]
pub struct UnclosedTag {
    /// Where the tag starts.
    pub offset: usize,
}

/// Replaces every `{{key}}` whose key names a string among `params`.
///
/// A tag that names nothing, or something other than a string, stays as it is, blanks included. Inserted text is
/// not looked at again. Text with no `{{` before a `}}` on one line is returned as it is, whatever else it holds.
///
/// # Errors
/// A `{{` without `}}` after it, in a text that has a tag elsewhere.
pub fn substitute(text: &str, params: &Map) -> Result<String, UnclosedTag> {
    if !has_tag(text) {
        return Ok(text.to_owned());
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let after = &rest[start + 2..];
        let Some(length) = after.find("}}") else {
            return Err(UnclosedTag { offset: text.len() - rest.len() + start });
        };
        out.push_str(&rest[..start]);
        match params.get(after[..length].trim()) {
            Some(Value::Str(value)) => out.push_str(&value),
            _ => out.push_str(&rest[start..start + length + 4]),
        }
        rest = &after[length + 2..];
    }
    out.push_str(rest);
    Ok(out)
}

fn has_tag(text: &str) -> bool {
    text.split('\n').any(|line| line.find("{{").is_some_and(|start| line[start + 2..].contains("}}")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn params() -> Map {
        Map::new([
            (Arc::from("name"), Value::from("web")),
            (Arc::from("path[0]"), Value::from("apps")),
            (Arc::from("nested"), Value::from("{{name}}")),
            (Arc::from("count"), Value::Float(3.0)),
        ])
    }

    #[test]
    fn known_string_keys_are_replaced_once() {
        for (text, expected) in [
            ("{{name}}-{{ name }}", "web-web"),
            ("a {{path[0]}} b", "a apps b"),
            ("{{nested}}", "{{name}}"),
            ("{{\tname\t}}", "web"),
            ("{{name}}}", "web}"),
        ] {
            assert_eq!(substitute(text, &params()).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn everything_else_stays_as_written() {
        for text in ["{{ missing }}", "{{}}", "{{Name}}", "{{count}}", "}} {{", "{{", "{{a\n}}", "plain", ""]
        {
            assert_eq!(substitute(text, &params()).as_deref(), Ok(text), "{text}");
        }
    }

    #[test]
    fn an_unclosed_tag_beside_a_closed_one_is_an_error() {
        assert_eq!(substitute("{{name}} {{name", &params()), Err(UnclosedTag { offset: 9 }));
    }
}
