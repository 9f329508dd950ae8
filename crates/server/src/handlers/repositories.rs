//! The repositories and credentials that are registered: told without what opens them, registered, changed, given up.

use baton_api::names::secret::{
    TYPE_REPO_CREDS, TYPE_REPO_WRITE_CREDS, TYPE_REPOSITORY, TYPE_REPOSITORY_WRITE,
};
use serde_json::{Value, json};

use super::clusters::scoped;
use super::registering::{Marks, Registered};
use crate::error::Error;
use crate::masking::without_credentials;
use crate::registered::repository::{changed, read, shown};
use crate::registered::{Texts, secret_name};
use crate::server::{Context, Server};

/// What kind of thing is registered: for one URL or for all that begin alike, for reading or for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shelf {
    /// A repository.
    Repository,
    /// Credentials of all repositories whose URLs begin alike.
    Credentials,
    /// A repository that rendered manifests are written to.
    WriteRepository,
    /// Credentials for those.
    WriteCredentials,
}

impl Server {
    /// The repositories that the caller may see: of one URL, of one project, or all.
    ///
    /// # Errors
    /// The API cannot be read.
    pub async fn repositories(&self, context: &Context, url: &str, project: &str) -> Result<Value, Error> {
        self.shelved(context, Shelf::Repository, url, project).await
    }

    /// The credentials of repositories that the caller may see, by the URLs they are for.
    ///
    /// # Errors
    /// The API cannot be read.
    pub async fn repository_credentials(&self, context: &Context, url: &str) -> Result<Value, Error> {
        self.shelved(context, Shelf::Credentials, url, "").await
    }

    /// What is registered of a kind that the caller may see: of one URL, of one project, or all.
    ///
    /// # Errors
    /// The API cannot be read.
    pub async fn shelved(
        &self,
        context: &Context,
        shelf: Shelf,
        url: &str,
        project: &str,
    ) -> Result<Value, Error> {
        let found = self.registered(shelf.kind()).await?;
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        let meant = found.iter().filter(|one| {
            (url.is_empty() || one.is_of(url))
                && is(project, one.text("project"))
                && self.may(context, shelf.resource(), "get", &one.object())
        });
        let mut items: Vec<Value> = meant.map(|one| shown(&one.texts, shelf.url())).collect();
        items.sort_by_cached_key(|item| item[shelf.url()].to_string());
        Ok(json!({"metadata": {}, "items": items}))
    }

    /// One of them.
    ///
    /// # Errors
    /// The caller may not see it, or there is none: both read the same.
    pub async fn repository(
        &self,
        context: &Context,
        shelf: Shelf,
        url: &str,
        project: &str,
    ) -> Result<Value, Error> {
        let mut found = self.shelved(context, shelf, url, project).await?;
        let first = found["items"].as_array_mut().filter(|items| !items.is_empty());
        first.map(|items| items.swap_remove(0)).ok_or_else(Error::hidden)
    }

    /// Registers a repository or credentials, or with `upsert` changes those that are there. Whether it can be reached is
    /// not tried.
    ///
    /// # Errors
    /// The caller may not, there is another already, or the request makes no sense.
    pub async fn create_repository(
        &self,
        context: &Context,
        shelf: Shelf,
        body: &Value,
        upsert: bool,
    ) -> Result<Value, Error> {
        let texts = read(body, shelf.url())?;
        let (url, project) = (&texts["url"], texts.get("project").map_or("", String::as_str));
        let object = scoped(project, url);
        self.demand(context, shelf.resource(), "create", &object)?;
        let found = self.registered(shelf.kind()).await?;
        if let Some(found) = found.iter().find(|one| one.is_of(url) && one.text("project") == project) {
            self.permit(context, shelf.resource(), "get", &found.object())?;
            let same = changed(&found.texts, texts.clone()).is_ok_and(|changed| changed == found.texts);
            if same {
                return Ok(shown(&found.texts, shelf.url()));
            }
            if !upsert {
                let what = shelf.word();
                return Err(Error::invalid(format!(
                    "existing {what} spec is different; use upsert flag to force update"
                )));
            }
            self.permit(context, shelf.resource(), "update", &found.object())?;
            return self.write_repository(context, shelf, found, texts).await;
        }
        let name = secret_name(shelf.prefix(), url, project);
        let result = self.register(shelf.kind(), &name, &texts, Marks::default()).await;
        let deed = self.registry_deed(shelf.verbs()[0], &name, (shelf.resource(), object), url);
        self.audited(context, deed, result.map(|_| shown(&texts, shelf.url()))).await
    }

