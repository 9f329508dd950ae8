//! Signing in as a GitHub App.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use parking_lot::Mutex;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::Deserialize;
use serde_json::json;

use crate::error::{Kind, ScmError};
use crate::http::{Api, Auth, Item, link_page, numbered};
use crate::secret::Secret;

/// A GitHub App as repository credentials describe it.
#[derive(Debug, Clone)]
pub struct GithubApp {
    /// Number of the app.
    pub id: i64,
    /// Number of its installation; 0 to look it up by organisation.
    pub installation_id: i64,
    /// URL of the API of an enterprise server; empty for GitHub itself.
    pub enterprise_base_url: String,
    /// Its private key in PEM.
    pub private_key: Secret,
}

/// How long what was learnt about installations holds.
const INSTALLATION_LIFETIME: Duration = Duration::from_secs(60 * 60);
/// How long before its end a token is no longer used.
const TOKEN_MARGIN: Duration = Duration::from_secs(60);
const MAX_REMEMBERED: usize = 1_000;

impl GithubApp {
    /// Reads the data of repository credentials.
    ///
    /// # Errors
    /// Without a private key they are not those of an app; a number that is none is named.
    pub fn read(data: &BTreeMap<String, Vec<u8>>) -> Result<GithubApp, String> {
        let text = |key: &str| match data.get(key).map(|value| std::str::from_utf8(value)) {
            None => Ok(String::new()),
            Some(Ok(text)) => Ok(text.to_owned()),
            Some(Err(_)) => Err(format!("{key} is not text")),
        };
        let number = |key: &str| match text(key)?.trim() {
            "" => Ok(0),
            digits => digits.parse::<i64>().map_err(|_| format!("{key} is not a number")),
        };
        let private_key = text("githubAppPrivateKey")?;
        if private_key.is_empty() {
            return Err("no github app found: githubAppPrivateKey is empty".into());
        }
        Ok(GithubApp {
            id: number("githubAppID")?,
            installation_id: number("githubAppInstallationID")?,
            enterprise_base_url: text("githubAppEnterpriseBaseUrl")?,
            private_key: Secret::new(private_key),
        })
    }
}

/// Installations and tokens in use.
#[derive(Default)]
pub(crate) struct Installations {
    numbers: Mutex<HashMap<String, (i64, Timestamp)>>,
    tokens: Mutex<HashMap<String, (Secret, Timestamp)>>,
}

#[derive(Deserialize)]
struct Installation {
    id: i64,
    account: Option<Account>,
}

impl Item for Installation {
    fn identity(&self) -> String {
        self.id.to_string()
    }
}

#[derive(Deserialize)]
struct Account {
    login: Option<String>,
}

#[derive(Deserialize)]
struct Token {
    token: String,
    expires_at: Timestamp,
}

