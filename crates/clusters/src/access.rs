//! How a cluster is reached, as its Secret says.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use baton_api::application::Destination;
use baton_api::names::secret::{TYPE_CLUSTER, TYPE_LABEL};
use baton_api::names::{IN_CLUSTER_NAME, IN_CLUSTER_SERVER, application};
use k8s_openapi::api::core::v1::Secret;
use serde::Deserialize;

/// Most bytes of a Secret's `config`.
const MOST_CONFIG: usize = 1024 * 1024;

/// A registered cluster and how it is reached. Prints no secret.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterAccess {
    /// URL of its API, without a slash at its end.
    pub server: Arc<str>,
    /// Its name.
    pub name: String,
    /// The only namespaces that may be looked at; none are all.
    pub namespaces: Vec<String>,
    /// Whether cluster-scoped objects may be looked at although `namespaces` are given.
    pub cluster_resources: bool,
    /// Project the cluster belongs to; empty is none.
    pub project: String,
    /// Labels of its Secret.
    pub labels: BTreeMap<String, String>,
    /// Whether its Applications are to be left alone.
    pub skip_reconcile: bool,
    /// Credentials and transport.
    pub config: ClusterConfig,
}

/// Credentials and transport, in the words of Argo CD's Secrets. Prints no secret.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterConfig {
    /// User of basic authentication.
    pub username: String,
    /// Password of basic authentication.
    pub password: String,
    /// Bearer token.
    pub bearer_token: String,
    /// Certificates.
    pub tls_client_config: TlsConfig,
    /// AWS authentication, which is not supported.
    pub aws_auth_config: Option<serde_json::Value>,
    /// A program that gives credentials.
    pub exec_provider_config: Option<ExecConfig>,
    /// Whether answers come uncompressed.
    pub disable_compression: bool,
    /// Proxy on the way.
    pub proxy_url: String,
}

/// Certificates. Prints no key.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TlsConfig {
    /// Whether any server is trusted.
    pub insecure: bool,
    /// Name that the server's certificate must bear.
    pub server_name: String,
    /// Certificate authorities: PEM in base64.
    pub ca_data: String,
    /// Client certificate: PEM in base64.
    pub cert_data: String,
    /// Key of the client certificate: PEM in base64.
    pub key_data: String,
}

/// A program that gives credentials. Prints neither arguments nor environment, which may hold secrets.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExecConfig {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables added to its environment.
    pub env: BTreeMap<String, String>,
    /// Version of the protocol.
    pub api_version: String,
    /// What to tell people who lack the program.
    pub install_hint: String,
    /// Whether the program is told about the cluster.
    pub provide_cluster_info: bool,
    /// What the program is told about the cluster besides.
    pub config: Option<serde_json::Value>,
}

/// A cluster whose Secret cannot be used. Prints what is wrong with it, and no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cluster Secret {secret:?}: {fault}")]
pub struct BrokenCluster {
    /// Name of the Secret.
    secret: String,
    /// The cluster's own name, as far as it can be read.
    name: String,
    /// URL of its API, likewise.
    server: String,
    /// What is wrong, in words.
    fault: String,
}

// === impl BrokenCluster ===

impl BrokenCluster {
    /// Whether a destination would mean this cluster.
    pub fn is_meant_by(&self, destination: &Destination) -> bool {
        match (destination.name.as_str(), destination.server.trim_end_matches('/')) {
            ("", "") => false,
            ("", server) => self.server == server,
            (name, _) => self.name == name,
        }
    }

    fn new(secret: &Secret, fault: String) -> BrokenCluster {
        let text = |key: &str| {
            let value = secret.data.as_ref().and_then(|data| data.get(key));
            value.map(|value| String::from_utf8_lossy(&value.0).into_owned()).unwrap_or_default()
        };
        let server = text("server").trim_end_matches('/').to_owned();
        let name = match text("name") {
            name if name.is_empty() => server.clone(),
            name => name,
        };
        BrokenCluster { secret: secret.metadata.name.clone().unwrap_or_default(), name, server, fault }
    }
}

// === impl ClusterAccess ===

impl ClusterAccess {
    /// Reads a Secret; `None` if its labels say it is no cluster.
    ///
    /// # Errors
    /// What is wrong with it, without any of its values.
    pub fn read(secret: &Secret) -> Option<Result<ClusterAccess, BrokenCluster>> {
        let labels = secret.metadata.labels.clone().unwrap_or_default();
        if labels.get(TYPE_LABEL).map(String::as_str) != Some(TYPE_CLUSTER) {
            return None;
        }
        Some(read_cluster(secret, labels).map_err(|fault| BrokenCluster::new(secret, fault)))
    }

    /// The cluster the controllers run in, where no Secret says otherwise.
    pub fn in_cluster() -> ClusterAccess {
        ClusterAccess {
            server: IN_CLUSTER_SERVER.into(),
            name: IN_CLUSTER_NAME.to_owned(),
            namespaces: Vec::new(),
            cluster_resources: false,
            project: String::new(),
            labels: BTreeMap::new(),
            skip_reconcile: false,
            config: ClusterConfig::default(),
        }
    }

    /// Whether cluster-scoped objects may be looked at.
    pub(crate) fn sees_cluster_scope(&self) -> bool {
        self.namespaces.is_empty() || self.cluster_resources
    }
}

