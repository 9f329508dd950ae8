//! The issuer: found by its own description, asked for codes and tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use reqwest::{Client, Url};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::super::file::Context;
use super::super::remote;
use crate::failure::Failure;
use crate::screen::clean;

/// More than this is no answer of an issuer.
const MOST_BYTES: usize = 1 << 20;
/// What is asked for where the server does not say.
const SCOPES: [&str; 4] = ["openid", "profile", "email", "groups"];
/// What makes the issuer give something to renew a session with, where it offers that.
const OFFLINE: &str = "offline_access";
/// How Argo CD's command line is known to the issuer that Argo CD brings along.
const BUNDLED_CLIENT: &str = "argo-cd-cli";

/// What a server says about its issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Provider {
    pub(super) issuer: String,
    pub(super) client: String,
    scopes: Vec<String>,
}

/// An issuer, and where it is asked.
pub(super) struct Issuer {
    pub(super) provider: Provider,
    client: Client,
    authorization: Url,
    token: Url,
    /// Whether it gives what a session is renewed with to who asks.
    renews: bool,
}

/// A sign-in that was begun.
pub(super) struct Begun {
    /// The page that a person is sent to.
    pub(super) location: String,
    pub(super) state: String,
    pub(super) nonce: String,
    verifier: String,
    back: String,
}

/// What the issuer gives.
pub(crate) struct Tokens {
    /// Shows the server who asks.
    pub(crate) id: String,
    /// What a new one is given for.
    pub(crate) refresh: Option<String>,
}

// === impl Provider ===

impl Provider {
    /// # Errors
    /// The server has no issuer.
    pub(super) fn read(settings: &Value, context: &Context) -> Result<Provider, Failure> {
        let oidc = &settings["oidcConfig"];
        let text = |field: &str| oidc[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        if let Some(issuer) = text("issuer") {
            let client = text("cliClientID").or_else(|| text("clientID"));
            let client = client.ok_or_else(|| {
                Failure::api(format!("{} names an issuer and no client: see its oidc.config", context.server))
            })?;
            let scopes = oidc["scopes"].as_array().into_iter().flatten();
            let mut scopes: Vec<String> =
                scopes.filter_map(|scope| scope.as_str().map(str::to_owned)).collect();
            if scopes.is_empty() {
                scopes = SCOPES.map(str::to_owned).into();
            }
            return Ok(Provider { issuer, client, scopes });
        }
        if settings["dexConfig"]["connectors"].as_array().is_some_and(|all| !all.is_empty()) {
            let scheme = if context.plain { "http" } else { "https" };
            let root = context.root.trim_matches('/');
            let root = if root.is_empty() { String::new() } else { format!("/{root}") };
            let issuer = format!("{scheme}://{}{root}/api/dex", context.server);
            let scopes = SCOPES.iter().map(|scope| (*scope).to_owned()).collect();
            return Ok(Provider { issuer, client: BUNDLED_CLIENT.to_owned(), scopes });
        }
        Err(Failure::failed(format!(
            "{} has no issuer to sign in at: use --username, or have oidc.config set in its argocd-cm",
            context.server
        )))
    }
}

// === impl Issuer ===

impl Issuer {
    /// Reads what the issuer says of itself.
    pub(super) async fn find(provider: Provider, context: &Context) -> Result<Issuer, Failure> {
        let wrong = |why: String| Failure::api(format!("the issuer {}: {why}", provider.issuer));
        let issuer = address(&provider.issuer).map_err(&wrong)?;
        // What a person says of the server's certificate holds for that server alone.
        let own = context.server.rsplit_once(':').map_or(context.server.as_str(), |(host, _)| host);
        let client = match issuer.host_str() == Some(own) {
            true => remote::client(context)?,
            false => remote::client(&Context::default())?,
        };
        let described = format!("{}/.well-known/openid-configuration", provider.issuer.trim_end_matches('/'));
        let answer = client.get(described).send().await.map_err(|error| wrong(cause(&error)))?;
        let said = read(answer).await.map_err(&wrong)?;
        let named = said["issuer"].as_str().unwrap_or_default();
        if named.trim_end_matches('/') != provider.issuer.trim_end_matches('/') {
            return Err(wrong(format!("it calls itself {:?}", clean(named))));
        }
        let endpoint = |field: &str| {
            let text = said[field].as_str().ok_or_else(|| wrong(format!("it does not tell its {field}")))?;
            address(text).map_err(|why| wrong(format!("its {field} cannot be used: {why}")))
        };
        let (authorization, token) = (endpoint("authorization_endpoint")?, endpoint("token_endpoint")?);
        let mut offered = said["scopes_supported"].as_array().into_iter().flatten();
        let renews = offered.any(|scope| scope == OFFLINE);
        Ok(Issuer { provider, client, authorization, token, renews })
    }

