//! Charts from a repository over HTTP.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use baton_source::{Access, Repositories, RepositorySecret, SourceError};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;

use crate::helm::StandIn;
use crate::support::{Repo, World, names, source, tool};

/// A path, and who asked for it.
type Asked = (String, Option<String>);

/// A server of files that writes down what is asked of it.
#[derive(Clone, Default)]
struct Server {
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    async fn start(&self) -> SocketAddr {
        let router = Router::new().fallback(serve).with_state(self.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    fn put(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.files.lock().expect("unpoisoned").insert(path.to_owned(), content.into());
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("unpoisoned").clone()
    }
}

async fn serve(State(server): State<Server>, request: Request<Body>) -> Response {
    let path = request.uri().path().to_owned();
    let authorization =
        request.headers().get(header::AUTHORIZATION).map(|value| value.to_str().expect("text").to_owned());
    server.asked.lock().expect("unpoisoned").push((path.clone(), authorization));
    match server.files.lock().expect("unpoisoned").get(&path) {
        Some(content) => match content.strip_prefix(b"to ") {
            Some(target) => Redirect::temporary(std::str::from_utf8(target).expect("text")).into_response(),
            None => content.clone().into_response(),
        },
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn archive(version: &str) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let chart = format!("apiVersion: v2\nname: shop\nversion: {version}\n");
    for (path, content) in [
        ("shop/Chart.yaml", chart.as_str()),
        ("shop/prod.yaml", "env: prod\n"),
        ("shop/templates/a.yaml", "kind: A\nmetadata: {name: '{{ .Values.env }}'}\n"),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, content.as_bytes()).expect("packed");
    }
    archive.into_inner().expect("packed").finish().expect("packed")
}

fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}

/// A repository with versions of one chart.
async fn repository(versions: &[&str]) -> (Server, String) {
    let server = Server::default();
    let address = server.start().await;
    let mut releases = Vec::new();
    for version in versions {
        let content = archive(version);
        let file = format!("charts/shop-{version}.tgz");
        releases
            .push(json!({"name": "shop", "version": version, "digest": digest(&content), "urls": [file]}));
        server.put(&format!("/stable/{file}"), content);
    }
    server.put("/stable/index.yaml", json!({"apiVersion": "v1", "entries": {"shop": releases}}).to_string());
    (server, format!("http://{address}/stable"))
}

fn chart(url: &str, revision: &str, helm: Value) -> baton_api::source::Source {
    source(json!({"repoURL": url, "chart": "shop", "targetRevision": revision, "helm": helm}))
}

/// A Secret with a password for a repository.
fn secret(url: &str, password: &str) -> &'static [RepositorySecret] {
    let labels = BTreeMap::from([("argocd.argoproj.io/secret-type".to_owned(), "repository".to_owned())]);
    let data = [("url", url), ("type", "helm"), ("username", "user"), ("password", password)];
    let data = data.map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec())).into();
    Box::leak(Box::new([RepositorySecret::read(&labels, &data, "charts").expect("a repository's")]))
}

fn world(stand_in: &StandIn) -> World {
    World::with(&[], |settings| settings.helm.clone_from(&stand_in.program))
}

#[tokio::test]
async fn a_range_names_the_highest_version_within_it() {
    let (server, url) = repository(&["1.0.0", "1.10.0", "1.9.3", "2.0.0-rc.1", "v0.5.0"]).await;
    let stand_in = StandIn::new();
    let world = world(&stand_in);
    for (revision, version) in [
        ("1.9.3", "1.9.3"),
        ("v1.9.3", "1.9.3"),
        ("0.5.0", "v0.5.0"),
        ("1.x", "1.10.0"),
        ("~1.9", "1.9.3"),
        ("", "1.10.0"),
        ("*", "1.10.0"),
        (">=1.0.0-0", "2.0.0-rc.1"),
    ] {
        let rendered = world.render(&[chart(&url, revision, json!({}))]).await.expect(revision);
        assert_eq!(rendered.revisions, [version], "{revision}");
        assert_eq!(rendered.source_types[0].as_str(), "Helm");
    }
    let indexes = server.asked().iter().filter(|(path, _)| path == "/stable/index.yaml").count();
    assert_eq!(indexes, 1, "an index is believed for a while");
    let sources = [chart(&url, "1.x", json!({}))];
    world.ask(&sources, |request| request.fresh = true).await.expect("rendered");
    let indexes = server.asked().iter().filter(|(path, _)| path == "/stable/index.yaml").count();
    assert_eq!(indexes, 2);
}

#[tokio::test]
async fn the_files_of_the_chart_are_there_and_may_be_value_files() {
    let (_server, url) = repository(&["1.0.0"]).await;
    let values = Repo::with(&[("shop.yaml", "from: git\n")]);
    let git = "https://git.example.com/values.git";
    let stand_in = StandIn::new();
    let world = World::with(&[(git, &values)], |settings| settings.helm.clone_from(&stand_in.program));
    let sources = [
        chart(&url, "1.0.0", json!({"valueFiles": ["prod.yaml", "$values/shop.yaml"]})),
        source(json!({"repoURL": git, "ref": "values"})),
    ];
    let rendered = world.render(&sources).await.expect("rendered");
    assert_eq!(names(&rendered), ["rendered"]);
    assert_eq!(stand_in.seen("values"), ["env: prod", "from: git"]);
    assert!(stand_in.seen("here").contains(&"./templates/a.yaml".to_owned()));
    let outside = [chart(&url, "1.0.0", json!({"valueFiles": ["../../etc/passwd"]}))];
    let message = world.render(&outside).await.expect_err("outside").to_string();
    assert!(message.contains("resolved to outside repository root"), "{message}");
}

