//! Clients of clusters.

use std::time::Duration;

use baton_api::names::IN_CLUSTER_SERVER;
use futures::FutureExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::access::{ClusterAccess, ClusterConfig};
use crate::exec::Credentials;

/// Time until a connection must stand.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Makes clients of clusters.
pub trait Connect: Send + Sync {
    /// A client of this cluster. No request need be made yet. Called inside a tokio runtime.
    ///
    /// # Errors
    /// Why there can be none, without any secret.
    fn connect(&self, cluster: &ClusterAccess) -> Result<Client, String>;
}

/// Connects as the clusters' Secrets say.
#[derive(Debug, Clone, Copy, Default)]
pub struct OverNetwork {
    /// Whether programs that Secrets name may be run to get credentials.
    pub allow_exec: bool,
}

impl Connect for OverNetwork {
    fn connect(&self, cluster: &ClusterAccess) -> Result<Client, String> {
        let config = &cluster.config;
        if config.aws_auth_config.is_some() {
            return Err(
                "awsAuthConfig is not supported; use execProviderConfig with the AWS command line".to_owned()
            );
        }
        if &*cluster.server == IN_CLUSTER_SERVER {
            return client(in_cluster(config)?);
        }
        let Some(exec) = &config.exec_provider_config else {
            return client(remote(cluster, user(config))?);
        };
        if !self.allow_exec {
            return Err(format!(
                "execProviderConfig would run {:?}, which is not allowed here (see --allow-cluster-exec)",
                exec.command
            ));
        }
        let certificate = json!({
            "client-certificate-data": some(&config.tls_client_config.cert_data),
            "client-key-data": some(&config.tls_client_config.key_data),
        });
        let transport = client(remote(cluster, certificate)?)?;
        Ok(Credentials::new(exec.clone(), cluster).authorize(transport))
    }
}

fn client(mut config: Config) -> Result<Client, String> {
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = None;
    config.write_timeout = Some(CONNECT_TIMEOUT);
    // Whether a request may be sent again is decided where it is known what it does.
    config.default_retry = false;
    Client::try_from(config).map_err(|error| match error {
        // Its words hold the URL, which may hold a password.
        kube::Error::ProxyProtocolUnsupported { .. } | kube::Error::ProxyProtocolDisabled { .. } => {
            "cannot make a client: proxies of this protocol are not supported".to_owned()
        }
        error => format!("cannot make a client: {}", with_causes(&error)),
    })
}

/// The cluster of the pod this runs in, with its service account unless the Secret gives other credentials.
fn in_cluster(config: &ClusterConfig) -> Result<Config, String> {
    let mut made =
        Config::incluster().map_err(|error| format!("not inside a cluster: {}", with_causes(&error)))?;
    if !(config.username.is_empty() && config.password.is_empty() && config.bearer_token.is_empty()) {
        made.auth_info = serde_json::from_value(user(config)).map_err(|_| "odd credentials".to_owned())?;
    }
    Ok(made)
}

fn remote(cluster: &ClusterAccess, user: Value) -> Result<Config, String> {
    let (config, tls) = (&cluster.config, &cluster.config.tls_client_config);
    if tls.insecure && !tls.ca_data.is_empty() {
        return Err("specifying a root certificates file with the insecure flag is not allowed".to_owned());
    }
    check_proxy(&config.proxy_url)?;
    let kubeconfig = json!({
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": {
            "server": &*cluster.server,
            "insecure-skip-tls-verify": tls.insecure,
            "certificate-authority-data": some(&tls.ca_data),
            "tls-server-name": some(&tls.server_name),
            "proxy-url": some(&config.proxy_url),
            "disable-compression": config.disable_compression,
        }}],
        "users": [{"name": "it", "user": user}],
    });
    let kubeconfig: Kubeconfig =
        serde_json::from_value(kubeconfig).map_err(|_| "config cannot be used".to_owned())?;
    let made = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .now_or_never()
        .ok_or("config refers to something outside itself")?;
    made.map_err(|error| with_causes(&error))
}

fn user(config: &ClusterConfig) -> Value {
    let tls = &config.tls_client_config;
    json!({
        "username": some(&config.username),
        "password": some(&config.password),
        "token": some(&config.bearer_token),
        "client-certificate-data": some(&tls.cert_data),
        "client-key-data": some(&tls.key_data),
    })
}

fn check_proxy(url: &str) -> Result<(), String> {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    match scheme {
        _ if url.is_empty() => Ok(()),
        "http" | "https" | "socks5" => Ok(()),
        _ => Err(format!(
            "failed to parse proxy url, unsupported scheme {scheme:?}, must be http, https, or socks5"
        )),
    }
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// An error with what caused it, each said once.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(config: Value) -> ClusterAccess {
        ClusterAccess {
            server: "https://east:6443".into(),
            config: serde_json::from_value(config).expect("a config"),
            ..ClusterAccess::in_cluster()
        }
    }

    fn refused(config: Value) -> String {
        OverNetwork::default().connect(&access(config)).err().expect("no client")
    }

    #[tokio::test]
    async fn what_cannot_be_used_is_said_without_its_secrets() {
        assert!(refused(json!({"awsAuthConfig": {"clusterName": "x"}})).contains("not supported"));
        let exec = refused(json!({"execProviderConfig": {"command": "aws", "args": ["hunter2"]}}));
        assert!(
            exec.contains("\"aws\"") && exec.contains("not allowed") && !exec.contains("hunter2"),
            "{exec}"
        );
        let both = json!({"tlsClientConfig": {"insecure": true, "caData": "QQ=="}});
        assert!(refused(both).contains("insecure flag is not allowed"));
        assert!(refused(json!({"proxyUrl": "ftp://hunter2@x"})).contains("unsupported scheme \"ftp\""));
        let garbage = refused(json!({"tlsClientConfig": {"caData": "hunter2!", "keyData": "hunter2"}}));
        assert!(!garbage.contains("hunter2"), "{garbage}");
    }

    #[tokio::test]
    async fn tokens_passwords_and_no_credentials_make_clients() {
        for config in [
            json!({}),
            json!({"bearerToken": "t", "tlsClientConfig": {"insecure": true, "serverName": "east"}}),
            json!({"username": "u", "password": "p"}),
        ] {
            OverNetwork::default().connect(&access(config)).expect("a client");
        }
    }
}
