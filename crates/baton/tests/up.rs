//! `baton up`: what it makes, what its credentials open, what it keeps and how it ends.

mod process;

use std::{
    collections::BTreeMap,
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Namespace, Node, Secret},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams},
    config::Kubeconfig,
};
use process::{Outcome, PATIENCE, Running, address_in, client, client_of, eventually, run};
use serde_json::{Value, json};
use tempfile::TempDir;

const CLUSTER_SECRETS: &str = "argocd.argoproj.io/secret-type=cluster";

#[tokio::test]
async fn a_fleet_of_three_has_all_that_a_newcomer_needs() {
    let home = home();
    let fleet = Fleet::start(home.path(), &[]).await;

    for path in ["/healthz", "/readyz"] {
        assert!(get(fleet.page, path).starts_with("HTTP/1.1 200 "), "{path}");
    }
    assert!(get(fleet.page, "/").contains("<title>Baton</title>"));
    let names = ["dev", "staging", "prod"];
    let kubeconfigs = names.map(|name| format!("clusters/{name}.kubeconfig"));
    for file in kubeconfigs.iter().map(String::as_str).chain(["kubeconfig", "admin-password"]) {
        let mode = fs::metadata(home.path().join(file)).expect(file).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file} is for its owner only");
    }

    let control = fleet.control().await;
    expect_definitions(&control).await;
    Api::<Namespace>::all(control.clone()).get("argocd").await.expect("the namespace argocd");
    let project = projects(&control).get("default").await.expect("the project default");
    assert_eq!(project.data["spec"]["sourceRepos"], json!(["*"]));
    expect_admin_password(&control, home.path()).await;

    let members = fleet.members().await;
    assert_eq!(members.keys().collect::<Vec<_>>(), ["dev", "prod", "staging"]);
    for name in names {
        let member = &members[name];
        assert_eq!(member.labels["env"], name);
        assert!(!member.labels["region"].is_empty());
        let reached = member.client().await;
        expect_ready_nodes(&reached).await;
        expect_demo(&reached).await;
        expect_same_cluster(&reached, &fleet.member(name).await).await;
        assert_eq!(member.anonymous_status().await, 401);
    }
    fleet.stops();
}

#[tokio::test]
async fn clusters_named_one_by_one_keep_their_labels() {
    let home = home();
    let arguments = [
        "--cluster",
        "dev-us-west,environment=development,tier=1",
        "--cluster",
        "prod-eu,environment=production,tier=2,region=eu-central",
        "--no-demo",
        "--nodes",
        "2",
    ];
    let fleet = Fleet::start(home.path(), &arguments).await;
    let members = fleet.members().await;
    assert_eq!(members.keys().collect::<Vec<_>>(), ["dev-us-west", "prod-eu"]);
    let expected = [
        (
            "dev-us-west",
            [("environment", "development"), ("tier", "1"), ("env", "dev"), ("region", "us-east")],
        ),
        (
            "prod-eu",
            [("environment", "production"), ("tier", "2"), ("env", "prod"), ("region", "eu-central")],
        ),
    ];
    for (name, labels) in expected {
        for (label, value) in labels {
            assert_eq!(members[name].labels[label], value, "{label} of {name}");
        }
        let client = fleet.member(name).await;
        assert_eq!(expect_ready_nodes(&client).await, 2);
        let namespaces = Api::<Namespace>::all(client).get_opt("demo").await.expect("an answer");
        assert!(namespaces.is_none(), "--no-demo leaves the sample out of {name}");
    }
    fleet.stops();
}

