//! Who gets a role.

use serde_json::Value;

use crate::policy::RoleRef;
use crate::request::Caller;

/// A binding, read.
#[derive(Debug, Clone)]
pub(crate) struct Binding {
    pub(crate) name: String,
    pub(crate) role: RoleRef,
    subjects: Vec<Subject>,
}

#[derive(Debug, Clone)]
pub(crate) enum Subject {
    User(String),
    Group(String),
    ServiceAccount { namespace: String, name: String },
}

// === impl Binding ===

impl Binding {
    /// As it stands in the API. A subject or role of another kind is nobody and nothing.
    pub(crate) fn read(binding: &Value, namespace: &str) -> Option<Binding> {
        let role = &binding["roleRef"];
        let role = RoleRef::new(role["kind"].as_str()?, namespace, role["name"].as_str()?)?;
        let subjects = binding["subjects"].as_array().into_iter().flatten();
        Some(Binding {
            name: binding["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            role,
            subjects: subjects.filter_map(|subject| Subject::read(subject, namespace)).collect(),
        })
    }

    /// The subject by which the caller has the role.
    pub(crate) fn subject(&self, caller: &Caller<'_>) -> Option<&Subject> {
        self.subjects.iter().find(|subject| subject.is(caller))
    }
}

// === impl Subject ===

impl Subject {
    fn read(subject: &Value, namespace: &str) -> Option<Subject> {
        let name = subject["name"].as_str()?.to_owned();
        match subject["kind"].as_str()? {
            "User" => Some(Subject::User(name)),
            "Group" => Some(Subject::Group(name)),
            "ServiceAccount" => {
                let said = subject["namespace"].as_str().unwrap_or_default();
                let namespace = if said.is_empty() { namespace } else { said }.to_owned();
                (!namespace.is_empty()).then_some(Subject::ServiceAccount { namespace, name })
            }
            _ => None,
        }
    }

    fn is(&self, caller: &Caller<'_>) -> bool {
        match self {
            Subject::User(name) => name == caller.name,
            Subject::Group(name) => caller.groups.contains(name),
            Subject::ServiceAccount { namespace, name } => {
                let rest = caller.name.strip_prefix("system:serviceaccount:");
                rest.and_then(|rest| rest.split_once(':')) == Some((namespace.as_str(), name.as_str()))
            }
        }
    }

    /// As Kubernetes writes it in a reason.
    pub(crate) fn told(&self) -> String {
        match self {
            Subject::User(name) => format!("User {name:?}"),
            Subject::Group(name) => format!("Group {name:?}"),
            Subject::ServiceAccount { namespace, name } => {
                format!("ServiceAccount {:?}", format!("{name}/{namespace}"))
            }
        }
    }
}
