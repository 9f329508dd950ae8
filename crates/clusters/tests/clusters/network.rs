//! Clusters over TLS, as their Secrets say.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use baton_api::application::Destination;
use baton_apiserver::{Options, Server, serve};
use baton_clusters::{Cluster, ClusterAccess, ClusterError, Clusters, OverNetwork, Settings};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use serde_json::{Value, json};

use crate::world::{CONFIG_MAPS, config_map, kinds};

/// A served cluster and the texts of its kubeconfig.
struct Served {
    server: Server,
    cluster: baton_apiserver::Cluster,
    ca: String,
    user: Value,
}

async fn served() -> Served {
    let cluster = baton_apiserver::Cluster::memory(Options::default());
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = serve(cluster.clone(), any_port).await.expect("a free port");
    let kubeconfig = baton_grammar::yaml::first(&server.kubeconfig()).expect("YAML");
    let ca =
        kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"].as_str().expect("a CA").to_owned();
    let user = kubeconfig["users"][0]["user"].clone();
    Served { server, cluster, ca, user }
}

impl Served {
    fn cluster(&self, allow_exec: bool, config: &Value) -> Arc<Cluster> {
        let mut secret = Secret::default();
        secret.metadata.labels =
            Some([("argocd.argoproj.io/secret-type".to_owned(), "cluster".to_owned())].into());
        let server = format!("https://{}", self.server.addr());
        let data = [("name", "remote".to_owned()), ("server", server), ("config", config.to_string())];
        secret.data = Some(
            data.into_iter().map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes()))).collect(),
        );
        let access = ClusterAccess::read(&secret).expect("a cluster").expect("a good one");
        let local = Client::new(self.cluster.service(), "default");
        let clusters =
            Clusters::new(Arc::new(OverNetwork { allow_exec }), local, Settings::default(), Arc::new(|_| {}));
        clusters.set(vec![access]);
        let destination = Destination { name: "remote".to_owned(), ..Destination::default() };
        clusters.resolve(&destination).expect("registered")
    }

    fn token(&self) -> &str {
        self.server.credentials().token().reveal()
    }
}

async fn reason(cluster: &Cluster) -> String {
    match cluster.ready(&[]).await {
        Err(ClusterError::Unreachable { reason, .. }) => reason,
        other => panic!("it was reached: {other:?}"),
    }
}

#[tokio::test]
async fn tokens_certificates_and_programs_let_us_in() {
    let served = served().await;
    let tls = json!({"caData": served.ca});
    let with_certificate = json!({"caData": served.ca, "certData": served.user["client-certificate-data"],
        "keyData": served.user["client-key-data"]});
    let answer = json!({"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential",
        "status": {"token": served.token()}});
    let program = json!({"command": "sh", "args": ["-c", "printf '%s' \"$ANSWER\""], "env": {"ANSWER": answer.to_string()}});
    for config in [
        json!({"bearerToken": served.token(), "tlsClientConfig": tls}),
        json!({"bearerToken": served.token(), "tlsClientConfig": {"insecure": true}}),
        json!({"bearerToken": served.token(), "tlsClientConfig": {"caData": served.ca, "serverName": "kubernetes"}}),
        json!({"tlsClientConfig": with_certificate}),
        json!({"execProviderConfig": program, "tlsClientConfig": tls}),
    ] {
        let cluster = served.cluster(true, &config);
        cluster
            .ready(&kinds(&[("v1", "ConfigMap")]))
            .await
            .unwrap_or_else(|error| panic!("{config}: {error}"));
        assert!(cluster.kind("apps/v1", "Deployment").expect("known").is_some());
    }
}

#[tokio::test]
async fn who_is_not_let_in_is_told_why_without_secrets() {
    let served = served().await;
    let tls = json!({"caData": served.ca});
    let cluster = served.cluster(false, &json!({"bearerToken": "hunter2", "tlsClientConfig": tls}));
    let why = reason(&cluster).await;
    assert!(why.contains("Unauthorized") && !why.contains("hunter2"), "{why}");
    let cluster = served.cluster(false, &json!({"bearerToken": served.token()}));
    let why = reason(&cluster).await;
    assert!(why.contains("certificate") && !why.contains(served.token()), "{why}");
    let wrong_name = json!({"bearerToken": served.token(), "tlsClientConfig": {"caData": served.ca, "serverName": "elsewhere"}});
    let why = reason(&served.cluster(false, &wrong_name)).await;
    assert!(why.contains("certificate"), "{why}");
    let why = reason(&served.cluster(false, &json!({"execProviderConfig": {"command": "sh"}}))).await;
    assert!(why.contains("not allowed"), "{why}");
}

#[tokio::test]
async fn what_happens_over_the_network_is_seen() {
    let served = served().await;
    let config = json!({"bearerToken": served.token(), "tlsClientConfig": {"caData": served.ca}});
    let cluster = served.cluster(false, &config);
    cluster.ready(&kinds(&[("v1", "ConfigMap")])).await.expect("ready");
    let direct = Client::new(served.cluster.service(), "default");
    let request = http::Request::post(CONFIG_MAPS).header("content-type", "application/json");
    let object = config_map("a", "shop", json!({"k": "1"})).to_string().into_bytes();
    let _: Value = direct.request(request.body(object).expect("a request")).await.expect("created");
    while cluster.managed("shop").is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(cluster.managed("shop")[0]["data"]["k"], "1");
}
