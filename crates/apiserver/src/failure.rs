//! Everything that can go wrong with a request, told the way Kubernetes tells it: a `Status` object.

use baton_schema::FieldError;
use http::StatusCode;
use serde_json::{Map, Value, json};

/// A request that cannot be answered; becomes a `metav1.Status`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    /// HTTP code, also in the body.
    pub(crate) code: StatusCode,
    /// Machine-readable reason; clients decide by it.
    pub(crate) reason: &'static str,
    /// For people.
    pub(crate) message: String,
    details: Map<String, Value>,
    /// Left for another attempt, in seconds (`Retry-After`).
    pub(crate) retry_after: Option<u32>,
    continue_token: Option<String>,
}

/// What a failure is about: `deployments.apps "web"`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// API group, empty for core.
    pub(crate) group: &'a str,
    /// Plural resource name (or the kind, for `Invalid`).
    pub(crate) resource: &'a str,
    /// Object name.
    pub(crate) name: &'a str,
}

impl Subject<'_> {
    fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }

    fn details(&self) -> Map<String, Value> {
        let mut details = Map::new();
        for (key, value) in [("name", self.name), ("group", self.group), ("kind", self.resource)] {
            if !value.is_empty() {
                details.insert(key.into(), value.into());
            }
        }
        details
    }
}

