//! Reading and writing objects of the Kubernetes API as they are, with every field.

use kube::Client;
use kube::api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Request;
use serde_json::{Value, json};

/// How many objects a page of a list holds.
const PAGE: u32 = 500;
/// The same where everything rests on the list: who simulates an API can tell it from one that fills a cache.
const LARGE_PAGE: u32 = 1000;
/// Name under which the API notes who wrote a field, where no other is given.
const FIELD_MANAGER: &str = "argocd-applicationset-controller";

/// A request that was not answered as hoped.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ApiError {
    /// The API refused it, or failed.
    #[error("{message}")]
    Refused {
        /// HTTP status.
        code: u16,
        /// In one word.
        reason: String,
        /// In words.
        message: String,
    },
    /// There was no answer, or none that could be read.
    #[error("no usable answer from the Kubernetes API: {0}")]
    NoAnswer(String),
}

/// What became of a deletion.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is gone.
    Gone,
    /// The object waits for its finalizers.
    Waiting(Value),
}

/// The objects of one resource in one namespace.
#[derive(Clone)]
pub(crate) struct Objects {
    client: Client,
    path: String,
    dry_run: bool,
    manager: &'static str,
}

// === impl ApiError ===

impl ApiError {
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, ApiError::Refused { code: 404, .. })
    }

    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, ApiError::Refused { code: 409, reason, .. } if reason != "AlreadyExists")
    }

    pub(crate) fn is_already_exists(&self) -> bool {
        matches!(self, ApiError::Refused { code: 409, reason, .. } if reason == "AlreadyExists")
    }

    /// Whether this controller may not do that.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, ApiError::Refused { code: 403, .. })
    }

    /// Whether a test of a JSON patch failed, or the patch left something the API does not take.
    pub(crate) fn is_invalid(&self) -> bool {
        matches!(self, ApiError::Refused { code: 422, .. })
    }

    /// Whether the object would be larger than the API stores.
    pub(crate) fn is_too_large(&self) -> bool {
        match self {
            ApiError::Refused { code: 413, .. } => true,
            ApiError::Refused { message, .. } => {
                message.contains("request is too large") || message.contains("Too large")
            }
            ApiError::NoAnswer(_) => false,
        }
    }

    /// Whether the request may have taken effect nevertheless.
    pub(crate) fn leaves_doubt(&self) -> bool {
        !matches!(self, ApiError::Refused { code: 400..=499, .. })
    }
}

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> ApiError {
        match error {
            kube::Error::Api(status) => {
                let message = match status.message.is_empty() {
                    true => format!("the Kubernetes API answered {} {}", status.code, status.reason),
                    false => status.message.clone(),
                };
                ApiError::Refused { code: status.code, reason: status.reason.clone(), message }
            }
            other => {
                let mut text = other.to_string();
                let mut cause = std::error::Error::source(&other);
                while let Some(inner) = cause {
                    let inner_text = inner.to_string();
                    if !text.contains(&inner_text) {
                        text = format!("{text}: {inner_text}");
                    }
                    cause = inner.source();
                }
                ApiError::NoAnswer(text)
            }
        }
    }
}

// === impl Objects ===

impl Objects {
    /// The resource with this plural name. With `dry_run` the API checks writes and makes none.
    pub(crate) fn new(
        client: Client,
        api_version: &str,
        plural: &str,
        namespace: &str,
        dry_run: bool,
    ) -> Objects {
        let root = if api_version.contains('/') { "apis" } else { "api" };
        let path = match namespace.is_empty() {
            true => format!("/{root}/{api_version}/{plural}"),
            false => format!("/{root}/{api_version}/namespaces/{namespace}/{plural}"),
        };
        Objects { client, path, dry_run, manager: FIELD_MANAGER }
    }

    /// The same, writing under another name.
    pub(crate) fn managed_by(self, manager: &'static str) -> Objects {
        Objects { manager, ..self }
    }

    /// The object of this name, if there is one.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<Value>, ApiError> {
        match self.ask(Request::new(&self.path).get(name, &GetParams::default())).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Shows every object of one consistent state, page by page, so that no more than a page is held, and tells the
    /// version of that state. `each` may be shown a part before an error is found.
    pub(crate) async fn each(
        &self,
        labels: Option<&str>,
        each: impl FnMut(Value),
    ) -> Result<String, ApiError> {
        self.pages(PAGE, labels, each).await
    }

    /// The same of everything there is, for decisions that cannot be taken back.
    pub(crate) async fn each_of_all(&self, each: impl FnMut(Value)) -> Result<String, ApiError> {
        self.pages(LARGE_PAGE, None, each).await
    }

