//! Objects out of texts: files of YAML and JSON, and what tools print.

use std::borrow::Cow;

use baton_grammar::yaml;
use serde_json::Value;

use crate::aside::aside;
use crate::error::Fault;

/// The objects of a text, up to where it cannot be read any more.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Documents {
    pub(crate) objects: Vec<Value>,
    /// What is wrong after the objects.
    pub(crate) fault: Option<String>,
}

/// The text of a file: UTF-8 or, where its first bytes say so, UTF-16. What is neither is replaced, as Go does it.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    let wide = |bytes: &[u8], number: fn([u8; 2]) -> u16| {
        let (pairs, odd) = bytes.as_chunks::<2>();
        let units = pairs.iter().map(|pair| number(*pair));
        let mut text: String = char::decode_utf16(units).map(|unit| unit.unwrap_or('\u{fffd}')).collect();
        if !odd.is_empty() {
            text.push('\u{fffd}');
        }
        Cow::Owned(text)
    };
    match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest),
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes),
    }
}

/// Reads documents separated by lines of `---`. A text that begins with `{` may be JSON objects one after another.
/// Empty documents are passed over; one that is no object of a kind ends the reading.
pub(crate) fn stream(text: &str) -> Documents {
    let mut documents = Documents::default();
    let rest = if text.trim_start().starts_with('{') { objects_of_json(text, &mut documents) } else { text };
    for chunk in chunks(rest) {
        if documents.fault.is_some() {
            break;
        }
        match yaml::documents(chunk) {
            Ok(values) => values.into_iter().for_each(|value| documents.push(value)),
            Err(error) => documents.fault = Some(error.to_string()),
        }
    }
    documents
}

/// The objects a tool printed; all of it must be such.
pub(crate) async fn printed(text: String, tool: String) -> Result<Vec<Value>, Fault> {
    let read = aside(move || stream(&text)).await?;
    match read.fault {
        Some(why) => Err(Fault::Manifest { file: tool, why }),
        None => Ok(read.objects),
    }
}

impl Documents {
    fn push(&mut self, value: Value) {
        if value.is_null() || self.fault.is_some() {
            return;
        }
        match missing(&value) {
            None => self.objects.push(value),
            Some(why) => self.fault = Some(format!("document {}: {why}", self.objects.len() + 1)),
        }
    }
}

/// Reads JSON objects as long as there are any and gives the text after them.
fn objects_of_json<'a>(text: &'a str, documents: &mut Documents) -> &'a str {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut read = 0;
    while let Some(Ok(value)) = values.next() {
        read = values.byte_offset();
        documents.push(value);
        if documents.fault.is_some() {
            return "";
        }
    }
    &text[read..]
}

/// The one object of a JSON file.
pub(crate) fn single(text: &str, file: &str) -> Result<Value, String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = match values.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) => return Err(format!("Failed to unmarshal {file:?}: {error}")),
        None => return Err(format!("Failed to unmarshal {file:?}: EOF")),
    };
    if let Some(why) = missing(&value) {
        return Err(format!("Failed to unmarshal {file:?}: {why}"));
    }
    if !text[values.byte_offset()..].trim().is_empty() {
        return Err(format!(
            "Found multiple objects in {file:?}. Only single objects are allowed in JSON files."
        ));
    }
    Ok(value)
}

/// What an object lacks to be one. The object itself, which may hold secrets, is not shown.
fn missing(value: &Value) -> Option<&'static str> {
    match value {
        Value::Object(object) => match object.get("kind") {
            Some(Value::String(kind)) if !kind.is_empty() => None,
            _ => Some("Object 'Kind' is missing"),
        },
        _ => Some("it is no object"),
    }
}

/// The objects with those inside lists in the place of the lists. Nothing remains of a list whose items are null.
pub(crate) fn exploded(objects: Vec<Value>, most: usize) -> Result<Vec<Value>, String> {
    let mut ahead = objects;
    ahead.reverse();
    let mut exploded = Vec::with_capacity(ahead.len());
    while let Some(mut object) = ahead.pop() {
        let is_bare = object.get("spec").is_none() && object.get("status").is_none();
        match object.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => {
                let before = ahead.len();
                for item in items {
                    if let Some(why) = missing(&item) {
                        return Err(format!("an item of a list cannot be used: {why}"));
                    }
                    ahead.push(item);
                }
                ahead[before..].reverse();
            }
            Some(Value::Null) if is_bare => {}
            taken => {
                if let Some(taken) = taken {
                    object["items"] = taken;
                }
                exploded.push(object);
            }
        }
        if exploded.len() > most || ahead.len() > most {
            return Err(format!("the source has more than {most} objects"));
        }
    }
    Ok(exploded)
}

/// The pieces of a text between lines that begin with `---` and hold nothing else but a comment.
fn chunks(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            if at > 0 && is_separator(line) {
                rest = Some(&text[at..]);
                return Some(&text[..at]);
            }
            at += line.len();
        }
        rest = None;
        Some(text)
    })
}

fn is_separator(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| {
        let rest = rest.trim();
        rest.is_empty() || rest.starts_with('#')
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_is_lost_between_documents(text in "(---|\n|#| |a: b|\\{|\\}|\\[|kind: A|\"|\r|-){0,40}") {
            prop_assert_eq!(chunks(&text).collect::<String>(), text.as_str());
        }

        #[test]
        fn any_text_gives_objects_of_a_kind_or_a_reason(text in "(---\n|\n|#x|  |a: b\n|\\{|\\}|\\[|kind: A\n|items: |\"|'|:|,|é|\\*x|&x ){0,30}") {
            let read = stream(&text);
            prop_assert!(read.objects.iter().all(|object| missing(object).is_none()));
            if let Ok(objects) = exploded(read.objects, 100) {
                prop_assert!(objects.iter().all(Value::is_object));
            }
        }

        #[test]
        fn any_bytes_are_some_text(bytes in proptest::collection::vec(any::<u8>(), 0..40), mark in 0..4) {
            let marks: [&[u8]; 4] = [&[], &[0xff, 0xfe], &[0xfe, 0xff], &[0xef, 0xbb, 0xbf]];
            let bytes = [marks[usize::try_from(mark).expect("small")], &bytes].concat();
            prop_assert!(text(&bytes).chars().count() <= bytes.len());
        }
    }
}
