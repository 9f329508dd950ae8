//! Objects of the control plane as they are written there, with every field.

use kube::Client;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::error::{Code, Error};

/// Who the fields of a write belong to: a person's hand, never the controllers'.
pub(crate) const MANAGER: &str = "baton-server";
/// What of a name stands in a path as it is.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// How many objects are asked for at once.
const PAGE: usize = 500;

/// A kind of the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    api: &'static str,
    plural: &'static str,
}

pub(crate) const APPLICATIONS: Kind = Kind { api: "/apis/argoproj.io/v1alpha1", plural: "applications" };
pub(crate) const SETS: Kind = Kind { api: "/apis/argoproj.io/v1alpha1", plural: "applicationsets" };
pub(crate) const PROJECTS: Kind = Kind { api: "/apis/argoproj.io/v1alpha1", plural: "appprojects" };
pub(crate) const EVENTS: Kind = Kind { api: "/api/v1", plural: "events" };
pub(crate) const SECRETS: Kind = Kind { api: "/api/v1", plural: "secrets" };
pub(crate) const CONFIG_MAPS: Kind = Kind { api: "/api/v1", plural: "configmaps" };

/// The objects of one kind in one namespace.
pub(crate) struct Objects {
    client: Client,
    kind: Kind,
    namespace: String,
}

impl Objects {
    /// Those of a namespace; of every one where it is empty.
    pub(crate) fn new(client: &Client, kind: Kind, namespace: &str) -> Objects {
        Objects { client: client.clone(), kind, namespace: namespace.to_owned() }
    }

    pub(crate) async fn find(&self, name: &str) -> Result<Option<Value>, Error> {
        let path = self.path(name)?;
        match self.send(http::Method::GET, &path, "application/json", None).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.code == Code::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Every object that a query, as `labelSelector=a%3Db`, asks for.
    pub(crate) async fn list(&self, query: &str) -> Result<Vec<Value>, Error> {
        let (path, mut found, mut token) = (self.collection()?, Vec::new(), String::new());
        loop {
            let more = match token.as_str() {
                "" => String::new(),
                token => format!("&continue={}", encoded(token)),
            };
            let uri = format!("{path}?limit={PAGE}&{query}{more}");
            let mut page = self.send(http::Method::GET, &uri, "application/json", None).await?;
            if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
                found.extend(items);
            }
            match page["metadata"]["continue"].as_str().filter(|next| !next.is_empty()) {
                Some(next) => token = next.to_owned(),
                None => return Ok(found),
            }
        }
    }

    pub(crate) async fn create(&self, object: &Value, dry_run: bool) -> Result<Value, Error> {
        let dry = if dry_run { "&dryRun=All" } else { "" };
        let uri = format!("{}?fieldManager={MANAGER}&fieldValidation=Strict{dry}", self.collection()?);
        self.send(http::Method::POST, &uri, "application/json", Some(object)).await
    }

    /// Puts an object in the place of the version it names.
    pub(crate) async fn replace(&self, name: &str, object: &Value) -> Result<Value, Error> {
        let uri = format!("{}?fieldManager={MANAGER}", self.path(name)?);
        self.send(http::Method::PUT, &uri, "application/json", Some(object)).await
    }

    /// Changes an object by a JSON merge patch. A version or uid in it must be the object's.
    pub(crate) async fn merge(&self, name: &str, patch: &Value) -> Result<Value, Error> {
        let uri = format!("{}?fieldManager={MANAGER}", self.path(name)?);
        self.send(http::Method::PATCH, &uri, "application/merge-patch+json", Some(patch)).await
    }

    pub(crate) async fn delete(&self, name: &str, propagation: &str, uid: &str) -> Result<(), Error> {
        let options = json!({
            "kind": "DeleteOptions", "apiVersion": "v1",
            "propagationPolicy": propagation, "preconditions": {"uid": uid},
        });
        let path = self.path(name)?;
        self.send(http::Method::DELETE, &path, "application/json", Some(&options)).await.map(drop)
    }

    fn collection(&self) -> Result<String, Error> {
        let Kind { api, plural } = self.kind;
        match self.namespace.as_str() {
            "" => Ok(format!("{api}/{plural}")),
            namespace => Ok(format!("{api}/namespaces/{}/{plural}", segment(namespace)?)),
        }
    }

    fn path(&self, name: &str) -> Result<String, Error> {
        Ok(format!("{}/{}", self.collection()?, segment(name)?))
    }

    async fn send(
        &self,
        method: http::Method,
        uri: &str,
        kind: &str,
        body: Option<&Value>,
    ) -> Result<Value, Error> {
        let request = http::Request::builder()
            .method(method)
            .uri(uri)
            .header(http::header::CONTENT_TYPE, kind)
            .body(body.map(|body| body.to_string().into_bytes()).unwrap_or_default())
            .map_err(|_| Error::invalid("this cannot be the name of an object"))?;
        Ok(self.client.request(request).await?)
    }
}

/// A name as it stands in a path of the API: it can name no other object than one of its kind and namespace.
///
/// # Errors
/// It can be no object's name.
pub(crate) fn segment(name: &str) -> Result<String, Error> {
    match name {
        "" | "." | ".." => Err(Error::invalid(format!("{name:?} cannot be the name of an object"))),
        name if name.len() > 253 => Err(Error::invalid("a name of more than 253 characters names no object")),
        name => Ok(encoded(name)),
    }
}

/// A text as it stands in a query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

/// A text inside an object, empty where there is none.
pub(crate) fn text<'o>(object: &'o Value, pointer: &str) -> &'o str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_its_place_in_a_path() {
        assert_eq!(segment("web-1.example").as_deref(), Ok("web-1.example"));
        assert_eq!(segment("../secrets/x?y#z%2F").as_deref(), Ok("..%2Fsecrets%2Fx%3Fy%23z%252F"));
        for name in ["", ".", "..", &"x".repeat(254)] {
            assert!(segment(name).is_err(), "{name:.5}");
        }
    }
}
