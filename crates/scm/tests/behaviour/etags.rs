//! What has not changed is not sent again.

use baton_api::scm::ScmFilter;
use baton_scm::{Kind, Settings};
use serde_json::{Value, json};

use crate::server::{Host, Objects, Row};
use crate::{REPOS, branch, github, hosts, repo, settings};

fn pages(second: &str, etag: &str) -> Vec<Row> {
    vec![
        Row::get(REPOS)
            .body(json!([repo(1, "billing")]))
            .reply("etag", "\"one\"")
            .reply("link", "<{host}/organizations/1/repos?page=2>; rel=\"next\""),
        Row::get(REPOS).query("page", "2").body(json!([repo(2, second)])).reply("etag", etag),
        branch("billing").reply("etag", "W/\"b\""),
        branch(second),
    ]
}

#[tokio::test]
async fn an_unchanged_answer_is_not_sent_again_and_counts_in_full() {
    let host = Host::start(pages("web", "\"two\"")).await;
    let hosts = hosts(settings());
    let (generator, objects) = (github(&host.url), Objects::token("github", "token", "t"));
    let first = hosts.repositories(&generator, &objects).await.expect("both pages are there");
    let second = hosts.repositories(&generator, &objects).await.expect("both pages are known");
    assert_eq!(first.len(), 2);
    assert_eq!(first, second);
    let asked: Vec<Option<String>> = host.headers()[5..]
        .iter()
        .map(|headers| headers.get("if-none-match").map(|etag| etag.to_str().expect("text").to_owned()))
        .collect();
    let expected = [Some("\"one\""), Some("\"two\""), Some("\"one\""), Some("W/\"b\""), None];
    assert_eq!(asked, expected.map(|etag| etag.map(str::to_owned)));

    host.answer(pages("edge", "\"three\""));
    let third = hosts.repositories(&generator, &objects).await.expect("the second page is new");
    assert_eq!(third.iter().map(|found| found.repository.as_str()).collect::<Vec<_>>(), ["billing", "edge"]);
}

#[tokio::test]
async fn what_one_user_was_told_is_not_known_to_another() {
    let host = Host::start(vec![Row::get(REPOS).body(json!([])).reply("etag", "\"one\"")]).await;
    let hosts = hosts(settings());
    for token in ["first", "second"] {
        let objects = Objects::token("github", "token", token);
        hosts.repositories(&github(&host.url), &objects).await.expect("the list is there");
    }
    assert!(host.headers().iter().all(|headers| !headers.contains_key("if-none-match")));
}

#[tokio::test]
async fn without_a_cache_everything_is_asked_for_anew() {
    let host = Host::start(vec![Row::get(REPOS).body(json!([])).reply("etag", "\"one\"")]).await;
    let hosts = hosts(Settings { cache_bytes: 0, ..settings() });
    let objects = Objects::token("github", "token", "t");
    for _ in 0..2 {
        hosts.repositories(&github(&host.url), &objects).await.expect("the list is there");
    }
    assert!(host.headers().iter().all(|headers| !headers.contains_key("if-none-match")));
}

#[tokio::test]
async fn not_modified_without_being_asked_is_an_error() {
    let host = Host::start(vec![Row::get(REPOS).status(304)]).await;
    let objects = Objects::token("github", "token", "t");
    let error =
        hosts(settings()).repositories(&github(&host.url), &objects).await.expect_err("nothing is known");
    assert_eq!(error.kind(), Kind::Protocol);
}

#[tokio::test]
async fn a_last_page_that_is_full_is_asked_for_anew_as_another_may_follow() {
    let full: Vec<Value> = (0..100).map(|id| repo(id, &format!("repo-{id}"))).collect();
    let list = Row::get(REPOS).body(full.into()).reply("etag", "\"one\"");
    let host = Host::start(vec![list.clone()]).await;
    let hosts = hosts(settings());
    let objects = Objects::token("github", "token", "t");
    let mut generator = github(&host.url);
    generator.filters = vec![ScmFilter { repository_match: Some("^none$".into()), ..ScmFilter::default() }];
    hosts.repositories(&generator, &objects).await.expect("the list is there");

    let next = "<{host}/organizations/1/repos?page=2>; rel=\"next\"";
    host.answer(vec![
        list.reply("link", next),
        Row::get(REPOS).query("page", "2").body(json!([repo(100, "none")])),
        branch("none"),
    ]);
    let found = hosts.repositories(&generator, &objects).await.expect("both pages are there");
    assert_eq!(found.iter().map(|found| found.repository.as_str()).collect::<Vec<_>>(), ["none"]);
}
