//! Who may do what at a Kubernetes API: Roles, ClusterRoles and their bindings, evaluated as Kubernetes does.
//!
//! Pure: objects and a question in, an answer out. Rights only add up; what no rule grants is refused, and a rule that
//! cannot be read grants nothing.

mod binding;
mod cover;
mod policy;
mod request;
mod rule;

pub use cover::uncovered;
pub use policy::{Decision, Policy, RoleRef};
pub use request::{Attributes, Caller, Request};
pub use rule::Rule;

/// The API group of the objects this crate reads.
pub const GROUP: &str = "rbac.authorization.k8s.io";
/// Who is in it may do anything, whatever is bound.
pub const MASTERS: &str = "system:masters";
