//! What the embedded API server knows of Kubernetes' built-in kinds: names, schemas, defaults, validation, table columns and
//! the protobuf form clients send.
//!
//! Pure: values in, values out. No I/O, no clock; the current time comes in as an argument.

mod age;
mod assigned;
mod columns;
mod defaults;
mod events;
mod fields;
mod lifecycle;
mod lookup;
mod names;
mod openapi;
pub mod protobuf;
mod quality;
mod registry;
mod schemas;
mod validation;

pub use age::human_age;
pub use columns::Column;
pub use events::{event_to_core, event_to_new};
pub use openapi::openapi;
pub use registry::{Kind, Subresource, Verbs, all, find, find_kind};
pub use schemas::definition;
