//! The proxy before an embedded API, over real connections.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use baton_apiserver::{Cluster, Options, Server};
use baton_lag::{Faults, Proxy, serve};
use futures::{StreamExt, TryStreamExt};
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::watcher;
use kube::{Client, Config, ResourceExt};
use tokio::time::Instant;

/// An API, a proxy before it, and a client of each.
struct Place {
    _server: Server,
    proxy: Proxy,
    direct: Client,
    behind: Client,
}

impl Place {
    async fn start(faults: Faults) -> Place {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let cluster = Cluster::memory(Options::default());
        let loopback = "127.0.0.1:0".parse().expect("an address");
        let server = baton_apiserver::serve(cluster, loopback).await.expect("a server");
        let direct = client(&server.kubeconfig()).await;
        let proxy = serve(direct.clone(), faults, loopback).await.expect("a proxy");
        let behind = client(&proxy.kubeconfig()).await;
        Place { _server: server, proxy, direct, behind }
    }

    /// The objects of these tests, past the proxy.
    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.direct.clone(), "default")
    }

    /// The same through the proxy.
    fn seen(&self) -> Api<ConfigMap> {
        Api::namespaced(self.behind.clone(), "default")
    }

    async fn make(&self, name: &str) -> String {
        let map = ConfigMap {
            metadata: kube::api::ObjectMeta { name: Some(name.to_owned()), ..Default::default() },
            ..ConfigMap::default()
        };
        let made = self.maps().create(&PostParams::default(), &map).await.expect("a ConfigMap");
        made.resource_version().expect("a version")
    }

    /// The answer to a raw request through the proxy.
    async fn ask(&self, uri: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let mut request = Request::get(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer =
            self.behind.send(request.body(Body::empty()).expect("a request")).await.expect("an answer");
        let code = answer.status().as_u16();
        let body = answer.into_body().collect_bytes().await.expect("a body");
        (code, String::from_utf8_lossy(&body).into_owned())
    }
}

fn calm() -> Faults {
    Faults {
        seed: 1,
        delay: Duration::ZERO,
        cut: None,
        gone: 0,
        stale_lists: 0,
        stale_consistent_lists: false,
    }
}

async fn client(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).expect("a kubeconfig");
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("a configuration");
    config.default_retry = false;
    Client::try_from(config).expect("a client")
}

fn numbered(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}-{number:03}")).collect()
}

/// The names in the next events of a watch.
async fn names(
    events: impl futures::Stream<Item = kube::Result<WatchEvent<ConfigMap>>>,
    count: usize,
) -> Vec<String> {
    let added = events.try_filter_map(async |event| match event {
        WatchEvent::Added(object) => Ok(Some(object.name_any())),
        _ => Ok(None),
    });
    added.take(count).try_collect().await.expect("events")
}

#[tokio::test]
async fn what_a_client_does_reaches_the_cluster_and_comes_back() {
    let place = Place::start(calm()).await;
    place.make("a").await;
    let mut map = place.seen().get("a").await.expect("it");
    map.data = Some(BTreeMap::from([("key".to_owned(), "x".repeat(500_000))]));
    place.seen().replace("a", &PostParams::default(), &map).await.expect("a large write");
    assert_eq!(place.maps().get("a").await.expect("it").data, map.data);
    place.seen().delete("a", &DeleteParams::default()).await.expect("a deletion");
    let error = place.seen().get("a").await.expect_err("it is gone");
    assert!(matches!(&error, kube::Error::Api(status) if status.code == 404), "{error}");
    assert!(place.behind.apiserver_version().await.is_ok());
    let (code, text) =
        place.ask("/api/v1/namespaces/default/pods?limit=1", &[("accept-encoding", "gzip")]).await;
    assert_eq!(code, 200);
    assert!(text.starts_with('{'), "answers are not compressed: {text:?}");
}

