//! Who may do what: the policies of `argocd-rbac-cm` and the roles of AppProjects, evaluated as Argo CD does.
//!
//! 1. [`Policy::load`] reads the ConfigMap, once per version of it; what it refuses it refuses as a whole, and the
//!    caller keeps the policy it had.
//! 2. [`Rights`] holds that policy and what the roles of projects add to it, compiled once per text.
//! 3. A [`Caller`] makes a [`Request`]; the [`Decision`] says yes or no, and names the line.
//! 4. Whoever asks often for one caller, as for a list, asks a [`Review`]: it finds the caller's lines once.
//!
//! # Guarantees
//! - *Denied by default*: what no line allows is refused, and so is whatever cannot be judged.
//! - Roles of a project hold for requests in that project and for nothing else, whatever their text says.
//! - No text makes this crate panic; sizes, counts and the depth of roles are bounded.
//!
//! # What differs from Argo CD
//! - The built-in policy is read as globs in either mode. As regular expressions its patterns are errors, and nobody
//!   would have a right but by lines of their own.
//! - A person or a group that is called like a role (`role:…`, `proj:…`) is not taken for it.
//! - `role:admin` has Baton's rights over ApplicationSets too ([`SetVerb`]), `policy.strictDeny` exists, and tokens of
//!   programs do not approve deletions unless the project lets them ([`TokenApproval`]).

mod action;
mod builtin;
mod caller;
mod csv;
mod decision;
mod finding;
mod line;
mod pattern;
mod policy;
mod project;
mod request;
mod review;
mod rights;
mod roles;
mod rules;
mod validate;

pub use action::{Action, Verb};
pub use baton_api::verbs::SetVerb;
pub use caller::{Caller, Credential};
pub use csv::CsvFault;
pub use decision::{Because, DENIED, Decision, Whose, denial};
pub use finding::Finding;
pub use line::{Effect, Line, LineFault, Origin};
pub use pattern::MatchMode;
pub use policy::{DenyScope, LoadError, Policy};
pub use project::TokenApproval;
pub use request::{Object, Request, RequestError, Resource};
pub use review::Review;
pub use rights::Rights;
pub use validate::validate_roles;
