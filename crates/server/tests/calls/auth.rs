//! Signing in, and what makes a token count.

use baton_server::auth::token::{Claims, ISSUER, SigningKey};
use serde_json::json;

use crate::scene::{Scene, Who, sign};

async fn with_password(name: &str) -> (Scene, String) {
    let scene = Scene::new().await;
    let client = kube::Client::new(scene.control.service(), "argocd");
    // The Secret has no password of admin: the server makes one and tells it once.
    let made = baton_server::auth::setup::ensure(&client, "argocd", scene.now()).await.expect("a Secret");
    let again = baton_server::auth::setup::ensure(&client, "argocd", scene.now()).await.expect("a Secret");
    assert!(again.is_none(), "a password is told once");
    assert_eq!(name, "admin");
    (scene, made.expect("a new password").expose().to_owned())
}

#[tokio::test]
async fn a_password_opens_a_session_that_ends_by_signing_out() {
    let (scene, password) = with_password("admin").await;
    let body = json!({"username": "admin", "password": password});
    let answer = scene.call(Who::Nobody, "POST", "/api/v1/session", body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let token = answer.json()["token"].as_str().expect("a token").to_owned();
    let cookie = answer.headers.get("set-cookie").and_then(|line| line.to_str().ok()).expect("a cookie");
    assert!(
        cookie.starts_with("argocd.token=")
            && cookie.contains("HttpOnly")
            && cookie.contains("SameSite=Strict")
    );

    let bearer =
        [("authorization", format!("Bearer {token}")), ("content-type", "application/json".to_owned())];
    let info = scene.send("GET", "/api/v1/session/userinfo", &bearer, String::new()).await.json();
    assert_eq!((info["loggedIn"].as_bool(), info["username"].as_str()), (Some(true), Some("admin")));
    assert_eq!(scene.send("GET", "/api/v1/applications", &bearer, String::new()).await.status, 200);

    let gone = scene.send("DELETE", "/api/v1/session", &bearer, String::new()).await;
    assert_eq!(gone.status, 200);
    assert!(
        gone.headers
            .get("set-cookie")
            .is_some_and(|line| line.to_str().is_ok_and(|line| line.contains("Max-Age=0")))
    );
    let after = scene.send("GET", "/api/v1/applications", &bearer, String::new()).await;
    assert_eq!((after.status.as_u16(), after.message().as_str()), (401, "invalid session: token is revoked"));
}

#[tokio::test]
async fn guessing_ends_after_five_attempts_for_known_and_unknown_names_alike() {
    let (scene, password) = with_password("admin").await;
    for name in ["admin", "nobody-of-that-name"] {
        let guess = || {
            scene.call(Who::Nobody, "POST", "/api/v1/session", json!({"username": name, "password": "wrong"}))
        };
        for _ in 0..5 {
            let answer = guess().await;
            assert_eq!(
                (answer.status.as_u16(), answer.message().as_str()),
                (401, "Invalid username or password")
            );
        }
        assert_eq!(guess().await.status, 429);
    }
    let right = json!({"username": "admin", "password": password});
    assert_eq!(scene.call(Who::Nobody, "POST", "/api/v1/session", right.clone()).await.status, 429);
    scene.advance(301);
    assert_eq!(scene.call(Who::Nobody, "POST", "/api/v1/session", right).await.status, 200);
}

#[tokio::test]
async fn nothing_but_a_token_of_ours_that_counts_lets_anybody_in() {
    let scene = Scene::new().await;
    let second = scene.now().as_second();
    let claims = |sub: &str, jti: &str| Claims {
        iss: ISSUER.to_owned(),
        sub: sub.to_owned(),
        iat: second,
        nbf: second,
        exp: Some(second + 60),
        jti: jti.to_owned(),
    };
    let forged = SigningKey::new(b"another key, of somebody else's server").expect("a key");
    let none = {
        use base64::Engine as _;
        let encode = |text: String| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
        let claims = json!({"iss": "argocd", "sub": "admin:login", "jti": "x", "iat": second}).to_string();
        format!("{}.{}.", encode(json!({"alg": "none"}).to_string()), encode(claims))
    };
    for (what, token) in [
        ("expired", sign(&Claims { exp: Some(second - 1), ..claims("admin:login", "x") })),
        ("not yet", sign(&Claims { nbf: second + 600, ..claims("admin:login", "x") })),
        ("forged", forged.sign(&claims("admin:login", "x"))),
        ("alg none", none),
        ("no id", sign(&claims("admin:login", ""))),
        ("no account", sign(&claims("mallory:login", "x"))),
        ("no capability", sign(&claims("ci:login", "x"))),
        ("unlisted key", sign(&claims("ci:apiKey", "x"))),
        ("unlisted role", sign(&claims("proj:shop:ci", "gone"))),
        (
            "other issuer",
            sign(&Claims { iss: "https://sso.example.com".to_owned(), ..claims("admin:login", "x") }),
        ),
        ("nonsense", "a.b.c".to_owned()),
        ("huge", "x".repeat(70_000)),
    ] {
        let headers = [("authorization", format!("Bearer {token}"))];
        let answer = scene.send("GET", "/api/v1/applications", &headers, String::new()).await;
        assert_eq!(answer.status, 401, "{what}: {}", answer.text);
        assert!(answer.message().starts_with("invalid session: "), "{what}: {}", answer.text);
        assert!(!answer.text.contains(&token[..token.len().min(10)]), "no token is said back");
    }
    let answer = scene.get(Who::Nobody, "/api/v1/applications").await;
    assert_eq!((answer.status.as_u16(), answer.message().as_str()), (401, "no session information"));
    assert_eq!(answer.json()["code"], 16);
}

#[tokio::test]
async fn where_anybody_may_ask_a_bad_token_is_worth_nothing() {
    let scene = Scene::with(json!({"users.anonymous.enabled": "true"})).await;
    for headers in [vec![], vec![("authorization", "Bearer a.b.c".to_owned())]] {
        let answer = scene.send("GET", "/api/v1/applications", &headers, String::new()).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.json()["items"], json!([]), "no row allows nobody anything");
        let info = scene.send("GET", "/api/v1/session/userinfo", &headers, String::new()).await;
        assert_eq!(info.json(), json!({}));
    }
}

