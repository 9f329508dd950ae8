//! Asks an issuer: what it says of itself, its keys, and the token for a code.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use baton_hooks::Secret;
use jiff::{SignedDuration, Timestamp};
use reqwest::{Certificate, Client, RequestBuilder};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;

use super::identity::{self, Parts};
use super::signature::Keys;
use super::{Provider, UserInfo, handshake};
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

/// How long what was given for a refresh token is given again to whoever asks with the same.
const SHARED: SignedDuration = SignedDuration::from_secs(60);
/// Most renewals that are remembered.
const MOST_RENEWALS: usize = 10_000;

/// What is known of the one issuer there is.
#[derive(Default)]
pub(crate) struct Issuer {
    held: Mutex<Option<Held>>,
    /// By a digest of what was given for them, with when they were first asked for.
    renewals: parking_lot::Mutex<HashMap<[u8; 32], (Timestamp, Renewal)>>,
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
    #[serde(default)]
    userinfo_endpoint: Option<String>,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: Option<String>,
    access_token: Option<String>,
    refresh_token: Option<String>,
}

/// What an issuer gives for a code, or for what prolongs a sign-in.
#[derive(Clone)]
pub(crate) struct Given {
    /// Who somebody is; none where the issuer says it once only.
    pub(crate) token: Option<Secret>,
    pub(crate) access: Option<Secret>,
    pub(crate) refresh: Option<Secret>,
}

/// One renewal, which all who ask for it at once share: many an issuer takes a refresh token once.
type Renewal = Arc<Mutex<Option<Result<Given, Error>>>>;

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
    ) -> Result<Given, Error> {
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
        Ok(tokens.into())
    }

    /// Newer tokens for what prolongs a sign-in. Whoever asks with the same within a minute is given the same.
    ///
    /// # Errors
    /// The issuer cannot be asked, or gives none.
    pub(crate) async fn renew(
        &self,
        provider: &Provider,
        refresh: &Secret,
        now: Timestamp,
    ) -> Result<Given, Error> {
        let renewal = self.renewal(refresh, now);
        let mut given = renewal.lock().await;
        if let Some(given) = given.as_ref() {
            return given.clone();
        }
        // That it gives none is remembered too: nobody makes us ask over and over.
        given.insert(self.renew_now(provider, refresh, now).await).clone()
    }

    async fn renew_now(&self, provider: &Provider, refresh: &Secret, now: Timestamp) -> Result<Given, Error> {
        let held = self.known(provider, now).await?;
        let mut form = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.expose()),
            ("client_id", &provider.client),
        ];
        if let Some(secret) = &provider.secret {
            form.push(("client_secret", secret.expose()));
        }
        let tokens: Tokens = read(held.client.post(&held.metadata.token_endpoint).form(&form)).await?;
        Ok(tokens.into())
    }

    /// The groups that the issuer tells of somebody who has let us ask.
    ///
    /// # Errors
    /// It cannot be asked, or speaks of somebody else.
    pub(crate) async fn groups(
        &self,
        provider: &Provider,
        info: &UserInfo,
        access: &Secret,
        subject: &str,
        scopes: &[String],
        now: Timestamp,
    ) -> Result<Vec<String>, Error> {
        let held = self.known(provider, now).await?;
        let own = info.path.as_ref().map(|path| format!("{}{path}", provider.issuer.trim_end_matches('/')));
        let address = own.or_else(|| held.metadata.userinfo_endpoint.clone());
        let address = address.ok_or_else(|| trouble("it names no userinfo_endpoint: set userInfoPath"))?;
        let told: Value = read(held.client.get(address).bearer_auth(access.expose())).await?;
        if told["sub"].as_str() != Some(subject) {
            return Err(trouble("its user info is of somebody else"));
        }
        Ok(identity::groups(&told, scopes))
    }

    fn renewal(&self, refresh: &Secret, now: Timestamp) -> Renewal {
        let digest: [u8; 32] = Sha256::digest(refresh.expose()).into();
        let mut renewals = self.renewals.lock();
        renewals.retain(|_, (begun, _)| now.duration_since(*begun) < SHARED);
        if renewals.len() >= MOST_RENEWALS {
            renewals.clear();
        }
        renewals.entry(digest).or_insert_with(|| (now, Renewal::default())).1.clone()
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

impl From<Tokens> for Given {
    fn from(tokens: Tokens) -> Given {
        let secret = |text: Option<String>| text.filter(|text| !text.is_empty()).map(Secret::new);
        Given {
            token: secret(tokens.id_token),
            access: secret(tokens.access_token),
            refresh: secret(tokens.refresh_token),
        }
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
    let info = metadata.userinfo_endpoint.iter();
    let allowed: &[&str] = if scheme == "http" { &["https://", "http://"] } else { &["https://"] };
    for address in [authorization_endpoint, token_endpoint, jwks_uri].into_iter().chain(info) {
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
