//! Objects of the control plane as they are written there, with every field.

use kube::Client;
use serde_json::{Value, json};

use crate::failure::Failure;

/// Who the fields of a write belong to.
pub(crate) const MANAGER: &str = "baton-cli";

/// One of Argo CD's kinds in one namespace. The API is asked to refuse fields it does not know.
pub(crate) struct Objects {
    client: Client,
    plural: &'static str,
    namespace: String,
    dry_run: bool,
}

impl Objects {
    pub(crate) fn new(client: Client, plural: &'static str, namespace: &str) -> Objects {
        Objects { client, plural, namespace: namespace.to_owned(), dry_run: false }
    }

    /// Writes are checked and not made.
    pub(crate) fn dry_run(mut self, dry_run: bool) -> Objects {
        self.dry_run = dry_run;
        self
    }

    pub(crate) async fn find(&self, name: &str) -> Result<Option<Value>, Failure> {
        match self.send(http::Method::GET, name, "", "application/json", None).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn get(&self, name: &str) -> Result<Value, Failure> {
        Ok(self.send(http::Method::GET, name, "", "application/json", None).await?)
    }

    pub(crate) async fn create(&self, object: &Value) -> Result<Value, Failure> {
        let query = self.query();
        Ok(self.send(http::Method::POST, "", &query, "application/json", Some(object)).await?)
    }

    /// Puts `object` in the place of the version that is there; what it no longer says goes.
    pub(crate) async fn replace(&self, name: &str, object: &Value, version: &str) -> Result<Value, Failure> {
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = version.into();
        let query = self.query();
        Ok(self.send(http::Method::PUT, name, &query, "application/json", Some(&object)).await?)
    }

    /// Changes an object by a JSON merge patch. `None` if it changed meanwhile: the patch must carry the version it was
    /// made for.
    pub(crate) async fn merge(&self, name: &str, patch: &Value) -> Result<Option<Value>, Failure> {
        let query = self.query();
        let kind = "application/merge-patch+json";
        match self.send(http::Method::PATCH, name, &query, kind, Some(patch)).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn delete(&self, name: &str, propagation: &str, uid: &str) -> Result<(), Failure> {
        let mut options =
            json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation});
        if !uid.is_empty() {
            options["preconditions"] = json!({"uid": uid});
        }
        self.send(http::Method::DELETE, name, "", "application/json", Some(&options)).await?;
        Ok(())
    }

    fn query(&self) -> String {
        let dry = if self.dry_run { "&dryRun=All" } else { "" };
        format!("?fieldManager={MANAGER}&fieldValidation=Strict{dry}")
    }

    async fn send(
        &self,
        method: http::Method,
        name: &str,
        query: &str,
        kind: &str,
        body: Option<&Value>,
    ) -> Result<Value, kube::Error> {
        let version = baton_api::names::API_VERSION;
        let slash = if name.is_empty() { "" } else { "/" };
        let path =
            format!("/apis/{version}/namespaces/{}/{}{slash}{name}{query}", self.namespace, self.plural);
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, kind)
            .body(body.map(|body| body.to_string().into_bytes()).unwrap_or_default())
            .map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }
}

/// A text inside an object, empty where there is none.
pub(crate) fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// `text`, or what stands for an empty one.
pub(crate) fn or(text: String, otherwise: &str) -> String {
    if text.is_empty() { otherwise.to_owned() } else { text }
}

/// Asks before something is deleted. Without a terminal to ask on it is an error.
pub(crate) fn confirmed(question: &[String]) -> Result<bool, Failure> {
    agreed(question, "Delete?")
}

/// Asks whether something is to be done that cannot be undone. Without a terminal to ask on it is an error.
pub(crate) fn agreed(about: &[String], question: &str) -> Result<bool, Failure> {
    can_ask()?;
    for line in about {
        crate::terminal::remark(line);
    }
    crate::terminal::remark(&format!("{question} [y/N]"));
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .map_err(|error| Failure::failed(format!("cannot read the answer: {error}")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Whether there is a person to ask.
pub(crate) fn can_ask() -> Result<(), Failure> {
    use std::io::IsTerminal as _;
    match std::io::stdin().is_terminal() {
        true => Ok(()),
        false => Err(Failure::usage("deleting asks first, and there is no terminal to ask on: add --yes")),
    }
}