#[tokio::test]
async fn each_watch_keeps_its_order_and_is_late_by_a_delay_of_its_own() {
    let longest = Duration::from_millis(1500);
    let place = Place::start(Faults { delay: longest, ..calm() }).await;
    let from = place.make("first").await;
    let expected = numbered("map", 40);
    let began = Instant::now();
    // Watches of different collections, so each has a fate of its own.
    let selectors: Vec<String> = (0..6).map(|number| format!("metadata.name!=other-{number}")).collect();
    let watches = selectors.iter().map(async |selector| {
        let parameters = WatchParams::default().fields(selector);
        let events = place.seen().watch(&parameters, &from).await.expect("a watch");
        let got = names(events, 40).await;
        (got, began.elapsed())
    });
    let writes = async {
        for name in &expected {
            place.make(name).await;
        }
        began.elapsed()
    };
    let (seen, written) = tokio::join!(futures::future::join_all(watches), writes);
    for (got, _) in &seen {
        assert_eq!(*got, expected);
    }
    // How late the latest is has a least bound; that another is prompt is seen in the counts below.
    let latest = seen.iter().map(|(_, end)| *end).max().expect("some");
    assert!(latest >= written + Duration::from_millis(200), "{latest:?}, written after {written:?}");
    let counts = place.proxy.counts();
    assert_eq!((counts.streams, counts.cuts, counts.gone), (6, 0, 0));
    assert!(counts.events >= 240 && counts.delayed > 0 && counts.delayed < counts.events, "{counts}");
    assert!(counts.longest >= Duration::from_millis(200), "{counts}");
}