#[tokio::test]
async fn a_restart_keeps_objects_and_secrets_follow_the_addresses() {
    let home = home();
    let fleet = Fleet::start(home.path(), &[]).await;
    for client in [fleet.control().await, fleet.member("dev").await] {
        keep(&client, "kept").await;
    }
    let control = fleet.control().await;
    let foreign = json!({
        "metadata": {"name": "by-hand", "labels": {"argocd.argoproj.io/secret-type": "cluster"}},
        "stringData": {"name": "by-hand", "server": "https://127.0.0.1:1", "config": "{}"},
    });
    let foreign: Secret = serde_json::from_value(foreign).expect("a Secret");
    secrets(&control).create(&PostParams::default(), &foreign).await.expect("another cluster's Secret");
    let password = fs::read_to_string(home.path().join("admin-password")).expect("a password");
    let uid = secrets(&control).get("cluster-dev").await.expect("dev's Secret").metadata.uid;
    fleet.stops();

    let fleet = Fleet::start(home.path(), &["--clusters", "2"]).await;
    let control = fleet.control().await;
    let members = fleet.members().await;
    assert_eq!(members.keys().collect::<Vec<_>>(), ["by-hand", "dev", "prod"], "staging has left the fleet");
    assert!(!home.path().join("clusters/staging.kubeconfig").exists(), "a kubeconfig that leads nowhere");
    assert_eq!(secrets(&control).get("cluster-dev").await.expect("dev's Secret").metadata.uid, uid);
    for client in [control, fleet.member("dev").await, members["dev"].client().await] {
        assert!(is_kept(&client, "kept").await);
    }
    assert!(!is_kept(&members["prod"].client().await, "kept").await, "each member has objects of its own");
    assert_eq!(fs::read_to_string(home.path().join("admin-password")).expect("a password"), password);
    fleet.stops();
}

#[tokio::test]
async fn an_ephemeral_fleet_keeps_no_objects() {
    let home = home();
    let arguments = ["--ephemeral", "--clusters", "1", "--no-demo"];
    let fleet = Fleet::start(home.path(), &arguments).await;
    for client in [fleet.control().await, fleet.member("dev").await] {
        keep(&client, "kept").await;
    }
    fleet.stops();
    let mut left: Vec<String> = files_under(home.path());
    left.sort();
    assert_eq!(left, ["admin-password", "clusters/dev.kubeconfig", "kubeconfig", "lock"]);

    let fleet = Fleet::start(home.path(), &arguments).await;
    for client in [fleet.control().await, fleet.member("dev").await] {
        assert!(!is_kept(&client, "kept").await);
    }
    fleet.stops();
}

#[tokio::test]
async fn a_second_fleet_in_the_same_directory_fails_and_leaves_the_first_alone() {
    for kind in [&["--no-demo"][..], &["--no-demo", "--ephemeral"]] {
        let home = home();
        let mut fleet = Fleet::start(home.path(), kind).await;
        let kubeconfig = fs::read_to_string(home.path().join("kubeconfig")).expect("a kubeconfig");

        let second =
            run(arguments_of(home.path(), &["--clusters", "1"]).iter().copied().chain(kind.iter().copied()));
        assert_fails(&second, home.path().to_str().expect("temporary paths are UTF-8"));
        assert!(second.stderr.contains("in use"), "{}", second.stderr);

        assert_eq!(fs::read_to_string(home.path().join("kubeconfig")).expect("a kubeconfig"), kubeconfig);
        fleet.is_unharmed().await;
        assert_eq!(fleet.members().await.len(), 3, "the second one took no Secret away");
        fleet.stops();
    }
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let first_home = home();
    let mut fleet = Fleet::start(first_home.path(), &["--clusters", "1", "--no-demo"]).await;
    let page = fleet.page.to_string();
    let control = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let control = control.local_addr().map(|address| (control, address.to_string())).expect("an address");

    let second_home = home();
    let directory = second_home.path().to_str().expect("temporary paths are UTF-8");
    let second = run(["up", "--data-dir", directory, "--listen", &page, "--api-listen", "127.0.0.1:0"]);
    assert_fails(&second, &page);
    let third = run(["up", "--data-dir", directory, "--listen", "127.0.0.1:0", "--api-listen", &control.1]);
    assert_fails(&third, &control.1);

    fleet.is_unharmed().await;
    fleet.stops();
}

/// The whole of 127.0.0.0/8 is the machine itself, on Linux; the certificate names only the first of it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn credentials_work_on_an_address_that_the_certificate_does_not_name() {
    let home = home();
    let directory = home.path().to_str().expect("temporary paths are UTF-8");
    let place = ["up", "--listen", "127.0.0.1:0", "--data-dir", directory, "--api-listen", "127.0.0.9:0"];
    let mut running =
        Running::start(place.into_iter().chain(["--clusters", "1", "--ephemeral", "--no-demo"]));
    let page = address_in(&running.line_with("page "));
    let fleet = Fleet { running, page, home: home.path().to_owned() };
    for client in [fleet.member("dev").await, fleet.members().await["dev"].client().await] {
        expect_ready_nodes(&client).await;
    }
    fleet.stops();
}

