//! Hosts asked over real HTTP: servers in the tests answer as the hosts document, and as they do on bad days.

mod etags;
mod faults;
mod github_app;
mod injection;
mod metrics;
mod paging;
mod proxy;
mod rate_limits;
mod redirects;
mod server;
mod switches;
mod tables;
mod tls;

use std::time::Duration;

use baton_api::pull_request::PullRequestGenerator;
use baton_api::scm::ScmProviderGenerator;
use baton_scm::{Hosts, Proxy, Settings};
use serde_json::{Value, json};

/// Settings for hosts on the loopback.
fn settings() -> Settings {
    Settings {
        proxy: Proxy::Direct,
        retry_delay: Duration::from_millis(1),
        longest_wait: Duration::ZERO,
        ..Settings::default()
    }
}

fn hosts(settings: Settings) -> Hosts {
    Hosts::new(settings).expect("the settings can be used")
}

/// All repositories of GitHub's organisation `acme` at a URL, asked with the token in `Objects::token("github", "token", …)`.
fn github(url: &str) -> ScmProviderGenerator {
    scm(json!({"github": {
        "organization": "acme", "api": url, "tokenRef": {"secretName": "github", "key": "token"},
    }}))
}

fn scm(generator: Value) -> ScmProviderGenerator {
    serde_json::from_value(generator).expect("the generator is one")
}

fn pull_request(generator: Value) -> PullRequestGenerator {
    serde_json::from_value(generator).expect("the generator is one")
}

/// A repository as GitHub lists it.
fn repo(id: i64, name: &str) -> Value {
    json!({
        "id": id, "name": name, "owner": {"login": "acme"}, "default_branch": "main", "topics": [],
        "ssh_url": format!("git@github.example.com:acme/{name}.git"),
        "clone_url": format!("https://github.example.com/acme/{name}.git"), "archived": false,
    })
}

/// The row for its default branch.
fn branch(name: &str) -> server::Row {
    let body = json!({"name": "main", "commit": {"sha": "5f2c1d0e9b8a7f6e5d4c3b2a190817263544f0e1"}});
    server::Row::get(&format!("/api/v3/repos/acme/{name}/branches/main")).body(body)
}

const REPOS: &str = "/api/v3/orgs/acme/repos";
