//! Asks an issuer: what it says of itself, its keys, and the token for a code.

use std::sync::Arc;
use std::time::Duration;

use baton_hooks::Secret;
use jiff::{SignedDuration, Timestamp};
use reqwest::{Certificate, Client, RequestBuilder};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;

use super::identity::{self, Parts};
use super::signature::Keys;
use super::{Provider, handshake};
use crate::auth::token::TokenError;
use crate::caller::Caller;
use crate::error::{Code, Error};

/// How long an issuer may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Largest answer.
const LARGEST: usize = 1 << 20;
/// How long what an issuer says of itself is believed.
const BELIEVED: SignedDuration = SignedDuration::from_hours(1);
/// Keys are not asked for again before this, whatever tokens come.
const AGAIN: SignedDuration = SignedDuration::from_secs(30);

/// What is known of the one issuer there is.
#[derive(Default)]
pub(crate) struct Issuer {
    held: Mutex<Option<Held>>,
}

#[derive(Clone)]
struct Held {
    provider: Provider,
    asked: Timestamp,
    client: Client,
    metadata: Arc<Metadata>,
    keys: Arc<Keys>,
}

/// What an issuer says of itself.
#[derive(Debug, Clone, Deserialize)]
struct Metadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: Option<String>,
}

// === impl Issuer ===

impl Issuer {
    /// Whom a token makes known.
    ///
    /// # Errors
    /// Why nobody.
    pub(crate) async fn identify(
        &self,
        provider: &Provider,
        token: &str,
        scopes: &[String],
        nonce: Option<&str>,
        now: Timestamp,
    ) -> Result<Caller, TokenError> {
        let parts = Parts::of(token)?;
        let mut held = self.known(provider, now).await.map_err(|_| TokenError::Unreachable)?;
        if !parts.is_signed(&held.keys) && now.duration_since(held.asked) >= AGAIN {
            // It may have changed its keys since.
            held = self.anew(provider, now).await.map_err(|_| TokenError::Unreachable)?;
        }
        match parts.is_signed(&held.keys) {
            true => identity::of(provider, token, &parts, scopes, nonce, now),
            false => Err(TokenError::Signature),
        }
    }

    /// Where people sign in.
    ///
    /// # Errors
    /// The issuer cannot be asked.
    pub(crate) async fn entrance(&self, provider: &Provider, now: Timestamp) -> Result<String, Error> {
        Ok(self.known(provider, now).await?.metadata.authorization_endpoint.clone())
    }

    /// The token for a code.
    ///
    /// # Errors
    /// The issuer cannot be asked, or gives none.
    pub(crate) async fn exchange(
        &self,
        provider: &Provider,
        url: &str,
        code: &str,
        verifier: &str,
        now: Timestamp,
    ) -> Result<Secret, Error> {
        let held = self.known(provider, now).await?;
        let callback = handshake::callback(url);
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &callback),
            ("client_id", &provider.client),
            ("code_verifier", verifier),
        ];
        if let Some(secret) = &provider.secret {
            form.push(("client_secret", secret.expose()));
        }
        let tokens: Tokens = read(held.client.post(&held.metadata.token_endpoint).form(&form)).await?;
        tokens.id_token.map(Secret::new).ok_or_else(|| trouble("it has given no id_token"))
    }

    async fn known(&self, provider: &Provider, now: Timestamp) -> Result<Held, Error> {
        let mut held = self.held.lock().await;
        let fresh = |held: &&Held| held.provider == *provider && now.duration_since(held.asked) < BELIEVED;
        if let Some(held) = held.as_ref().filter(fresh) {
            return Ok(held.clone());
        }
        match ask(provider, now).await {
            Ok(news) => Ok(held.insert(news).clone()),
            // Keys of before are better than nobody being let in while the issuer is away.
            Err(error) => held.clone().filter(|held| held.provider == *provider).ok_or(error),
        }
    }

    async fn anew(&self, provider: &Provider, now: Timestamp) -> Result<Held, Error> {
        let mut held = self.held.lock().await;
        if let Some(held) = held.as_ref().filter(|held| now.duration_since(held.asked) < AGAIN) {
            return Ok(held.clone());
        }
        Ok(held.insert(ask(provider, now).await?).clone())
    }
}

async fn ask(provider: &Provider, now: Timestamp) -> Result<Held, Error> {
    let client = client(provider)?;
    let address = format!("{}/.well-known/openid-configuration", provider.issuer.trim_end_matches('/'));
    let metadata: Metadata = read(client.get(address)).await?;
    if metadata.issuer != provider.issuer {
        return Err(trouble(&format!("it calls itself {:?}, and oidc.config does not", metadata.issuer)));
    }
    let scheme = provider.issuer.split_once("://").map_or("", |(scheme, _)| scheme);
    let Metadata { authorization_endpoint, token_endpoint, jwks_uri, .. } = &metadata;
    let allowed: &[&str] = if scheme == "http" { &["https://", "http://"] } else { &["https://"] };
    for address in [authorization_endpoint, token_endpoint, jwks_uri] {
        if !allowed.iter().any(|scheme| address.starts_with(scheme)) {
            return Err(trouble("it names an address that is not https"));
        }
    }
    let keys = bounded(client.get(&metadata.jwks_uri)).await?;
    let keys = Keys::read(&keys).ok_or_else(|| trouble("its keys cannot be read"))?;
    let (provider, metadata) = (provider.clone(), Arc::new(metadata));
    Ok(Held { provider, asked: now, client, metadata, keys: Arc::new(keys) })
}

fn client(provider: &Provider) -> Result<Client, Error> {
    // Whoever installs one first decides; all that matters is that there is one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(PATIENCE);
    if let Some(pem) = &provider.root_ca {
        let authorities = Certificate::from_pem_bundle(pem.as_bytes());
        builder = builder.tls_certs_merge(authorities.map_err(|_| trouble("rootCA cannot be read"))?);
    }
    builder.build().map_err(|_| trouble("no HTTP client can be made"))
}

async fn read<T: DeserializeOwned>(request: RequestBuilder) -> Result<T, Error> {
    serde_json::from_slice(&bounded(request).await?).map_err(|_| trouble("its answer cannot be read"))
}

/// The answer, as far as there is room for it. What is wrong is told without what was sent.
async fn bounded(request: RequestBuilder) -> Result<Vec<u8>, Error> {
    let sent = request.send().await.map_err(|error| trouble(&error.without_url().to_string()))?;
    if !sent.status().is_success() {
        return Err(trouble(&format!("it has answered {}", sent.status())));
    }
    let (mut answer, mut body) = (sent, Vec::new());
    while let Some(part) = answer.chunk().await.map_err(|error| trouble(&error.without_url().to_string()))? {
        if body.len() + part.len() > LARGEST {
            return Err(trouble("its answer is too large"));
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}

fn trouble(why: &str) -> Error {
    Error::new(Code::Unavailable, format!("the issuer of oidc.config cannot be asked: {why}"))
}