#[tokio::test]
async fn output_that_nobody_reads_does_not_end_the_fleet() {
    let home = home();
    let page = free_address();
    let listen = page.to_string();
    let mut running =
        Running::unread(arguments_at(&listen, home.path(), &["--clusters", "1", "--ephemeral"]));
    eventually("the page is healthy", async || {
        assert!(running.runs(), "it ended");
        is_healthy(page).then_some(())
    })
    .await;
    assert_eq!(running.terminate().code, Some(0));
}

#[tokio::test]
async fn a_fleet_that_is_still_starting_can_be_stopped() {
    let home = home();
    let running = Running::start(arguments_of(home.path(), &["--clusters", "100", "--no-demo"]));
    exists(&home.path().join("kubeconfig")).await;
    let outcome = running.terminate();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(!outcome.stdout.contains("Baton is up"), "it was not yet up: {}", outcome.stdout);
}

#[tokio::test]
async fn a_fleet_killed_at_any_point_of_its_start_starts_again() {
    let home = home();
    let milestones = [
        "lock",
        "control-plane/store/objects.redb",
        "control-plane/pki/ca.crt",
        "control-plane/pki/client.key",
        "control-plane/pki/token",
        "kubeconfig",
        "admin-password",
        "clusters/dev/pki/server.crt",
        "clusters/dev.kubeconfig",
        "clusters/staging/store/objects.redb",
        "clusters/prod.kubeconfig",
    ];
    for milestone in milestones {
        let mut running = Running::start(arguments_of(home.path(), &[]));
        exists(&home.path().join(milestone)).await;
        running.kill();
    }
    let fleet = Fleet::start(home.path(), &[]).await;
    expect_definitions(&fleet.control().await).await;
    let members = fleet.members().await;
    assert_eq!(members.len(), 3);
    for member in members.values() {
        expect_demo(&member.client().await).await;
    }
    fleet.stops();
}

// === a fleet under test ===

#[tokio::test]
async fn programs_that_cluster_secrets_name_are_not_run_unless_allowed() {
    let home = home();
    let fleet = Fleet::start(home.path(), &["--clusters", "1"]).await;
    let control = fleet.control().await;
    let trace = home.path().join("was-run");
    let program = json!({"command": "touch", "args": [trace.to_str().expect("UTF-8")], "apiVersion": "client.authentication.k8s.io/v1"});
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "elsewhere", "namespace": "argocd", "labels": {"argocd.argoproj.io/secret-type": "cluster"}},
        "stringData": {"name": "elsewhere", "server": "https://127.0.0.1:1",
            "config": json!({"execProviderConfig": program}).to_string()},
    });
    let secret: Secret = serde_json::from_value(secret).expect("a Secret");
    secrets(&control).create(&PostParams::default(), &secret).await.expect("a Secret");
    let application = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "web", "namespace": "argocd"},
        "spec": {"project": "default", "source": {"repoURL": "/nowhere", "path": "web"},
            "destination": {"name": "elsewhere", "namespace": "web"}},
    });
    let kind = GroupVersionKind::gvk("argoproj.io", "v1alpha1", "Application");
    let api: Api<DynamicObject> = Api::namespaced_with(control, "argocd", &ApiResource::from_gvk(&kind));
    let application: DynamicObject = serde_json::from_value(application).expect("an Application");
    api.create(&PostParams::default(), &application).await.expect("an Application");
    let told = eventually("it is said why the cluster is not reached", async || {
        let web = api.get("web").await.ok()?;
        let message = web.data.pointer("/status/conditions/0/message")?.as_str()?.to_owned();
        message.contains("execProviderConfig").then_some(message)
    })
    .await;
    assert!(told.contains("\"touch\"") && told.contains("--allow-cluster-exec"), "{told}");
    assert!(!trace.exists(), "the program was run");
}

/// A `baton up` that is ready.
struct Fleet {
    running: Running,
    page: SocketAddr,
    home: PathBuf,
}

