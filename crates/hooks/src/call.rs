//! One call, ready to be made: its templates are filled in, and it has been judged.

use std::fmt;
use std::time::Duration;

use http::{HeaderName, Method};
use url::Url;

use crate::http::origin;
use crate::secret::{Redactor, Secret};

/// One attempt at a hook or a check. [`crate::prepare`] makes it.
#[derive(Debug, Clone)]
pub struct Call {
    /// The set it belongs to.
    pub set: SetName,
    /// What it is in its phase.
    pub role: Role,
    /// Its name.
    pub name: String,
    /// What is done.
    pub action: Action,
    /// How long it may take, all in all.
    pub timeout: Duration,
    /// Its number, from 1.
    pub attempt: u32,
    /// The same for every attempt, so that a receiver can tell a repetition.
    pub idempotency_key: String,
    /// Takes its secrets out of texts.
    pub redactor: Redactor,
}

/// Namespace and name of an ApplicationSet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetName {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// What a call is in its phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// A hook before the phase.
    PreHook,
    /// A hook after the phase.
    PostHook,
    /// A check.
    Check,
}

/// What is done.
#[derive(Debug, Clone)]
pub enum Action {
    /// An HTTP call.
    Http(Request),
    /// A command.
    Command(Invocation),
}

/// An HTTP call.
#[derive(Clone)]
pub struct Request {
    /// Where to.
    pub url: Url,
    /// How.
    pub method: Method,
    /// The headers of the configuration; the automatic ones are added.
    pub headers: Vec<(HeaderName, Secret)>,
    /// The body.
    pub body: Secret,
    /// Which statuses are success.
    pub expected: Vec<u16>,
    /// Take any certificate.
    pub insecure: bool,
}

/// A command.
#[derive(Clone)]
pub struct Invocation {
    /// The program, as the configuration names it.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The variables of the configuration; the automatic ones are added.
    pub environment: Vec<(String, Secret)>,
}

// === impl Role ===

impl Role {
    /// `pre` or `post`; none for a check.
    pub fn hook_type(self) -> Option<&'static str> {
        match self {
            Role::PreHook => Some("pre"),
            Role::PostHook => Some("post"),
            Role::Check => None,
        }
    }
}

// === impl SetName ===

impl fmt::Display for SetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

// === impl Request ===

impl fmt::Debug for Request {
    /// The path and query of a webhook are often its credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("url", &origin(&self.url))
            .field("method", &self.method)
            .field("headers", &self.headers)
            .field("body", &self.body)
            .field("expected", &self.expected)
            .field("insecure", &self.insecure)
            .finish()
    }
}

// === impl Invocation ===

impl fmt::Debug for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invocation")
            .field("program", &self.program)
            .field("arguments", &self.arguments.len())
            .field("environment", &self.environment)
            .finish()
    }
}
