//! Repositories and credentials at a desk: read, registered, taken off the list.

use std::collections::BTreeMap;

use baton_api::names::secret::{TYPE_REPO_CREDS, TYPE_REPOSITORY};
use k8s_openapi::api::core::v1::Secret;
use reqwest::Method;
use serde_json::Value;

use crate::desk::{Core, Desk, items, refused};
use crate::failure::Failure;
use crate::objects::text;
use crate::registry::{Entry, Registry, Texts, named, texts};
use crate::session::{query, segment};

/// What is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Repository,
    /// What opens all repositories whose URLs begin alike.
    Credentials,
}

/// What a server without these calls does not do.
const REGISTERS: &str = "registers repositories";

/// What became of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Became {
    Added,
    Changed,
    /// It was so already.
    Unchanged,
}

// === impl Kind ===

impl Kind {
    /// What people call it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Repository => "repo",
            Kind::Credentials => "repocreds",
        }
    }

    /// Under which name the API has the URL.
    fn url(self) -> &'static str {
        match self {
            Kind::Repository => "repo",
            Kind::Credentials => "url",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Kind::Repository => "api/v1/repositories",
            Kind::Credentials => "api/v1/repocreds",
        }
    }

    fn secret(self) -> &'static str {
        match self {
            Kind::Repository => TYPE_REPOSITORY,
            Kind::Credentials => TYPE_REPO_CREDS,
        }
    }
}

// === impl Desk ===

impl Desk {
    /// Those that the caller may see: of one URL, of one project, or all.
    pub(super) async fn all_registered(
        &self,
        kind: Kind,
        url: &str,
        project: &str,
    ) -> Result<Vec<Value>, Failure> {
        let answer = match (self, kind) {
            (Desk::Server(remote), _) => {
                let query = query(&[(kind.url(), url), ("appProject", project)]);
                remote.get(&format!("{}{query}", kind.path())).await?
            }
            (Desk::Core(core), Kind::Repository) => {
                core.server.repositories(&core.context, url, project).await.map_err(refused)?
            }
            (Desk::Core(core), Kind::Credentials) => {
                core.server.repository_credentials(&core.context, url).await.map_err(refused)?
            }
        };
        let is = |wanted: &str, found: String| wanted.is_empty() || wanted == found;
        let mut all = items(answer);
        // Argo CD's own server gives all of them, whatever is asked for.
        all.retain(|one| {
            is(url, text(one, &format!("/{}", kind.url()))) && is(project, text(one, "/project"))
        });
        Ok(all)
    }

    /// One of them.
    ///
    /// # Errors
    /// Also where there is none, or several by this URL.
    pub(super) async fn registered(&self, kind: Kind, url: &str, project: &str) -> Result<Value, Failure> {
        let mut all = self.all_registered(kind, url, project).await?;
        match all.len() {
            1 => Ok(all.swap_remove(0)),
            0 => Err(absent(kind, url)),
            _ => {
                let projects: Vec<String> =
                    all.iter().map(|one| format!("{:?}", text(one, "/project"))).collect();
                Err(Failure::usage(format!(
                    "{url} is registered for the projects {}: name one with --project",
                    projects.join(", ")
                )))
            }
        }
    }

    /// Registers one, in the words of Argo CD's API; with `upsert` in the place of the one that is there.
    pub(super) async fn register(&self, kind: Kind, said: &Value, upsert: bool) -> Result<Became, Failure> {
        match self {
            Desk::Core(core) => core.register(kind, said, upsert).await,
            Desk::Server(remote) => {
                let (url, project) = (text(said, &format!("/{}", kind.url())), text(said, "/project"));
                let there = self.all_registered(kind, &url, &project).await?;
                let existed = there.iter().any(|one| text(one, "/project") == project);
                let upsert = if upsert { "?upsert=true" } else { "" };
                let path = format!("{}{upsert}", kind.path());
                let sent = remote.send(Method::POST, &path, Some(said)).await;
                sent.map_err(|refusal| refusal.of_call(REGISTERS))?;
                Ok(if existed { Became::Changed } else { Became::Added })
            }
        }
    }

