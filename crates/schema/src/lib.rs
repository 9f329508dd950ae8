//! Structural schemas and everything the API server decides by them.
//!
//! Pure: values in, values out. No I/O, no clock, no globals.

mod error;
mod model;

pub use error::{FieldError, Problem};
pub use model::{
    Additional, Kind, Limits, ListKind, MAX_DEPTH, PatchStrategy, Reader, Rule, Schema, SchemaError,
};
