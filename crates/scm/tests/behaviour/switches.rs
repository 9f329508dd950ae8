//! What the operator allows.

use baton_scm::{Kind, Settings};
use serde_json::json;

use crate::server::{Host, Objects, Row};
use crate::{REPOS, hosts, pull_request, scm, settings};

#[tokio::test]
async fn hosts_can_be_switched_off() {
    let hosts = hosts(Settings { enabled: false, ..settings() });
    let generator = scm(json!({"github": {"organization": "acme"}}));
    let error = hosts.repositories(&generator, &Objects::default()).await.expect_err("they are off");
    assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Disabled, "scm providers are disabled"));
    let generator = pull_request(json!({"github": {"owner": "acme", "repo": "billing"}}));
    let error = hosts.pull_requests(&generator, &Objects::default()).await.expect_err("they are off");
    assert_eq!(error.kind(), Kind::Disabled);
}

#[tokio::test]
async fn only_listed_apis_are_asked_letter_by_letter() {
    let host = Host::start(vec![Row::get(REPOS).body(json!([]))]).await;
    let allowed = vec!["https://git.example.com".to_owned(), host.url.clone()];
    let hosts = hosts(Settings { allowed_apis: allowed, ..settings() });
    let of = |api: &str| scm(json!({"github": {"organization": "acme", "api": api}}));
    assert!(hosts.repositories(&of(&host.url), &Objects::default()).await.is_ok());
    for api in [format!("{}/", host.url), host.url.replace("http", "HTTP"), "http://127.0.0.1:1".into()] {
        let error = hosts.repositories(&of(&api), &Objects::default()).await.expect_err("it is not listed");
        assert_eq!(error.kind(), Kind::NotAllowed);
        assert!(
            error.to_string().contains("must use one of the following: https://git.example.com, "),
            "{error}"
        );
    }
    assert_eq!(host.requests().len(), 1);
}

#[tokio::test]
async fn every_host_that_can_name_an_api_is_held_to_the_list() {
    let hosts = hosts(Settings { allowed_apis: vec!["https://git.example.com".into()], ..settings() });
    let reference = json!({"secretName": "s", "key": "k"});
    let api = "http://127.0.0.1:1";
    let generators = [
        json!({"github": {"organization": "a", "api": api}}),
        json!({"gitlab": {"group": "a", "api": api}}),
        json!({"gitea": {"owner": "a", "api": api}}),
        json!({"bitbucketServer": {"project": "a", "api": api}}),
        json!({"azureDevOps": {"organization": "a", "teamProject": "b", "accessTokenRef": reference, "api": api}}),
    ];
    for generator in generators {
        let outcome = hosts.repositories(&scm(generator.clone()), &Objects::default()).await;
        assert_eq!(outcome.expect_err("not listed").kind(), Kind::NotAllowed, "{generator}");
    }
    let generators = [
        json!({"github": {"owner": "a", "repo": "b", "api": api}}),
        json!({"gitlab": {"project": "a", "api": api}}),
        json!({"gitea": {"owner": "a", "repo": "b", "api": api}}),
        json!({"bitbucketServer": {"project": "a", "repo": "b", "api": api}}),
        json!({"bitbucket": {"owner": "a", "repo": "b", "api": api}}),
        json!({"azuredevops": {"organization": "a", "project": "b", "repo": "c", "api": api}}),
    ];
    for generator in generators {
        let outcome = hosts.pull_requests(&pull_request(generator.clone()), &Objects::default()).await;
        assert_eq!(outcome.expect_err("not listed").kind(), Kind::NotAllowed, "{generator}");
    }
}

#[tokio::test]
async fn a_generator_without_an_api_is_not_held_to_the_list() {
    let settings = Settings { allowed_apis: vec!["https://git.example.com".into()], ..settings() };
    let generator = scm(json!({"github": {
        "organization": "acme", "tokenRef": {"secretName": "gone", "key": "token"},
    }}));
    let error =
        hosts(settings).repositories(&generator, &Objects::default()).await.expect_err("no such Secret");
    assert_eq!(error.kind(), Kind::Invalid);
}

#[test]
fn futures_can_be_moved_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    let hosts = hosts(settings());
    let (repositories, requests) = (scm(json!({})), pull_request(json!({})));
    let objects = Objects::default();
    is_send(&hosts.repositories(&repositories, &objects));
    is_send(&hosts.pull_requests(&requests, &objects));
}
