//! A small issuer that people sign in at: OpenID Connect with codes and PKCE over a real socket.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Request, Response, StatusCode};
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;

pub(crate) const CLIENT: &str = "baton";
pub(crate) const CLIENT_SECRET: &str = "h4ndsh4k3";
/// What user info is told for.
pub(crate) const ACCESS: &str = "4cc3ss";
/// How what newer tokens are given for begins.
pub(crate) const REFRESH: &str = "r3fr3sh";

/// The issuer. Clones are the same.
#[derive(Clone)]
pub(crate) struct Issuer {
    pub(crate) url: String,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    key: EcdsaKeyPair,
    /// Name of the key; another with each change of keys.
    kid: usize,
    /// What was asked for with each code.
    codes: BTreeMap<String, BTreeMap<String, String>>,
    /// Claims that tokens have besides the usual, or instead of them.
    claims: Value,
    /// What newer tokens are given for, each once.
    refreshes: Vec<String>,
    /// How many were given so.
    renewals: usize,
    /// What it tells of whoever lets somebody ask.
    info: Value,
}

impl Issuer {
    pub(crate) async fn start() -> Issuer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let inner = Inner {
            key: key(),
            kid: 1,
            codes: BTreeMap::new(),
            claims: json!({}),
            refreshes: Vec::new(),
            renewals: 0,
            info: json!({"sub": "u-17", "groups": ["far"]}),
        };
        let issuer = Issuer { url, inner: Arc::new(Mutex::new(inner)) };
        let router = Router::new().fallback(answer).with_state(issuer.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        issuer
    }

    /// Has tokens say something else from now on.
    pub(crate) fn says(&self, claims: Value) {
        self.inner.lock().claims = claims;
    }

    /// Tells something else of people from now on.
    pub(crate) fn tells(&self, info: Value) {
        self.inner.lock().info = info;
    }

    /// How often a newer token was given.
    pub(crate) fn renewals(&self) -> usize {
        self.inner.lock().renewals
    }

    /// Signs with another key from now on.
    pub(crate) fn change_key(&self) {
        let mut inner = self.inner.lock();
        inner.key = key();
        inner.kid += 1;
    }

    /// A token as the issuer makes them.
    pub(crate) fn token(&self, nonce: &str) -> String {
        let inner = self.inner.lock();
        let now = jiff::Timestamp::now().as_second();
        let mut claims = json!({
            "iss": self.url, "aud": CLIENT, "sub": "u-17", "email": "ann@example.com", "groups": ["ops"],
            "iat": now, "exp": now + 3600, "nonce": nonce,
        });
        for (name, value) in inner.claims.as_object().into_iter().flatten() {
            claims[name] = value.clone();
        }
        let header = json!({"alg": "ES256", "kid": inner.kid.to_string()});
        let signed = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
        let signature = inner.key.sign(&SystemRandom::new(), signed.as_bytes()).expect("signed");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn metadata(&self) -> Value {
        let url = &self.url;
        json!({
            "issuer": url, "authorization_endpoint": format!("{url}/authorize"),
            "token_endpoint": format!("{url}/token"), "jwks_uri": format!("{url}/keys"),
            "userinfo_endpoint": format!("{url}/info"),
        })
    }

    fn keys(&self) -> Value {
        let inner = self.inner.lock();
        let point = inner.key.public_key().as_ref();
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": inner.kid.to_string(), "use": "sig",
            "x": encode(&point[1..33]), "y": encode(&point[33..])}]})
    }

    /// The person agrees: the browser goes back with a code.
    fn authorize(&self, asked: BTreeMap<String, String>) -> Response<Body> {
        assert_eq!((asked["response_type"].as_str(), asked["client_id"].as_str()), ("code", CLIENT));
        assert_eq!(asked["code_challenge_method"], "S256");
        let mut inner = self.inner.lock();
        let code = format!("code-{}", inner.codes.len());
        let back = format!("{}?code={code}&state={}", asked["redirect_uri"], asked["state"]);
        inner.codes.insert(code, asked);
        let response = Response::builder().status(StatusCode::FOUND).header("location", back);
        response.body(Body::empty()).expect("a response")
    }

    /// Gives a token for a code, once, to whoever asked for it.
    fn exchange(&self, form: &BTreeMap<String, String>) -> Option<Value> {
        if form["grant_type"] == "refresh_token" {
            return self.renew(form);
        }
        let asked = self.inner.lock().codes.remove(form.get("code")?)?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(form.get("code_verifier")?.as_bytes()));
        let ours = form["grant_type"] == "authorization_code"
            && form["client_id"] == CLIENT
            && form["client_secret"] == CLIENT_SECRET
            && form["redirect_uri"] == asked["redirect_uri"]
            && challenge == asked["code_challenge"];
        ours.then(|| self.given(&asked["nonce"]))
    }

    /// Gives newer tokens, once, to whoever was given the means.
    fn renew(&self, form: &BTreeMap<String, String>) -> Option<Value> {
        {
            let mut inner = self.inner.lock();
            let at = inner.refreshes.iter().position(|known| *known == form["refresh_token"])?;
            inner.refreshes.remove(at);
            inner.renewals += 1;
        }
        let ours = form["client_id"] == CLIENT && form["client_secret"] == CLIENT_SECRET;
        ours.then(|| self.given(""))
    }

    fn given(&self, nonce: &str) -> Value {
        let token = self.token(nonce);
        let mut inner = self.inner.lock();
        let refresh = format!("{REFRESH}-{}-{}", inner.renewals, inner.codes.len());
        inner.refreshes.push(refresh.clone());
        json!({"token_type": "Bearer", "id_token": token, "access_token": ACCESS, "refresh_token": refresh})
    }
}

async fn answer(State(issuer): State<Issuer>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 16).await.expect("a body");
    let given = match parts.uri.path() {
        "/.well-known/openid-configuration" => Some(issuer.metadata()),
        "/keys" => Some(issuer.keys()),
        "/authorize" => return issuer.authorize(pairs(parts.uri.query().unwrap_or_default())),
        "/token" => issuer.exchange(&pairs(std::str::from_utf8(&body).expect("a form"))),
        "/info" | "/elsewhere/info" => {
            let asked = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
            (asked == Some(&format!("Bearer {ACCESS}"))).then(|| issuer.inner.lock().info.clone())
        }
        _ => None,
    };
    let status = if given.is_some() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    let body = Body::from(given.unwrap_or(Value::Null).to_string());
    Response::builder().status(status).body(body).expect("a response")
}

/// What a query or a form says.
pub(crate) fn pairs(text: &str) -> BTreeMap<String, String> {
    let decode = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (decode(name), decode(value)));
    text.split('&').filter_map(pair).collect()
}

fn key() -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &random).expect("a key")
}
