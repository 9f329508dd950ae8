//! What a host answered.

use bytes::Bytes;
use reqwest::header::{ETAG, HeaderMap, HeaderName, HeaderValue, LINK, LOCATION};
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Failure, failure, said};
use crate::error::{Kind, ScmError};

/// Headers that tell where a list goes on.
const KEPT: [HeaderName; 5] = [
    ETAG,
    LINK,
    HeaderName::from_static("x-next-page"),
    HeaderName::from_static("x-total-count"),
    HeaderName::from_static("x-ms-continuationtoken"),
];

/// A successful answer.
#[derive(Clone)]
pub(crate) struct Answer {
    /// Names the request in messages.
    name: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    status: StatusCode,
    body: Bytes,
}

impl Answer {
    pub(super) fn new(name: String, status: StatusCode, headers: &HeaderMap, body: Bytes) -> Answer {
        let keep = |name| headers.get(&name).map(|value| (name, value.clone()));
        Answer { name, headers: KEPT.into_iter().filter_map(keep).collect(), status, body }
    }

    pub(crate) fn header(&self, name: HeaderName) -> Option<&HeaderValue> {
        self.headers.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// A header as text; one that is not text is as good as none.
    pub(crate) fn text_header(&self, name: &'static str) -> Option<&str> {
        self.header(HeaderName::from_static(name)).and_then(|value| value.to_str().ok())
    }

    /// Whether the host says that there is nothing. A body that is merely empty is another matter.
    pub(crate) fn is_nothing(&self) -> bool {
        self.status == StatusCode::NO_CONTENT
    }

    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, ScmError> {
        serde_json::from_slice(&self.body).map_err(|error| self.wrong(error))
    }

    /// Says what is wrong with this answer.
    pub(crate) fn wrong(&self, why: impl std::fmt::Display) -> ScmError {
        ScmError::protocol(format!("{} cannot be used: {why}", self.name))
    }

    pub(super) fn size(&self) -> usize {
        self.body.len()
    }
}

/// What a host says when it refuses; each host has its own field.
#[derive(Deserialize)]
struct Said {
    #[serde(default, alias = "error_description")]
    message: Option<serde_json::Value>,
    #[serde(default)]
    error: Option<serde_json::Value>,
    #[serde(default)]
    errors: Option<serde_json::Value>,
    /// Azure DevOps names the sort of its error here.
    #[serde(default, rename = "typeKey")]
    type_key: Option<String>,
}

/// The error for an answer that is not a success.
pub(super) fn refusal(
    method: &Method,
    url: &Url,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> Failure {
    let said_by_host: Option<Said> = serde_json::from_slice(body).ok();
    let mut what = status.to_string();
    if let Some(words) = said_by_host.as_ref().and_then(words) {
        what = format!("{what}: {words}");
    }
    if status.is_redirection() {
        let to = headers.get(LOCATION).and_then(|to| to.to_str().ok()).and_then(|to| url.join(to).ok());
        let to = to.map_or("nowhere".to_owned(), |to| format!("{}://{}", to.scheme(), to.authority()));
        what = format!("{status}: redirect to {to} is not followed");
    }
    let kind = match status {
        StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::NON_AUTHORITATIVE_INFORMATION
        | StatusCode::PROXY_AUTHENTICATION_REQUIRED => Kind::Unauthorized,
        StatusCode::NOT_FOUND => Kind::NotFound,
        _ if status.is_server_error() => Kind::Network,
        _ => Kind::Protocol,
    };
    let transient = matches!(
        status,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
    );
    let code = said_by_host.and_then(|said| said.type_key);
    Failure { transient, ..failure(ScmError::new(kind, said(method, url, &what)).with_code(code)) }
}

/// The host's own words, if they can be shown: short, one line, without control characters.
fn words(said: &Said) -> Option<String> {
    let value = said.message.as_ref().or(said.error.as_ref()).or(said.errors.as_ref())?;
    let text = match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Object(fields) => fields.get("message")?.as_str()?.to_owned(),
        serde_json::Value::Array(list) => list.first()?.get("message")?.as_str()?.to_owned(),
        _ => return None,
    };
    let words: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect();
    Some(words).filter(|words| !words.trim().is_empty())
}
