//! What requests say, in the words of the calls.

use serde::de::DeserializeOwned;

use super::super::Incoming;
use super::super::loose::Loose;
use crate::error::Error;
use crate::handlers::applications::Named;
use crate::handlers::filter::Filter;
use crate::handlers::resources::Resource;

// === impl Incoming ===

impl Incoming {
    /// The body, as the call wants it. None at all is an empty one.
    pub(super) fn body<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let bytes: &[u8] = if self.body.is_empty() { b"{}" } else { &self.body };
        // The words of the error may hold what was sent, which may be a password.
        let refused = |what: &str, error: &serde_json::Error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            Error::invalid(format!("the body {what} ({place})"))
        };
        let said = serde_json::from_slice(bytes).map_err(|error| refused("is no JSON", &error))?;
        T::deserialize(Loose(said)).map_err(|error| {
            // Read as it stands, it tells where.
            let exact = serde_json::from_slice::<T>(bytes).err();
            refused("is not what the call takes", exact.as_ref().unwrap_or(&error))
        })
    }

    /// The Application that is meant by a call whose body may say more of it. Argo CD reads that there, and not in the
    /// query: whoever says two things is asked which.
    ///
    /// # Errors
    /// Query and body name another namespace or project.
    pub(super) fn named_with(&self, namespace: &str, project: &str) -> Result<Named, Error> {
        let one = |what: &str, query: String, body: &str| match (query.as_str(), body) {
            ("", body) => Ok(body.to_owned()),
            (query, "") => Ok(query.to_owned()),
            (query, body) if query == body => Ok(body.to_owned()),
            (query, body) => {
                Err(Error::invalid(format!("{what} is {query:?} in the query and {body:?} in the body")))
            }
        };
        let at = self.named();
        Ok(Named {
            namespace: one("appNamespace", at.namespace, namespace)?,
            project: one("project", at.project, project)?,
            ..at
        })
    }

    /// The Application that is meant.
    pub(super) fn named(&self) -> Named {
        Named {
            name: self.names.text("name").to_owned(),
            namespace: self.query.text("appNamespace"),
            project: self.query.text("project"),
        }
    }

    /// The resource that is meant, whose name stands under a parameter of this name.
    pub(super) fn resource(&self, name: &str) -> Resource {
        let text = |name: &str| self.query.text(name);
        Resource {
            group: text("group"),
            version: text("version"),
            kind: text("kind"),
            namespace: text("namespace"),
            resource_name: text(name),
        }
    }

    pub(super) fn filter(&self, namespace: &str) -> Filter {
        Filter {
            name: self.query.text("name"),
            namespace: self.query.text(namespace),
            projects: self.query.all(&["projects", "project"]),
            selector: self.query.text("selector"),
            repo: self.query.text("repo"),
        }
    }
}
