//! Reading repositories as a GitHub App: a signed statement of who asks is exchanged for a token that lasts an hour.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use parking_lot::Mutex;
use reqwest::{Client, Method, Response};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::access::{Access, GitHubApp};
use crate::error::SourceError;
use crate::secret::Secret;
use crate::web::{client, told};

/// Where the API is when a Secret does not say.
const PUBLIC_API: &str = "https://api.github.com";

/// A token is not used this shortly before it ends.
const MARGIN: Duration = Duration::from_secs(60);

/// Largest answer that is read.
const MAX_ANSWER: usize = 4 << 20;

/// Most pages of installations that are looked through.
const MAX_PAGES: usize = 100;

/// Most tokens that are remembered.
const MAX_TOKENS: usize = 1000;

/// Where one token is kept. Whoever asks for it holds the lock, so that others wait for the one answer.
type Place = Arc<tokio::sync::Mutex<Option<Token>>>;

/// The tokens of GitHub Apps, each asked for once while it lasts.
#[derive(Debug)]
pub(crate) struct GitHubApps {
    inherit_proxy: bool,
    tokens: Mutex<HashMap<Vec<u8>, Place>>,
}

#[derive(Debug, Clone)]
struct Token {
    text: Secret,
    until: Instant,
}

#[derive(Deserialize)]
struct Grant {
    token: String,
    expires_at: String,
}

#[derive(Deserialize)]
struct Installation {
    id: i64,
    account: Option<Account>,
}

#[derive(Deserialize)]
struct Account {
    login: Option<String>,
}

impl GitHubApps {
    /// No tokens yet. The proxy variables of this process are minded if `inherit_proxy`.
    pub(crate) fn new(inherit_proxy: bool) -> GitHubApps {
        GitHubApps { inherit_proxy, tokens: Mutex::default() }
    }

    /// A token that repositories are read with.
    pub(crate) async fn token(
        &self,
        repository: &str,
        access: &Access,
        app: &GitHubApp,
        patience: Duration,
    ) -> Result<Secret, SourceError> {
        let owner = if app.installation == 0 { owner(repository)? } else { String::new() };
        let mut identity = access.identity();
        identity.extend(owner.as_bytes());
        let place = self.place(identity);
        let mut token = place.lock().await;
        if let Some(known) = token.as_ref().filter(|token| token.until > Instant::now()) {
            return Ok(known.text.clone());
        }
        let asked =
            Exchange { repository, app, client: client(repository, access, patience, self.inherit_proxy)? };
        let fresh = asked.token(&owner).await?;
        *token = Some(fresh.clone());
        Ok(fresh.text)
    }

    fn place(&self, identity: Vec<u8>) -> Place {
        let mut tokens = self.tokens.lock();
        if tokens.len() >= MAX_TOKENS {
            tokens.retain(|_, place| Arc::strong_count(place) > 1);
        }
        tokens.entry(identity).or_default().clone()
    }
}

/// One exchange with the API.
struct Exchange<'a> {
    repository: &'a str,
    app: &'a GitHubApp,
    client: Client,
}

impl Exchange<'_> {
    async fn token(&self, owner: &str) -> Result<Token, SourceError> {
        let statement = statement(self.app, SystemTime::now()).map_err(|why| self.refused(why))?;
        let installation = match self.app.installation {
            0 => self.installation(&statement, owner).await?,
            known => known,
        };
        let url = format!("{}/app/installations/{installation}/access_tokens", self.base());
        let grant: Grant = self.ask(Method::POST, &url, &statement).await?.0;
        if grant.token.is_empty() || grant.token.chars().any(char::is_control) {
            return Err(self.network("the token it gave is none".to_owned()));
        }
        let ends: Timestamp = grant
            .expires_at
            .parse()
            .map_err(|_| self.network("the token it gave has no time to end".to_owned()))?;
        let lasts = ends.duration_since(Timestamp::now());
        let lasts = Duration::try_from(lasts).unwrap_or_default().saturating_sub(MARGIN);
        Ok(Token { text: Secret::new(grant.token), until: Instant::now() + lasts })
    }

    /// The installation of the app for a repository's owner.
    async fn installation(&self, statement: &Secret, owner: &str) -> Result<i64, SourceError> {
        let base = self.base();
        let mut next = Some(format!("{base}/app/installations?per_page=100"));
        for _ in 0..MAX_PAGES {
            let Some(url) = next else { break };
            let (page, link): (Vec<Installation>, _) = self.ask(Method::GET, &url, statement).await?;
            let is_owner = |installation: &&Installation| {
                let login = installation.account.as_ref().and_then(|account| account.login.as_deref());
                login.is_some_and(|login| login.eq_ignore_ascii_case(owner))
            };
            if let Some(found) = page.iter().find(is_owner) {
                return Ok(found.id);
            }
            // The statement of who asks goes to no other server.
            next = link.filter(|url| url.starts_with(&format!("{base}/")));
        }
        Err(self.refused(format!("the GitHub App {} is not installed for {owner:?}", self.app.app)))
    }

    fn base(&self) -> String {
        let given = self.app.base_url.trim_end_matches('/');
        if given.is_empty() { PUBLIC_API.to_owned() } else { given.to_owned() }
    }

    /// Asks the API; the answer, and the address of the next page.
    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        url: &str,
        statement: &Secret,
    ) -> Result<(T, Option<String>), SourceError> {
        let request = self.client.request(method, url).bearer_auth(statement.expose());
        let request = request.header("Accept", "application/vnd.github+json").header("User-Agent", "baton");
        let mut answer = request.send().await.map_err(|fault| self.network(told(&fault)))?;
        let status = answer.status();
        let next = next_page(&answer);
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|fault| self.network(told(&fault)))? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_ANSWER {
                return Err(self.network("its answer is too long".to_owned()));
            }
        }
        if status.is_client_error() {
            return Err(self.refused(format!("it answered {status}")));
        }
        if !status.is_success() {
            return Err(self.network(format!("it answered {status}")));
        }
        let answer = serde_json::from_slice(&body);
        answer
            .map(|answer| (answer, next))
            .map_err(|_| self.network("its answer is not understood".to_owned()))
    }

    fn network(&self, why: String) -> SourceError {
        let why = format!("GitHub's API at {} gave no token: {why}", crate::location::display(&self.base()));
        SourceError::Network { repository: self.repository.to_owned(), why }
    }

    fn refused(&self, why: String) -> SourceError {
        let why = format!("GitHub's API at {} gave no token: {why}", crate::location::display(&self.base()));
        SourceError::Unauthorized { repository: self.repository.to_owned(), why }
    }
}

