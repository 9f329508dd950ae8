//! HTTP clients, one for each way to trust a host.

use std::collections::HashMap;
use std::fs;

use parking_lot::Mutex;
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Certificate, Client, NoProxy, Url};

use crate::error::ScmError;
use crate::settings::{Proxy, Settings};

const USER_AGENT: &str = concat!("baton/", env!("CARGO_PKG_VERSION"));
const MAX_REDIRECTS: usize = 5;
const MAX_CLIENTS: usize = 32;

/// Whose certificates count.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Trust {
    /// No certificate is looked at.
    pub(crate) insecure: bool,
    /// PEM: only these authorities count; none leaves it to the system.
    pub(crate) authorities: Option<String>,
}

pub(super) struct Clients {
    settings: Settings,
    built: Mutex<HashMap<Trust, Client>>,
}

impl Clients {
    pub(super) fn new(settings: &Settings) -> Result<Clients, ScmError> {
        // reqwest panics without a provider. The process may have chosen one already: then that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let clients = Clients { settings: settings.clone(), built: Mutex::default() };
        // Wrong settings show here and not at the first request.
        clients.get(&Trust::default())?;
        Ok(clients)
    }

    pub(super) fn get(&self, trust: &Trust) -> Result<Client, ScmError> {
        if let Some(client) = self.built.lock().get(trust) {
            return Ok(client.clone());
        }
        let client = self.build(trust)?;
        let mut built = self.built.lock();
        if built.len() >= MAX_CLIENTS {
            built.clear();
        }
        built.insert(trust.clone(), client.clone());
        Ok(client)
    }

    fn build(&self, trust: &Trust) -> Result<Client, ScmError> {
        let mut builder =
            Client::builder()
                .user_agent(USER_AGENT)
                .connect_timeout(self.settings.connect_timeout)
                .timeout(self.settings.timeout)
                .redirect(Policy::custom(|attempt| {
                    if may_follow(&attempt) { attempt.follow() } else { attempt.stop() }
                }))
                .referer(false)
                .tls_danger_accept_invalid_certs(trust.insecure);
        match &self.settings.proxy {
            Proxy::Environment => {}
            Proxy::Direct => builder = builder.no_proxy(),
            Proxy::Url { url, no_proxy } => {
                let proxy = reqwest::Proxy::all(url)
                    .map_err(|_| ScmError::invalid("the URL of the proxy cannot be used"))?;
                builder = builder.proxy(proxy.no_proxy(NoProxy::from_string(no_proxy)));
            }
        }
        if let Some(pem) = &trust.authorities {
            let authorities = Certificate::from_pem_bundle(pem.as_bytes())
                .ok()
                .filter(|list| !list.is_empty())
                .ok_or_else(|| {
                    ScmError::invalid("the certificate authorities are not certificates in PEM")
                })?;
            builder = builder.tls_certs_only(authorities);
        }
        builder.build().map_err(|error| ScmError::invalid(format!("no client can be made: {error}")))
    }
}

impl Trust {
    /// The authorities of a generator and those of the settings together.
    pub(crate) fn of(
        settings: &Settings,
        insecure: bool,
        authorities: Option<String>,
    ) -> Result<Trust, ScmError> {
        let Some(path) = &settings.root_ca else { return Ok(Trust { insecure, authorities }) };
        let root = fs::read_to_string(path).map_err(|error| {
            ScmError::invalid(format!(
                "the certificate authorities in {} cannot be read: {error}",
                path.display()
            ))
        })?;
        Ok(Trust { insecure, authorities: Some(format!("{}\n{root}", authorities.unwrap_or_default())) })
    }
}

/// Credentials go where they were meant to go: to the host asked, by TLS if it was asked by TLS.
fn may_follow(attempt: &Attempt<'_>) -> bool {
    attempt.previous().len() <= MAX_REDIRECTS
        && attempt.previous().last().is_some_and(|from| is_same_host(from, attempt.url()))
}

fn is_same_host(from: &Url, to: &Url) -> bool {
    let upgrade =
        from.scheme() == "http" && from.port().is_none() && to.scheme() == "https" && to.port().is_none();
    from.host() == to.host()
        && to.username().is_empty()
        && (upgrade
            || from.scheme() == to.scheme() && from.port_or_known_default() == to.port_or_known_default())
}

/// Reads the URL of an API.
pub(crate) fn base(text: &str) -> Result<Url, ScmError> {
    let wrong = |why: &str| ScmError::invalid(format!("the URL of the API {why}"));
    let mut url = Url::parse(text).map_err(|error| wrong(&format!("cannot be read: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(wrong("does not begin with https:// or http://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("must not hold a user or password"));
    }
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}
