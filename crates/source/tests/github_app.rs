//! Reading as a GitHub App, against a server that checks the signature of who asks.

mod support;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use baton_source::{Access, SourceError};
use jiff::{SignedDuration, Timestamp};
use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};
use support::server::Server;
use support::{Repo, World, access_with};
use tokio::net::TcpListener;

// Made for these tests and used nowhere else.
const KEY: &str = include_str!("support/app.pem");
const SAME_KEY_PKCS8: &str = include_str!("support/app-pkcs8.pem");

struct Api {
    exchanges: AtomicUsize,
    lists: AtomicUsize,
    lasts: Mutex<SignedDuration>,
    base: Mutex<String>,
}

impl Api {
    async fn start() -> Arc<Api> {
        let api = Arc::new(Api {
            exchanges: AtomicUsize::new(0),
            lists: AtomicUsize::new(0),
            lasts: Mutex::new(SignedDuration::from_hours(1)),
            base: Mutex::default(),
        });
        let router = Router::new()
            .route("/api/v3/app/installations/{id}/access_tokens", post(exchange))
            .route("/api/v3/app/installations", get(installations))
            .with_state(api.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        *api.base.lock().expect("unpoisoned") = format!("http://{address}/api/v3");
        tokio::spawn(async move { axum::serve(listener, router).await });
        api
    }

    fn base(&self) -> String {
        self.base.lock().expect("unpoisoned").clone()
    }

    fn access(&self, url: &str, key: &str, installation: &str) -> Access {
        let base = self.base();
        let mut fields =
            vec![("githubAppID", "7"), ("githubAppPrivateKey", key), ("githubAppEnterpriseBaseUrl", &base)];
        if !installation.is_empty() {
            fields.push(("githubAppInstallationID", installation));
        }
        access_with(url, &fields)
    }
}

/// The claims of a statement whose signature is right and whose time is now.
fn claims(headers: &HeaderMap) -> Option<Value> {
    let statement = headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")?;
    let (signed, signature) = statement.rsplit_once('.')?;
    let body: String = KEY.lines().filter(|line| !line.starts_with('-')).collect();
    let pair = RsaKeyPair::from_der(&STANDARD.decode(body).ok()?).ok()?;
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref());
    key.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).ok()?).ok()?;
    let (head, claims) = signed.split_once('.')?;
    let head: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(head).ok()?).ok()?;
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    let now = Timestamp::now().as_second();
    let (from, until) = (claims["iat"].as_i64()?, claims["exp"].as_i64()?);
    let is_now = from <= now && now < until && until - from <= 600;
    (head["alg"] == "RS256" && is_now).then_some(claims)
}

async fn exchange(State(api): State<Arc<Api>>, Path(id): Path<i64>, headers: HeaderMap) -> Response {
    let count = api.exchanges.fetch_add(1, Ordering::SeqCst) + 1;
    match claims(&headers) {
        Some(claims) if claims["iss"] == "7" && id == 9 => {
            let ends = Timestamp::now() + *api.lasts.lock().expect("unpoisoned");
            let grant = json!({"token": format!("token-{count}"), "expires_at": ends.to_string()});
            (StatusCode::CREATED, grant.to_string()).into_response()
        }
        Some(_) => StatusCode::NOT_FOUND.into_response(),
        None => StatusCode::UNAUTHORIZED.into_response(),
    }
}

