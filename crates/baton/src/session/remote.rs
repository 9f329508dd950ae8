//! Requests to a server, with the token of a session.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Method, RequestBuilder, Response, StatusCode, Url};
use serde_json::Value;

use super::events::Events;
use super::file::Context;
use crate::failure::Failure;

const USER_AGENT: &str = concat!("baton/", env!("CARGO_PKG_VERSION"));
const CONNECT: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(60);
/// Longest answer that takes a controller's work first.
const PATIENCE: Duration = Duration::from_secs(130);
/// Longest stream; it is begun anew after that.
const STREAM: Duration = Duration::from_secs(24 * 3600);
/// More than this is no answer to any of these requests.
pub(super) const MOST_BYTES: usize = 64 << 20;
/// How a server hides what the caller may not see, or what is not there.
const HIDDEN: &str = "permission denied";

/// A server that is spoken to. Clones are the same.
#[derive(Clone)]
pub(crate) struct Remote {
    client: Client,
    base: Url,
    token: Option<String>,
}

/// Why a server did not do what it was asked.
pub(crate) struct Refusal {
    status: Option<StatusCode>,
    failure: Failure,
}

// === impl Refusal ===

impl Refusal {
    /// Whether there is no such thing, as far as the caller may know.
    pub(crate) fn is_absence(&self) -> bool {
        match self.status {
            Some(StatusCode::NOT_FOUND) => true,
            Some(StatusCode::FORBIDDEN) => self.failure.to_string() == HIDDEN,
            _ => false,
        }
    }

    /// Whether the caller may not.
    pub(crate) fn is_denied(&self) -> bool {
        self.status == Some(StatusCode::FORBIDDEN)
    }

    /// Whether something changed meanwhile.
    pub(crate) fn is_conflict(&self) -> bool {
        self.status == Some(StatusCode::CONFLICT)
    }

    /// Whether asking again does not help.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self.status, Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND))
    }

    /// The same for a call that not every server has.
    pub(crate) fn of_call(self, what: &str) -> Failure {
        let absent = [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED];
        match self.status.is_some_and(|status| absent.contains(&status)) {
            true => Failure::api(format!("this server {what} for nobody: use a newer one, or add --core")),
            false => self.failure,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        refusal.failure
    }
}

// === impl Remote ===

impl Remote {
    /// Nothing is asked yet.
    pub(crate) fn new(context: &Context, token: Option<&str>) -> Result<Remote, Failure> {
        let base = base(context)?;
        Ok(Remote { client: client(context)?, base, token: token.map(str::to_owned) })
    }

    /// What the server says.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Failure> {
        Ok(self.ask(Method::GET, path, None, ANSWER).await?)
    }

    /// What the server says once a controller has done its part.
    pub(crate) async fn get_patiently(&self, path: &str) -> Result<Value, Failure> {
        Ok(self.ask(Method::GET, path, None, PATIENCE).await?)
    }

    /// What the server knows of something; none where there is nothing that the caller may see.
    pub(crate) async fn find(&self, path: &str) -> Result<Option<Value>, Failure> {
        match self.ask(Method::GET, path, None, ANSWER).await {
            Ok(found) => Ok(Some(found)),
            Err(refusal) if refusal.is_absence() => Ok(None),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// What the server says to something.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        Ok(self.ask(Method::POST, path, Some(body), ANSWER).await?)
    }

    /// What the server says when something is to go.
    pub(crate) async fn delete(&self, path: &str) -> Result<Value, Failure> {
        Ok(self.ask(Method::DELETE, path, None, ANSWER).await?)
    }

    /// What the server says, or in which way it does not.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Refusal> {
        self.ask(method, path, body, ANSWER).await
    }

    /// What the server tells as it happens.
    pub(crate) async fn events(&self, path: &str) -> Result<Events, Refusal> {
        let request = self.request(Method::GET, path)?.timeout(STREAM).header("accept", "text/event-stream");
        let answer = request.send().await.map_err(|error| self.unreachable(&error))?;
        if answer.status().is_success() {
            return Ok(Events::of(answer));
        }
        let status = answer.status();
        let value: Option<Value> = serde_json::from_slice(&self.read(answer).await?).ok();
        Err(self.refused(status, value.as_ref()))
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        most: Duration,
    ) -> Result<Value, Refusal> {
        let mut request = self.request(method, path)?.timeout(most);
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        let answer = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = answer.status();
        let value: Option<Value> = serde_json::from_slice(&self.read(answer).await?).ok();
        match status.is_success() {
            true => value.ok_or_else(|| self.no_such_server()),
            false => Err(self.refused(status, value.as_ref())),
        }
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, Refusal> {
        let url = self
            .base
            .join(path)
            .map_err(|error| Refusal { status: None, failure: Failure::usage(format!("{path}: {error}")) })?;
        // The header is asked of every request that changes something, with a body or without.
        let request = self.client.request(method, url).header("content-type", "application/json");
        Ok(match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        })
    }

    async fn read(&self, mut answer: Response) -> Result<Vec<u8>, Refusal> {
        let mut text = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(|error| self.unreachable(&error))? {
            if text.len() + part.len() > MOST_BYTES {
                let failure = Failure::api(format!("the answer of {} is far too long", self.host()));
                return Err(Refusal { status: None, failure });
            }
            text.extend_from_slice(&part);
        }
        Ok(text)
    }

    fn host(&self) -> &str {
        self.base.host_str().unwrap_or_default()
    }

    fn unreachable(&self, error: &reqwest::Error) -> Refusal {
        let cause =
            std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source()).last();
        let cause = cause.map(ToString::to_string).unwrap_or_default();
        let advice = match () {
            () if cause.contains("UnknownIssuer") || cause.contains("certificate") => {
                "; where its certificate is its own, name it with --server-crt, or do without with --insecure"
            }
            () if cause.contains("InvalidContentType") || cause.contains("corrupt message") => {
                "; where it speaks no TLS, say --plaintext"
            }
            () if cause.contains("Connection refused") => {
                "; nothing listens there: `baton context` tells which servers are known, --core does without one"
            }
            () => "",
        };
        let failure = Failure::api(format!("cannot reach {}: {cause}{advice}", self.authority()));
        Refusal { status: None, failure }
    }

    fn authority(&self) -> String {
        let port = self.base.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}", self.base.scheme(), self.host())
    }

    fn no_such_server(&self) -> Refusal {
        let failure = Failure::api(format!(
            "{} does not answer as a server of Baton or Argo CD does",
            self.authority()
        ));
        Refusal { status: None, failure }
    }

    fn refused(&self, status: StatusCode, body: Option<&Value>) -> Refusal {
        let message = body.and_then(|body| body["message"].as_str().or(body["error"].as_str()));
        let failure = match (status, message) {
            (StatusCode::UNAUTHORIZED, message) if self.token.is_some() => Failure::api(format!(
                "the session at {} is over ({}): sign in with `baton login`",
                self.authority(),
                message.unwrap_or("it is not known")
            )),
            (_, Some(message)) => Failure::api(message.to_owned()),
            (status, None) if status.is_redirection() => Failure::api(format!(
                "{} sends this elsewhere, as a server that wants TLS does: say `https`, and no --plaintext",
                self.authority()
            )),
            (status, None) => Failure::api(format!("{} answers with {status}", self.authority())),
        };
        Refusal { status: Some(status), failure }
    }
}