/// What a cluster Secret says.
struct Member {
    labels: BTreeMap<String, String>,
    server: String,
    config: Value,
}

impl Fleet {
    async fn start(home: &Path, arguments: &[&str]) -> Self {
        let mut running = Running::start(arguments_of(home, arguments));
        let page = address_in(&running.line_with("page "));
        eventually("the page is healthy", async || is_healthy(page).then_some(())).await;
        Self { running, page, home: home.to_owned() }
    }

    async fn control(&self) -> Client {
        client(&self.home.join("kubeconfig")).await
    }

    async fn member(&self, name: &str) -> Client {
        client(&self.home.join(format!("clusters/{name}.kubeconfig"))).await
    }

    /// The clusters as Argo CD finds them, by name.
    async fn members(&self) -> BTreeMap<String, Member> {
        let selected = ListParams::default().labels(CLUSTER_SECRETS);
        let found = secrets(&self.control().await).list(&selected).await.expect("the Secrets").items;
        found.into_iter().map(member_in).collect()
    }

    async fn is_unharmed(&mut self) {
        assert!(self.running.runs());
        assert!(is_healthy(self.page));
        let namespaces = Api::<Namespace>::all(self.control().await).list(&ListParams::default()).await;
        namespaces.expect("the first fleet's API answers");
    }

    #[track_caller]
    fn stops(self) {
        let Outcome { code, stderr, .. } = self.running.terminate();
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stderr.contains("Stopped."), "{stderr}");
    }
}

impl Member {
    /// A client that knows nothing but the Secret.
    async fn client(&self) -> Client {
        let token = self.config["bearerToken"].as_str().expect("a token");
        client_of(self.kubeconfig(json!({"token": token}))).await
    }

    /// What a caller without credentials is told.
    async fn anonymous_status(&self) -> u16 {
        let client = client_of(self.kubeconfig(json!({}))).await;
        match Api::<Namespace>::all(client).get("default").await {
            Err(kube::Error::Api(status)) => status.code,
            other => panic!("{other:?}"),
        }
    }

    fn kubeconfig(&self, user: Value) -> Kubeconfig {
        let authority = &self.config["tlsClientConfig"]["caData"];
        let mut cluster = json!({"server": self.server, "certificate-authority-data": authority});
        if let Some(name) = self.config["tlsClientConfig"].get("serverName") {
            cluster["tls-server-name"] = name.clone();
        }
        let text = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "member",
            "clusters": [{"name": "member", "cluster": cluster}],
            "users": [{"name": "member", "user": user}],
            "contexts": [{"name": "member", "context": {"cluster": "member", "user": "member"}}],
        });
        Kubeconfig::from_yaml(&text.to_string()).expect("a kubeconfig")
    }
}

fn member_in(secret: Secret) -> (String, Member) {
    let data = secret.data.unwrap_or_default();
    let text = |key: &str| String::from_utf8(data[key].0.clone()).expect("text");
    let config = serde_json::from_str(&text("config")).expect("config is JSON");
    let labels = secret.metadata.labels.unwrap_or_default();
    (text("name"), Member { labels, server: text("server"), config })
}

fn arguments_of<'a>(home: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    arguments_at("127.0.0.1:0", home, more)
}

fn arguments_at<'a>(listen: &'a str, home: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let home = home.to_str().expect("temporary paths are UTF-8");
    let place = ["up", "--listen", listen, "--api-listen", "127.0.0.1:0", "--data-dir", home];
    place.into_iter().chain(["--ready-delay", "10ms"]).chain(more.iter().copied()).collect()
}

fn home() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

// === what is expected of its objects ===

async fn expect_definitions(control: &Client) {
    let definitions = Api::<CustomResourceDefinition>::all(control.clone());
    for name in ["applications.argoproj.io", "applicationsets.argoproj.io", "appprojects.argoproj.io"] {
        let status = definitions.get(name).await.expect(name).status.unwrap_or_default();
        for condition in ["Established", "NamesAccepted"] {
            let conditions = status.conditions.iter().flatten();
            let holds = conditions.filter(|held| held.type_ == condition && held.status == "True").count();
            assert_eq!(holds, 1, "{name} is {condition}");
        }
    }
}

