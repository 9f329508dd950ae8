//! How a struct and a word are read and written, so that objects look as Argo CD's Go types make them.

use serde::{Deserialize, Deserializer};

/// Declares structs that follow Go's `encoding/json`.
///
/// Fields under `required` are always written and stand in the CRD's `required` list; fields under `optional` are
/// left out while they hold their zero value. Either may be absent or `null` when read, and unknown fields are
/// ignored: an object that Argo CD can read must never stop a list of objects here.
macro_rules! wire {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(required { $( $(#[$required_meta:meta])* $required:ident : $required_type:ty ),* $(,)? })?
            $(optional { $( $(#[$optional_meta:meta])* $optional:ident : $optional_type:ty ),* $(,)? })?
        }
    )*) => {$(
        #[derive(Debug, Clone, Default, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        $(#[$meta])*
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            $($(
                $(#[$required_meta])*
                #[serde(deserialize_with = "crate::wire::null_as_zero")]
                pub $required: $required_type,
            )*)?
            $($(
                $(#[$optional_meta])*
                #[serde(deserialize_with = "crate::wire::null_as_zero", skip_serializing_if = "crate::wire::is_zero")]
                pub $optional: $optional_type,
            )*)?
        }
    )*};
}

/// Declares string enums that keep words they do not know.
///
/// A word from a newer controller, or a mistake the controller is to report, must survive reading and writing; so each
/// enum has `Other`, and `Other("")` is the unset value. The CRD lists the words only under `closed`; `open` fields
/// accept any string there.
macro_rules! words {
    (@schema open [$($word:literal),*]) => {
        ::schemars::json_schema!({ "type": "string" })
    };
    (@schema closed [$($word:literal),*]) => {
        ::schemars::json_schema!({ "type": "string", "enum": [$($word),*] })
    };
    ($(
        $(#[$meta:meta])*
        $mode:ident enum $name:ident {
            $( $(#[$variant_meta:meta])* $variant:ident = $word:literal ),* $(,)?
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum $name {
            $( $(#[$variant_meta])* $variant, )*
            /// Any other word; empty when unset.
            Other(String),
        }

        impl $name {
            /// The word as it stands in the object.
            pub fn as_str(&self) -> &str {
                match self {
                    $( $name::$variant => $word, )*
                    $name::Other(word) => word,
                }
            }

            /// Whether no word is given.
            pub fn is_unset(&self) -> bool {
                self.as_str().is_empty()
            }
        }

        impl Default for $name {
            fn default() -> Self {
                $name::Other(String::new())
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                match word.as_str() {
                    $( $word => $name::$variant, )*
                    _ => $name::Other(word),
                }
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                match value {
                    $name::Other(word) => word,
                    known => known.as_str().to_owned(),
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                words!(@schema $mode [$($word),*])
            }
        }
    )*};
}

pub(crate) use {wire, words};

/// Reads `null` as the zero value, as Go does for every type.
pub(crate) fn null_as_zero<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Whether a field holds what its absence means.
pub(crate) fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
