//! The HTTP face of a cluster: from a request to the operation it means, and back.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use baton_schema::{FieldError, Problem};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, RETRY_AFTER, USER_AGENT, WARNING};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::Value;

use crate::auth::User;
use crate::authorization::Question;
use crate::catalog::Resource;
use crate::cluster::{Cluster, Core};
use crate::failure::{Failure, Subject};
use crate::request::{Encoding, Query, Representation, ResourcePath, Shape, Target};
use crate::{collections, discovery, objects, openapi, request, reviews};

/// Largest request body, as kube-apiserver has it.
pub(crate) const BODY_LIMIT: usize = 3 * 1024 * 1024;
/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The body of an answer: whole, or a stream without end.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A request with its body read.
pub(crate) struct Call {
    pub(crate) core: Arc<Core>,
    pub(crate) method: Method,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) user: User,
    pub(crate) representation: Representation,
}

impl Call {
    pub(crate) fn content_type(&self) -> &str {
        self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Who owns the fields a write sets.
    pub(crate) fn field_manager(&self) -> Result<String, Failure> {
        const LONGEST: usize = 128;
        let Some(manager) = self.query.get("fieldManager") else {
            let agent =
                self.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let name: String = agent.split('/').next().unwrap_or_default().chars().take(LONGEST).collect();
            return Ok(if name.is_empty() { "unknown".to_owned() } else { name });
        };
        let error = if manager.len() > LONGEST {
            FieldError {
                path: "fieldManager".into(),
                problem: Problem::TooLong,
                detail: format!("may not be more than {LONGEST} bytes"),
            }
        } else if let Some((at, bad)) = manager.chars().enumerate().find(|(_, c)| c.is_control()) {
            let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(bad));
            FieldError::invalid("fieldManager", manager, detail)
        } else {
            return Ok(manager.to_owned());
        };
        Err(Failure::invalid(self.options_subject(), &[error]))
    }

    /// What errors in the options of a write are about.
    fn options_subject(&self) -> Subject<'static> {
        let resource = match self.method.as_str() {
            "PATCH" => "PatchOptions",
            "PUT" => "UpdateOptions",
            "DELETE" => "DeleteOptions",
            _ => "CreateOptions",
        };
        Subject { group: "meta.k8s.io", resource, name: "" }
    }

    pub(crate) fn dry_run(&self) -> Result<bool, Failure> {
        let values = self.query.all("dryRun");
        if let Some(other) = values.iter().find(|value| !value.is_empty() && *value != "All") {
            let error = baton_schema::FieldError::not_supported("dryRun", other.as_str(), &["All"]);
            let subject =
                crate::failure::Subject { group: "meta.k8s.io", resource: "CreateOptions", name: "" };
            return Err(Failure::invalid(subject, &[error]));
        }
        Ok(values.iter().any(|value| value == "All"))
    }
}

/// An answer before it is written down.
pub(crate) struct Answer {
    pub(crate) code: StatusCode,
    pub(crate) content: Content,
    pub(crate) warnings: Vec<String>,
    pub(crate) content_type: Option<&'static str>,
}

/// What an answer holds.
pub(crate) enum Content {
    Value(Value),
    /// JSON that needs no further encoding.
    Json(Bytes),
    /// JSON in pieces.
    Stream(futures::stream::BoxStream<'static, Bytes>),
    Text(String),
}

impl Answer {
    pub(crate) fn ok(value: Value) -> Answer {
        Answer {
            code: StatusCode::OK,
            content: Content::Value(value),
            warnings: Vec::new(),
            content_type: None,
        }
    }

    pub(crate) fn json(bytes: Bytes) -> Answer {
        Answer { content: Content::Json(bytes), ..Answer::ok(Value::Null) }
    }

    pub(crate) fn stream(stream: futures::stream::BoxStream<'static, Bytes>) -> Answer {
        Answer { content: Content::Stream(stream), ..Answer::ok(Value::Null) }
    }

    pub(crate) fn text(text: impl Into<String>) -> Answer {
        Answer { content: Content::Text(text.into()), ..Answer::ok(Value::Null) }
    }