#[tokio::test]
async fn a_client_whose_watches_are_cut_and_refused_still_learns_everything() {
    let faults = Faults {
        delay: Duration::from_millis(100),
        cut: Some(Duration::from_millis(200)),
        gone: 50,
        ..calm()
    };
    let place = Place::start(faults).await;
    let expected = numbered("map", 30);
    let mut known: std::collections::BTreeSet<String> = Default::default();
    let follow = async {
        let mut events = pin!(watcher(place.seen(), watcher::Config::default()));
        // As a controller does: an error is waited out, and the watcher goes on.
        while !expected.iter().all(|name| known.contains(name)) || place.proxy.counts().gone == 0 {
            let event = events.next().await.expect("a watcher does not end");
            if let Ok(watcher::Event::Apply(map) | watcher::Event::InitApply(map)) = event {
                known.insert(map.name_any());
            }
        }
    };
    let write = async {
        for name in &expected {
            place.make(name).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::join!(follow, write);
    let counts = place.proxy.counts();
    assert!(counts.cuts > 0 && counts.gone > 0, "{counts}");
}

#[tokio::test]
async fn a_watch_that_goes_on_is_refused_in_both_ways_and_one_that_begins_is_not() {
    let place = Place::start(Faults { gone: 100, ..calm() }).await;
    let from = place.make("a").await;
    let (mut answers, mut events) = (0, 0);
    for number in 0..20 {
        let uri = format!(
            "/api/v1/configmaps?watch=true&fieldSelector=metadata.name!=x{number}&resourceVersion={from}"
        );
        let (code, text) = place.ask(&uri, &[]).await;
        let told: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let status = match code {
            410 => {
                answers += 1;
                &told
            }
            _ => {
                assert_eq!((code, &told["type"]), (200, &"ERROR".into()), "{text}");
                events += 1;
                &told["object"]
            }
        };
        assert_eq!((&status["code"], &status["reason"]), (&410.into(), &"Expired".into()), "{text}");
        assert!(status["message"].as_str().is_some_and(|text| text.contains(&from)), "{text}");
    }
    assert!(answers > 0 && events > 0, "{answers} answers, {events} events");
    for version in ["0", ""] {
        let watch = place.seen().watch(&WatchParams::default(), version).await.expect("a watch");
        assert_eq!(names(watch, 1).await.len(), 1, "{version:?}");
    }
    let protobuf = [("accept", "application/vnd.kubernetes.protobuf;stream=watch,application/json")];
    for number in 0..8 {
        let uri =
            format!("/api/v1/pods?watch=1&resourceVersion={from}&fieldSelector=metadata.name!=x{number}");
        assert_eq!(place.ask(&uri, &protobuf).await.0, 410, "an event would have to be protobuf");
    }
    assert_eq!(place.proxy.counts().gone, 28);
}

#[tokio::test]
async fn a_list_from_a_cache_may_be_old_and_a_consistent_one_is_not() {
    let place = Place::start(Faults { stale_lists: 100, ..calm() }).await;
    let cached = ListParams::default().match_any();
    let listed = async |parameters: &ListParams| -> Vec<String> {
        let list = place.seen().list(parameters).await.expect("a list");
        list.items.iter().map(ResourceExt::name_any).collect()
    };
    place.make("a").await;
    let first = listed(&cached).await;
    assert!(first.contains(&"a".to_owned()), "the first is not older than the cluster");
    place.make("b").await;
    assert_eq!(listed(&cached).await, first, "this one is");
    let newest = listed(&ListParams::default()).await;
    assert!(newest.contains(&"b".to_owned()), "{newest:?}");
    let mut seen = Vec::new();
    for _ in 0..20 {
        seen.push(listed(&cached).await);
    }
    assert!(seen.contains(&first) && seen.contains(&newest), "any that was kept may come again");
    assert_eq!(place.proxy.counts().old_lists, 21);

    let place = Place::start(Faults { stale_lists: 100, stale_consistent_lists: true, ..calm() }).await;
    place.make("a").await;
    let before = place.seen().list(&ListParams::default()).await.expect("a list").items.len();
    place.make("b").await;
    let after = place.seen().list(&ListParams::default()).await.expect("a list").items.len();
    assert_eq!(before, after, "where that is wanted");
}

#[tokio::test]
async fn nobody_gets_in_without_the_token() {
    let place = Place::start(calm()).await;
    let kubeconfig = place.proxy.kubeconfig();
    let token = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("token: ")).expect("a token");
    for wrong in ["x", &token.to_lowercase(), &token[1..]] {
        let stranger = client(&kubeconfig.replace(token, wrong)).await;
        let error = stranger.apiserver_version().await.expect_err("refused");
        assert!(matches!(&error, kube::Error::Api(status) if status.code == 401), "{error}");
        assert!(error.to_string().contains("use the kubeconfig it wrote"), "{error}");
    }
    let without =
        client(&kubeconfig.replace(&format!("token: {token}"), "username: a\n    password: b")).await;
    assert!(without.apiserver_version().await.is_err());
    assert_eq!((place.proxy.counts().strangers, place.proxy.counts().requests), (4, 0));
}

#[tokio::test]
async fn what_is_no_plain_request_and_what_is_too_large_is_refused_with_words() {
    let place = Place::start(calm()).await;
    let upgrade = [("connection", "Upgrade"), ("upgrade", "SPDY/3.1")];
    let (code, text) = place.ask("/api/v1/namespaces/default/pods/web/exec?command=sh", &upgrade).await;
    assert_eq!(code, 501);
    assert!(text.contains("not exec, attach or port-forward"), "{text}");
    let large = Request::post("/api/v1/namespaces/default/configmaps")
        .body(Body::from(vec![b' '; 3 * 1024 * 1024 + 1]))
        .expect("a request");
    let answer = place.behind.send(large).await.expect("an answer");
    assert_eq!(answer.status(), 413);
    let words = "x".repeat(100_000);
    let long = Request::get("/version").header("x-long", words).body(Body::empty()).expect("a request");
    let code = place.behind.send(long).await.map(|answer| answer.status().as_u16());
    assert!(!matches!(code, Ok(200)), "{code:?}");
}

#[tokio::test]
async fn a_cluster_that_is_away_is_told_from_a_proxy_that_is() {
    let place = Place::start(calm()).await;
    let Place { _server: server, behind, proxy, .. } = place;
    drop(server);
    let error = behind.apiserver_version().await.expect_err("nobody answers");
    assert!(matches!(&error, kube::Error::Api(status) if status.code == 502), "{error}");
    assert!(error.to_string().contains("the cluster behind the lagging proxy does not answer"), "{error}");
    drop(proxy);
    let error = behind.apiserver_version().await.expect_err("nobody listens");
    assert!(!matches!(&error, kube::Error::Api(_)), "{error}");
}
