//! Both template languages of ApplicationSets: `{{param}}` substitution ([`params`]) and Go's text/template
//! ([`Template`]).
//!
//! Pure: text and values in, text out; the time and randomness are given by the caller ([`Execution`]). A template is
//! compiled once and executed as often as wanted. Execution is bounded: every statement, call, byte of text and value
//! made or looked at is paid for in steps, output and nesting have limits of their own, and no map is ever put inside
//! itself; so a hostile template ends with an error, never with a panic, a hang or the memory gone. Functions that take
//! long by nature (keys, password hashes, regular expressions) pay many steps.
//!
//! Templates can change the maps they are given (`set`, `unset`, `merge`), as in Go: who executes several on the same
//! data and wants them apart gives each a [`Map::detached`] copy.
//!
//! # Differences from Go
//! - There are no complex numbers.
//! - Strings are always UTF-8: what is cut through a character or decoded to other bytes holds replacement characters,
//!   and sprig's `initials` and `nospace`, which garble other text than ASCII, do not here.
//! - Of sprig's functions `env`, `expandenv` and `getHostByName` are unknown, as in Argo CD.
//! - `keys` and `values` are in the order of the keys, where sprig's have none; `slice` does not reach into the spare
//!   capacity of a list.
//! - `now` prints without the reading of a monotonic clock. Zones are those built in, whatever the machine has.
//! - Numbers of a `semver` are called `int64` instead of `uint64`; two versions are `eq` when they were read from the
//!   same text, where Go compares addresses.
//! - Certificates are signed with RSA keys of 2048 to 4096 bits, keys on the curves P-256 and P-384, and Ed25519.
//!   Keys on a curve, and what signing with them needs of randomness, are drawn from the system always.
//! - Where Go shows how its runtime came to grief (an index out of range, a nil pointer) or what its YAML parser
//!   thinks, the place in the template is the same, the message may differ.
//! - A map put inside itself, a value nested deeper than 200 and whatever exceeds the [`Limits`] are errors.

mod ast;
mod budget;
mod builtins;
mod callable;
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
