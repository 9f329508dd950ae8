//! Objects as texts: expressions and templates may ask for any field, and most objects are asked for none.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An object of a kind, as the API shows it but for `managedFields`.
pub(super) struct Raw<K> {
    metadata: ObjectMeta,
    pub(super) object: Arc<Value>,
    kind: PhantomData<fn() -> K>,
}

// === impl Raw ===

impl<'de, K> Deserialize<'de> for Raw<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Raw<K>, D::Error> {
        let mut object = Value::deserialize(deserializer)?;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let metadata = ObjectMeta::deserialize(&object["metadata"]).map_err(D::Error::custom)?;
        Ok(Raw { metadata, object: Arc::new(object), kind: PhantomData })
    }
}

impl<K> Clone for Raw<K> {
    fn clone(&self) -> Raw<K> {
        Raw { metadata: self.metadata.clone(), object: self.object.clone(), kind: PhantomData }
    }
}

impl<K> fmt::Debug for Raw<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Raw").field("metadata", &self.metadata).finish_non_exhaustive()
    }
}

impl<K: Resource> Resource for Raw<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dynamic: &K::DynamicType) -> Cow<'_, str> {
        K::kind(dynamic)
    }

    fn group(dynamic: &K::DynamicType) -> Cow<'_, str> {
        K::group(dynamic)
    }

    fn version(dynamic: &K::DynamicType) -> Cow<'_, str> {
        K::version(dynamic)
    }

    fn plural(dynamic: &K::DynamicType) -> Cow<'_, str> {
        K::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
