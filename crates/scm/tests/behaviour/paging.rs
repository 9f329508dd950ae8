//! Lists that do not end, and names that would lead elsewhere.

use baton_scm::{Kind, Settings};
use serde_json::{Value, json};

use crate::server::{Host, Objects, Row};
use crate::{REPOS, branch, github, hosts, pull_request, repo, scm, settings};

fn short() -> Settings {
    Settings { max_pages: 5, ..settings() }
}

fn objects() -> Objects {
    Objects::token("s", "k", "t")
}

#[tokio::test]
async fn a_list_without_end_is_an_error_and_not_a_part_of_it() {
    let github: Vec<Row> = (1..20)
        .map(|page| {
            let row = Row::get(REPOS).body(json!([repo(page, &format!("repo-{page}"))]));
            let row = if page == 1 { row } else { row.query("page", &page.to_string()) };
            let next = page + 1;
            row.reply("link", &format!("<{{host}}/organizations/1/repos?page={next}>; rel=\"next\""))
        })
        .collect();
    let host = Host::start(github).await;
    let generator = scm(json!({"github": {"organization": "acme", "api": host.url}}));
    let error = hosts(short()).repositories(&generator, &objects()).await.expect_err("it does not end");
    assert_eq!(error.kind(), Kind::Limit);
    assert!(host.requests().len() <= 6, "{:?}", host.requests());

    let path = "/2.0/repositories/fleet/billing/pullrequests/";
    let next = |page| json!({"values": [], "next": format!("{{host}}{path}?page={page}")});
    let rows = vec![Row::get(path).body(next(2)), Row::get(path).query("page", "2").body(next(1))];
    let host = Host::start(rows).await;
    let api = format!("{}/2.0", host.url);
    let generator = pull_request(json!({"bitbucket": {"owner": "fleet", "repo": "billing", "api": api}}));
    let error = hosts(short()).pull_requests(&generator, &objects()).await.expect_err("it does not end");
    assert_eq!(error.kind(), Kind::Limit);

    let rows = vec![
        Row::get("/acme/Fleet/_apis/git/repositories")
            .body(json!({"value": []}))
            .reply("x-ms-continuationtoken", "again"),
    ];
    let host = Host::start(rows).await;
    let generator = scm(json!({"azureDevOps": {
        "organization": "acme", "teamProject": "Fleet", "api": host.url,
        "accessTokenRef": {"secretName": "s", "key": "k"},
    }}));
    let error = hosts(short()).repositories(&generator, &objects()).await.expect_err("it does not end");
    assert_eq!(error.kind(), Kind::Limit);
}

#[tokio::test]
async fn a_list_that_goes_back_is_an_error() {
    let path = "/2.0/repositories/fleet/billing/pullrequests/";
    let next = json!({"values": [], "next": format!("{{host}}{path}?pagelen=50")});
    let host = Host::start(vec![Row::get(path).body(next)]).await;
    let api = format!("{}/2.0", host.url);
    let generator = pull_request(json!({"bitbucket": {"owner": "fleet", "repo": "billing", "api": api}}));
    let error = hosts(short()).pull_requests(&generator, &objects()).await.expect_err("it does not end");
    assert_eq!((error.kind(), host.requests().len()), (Kind::Protocol, 1));

    let link = "<{host}/organizations/1/repos?page=1>; rel=\"next\"";
    let host = Host::start(vec![Row::get(REPOS).body(json!([])).reply("link", link)]).await;
    let generator = scm(json!({"github": {"organization": "acme", "api": host.url}}));
    let error = hosts(short()).repositories(&generator, &objects()).await.expect_err("it does not end");
    assert_eq!(error.kind(), Kind::Protocol);
    assert_eq!(host.requests().len(), 1);
}

