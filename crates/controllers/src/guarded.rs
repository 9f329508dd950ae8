//! Objects read one by one: one that cannot be read harms nobody but itself.
//!
//! `kube`'s guard copies every object into a tree of its own before it reads it, which is a tenth of the work of a
//! controller. Here an object is read off the text; only one that cannot be read is looked at again, for its metadata.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::Resource;
use kube::core::error_boundary::InvalidObject;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// An object, or why it cannot be read.
#[derive(Debug, Clone)]
pub(crate) struct Guarded<T>(pub(crate) Result<T, InvalidObject>);

impl<T: DeserializeOwned> Guarded<T> {
    /// An object that the API answered with.
    ///
    /// # Errors
    /// If not even its metadata can be read.
    pub(crate) fn of(object: &Value) -> Result<Guarded<T>, serde_json::Error> {
        baton_api::object::read(object).map(|object| Guarded(Ok(object))).or_else(|error| {
            let metadata = ObjectMeta::deserialize(&object["metadata"])?;
            Ok(Guarded(Err(InvalidObject { error, metadata })))
        })
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Guarded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Guarded<T>, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        if let Ok(object) = serde_json::from_str(text.get()) {
            return Ok(Guarded(Ok(object)));
        }
        let object = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Guarded::of(&object).map_err(D::Error::custom)
    }
}

impl<T: Resource> Resource for Guarded<T> {
    type DynamicType = T::DynamicType;
    type Scope = T::Scope;

    fn kind(dynamic: &T::DynamicType) -> Cow<'_, str> {
        T::kind(dynamic)
    }

    fn group(dynamic: &T::DynamicType) -> Cow<'_, str> {
        T::group(dynamic)
    }

    fn version(dynamic: &T::DynamicType) -> Cow<'_, str> {
        T::version(dynamic)
    }

    fn plural(dynamic: &T::DynamicType) -> Cow<'_, str> {
        T::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        match &self.0 {
            Ok(object) => object.meta(),
            Err(invalid) => &invalid.metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match &mut self.0 {
            Ok(object) => object.meta_mut(),
            Err(invalid) => &mut invalid.metadata,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_api::ApplicationSet;
    use kube::core::{ObjectList, WatchEvent};

    const GOOD: &str = r#"{"metadata":{"name":"good"},"spec":{"generators":[],"template":{}}}"#;
    const BAD: &str = r#"{"metadata":{"name":"bad","resourceVersion":"7"},"spec":{"generators":3}}"#;

    fn names(sets: &[Guarded<ApplicationSet>]) -> Vec<(&str, bool)> {
        sets.iter().map(|set| (set.meta().name.as_deref().unwrap_or_default(), set.0.is_ok())).collect()
    }

    #[test]
    fn one_that_cannot_be_read_spoils_no_list() {
        let list = format!(r#"{{"metadata":{{"resourceVersion":"9"}},"items":[{GOOD},{BAD}]}}"#);
        let list: ObjectList<Guarded<ApplicationSet>> = serde_json::from_str(&list).expect("a list");
        assert_eq!(names(&list.items), [("good", true), ("bad", false)]);
        let bad = list.items[1].0.as_ref().expect_err("it cannot be read");
        assert!(bad.error.contains("expected a sequence"), "{}", bad.error);
        assert_eq!(bad.metadata.resource_version.as_deref(), Some("7"));
    }

    #[test]
    fn events_of_both_kinds_are_heard() {
        for (object, name, whole) in [(GOOD, "good", true), (BAD, "bad", false)] {
            let line = format!(r#"{{"type":"MODIFIED","object":{object}}}"#);
            let event: WatchEvent<Guarded<ApplicationSet>> = serde_json::from_str(&line).expect("an event");
            let WatchEvent::Modified(set) = event else { panic!("{event:?}") };
            assert_eq!(names(&[set]), [(name, whole)]);
        }
    }

    #[test]
    fn an_answer_is_read_as_it_is() {
        let read = |text: &str| {
            let value: Value = serde_json::from_str(text).expect("an object");
            Guarded::<ApplicationSet>::of(&value).expect("metadata at least")
        };
        assert_eq!(names(&[read(GOOD), read(BAD)]), [("good", true), ("bad", false)]);
        assert!(Guarded::<ApplicationSet>::of(&serde_json::json!({"metadata": 3})).is_err());
    }
}
