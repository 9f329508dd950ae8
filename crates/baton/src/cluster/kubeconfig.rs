//! A context of a kubeconfig, as a cluster is registered by it.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube::config::{AuthInfo, Cluster, ExecInteractiveMode, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::failure::Failure;

/// A cluster, and who one is there.
pub(super) struct Context {
    name: String,
    file: Kubeconfig,
    cluster: Cluster,
    user: AuthInfo,
}

// === impl Context ===

impl Context {
    /// The context of a kubeconfig, or of this machine's where no file is named.
    pub(super) fn find(path: Option<&Path>, name: &str) -> Result<Context, Failure> {
        let (file, place) = match path {
            Some(path) => (Kubeconfig::read_from(path), path.display().to_string()),
            None => (Kubeconfig::read(), "the kubeconfig".to_owned()),
        };
        let file = file.map_err(|error| {
            Failure::usage(format!(
                "cannot read {place}: {error}; name the file that has the context with --cluster-kubeconfig"
            ))
        })?;
        let known: Vec<&str> = file.contexts.iter().map(|context| context.name.as_str()).collect();
        let context = file.contexts.iter().find(|context| context.name == name);
        let context = context.and_then(|context| context.context.clone()).ok_or_else(|| {
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Failure::usage(format!("{place} has no context {name:?}; it has {known}"))
        })?;
        let cluster = file.clusters.iter().find(|cluster| cluster.name == context.cluster);
        let cluster = cluster.and_then(|cluster| cluster.cluster.clone()).ok_or_else(|| {
            Failure::usage(format!(
                "{place} has no cluster {:?}, which context {name:?} names",
                context.cluster
            ))
        })?;
        let user = context.user.unwrap_or_default();
        let user = file.auth_infos.iter().find(|known| known.name == user);
        let user = user.and_then(|user| user.auth_info.clone()).unwrap_or_default();
        Ok(Context { name: name.to_owned(), file, cluster, user })
    }

    /// URL of the cluster, without a slash at its end.
    pub(super) fn server(&self) -> Result<String, Failure> {
        let server = self.cluster.server.as_deref().unwrap_or_default().trim_end_matches('/');
        match server.is_empty() {
            true => Err(Failure::usage(format!("context {:?} says no server", self.name))),
            false => Ok(server.to_owned()),
        }
    }

