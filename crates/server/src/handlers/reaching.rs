//! Whether a repository can be read, and what it has to be named.

use serde_json::{Value, json};

use super::clusters::scoped;
use super::repositories::Shelf;
use crate::error::{Code, Error};
use crate::registered::repository::{opens, read};
use crate::registered::sound_url;
use crate::server::{Context, Server};
use crate::sources::References;

impl Server {
    /// The branches and tags of a repository that is registered, or that the caller may register: nobody else has this
    /// server ask a host of their choice.
    ///
    /// # Errors
    /// The caller may see no such repository, or it cannot be read.
    pub async fn references(&self, context: &Context, url: &str, project: &str) -> Result<Value, Error> {
        let known = self.shelved(context, Shelf::Repository, url, project).await?;
        let known = known["items"].as_array().and_then(|items| items.first());
        let url = sound_url("repo", url)?;
        if known.is_none() && !self.may(context, "repositories", "create", &scoped(project, &url)) {
            return Err(Error::hidden());
        }
        if let Some(kind) = known.and_then(|known| known["type"].as_str()) {
            check_kind(kind)?;
        }
        let project = known.and_then(|known| known["project"].as_str()).unwrap_or(project);
        let found = self.reached(&url, project, None).await?;
        // Argo CD leaves out what there is none of.
        let mut told = json!({});
        for (name, all) in [("branches", found.branches), ("tags", found.tags)] {
            if !all.is_empty() {
                told[name] = all.into();
            }
        }
        Ok(told)
    }

    /// Whether a repository can be read, as it would be registered: with what the body says opens it, or else with what is
    /// registered for it. The body is a repository, or just a URL.
    ///
    /// # Errors
    /// The caller may not register it, the request makes no sense, or the repository cannot be read.
    pub async fn validate_repository(
        &self,
        context: &Context,
        url: &str,
        project: &str,
        body: &Value,
    ) -> Result<Value, Error> {
        let fields = match body {
            Value::Object(body) if !body.is_empty() => {
                let mut body = body.clone();
                body.entry("repo").or_insert_with(|| url.into());
                Some(read(&Value::Object(body), "repo")?)
            }
            _ => None,
        };
        let url = sound_url("repo", url)?;
        if fields.as_ref().is_some_and(|fields| fields["url"] != url) {
            return Err(Error::invalid("repo: it is to be the URL of the path"));
        }
        let said = fields.as_ref().and_then(|fields| fields.get("project")).map_or("", String::as_str);
        let project = if said.is_empty() { project } else { said }.to_owned();
        self.demand(context, "repositories", "create", &scoped(&project, &url))?;
        check_kind(fields.as_ref().and_then(|fields| fields.get("type")).map_or("git", String::as_str))?;
        // What says only how it is to be reached brings nothing to reach it with.
        let fields = fields.filter(opens);
        self.reached(&url, &project, fields.as_ref()).await?;
        Ok(json!({}))
    }

    async fn reached(
        &self,
        url: &str,
        project: &str,
        fields: Option<&crate::registered::Texts>,
    ) -> Result<References, Error> {
        let sources = self.0.sources.as_ref();
        let sources =
            sources.ok_or_else(|| Error::new(Code::Unimplemented, "this server reads no sources"))?;
        sources.references(url, project, fields).await.map_err(Error::precondition)
    }
}

fn check_kind(kind: &str) -> Result<(), Error> {
    match kind {
        "git" | "" => Ok(()),
        other => Err(Error::new(
            Code::Unimplemented,
            format!("this is asked of git repositories only, not of {other}"),
        )),
    }
}