    pub(crate) fn created(mut self) -> Answer {
        self.code = StatusCode::CREATED;
        self
    }

    pub(crate) fn warning(mut self, warnings: Vec<String>) -> Answer {
        self.warnings = warnings;
        self
    }

    pub(crate) fn typed(mut self, content_type: &'static str) -> Answer {
        self.content_type = Some(content_type);
        self
    }
}

impl Cluster {
    /// Answers one request. The user is taken from the request's extensions; without one the caller is trusted, for
    /// this is how a process talks to its own cluster.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        match self.answer(request).await {
            Ok((answer, encoding)) => encode(answer, encoding),
            Err(failure) => refuse(&failure),
        }
    }

    async fn answer<B>(&self, request: Request<B>) -> Result<(Answer, Encoding), Failure>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let target = request::target(parts.uri.path()).ok_or_else(Failure::no_such_path)?;
        if target == Target::Health {
            return Ok((discovery::health(&self.core, &parts.uri), Encoding::Json));
        }
        let mut user = parts.extensions.get::<User>().cloned().unwrap_or_else(User::admin);
        if parts.headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
            if self.core.authority.is_none() {
                // Answering as the owner would be a lie about what the other may do.
                let subject = Subject { group: "", resource: "users", name: "" };
                let why = "this API server does not impersonate: it has one user";
                return Err(Failure::forbidden(subject, why));
            }
            user = self.core.impersonated(user, &parts.headers)?;
        }
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        if self.core.authority.is_some() {
            self.core.authorize(&user, &Question::of(&target, &parts.method, &query, parts.uri.path()))?;
        }
        // OpenAPI is asked for in its own media types; what it is served as does not depend on the wish.
        let representation = match &target {
            Target::OpenApi(_) => Representation { encoding: Encoding::Json, shape: Shape::Whole },
            _ => request::representation(&parts.headers)?,
        };
        let call = Call {
            core: self.core.clone(),
            body: read_body(&parts.method, body).await?,
            method: parts.method,
            query,
            headers: parts.headers,
            user,
            representation,
        };
        let encoding = representation.encoding;
        let answer = match target {
            Target::Health => discovery::health(&self.core, &parts.uri),
            Target::Root => discovery::root(),
            Target::Version => discovery::version(),
            Target::Discovery(document) => discovery::answer(&call, &document)?,
            Target::OpenApi(path) => openapi::answer(&call, &path)?,
            Target::Resource(path) => resource(call, path).await?,
        };
        Ok((answer, encoding))
    }
}

async fn resource(call: Call, path: ResourcePath) -> Result<Answer, Failure> {
    let catalog = call.core.catalog();
    let resource =
        catalog.find(&path.group, &path.version, &path.resource).ok_or_else(Failure::no_such_path)?;
    if path.namespace.is_some() && !resource.namespaced {
        return Err(Failure::no_such_path());
    }
    if resource.verbs() == ["create"] {
        return reviews::answer(&call, &resource, path.namespace.as_deref());
    }
    let deprecation = resource.custom().and_then(|custom| custom.deprecation.clone());
    let mut answer = dispatch(call, resource, path).await?;
    answer.warnings.extend(deprecation);
    Ok(answer)
}

async fn dispatch(call: Call, resource: Arc<Resource>, path: ResourcePath) -> Result<Answer, Failure> {
    let ResourcePath { namespace, name, subresource, watch, .. } = path;
    let watch = watch || call.query.flag("watch");
    match (name, subresource) {
        (None, _) => match call.method.as_str() {
            "GET" if watch => collections::watch(&call, resource, namespace, None),
            "GET" => collections::list(&call, &resource, namespace.as_deref()),
            "POST" | "DELETE" if resource.namespaced && namespace.is_none() => {
                Err(Failure::method_not_allowed())
            }
            "POST" => objects::create(&call, &resource, namespace.as_deref().unwrap_or_default()).await,
            "DELETE" if resource.verbs().contains(&"deletecollection") => {
                collections::delete(&call, &resource, namespace.as_deref()).await
            }
            _ => Err(Failure::method_not_allowed()),
        },
        (Some(_), _) if resource.namespaced && namespace.is_none() => Err(Failure::no_such_path()),
        (Some(name), None) => {
            let namespace = namespace.unwrap_or_default();
            match call.method.as_str() {
                "GET" if watch => {
                    let within = resource.namespaced.then_some(namespace);
                    collections::watch(&call, resource, within, Some(&name))
                }
                "GET" => objects::get(&call, &resource, &namespace, &name),
                "PUT" => objects::replace(&call, &resource, &namespace, &name, None).await,
                "PATCH" => objects::patch(&call, &resource, &namespace, &name, None).await,
                "DELETE" => objects::delete(&call, &resource, &namespace, &name).await,
                _ => Err(Failure::method_not_allowed()),
            }
        }
        (Some(name), Some(subresource)) => {
            objects::subresource(&call, &resource, &namespace.unwrap_or_default(), &name, &subresource).await
        }
    }
}

