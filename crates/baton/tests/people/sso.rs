//! `baton login --sso`: signing in at an issuer, and sessions that are renewed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{Request, Response, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;

use crate::place::Place;
use crate::process::{Running, eventually};
use crate::shell::Shell;

const CLIENT: &str = "baton-cli";

type Fields = BTreeMap<String, String>;

/// An issuer whose person always agrees. Clones are the same.
#[derive(Clone)]
struct Issuer {
    url: String,
    key: Arc<EcdsaKeyPair>,
    state: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    /// What was asked for with each code.
    codes: BTreeMap<String, Fields>,
    /// For how many seconds the next token counts.
    lasts: i64,
    /// How many sessions were renewed.
    renewed: usize,
}

impl Issuer {
    async fn start() -> Issuer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &random);
        let state = Inner { lasts: 3600, ..Inner::default() };
        let issuer = Issuer { url, key: Arc::new(key.expect("a key")), state: Arc::new(Mutex::new(state)) };
        let router = Router::new().fallback(answer).with_state(issuer.clone());
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let service = hyper_util::service::TowerToHyperService::new(router.clone());
                let io = hyper_util::rt::TokioIo::new(stream);
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, service));
            }
        });
        issuer
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.state.lock().expect("nobody panicked")
    }

    fn token(&self, nonce: &str) -> String {
        let now = jiff::Timestamp::now().as_second();
        let claims = json!({
            "iss": self.url, "aud": CLIENT, "sub": "u-17", "email": "ann@example.com", "groups": ["ops"],
            "iat": now, "exp": now + self.lock().lasts, "nonce": nonce,
        });
        let header = json!({"alg": "ES256", "kid": "1"});
        let signed = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes()).expect("signed");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn keys(&self) -> Value {
        let point = self.key.public_key().as_ref();
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": "1", "use": "sig",
            "x": encode(&point[1..33]), "y": encode(&point[33..])}]})
    }

    fn exchange(&self, form: &Fields) -> Option<Value> {
        if form.get("client_id")? != CLIENT {
            return None;
        }
        if form["grant_type"] == "refresh_token" {
            assert_eq!(form["refresh_token"], "again");
            self.lock().renewed += 1;
            return Some(json!({"token_type": "Bearer", "id_token": self.token("")}));
        }
        let asked = self.lock().codes.remove(form.get("code")?)?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(form.get("code_verifier")?.as_bytes()));
        let ours = challenge == asked["code_challenge"] && form["redirect_uri"] == asked["redirect_uri"];
        ours.then(|| json!({"token_type": "Bearer", "id_token": self.token(&asked["nonce"]), "refresh_token": "again"}))
    }
}

async fn answer(State(issuer): State<Issuer>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 16).await.expect("a body");
    let url = &issuer.url;
    let given = match parts.uri.path() {
        "/.well-known/openid-configuration" => Some(json!({
            "issuer": url, "authorization_endpoint": format!("{url}/authorize"), "token_endpoint": format!("{url}/token"),
            "jwks_uri": format!("{url}/keys"), "scopes_supported": ["openid", "offline_access"],
        })),
        "/keys" => Some(issuer.keys()),
        "/authorize" => {
            let asked = fields(parts.uri.query().unwrap_or_default());
            assert_eq!(
                (asked["code_challenge_method"].as_str(), asked["client_id"].as_str()),
                ("S256", CLIENT)
            );
            assert!(asked["scope"].contains("offline_access"), "{asked:?}");
            let back = format!("{}?code=c-1&state={}", asked["redirect_uri"], asked["state"]);
            issuer.lock().codes.insert("c-1".to_owned(), asked);
            let response = Response::builder().status(StatusCode::FOUND).header("location", back);
            return response.body(Body::empty()).expect("a response");
        }
        "/token" => issuer.exchange(&fields(std::str::from_utf8(&body).expect("a form"))),
        _ => None,
    };
    let status = if given.is_some() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    Response::builder()
        .status(status)
        .body(Body::from(given.unwrap_or_default().to_string()))
        .expect("a response")
}