#[tokio::test]
async fn what_is_not_there_or_not_what_the_index_says_is_an_error() {
    let (server, url) = repository(&["1.0.0", "2.0.0"]).await;
    let stand_in = StandIn::new();
    let world = world(&stand_in);
    for (source, why) in [
        (chart(&url, "3.0.0", json!({})), "version \"3.0.0\" of chart \"shop\" is not in repository"),
        (chart(&url, "^7", json!({})), "version \"^7\" of chart \"shop\" is not in repository"),
        (
            source(json!({"repoURL": url, "chart": "none", "targetRevision": "1"})),
            "chart \"none\" is not in repository",
        ),
        (chart(&format!("{url}/gone"), "1.0.0", json!({})), "it answered 404"),
        (chart("oci://registry.example.com/charts", "1.0.0", json!({})), "charts from OCI registries"),
        (chart("registry.example.com/charts", "1.0.0", json!({})), "charts from OCI registries"),
    ] {
        let message = world.render(&[source]).await.expect_err(why).to_string();
        assert!(message.contains(why), "{message}");
    }
    server.put("/stable/charts/shop-1.0.0.tgz", archive("6.6.6"));
    let message = world.render(&[chart(&url, "1.0.0", json!({}))]).await.expect_err("another").to_string();
    assert!(message.contains("is not what the index of its repository says"), "{message}");
    server.put("/stable/index.yaml", "entries: [");
    let sources = [chart(&url, "2.0.0", json!({}))];
    let message =
        world.ask(&sources, |request| request.fresh = true).await.expect_err("no index").to_string();
    assert!(message.contains("the index of chart repository"), "{message}");
}

#[tokio::test]
async fn credentials_go_to_the_repository_and_nowhere_else() {
    let (server, url) = repository(&["1.0.0"]).await;
    let (elsewhere, other) = repository(&[]).await;
    elsewhere.put("/stable/shop.tgz", archive("1.0.0"));
    server.put("/stable/charts/shop-1.0.0.tgz", format!("to {other}/shop.tgz"));
    let index = json!({"entries": {"shop": [{"version": "1.0.0", "urls": ["charts/shop-1.0.0.tgz"]}]}});
    server.put("/stable/index.yaml", index.to_string());
    let stand_in = StandIn::new();
    let sources = [chart(&url, "1.0.0", json!({}))];
    let secrets = secret(&url, "hunter2");
    world(&stand_in).ask(&sources, |request| request.secrets = secrets).await.expect("rendered");
    assert!(server.asked().iter().all(|(_, who)| who.as_deref() == Some("Basic dXNlcjpodW50ZXIy")));
    assert_eq!(server.asked().len(), 2);
    assert_eq!(elsewhere.asked(), [("/stable/shop.tgz".to_owned(), None)]);
    let index = json!({"entries": {"shop": [{"version": "1.0.0", "urls": [format!("{other}/shop.tgz")]}]}});
    server.put("/stable/index.yaml", index.to_string());
    for pass in [false, true] {
        let sources = [chart(&url, "1.0.0", json!({"passCredentials": pass}))];
        world(&stand_in).ask(&sources, |request| request.secrets = secrets).await.expect("rendered");
        let (_, who) = elsewhere.asked().pop().expect("asked");
        assert_eq!(who.is_some(), pass);
    }
}

#[tokio::test]
async fn what_one_set_of_credentials_has_read_is_not_given_to_another() {
    let (server, url) = repository(&["1.0.0"]).await;
    let stand_in = StandIn::new();
    let world = world(&stand_in);
    let sources = [chart(&url, "1.0.0", json!({}))];
    for password in ["one", "two", "one"] {
        let secrets = secret(&url, password);
        world.ask(&sources, |request| request.secrets = secrets).await.expect("rendered");
    }
    assert_eq!(server.asked().len(), 4, "an index and an archive for each");
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_refused() {
    let (_server, url) = repository(&["1.0.0"]).await;
    let repositories = Repositories::new(baton_source::Settings::default());
    let address = format!("{url}/index.yaml");
    let read = repositories.download(&address, &url, &Access::anonymous(), 20).await;
    assert!(matches!(read, Err(SourceError::Limit { .. })), "{read:?}");
    for address in ["file:///etc/passwd", "ftp://127.0.0.1/x", "nonsense", "http://"] {
        let read = repositories.download(address, &url, &Access::anonymous(), 20).await;
        assert!(matches!(read, Err(SourceError::Url { .. })), "{read:?}");
    }
}

#[tokio::test]
async fn the_real_helm_renders_a_chart_of_a_repository() {
    let (_server, url) = repository(&["1.0.0"]).await;
    let world = World::with(&[], |settings| settings.helm = tool("helm"));
    let rendered =
        world.render(&[chart(&url, "1", json!({"valueFiles": ["prod.yaml"]}))]).await.expect("rendered");
    assert_eq!(names(&rendered), ["prod"]);
}