/// A client that speaks to the server of a context as it is to be spoken to.
pub(super) fn client(context: &Context) -> Result<Client, Failure> {
    crate::crypto::install();
    let mut builder = Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT)
        .timeout(ANSWER)
        // Nobody else is to see the token.
        .redirect(Policy::none())
        .referer(false)
        .tls_danger_accept_invalid_certs(context.insecure);
    if let Some(encoded) = &context.authority {
        builder = builder.tls_certs_only(authorities(encoded)?);
    }
    builder.build().map_err(|error| Failure::failed(format!("no client can be made: {error}")))
}

/// A text as one segment of a path.
pub(crate) fn segment(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// What stands after a path: the parameters that say something.
pub(crate) fn query(parameters: &[(&str, &str)]) -> String {
    let said = parameters.iter().filter(|(_, value)| !value.is_empty());
    let written: Vec<String> = said.map(|(name, value)| format!("{name}={}", segment(value))).collect();
    if written.is_empty() { String::new() } else { format!("?{}", written.join("&")) }
}

/// Where all paths begin.
fn base(context: &Context) -> Result<Url, Failure> {
    let scheme = if context.plain { "http" } else { "https" };
    let root = context.root.trim_matches('/');
    let root = if root.is_empty() { String::new() } else { format!("{root}/") };
    let text = format!("{scheme}://{}/{root}", context.server);
    let url = Url::parse(&text).ok().filter(|url| url.host_str().is_some() && url.username().is_empty());
    url.filter(|url| url.query().is_none() && url.fragment().is_none()).ok_or_else(|| {
        Failure::usage(format!("{:?} is no address of a server: HOST or HOST:PORT is meant", context.server))
    })
}

fn authorities(encoded: &str) -> Result<Vec<Certificate>, Failure> {
    let wrong = || Failure::usage("the certificates of the server are not PEM");
    let pem = BASE64_STANDARD.decode(encoded).map_err(|_| wrong())?;
    let read = Certificate::from_pem_bundle(&pem).map_err(|_| wrong())?;
    if read.is_empty() { Err(wrong()) } else { Ok(read) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(server: &str, plain: bool, root: &str) -> Context {
        let (server, root) = (server.to_owned(), root.to_owned());
        Context { server, plain, root, ..Context::default() }
    }

    #[test]
    fn paths_begin_at_the_root_of_the_server() {
        for (server, plain, root, expected) in [
            ("cd.example.com", false, "", "https://cd.example.com/api/version"),
            ("127.0.0.1:8080", true, "", "http://127.0.0.1:8080/api/version"),
            ("[::1]:8080", true, "/cd/", "http://[::1]:8080/cd/api/version"),
        ] {
            let url = base(&at(server, plain, root)).expect("an address");
            assert_eq!(url.join("api/version").expect("a path").as_str(), expected);
        }
        for server in ["", "a b", "user@host", "host/?x", "host#x", "host:port"] {
            assert!(base(&at(server, false, "")).is_err(), "{server:?}");
        }
    }

    #[test]
    fn a_text_of_a_path_leads_nowhere_else() {
        assert_eq!(segment("payments/*"), "payments%2F%2A");
        assert_eq!(segment("../x?y#z"), "..%2Fx%3Fy%23z");
        assert_eq!(query(&[("name", "a&b=c"), ("selector", ""), ("x", "1")]), "?name=a%26b%3Dc&x=1");
        assert_eq!(query(&[("selector", "")]), "");
    }
}