    /// Begins a sign-in that comes back to an address.
    pub(super) fn begin(&self, back: &str) -> Begun {
        let random = || URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
        let (state, nonce, verifier) = (random(), random(), random());
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        let mut scopes = self.provider.scopes.clone();
        if self.renews && !scopes.iter().any(|scope| scope == OFFLINE) {
            scopes.push(OFFLINE.to_owned());
        }
        let mut location = self.authorization.clone();
        location.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", &self.provider.client),
            ("redirect_uri", back),
            ("scope", &scopes.join(" ")),
            ("state", &state),
            ("nonce", &nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ]);
        Begun { location: location.into(), state, nonce, verifier, back: back.to_owned() }
    }

    /// The tokens for a code.
    pub(super) async fn exchange(&self, begun: &Begun, code: &str) -> Result<Tokens, Failure> {
        self.tokens(&[
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &begun.back),
            ("client_id", &self.provider.client),
            ("code_verifier", &begun.verifier),
        ])
        .await
    }

    /// The tokens of a session that goes on.
    pub(super) async fn refresh(&self, token: &str) -> Result<Tokens, Failure> {
        let client = &self.provider.client;
        self.tokens(&[("grant_type", "refresh_token"), ("refresh_token", token), ("client_id", client)]).await
    }

    /// Whether a token is the answer to what was asked. Its signature is judged by the server.
    pub(super) fn check(&self, claims: &Value, nonce: &str, now: Timestamp) -> Result<(), Failure> {
        let wrong = |why: &str| Err(Failure::api(format!("the token of {} {why}", self.provider.issuer)));
        let audience = &claims["aud"];
        let is_ours = |one: &Value| one == self.provider.client.as_str();
        if claims["iss"].as_str() != Some(&self.provider.issuer) {
            return wrong("is of another issuer");
        }
        if !(is_ours(audience) || audience.as_array().is_some_and(|all| all.iter().any(is_ours))) {
            return wrong("is for another client");
        }
        if claims["nonce"] != nonce {
            return wrong("belongs to another sign-in");
        }
        if claims["exp"].as_f64().is_none_or(|end| end as i64 <= now.as_second()) {
            return wrong("is over already: is the clock of this machine right?");
        }
        Ok(())
    }

    async fn tokens(&self, form: &[(&str, &str)]) -> Result<Tokens, Failure> {
        let wrong =
            |why: String| Failure::api(format!("the issuer {} gives no token: {why}", self.provider.issuer));
        let request = self.client.post(self.token.clone()).form(form);
        let answer = request.send().await.map_err(|error| wrong(cause(&error)))?;
        let said = read(answer).await.map_err(wrong)?;
        let text = |field: &str| said[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let id = text("id_token").ok_or_else(|| wrong("it has sent no id_token".to_owned()))?;
        Ok(Tokens { id, refresh: text("refresh_token") })
    }
}

/// An address that secrets may be sent to: over TLS, or on this machine.
fn address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    let here = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    match url.scheme() {
        "https" => Ok(url),
        "http" if here => Ok(url),
        _ => Err("it is not spoken to over TLS".to_owned()),
    }
}

async fn read(mut answer: reqwest::Response) -> Result<Value, String> {
    let status = answer.status();
    let mut text = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(|error| cause(&error))? {
        if text.len() + part.len() > MOST_BYTES {
            return Err("its answer is far too long".to_owned());
        }
        text.extend_from_slice(&part);
    }
    let said: Option<Value> = serde_json::from_slice(&text).ok();
    match (status.is_success(), said) {
        (true, Some(said)) => Ok(said),
        (true, None) => Err("its answer is no JSON".to_owned()),
        (false, said) => {
            let word = said.as_ref().and_then(|said| said["error"].as_str()).map(clean);
            Err(word.unwrap_or_else(|| format!("it answers with {status}")))
        }
    }
}

fn cause(error: &reqwest::Error) -> String {
    let error: &dyn std::error::Error = error;
    std::iter::successors(Some(error), |error| error.source()).last().unwrap_or(error).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_issuer_of_a_server_is_the_one_it_names_or_the_one_it_brings() {
        let at =
            Context { server: "cd.example.com".to_owned(), root: "/cd".to_owned(), ..Context::default() };
        let named = json!({"oidcConfig": {"issuer": "https://id.example.com", "clientID": "web", "cliClientID": "cli", "scopes": ["openid"]}});
        let found = Provider::read(&named, &at).expect("an issuer");
        assert_eq!((found.issuer.as_str(), found.client.as_str()), ("https://id.example.com", "cli"));
        assert_eq!(found.scopes, ["openid"]);
        let bundled = json!({"dexConfig": {"connectors": [{"name": "x"}]}});
        let found = Provider::read(&bundled, &at).expect("an issuer");
        assert_eq!(
            (found.issuer.as_str(), found.client.as_str()),
            ("https://cd.example.com/cd/api/dex", "argo-cd-cli")
        );
        for none in
            [json!({}), json!({"dexConfig": {"connectors": []}}), json!({"oidcConfig": {"issuer": ""}})]
        {
            assert!(Provider::read(&none, &at).is_err_and(|error| error.to_string().contains("--username")));
        }
    }

    #[test]
    fn secrets_are_sent_over_tls_or_to_this_machine() {
        for good in ["https://id.example.com/x", "http://127.0.0.1:5556", "http://localhost/"] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in ["http://id.example.com", "ftp://127.0.0.1", "id.example.com", "http://localhost.evil"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
