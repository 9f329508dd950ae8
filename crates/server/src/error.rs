//! What a call answers when it cannot do what it was asked: Argo CD's codes, and what they are over HTTP.

use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

/// Why, in one of gRPC's codes, which are the codes of Argo CD's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Code {
    /// Something unforeseen.
    Unknown = 2,
    /// The request makes no sense.
    InvalidArgument = 3,
    /// It took too long.
    DeadlineExceeded = 4,
    /// There is no such thing.
    NotFound = 5,
    /// There is such a thing already.
    AlreadyExists = 6,
    /// The caller may not.
    PermissionDenied = 7,
    /// Too much of something.
    ResourceExhausted = 8,
    /// Not in this state.
    FailedPrecondition = 9,
    /// It changed meanwhile.
    Aborted = 10,
    /// Nobody does that here.
    Unimplemented = 12,
    /// A fault of the server.
    Internal = 13,
    /// Something it needs is not there now.
    Unavailable = 14,
    /// Nobody knows who asks.
    Unauthenticated = 16,
}

/// A call that failed, in words for whoever made it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// Why.
    pub code: Code,
    /// In words.
    pub message: String,
}

// === impl Code ===

impl Code {
    /// The status of an HTTP answer.
    pub fn status(self) -> StatusCode {
        match self {
            Code::Unknown | Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Code::InvalidArgument | Code::FailedPrecondition => StatusCode::BAD_REQUEST,
            Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
            Code::NotFound => StatusCode::NOT_FOUND,
            Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
            Code::PermissionDenied => StatusCode::FORBIDDEN,
            Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
            Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        }
    }
}

// === impl Error ===

impl Error {
    /// An error of a code.
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error { code, message: message.into() }
    }

    /// The request makes no sense.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(Code::InvalidArgument, message)
    }

    /// Not in this state.
    pub fn precondition(message: impl Into<String>) -> Error {
        Error::new(Code::FailedPrecondition, message)
    }

    /// There is no such thing, or the caller may not know: both read the same.
    pub fn hidden() -> Error {
        Error::new(Code::PermissionDenied, "permission denied")
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> Error {
        Error::new(Code::NotFound, message)
    }

    /// A fault of the server.
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(Code::Internal, message)
    }

    /// The body of an HTTP answer.
    pub fn body(&self) -> Value {
        json!({"error": self.message, "code": self.code as i32, "message": self.message})
    }

    /// The body of an answer that would have been a stream: as its last line, with what other answers say too.
    pub(crate) fn unstreamed(&self) -> Value {
        let mut body = self.line();
        body["code"] = (self.code as i32).into();
        body["message"] = self.message.clone().into();
        body
    }

    /// The schema of that body.
    pub(crate) fn schema() -> Value {
        let text = json!({"type": "string"});
        json!({
            "type": "object",
            "description": "Why a call was not carried out: the code is one of gRPC's, the texts are the same. Where a \
                stream was asked for, the error is an object, as in the last line of a stream.",
            "required": ["error", "code", "message"],
            "properties": {"error": {"type": ["string", "object"]}, "code": {"type": "integer"}, "message": text},
        })
    }

    /// The last line of a stream that ends in an error.
    pub fn line(&self) -> Value {
        let status = self.code.status();
        json!({"error": {
            "grpc_code": self.code as i32,
            "http_code": status.as_u16(),
            "message": self.message,
            "http_status": status.canonical_reason().unwrap_or_default(),
        }})
    }
}

impl From<kube::Error> for Error {
    /// Answers of the Kubernetes API become Argo CD's codes; anything else says only that the API cannot be asked, for
    /// the text of a connection's error may hold addresses and credentials.
    fn from(error: kube::Error) -> Error {
        let kube::Error::Api(status) = &error else {
            tracing::warn!(error = %error, "the Kubernetes API cannot be asked");
            return Error::new(Code::Unavailable, "the Kubernetes API cannot be asked now: try again");
        };
        let code = match (status.code, status.reason.as_str()) {
            (409, "AlreadyExists") => Code::AlreadyExists,
            (404, _) => Code::NotFound,
            (413 | 422, _) => Code::InvalidArgument,
            (400, _) => Code::FailedPrecondition,
            (401, _) => Code::Unauthenticated,
            (403, _) => Code::PermissionDenied,
            (409, _) => Code::Aborted,
            (429, _) => Code::ResourceExhausted,
            (504, _) => Code::DeadlineExceeded,
            (500 | 503, _) => Code::Unavailable,
            _ => Code::Unknown,
        };
        // Whoever signed in here is known; it is this server that the API does not know.
        match code {
            Code::Unauthenticated | Code::PermissionDenied => {
                let message = format!("the Kubernetes API refuses this to the server: {}", status.message);
                Error::new(Code::PermissionDenied, message)
            }
            code => Error::new(code, status.message.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    #[test]
    fn answers_of_the_api_become_argo_cds_codes() {
        let answer = |code: u16, reason: &str| {
            let status = Status { code, reason: reason.to_owned(), ..Status::default() };
            Error::from(kube::Error::Api(Box::new(status))).code
        };
        assert_eq!(answer(404, "NotFound"), Code::NotFound);
        assert_eq!(answer(409, "AlreadyExists"), Code::AlreadyExists);
        assert_eq!(answer(409, "Conflict"), Code::Aborted);
        assert_eq!(answer(422, "Invalid"), Code::InvalidArgument);
        assert_eq!(answer(429, "TooManyRequests"), Code::ResourceExhausted);
        assert_eq!(answer(418, ""), Code::Unknown);
    }

    #[test]
    fn an_error_is_told_as_argo_cd_tells_it() {
        let error = Error::precondition("another operation is already in progress");
        let told = "another operation is already in progress";
        assert_eq!(error.body(), json!({"error": told, "code": 9, "message": told}));
        assert_eq!(error.code.status(), StatusCode::BAD_REQUEST);
        assert_eq!(error.line()["error"]["http_status"], "Bad Request");
    }
}
