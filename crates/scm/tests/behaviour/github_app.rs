//! Signing in as a GitHub App.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_scm::{Kind, Settings};
use jiff::{Timestamp, ToSpan};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::{Value, json};

use crate::server::{Host, Objects, Row};
use crate::{REPOS, hosts, pull_request, scm, settings};

const KEY: &str = include_str!("../keys/app.pem");
const PKCS8_KEY: &str = include_str!("../keys/app.pkcs8.pem");
const PUBLIC_KEY: &[u8] = include_bytes!("../keys/app.public.der");

fn app(installation: &str, key: &str) -> Objects {
    let data = [
        ("githubAppID", "77"),
        ("githubAppInstallationID", installation),
        ("githubAppPrivateKey", key),
        ("githubAppEnterpriseBaseUrl", "http://127.0.0.1:1"),
    ];
    let data: BTreeMap<String, String> = data.map(|(key, value)| (key.into(), value.into())).into();
    Objects { github_apps: BTreeMap::from([("app".into(), data)]), ..Objects::default() }
}

fn exchange(number: &str) -> Row {
    let expires = Timestamp::now() + 1.hour();
    let row = Row::get(&format!("/api/v3/app/installations/{number}/access_tokens"));
    Row { method: "POST".into(), ..row }
        .status(201)
        .body(json!({"token": "ghs_installed", "expires_at": expires}))
}

fn repos() -> Row {
    Row::get(REPOS).header("authorization", "Bearer ghs_installed").body(json!([]))
}

fn generator(host: &Host) -> Value {
    json!({"github": {"organization": "acme", "api": host.url, "appSecretName": "app"}})
}

#[tokio::test]
async fn an_app_proves_itself_and_uses_the_token_it_is_given_until_it_ends() {
    for key in [KEY, PKCS8_KEY] {
        let host = Host::start(vec![exchange("42"), repos()]).await;
        let hosts = hosts(settings());
        for _ in 0..2 {
            hosts.repositories(&scm(generator(&host)), &app("42", key)).await.expect("the token is good");
        }
        assert_eq!(host.requests().iter().filter(|request| request.starts_with("POST")).count(), 1);
        assert_eq!(host.misfits(), Vec::<String>::new());
        let headers = &host.headers()[0];
        check_assertion(headers["authorization"].to_str().expect("text"));
    }
}

fn check_assertion(header: &str) {
    let token = header.strip_prefix("Bearer ").expect("it is a bearer token");
    let (signed, signature) = token.rsplit_once('.').expect("a JWT has three parts");
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).expect("each part is base64");
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, PUBLIC_KEY)
        .verify(signed.as_bytes(), &decode(signature))
        .expect("the app has signed it");
    let (head, claims) = signed.split_once('.').expect("a JWT has three parts");
    let head: Value = serde_json::from_slice(&decode(head)).expect("the head is JSON");
    assert_eq!(head, json!({"alg": "RS256", "typ": "JWT"}));
    let claims: Value = serde_json::from_slice(&decode(claims)).expect("the claims are JSON");
    assert_eq!(claims["iss"], "77");
    let now = Timestamp::now().as_second();
    let (issued, ends) = (claims["iat"].as_i64().expect("a time"), claims["exp"].as_i64().expect("a time"));
    assert!(issued < now && now < ends && ends - issued <= 600, "{issued} {now} {ends}");
}

#[tokio::test]
async fn a_token_about_to_end_is_not_used_again() {
    let ends = Timestamp::now() + 30.seconds();
    let row = exchange("42").body(json!({"token": "ghs_installed", "expires_at": ends}));
    let host = Host::start(vec![row, repos()]).await;
    let hosts = hosts(settings());
    for _ in 0..2 {
        hosts.repositories(&scm(generator(&host)), &app("42", KEY)).await.expect("the token is good");
    }
    assert_eq!(host.requests().iter().filter(|request| request.starts_with("POST")).count(), 2);
}

