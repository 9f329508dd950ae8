//! Pages of lists, whose objects are parsed one at a time: parsed, they take ten times the room of their text.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::error::ClusterError;

/// What a page says of its list.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PageMetadata {
    /// Version the list is of.
    pub(crate) resource_version: String,
    /// Where the next page begins; empty at the end.
    pub(crate) r#continue: String,
}

/// Reads a page. `each` may be shown a part before an error is found.
///
/// # Errors
/// If it is no page. One without `items` is none, lest a broken answer look like an empty list.
pub(crate) fn read(text: &[u8], mut each: impl FnMut(Value)) -> Result<PageMetadata, ClusterError> {
    let mut parser = serde_json::Deserializer::from_slice(text);
    let page = parser.deserialize_map(PageVisitor(&mut each)).and_then(|page| parser.end().map(|()| page));
    page.map_err(|error| ClusterError::NoAnswer(format!("not the list that is expected: {error}")))
}

struct PageVisitor<'a>(&'a mut dyn FnMut(Value));

impl<'de> Visitor<'de> for PageVisitor<'_> {
    type Value = PageMetadata;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<PageMetadata, A::Error> {
        let (mut metadata, mut has_items) = (PageMetadata::default(), false);
        while let Some(name) = fields.next_key::<String>()? {
            match name.as_str() {
                "metadata" => metadata = fields.next_value()?,
                "items" => {
                    has_items = true;
                    fields.next_value_seed(Items(self.0))?;
                }
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        if has_items { Ok(metadata) } else { Err(A::Error::missing_field("items")) }
    }
}

struct Items<'a>(&'a mut dyn FnMut(Value));

impl<'de> DeserializeSeed<'de> for Items<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects")
    }

    /// Go writes an empty list as null at times.
    fn visit_none<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(object) = items.next_element()? {
            (self.0)(object);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Result<(PageMetadata, Vec<Value>), ClusterError> {
        let mut objects = Vec::new();
        let metadata = read(text.as_bytes(), |object| objects.push(object))?;
        Ok((metadata, objects))
    }

    #[test]
    fn objects_come_one_by_one_wherever_the_metadata_stands() {
        for text in [
            r#"{"kind":"L","metadata":{"resourceVersion":"7","continue":"x","other":1},"items":[1,{"a":2}]}"#,
            r#"{"items":[1,{"a":2}],"metadata":{"resourceVersion":"7","continue":"x"}}"#,
        ] {
            let (metadata, objects) = page(text).expect("a page");
            assert_eq!((metadata.resource_version.as_str(), metadata.r#continue.as_str()), ("7", "x"));
            assert_eq!(objects, [1.into(), serde_json::json!({"a": 2})]);
        }
    }

    #[test]
    fn null_is_an_empty_list_and_nothing_is_none() {
        assert_eq!(page(r#"{"items":null}"#), Ok((PageMetadata::default(), vec![])));
        for text in [
            "{}",
            "[]",
            "",
            r#"{"items":{}}"#,
            r#"{"items":[1]"#,
            r#"{"items":[]} x"#,
            r#"{"metadata":3,"items":[]}"#,
        ] {
            assert!(page(text).is_err(), "{text}");
        }
    }
}
