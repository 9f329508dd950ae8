//! Hosts on bad days.

use std::time::Duration;

use baton_scm::{Kind, ScmError, Settings};
use serde_json::json;

use crate::server::{Host, Objects, Row};
use crate::{REPOS, branch, github, hosts, repo, settings};

fn token() -> Objects {
    Objects::token("github", "token", "ghp_do-not-show")
}

async fn failure(host: &Host, settings: Settings) -> ScmError {
    let outcome = hosts(settings).repositories(&github(&host.url), &token()).await;
    outcome.expect_err("the host answers nothing that can be used")
}

#[tokio::test]
async fn a_host_out_of_order_for_a_moment_is_asked_again() {
    for status in [502, 503, 504] {
        let rows = vec![
            Row::get(REPOS).status(status).text("upstream is away").at_most(2),
            Row::get(REPOS).body(json!([repo(1, "billing")])),
            branch("billing"),
        ];
        let host = Host::start(rows).await;
        let found = hosts(settings()).repositories(&github(&host.url), &token()).await;
        assert_eq!(found.expect("the third answer is good").len(), 1, "after {status}");
        assert_eq!(host.requests().len(), 4);
    }
}

#[tokio::test]
async fn a_host_that_stays_out_of_order_is_given_up() {
    let host = Host::start(vec![Row::get(REPOS).status(502)]).await;
    let error = failure(&host, Settings { attempts: 3, ..settings() }).await;
    assert_eq!(error.kind(), Kind::Network);
    assert!(error.to_string().contains("502 Bad Gateway"), "{error}");
    assert_eq!(host.requests().len(), 3);
}

#[tokio::test]
async fn a_host_that_fails_is_not_asked_again() {
    for (status, kind) in [(500, Kind::Network), (400, Kind::Protocol), (404, Kind::NotFound)] {
        let host = Host::start(vec![Row::get(REPOS).status(status)]).await;
        assert_eq!(failure(&host, settings()).await.kind(), kind);
        assert_eq!(host.requests().len(), 1, "after {status}");
    }
}

#[tokio::test]
async fn a_body_that_ends_early_is_asked_for_again() {
    let body = json!([repo(1, "billing")]);
    let rows = vec![
        Row::get(REPOS).body(body.clone()).cut(20).at_most(1),
        Row::get(REPOS).body(body),
        branch("billing"),
    ];
    let host = Host::start(rows).await;
    let found = hosts(settings()).repositories(&github(&host.url), &token()).await;
    assert_eq!(found.expect("the second answer is whole").len(), 1);
}

#[tokio::test]
async fn a_body_that_always_ends_early_is_no_answer() {
    let host = Host::start(vec![Row::get(REPOS).body(json!([repo(1, "billing")])).cut(20)]).await;
    let error = failure(&host, Settings { attempts: 2, ..settings() }).await;
    assert_eq!(error.kind(), Kind::Network);
    assert_eq!(host.requests().len(), 2);
}

#[tokio::test]
async fn silence_ends_with_the_timeout_and_is_not_asked_again() {
    let host = Host::start(vec![Row::get(REPOS).silent()]).await;
    let error = failure(&host, Settings { timeout: Duration::from_millis(50), ..settings() }).await;
    assert_eq!(error.kind(), Kind::Network);
    assert!(error.to_string().contains("no answer in time"), "{error}");
    assert_eq!(host.requests().len(), 1);
}

#[tokio::test]
async fn all_requests_together_end_with_the_deadline() {
    let host = Host::start(vec![Row::get(REPOS).silent()]).await;
    let error = failure(&host, Settings { deadline: Duration::from_millis(50), ..settings() }).await;
    assert_eq!(error.kind(), Kind::Network);
    assert!(error.to_string().contains("needed more than"), "{error}");
}

#[tokio::test]
async fn nobody_listening_is_a_network_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
    let url = format!("http://{}", listener.local_addr().expect("a bound socket has an address"));
    drop(listener);
    let error = hosts(settings()).repositories(&github(&url), &token()).await.expect_err("nobody is there");
    assert_eq!(error.kind(), Kind::Network);
}

#[tokio::test]
async fn a_large_body_is_not_read_to_its_end() {
    let body = json!([{"id": 1, "name": "a".repeat(4_000)}]);
    let host = Host::start(vec![Row::get(REPOS).body(body.clone())]).await;
    let error = failure(&host, Settings { max_body: 1_000, ..settings() }).await;
    assert_eq!(error.kind(), Kind::Limit);
    assert!(error.to_string().contains("larger than 1000 bytes"), "{error}");

    // Without a length the host may send for ever.
    let host = Host::start(vec![Row::get(REPOS).body(body).endless()]).await;
    let error = failure(&host, Settings { max_body: 1_000_000, ..settings() }).await;
    assert_eq!(error.kind(), Kind::Limit);
}

#[tokio::test]
async fn a_large_body_of_a_refusal_does_not_hide_the_refusal() {
    let host = Host::start(vec![Row::get(REPOS).status(401).text(&"x".repeat(4_000))]).await;
    let error = failure(&host, Settings { max_body: 1_000, ..settings() }).await;
    assert_eq!(error.kind(), Kind::Unauthorized);
}

#[tokio::test]
async fn no_error_shows_a_token() {
    let cases = [
        Row::get(REPOS).status(401),
        Row::get(REPOS).status(500).body(json!({"message": "went wrong\r\nX-Fake: header"})),
        Row::get(REPOS).text("[{"),
        Row::get(REPOS).body(json!([])).cut(1),
    ];
    for row in cases {
        let host = Host::start(vec![row]).await;
        let error = failure(&host, Settings { attempts: 1, ..settings() }).await;
        let text = format!("{error} {error:?}");
        assert!(!text.contains("do-not-show"), "{text}");
        assert!(!error.to_string().contains('\n'), "{error}");
    }
    let objects = token();
    let secret = baton_scm::Lookup::secret(&objects, "github").await.expect("it is there");
    assert!(!format!("{secret:?}").contains("do-not-show"));
}

#[tokio::test]
async fn a_token_that_no_header_can_carry_is_refused_without_showing_it() {
    let host = Host::start(vec![]).await;
    let objects = Objects::token("github", "token", "ghp_do-not-show\n");
    let error =
        hosts(settings()).repositories(&github(&host.url), &objects).await.expect_err("it has a newline");
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(!error.to_string().contains("do-not-show"), "{error}");
    assert!(host.requests().is_empty());
}
