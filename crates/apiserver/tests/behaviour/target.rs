//! Where the cases run, and how a client of each place is made.

use kube::{Client, Config, config::KubeConfigOptions, config::Kubeconfig};

/// What a case asks of its target beyond the Kubernetes API.
#[derive(Clone, Copy)]
pub(crate) enum Needs {
    /// Nothing: the case holds everywhere.
    Any,
    /// Something only a real control plane has; the text says what.
    Real(&'static str),
}

/// A server under test.
pub(crate) struct Target {
    kind: Kind,
    client: Client,
    config: Option<Config>,
}

enum Kind {
    InProcess,
    Tls { server: Box<baton_apiserver::Server> },
    Cluster,
}

// === impl Target ===

impl Target {
    /// The embedded server without sockets. Needs a runtime, because `Client::new` spawns a worker.
    pub(crate) fn in_process() -> Self {
        Self::in_process_with(baton_apiserver::Options::default())
    }

    /// As [`Target::in_process`], with a history that is soon full.
    pub(crate) fn in_process_remembering(events: usize) -> Self {
        let store = baton_store::Options { history_events: events, ..baton_store::Options::default() };
        Self::in_process_with(baton_apiserver::Options { store, ..baton_apiserver::Options::default() })
    }

    fn in_process_with(options: baton_apiserver::Options) -> Self {
        let cluster = baton_apiserver::Cluster::memory(options);
        Self { kind: Kind::InProcess, client: Client::new(cluster.service(), "default"), config: None }
    }

    /// The embedded server on a loopback port, reached through the kubeconfig it hands out.
    pub(crate) async fn tls() -> Self {
        install_crypto();
        let cluster = baton_apiserver::Cluster::memory(baton_apiserver::Options::default());
        let address = "127.0.0.1:0".parse().expect("a literal address");
        let server = baton_apiserver::serve(cluster, address).await.expect("a loopback port can be bound");
        let config =
            config_of(Kubeconfig::from_yaml(&server.kubeconfig()).expect("our own kubeconfig parses")).await;
        Self {
            kind: Kind::Tls { server: Box::new(server) },
            client: client_of(config.clone()),
            config: Some(config),
        }
    }

    /// The cluster of `BATON_TEST_KUBECONFIG`, or none, and then says so.
    pub(crate) async fn from_environment() -> Option<Self> {
        let Some(path) = std::env::var_os("BATON_TEST_KUBECONFIG") else {
            println!("behaviour cluster: not run, BATON_TEST_KUBECONFIG is not set");
            return None;
        };
        install_crypto();
        let kubeconfig =
            Kubeconfig::read_from(path).expect("BATON_TEST_KUBECONFIG names a readable kubeconfig");
        let config = config_of(kubeconfig).await;
        Some(Self { kind: Kind::Cluster, client: client_of(config.clone()), config: Some(config) })
    }

    /// A client that knows the server but shows it no credentials; none where there is no wire.
    pub(crate) fn stranger(&self) -> Option<Client> {
        let mut config = self.config.clone()?;
        config.auth_info = Default::default();
        Some(client_of(config))
    }

    /// A client of this server that shows it the certificate another server gave out.
    pub(crate) fn impostor(&self, other: &Target) -> Option<Client> {
        let mut config = self.config.clone()?;
        config.auth_info = other.config.clone()?.auth_info;
        Some(client_of(config))
    }

    /// The bearer token that also lets the owner in, where we know it.
    pub(crate) fn token(&self) -> Option<String> {
        match &self.kind {
            Kind::Tls { server } => Some(server.credentials().token().reveal().to_owned()),
            Kind::InProcess | Kind::Cluster => None,
        }
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(crate) fn name(&self) -> &'static str {
        match self.kind {
            Kind::InProcess => "in process",
            Kind::Tls { .. } => "over TLS",
            Kind::Cluster => "cluster",
        }
    }

    /// Why a case with these needs is not run here, if it is not.
    pub(crate) fn lacks(&self, needs: Needs) -> Option<&'static str> {
        match needs {
            Needs::Any => None,
            Needs::Real(why) => (!matches!(self.kind, Kind::Cluster)).then_some(why),
        }
    }
}

/// Virtual time: an idle runtime jumps to the next timer, so waits cost nothing and order is stable.
pub(crate) fn paused_runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().expect("a runtime can be built")
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("a runtime can be built")
}

async fn config_of(kubeconfig: Kubeconfig) -> Config {
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a usable kubeconfig");
    // A retry would hide the 429 and 504 answers that cases look at.
    config.default_retry = false;
    config
}

fn client_of(config: Config) -> Client {
    Client::try_from(config).expect("a client from the kubeconfig")
}

/// Two crypto providers are in the dependency graph, so rustls asks for a choice; a second call is harmless.
fn install_crypto() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}