    /// Takes one off the list.
    pub(super) async fn unregister(&self, kind: Kind, url: &str, project: &str) -> Result<(), Failure> {
        match self {
            Desk::Core(core) => core.unregister(kind, url, project).await,
            Desk::Server(remote) => {
                let query = query(&[("appProject", project)]);
                let path = format!("{}/{}{query}", kind.path(), segment(url));
                let sent = remote.send(Method::DELETE, &path, None).await;
                sent.map(drop).map_err(|refusal| refusal.of_call(REGISTERS))
            }
        }
    }
}

// === impl Core ===

impl Core {
    async fn register(&self, kind: Kind, said: &Value, upsert: bool) -> Result<Became, Failure> {
        let registry = Registry::new(&self.client, &self.namespace, kind.secret());
        let texts_ = written(kind, said);
        let (url, project) = (&texts_["url"], texts_.get("project").map_or("", String::as_str));
        let mut all = registry.all().await?.into_iter();
        let there = all.find(|secret| is_of(secret, url, project));
        let prefix = match kind {
            Kind::Repository => "repo",
            Kind::Credentials => "creds",
        };
        let entry = Entry {
            name: named(prefix, &[url, project]),
            texts: texts_.clone(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
        };
        let Some(there) = there else {
            registry.create(entry).await?;
            return Ok(Became::Added);
        };
        if texts(&there) == entry.texts {
            return Ok(Became::Unchanged);
        }
        if !upsert {
            return Err(Failure::usage(format!(
                "{url} is registered already, otherwise: add --upsert to put this in its place"
            )));
        }
        registry.replace(there, entry).await?;
        Ok(Became::Changed)
    }

    async fn unregister(&self, kind: Kind, url: &str, project: &str) -> Result<(), Failure> {
        let registry = Registry::new(&self.client, &self.namespace, kind.secret());
        let mut all = registry.all().await?.into_iter();
        let secret =
            all.find(|secret| is_of(secret, url, project) || (project.is_empty() && has_url(secret, url)));
        registry.delete(&secret.ok_or_else(|| absent(kind, url))?).await
    }
}

fn has_url(secret: &Secret, url: &str) -> bool {
    texts(secret).get("url").is_some_and(|known| known.trim() == url)
}

fn is_of(secret: &Secret, url: &str, project: &str) -> bool {
    let texts = texts(secret);
    has_url(secret, url) && texts.get("project").map_or("", |project| project.trim()) == project
}

/// A repository or credentials in the words of their Secret.
fn written(kind: Kind, said: &Value) -> Texts {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let name = |key: &str| if key == kind.url() { "url".to_owned() } else { key.to_owned() };
    let fields = said.as_object().into_iter().flatten();
    let mut texts: Texts = fields.map(|(key, value)| (name(key), text(value))).collect();
    texts.retain(|_, text| !text.is_empty());
    texts
}

fn absent(kind: Kind, url: &str) -> Failure {
    let what = match kind {
        Kind::Repository => "is no repository",
        Kind::Credentials => "are no credentials for",
    };
    Failure::api(format!(
        "there {what} {url} that you may see; `baton {} list` shows what there is",
        kind.word()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_repository_is_written_as_argo_cd_reads_it() {
        let said =
            json!({"repo": "https://x", "type": "git", "githubAppID": 7, "insecure": true, "project": ""});
        let expected = [("githubAppID", "7"), ("insecure", "true"), ("type", "git"), ("url", "https://x")];
        let expected: Texts = expected.map(|(key, text)| (key.to_owned(), text.to_owned())).into();
        assert_eq!(written(Kind::Repository, &said), expected);
        let creds = written(Kind::Credentials, &json!({"url": "https://x", "password": "p"}));
        assert_eq!((creds["url"].as_str(), creds["password"].as_str()), ("https://x", "p"));
    }
}