async fn expect_admin_password(control: &Client, home: &Path) {
    let secret = secrets(control).get("argocd-initial-admin-secret").await.expect("the admin's Secret");
    let password = fs::read_to_string(home.join("admin-password")).expect("a password");
    assert!(password.trim().len() >= 16, "a password that nobody guesses");
    assert_eq!(secret.data.unwrap_or_default()["password"].0, password.trim().as_bytes());
}

/// Waits until every Node is ready, and says how many there are.
async fn expect_ready_nodes(client: &Client) -> usize {
    let nodes = Api::<Node>::all(client.clone());
    eventually("all nodes are ready", async || {
        let found = nodes.list(&ListParams::default()).await.expect("the nodes").items;
        let ready = |node: &Node| {
            let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
            conditions.into_iter().flatten().any(|held| held.type_ == "Ready" && held.status == "True")
        };
        (!found.is_empty() && found.iter().all(ready)).then_some(found.len())
    })
    .await
}

async fn expect_demo(client: &Client) {
    let deployments = Api::<Deployment>::namespaced(client.clone(), "demo");
    eventually("the sample is ready", async || {
        let found = deployments.get("hello").await.expect("the sample");
        let wanted = found.spec.replicas;
        let status = found.status?;
        (wanted.is_some() && status.ready_replicas == wanted && status.available_replicas == wanted)
            .then_some(())
    })
    .await;
}

/// Both see the same objects, and not merely equal ones.
async fn expect_same_cluster(one: &Client, other: &Client) {
    let mut uids = Vec::new();
    for client in [one, other] {
        let namespace = Api::<Namespace>::all(client.clone()).get("kube-system").await.expect("kube-system");
        uids.push(namespace.metadata.uid.expect("a uid"));
    }
    assert_eq!(uids[0], uids[1]);
}

async fn keep(client: &Client, name: &str) {
    let object: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": name}, "data": {"a": "b"}})).expect("a ConfigMap");
    let api = Api::<ConfigMap>::namespaced(client.clone(), "default");
    api.create(&PostParams::default(), &object).await.expect("an object can be made");
}

async fn is_kept(client: &Client, name: &str) -> bool {
    let api = Api::<ConfigMap>::namespaced(client.clone(), "default");
    api.get_opt(name).await.expect("an answer").is_some()
}

fn secrets(control: &Client) -> Api<Secret> {
    Api::namespaced(control.clone(), "argocd")
}

fn projects(control: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("argoproj.io", "v1alpha1", "AppProject");
    Api::namespaced_with(control.clone(), "argocd", &ApiResource::from_gvk(&kind))
}

// === the outside ===

/// The failure is one line that names the culprit.
#[track_caller]
fn assert_fails(outcome: &Outcome, culprit: &str) {
    assert_eq!(outcome.code, Some(3), "{outcome:?}");
    let complaint = outcome.stderr.lines().last().unwrap_or_default();
    assert!(complaint.starts_with("error: ") && complaint.contains(culprit), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
}

/// The whole answer to a plain HTTP request, or nothing.
fn get(address: SocketAddr, path: &str) -> String {
    let mut answer = String::new();
    let mut ask = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        stream.read_to_string(&mut answer)
    };
    if ask().is_err() { String::new() } else { answer }
}

fn is_healthy(page: SocketAddr) -> bool {
    get(page, "/healthz").starts_with("HTTP/1.1 200 ")
}

/// A port that was free a moment ago. It is not one that systems give to outgoing connections, of which the tests
/// that run beside this one make many.
fn free_address() -> SocketAddr {
    let ports = std::iter::repeat_with(|| rand::random_range(20_000..30_000)).take(1_000);
    let mut addresses = ports.map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    addresses.find(|address| TcpListener::bind(address).is_ok()).expect("one of many ports is free")
}

async fn exists(path: &Path) {
    eventually(&format!("{} exists", path.display()), async || path.exists().then_some(())).await;
}

/// Every file below, with its path from there.
fn files_under(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(next).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                left.push(path);
            } else {
                let inner = path.strip_prefix(directory).expect("it is below");
                found.push(inner.to_str().expect("temporary paths are UTF-8").to_owned());
            }
        }
    }
    found
}
