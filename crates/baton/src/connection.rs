//! Which cluster a command talks to.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::failure::Failure;

/// The cluster this process talks to. An error of the client does not say where it asked, and a command asks one place.
static SERVER: OnceLock<String> = OnceLock::new();

/// A watch ends by itself a little before.
const LONGEST_SILENCE: Duration = Duration::from_secs(300);

/// Where the cluster is, once a client for it was made.
pub(crate) fn server() -> Option<&'static str> {
    SERVER.get().map(String::as_str)
}

/// Namespace of Argo CD's objects where nobody names another.
const NAMESPACE: &str = "argocd";

/// The cluster and namespace to use.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Connection {
    /// Kubeconfig of the control plane; without it $KUBECONFIG, ~/.kube/config or the pod's own account.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Namespace of Argo CD's objects [default: argocd].
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
}

impl Connection {
    /// Namespace of Argo CD's objects.
    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(NAMESPACE)
    }

    /// A client for that cluster. Nothing is asked of it yet.
    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        crate::crypto::install();
        let config = self.config().await?;
        // Whatever stands before the host may be a secret.
        let host = config.cluster_url.authority().map(|authority| authority.as_str());
        let host = host.and_then(|host| host.rsplit('@').next()).unwrap_or_default();
        let _ = SERVER.set(format!("{}://{host}", config.cluster_url.scheme_str().unwrap_or("https")));
        Client::try_from(config).map_err(|error| Failure::api(format!("cannot make a client: {error}")))
    }

    /// The same for a process that lasts: no answer is waited for longer than a watch may be silent.
    pub(crate) async fn lasting_client(&self) -> Result<Client, Failure> {
        crate::crypto::install();
        let mut config = self.config().await?;
        config.read_timeout = Some(LONGEST_SILENCE);
        Client::try_from(config).map_err(|error| Failure::api(format!("cannot make a client: {error}")))
    }

    async fn config(&self) -> Result<Config, Failure> {
        config(self.kubeconfig.as_deref(), self.context.as_deref()).await
    }
}

/// How to reach the cluster of a kubeconfig, or of this machine's where none is named.
pub(crate) async fn config(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Config, Failure> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let config = match kubeconfig {
        Some(path) => {
            let kubeconfig = Kubeconfig::read_from(path)
                .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
            Config::from_custom_kubeconfig(kubeconfig, &options)
                .await
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
        }
        None if context.is_some() => Config::from_kubeconfig(&options)
            .await
            .map_err(|error| Failure::usage(format!("no usable kubeconfig: {error}"))),
        None => Config::infer().await.map_err(|error| {
            Failure::usage(format!("no cluster to talk to: {error}; name a kubeconfig with --kubeconfig"))
        }),
    };
    config.map(|mut config| {
        config.connect_timeout = Some(Duration::from_secs(10));
        config
    })
}
