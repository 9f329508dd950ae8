//! What was decided, and why.

use std::fmt;
use std::sync::Arc;

use crate::caller::Caller;
use crate::line::{Effect, Line};
use crate::policy::LoadError;
use crate::request::Request;

/// What somebody is told who may not even know whether there is such a thing.
pub const DENIED: &str = "permission denied";

/// What was decided.
#[derive(Debug, Clone)]
pub struct Decision {
    /// Whether the caller may.
    pub allowed: bool,
    /// Why, or why not.
    pub because: Because,
}

/// Why something is allowed or refused.
#[derive(Debug, Clone)]
pub enum Because {
    /// A line says so.
    Line {
        /// The caller's subject by which it was found.
        whose: Whose,
        /// The line.
        line: Arc<Line>,
    },
    /// A line that may be about it has an expression that cannot be read.
    Unreadable {
        /// The caller's subject by which it was found.
        whose: Whose,
        /// The line.
        line: Arc<Line>,
    },
    /// A token of a program, and the project does not let those approve deletions.
    TokenApproves,
    /// A token of another project.
    ForeignToken {
        /// The project it is of.
        project: Arc<str>,
    },
    /// No line allows it, and the roles of the project are not counted.
    ProjectUnread {
        /// What is wrong with them.
        error: Arc<LoadError>,
    },
    /// No line allows it.
    Nothing,
}

/// Which of the caller's subjects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// The role that everybody has.
    DefaultRole(Arc<str>),
    /// The person, account or role itself.
    Own(Arc<str>),
    /// One of the groups.
    Group(Arc<str>),
    /// The empty name, which is everybody's.
    Everybody,
}

/// What a refused caller is told: `permission denied: <resource>, <action>, <object>, sub: <id>, iat: <time>`, as far as
/// there is an id and a time.
pub fn denial(caller: &Caller, request: &Request) -> String {
    let mut text = format!("{DENIED}: {request}");
    if !caller.id().is_empty() {
        text.push_str(&format!(", sub: {}", caller.id()));
    }
    if let Some(issued_at) = caller.issued_at() {
        text.push_str(&format!(", iat: {}", issued_at.strftime("%Y-%m-%dT%H:%M:%SZ")));
    }
    text
}

// === impl Decision ===

impl Decision {
    pub(crate) fn allowed(whose: Whose, line: Arc<Line>) -> Decision {
        Decision { allowed: true, because: Because::Line { whose, line } }
    }

    pub(crate) fn refused(because: Because) -> Decision {
        Decision { allowed: false, because }
    }

    /// The line that decided it.
    pub fn line(&self) -> Option<&Line> {
        match &self.because {
            Because::Line { line, .. } | Because::Unreadable { line, .. } => Some(line),
            _ => None,
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.allowed { "allowed" } else { "refused" };
        write!(f, "{word}: {}", self.because)
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Because::Line { whose, line } => {
                let verb = if line.effect() == Effect::Deny { "denies" } else { "allows" };
                write!(f, "{line} {verb} it to {whose}")
            }
            Because::Unreadable { whose, line } => {
                write!(f, "{line} may be about {whose}, but has an expression that cannot be read; correct it")
            }
            Because::TokenApproves => f.write_str(
                "a token of a program does not approve deletions; ask a person, or let the project's tokens do it",
            ),
            Because::ForeignToken { project } => {
                write!(f, "the token is of project {project} and holds for nothing in another")
            }
            Because::ProjectUnread { error } => {
                write!(f, "no line of the policy allows it, and the roles of the project do not count: {error}")
            }
            Because::Nothing => f.write_str(
                "no line allows it to the caller, to a group of theirs that holds a role, or to everybody",
            ),
        }
    }
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Whose::DefaultRole(role) => write!(f, "everybody by the default role {role}"),
            Whose::Own(id) => f.write_str(id),
            Whose::Group(group) => write!(f, "group {group}"),
            Whose::Everybody => f.write_str("everybody by the empty subject"),
        }
    }
}