#[tokio::test]
async fn tokens_of_accounts_and_roles_are_made_and_revoked() {
    let scene = Scene::new().await;
    let denied = scene.call(Who::Reader, "POST", "/api/v1/account/ci/token", json!({})).await;
    assert_eq!(denied.status, 403);
    for (make, revoke) in [
        ("/api/v1/account/ci/token", "/api/v1/account/ci/token/robot"),
        ("/api/v1/projects/shop/roles/ci/token", "/api/v1/projects/shop/roles/ci/token/0?id=robot"),
    ] {
        let made = scene.call(Who::Admin, "POST", make, json!({"id": "robot", "expiresIn": 60})).await;
        assert_eq!(made.status, 200, "{}", made.text);
        let token = made.json()["token"].as_str().expect("a token").to_owned();
        let headers = [("authorization", format!("Bearer {token}"))];
        assert_eq!(
            scene
                .send("GET", "/api/v1/account/can-i/projects/get/shop", &headers, String::new())
                .await
                .status,
            200
        );
        let twice = scene.call(Who::Admin, "POST", make, json!({"id": "robot"})).await;
        assert_eq!(twice.status, 400, "{}", twice.text);
        assert_eq!(scene.call(Who::Admin, "DELETE", revoke, json!(null)).await.status, 200);
        let after = scene.send("GET", "/api/v1/applications", &headers, String::new()).await;
        assert_eq!(after.message(), "invalid session: token is revoked");
        assert_eq!(scene.call(Who::Admin, "DELETE", revoke, json!(null)).await.status, 404);
    }
}

#[tokio::test]
async fn a_session_that_ends_soon_is_renewed_in_its_cookie() {
    let scene = Scene::new().await;
    let token = scene.token(Who::Admin).expect("a token");
    let headers = [("cookie", format!("argocd.token={token}"))];
    let answer = scene.send("GET", "/api/v1/applications", &headers, String::new()).await;
    assert!(answer.headers.get("set-cookie").is_none());
    scene.advance(3600 - 200);
    let answer = scene.send("GET", "/api/v1/applications", &headers, String::new()).await;
    let renewed =
        answer.headers.get("set-cookie").and_then(|line| line.to_str().ok()).expect("a newer token");
    assert!(renewed.starts_with("argocd.token=") && !renewed.contains(&token));
}

#[tokio::test]
async fn another_password_ends_older_sessions() {
    let (scene, password) = with_password("admin").await;
    let old = scene.token(Who::Admin).expect("a token");
    let headers = |token: &str| {
        vec![("authorization", format!("Bearer {token}")), ("content-type", "application/json".to_owned())]
    };
    scene.advance(5);
    let body = json!({"currentPassword": "wrong", "newPassword": "a longer one"}).to_string();
    let answer = scene.send("PUT", "/api/v1/account/password", &headers(&old), body).await;
    assert_eq!(answer.status, 400, "{}", answer.text);
    let body = json!({"currentPassword": password, "newPassword": "a longer one"}).to_string();
    let answer = scene.send("PUT", "/api/v1/account/password", &headers(&old), body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let answer = scene.send("GET", "/api/v1/applications", &headers(&old), String::new()).await;
    assert_eq!(answer.status, 401, "{}", answer.text);
    let body = json!({"username": "admin", "password": "a longer one"});
    assert_eq!(scene.call(Who::Nobody, "POST", "/api/v1/session", body).await.status, 200);
}
