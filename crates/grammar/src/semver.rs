//! Versions and version ranges as Argo CD's library (Masterminds/semver 3.4) reads them: `v1.2`, `~1.2 || ^2`,
//! `1.2.x`, `>=1, <2`, `1.0 - 2.0`.

mod constraint;
mod version;

pub use constraint::{Constraint, ConstraintError};
pub use version::{Version, VersionError};

/// Whether a revision names a range of versions rather than one: it is a constraint and no version.
///
/// A plain `1.2` is a version and so names a tag or branch of that name.
pub fn is_constraint(revision: &str) -> bool {
    Version::parse(revision).is_err() && Constraint::parse(revision).is_ok()
}