impl Failure {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Failure {
            code,
            reason,
            message: message.into(),
            details: Map::new(),
            retry_after: None,
            continue_token: None,
        }
    }

    fn about(mut self, subject: Subject<'_>) -> Self {
        self.details.extend(subject.details());
        self
    }

    fn causes(mut self, causes: Vec<Value>) -> Self {
        if !causes.is_empty() {
            self.details.insert("causes".into(), causes.into());
        }
        self
    }

    /// Replaces the message, keeping reason and details.
    pub(crate) fn saying(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// 400.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Failure::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 401.
    pub(crate) fn unauthorized() -> Self {
        Failure::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// 403.
    pub(crate) fn forbidden(subject: Subject<'_>, why: impl std::fmt::Display) -> Self {
        let message = if subject.resource.is_empty() {
            format!("forbidden: {why}")
        } else if subject.name.is_empty() {
            format!("{} is forbidden: {why}", subject.qualified())
        } else {
            format!("{} {:?} is forbidden: {why}", subject.qualified(), subject.name)
        };
        Failure::new(StatusCode::FORBIDDEN, "Forbidden", message).about(subject)
    }

    /// 403 because the namespace is going away; controllers look for the cause.
    pub(crate) fn namespace_terminating(subject: Subject<'_>, namespace: &str) -> Self {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let cause = json!({
            "reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace",
        });
        Failure::forbidden(subject, why).causes(vec![cause])
    }

    /// 404 for an object.
    pub(crate) fn not_found(subject: Subject<'_>) -> Self {
        let message = format!("{} {:?} not found", subject.qualified(), subject.name);
        Failure::new(StatusCode::NOT_FOUND, "NotFound", message).about(subject)
    }

    /// 404 for a path that leads to nothing.
    pub(crate) fn no_such_path() -> Self {
        Failure::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
    }

    /// 405.
    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Failure::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    /// 406.
    pub(crate) fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json, application/yaml";
        Failure::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// 415.
    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// 413.
    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// 408.
    pub(crate) fn body_timeout() -> Self {
        Failure::new(StatusCode::REQUEST_TIMEOUT, "Timeout", "the request body did not arrive in time")
    }

    /// 409: the name is taken.
    pub(crate) fn already_exists(subject: Subject<'_>) -> Self {
        let message = format!("{} {:?} already exists", subject.qualified(), subject.name);
        Failure::new(StatusCode::CONFLICT, "AlreadyExists", message).about(subject)
    }

    /// 409: somebody else was faster.
    pub(crate) fn conflict(subject: Subject<'_>, why: impl std::fmt::Display) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {:?}: {why}", subject.qualified(), subject.name);
        Failure::new(StatusCode::CONFLICT, "Conflict", message).about(subject)
    }

    /// 409 with the usual advice.
    pub(crate) fn modified(subject: Subject<'_>) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Failure::conflict(subject, why)
    }

    /// 409 from server-side apply.
    pub(crate) fn apply_conflict(message: impl Into<String>, causes: Vec<Value>) -> Self {
        Failure::new(StatusCode::CONFLICT, "Conflict", message).causes(causes)
    }

    /// 410.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Failure::new(StatusCode::GONE, "Expired", message)
    }

    /// 410 that offers a token to go on with, at the price of consistency.
    pub(crate) fn expired_continue(token: String) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. You can \
                       start a new list without the continue parameter, or use the continue token in this response \
                       to retrieve the remainder of the results. Continuing with the provided token results in an \
                       inconsistent list - objects that were created, modified, or deleted between the time the \
                       first chunk was returned and now may show up in the list.";
        Failure { continue_token: Some(token), ..Failure::expired(message) }
    }

    /// 422: fields of an object are wrong. `subject.resource` is the kind.
    pub(crate) fn invalid(subject: Subject<'_>, errors: &[FieldError]) -> Self {
        let causes = errors
            .iter()
            .map(|error| json!({"reason": error.reason(), "message": error.message(), "field": error.path}))
            .collect();
        let list = match errors {
            [only] => only.to_string(),
            many => {
                let all: Vec<String> = many.iter().map(ToString::to_string).collect();
                format!("[{}]", all.join(", "))
            }
        };
        let message = format!("{} {:?} is invalid: {list}", subject.qualified(), subject.name);
        Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).about(subject).causes(causes)
    }

    /// 422 for a patch that cannot be applied.
    pub(crate) fn unprocessable(message: impl Into<String>) -> Self {
        Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
    }

    /// 504: a revision the server has not reached.
    pub(crate) fn future_revision(asked: u64, current: u64) -> Self {
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        let message = format!("Too large resource version: {asked}, current: {current}");
        let mut failure = Failure::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).causes(vec![cause]);
        failure.details.insert("retryAfterSeconds".into(), 1.into());
        failure.retry_after = Some(1);
        failure
    }

    /// 500.
    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        let cause = json!({"message": message.to_string()});
        Failure::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            format!("Internal error occurred: {message}"),
        )
        .causes(vec![cause])
    }

    /// 503.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        let mut failure = Failure::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message);
        failure.retry_after = Some(1);
        failure
    }

    /// 429, for evictions a disruption budget forbids.
    pub(crate) fn too_many_requests(message: impl Into<String>) -> Self {
        let mut failure = Failure::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
        failure.retry_after = Some(10);
        failure
    }

    /// The `Status` object.
    pub(crate) fn to_status(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".into(), token.as_str().into());
        }
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code.as_u16(),
        });
        if !self.details.is_empty() {
            status["details"] = Value::Object(self.details.clone());
        }
        status
    }
}

/// The `Status` that answers a deletion.
pub(crate) fn deleted(subject: Subject<'_>, uid: &str) -> Value {
    let mut details = subject.details();
    details.insert("uid".into(), uid.into());
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEB: Subject<'_> = Subject { group: "apps", resource: "deployments", name: "web" };

    #[test]
    fn a_missing_object_reads_as_kubectl_expects() {
        assert_eq!(
            Failure::not_found(WEB).to_status(),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "deployments.apps \"web\" not found", "reason": "NotFound", "code": 404,
                "details": {"name": "web", "group": "apps", "kind": "deployments"},
            })
        );
    }

    #[test]
    fn several_field_errors_are_listed_with_their_causes() {
        let errors = [
            FieldError::required("spec.selector", ""),
            FieldError::invalid("spec.replicas", -1, "must be positive"),
        ];
        let failure = Failure::invalid(Subject { resource: "Deployment", ..WEB }, &errors);
        assert_eq!(
            failure.message,
            "Deployment.apps \"web\" is invalid: [spec.selector: Required value, spec.replicas: Invalid value: -1: \
             must be positive]"
        );
        assert_eq!(failure.to_status()["details"]["causes"][1]["reason"], "FieldValueInvalid");
    }
}
