//! Hosts that want to be left alone.

use std::time::Duration;

use baton_scm::{Kind, ScmError, Settings};
use jiff::{Timestamp, ToSpan};
use serde_json::json;

use crate::server::{Host, Objects, Row};
use crate::{REPOS, branch, github, hosts, repo, settings};

fn until(error: &ScmError) -> Timestamp {
    match error.kind() {
        Kind::RateLimited { until } => until,
        kind => panic!("{kind:?} is no rate limit: {error}"),
    }
}

#[tokio::test]
async fn a_host_that_says_when_is_not_asked_before() {
    let host = Host::start(vec![Row::get(REPOS).status(429).reply("retry-after", "120")]).await;
    let hosts = hosts(settings());
    let (generator, objects) = (github(&host.url), Objects::token("github", "token", "t"));
    let before = Timestamp::now();
    let error = hosts.repositories(&generator, &objects).await.expect_err("it refuses");
    let wait = until(&error).duration_since(before).as_secs();
    assert!((118..=125).contains(&wait), "{wait} s");

    host.answer(vec![Row::get(REPOS).body(json!([]))]);
    let again = hosts.repositories(&generator, &objects).await.expect_err("it is too early");
    assert_eq!(until(&again), until(&error));
    assert_eq!(host.requests().len(), 1);
}

#[tokio::test]
async fn another_user_and_another_host_are_not_held_up() {
    let host =
        Host::start(vec![Row::get(REPOS).status(429).at_most(1), Row::get(REPOS).body(json!([]))]).await;
    let other = Host::start(vec![Row::get(REPOS).body(json!([]))]).await;
    let hosts = hosts(settings());
    let objects = Objects::token("github", "token", "first");
    hosts.repositories(&github(&host.url), &objects).await.expect_err("it refuses the first user");

    let second = Objects::token("github", "token", "second");
    assert_eq!(hosts.repositories(&github(&host.url), &second).await.expect("it is free"), Vec::new());
    assert_eq!(hosts.repositories(&github(&other.url), &objects).await.expect("it is free"), Vec::new());
}

#[tokio::test]
async fn nothing_left_holds_the_next_request_back_and_fails_a_list_in_its_middle() {
    let reset = (Timestamp::now() + 30.minutes()).as_second().to_string();
    let list = Row::get(REPOS)
        .body(json!([repo(1, "billing")]))
        .reply("x-ratelimit-remaining", "0")
        .reply("x-ratelimit-reset", &reset);
    let host = Host::start(vec![list, branch("billing")]).await;
    let objects = Objects::token("github", "token", "t");
    let outcome = hosts(settings()).repositories(&github(&host.url), &objects).await;
    let error = outcome.expect_err("the branch cannot be asked for");
    assert_eq!(until(&error).as_second().to_string(), reset);
    assert_eq!(host.requests().len(), 1);
}

#[tokio::test]
async fn a_wait_asked_for_with_503_is_not_cut_short_by_trying_again() {
    let host = Host::start(vec![Row::get(REPOS).status(503).reply("retry-after", "60")]).await;
    let objects = Objects::token("github", "token", "t");
    let error = hosts(settings()).repositories(&github(&host.url), &objects).await.expect_err("it refuses");
    until(&error);
    assert_eq!(host.requests().len(), 1);
}

#[tokio::test]
async fn a_refusal_without_a_limit_holds_nothing_back() {
    let rows = vec![
        Row::get(REPOS)
            .status(403)
            .body(json!({"message": "SSO is needed"}))
            .reply("x-ratelimit-remaining", "10"),
    ];
    let host = Host::start(rows).await;
    let hosts = hosts(settings());
    let objects = Objects::token("github", "token", "t");
    for _ in 0..2 {
        let error = hosts.repositories(&github(&host.url), &objects).await.expect_err("it refuses");
        assert_eq!(error.kind(), Kind::Unauthorized);
    }
    assert_eq!(host.requests().len(), 2);
}

#[tokio::test]
async fn a_short_wait_is_waited_for() {
    let rows = vec![
        Row::get(REPOS).status(429).reply("retry-after", "0").at_most(3),
        Row::get(REPOS).body(json!([])),
    ];
    let host = Host::start(rows).await;
    let patient = Settings { longest_wait: Duration::from_secs(1), ..settings() };
    let objects = Objects::token("github", "token", "t");
    let found = hosts(patient).repositories(&github(&host.url), &objects).await;
    assert_eq!(found.expect("the fourth answer is good"), Vec::new());
    assert_eq!(host.requests().len(), 4);
}

#[tokio::test]
async fn waits_without_end_are_an_error() {
    let host = Host::start(vec![Row::get(REPOS).status(429).reply("retry-after", "0")]).await;
    let patient = Settings { longest_wait: Duration::from_secs(1), ..settings() };
    let objects = Objects::token("github", "token", "t");
    let error =
        hosts(patient).repositories(&github(&host.url), &objects).await.expect_err("it always refuses");
    until(&error);
    assert_eq!(host.requests().len(), 21);
}
