//! Calls to GitHub are counted.

use baton_scm::Settings;
use serde_json::json;

use crate::server::{Host, Objects, Row};
use crate::{REPOS, branch, github, hosts, repo, scm, settings};

#[tokio::test]
async fn calls_to_github_are_counted_by_path_and_status_until_forgotten() {
    let list = Row::get(REPOS)
        .body(json!([repo(1, "billing")]))
        .reply("x-ratelimit-limit", "5000")
        .reply("x-ratelimit-remaining", "4990")
        .reply("x-ratelimit-used", "10")
        .reply("x-ratelimit-reset", "4102444800")
        .reply("x-ratelimit-resource", "core");
    let rows = vec![Row::get(REPOS).status(502).at_most(1), list, branch("billing")];
    let host = Host::start(rows).await;
    let hosts = hosts(Settings { github_metrics: true, ..settings() });
    let objects = Objects::token("github", "token", "t");
    hosts.repositories(&github(&host.url), &objects).await.expect("the list is there");

    let calls = hosts.github_calls();
    let paths: Vec<&str> = calls.iter().map(|calls| calls.endpoint.as_str()).collect();
    assert_eq!(paths, [REPOS, "/api/v3/repos/acme/billing/branches/main"]);
    let list = &calls[0];
    assert_eq!(
        (list.namespace.as_str(), list.name.as_str(), list.method.as_str()),
        ("argocd", "fleet", "GET")
    );
    assert_eq!(list.requests.iter().collect::<Vec<_>>(), [(&200, &1), (&502, &1)]);
    assert_eq!(list.durations.count, 2);
    assert!(list.durations.sum > 0.0);
    let limit = list.rate_limit.as_ref().expect("the host said it");
    assert_eq!((limit.remaining, limit.limit, limit.used), (Some(4990), Some(5000), Some(10)));
    assert_eq!((limit.reset, limit.resource.as_str()), (Some(4_102_444_800), "core"));
    assert_eq!(calls[1].rate_limit, None);

    hosts.forget("argocd", "another");
    assert_eq!(hosts.github_calls().len(), 2);
    hosts.forget("argocd", "fleet");
    assert!(hosts.github_calls().is_empty());
}

#[tokio::test]
async fn other_hosts_and_calls_that_are_not_to_be_counted_are_not() {
    let rows =
        vec![Row::get(REPOS).body(json!([])), Row::get("/api/v4/groups/fleet/projects").body(json!([]))];
    let host = Host::start(rows).await;
    let counting = hosts(Settings { github_metrics: true, ..settings() });
    let gitlab = scm(json!({"gitlab": {"group": "fleet", "api": host.url}}));
    counting.repositories(&gitlab, &Objects::default()).await.expect("the list is there");
    assert!(counting.github_calls().is_empty());

    let silent = hosts(settings());
    let objects = Objects::token("github", "token", "t");
    silent.repositories(&github(&host.url), &objects).await.expect("the list is there");
    assert!(silent.github_calls().is_empty());
}