fn read_cluster(secret: &Secret, labels: BTreeMap<String, String>) -> Result<ClusterAccess, String> {
    let text = |key: &str| match secret.data.as_ref().and_then(|data| data.get(key)) {
        Some(bytes) if bytes.0.len() > MOST_CONFIG => Err(format!("{key} is too large")),
        Some(bytes) => String::from_utf8(bytes.0.clone()).map_err(|_| format!("{key} is not UTF-8")),
        None => Ok(String::new()),
    };
    let server = text("server")?.trim_end_matches('/').to_owned();
    if server.is_empty() {
        return Err("server is missing".to_owned());
    }
    let name = match text("name")? {
        name if name.is_empty() => server.clone(),
        name => name,
    };
    let namespaces = text("namespaces")?;
    let namespaces = namespaces.split(',').map(str::trim).filter(|namespace| !namespace.is_empty());
    let config = text("config")?;
    let config = match config.trim().is_empty() {
        true => ClusterConfig::default(),
        // The parser's own words could show a value.
        false => serde_json::from_str(&config).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            format!("config is not the JSON that is expected (line {line}, column {column})")
        })?,
    };
    let annotation =
        |name: &str| secret.metadata.annotations.as_ref().and_then(|annotations| annotations.get(name));
    Ok(ClusterAccess {
        server: server.into(),
        name,
        namespaces: namespaces.map(str::to_owned).collect(),
        cluster_resources: go_bool(&text("clusterResources")?),
        project: text("project")?,
        labels,
        skip_reconcile: annotation(application::SKIP_RECONCILE).is_some_and(|value| go_bool(value)),
        config,
    })
}

/// A yes as Go reads it.
fn go_bool(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

// === redaction ===

impl fmt::Debug for ClusterConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterConfig")
            .field("username", &!self.username.is_empty())
            .field("bearer_token", &!self.bearer_token.is_empty())
            .field("tls", &self.tls_client_config)
            .field("exec", &self.exec_provider_config)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConfig")
            .field("insecure", &self.insecure)
            .field("server_name", &self.server_name)
            .field("client_certificate", &!self.cert_data.is_empty())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ExecConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecConfig").field("command", &self.command).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::ByteString;

    fn secret(data: &[(&str, &str)]) -> Secret {
        let mut secret = Secret::default();
        secret.metadata.name = Some("s".to_owned());
        secret.metadata.labels = Some([(TYPE_LABEL.to_owned(), TYPE_CLUSTER.to_owned())].into());
        secret.data = Some(
            data.iter()
                .map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())))
                .collect(),
        );
        secret
    }

    #[test]
    fn a_secret_is_read_as_argo_cd_writes_it() {
        let access = ClusterAccess::read(&secret(&[
            ("server", "https://east:6443/"),
            ("name", "east"),
            ("namespaces", "a, b,,"),
            ("clusterResources", "true"),
            (
                "config",
                r#"{"bearerToken":"hunter2","tlsClientConfig":{"insecure":false,"caData":"QQ=="},"new":1}"#,
            ),
        ]))
        .expect("a cluster")
        .expect("a good one");
        assert_eq!((&*access.server, access.name.as_str()), ("https://east:6443", "east"));
        assert_eq!(access.namespaces, ["a", "b"]);
        assert!(access.cluster_resources);
        assert_eq!(access.config.bearer_token, "hunter2");
        assert_eq!(access.config.tls_client_config.ca_data, "QQ==");
    }

    #[test]
    fn no_secret_is_printed() {
        let config = r#"{"username":"u","password":"hunter2","bearerToken":"hunter2","tlsClientConfig":{"keyData":"hunter2"},
            "execProviderConfig":{"command":"aws","args":["hunter2"],"env":{"K":"hunter2"}}}"#;
        let access = ClusterAccess::read(&secret(&[("server", "https://x"), ("config", config)]))
            .expect("a cluster")
            .expect("a good one");
        assert!(!format!("{access:?}").contains("hunter2"));
        let broken = ClusterAccess::read(&secret(&[
            ("server", "https://x"),
            ("config", r#"{"bearerToken": {"hunter2": 1}}"#),
        ]));
        let error = broken.expect("a cluster").expect_err("a token that is no text");
        let told = format!("{error} {error:?}");
        assert!(!told.contains("hunter2") && told.contains("config"), "{told}");
    }

    #[test]
    fn other_secrets_are_no_clusters_and_one_without_server_is_an_error() {
        assert_eq!(ClusterAccess::read(&Secret::default()), None);
        let error = ClusterAccess::read(&secret(&[])).expect("a cluster").expect_err("no server");
        assert_eq!(error.to_string(), "cluster Secret \"s\": server is missing");
    }

    #[test]
    fn a_broken_cluster_is_known_by_what_destinations_call_it() {
        let broken = |data: &[(&str, &str)]| {
            ClusterAccess::read(&secret(data)).expect("a cluster").expect_err("a broken one")
        };
        let destination = |name: &str, server: &str| Destination {
            name: name.to_owned(),
            server: server.to_owned(),
            namespace: String::new(),
        };
        let east = broken(&[("server", "https://east/"), ("name", "east"), ("config", "{")]);
        assert!(east.is_meant_by(&destination("east", "")));
        assert!(east.is_meant_by(&destination("", "https://east")));
        assert!(!east.is_meant_by(&destination("https://east", "")));
        let nameless = broken(&[("server", "https://east"), ("config", "{")]);
        assert!(nameless.is_meant_by(&destination("https://east", "")));
        assert!(!broken(&[("name", "east")]).is_meant_by(&destination("", "")));
    }
}
