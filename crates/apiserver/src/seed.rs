//! Putting objects into a cluster from the process that runs it.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::delete::DeleteOptions;
use crate::object;

/// An object the cluster did not take.
#[derive(Debug, thiserror::Error)]
#[error("{kind} {name:?}: {message}")]
pub struct Rejected {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What the API said.
    pub message: String,
}

impl Cluster {
    /// Applies an object by server-side apply, taking over fields others own, and returns it as stored.
    ///
    /// # Errors
    /// If the kind is not served or the API refuses the object.
    pub async fn apply(&self, manager: &str, object: &Value) -> Result<Value, Rejected> {
        let kind = object["kind"].as_str().unwrap_or_default();
        let rejected = |message: String| Rejected {
            kind: kind.to_owned(),
            name: object::name(object).to_owned(),
            message,
        };
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let resource = self
            .core
            .catalog()
            .find_kind(api_version, kind)
            .ok_or_else(|| rejected(format!("{api_version} {kind} is not served")))?;
        let root = if resource.group.is_empty() { "/api" } else { "/apis" };
        let scope = match resource.namespaced {
            true => format!("/namespaces/{}", object::namespace(object)),
            false => String::new(),
        };
        let uri = format!(
            "{root}/{api_version}{scope}/{}/{}?fieldManager={manager}&force=true",
            resource.plural,
            object::name(object)
        );
        let request = Request::builder()
            .method(Method::PATCH)
            .uri(uri)
            .header("content-type", "application/apply-patch+yaml")
            .body(Full::<Bytes>::from(object.to_string()))
            .map_err(|error| rejected(error.to_string()))?;
        let response = self.handle(request).await;
        let success = response.status().is_success();
        let body = match response.into_body().collect().await {
            Ok(body) => body.to_bytes(),
            Err(impossible) => match impossible {},
        };
        let answer: Value = serde_json::from_slice(&body).map_err(|error| rejected(error.to_string()))?;
        if success {
            Ok(answer)
        } else {
            Err(rejected(answer["message"].as_str().unwrap_or("refused without a reason").to_owned()))
        }
    }

    /// Deletes an object; one that is not there is as good as deleted.
    ///
    /// # Errors
    /// If the kind is not served or the API refuses.
    pub async fn delete_object(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<(), Rejected> {
        let rejected = |message: String| Rejected { kind: kind.to_owned(), name: name.to_owned(), message };
        let resource = self
            .core
            .catalog()
            .find_kind(api_version, kind)
            .ok_or_else(|| rejected(format!("{api_version} {kind} is not served")))?;
        match self.core.delete(&resource, namespace, name, &DeleteOptions::default()).await {
            Err(failure) if failure.reason != "NotFound" => Err(rejected(failure.message)),
            _ => Ok(()),
        }
    }
}
