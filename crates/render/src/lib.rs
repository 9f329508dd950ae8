//! From a template and one set of parameters to an Application.
//!
//! Values in, values out; only templates that ask for the time or for randomness (`now`, `randAlphaNum`) get it from the
//! system, as Argo CD's do. A template is compiled once ([`Renderer`]), so that rendering touches only the strings
//! that hold template text; everything else is copied. The same walk fills in the second child of a matrix
//! ([`Interpolation`]). What one Application may use is bounded: bytes, nesting, nodes and steps of its templates.

mod engine;
mod error;
mod interpolate;
mod limits;
mod overlay;
mod patch;
mod path;
mod renderer;
mod skeleton;
mod tags;
mod text;

pub use engine::Engine;
pub use error::{RenderError, Subject};
pub use interpolate::{Interpolation, interpolate};
pub use overlay::overlay;
pub use renderer::Renderer;
pub use text::Text;

/// One set of parameters.
///
/// Values nest under Go templates; under `{{param}}` substitution keys are dotted and values are strings.
pub type Params = baton_template::Map;
