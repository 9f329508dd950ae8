//! What a notification is about.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// The kinds of objects people are told about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// `app` in expressions and templates.
    Application,
    /// `appset` in expressions and templates.
    ApplicationSet,
}

/// An object that is looked at, with its project.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// What it is.
    pub kind: Kind,
    /// The whole object.
    pub object: &'a Json,
    /// Its AppProject, if that is known.
    pub project: Option<&'a Json>,
}

/// Which object a notification is about, when the object itself is gone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct About {
    /// What it is.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its identity: another object of the same name has another.
    pub uid: String,
}

// === impl Subject ===

impl<'a> Subject<'a> {
    /// Which object it is.
    pub fn about(&self) -> About {
        let text = |name| metadata(self.object, name).to_owned();
        About { kind: self.kind, namespace: text("namespace"), name: text("name"), uid: text("uid") }
    }

    /// The name of the project it belongs to; none if a template is yet to say.
    pub fn project_name(&self) -> Option<&'a str> {
        let path = match self.kind {
            Kind::Application => "/spec/project",
            Kind::ApplicationSet => "/spec/template/spec/project",
        };
        let name = self.object.pointer(path).and_then(Json::as_str).unwrap_or_default();
        match name {
            "" => Some(baton_api::names::DEFAULT_PROJECT),
            name if name.contains("{{") => None,
            name => Some(name),
        }
    }

    /// Whether the status is older than the operation it tells of: health and sync are yet to be compared anew.
    /// Nobody compares what is being deleted, so that is never waited for then.
    pub(crate) fn is_stale(&self) -> bool {
        let text = |path: &str| self.object.pointer(path).and_then(Json::as_str);
        let time = |path: &str| text(path).and_then(|text| text.parse::<jiff::Timestamp>().ok());
        if self.kind != Kind::Application || text("/metadata/deletionTimestamp").is_some() {
            return false;
        }
        let ended = matches!(text("/status/operationState/phase"), Some("Failed" | "Error" | "Succeeded"));
        match (time("/status/operationState/finishedAt"), time("/status/reconciledAt")) {
            (Some(finished), Some(reconciled)) => ended && reconciled < finished,
            (Some(_), None) => ended,
            (None, _) => false,
        }
    }
}

// === impl About ===

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}/{}", self.kind, self.namespace, self.name)
    }
}

fn metadata<'a>(object: &'a Json, name: &str) -> &'a str {
    object.get("metadata").and_then(|metadata| metadata.get(name)).and_then(Json::as_str).unwrap_or_default()
}

/// The annotations of an object.
pub(crate) fn annotations(object: &Json) -> impl Iterator<Item = (&str, &str)> {
    let annotations = object.pointer("/metadata/annotations").and_then(Json::as_object);
    annotations.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}
