//! From an Application's sources to the objects they describe.
//!
//! Plain directories are read straight from git's objects; nothing of them is ever written to disk. Kustomize and Helm
//! need files: for these the part of the repository they need is written into a temporary directory of their own, and
//! the installed tools run there, see [`Settings`].
//!
//! # Guarantees
//! - An answer is whole or it is an error: no file that should count is passed over because it could not be read.
//! - No path, link or option of a source reaches a file outside its repository (and those it names by `ref`).
//! - What one set of credentials has read is never given to another.
//! - Files, bytes, objects, time and output are bounded ([`Limits`]).

mod aside;
mod cache;
mod changes;
mod checkout;
mod description;
mod detection;
mod directory;
mod documents;
mod environment;
mod error;
mod ground;
mod helm;
mod kustomize;
mod manifests;
mod overrides;
mod request;
mod settings;
mod tools;
mod workshop;

pub use description::{ChartDetails, Described};
pub use error::{Fault, ManifestError};
pub use manifests::{Manifests, Revision};
pub use request::{Rendered, Request};
pub use settings::{Limits, Settings};