/// Two pages, the installation wanted on the second.
async fn installations(
    State(api): State<Arc<Api>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    api.lists.fetch_add(1, Ordering::SeqCst);
    if claims(&headers).is_none() {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    match query.is_some_and(|query| query.contains("page=2")) {
        false => {
            let next = format!("<{}/app/installations?page=2>; rel=\"next\"", api.base());
            let page = json!([{"id": 1, "account": {"login": "other"}}]);
            ([(header::LINK, next)], page.to_string()).into_response()
        }
        true => json!([{"id": 2}, {"id": 9, "account": {"login": "Repo"}}]).to_string().into_response(),
    }
}

async fn resolve(world: &World, url: &str, access: &Access) -> Result<(), SourceError> {
    world.repositories.resolve(url, access, "main", true).await.map(drop)
}

#[tokio::test]
async fn a_statement_is_exchanged_for_a_token_that_is_used_while_it_lasts() {
    let (repo, _) = Repo::filled();
    let (git, api) = (Server::start(repo.path()).await, Api::start().await);
    git.require_password("x-access-token", "token-1");
    let world = World::new();
    let access = api.access(&git.url(), KEY, "9");
    for _ in 0..3 {
        resolve(&world, &git.url(), &access).await.expect("resolved");
    }
    assert_eq!(api.exchanges.load(Ordering::SeqCst), 1);
    assert_eq!(api.lists.load(Ordering::SeqCst), 0);
    git.require_password("x-access-token", "token-2");
    resolve(&World::new(), &git.url(), &api.access(&git.url(), SAME_KEY_PKCS8, "9")).await.expect("resolved");
}

#[tokio::test]
async fn a_token_about_to_end_is_not_used_again() {
    let (repo, _) = Repo::filled();
    let (git, api) = (Server::start(repo.path()).await, Api::start().await);
    *api.lasts.lock().expect("unpoisoned") = SignedDuration::from_secs(30);
    let world = World::new();
    let access = api.access(&git.url(), KEY, "9");
    for asked in 1..=3 {
        git.require_password("x-access-token", &format!("token-{asked}"));
        resolve(&world, &git.url(), &access).await.expect("resolved");
        assert_eq!(api.exchanges.load(Ordering::SeqCst), asked);
    }
}

#[tokio::test]
async fn the_installation_is_found_by_the_repository_s_owner() {
    let (repo, _) = Repo::filled();
    let (git, api) = (Server::start(repo.path()).await, Api::start().await);
    git.require_password("x-access-token", "token-1");
    resolve(&World::new(), &git.url(), &api.access(&git.url(), KEY, "")).await.expect("resolved");
    assert_eq!(api.lists.load(Ordering::SeqCst), 2);
    let elsewhere = git.url().replace("/repo", "/stranger/repo");
    let fault =
        resolve(&World::new(), &elsewhere, &api.access(&elsewhere, KEY, "")).await.expect_err("not there");
    assert!(matches!(&fault, SourceError::Unauthorized { why, .. } if why.contains("stranger")), "{fault}");
}

#[tokio::test]
async fn what_the_api_refuses_is_no_access_and_shows_no_key() {
    let (repo, _) = Repo::filled();
    let (git, api) = (Server::start(repo.path()).await, Api::start().await);
    let url = git.url();
    let line = KEY.lines().nth(3).expect("a line of the key");
    for access in [api.access(&url, KEY, "10"), api.access(&url, "no key", "9"), api.access(&url, line, "9")]
    {
        let fault = resolve(&World::new(), &url, &access).await.expect_err("refused");
        assert!(matches!(fault, SourceError::Unauthorized { .. }), "{fault}");
        assert!(!format!("{fault:?} {access:?}").contains(line), "{fault}");
    }
    assert!(git.seen().is_empty(), "without a token nobody is asked");
}

#[tokio::test]
async fn an_api_that_cannot_be_reached_is_a_passing_fault() {
    let (repo, _) = Repo::filled();
    let git = Server::start(repo.path()).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("bound");
    let base = format!("http://{closed}");
    let fields = [
        ("githubAppID", "7"),
        ("githubAppInstallationID", "9"),
        ("githubAppPrivateKey", KEY),
        ("githubAppEnterpriseBaseUrl", base.as_str()),
    ];
    let fault =
        resolve(&World::new(), &git.url(), &access_with(&git.url(), &fields)).await.expect_err("closed");
    assert!(fault.is_transient() && fault.to_string().contains(&base), "{fault}");
}