/// The address a `Link` header gives for the next page.
fn next_page(answer: &Response) -> Option<String> {
    let links = answer.headers().get("link")?.to_str().ok()?;
    let next = links.split(',').find(|link| link.contains("rel=\"next\""))?;
    let (_, rest) = next.split_once('<')?;
    Some(rest.split_once('>')?.0.to_owned())
}

/// A JSON web token that says, for two minutes, that the app asks.
fn statement(app: &GitHubApp, now: SystemTime) -> Result<Secret, String> {
    let key = key(app.private_key.expose()).ok_or("the app's private key is no RSA key in PEM")?;
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let claims = serde_json::json!({
        // Clocks differ: GitHub refuses a statement made in its future.
        "iat": now.saturating_sub(30),
        "exp": now + 120,
        "iss": app.app.to_string(),
    });
    let encode = |part: &str| URL_SAFE_NO_PAD.encode(part);
    let signed = format!("{}.{}", encode(r#"{"alg":"RS256","typ":"JWT"}"#), encode(&claims.to_string()));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
        .map_err(|_| "the app's private key cannot sign")?;
    Ok(Secret::new(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))))
}

/// Reads a private key in either of the two forms PEM files have.
fn key(pem: &str) -> Option<RsaKeyPair> {
    let begin = pem.find("-----BEGIN ")?;
    let (label, rest) = pem[begin + 11..].split_once("-----")?;
    let (body, _) = rest.split_once("-----END ")?;
    let digits: String = body.chars().filter(|c| !c.is_whitespace()).collect();
    let der = STANDARD.decode(digits).ok()?;
    match label {
        "RSA PRIVATE KEY" => RsaKeyPair::from_der(&der).ok(),
        "PRIVATE KEY" => RsaKeyPair::from_pkcs8(&der).ok(),
        _ => None,
    }
}

/// The owner in a repository's URL: the first part of its path.
fn owner(repository: &str) -> Result<String, SourceError> {
    let path = match repository.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map(|(_, path)| path),
        None => repository.split_once(':').map(|(_, path)| path),
    };
    let owner = path.and_then(|path| path.trim_start_matches('/').split('/').next());
    owner.filter(|owner| !owner.is_empty()).map(str::to_owned).ok_or_else(|| SourceError::Unauthorized {
        repository: repository.to_owned(),
        why: "its URL names no owner to find the GitHub App's installation by".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_is_the_first_part_of_the_path() {
        for (url, expected) in [
            ("https://github.com/acme/repo", "acme"),
            ("https://ghe.example.com:8443/acme/repo.git", "acme"),
            ("git@github.com:acme/repo.git", "acme"),
            ("ssh://git@github.com/acme/repo", "acme"),
        ] {
            assert_eq!(owner(url).expect(url), expected);
        }
        assert!(owner("https://github.com").is_err());
        assert!(owner("https://github.com/").is_err());
    }

    #[test]
    fn what_is_no_key_signs_nothing() {
        for pem in
            ["", "nonsense", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "-----BEGIN "]
        {
            let app =
                GitHubApp { app: 1, installation: 1, private_key: Secret::new(pem), base_url: String::new() };
            assert!(statement(&app, SystemTime::now()).is_err(), "{pem:?}");
        }
    }
}