#[tokio::test]
async fn a_next_page_without_a_number_is_an_error() {
    let link = "<{host}/organizations/1/repos?after=Y3Vyc29y>; rel=\"next\"";
    let host = Host::start(vec![Row::get(REPOS).body(json!([])).reply("link", link)]).await;
    let generator = scm(json!({"github": {"organization": "acme", "api": host.url}}));
    let error = hosts(short()).repositories(&generator, &objects()).await.expect_err("there is more");
    assert_eq!(error.kind(), Kind::Protocol);
}

#[tokio::test]
async fn too_many_items_are_an_error() {
    let repos: Vec<Value> = (0..30).map(|id| repo(id, &format!("repo-{id}"))).collect();
    let host = Host::start(vec![Row::get(REPOS).body(repos.into())]).await;
    let generator = scm(json!({"github": {"organization": "acme", "api": host.url}}));
    let settings = Settings { max_items: 20, ..settings() };
    let error = hosts(settings).repositories(&generator, &objects()).await.expect_err("there are too many");
    assert_eq!(error.kind(), Kind::Limit);
}

#[tokio::test]
async fn a_next_link_to_another_host_is_a_number_and_no_address() {
    let other = Host::start(vec![]).await;
    let link = format!("<{}/organizations/1/repos?page=2>; rel=\"next\"", other.url);
    let rows = vec![
        Row::get(REPOS).body(json!([repo(1, "billing")])).reply("link", &link),
        Row::get(REPOS).query("page", "2").body(json!([repo(2, "web")])),
        branch("billing"),
        branch("web"),
    ];
    let host = Host::start(rows).await;
    let objects = Objects::token("github", "token", "t");
    let found =
        hosts(settings()).repositories(&github(&host.url), &objects).await.expect("both pages are there");
    assert_eq!(found.len(), 2);
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn azure_pull_requests_are_read_beyond_the_first_hundred() {
    let pull = |number: i64| {
        json!({
            "pullRequestId": number, "title": "t", "repository": {"name": "billing"},
            "sourceRefName": "refs/heads/x", "targetRefName": "refs/heads/main",
            "lastMergeSourceCommit": {"commitId": "c0ffee"}, "createdBy": {"uniqueName": "a@b"},
        })
    };
    let page = |from, to| json!({"value": (from..to).map(pull).collect::<Vec<_>>()});
    let path = "/acme/Fleet/_apis/git/pullrequests";
    let rows = vec![
        Row::get(path).query("$skip", "0").body(page(0, 100)),
        Row::get(path).query("$skip", "100").body(page(100, 200)),
        Row::get(path).query("$skip", "200").body(page(200, 200)),
    ];
    let host = Host::start(rows).await;
    let generator = pull_request(json!({"azuredevops": {
        "organization": "acme", "project": "Fleet", "repo": "billing", "api": host.url,
    }}));
    let found = hosts(settings()).pull_requests(&generator, &objects()).await.expect("all pages are there");
    assert_eq!(found.len(), 200);
    assert_eq!(found.last().map(|request| request.number), Some(199));
    assert_eq!(host.misfits(), Vec::<String>::new());
}

#[tokio::test]
async fn names_that_lead_elsewhere_are_refused_without_a_request() {
    let host = Host::start(vec![]).await;
    for name in ["..", ".", ""] {
        let generator = scm(json!({"github": {"organization": name, "api": host.url}}));
        let error = hosts(settings()).repositories(&generator, &objects()).await.expect_err("no name");
        assert_eq!(error.kind(), Kind::Invalid, "{name:?}");
    }
    assert!(host.requests().is_empty());
}

#[tokio::test]
async fn names_stay_one_segment_whatever_they_hold() {
    let host = Host::start(vec![Row::get("/api/v3/orgs/a%2F..%2F..%2Fuser?x#y/repos").body(json!([]))]).await;
    let generator = scm(json!({"github": {"organization": "a/../../user?x#y", "api": host.url}}));
    let found = hosts(settings()).repositories(&generator, &objects()).await;
    assert_eq!(found.expect("the table knows it"), Vec::new());
    assert_eq!(host.requests(), ["GET /api/v3/orgs/a%2F..%2F..%2Fuser%3Fx%23y/repos?per_page=100"]);
}

#[tokio::test]
async fn paths_that_leave_the_repository_are_refused() {
    let host = Host::start(vec![Row::get(REPOS).body(json!([repo(1, "billing")])), branch("billing")]).await;
    let generator = scm(json!({
        "github": {"organization": "acme", "api": host.url}, "filters": [{"pathsExist": ["deploy/../../../user"]}],
    }));
    let error =
        hosts(settings()).repositories(&generator, &objects()).await.expect_err("the path is refused");
    assert_eq!(error.kind(), Kind::Invalid);
    assert_eq!(host.requests().len(), 2);
}

#[tokio::test]
async fn what_is_listed_twice_is_taken_once() {
    let rows = vec![
        Row::get(REPOS)
            .body(json!([repo(1, "billing"), repo(2, "web")]))
            .reply("link", "<{host}/organizations/1/repos?page=2>; rel=\"next\""),
        Row::get(REPOS).query("page", "2").body(json!([repo(2, "web"), repo(3, "edge")])),
        branch("billing"),
        branch("web"),
        branch("edge"),
    ];
    let host = Host::start(rows).await;
    let objects = Objects::token("github", "token", "t");
    let found =
        hosts(settings()).repositories(&github(&host.url), &objects).await.expect("both pages are there");
    let names: Vec<&str> = found.iter().map(|found| found.repository.as_str()).collect();
    assert_eq!(names, ["billing", "web", "edge"]);
    let lists = host.requests().iter().filter(|request| request.contains("/orgs/")).count();
    assert_eq!((lists, host.requests().len()), (3, 6), "{:?}", host.requests());
}

#[tokio::test]
async fn what_moves_to_a_page_already_read_is_not_missed() {
    let link = "<{host}/organizations/1/repos?page=2>; rel=\"next\"";
    let list = || Row::get(REPOS).reply("link", link);
    let rows = vec![
        list().body(json!([repo(1, "billing"), repo(2, "web")])).at_most(1),
        // Now billing is deleted: edge, the first of the second page, becomes the last of the first.
        list().body(json!([repo(2, "web"), repo(3, "edge")])),
        Row::get(REPOS).query("page", "2").body(json!([repo(4, "infra")])),
        Row::get("/api/v3/repos/acme/billing/branches/main").status(404),
        branch("web"),
        branch("edge"),
        branch("infra"),
    ];
    let host = Host::start(rows).await;
    let objects = Objects::token("github", "token", "t");
    let found =
        hosts(settings()).repositories(&github(&host.url), &objects).await.expect("both pages are there");
    let names: Vec<&str> = found.iter().map(|found| found.repository.as_str()).collect();
    assert_eq!(names, ["web", "infra", "edge"]);
}

#[tokio::test]
async fn a_page_that_cannot_be_looked_at_again_fails_the_list() {
    let link = "<{host}/organizations/1/repos?page=2>; rel=\"next\"";
    let rows = vec![
        Row::get(REPOS).reply("link", link).body(json!([repo(1, "billing")])).at_most(1),
        Row::get(REPOS).status(500),
        Row::get(REPOS).query("page", "2").body(json!([])),
    ];
    let host = Host::start(rows).await;
    let objects = Objects::token("github", "token", "t");
    let error =
        hosts(settings()).repositories(&github(&host.url), &objects).await.expect_err("it may have moved");
    assert_eq!(error.kind(), Kind::Network);
}

#[tokio::test]
async fn an_interface_that_is_gone_is_not_a_repository_that_is_gone() {
    let host = Host::start(vec![Row::get("/2.0/repositories/fleet/billing/pullrequests/").status(410)]).await;
    let generator = pull_request(json!({
        "bitbucket": {"owner": "fleet", "repo": "billing", "api": format!("{}/2.0", host.url)},
        "continueOnRepoNotFoundError": true,
    }));
    let error = hosts(settings()).pull_requests(&generator, &objects()).await.expect_err("nothing is known");
    assert_eq!(error.kind(), Kind::Protocol);
}