    async fn pages(
        &self,
        page: u32,
        labels: Option<&str>,
        mut each: impl FnMut(Value),
    ) -> Result<String, ApiError> {
        let mut params = ListParams::default().limit(page);
        params.label_selector = labels.filter(|labels| !labels.is_empty()).map(str::to_owned);
        loop {
            let mut page = self.ask(Request::new(&self.path).list(&params)).await?;
            let items = page.get_mut("items").map(Value::take);
            let Some(Value::Array(items)) = items else {
                return Err(ApiError::NoAnswer("a list without items".to_owned()));
            };
            items.into_iter().for_each(&mut each);
            match page.pointer("/metadata/continue").and_then(Value::as_str) {
                Some(more) if !more.is_empty() => params.continue_token = Some(more.to_owned()),
                _ => {
                    let version = page.pointer("/metadata/resourceVersion").and_then(Value::as_str);
                    return Ok(version.unwrap_or_default().to_owned());
                }
            }
        }
    }

    pub(crate) async fn create(&self, object: &Value) -> Result<Value, ApiError> {
        let body = serde_json::to_vec(object).map_err(|error| ApiError::NoAnswer(error.to_string()))?;
        let params = PostParams { dry_run: self.dry_run, field_manager: Some(self.manager.to_owned()) };
        self.ask(Request::new(&self.path).create(&params, body)).await
    }

    /// Writes the whole object, in the place of the version it shows.
    pub(crate) async fn replace(&self, name: &str, object: &Value) -> Result<Value, ApiError> {
        let body = serde_json::to_vec(object).map_err(|error| ApiError::NoAnswer(error.to_string()))?;
        let params = PostParams { dry_run: self.dry_run, field_manager: Some(self.manager.to_owned()) };
        self.ask(Request::new(&self.path).replace(name, &params, body)).await
    }

    /// Applies a merge patch if the object is still the one, and in the state, that `seen` names.
    pub(crate) async fn patch(&self, name: &str, patch: Value, seen: Seen<'_>) -> Result<Value, ApiError> {
        let patch = Patch::Merge(seen.guard(patch));
        self.ask(Request::new(&self.path).patch(name, &self.patch_params(), &patch)).await
    }

    /// Applies a JSON patch (RFC 6902): all of it, or nothing where one of its tests fails.
    pub(crate) async fn patch_json(&self, name: &str, patch: Value) -> Result<Value, ApiError> {
        let bytes = serde_json::to_vec(&patch).map_err(|error| ApiError::NoAnswer(error.to_string()))?;
        let params = self.patch_params();
        // The patch is sent as it stands; kube's own type would need another crate to make it.
        let request = Request::new(&self.path).patch(name, &params, &Patch::Merge(Value::Null));
        let request = request.map(|request| {
            let (mut head, _) = request.into_parts();
            let kind = http::HeaderValue::from_static("application/json-patch+json");
            head.headers.insert(http::header::CONTENT_TYPE, kind);
            http::Request::from_parts(head, bytes)
        });
        self.ask(request).await
    }

    /// As [`Objects::patch`], for the status.
    pub(crate) async fn patch_status(
        &self,
        name: &str,
        patch: Value,
        seen: Seen<'_>,
    ) -> Result<Value, ApiError> {
        let patch = Patch::Merge(seen.guard(patch));
        self.ask(Request::new(&self.path).patch_subresource("status", name, &self.patch_params(), &patch))
            .await
    }

    /// Deletes the object if it is still the one, and in the state, that `seen` names. One that is not there is as
    /// good as deleted.
    pub(crate) async fn delete(&self, name: &str, seen: Seen<'_>) -> Result<Deleted, ApiError> {
        let preconditions = Preconditions {
            uid: Some(seen.uid.to_owned()),
            resource_version: seen.version.map(str::to_owned),
        };
        let params = DeleteParams {
            dry_run: self.dry_run,
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        match self.ask(Request::new(&self.path).delete(name, &params)).await {
            Ok(answer) if answer.pointer("/metadata/deletionTimestamp").is_some() => {
                Ok(Deleted::Waiting(answer))
            }
            Ok(_) => Ok(Deleted::Gone),
            Err(error) if error.is_not_found() => Ok(Deleted::Gone),
            Err(error) => Err(error),
        }
    }

    fn patch_params(&self) -> PatchParams {
        let field_manager = Some(self.manager.to_owned());
        PatchParams { dry_run: self.dry_run, field_manager, ..PatchParams::default() }
    }

    async fn ask(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Value, ApiError> {
        let request = request.map_err(|error| ApiError::NoAnswer(error.to_string()))?;
        Ok(self.client.request(request).await?)
    }
}

/// The state of an object that a write was decided on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) uid: &'a str,
    /// Its resourceVersion, where the write must not happen in any other state.
    pub(crate) version: Option<&'a str>,
}

impl<'a> Seen<'a> {
    /// The state that this object shows.
    pub(crate) fn of(object: &'a Value) -> Seen<'a> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        Seen { uid: text("/metadata/uid").unwrap_or_default(), version: text("/metadata/resourceVersion") }
    }

    fn guard(self, mut patch: Value) -> Value {
        if !patch["metadata"].is_object() {
            patch["metadata"] = json!({});
        }
        patch["metadata"]["uid"] = self.uid.into();
        if let Some(version) = self.version {
            patch["metadata"]["resourceVersion"] = version.into();
        }
        patch
    }
}
