//! Structural schemas and everything the API server decides by them.
//!
//! Pure: values in, values out. No I/O, no clock, no globals.

pub mod apply;
mod cel;
mod decode;
mod defaults;
mod error;
mod formats;
mod gotext;
mod lists;
mod model;
pub mod names;
pub mod patch;
mod path;
mod prune;
mod resource;
pub mod strategic;
pub mod strict;
pub mod structural;
mod validate;
mod validator;

pub use cel::Rules;
pub use decode::type_errors;
pub use defaults::apply_defaults;
pub use error::{FieldError, Problem};
pub use model::{
    Additional, Kind, Limits, ListKind, MAX_DEPTH, PatchStrategy, Reader, Rule, Schema, SchemaError,
};
pub use prune::{prune, unknown_fields};
pub use resource::metadata_type_errors;
pub use validate::validate;
pub use validator::Validator;