    /// A client of the cluster.
    pub(super) async fn client(&self) -> Result<Client, Failure> {
        crate::crypto::install();
        let options = KubeConfigOptions { context: Some(self.name.clone()), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(self.file.clone(), &options).await;
        let config = config.map_err(|error| Failure::usage(format!("context {:?}: {error}", self.name)))?;
        Client::try_from(config).map_err(|error| Failure::api(format!("cannot make a client: {error}")))
    }

    /// How the cluster is reached, in the words of Argo CD's API, without credentials.
    pub(super) fn transport(&self) -> Result<Value, Failure> {
        let cluster = &self.cluster;
        let insecure = cluster.insecure_skip_tls_verify.unwrap_or_default();
        let mut tls = json!({"insecure": insecure});
        let authority =
            either(cluster.certificate_authority_data.as_ref(), cluster.certificate_authority.as_deref())?;
        // Argo CD refuses a cluster that is both trusted blindly and by a certificate.
        if let Some(authority) = authority.filter(|_| !insecure) {
            tls["caData"] = authority.into();
        }
        if let Some(name) = cluster.tls_server_name.as_deref().filter(|name| !name.is_empty()) {
            tls["serverName"] = name.into();
        }
        let mut config = json!({"tlsClientConfig": tls});
        if let Some(proxy) = cluster.proxy_url.as_deref().filter(|proxy| !proxy.is_empty()) {
            config["proxyUrl"] = proxy.into();
        }
        if cluster.disable_compression == Some(true) {
            config["disableCompression"] = true.into();
        }
        Ok(config)
    }

    /// Adds the credentials that the context itself has.
    pub(super) fn own_credentials(&self, config: &mut Value) -> Result<(), Failure> {
        let user = &self.user;
        // Written out as in the file, secrets are texts again.
        let written = serde_json::to_value(user).unwrap_or_default();
        let text = |key: &str| written[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let token = match (text("token"), &user.token_file) {
            (Some(token), _) => Some(token),
            (None, Some(path)) => Some(read(Path::new(path))?.trim().to_owned()),
            (None, None) => None,
        };
        if let Some(token) = token {
            config["bearerToken"] = token.into();
            return Ok(());
        }
        let certificate = either(user.client_certificate_data.as_ref(), user.client_certificate.as_deref())?;
        let key = either(text("client-key-data").as_ref(), user.client_key.as_deref())?;
        if let (Some(certificate), Some(key)) = (certificate, key) {
            config["tlsClientConfig"]["certData"] = certificate.into();
            config["tlsClientConfig"]["keyData"] = key.into();
            return Ok(());
        }
        if let (Some(name), Some(password)) = (&user.username, text("password")) {
            config["username"] = name.as_str().into();
            config["password"] = password.into();
            return Ok(());
        }
        if let Some(exec) = &user.exec {
            if exec.interactive_mode == Some(ExecInteractiveMode::Always) {
                return Err(Failure::usage(format!(
                    "context {:?} signs in by a program that asks people, and no controller can answer it",
                    self.name
                )));
            }
            let variable = |entry: &std::collections::HashMap<String, String>| {
                Some((entry.get("name")?.clone(), Value::from(entry.get("value")?.clone())))
            };
            let env: serde_json::Map<String, Value> =
                exec.env.iter().flatten().filter_map(variable).collect();
            config["execProviderConfig"] = json!({
                "command": exec.command, "args": exec.args, "env": env, "apiVersion": exec.api_version,
            });
            return Ok(());
        }
        Err(Failure::usage(format!(
            "context {:?} has no credentials of its own that a controller could use: leave --own-credentials out",
            self.name
        )))
    }
}

/// Data in base64: as the file holds it, or as another file does that it names.
fn either(data: Option<&String>, path: Option<&str>) -> Result<Option<String>, Failure> {
    match (data.filter(|data| !data.is_empty()), path.filter(|path| !path.is_empty())) {
        (Some(data), _) => Ok(Some(data.clone())),
        (None, Some(path)) => Ok(Some(BASE64_STANDARD.encode(read(Path::new(path))?))),
        (None, None) => Ok(None),
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "apiVersion: v1
kind: Config
clusters:
- {name: eu, cluster: {server: 'https://eu.example.com:6443/', certificate-authority-data: QQ==, tls-server-name: api}}
users:
- {name: me, user: {token: hush}}
- {name: card, user: {client-certificate-data: Qg==, client-key-data: Qw==}}
- {name: nobody, user: {}}
contexts:
- {name: by-token, context: {cluster: eu, user: me}}
- {name: by-card, context: {cluster: eu, user: card}}
- {name: by-nothing, context: {cluster: eu, user: nobody}}
- {name: broken, context: {cluster: us, user: me}}
";

    #[test]
    fn a_context_is_registered_with_what_it_has() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("kubeconfig");
        std::fs::write(&path, FILE).expect("a file");
        let find = |name: &str| Context::find(Some(&path), name);
        let context = find("by-token").expect("a context");
        assert_eq!(context.server().expect("a server"), "https://eu.example.com:6443");
        let mut config = context.transport().expect("a transport");
        assert_eq!(
            config,
            json!({"tlsClientConfig": {"insecure": false, "caData": "QQ==", "serverName": "api"}})
        );
        context.own_credentials(&mut config).expect("a token");
        assert_eq!(config["bearerToken"], "hush");
        let card = find("by-card").expect("a context");
        let mut config = card.transport().expect("a transport");
        card.own_credentials(&mut config).expect("a certificate");
        assert_eq!(
            (&config["tlsClientConfig"]["certData"], &config["tlsClientConfig"]["keyData"]),
            (&json!("Qg=="), &json!("Qw=="))
        );
        let nothing = find("by-nothing").expect("a context").own_credentials(&mut config);
        assert!(nothing.is_err_and(|error| error.to_string().contains("--own-credentials")));
        for (name, part) in [("other", "by-token, by-card"), ("broken", "no cluster \"us\"")] {
            let error = find(name).err().expect("no such context").to_string();
            assert!(error.contains(part) && !error.contains("hush"), "{error}");
        }
    }
}
