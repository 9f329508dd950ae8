//! What requests say, in the words of the calls.

use serde::de::DeserializeOwned;

use super::super::Incoming;
use crate::error::Error;
use crate::handlers::applications::Named;
use crate::handlers::filter::Filter;
use crate::handlers::resources::Resource;

// === impl Incoming ===

impl Incoming {
    /// The body, as the call wants it. None at all is an empty one.
    pub(super) fn body<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let bytes: &[u8] = if self.body.is_empty() { b"{}" } else { &self.body };
        serde_json::from_slice(bytes).map_err(|error| {
            // The words of the error may hold what was sent, which may be a password.
            let place = format!("line {}, column {}", error.line(), error.column());
            let what = match error.classify() {
                serde_json::error::Category::Data => "is not what the call takes",
                _ => "is no JSON",
            };
            Error::invalid(format!("the body {what} ({place})"))
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
