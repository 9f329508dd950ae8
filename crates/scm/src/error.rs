//! What can go wrong with a host.

use std::fmt;

use jiff::Timestamp;

/// Why a host could not be asked, or what was wrong with its answer.
///
/// The message names the request (without its query) and never a credential.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ScmError {
    kind: Kind,
    message: String,
    /// The host's own name for the trouble, from hosts that give one.
    code: Option<String>,
}

/// What sort of trouble it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Asking hosts is switched off.
    Disabled,
    /// The API is not among those allowed, or the Secret is not one for hosts.
    NotAllowed,
    /// The generator's own fields make no request possible: a regular expression, a protocol, a reference.
    Invalid,
    /// The host is of a kind that cannot be asked.
    Unsupported,
    /// The credentials were refused.
    Unauthorized,
    /// The host does not know the organisation, the repository or the project.
    NotFound,
    /// The host wants to be left alone until then; no call is made before.
    RateLimited {
        /// When to ask again.
        until: Timestamp,
    },
    /// The answer is not what the host's documentation promises.
    Protocol,
    /// No answer, or one that stopped in the middle.
    Network,
    /// The answer is larger than what is read.
    Limit,
}

impl ScmError {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> ScmError {
        ScmError { kind, message: message.into(), code: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> ScmError {
        ScmError::new(Kind::Invalid, message)
    }

    pub(crate) fn protocol(message: impl Into<String>) -> ScmError {
        ScmError::new(Kind::Protocol, message)
    }

    /// What sort of trouble it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Says first what was being done.
    pub(crate) fn context(self, doing: impl fmt::Display) -> ScmError {
        ScmError { message: format!("{doing}: {}", self.message), ..self }
    }

    /// The same message as trouble of another sort.
    pub(crate) fn with_kind(self, kind: Kind) -> ScmError {
        ScmError { kind, ..self }
    }

    pub(crate) fn with_code(self, code: Option<String>) -> ScmError {
        ScmError { code, ..self }
    }

    /// Whether the host named the trouble so.
    pub(crate) fn has_code(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }
}
