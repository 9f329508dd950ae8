//! Requests to a server, with the token of a session.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Method, StatusCode, Url};
use serde_json::Value;

use super::file::Context;
use crate::failure::Failure;

const USER_AGENT: &str = concat!("baton/", env!("CARGO_PKG_VERSION"));
const CONNECT: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(60);
/// More than this is no answer to any of these requests.
const MOST_BYTES: usize = 64 << 20;

/// A server that is spoken to.
pub(crate) struct Remote {
    client: Client,
    base: Url,
    token: Option<String>,
}

impl Remote {
    /// Nothing is asked yet.
    pub(crate) fn new(context: &Context, token: Option<&str>) -> Result<Remote, Failure> {
        crate::crypto::install();
        let base = base(context)?;
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
        let client =
            builder.build().map_err(|error| Failure::failed(format!("no client can be made: {error}")))?;
        Ok(Remote { client, base, token: token.map(str::to_owned) })
    }

    /// What the server says.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.ask(Method::GET, path, None).await
    }

    /// What the server says to something.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.ask(Method::POST, path, Some(body)).await
    }

    /// What the server says when something is to go.
    pub(crate) async fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.ask(Method::DELETE, path, None).await
    }

    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
        let url = self.base.join(path).map_err(|error| Failure::usage(format!("{path}: {error}")))?;
        // The header is asked of every request that changes something, with a body or without.
        let mut request = self.client.request(method, url).header("content-type", "application/json");
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        let mut answer = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = answer.status();
        let mut text = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(|error| self.unreachable(&error))? {
            if text.len() + part.len() > MOST_BYTES {
                return Err(Failure::api(format!("the answer of {} is far too long", self.host())));
            }
            text.extend_from_slice(&part);
        }
        let value: Option<Value> = serde_json::from_slice(&text).ok();
        if status.is_success() {
            return value.ok_or_else(|| self.no_such_server());
        }
        Err(self.refused(status, value.as_ref()))
    }

    fn host(&self) -> &str {
        self.base.host_str().unwrap_or_default()
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
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
            () if cause.contains("Connection refused") => "; nothing listens there",
            () => "",
        };
        Failure::api(format!("cannot reach {}: {cause}{advice}", self.authority()))
    }

    fn authority(&self) -> String {
        let port = self.base.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}", self.base.scheme(), self.host())
    }

    fn no_such_server(&self) -> Failure {
        Failure::api(format!("{} does not answer as a server of Baton or Argo CD does", self.authority()))
    }

    fn refused(&self, status: StatusCode, body: Option<&Value>) -> Failure {
        let message = body.and_then(|body| body["message"].as_str().or(body["error"].as_str()));
        match (status, message) {
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
        }
    }
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
        let (name, user) = (String::new(), String::new());
        let (server, root) = (server.to_owned(), root.to_owned());
        Context { name, server, user, plain, insecure: false, authority: None, root }
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
}
