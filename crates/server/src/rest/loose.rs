//! Bodies as Argo CD reads them: names of fields whatever their case, and `null` for what is not said.
//!
//! A script that writes `DryRun` means a dry run, and must not get a real one.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Map, Value};

/// A value that is read so.
pub(super) struct Loose(pub(super) Value);

/// The fields of a struct under the names it knows. What is said under its very name goes before other spellings.
fn renamed(said: Map<String, Value>, fields: &[&str]) -> Map<String, Value> {
    let mut known = Map::new();
    let (exact, other): (Vec<_>, Vec<_>) = said
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .partition(|(name, _)| fields.contains(&&**name));
    known.extend(exact);
    for (name, value) in other {
        let field = fields.iter().find(|field| field.eq_ignore_ascii_case(&name));
        known.entry(field.map_or(name, |field| (*field).to_owned())).or_insert(value);
    }
    known
}

impl<'de> Deserializer<'de> for Loose {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => {
                let mut items = SeqDeserializer::new(items.into_iter().map(Loose));
                let read = visitor.visit_seq(&mut items)?;
                items.end().map(|()| read)
            }
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(name, value)| (name, Loose(value)));
                visitor.visit_map(MapDeserializer::new(fields))
            }
            plain => plain.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Object(said) => Loose(Value::Object(renamed(said, fields))).deserialize_any(visitor),
            // A list of values would be read as the fields in their order.
            other => Err(serde::de::Error::invalid_type(kind(&other), &"an object")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Error> for Loose {
    type Deserializer = Loose;

    fn into_deserializer(self) -> Loose {
        self
    }
}

fn kind(value: &Value) -> serde::de::Unexpected<'static> {
    match value {
        Value::Null => serde::de::Unexpected::Unit,
        Value::Array(_) => serde::de::Unexpected::Seq,
        _ => serde::de::Unexpected::Other("a plain value"),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Outer {
        dry_run: bool,
        name: String,
        inner: Option<Vec<Inner>>,
        any: Value,
        count: i64,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Inner {
        first_key: String,
    }

    fn read(value: Value) -> Result<Outer, String> {
        Outer::deserialize(Loose(value)).map_err(|error| error.to_string())
    }

    #[test]
    fn fields_are_meant_whatever_their_case() {
        for name in ["dryRun", "DryRun", "dryrun", "DRYRUN"] {
            assert_eq!(read(json!({name: true})), Ok(Outer { dry_run: true, ..Outer::default() }), "{name}");
        }
        let deep = Some(vec![Inner { first_key: "x".to_owned() }]);
        let all = Outer { inner: deep, count: 3, any: json!({"DryRun": 1}), ..Outer::default() };
        let said = json!({"INNER": [{"FirstKey": "x"}], "Count": 3, "any": {"DryRun": 1}, "unknown": {}});
        assert_eq!(read(said), Ok(all), "what is not ours to name stays as it is written");
        assert_eq!(
            read(json!({"dryRun": false, "DryRun": true})),
            Ok(Outer::default()),
            "its very name counts"
        );
    }

    #[test]
    fn null_is_what_is_not_said_and_another_type_is_refused() {
        assert_eq!(read(json!({"name": null, "dryRun": null, "inner": null})), Ok(Outer::default()));
        for wrong in [json!([true]), json!("x"), json!({"dryRun": "yes"}), json!({"count": 1.5}), json!(null)]
        {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
        assert_eq!(String::deserialize(Loose(json!("restart"))).map_err(drop), Ok("restart".to_owned()));
        assert_eq!(
            Value::deserialize(Loose(json!({"A": [1, null]}))).map_err(drop),
            Ok(json!({"A": [1, null]}))
        );
    }
}
