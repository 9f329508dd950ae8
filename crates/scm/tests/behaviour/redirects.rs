//! Credentials go to the host they are for.

use baton_scm::Kind;
use serde_json::json;

use crate::server::{Host, Objects, Row};
use crate::{REPOS, github, hosts, scm, settings};

#[tokio::test]
async fn a_redirect_on_the_same_host_is_followed_with_the_token() {
    let rows = vec![
        Row::get(REPOS).status(301).reply("location", "{host}/api/v3/organizations/1/repos"),
        Row::get("/api/v3/organizations/1/repos").header("authorization", "Bearer t").body(json!([])),
    ];
    let host = Host::start(rows).await;
    let found =
        hosts(settings()).repositories(&github(&host.url), &Objects::token("github", "token", "t")).await;
    assert_eq!(found.expect("the organisation was renamed"), Vec::new());
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() {
    let other = Host::start(vec![Row::get(REPOS).body(json!([]))]).await;
    for status in [301, 302, 303, 307, 308] {
        let location = format!("{}{REPOS}", other.url);
        let host = Host::start(vec![Row::get(REPOS).status(status).reply("location", &location)]).await;
        let objects = Objects::token("github", "token", "t");
        let error =
            hosts(settings()).repositories(&github(&host.url), &objects).await.expect_err("it leads away");
        assert_eq!(error.kind(), Kind::Protocol);
        assert!(error.to_string().contains("is not followed"), "{error}");
    }
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn redirects_without_end_are_given_up() {
    let host =
        Host::start(vec![Row::get(REPOS).status(302).reply("location", "{host}/api/v3/orgs/acme/repos")])
            .await;
    let objects = Objects::token("github", "token", "t");
    let error =
        hosts(settings()).repositories(&github(&host.url), &objects).await.expect_err("it goes in circles");
    assert_eq!(error.kind(), Kind::Protocol);
    assert!(host.requests().len() <= 7, "{}", host.requests().len());
}

#[tokio::test]
async fn an_api_with_a_password_or_of_another_protocol_is_refused() {
    for api in
        ["http://user:do-not-show@127.0.0.1:1/", "file:///etc/passwd", "ftp://127.0.0.1/", "127.0.0.1", "::"]
    {
        let generator = scm(json!({"github": {"organization": "acme", "api": api}}));
        let error =
            hosts(settings()).repositories(&generator, &Objects::default()).await.expect_err("no API");
        assert_eq!(error.kind(), Kind::Invalid, "{api}");
        assert!(!error.to_string().contains("do-not-show"), "{error}");
    }
}
