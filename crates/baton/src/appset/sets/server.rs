//! ApplicationSets at a server, as far as it lets the caller see and change them.

use baton_api::ApplicationSet;
use futures::stream::BoxStream;
use serde_json::{Value, json};

use super::{Creation, Told, Word, Written};
use crate::desk::items;
use crate::failure::Failure;
use crate::objects::text;
use crate::session::{Remote, Sight, Watched, follow, query, segment};

/// The sets of one server.
pub(in crate::appset) struct AtServer {
    remote: Remote,
    /// Empty is the control plane's.
    namespace: String,
}

// === impl AtServer ===

impl AtServer {
    pub(super) fn new(remote: Remote, namespace: &str) -> AtServer {
        AtServer { remote, namespace: namespace.to_owned() }
    }

    pub(super) async fn list(&self, selector: Option<&str>, everywhere: bool) -> Result<Vec<Value>, Failure> {
        let namespace = if everywhere { "" } else { &self.namespace };
        let query = query(&[("selector", selector.unwrap_or_default()), ("appsetNamespace", namespace)]);
        let found = self.remote.get(&format!("api/v1/applicationsets{query}")).await?;
        Ok(items(found).into_iter().map(whole).collect())
    }

    pub(super) async fn find(&self, name: &str) -> Result<Option<Value>, Failure> {
        Ok(self.remote.find(&self.path(name, "")).await?.map(whole))
    }

    /// The Applications of the namespace of a set that the caller may see.
    pub(super) async fn applications(&self, set: &ApplicationSet) -> Result<Vec<Value>, Failure> {
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let query = query(&[("appNamespace", namespace)]);
        self.remote.get(&format!("api/v1/applications{query}")).await.map(items)
    }

    pub(super) async fn create(
        &self,
        written: &Written,
        how: Creation,
    ) -> Result<(Value, &'static str), Failure> {
        let mut document = written.document.clone();
        if text(&document, "/metadata/namespace").is_empty() && !self.namespace.is_empty() {
            document["metadata"]["namespace"] = self.namespace.as_str().into();
        }
        let name = text(&document, "/metadata/name");
        let at = AtServer { remote: self.remote.clone(), namespace: text(&document, "/metadata/namespace") };
        let existed = at.find(&name).await?.is_some();
        let flag = |on: bool| if on { "true" } else { "" };
        let query = query(&[("upsert", flag(how.upsert)), ("dryRun", flag(how.dry_run))]);
        let made = self.remote.post(&format!("api/v1/applicationsets{query}"), &document).await?;
        let verb = match (existed, how.upsert) {
            (false, _) => "created",
            (true, true) => "configured",
            (true, false) => "unchanged",
        };
        Ok((whole(made), verb))
    }

    pub(super) async fn delete(&self, name: &str) -> Result<(), Failure> {
        self.remote.delete(&self.path(name, "")).await.map(drop)
    }

    /// The Applications that a set would have.
    pub(in crate::appset) async fn generate(&self, document: &Value) -> Result<Vec<Value>, Failure> {
        let body = json!({"applicationSet": document});
        let mut answer = self.remote.post("api/v1/applicationsets/generate", &body).await?;
        Ok(match answer["applications"].take() {
            Value::Array(applications) => applications,
            _ => Vec::new(),
        })
    }

    /// What a change that is wanted now would do.
    pub(in crate::appset) async fn plan(&self, name: &str) -> Result<Option<Value>, Failure> {
        self.remote.find(&self.path(name, "/plan")).await
    }

    pub(super) async fn tell(&self, set: &ApplicationSet, word: &Word) -> Result<Told, Failure> {
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let none = String::new();
        let (action, applications): (&str, Vec<&String>) = match word {
            Word::Pause => ("pause", vec![&none]),
            Word::Resume => ("resume", vec![&none]),
            Word::Abort => ("abort", vec![&none]),
            Word::Advance => ("advance", vec![&none]),
            Word::Rollback => ("rollback", vec![&none]),
            Word::RollbackAll => ("rollback-all", vec![&none]),
            Word::Skip(members) => ("skip", members.keys().collect()),
            Word::Retry(names) => match names.as_slice() {
                [] => ("retry", vec![&none]),
                [one] => ("retry", vec![one]),
                // The word for the next would take the place of the one before it.
                _ => {
                    return Err(Failure::usage(
                        "a server is asked to try one Application again, or all that failed: name one or none, or add --core",
                    ));
                }
            },
        };
        for application in applications {
            let body = json!({"action": action, "application": application});
            self.remote.post(&self.path(name, "/actions"), &body).await?;
        }
        Ok(Told::Now)
    }

    /// By the inbox, which decides exactly what was seen.
    pub(super) async fn approve_deletion(&self, seen: &Value, asked: &str) -> Result<(), Failure> {
        let inbox = items(self.remote.get("api/v1/approvals").await?);
        let is_meant = |item: &&Value| {
            item["kind"] == "fuse"
                && item["object"]["name"] == seen["metadata"]["name"]
                && item["object"]["namespace"] == seen["metadata"]["namespace"]
        };
        let Some(item) = inbox.iter().find(is_meant) else {
            return Err(Failure::waiting("the set changed meanwhile: look at it again"));
        };
        let verdict = json!({"items": [{"id": item["id"], "setHash": asked}], "reason": ""});
        let answer = items(self.remote.post("api/v1/approvals/approve", &verdict).await?);
        match answer.first() {
            Some(answer) if answer["ok"] == true => Ok(()),
            Some(answer) => Err(Failure::waiting(text(answer, "/message"))),
            None => Err(Failure::api("the server does not say whether it was approved")),
        }
    }

    pub(super) fn watch(&self, name: &str) -> BoxStream<'static, Sight> {
        let query = query(&[("name", name), ("appSetNamespace", &self.namespace)]);
        let watched = Watched {
            object: self.path(name, ""),
            stream: format!("api/v1/stream/applicationsets{query}"),
            field: "applicationSet",
        };
        follow(self.remote.clone(), watched)
    }

    fn path(&self, name: &str, rest: &str) -> String {
        format!(
            "api/v1/applicationsets/{}{rest}{}",
            segment(name),
            query(&[("appsetNamespace", &self.namespace)])
        )
    }
}

/// A set with what a server leaves out, as everybody knows it.
fn whole(mut set: Value) -> Value {
    if set["kind"].is_null() && set.is_object() {
        set["apiVersion"] = baton_api::names::API_VERSION.into();
        set["kind"] = "ApplicationSet".into();
    }
    set
}
