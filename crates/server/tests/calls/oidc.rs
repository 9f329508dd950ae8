//! Signing in by an issuer.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::issuer::{ACCESS, CLIENT, CLIENT_SECRET, Issuer, REFRESH, pairs};
use crate::scene::{Answer, Scene, Who};

async fn scene() -> (Scene, Issuer) {
    scene_with(json!({})).await
}

/// A scene with more in `oidc.config`.
async fn scene_with(more: Value) -> (Scene, Issuer) {
    let issuer = Issuer::start().await;
    let mut config =
        json!({"name": "House", "issuer": issuer.url, "clientID": CLIENT, "clientSecret": "$oidc.secret"});
    for (name, value) in more.as_object().into_iter().flatten() {
        config[name] = value.clone();
    }
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

/// Signs somebody in; the cookies that the browser keeps.
async fn signed_in(scene: &Scene) -> String {
    let (location_of_issuer, state) = begun(scene, "/").await;
    let back = at_issuer(&location_of_issuer).await;
    let arrived = as_browser(scene, &back, &state).await;
    assert_eq!(location(&arrived), "/");
    cookies(&arrived)
}

/// What a browser keeps after an answer: newer cookies in the place of those of the same name.
fn after(kept: &str, answer: &Answer) -> String {
    let pairs = |text: &str| -> BTreeMap<String, String> {
        let all = text.split("; ").filter_map(|pair| pair.split_once('='));
        all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let mut all = pairs(kept);
    all.extend(pairs(&cookies(answer)));
    all.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ")
}

#[tokio::test]
async fn a_sign_in_is_prolonged_without_anybody_noticing() {
    let (scene, issuer) = scene().await;
    let kept = signed_in(&scene).await;
    for secret in [ACCESS, REFRESH] {
        assert!(!kept.contains(secret), "a browser keeps it locked");
    }
    let path = "/api/v1/applications";
    let quiet = as_browser(&scene, path, &kept).await;
    assert_eq!((quiet.status.as_u16(), cookies(&quiet).as_str(), issuer.renewals()), (200, "", 0));
    // An hour later the issuer's token is over.
    scene.advance(3601);
    let now = scene.now().as_second();
    issuer.says(json!({"iat": now, "exp": now + 3600}));
    let [one, two] = [(); 2].map(|()| as_browser(&scene, path, &kept));
    let (one, two) = futures::join!(one, two);
    assert_eq!((one.status.as_u16(), two.status.as_u16()), (200, 200), "{}{}", one.text, two.text);
    assert_eq!(issuer.renewals(), 1, "who asks at once shares a renewal");
    let newer = after(&kept, &one);
    assert_ne!(newer, kept);
    let quiet = as_browser(&scene, path, &newer).await;
    assert_eq!((quiet.status.as_u16(), cookies(&quiet).as_str()), (200, ""));
    // A call that fails keeps what was renewed too.
    scene.advance(3601);
    let now = scene.now().as_second();
    issuer.says(json!({"iat": now, "exp": now + 3600}));
    let failed = as_browser(&scene, "/api/v1/gpgkeys", &newer).await;
    assert_eq!(failed.status, 403);
    let newest = after(&newer, &failed);
    assert_eq!(as_browser(&scene, path, &newest).await.status, 200);

    // Who has signed out is not let in again by a copy of what was kept.
    as_browser(&scene, "/auth/logout", &newest).await;
    scene.advance(3601);
    let over = as_browser(&scene, path, &newest).await;
    assert_eq!(over.status, 401, "{}", over.text);
}

#[tokio::test]
async fn a_token_of_somebody_else_prolongs_nothing() {
    let (scene, issuer) = scene().await;
    let kept = signed_in(&scene).await;
    scene.advance(3601);
    let now = scene.now().as_second();
    issuer.says(json!({"sub": "u-18", "iat": now, "exp": now + 3600}));
    let refused = as_browser(&scene, "/api/v1/applications", &kept).await;
    assert_eq!(refused.status, 401, "{}", refused.text);
    let spoiled = kept.replace("argocd.oidc=", "argocd.oidc=A");
    assert_eq!(as_browser(&scene, "/api/v1/applications", &spoiled).await.status, 401);
}

#[tokio::test]
async fn groups_are_asked_for_at_the_issuer_and_believed_for_a_while() {
    let (scene, issuer) =
        scene_with(json!({"enableUserInfoGroups": true, "userInfoCacheExpiration": "2m"})).await;
    let kept = signed_in(&scene).await;
    let groups = async |kept: &str| {
        let answer = as_browser(&scene, "/api/v1/session/userinfo", kept).await;
        (answer.json()["groups"].clone(), answer)
    };
    assert_eq!(groups(&kept).await.0, json!(["ops", "far"]));
    issuer.tells(json!({"sub": "u-17", "groups": ["near"]}));
    assert_eq!(groups(&kept).await.0, json!(["ops", "far"]), "believed for now");
    scene.advance(121);
    let (newer, answer) = groups(&kept).await;
    assert_eq!(newer, json!(["ops", "near"]));
    let kept = after(&kept, &answer);
    issuer.tells(json!({"sub": "u-18", "groups": ["admins"]}));
    scene.advance(121);
    assert_eq!(groups(&kept).await.0, json!(["ops"]), "of somebody else nothing is believed");
}

#[tokio::test]
async fn groups_are_not_asked_for_unless_that_is_set() {
    let (scene, _issuer) = scene().await;
    let kept = signed_in(&scene).await;
    let told = as_browser(&scene, "/api/v1/session/userinfo", &kept).await.json();
    assert_eq!(told["groups"], json!(["ops"]));
    let (scene, issuer) =
        scene_with(json!({"enableUserInfoGroups": true, "userInfoPath": "/elsewhere/info"})).await;
    issuer.tells(json!({"sub": "u-17", "groups": "one"}));
    let kept = signed_in(&scene).await;
    let told = as_browser(&scene, "/api/v1/session/userinfo", &kept).await.json();
    assert_eq!(told["groups"], json!(["ops", "one"]));
}