fn fields(query: &str) -> Fields {
    let url = Url::parse(&format!("http://localhost/?{query}")).expect("a query");
    url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_signs_in_at_the_issuer_and_the_session_is_renewed_by_itself() {
    let place = Place::start().await;
    let issuer = Issuer::start().await;
    let config = json!({"name": "House", "issuer": issuer.url, "clientID": "baton", "clientSecret": "s", "cliClientID": CLIENT});
    let url = format!("http://{}", place.address);
    place.settings("argocd-cm", json!({"url": url, "oidc.config": config.to_string()})).await;
    place.settings("argocd-rbac-cm", json!({"policy.csv": "g, ops, role:readonly"})).await;
    let nobody = place.nobody();
    nobody
        .until("the issuer is known", "/api/v1/settings", |_, said| said["oidcConfig"]["name"] == "House")
        .await;

    // A browser that notes the page: the test is the person who opens it.
    let (browser, noted) = (place.home.path().join("browser"), place.home.path().join("page"));
    let script =
        format!("#!/bin/sh\nprintf %s \"$1\" > '{0}.part' && mv '{0}.part' '{0}'\n", noted.display());
    fs::write(&browser, script).expect("a file");
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).expect("a program");
    let shell = Shell::anew(&place);
    let address = place.address.to_string();
    let mut login = shell.command(&["login", &address, "--plaintext", "--sso", "--sso-port", "0"]);
    login.env("BROWSER", &browser);
    let login = Running::of(login);
    let page = eventually("a browser is opened", async || fs::read_to_string(&noted).ok()).await;
    let forged = Url::parse(&page).expect("a page");
    let back =
        forged.query_pairs().find(|(name, _)| name == "redirect_uri").expect("a way back").1.into_owned();
    let http = reqwest::Client::new();
    let wrong = http.get(format!("{back}?code=c-9&state=guessed")).send().await.expect("an answer");
    assert_eq!(wrong.status().as_u16(), 400, "another sign-in is not listened to");
    let welcome = http.get(&page).send().await.expect("an answer");
    assert_eq!(welcome.status().as_u16(), 200);
    assert!(welcome.text().await.expect("a page").contains("close this page"));
    let login = login.ends();
    assert_eq!(login.code, Some(0), "{login:?}");
    assert!(login.stdout.starts_with("'ann@example.com' logged in successfully\n"), "{login:?}");
    assert!(login.stderr.contains(&page), "the page is told too: {login:?}");
    let who = shell.says(&["account", "get-user-info"]);
    assert!(who.contains("Username: ann@example.com") && who.contains("Groups: ops"), "{who}");
    assert!(shell.says(&["proj", "list", "-o", "name"]).contains("default"));
    assert_eq!(issuer.lock().renewed, 0);

    // One that is about to end is renewed before it is used, and kept.
    let kept = place.home.path().join(".config/argocd/config");
    let before = fs::read_to_string(&kept).expect("a file");
    issuer.lock().lasts = 5;
    let ending = issuer.token("");
    issuer.lock().lasts = 3600;
    let mut file: Value = serde_saphyr::from_str(&before).expect("YAML");
    file["users"][0]["auth-token"] = json!(ending);
    fs::write(&kept, file.to_string()).expect("a file");
    assert!(shell.says(&["account", "get-user-info"]).contains("ann@example.com"));
    assert_eq!(issuer.lock().renewed, 1);
    let after: Value = serde_saphyr::from_str(&fs::read_to_string(&kept).expect("a file")).expect("YAML");
    assert_ne!(after["users"][0]["auth-token"], json!(ending));
    assert_eq!(after["users"][0]["refresh-token"], "again", "what it is renewed by stays");
    shell.says(&["account", "get-user-info"]);
    assert_eq!(issuer.lock().renewed, 1, "one that counts is not renewed");
    assert_eq!(shell.says(&["logout"]), format!("Logged out from '{address}'\n"));
    let after = fs::read_to_string(&kept).expect("a file");
    assert!(!after.contains("again"), "{after}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_an_issuer_says_so() {
    let place = Place::start().await;
    let shell = Shell::anew(&place);
    let address = place.address.to_string();
    shell.fails(&["login", &address, "--plaintext", "--sso"], 3, "use --username");
}
