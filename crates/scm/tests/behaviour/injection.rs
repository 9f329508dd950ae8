//! Every fault at every request of every table: an error, and never a part of the result.

use baton_scm::{Hosts, Kind, Settings};
use serde_json::json;

use crate::server::{Host, Row};
use crate::tables::{Case, files};
use crate::{hosts, settings};

/// Answers that leave open what a good one would have been.
fn faults() -> Vec<(&'static str, Row)> {
    let row = || Row::get("/");
    vec![
        ("500", row().status(500).body(json!({"message": "Server Error"}))),
        ("401", row().status(401).body(json!({"message": "Bad credentials"}))),
        ("403", row().status(403).body(json!({"message": "Forbidden"}))),
        ("a page in HTML", row().text("<html>Please sign in</html>")),
        ("half a body", row().body(json!([{"id": 1}, {"id": 2}])).cut(9)),
        ("nothing", row().text("")),
        ("a redirect away", row().status(302).reply("location", "http://127.0.0.1:1/elsewhere")),
    ]
}

/// A table that ends with a result, being served, and the number of requests to get there.
struct Good {
    name: String,
    case: Case,
    host: Host,
    hosts: Hosts,
    requests: usize,
}

async fn good_tables(attempts: u32) -> Vec<Good> {
    // Clients cost more than requests: what needs no settings of its own shares them.
    let shared = hosts(Settings { attempts, ..settings() });
    let mut tables = Vec::new();
    for file in files() {
        let case = Case::read(&file);
        let host = Host::start(case.requests.clone()).await;
        if case.expected(&host).is_none() {
            continue;
        }
        let hosts = if case.needs_settings() {
            hosts(Settings { attempts, ..case.settings(&host) })
        } else {
            shared.clone()
        };
        case.ask(&host, &hosts).await.expect("the table ends with a result");
        let requests = host.requests().len();
        tables.push(Good { name: file.display().to_string(), case, host, hosts, requests });
    }
    tables
}

#[tokio::test]
async fn a_fault_at_any_request_is_an_error_and_never_a_part_of_the_result() {
    let mut survivors = Vec::new();
    let mut injected = 0;
    for Good { name, case, host, hosts, requests } in good_tables(1).await {
        for number in 0..requests {
            for (fault, row) in faults() {
                host.fail_at(number, row);
                if let Ok(found) = case.ask(&host, &hosts).await {
                    let request = host.requests().get(number).cloned();
                    survivors.push(format!("{name}: {fault} at {request:?} gives {found}"));
                }
                assert_eq!(host.requests().len(), number + 1, "{name}: {fault} was met");
                injected += 1;
            }
        }
    }
    assert!(injected > 1_000, "only {injected} faults were injected");
    assert!(survivors.is_empty(), "{}", survivors.join("\n"));
}

#[tokio::test]
async fn a_rate_limit_at_any_request_is_an_error_and_ends_all_requests() {
    for Good { name, case, host, hosts, requests } in good_tables(3).await {
        let number = requests / 2;
        host.fail_at(number, Row::get("/").status(429).reply("retry-after", "60"));
        for _ in 0..2 {
            let error = case.ask(&host, &hosts).await.expect_err("the host refuses");
            assert!(matches!(error.kind(), Kind::RateLimited { .. }), "{name}: {error}");
        }
        assert_eq!(host.requests().len(), number + 1, "{name}");
    }
}

#[tokio::test]
async fn a_moment_out_of_order_at_any_request_changes_nothing() {
    for Good { name, case, host, hosts, requests } in good_tables(2).await {
        for number in 0..requests {
            host.fail_at(number, Row::get("/").status(502));
            let found = case.ask(&host, &hosts).await;
            let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(Some(found), case.expected(&host), "{name}");
            assert_eq!(host.requests().len(), requests + 1, "{name}");
        }
    }
}
