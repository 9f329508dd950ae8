//! Who did what, read from the Events of the control plane.

use serde_json::{Value, json};

use crate::audit::{ACTOR, OUTCOME, PROJECT, RIGHT, VERB, WHY};
use crate::error::Error;
use crate::objects::{EVENTS, text};
use crate::server::{Context, Server};

/// Most entries of one answer.
const MOST: usize = 1000;
/// How many are told where nobody says.
const USUAL: usize = 200;

impl Server {
    /// Who did what, newest first, as far as the caller may see what it was done to.
    ///
    /// # Errors
    /// The API cannot be read.
    pub async fn deeds(&self, context: &Context, limit: Option<usize>) -> Result<Value, Error> {
        let limit = limit.unwrap_or(USUAL).min(MOST);
        let only = self.0.settings.other_namespaces.is_none();
        let namespace = if only { self.0.settings.namespace.as_str() } else { "" };
        let mut found = self.objects(EVENTS, namespace).list("").await?;
        let is_deed = |event: &Value| {
            let reason = text(event, "/reason");
            ["Baton", "Resource", "Operation"].iter().any(|prefix| reason.starts_with(prefix))
        };
        found.retain(|event| is_deed(event) && self.sees_deed(context, event));
        found.sort_by(|left, right| at(right).cmp(at(left)));
        found.truncate(limit);
        Ok(json!({"items": found.iter().map(entry).collect::<Vec<_>>()}))
    }

    fn sees_deed(&self, context: &Context, event: &Value) -> bool {
        let about = &event["involvedObject"];
        let (namespace, name) = (text(about, "/namespace"), text(about, "/name"));
        if !self.0.settings.allows(namespace) {
            return false;
        }
        if let Some((resource, object)) = note(event, RIGHT).split_once(' ') {
            return self.may(context, resource, "get", object);
        }
        // Of what is gone and has left no project, only who may see everything is told.
        let project = |known: Option<String>| match note(event, PROJECT) {
            "" => known.filter(|project| !project.is_empty()).unwrap_or_else(|| "*".to_owned()),
            noted => noted.to_owned(),
        };
        let (resource, object) = match text(about, "/kind") {
            "Application" => {
                let known = self.0.applications.get(namespace, name);
                let known = known.map(|one| super::applications::project(&one).to_owned());
                ("applications", self.policy_name(&project(known), namespace, name))
            }
            "ApplicationSet" => {
                let known = self.0.sets.get(namespace, name).map(|one| super::sets::project(&one).to_owned());
                ("applicationsets", self.policy_name(&project(known), namespace, name))
            }
            "AppProject" => ("projects", name.to_owned()),
            "Secret" => ("accounts", note(event, ACTOR).to_owned()),
            _ => return false,
        };
        self.may(context, resource, "get", &object)
    }
}

fn entry(event: &Value) -> Value {
    let about = &event["involvedObject"];
    let object = format!("{} {}/{}", text(about, "/kind"), text(about, "/namespace"), text(about, "/name"));
    let or = |noted: &'static str, otherwise: &str| match note(event, noted) {
        "" => otherwise.to_owned(),
        noted => noted.to_owned(),
    };
    let component = text(event, "/source/component");
    let told = text(event, "/message");
    let failed = if text(event, "/type") == "Warning" { "failed" } else { "done" };
    json!({
        "at": at(event), "actor": or(ACTOR, component), "verb": or(VERB, text(event, "/reason")), "object": object,
        "outcome": or(OUTCOME, failed), "reason": or(WHY, told),
    })
}

fn at(event: &Value) -> &str {
    [text(event, "/lastTimestamp"), text(event, "/eventTime"), text(event, "/metadata/creationTimestamp")]
        .into_iter()
        .find(|time| !time.is_empty())
        .unwrap_or_default()
}

fn note<'e>(event: &'e Value, name: &str) -> &'e str {
    event["metadata"]["annotations"][name].as_str().unwrap_or_default()
}
