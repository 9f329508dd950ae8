//! What is asked: by whom, and to do what.

use std::fmt;

/// Somebody who asks.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// User name.
    pub name: &'a str,
    /// The groups the user is in.
    pub groups: &'a [String],
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// Objects of the API.
    Resource(Attributes<'a>),
    /// Anything else, such as `/version`.
    Path {
        /// The method in lower case.
        verb: &'a str,
        /// The path.
        path: &'a str,
    },
}

/// A request for objects. Empty texts say "none".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes<'a> {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, or one of RBAC's own.
    pub verb: &'a str,
    /// API group.
    pub group: &'a str,
    /// Plural name of the kind.
    pub resource: &'a str,
    /// Such as `status`.
    pub subresource: &'a str,
    /// None asks for the whole cluster.
    pub namespace: &'a str,
    /// None where the request is about several objects, or about one that has no name yet.
    pub name: &'a str,
}

// === impl Attributes ===

impl Attributes<'_> {
    /// The resource as rules name it: `pods`, `pods/log`.
    pub fn qualified(&self) -> String {
        match self.subresource {
            "" => self.resource.to_owned(),
            subresource => format!("{}/{subresource}", self.resource),
        }
    }
}

// === impl Request ===

impl Request<'_> {
    /// Says in Kubernetes' words that `user` may not do this.
    pub fn refused(&self, user: &str) -> String {
        match self {
            Request::Path { verb, path } => format!("User {user:?} cannot {verb} path {path:?}"),
            Request::Resource(asked) => {
                let place = match asked.namespace {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {namespace:?}"),
                };
                let (verb, resource, group) = (asked.verb, asked.qualified(), asked.group);
                format!("User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {place}")
            }
        }
    }
}

impl fmt::Display for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Path { verb, path } => write!(f, "{verb} {path}"),
            Request::Resource(asked) => write!(f, "{} {}", asked.verb, asked.qualified()),
        }
    }
}