impl Installations {
    /// The API as the app's installation in an organisation. What goes wrong on the way is a matter of signing
    /// in and never tells that a repository does not exist.
    pub(crate) async fn sign_in<'a>(
        &self,
        api: Api<'a>,
        app: &GithubApp,
        organization: &str,
    ) -> Result<Api<'a>, ScmError> {
        let signed_in = async {
            let proof = Auth::bearer(&assertion(app, Timestamp::now())?)?;
            let prover = format!("{}/{}/{}", api.authority(), app.id, fingerprint(&app.private_key));
            let api = api.with_auth(proof.owned_by(&prover));
            let number = match app.installation_id {
                0 => self.number(&api, app, organization).await?,
                number if number > 0 => number,
                _ => return Err(ScmError::invalid("installation ID is required for github")),
            };
            let owner = format!("{}/{}/{number}", api.authority(), app.id);
            let token = self.token(&api, app, &owner, number).await?;
            Ok(api.with_auth(Auth::bearer(&token)?.owned_by(&owner)))
        };
        signed_in.await.map_err(|error| match error.kind() {
            Kind::NotFound => error.with_kind(Kind::Unauthorized),
            _ => error,
        })
    }

    async fn number(&self, api: &Api<'_>, app: &GithubApp, organization: &str) -> Result<i64, ScmError> {
        let key = |login: &str| format!("{}/{}/{}", api.authority(), app.id, login.to_lowercase());
        let wanted = key(organization);
        let now = Timestamp::now();
        if let Some((number, until)) = self.numbers.lock().get(&wanted)
            && *until > now
        {
            return Ok(*number);
        }
        let list: Vec<Installation> = numbered(api, "app/installations", &[("per_page", "100")], link_page)
            .await
            .map_err(|error| error.context("failed to list installations"))?;
        let mut numbers = self.numbers.lock();
        if numbers.len() + list.len() > MAX_REMEMBERED {
            numbers.clear();
        }
        let mut found = None;
        for installation in list {
            let Some(login) = installation.account.and_then(|account| account.login) else { continue };
            let login = key(&login);
            if login == wanted {
                found = Some(installation.id);
            }
            numbers.insert(login, (installation.id, now + INSTALLATION_LIFETIME));
        }
        found.ok_or_else(|| {
            let organization = organization.to_lowercase();
            ScmError::new(Kind::Unauthorized, format!("installation not found for org: {organization}"))
        })
    }

    async fn token(
        &self,
        api: &Api<'_>,
        app: &GithubApp,
        owner: &str,
        number: i64,
    ) -> Result<Secret, ScmError> {
        // Another key for the same app must prove itself: it may be somebody else's.
        let key = format!("{owner}/{}", fingerprint(&app.private_key));
        let now = Timestamp::now();
        if let Some((token, until)) = self.tokens.lock().get(&key)
            && *until > now
        {
            return Ok(token.clone());
        }
        let path = format!("app/installations/{number}/access_tokens");
        let answer = api.post(api.url::<&str, &str>(&path, &[]), &json!({})).await?;
        let token: Token = answer.json()?;
        let secret = Secret::new(token.token);
        let mut tokens = self.tokens.lock();
        tokens.retain(|_, (_, until)| *until > now);
        if tokens.len() < MAX_REMEMBERED {
            let until = token.expires_at.checked_sub(TOKEN_MARGIN).unwrap_or(now);
            tokens.insert(key, (secret.clone(), until));
        }
        Ok(secret)
    }
}

fn fingerprint(secret: &Secret) -> String {
    URL_SAFE_NO_PAD.encode(ring::digest::digest(&ring::digest::SHA256, secret.reveal().as_bytes()))
}

/// A JWT that proves to be the app. It begins a minute ago, as clocks differ, and ends soon.
fn assertion(app: &GithubApp, now: Timestamp) -> Result<Secret, ScmError> {
    let key = key_pair(app.private_key.reveal())?;
    let claims =
        json!({"iat": now.as_second() - 60, "exp": now.as_second() + 240, "iss": app.id.to_string()});
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","typ":"JWT"}"#);
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
        .map_err(|_| ScmError::invalid("the private key of the GitHub App cannot sign"))?;
    Ok(Secret::new(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))))
}

/// Reads the key GitHub hands out (PKCS#1) or the same in PKCS#8.
fn key_pair(pem: &str) -> Result<RsaKeyPair, ScmError> {
    let wrong = |why: &str| ScmError::invalid(format!("the private key of the GitHub App {why}"));
    let decode = |label: &str| {
        let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
        let (_, rest) = pem.split_once(&begin)?;
        let (body, _) = rest.split_once(&end)?;
        STANDARD.decode(body.split_whitespace().collect::<String>()).ok()
    };
    let key = match (decode("RSA PRIVATE KEY"), decode("PRIVATE KEY")) {
        (Some(der), _) => RsaKeyPair::from_der(&der),
        (None, Some(der)) => RsaKeyPair::from_pkcs8(&der),
        (None, None) => return Err(wrong("is not an RSA key in PEM")),
    };
    key.map_err(|error| wrong(&format!("is refused: {error}")))
}
