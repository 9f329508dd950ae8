//! Both template languages of ApplicationSets: `{{param}}` substitution ([`params`]) and Go's text/template
//! ([`Template`]).
//!
//! Pure: text and values in, text out. A template is compiled once and executed as often as wanted; execution is
//! bounded in steps, output and depth, so a hostile template ends with an error, never with a panic or a hang.
//!
//! # Differences from Go
//! Complex numbers, `%[1]d` argument indexes and the hexadecimal and binary verbs of floats are missing; strings are
//! always UTF-8, so a byte slice through a character holds replacement characters; `len` of a missing value says
//! `len of nil pointer` where Go shows a message of its reflection; `nospace` leaves non-ASCII text whole, which
//! sprig garbles; integers are all called `int`. Of sprig's functions only those under `sprig` exist, and `slice` is
//! text/template's; any other name is an unknown function.

mod ast;
mod budget;
mod builtins;
mod deep;
mod exec;
mod execution;
mod float;
mod function;
mod lex;
mod object;
pub mod params;
mod parse;
mod print;
mod printf;
mod quote;
mod sprig;
mod template;
mod uses;
mod value;
mod verbs;

pub use builtins::functions;
pub use exec::ExecError;
pub use execution::{Entropy, Execution, SeededEntropy, SystemEntropy};
pub use object::Object;
pub use parse::ParseError;
pub use sprig::names::normalize;
pub use template::{Limits, MissingKey, Template, UnknownOption};
pub use value::{List, Map, Value};
