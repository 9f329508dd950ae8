//! Talking HTTP to whom a repository's access is for.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use reqwest::header::{AUTHORIZATION, HeaderValue, LOCATION};
use reqwest::{Certificate, Client, Identity, NoProxy, Proxy, Response, StatusCode, Url};

use crate::access::{Access, Credentials};
use crate::error::SourceError;
use crate::location::display;

/// Most times an address may lead to another.
const MAX_REDIRECTS: usize = 5;

/// Something to be fetched for a repository.
pub(crate) struct Download<'a> {
    pub(crate) access: &'a Access,
    /// The repository's own address: credentials go nowhere else.
    pub(crate) home: &'a str,
    pub(crate) most: u64,
    pub(crate) patience: Duration,
    pub(crate) inherit_proxy: bool,
}

impl Download<'_> {
    /// The content of an address, which may lead to others.
    pub(crate) async fn get(&self, address: &str) -> Result<Bytes, SourceError> {
        let client = client(&display(self.home), self.access, self.patience, self.inherit_proxy)?;
        let mut address = self.parsed(address)?;
        for _ in 0..=MAX_REDIRECTS {
            let mut request = client.get(address.clone());
            if self.is_home(&address)
                && let Some(credentials) = authorization(self.access)
            {
                request = request.header(AUTHORIZATION, credentials);
            }
            let answer = request.send().await.map_err(|fault| self.network(told(&fault)))?;
            if !answer.status().is_redirection() {
                return self.body(answer).await;
            }
            let target = answer.headers().get(LOCATION).and_then(|target| target.to_str().ok());
            let next = target.and_then(|target| address.join(target).ok());
            let next = next.ok_or_else(|| self.network("it leads to no address".to_owned()))?;
            if address.scheme() == "https" && next.scheme() != "https" {
                return Err(self.network("it leads from https to what is not".to_owned()));
            }
            address = self.parsed(next.as_str())?;
        }
        Err(self.network("it leads from address to address".to_owned()))
    }

    async fn body(&self, mut answer: Response) -> Result<Bytes, SourceError> {
        let repository = display(self.home);
        match answer.status() {
            status if status.is_success() => {}
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                return Err(SourceError::Unauthorized { repository, why: format!("it answered {status}") });
            }
            status => return Err(self.network(format!("it answered {status}"))),
        }
        let mut body = BytesMut::new();
        while let Some(chunk) = answer.chunk().await.map_err(|fault| self.network(told(&fault)))? {
            body.extend_from_slice(&chunk);
            if body.len() as u64 > self.most {
                let why = format!("it sends more than {} bytes", self.most);
                return Err(SourceError::Limit { repository, why });
            }
        }
        Ok(body.freeze())
    }

    fn parsed(&self, address: &str) -> Result<Url, SourceError> {
        let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "https" | "http"));
        url.filter(Url::has_host).ok_or_else(|| SourceError::Url {
            url: display(address),
            why: "it is no address that begins with https:// or http://".to_owned(),
        })
    }

    fn is_home(&self, address: &Url) -> bool {
        Url::parse(self.home).is_ok_and(|home| home.origin() == address.origin())
    }

    fn network(&self, why: String) -> SourceError {
        SourceError::Network { repository: display(self.home), why }
    }
}

/// What tells who asks, marked so that it is shown nowhere.
fn authorization(access: &Access) -> Option<HeaderValue> {
    let text = match &access.credentials {
        Credentials::Basic { username, password, .. } => {
            format!("Basic {}", STANDARD.encode(format!("{username}:{}", password.expose())))
        }
        Credentials::Bearer(token) => format!("Bearer {}", token.expose()),
        Credentials::None | Credentials::Ssh(_) | Credentials::GitHubApp(_) => return None,
    };
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// What went wrong, from the outermost to the innermost cause, without the address.
pub(crate) fn told(fault: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(fault);
    while let Some(fault) = cause {
        text = fault.to_string();
        cause = fault.source();
    }
    if text.is_empty() { "it cannot be reached".to_owned() } else { text }
}

/// A client with the access's certificates and proxy, which follows no redirection.
pub(crate) fn client(
    repository: &str,
    access: &Access,
    patience: Duration,
    inherit_proxy: bool,
) -> Result<Client, SourceError> {
    // Whoever installs one first decides; all that matters is that there is one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let refuse = |why: &str| SourceError::Local { repository: repository.to_owned(), why: why.to_owned() };
    let mut builder = Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(patience);
    builder = builder.tls_danger_accept_invalid_certs(access.insecure);
    if let Some(pem) = &access.authorities {
        let certificates = Certificate::from_pem_bundle(pem.as_bytes())
            .map_err(|_| refuse("the certificates to be trusted cannot be read"))?;
        builder = builder.tls_certs_merge(certificates);
    }
    if let Some((certificate, key)) = &access.client_certificate {
        let both = format!("{}\n{}", certificate.expose(), key.expose());
        let identity = Identity::from_pem(both.as_bytes())
            .map_err(|_| refuse("the client certificate and its key cannot be read"))?;
        builder = builder.identity(identity);
    }
    if !inherit_proxy {
        builder = builder.no_proxy();
    }
    if let Some(proxy) = &access.proxy {
        let proxy_url =
            Proxy::all(proxy.url.expose()).map_err(|_| refuse("the proxy's URL cannot be read"))?;
        builder = builder.proxy(proxy_url.no_proxy(NoProxy::from_string(&proxy.except)));
    }
    builder.build().map_err(|_| refuse("no HTTP client can be made"))
}
