//! Requests through a proxy.

use baton_scm::{Hosts, Kind, Proxy, Settings};
use serde_json::json;

use crate::server::{Host, Objects, Row};
use crate::{REPOS, hosts, scm, settings};

#[tokio::test]
async fn requests_go_through_the_proxy_except_to_hosts_listed() {
    let proxy = Host::start(vec![Row::get(REPOS).body(json!([]))]).await;
    let direct = Host::start(vec![Row::get(REPOS).body(json!([]))]).await;
    let through = Proxy::Url { url: proxy.url.clone(), no_proxy: "127.0.0.1".into() };
    let hosts = hosts(Settings { proxy: through, ..settings() });
    for api in ["http://github.invalid", &direct.url] {
        let generator = scm(json!({"github": {"organization": "acme", "api": api}}));
        hosts.repositories(&generator, &Objects::default()).await.expect("the list is there");
    }
    assert_eq!(proxy.requests(), ["GET http://github.invalid/api/v3/orgs/acme/repos?per_page=100"]);
    assert_eq!(direct.requests().len(), 1);
}

#[test]
fn a_proxy_that_is_no_url_is_refused_at_the_start() {
    let proxy = Proxy::Url { url: "http://user:do-not-show@".into(), no_proxy: String::new() };
    let settings = Settings { proxy, ..settings() };
    assert!(!format!("{settings:?}").contains("do-not-show"));
    let error = Hosts::new(settings).err().expect("it is no URL");
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(!error.to_string().contains("do-not-show"), "{error}");
}
