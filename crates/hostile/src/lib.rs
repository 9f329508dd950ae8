//! Hostile input for the embedded API.
//!
//! Each function here is one fuzz body: it takes any bytes, makes input out of them, and panics where an invariant is
//! broken. libFuzzer drives them from `fuzz/`; `cargo test` drives them briefly with random bytes. Bytes are read as
//! dice ([`Dice`]) that steer a generator, so that a few hundred cases reach past the first parser.

mod applying;
mod dice;
mod encoding;
mod grammars;
mod grown;
mod patching;
mod protobuf;
mod requesting;
mod rules;
mod templates;
mod values;
mod world;
mod yaml;

pub use applying::apply;
pub use dice::Dice;
pub use grammars::grammars;
pub use patching::patch;
pub use protobuf::protobuf;
pub use requesting::request;
pub use rules::rules;
pub use yaml::yaml;