async fn read_body<B>(method: &Method, body: B) -> Result<Bytes, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if method == Method::GET || method == Method::HEAD {
        return Ok(Bytes::new());
    }
    tokio::time::timeout(BODY_TIMEOUT, collect(body)).await.unwrap_or_else(|_| Err(Failure::body_timeout()))
}

/// Reads a body up to the limit. What is beyond is read too, within reason: a client that is still sending would
/// otherwise see a broken connection instead of the answer.
async fn collect<B>(body: B) -> Result<Bytes, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut body = Box::pin(body);
    let mut kept = BytesMut::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|error| Failure::bad_request(format!("the body could not be read: {}", error.into())))?;
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length <= BODY_LIMIT {
            kept.extend_from_slice(&data);
        } else if length > 8 * BODY_LIMIT {
            break;
        }
    }
    if length > BODY_LIMIT { Err(Failure::too_large(BODY_LIMIT)) } else { Ok(kept.freeze()) }
}

const APPLICATION_JSON: &str = "application/json";

fn encode(answer: Answer, encoding: Encoding) -> Response<Body> {
    let (content_type, body) = match (answer.content, encoding) {
        (Content::Text(text), _) => ("text/plain; charset=utf-8", full(text.into())),
        (Content::Stream(stream), _) => {
            let frames = stream.map(|bytes| Ok::<_, Infallible>(http_body::Frame::data(bytes)));
            (APPLICATION_JSON, StreamBody::new(frames).boxed_unsync())
        }
        (Content::Json(bytes), Encoding::Json) => (APPLICATION_JSON, full(bytes)),
        (Content::Value(value), Encoding::Json) => (APPLICATION_JSON, full(value.to_string().into())),
        (Content::Json(bytes), Encoding::Yaml) => {
            let value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
            ("application/yaml", full(yaml(&value)))
        }
        (Content::Value(value), Encoding::Yaml) => ("application/yaml", full(yaml(&value))),
    };
    let mut response = Response::new(body);
    *response.status_mut() = answer.code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(answer.content_type.unwrap_or(content_type)));
    common_headers(headers);
    for warning in answer.warnings {
        // A warning travels in a header: what a header cannot hold is dropped, not the answer.
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {warning:?}")) {
            headers.append(WARNING, value);
        }
    }
    response
}

fn refuse(failure: &Failure) -> Response<Body> {
    let mut response = Response::new(full(failure.to_status().to_string().into()));
    *response.status_mut() = failure.code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(APPLICATION_JSON));
    common_headers(headers);
    if let Some(seconds) = failure.retry_after {
        headers.insert(RETRY_AFTER, seconds.into());
    }
    response
}

fn common_headers(headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    headers.insert(HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff"));
}

fn full(bytes: Bytes) -> Body {
    Full::new(bytes).boxed_unsync()
}

fn yaml(value: &Value) -> Bytes {
    serde_saphyr::to_string(value).unwrap_or_default().into()
}

/// The answer to a request that is not let in.
pub(crate) fn unauthorized() -> Response<Body> {
    refuse(&Failure::unauthorized())
}

/// The answer to a request that broke the server.
pub(crate) fn internal(message: &str) -> Response<Body> {
    refuse(&Failure::internal(message))
}
