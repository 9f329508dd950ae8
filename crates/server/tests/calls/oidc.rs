//! Signing in by an issuer.

use serde_json::json;

use crate::issuer::{CLIENT, CLIENT_SECRET, Issuer, pairs};
use crate::scene::{Answer, Scene, Who};

async fn scene() -> (Scene, Issuer) {
    let issuer = Issuer::start().await;
    let config =
        json!({"name": "House", "issuer": issuer.url, "clientID": CLIENT, "clientSecret": "$oidc.secret"});
    let scene = Scene::with(json!({ "oidc.config": config.to_string() })).await;
    let secret = json!({"stringData": {"oidc.secret": CLIENT_SECRET}});
    scene.patch("/api/v1/namespaces/argocd/secrets/argocd-secret", &secret).await;
    (scene, issuer)
}

fn location(answer: &Answer) -> String {
    let line = answer.headers.get("location").and_then(|line| line.to_str().ok());
    line.unwrap_or_else(|| panic!("{} leads nowhere: {}", answer.status, answer.text)).to_owned()
}

/// The cookies that an answer makes a browser keep, as it sends them.
fn cookies(answer: &Answer) -> String {
    let lines = answer.headers.get_all("set-cookie").iter().filter_map(|line| line.to_str().ok());
    let kept = lines.filter(|line| !line.contains("Max-Age=0"));
    kept.filter_map(|line| line.split(';').next()).collect::<Vec<_>>().join("; ")
}

/// What the issuer sends the browser back with.
async fn at_issuer(location: &str) -> String {
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build();
    let answer = client.expect("a client").get(location).send().await.expect("an answer");
    let back = answer.headers()["location"].to_str().expect("a location").to_owned();
    back.strip_prefix("https://cd.example.com").expect("our own URL").to_owned()
}

async fn begun(scene: &Scene, back: &str) -> (String, String) {
    let answer = scene.send("GET", &format!("/auth/login?return_url={back}"), &[], String::new()).await;
    assert_eq!(answer.status, 303, "{}", answer.text);
    (location(&answer), cookies(&answer))
}

async fn as_browser(scene: &Scene, path: &str, cookies: &str) -> Answer {
    scene.send("GET", path, &[("cookie", cookies.to_owned())], String::new()).await
}

#[tokio::test]
async fn somebody_whom_the_issuer_knows_is_let_in_and_goes_back_to_the_page() {
    let (scene, _issuer) = scene().await;
    let told = scene.get(Who::Nobody, "/api/v1/settings").await.json();
    assert_eq!(told["oidcConfig"]["name"], "House");
    assert!(!told.to_string().contains(CLIENT_SECRET));

    let (location_of_issuer, state) = begun(&scene, "/approvals").await;
    let back = at_issuer(&location_of_issuer).await;
    let arrived = as_browser(&scene, &back, &state).await;
    assert_eq!((arrived.status.as_u16(), location(&arrived).as_str()), (303, "/approvals"));
    let token = cookies(&arrived);
    let info = as_browser(&scene, "/api/v1/session/userinfo", &token).await.json();
    assert_eq!(info["username"], "ann@example.com");
    assert_eq!(info["groups"], json!(["ops"]));

    let again = as_browser(&scene, &back, &state).await;
    assert_eq!(location(&again), "/login?has_sso_error=true", "a code counts once");

    let gone = as_browser(&scene, "/auth/logout", &token).await;
    assert_eq!(location(&gone), "/login");
    let after = as_browser(&scene, "/api/v1/applications", &token).await;
    assert_eq!((after.status.as_u16(), after.message().as_str()), (401, "invalid session: token is revoked"));
}

#[tokio::test]
async fn whoever_has_not_begun_it_is_not_let_in() {
    let (scene, _issuer) = scene().await;
    let (location_of_issuer, state) = begun(&scene, "/").await;
    let (_, other) = begun(&scene, "/").await;
    let back = at_issuer(&location_of_issuer).await;
    let refused = format!("{}&error=access_denied", back.replace("code=", "none="));
    for (path, cookies) in [(&back, ""), (&back, other.as_str()), (&refused, state.as_str())] {
        let answer = as_browser(&scene, path, cookies).await;
        assert_eq!(location(&answer), "/login?has_sso_error=true", "{path}");
        assert!(!self::cookies(&answer).contains("argocd.token"), "{path}");
    }
    scene.advance(601);
    assert_eq!(location(&as_browser(&scene, &back, &state).await), "/login?has_sso_error=true", "too late");
}

#[tokio::test]
async fn the_issuers_token_counts_by_itself_and_only_as_it_says() {
    let (scene, issuer) = scene().await;
    let known = async |token: String| {
        let bearer = [("authorization", format!("Bearer {token}"))];
        scene.send("GET", "/api/v1/applications", &bearer, String::new()).await
    };
    assert_eq!(known(issuer.token("x")).await.status, 200);
    let now = jiff::Timestamp::now().as_second();
    for (claims, words) in [
        (json!({"aud": "other"}), "another audience"),
        (json!({"exp": now - 1}), "expired"),
        (json!({"nbf": now + 600}), "not valid yet"),
        // Of anybody else nobody's key is asked for.
        (json!({"iss": "https://elsewhere.example.com"}), "not signed with HS256"),
        (json!({"iss": "argocd"}), "not signed with HS256"),
    ] {
        issuer.says(claims);
        let answer = known(issuer.token("x")).await;
        assert_eq!(answer.status, 401, "{words}");
        assert!(answer.message().contains(words), "{words}: {}", answer.message());
    }
    issuer.says(json!({}));
    issuer.change_key();
    assert_eq!(known(issuer.token("x")).await.status, 401, "keys were asked for a moment ago");
    scene.advance(31);
    assert_eq!(known(issuer.token("x")).await.status, 200, "the issuer has other keys now");
    let token = issuer.token("x");
    let (signed, signature) = token.rsplit_once('.').expect("a token");
    let forged = [format!("{signed}."), format!("{signed}.{}", signature.chars().rev().collect::<String>())];
    for token in forged {
        assert_eq!(known(token).await.status, 401);
    }
}

#[tokio::test]
async fn a_token_for_another_sign_in_is_refused() {
    let (scene, issuer) = scene().await;
    issuer.says(json!({"nonce": "of another"}));
    let (location_of_issuer, state) = begun(&scene, "/").await;
    let back = at_issuer(&location_of_issuer).await;
    assert_eq!(location(&as_browser(&scene, &back, &state).await), "/login?has_sso_error=true");
}

#[tokio::test]
async fn what_the_issuer_is_sent_says_what_is_asked_for() {
    let (scene, issuer) = scene().await;
    let (location, _) = begun(&scene, "https://evil.example.com").await;
    let (address, query) = location.split_once('?').expect("a query");
    assert_eq!(address, format!("{}/authorize", issuer.url));
    let asked = pairs(query);
    assert_eq!(asked["redirect_uri"], "https://cd.example.com/auth/callback");
    assert_eq!(asked["scope"], "openid profile email groups");
    let missing = Scene::new().await;
    let answer = missing.send("GET", "/auth/login", &[], String::new()).await;
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert!(answer.message().contains("argocd-cm has no oidc.config"));
}
