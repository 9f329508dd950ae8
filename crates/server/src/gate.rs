//! Who may do what: the question that every call asks, and its answer.

use baton_api::AppProject;

use crate::caller::Caller;
use crate::error::{Code, Error};

/// What somebody wants to do.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// To which kind of thing, in Argo CD's words: `applications`, `applicationsets`, `projects`, `accounts`.
    pub resource: &'a str,
    /// What: `get`, `sync`, `action/<group>/<Kind>/<name>` and the like.
    pub action: &'a str,
    /// To which one: `<project>/<name>`, with the namespace between them unless it is the control plane's.
    pub object: &'a str,
    /// The project of the thing, where there is one, whose roles count too.
    pub project: Option<&'a AppProject>,
}

/// Whether somebody may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether.
    pub allowed: bool,
    /// Whether something forbids it outright, so that no wider right makes up for it.
    pub forbidden: bool,
    /// Why, for people: the line that allows or denies it, or that none does.
    pub reason: String,
}

/// Decides who may do what. It must be quick: it is asked for every item of a list.
///
/// # Assumptions
/// That tokens of programs approve nothing unless the project lets them, and that a project's token holds for nothing
/// of another project, is decided here too.
pub trait Gate: Send + Sync {
    /// Whether the caller may.
    fn decide(&self, caller: &Caller, ask: &Ask<'_>) -> Decision;
}

// === impl Decision ===

impl Decision {
    /// It may.
    pub fn allow(reason: impl Into<String>) -> Decision {
        Decision { allowed: true, forbidden: false, reason: reason.into() }
    }

    /// Nothing says that it may.
    pub fn refuse(reason: impl Into<String>) -> Decision {
        Decision { allowed: false, forbidden: false, reason: reason.into() }
    }

    /// Something says that it may not.
    pub fn forbid(reason: impl Into<String>) -> Decision {
        Decision { allowed: false, forbidden: true, reason: reason.into() }
    }
}

/// What a caller is told who may not, in Argo CD's words.
pub(crate) fn denied(caller: &Caller, ask: &Ask<'_>) -> Error {
    if !caller.is_known() {
        return Error::hidden();
    }
    let issued = caller.issued.map(|at| format!(", iat: {at}")).unwrap_or_default();
    let Ask { resource, action, object, .. } = ask;
    let message =
        format!("permission denied: {resource}, {action}, {object}, sub: {}{issued}", caller.subject);
    Error::new(Code::PermissionDenied, message)
}