    /// Changes a repository or credentials. What opens it stays, unless the request brings anything of that.
    ///
    /// # Errors
    /// The caller may not, there is none, or the request makes no sense.
    pub async fn update_repository(
        &self,
        context: &Context,
        shelf: Shelf,
        url: &str,
        body: &Value,
    ) -> Result<Value, Error> {
        let mut body = body.clone();
        let sent = body[shelf.url()].as_str().unwrap_or_default();
        if !body.is_object() || !(sent.is_empty() || sent == url) {
            return Err(Error::invalid(format!("{}: it is to be the URL of the path", shelf.url())));
        }
        let project = body["project"].as_str().unwrap_or_default().to_owned();
        let found = self.meant_repository(context, shelf, url, &project, "update").await?;
        // A URL of old may hold credentials, which nobody was shown: it stays as it is.
        body[shelf.url()] = without_credentials(found.text("url")).replace("***@", "").into();
        let mut texts = read(&body, shelf.url())?;
        texts.insert("url".to_owned(), found.text("url").to_owned());
        self.write_repository(context, shelf, &found, texts).await
    }

    /// Gives up a repository or credentials.
    ///
    /// # Errors
    /// The caller may not, or there is none.
    pub async fn delete_repository(
        &self,
        context: &Context,
        shelf: Shelf,
        url: &str,
        project: &str,
    ) -> Result<Value, Error> {
        let found = self.meant_repository(context, shelf, url, project, "delete").await?;
        let result = self.unregister(&found).await;
        let right = (shelf.resource(), found.object());
        let deed = self.registry_deed(shelf.verbs()[2], found.name(), right, found.text("url"));
        self.audited(context, deed, result.map(|()| json!({}))).await
    }

    async fn write_repository(
        &self,
        context: &Context,
        shelf: Shelf,
        found: &Registered,
        texts: Texts,
    ) -> Result<Value, Error> {
        let texts = changed(&found.texts, texts)?;
        let moved = scoped(texts.get("project").map_or("", String::as_str), found.text("url"));
        if moved != found.object() {
            // Who may change it here need not be allowed to have it there.
            self.demand(context, shelf.resource(), "create", &moved)?;
        }
        let result = self.rewrite_secret(found, &texts, Marks::default()).await;
        let right = (shelf.resource(), found.object());
        let deed = self.registry_deed(shelf.verbs()[1], found.name(), right, found.text("url"));
        self.audited(context, deed, result.map(|_| shown(&texts, shelf.url()))).await
    }

    /// The one that is meant, where the caller may do this to it: of the project, or of any where only one is left.
    async fn meant_repository(
        &self,
        context: &Context,
        shelf: Shelf,
        url: &str,
        project: &str,
        action: &str,
    ) -> Result<Registered, Error> {
        let resource = shelf.resource();
        let mut found = self.registered(shelf.kind()).await?;
        let sees = |one: &Registered, action: &str| self.may(context, resource, action, &one.object());
        found.retain(|one| one.is_of(url) && (sees(one, "get") || sees(one, action)));
        if let Some(at) = found.iter().position(|one| one.text("project") == project) {
            found = vec![found.swap_remove(at)];
        }
        match found.len() {
            0 => Err(self.absent(context, resource, action, &scoped(project, url))),
            1 => {
                let found = found.remove(0);
                self.permit(context, resource, action, &found.object())?;
                Ok(found)
            }
            _ => Err(Error::invalid("several projects have this URL: name the one with appProject")),
        }
    }
}

// === impl Registered ===

impl Registered {
    /// How policies name it.
    fn object(&self) -> String {
        scoped(self.text("project"), self.text("url"))
    }

    /// Whether it is of a URL, as it is stored or as it is told.
    fn is_of(&self, url: &str) -> bool {
        let own = self.text("url");
        !own.is_empty() && (own == url || without_credentials(own) == url)
    }
}

// === impl Shelf ===

impl Shelf {
    /// What the Secret says it holds.
    fn kind(self) -> &'static str {
        match self {
            Shelf::Repository => TYPE_REPOSITORY,
            Shelf::Credentials => TYPE_REPO_CREDS,
            Shelf::WriteRepository => TYPE_REPOSITORY_WRITE,
            Shelf::WriteCredentials => TYPE_REPO_WRITE_CREDS,
        }
    }

    /// How policies name it.
    fn resource(self) -> &'static str {
        match self {
            Shelf::Repository | Shelf::Credentials => "repositories",
            Shelf::WriteRepository | Shelf::WriteCredentials => "write-repositories",
        }
    }

    /// How the names of its Secrets begin.
    fn prefix(self) -> &'static str {
        match self {
            Shelf::Repository => "repo",
            Shelf::Credentials => "creds",
            Shelf::WriteRepository => "repo-write",
            Shelf::WriteCredentials => "creds-write",
        }
    }

    /// Under which field its URL stands.
    pub(crate) fn url(self) -> &'static str {
        match self {
            Shelf::Repository | Shelf::WriteRepository => "repo",
            Shelf::Credentials | Shelf::WriteCredentials => "url",
        }
    }

    fn word(self) -> &'static str {
        match self.url() {
            "repo" => "repository",
            _ => "repository credentials",
        }
    }

    /// What records call its creation, change and deletion.
    fn verbs(self) -> [&'static str; 3] {
        match self.url() {
            "repo" => ["create repository", "update repository", "delete repository"],
            _ => ["create credentials", "update credentials", "delete credentials"],
        }
    }
}