#[tokio::test]
async fn an_installation_is_found_by_organisation_whatever_its_case_and_remembered() {
    let rows = vec![
        Row::get("/api/v3/app/installations")
            .body(json!([{"id": 1, "account": {"login": "other"}}, {"id": 2, "account": null}]))
            .reply("link", "<{host}/app/installations?page=2>; rel=\"next\""),
        Row::get("/api/v3/app/installations")
            .query("page", "2")
            .body(json!([{"id": 43, "account": {"login": "ACME"}}])),
        exchange("43"),
        repos(),
    ];
    let host = Host::start(rows).await;
    let hosts = hosts(settings());
    for _ in 0..2 {
        hosts.repositories(&scm(generator(&host)), &app("", KEY)).await.expect("the app is installed");
    }
    // Two pages, and the first once more, for the first question only.
    assert_eq!(host.requests().iter().filter(|request| request.contains("/app/installations?")).count(), 3);
}

#[tokio::test]
async fn an_app_that_is_not_installed_is_refused() {
    let host = Host::start(vec![Row::get("/api/v3/app/installations").body(json!([]))]).await;
    let outcome = hosts(settings()).repositories(&scm(generator(&host)), &app("", KEY)).await;
    let error = outcome.expect_err("it is not installed");
    assert_eq!(error.kind(), Kind::Unauthorized);
    assert!(error.to_string().contains("installation not found for org: acme"), "{error}");
}

#[tokio::test]
async fn an_installation_that_is_gone_does_not_mean_that_the_repository_is() {
    let host = Host::start(vec![exchange("42").status(404).body(json!({"message": "Not Found"}))]).await;
    let generator = pull_request(json!({
        "github": {"owner": "acme", "repo": "billing", "api": host.url, "appSecretName": "app"},
        "continueOnRepoNotFoundError": true,
    }));
    let error = hosts(settings()).pull_requests(&generator, &app("42", KEY)).await.expect_err("no token");
    assert_eq!(error.kind(), Kind::Unauthorized);
}

#[tokio::test]
async fn a_token_is_asked_for_once_even_if_the_host_is_out_of_order() {
    let host = Host::start(vec![exchange("42").status(502)]).await;
    let outcome = hosts(settings()).repositories(&scm(generator(&host)), &app("42", KEY)).await;
    assert_eq!(outcome.expect_err("no token").kind(), Kind::Network);
    assert_eq!(host.requests().len(), 1);
}

#[tokio::test]
async fn what_is_kept_for_an_installation_outlives_its_tokens() {
    let ends = Timestamp::now() + 30.seconds();
    let row = exchange("42").body(json!({"token": "ghs_installed", "expires_at": ends}));
    let host = Host::start(vec![row, repos().reply("etag", "\"one\"")]).await;
    let hosts = hosts(Settings { attempts: 1, ..settings() });
    for _ in 0..2 {
        hosts.repositories(&scm(generator(&host)), &app("42", KEY)).await.expect("the token is good");
    }
    assert_eq!(host.headers()[3]["if-none-match"], "\"one\"");
}

#[tokio::test]
async fn a_key_that_is_none_is_named_but_not_shown() {
    let host = Host::start(vec![]).await;
    let broken = KEY.replace("-----BEGIN RSA", "-----BEGIN EC");
    for key in ["do-not-show", &broken] {
        let outcome = hosts(settings()).repositories(&scm(generator(&host)), &app("42", key)).await;
        let error = outcome.expect_err("it is no key");
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(error.to_string().contains("private key of the GitHub App"), "{error}");
        assert!(!error.to_string().contains("do-not-show"), "{error}");
    }
    let error = hosts(settings()).repositories(&scm(generator(&host)), &Objects::default()).await;
    assert!(error.expect_err("no such app").to_string().contains("no github app found"));
    let without_key = app("42", "");
    let error = hosts(settings()).repositories(&scm(generator(&host)), &without_key).await;
    assert!(error.expect_err("no key").to_string().contains("no github app found"));
}
