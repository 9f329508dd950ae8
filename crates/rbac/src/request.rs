//! What is asked for: a resource, an action, and an object named by the rule of its resource.

use std::fmt;
use std::str::FromStr;

use crate::action::{Action, Verb};
use crate::finding::shown;

/// Longest object, in bytes. URLs of repositories are the longest there are.
const LONGEST_OBJECT: usize = 4 << 10;

/// What a right is over, in the words of policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// Clusters: `<server>` or `<project>/<server>`.
    Clusters,
    /// Projects: `<name>`.
    Projects,
    /// Applications: `<project>/<name>` or `<project>/<namespace>/<name>`.
    Applications,
    /// ApplicationSets, named like Applications.
    ApplicationSets,
    /// Repositories: `<url>` or `<project>/<url>`.
    Repositories,
    /// Repositories that are written to.
    WriteRepositories,
    /// Certificates and known hosts.
    Certificates,
    /// Accounts: `<name>`.
    Accounts,
    /// Keys of commits.
    GpgKeys,
    /// Logs of an Application's pods, named like the Application.
    Logs,
    /// Terminals in an Application's pods, named like the Application.
    Exec,
    /// Extensions: `<name>`.
    Extensions,
}

/// The object of a request, as policies name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Object(String);

/// What somebody asks to do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Request {
    /// What it is over.
    pub resource: Resource,
    /// What is to be done.
    pub action: Action,
    /// To what.
    pub object: Object,
}

/// Why a text is no part of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// No resource of that name.
    #[error("unknown resource {resource}: it is one of {}", words(Resource::ALL.iter().map(|one| one.word())))]
    Resource {
        /// What was given.
        resource: String,
    },
    /// No such action.
    #[error(
        "unknown action {action}: it is one of {}, or action/<group>/<Kind>/<name>, or update or delete with \
         /<group>/<Kind>/<namespace>/<name>",
        words(Verb::ALL.iter().map(|one| one.word()))
    )]
    Action {
        /// What was given.
        action: String,
    },
    /// A part that would read as two.
    #[error("the {what} {text} has a / in it")]
    Slash {
        /// Which part.
        what: &'static str,
        /// What was given.
        text: String,
    },
    /// Too long.
    #[error("the {what} is longer than {most} bytes")]
    TooLong {
        /// Which part.
        what: &'static str,
        /// How long it may be.
        most: usize,
    },
}

// === impl Resource ===

impl Resource {
    /// All of them, in the order Argo CD lists them.
    pub const ALL: [Resource; 12] = [
        Resource::Clusters,
        Resource::Projects,
        Resource::Applications,
        Resource::ApplicationSets,
        Resource::Repositories,
        Resource::WriteRepositories,
        Resource::Certificates,
        Resource::Accounts,
        Resource::GpgKeys,
        Resource::Logs,
        Resource::Exec,
        Resource::Extensions,
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Resource::Clusters => "clusters",
            Resource::Projects => "projects",
            Resource::Applications => "applications",
            Resource::ApplicationSets => "applicationsets",
            Resource::Repositories => "repositories",
            Resource::WriteRepositories => "write-repositories",
            Resource::Certificates => "certificates",
            Resource::Accounts => "accounts",
            Resource::GpgKeys => "gpgkeys",
            Resource::Logs => "logs",
            Resource::Exec => "exec",
            Resource::Extensions => "extensions",
        }
    }

    /// Whether its objects can belong to a project, and the project's roles can be given rights over them.
    pub fn is_project_scoped(self) -> bool {
        matches!(
            self,
            Resource::Applications
                | Resource::ApplicationSets
                | Resource::Repositories
                | Resource::Clusters
                | Resource::Logs
                | Resource::Exec
        )
    }
}

impl FromStr for Resource {
    type Err = RequestError;

    fn from_str(text: &str) -> Result<Resource, RequestError> {
        let found = Resource::ALL.into_iter().find(|resource| resource.word() == text);
        found.ok_or_else(|| RequestError::Resource { resource: shown(text) })
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

// === impl Object ===

impl Object {
    /// An Application or ApplicationSet, or the logs or terminals of one: `<project>/<name>`, and
    /// `<project>/<namespace>/<name>` when it lives outside the namespace of the control plane. No namespace is that
    /// of the control plane.
    ///
    /// # Errors
    /// A part with a `/` in it, which would read as two, and too long a text.
    pub fn in_project(
        project: &str,
        namespace: &str,
        name: &str,
        control_namespace: &str,
    ) -> Result<Object, RequestError> {
        for (what, part) in [("project", project), ("namespace", namespace), ("name", name)] {
            if part.contains('/') {
                return Err(RequestError::Slash { what, text: shown(part) });
            }
        }
        if namespace.is_empty() || control_namespace.is_empty() || namespace == control_namespace {
            return Object::new(format!("{project}/{name}"));
        }
        Object::new(format!("{project}/{namespace}/{name}"))
    }

    /// A cluster by the URL of its server, or a repository by its URL: as such, or after the project it belongs to.
    ///
    /// # Errors
    /// A project with a `/` in it, and too long a text.
    pub fn at_url(project: Option<&str>, url: &str) -> Result<Object, RequestError> {
        match project.filter(|project| !project.is_empty()) {
            Some(project) if project.contains('/') => {
                Err(RequestError::Slash { what: "project", text: shown(project) })
            }
            Some(project) => Object::new(format!("{project}/{url}")),
            None => Object::new(url),
        }
    }

    /// Whatever is named by one text: a project, an account, a certificate, a key, an extension.
    ///
    /// # Errors
    /// Too long a text.
    pub fn new(text: impl Into<String>) -> Result<Object, RequestError> {
        let text = text.into();
        if text.len() > LONGEST_OBJECT {
            return Err(RequestError::TooLong { what: "object", most: LONGEST_OBJECT });
        }
        Ok(Object(text))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl Request ===

impl Request {
    /// To do something to an object.
    pub fn new(resource: Resource, action: impl Into<Action>, object: Object) -> Request {
        Request { resource, action: action.into(), object }
    }

    /// What `can-i` asks: words as they come in a URL. The object may name the namespace of the control plane, which
    /// is left out as everywhere.
    ///
    /// # Errors
    /// Words that are no resource or action, and texts that are too long.
    pub fn parse(
        resource: &str,
        action: &str,
        object: &str,
        control_namespace: &str,
    ) -> Result<Request, RequestError> {
        let resource: Resource = resource.parse()?;
        let parts: Vec<&str> = object.splitn(4, '/').collect();
        let object = match parts[..] {
            [project, namespace, name]
                if resource.is_project_scoped()
                    && !namespace.is_empty()
                    && namespace == control_namespace =>
            {
                Object::in_project(project, namespace, name, control_namespace)?
            }
            _ => Object::new(object)?,
        };
        Ok(Request { resource, action: Action::parse(action)?, object })
    }

    /// The project whose roles have a say in it.
    pub fn project(&self) -> Option<&str> {
        match self.resource {
            Resource::Projects => Some(self.object.as_str()),
            resource if resource.is_project_scoped() => Some(self.object.as_str().split_once('/')?.0),
            _ => None,
        }
    }

    /// What the objects of all requests of its resource in its project begin with.
    pub(crate) fn beginning(&self) -> String {
        match (self.resource, self.project()) {
            (Resource::Projects, Some(name)) => name.to_owned(),
            (_, Some(name)) => format!("{name}/"),
            (_, None) => String::new(),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, {}", self.resource, self.action, self.object)
    }
}

fn words(words: impl Iterator<Item = &'static str>) -> String {
    words.collect::<Vec<_>>().join(", ")
}
