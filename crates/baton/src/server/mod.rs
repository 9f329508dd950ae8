//! `baton server`: the API for people and programs, and the web pages.

mod certificates;
mod pages;
mod patience;
mod rights;
mod serving;
mod sources;
mod webhooks;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use baton_clusters::{Connect, OverNetwork};
use baton_controllers::{AllowedNamespaces, webhook};
use baton_hooks::Secret;
use baton_server::{Parts, Server, Settings, rest};
use baton_source::Repositories;
use clap::{ArgGroup, Args};
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;
use tokio::net::TcpListener;
use tower::ServiceExt as _;

use crate::connection::Connection;
use crate::controller::Flags;
use crate::failure::Failure;
use crate::logging::Wanted;
use crate::repositories::RepositoryArguments;
use crate::shutdown::Shutdown;
use crate::{logging, machinery, terminal};
use certificates::Certificates;
use rights::LiveRights;
pub(crate) use serving::{Transport, serve};
pub(crate) use sources::Workshop;
use webhooks::Bell;
pub(crate) use webhooks::Both;

/// How long whoever asks whether the server is ready waits for the answer.
const PROBE_TIME: Duration = Duration::from_secs(2);

/// Where Argo CD keeps the password of `admin` that was made at the first start.
const INITIAL_PASSWORD: &str = "argocd-initial-admin-secret";

/// What to serve.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("transport").required(true).args(["tls_cert", "insecure"]),
    after_help = "Sign-in, accounts and rights are those of Argo CD: argocd-cm, argocd-secret, argocd-rbac-cm and the roles of \
projects. A changed policy or certificate holds without a restart. At the first start the password of admin is made and kept in \
the Secret argocd-initial-admin-secret.

Examples:
  baton server --namespace argocd --listen 0.0.0.0:8443 --tls-cert tls.crt --tls-key tls.key
  baton server --kubeconfig .baton/kubeconfig --listen 127.0.0.1:8081 --insecure

Then:
  kubectl -n argocd get secret argocd-initial-admin-secret -o jsonpath='{.data.password}' | base64 -d
  baton login 127.0.0.1:8081 --plaintext --username admin"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// Address of the API and the pages; port 0 picks a free one.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDR")]
    listen: SocketAddr,
    /// Certificate to show, with those that vouch for it (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its key (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Speak no TLS: on this machine alone, or behind something that does.
    #[arg(long)]
    insecure: bool,
    /// Namespaces of Applications and sets beside Argo CD's own: globs, or regular expressions between slashes.
    #[arg(long, env = "ARGOCD_APPLICATION_NAMESPACES", value_name = "PATTERNS", value_delimiter = ',')]
    application_namespaces: Vec<String>,
    /// Where copies of repositories are kept; without it in a temporary directory.
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    #[command(flatten)]
    repositories: RepositoryArguments,
    /// Run the programs that cluster Secrets name for their credentials (execProviderConfig).
    #[arg(long)]
    allow_cluster_exec: bool,
    /// Level of the log: trace, debug, info, warn or error; --log says it more finely.
    #[arg(long, env = "ARGOCD_SERVER_LOG_LEVEL", value_name = "LEVEL", value_parser = logging::level)]
    loglevel: Option<String>,
    /// Form of the log: text or json.
    #[arg(long, env = "ARGOCD_SERVER_LOGFORMAT", value_name = "FORM", value_parser = logging::form)]
    logformat: Option<String>,
}

impl Arguments {
    /// What to log, and whether as JSON, where something is said about it.
    pub(crate) fn log(&self) -> Wanted {
        Wanted { filter: self.loglevel.clone(), json: self.logformat.as_deref().map(|form| form == "json") }
    }
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let mut shutdown = Shutdown::listen();
    crate::crypto::install();
    let certificates = match (&arguments.tls_cert, &arguments.tls_key) {
        (Some(certificate), Some(key)) => Some(Certificates::read(certificate, key)?),
        _ => None,
    };
    let transport = match &certificates {
        Some(certificates) => Transport::Tls(certificates.acceptor()?),
        None => Transport::Plain,
    };
    let namespace = arguments.connection.namespace();
    let scratch =
        tempfile::tempdir().map_err(|error| Failure::failed(format!("no temporary directory: {error}")))?;
    let cache = arguments.cache_dir.clone().unwrap_or_else(|| scratch.path().to_owned());
    let repositories = Repositories::new(arguments.repositories.settings(cache.join("repositories")));
    let generators = machinery::generators(&Flags::default().settings(namespace)?, repositories.clone())?;
    let manifests = machinery::manifests(repositories, cache.join("work"));
    let settings = Settings {
        secure: certificates.is_some(),
        other_namespaces: others(namespace, &arguments.application_namespaces)?,
        ..Settings::new(namespace)
    };
    let listen = arguments.listen;
    let cannot = |error| Failure::failed(format!("cannot listen on {listen}: {error}"));
    let listener = TcpListener::bind(listen).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;

    let client = arguments.connection.lasting_client().await?;
    prepare(&client, namespace).await?;
    let connect: Arc<dyn Connect> = Arc::new(OverNetwork { allow_exec: arguments.allow_cluster_exec });
    let workshop = Workshop::new(client.clone(), namespace, connect.clone(), generators, manifests);
    let bell = Arc::new(Bell::new(client.clone(), namespace));
    let (hooked, work) = baton_controllers::webhook::webhooks(bell.clone(), &webhook::Settings::default());
    let settings = Settings { webhooks: Some(hooked), ..settings };
    let office = Office::new(client, connect, workshop, settings);
    bell.hang(office.server.clone());
    let routes = office.routes();
    let serving = async {
        let scheme = if certificates.is_some() { "https" } else { "http" };
        terminal::announce(&format!("Serving the API and the web pages on {scheme}://{address}"));
        serve(listener, transport, routes, shutdown.asked()).await;
    };
    let renewing = async {
        match &certificates {
            Some(certificates) => match certificates.follow().await {},
            None => std::future::pending::<()>().await,
        }
    };
    tokio::select! {
        () = serving => {}
        () = office.run() => return Err(Failure::failed("the watches of the server ended")),
        () = renewing => {}
        () = bell.run() => return Err(Failure::failed("the watch of what webhooks are signed with ended")),
        () = work.run() => {}
    }
    terminal::remark("Stopped.");
    Ok(())
}

/// A server with the rights it asks.
#[derive(Clone)]
pub(crate) struct Office {
    server: Server,
    rights: Arc<LiveRights>,
    client: Client,
    secure: bool,
}

// === impl Office ===

impl Office {
    /// One that has read nothing yet: [`Office::run`] does.
    pub(crate) fn new(
        client: Client,
        connect: Arc<dyn Connect>,
        workshop: Workshop,
        settings: Settings,
    ) -> Office {
        let rights = Arc::new(LiveRights::new(&settings.namespace));
        let secure = settings.secure;
        let parts = Parts {
            client: client.clone(),
            connect,
            gate: rights.clone(),
            sources: Some(Arc::new(workshop)),
        };
        Office { server: Server::new(parts, settings), rights, client, secure }
    }

    /// What asks the Applications that it knows to be compared.
    pub(crate) fn bell(&self, namespace: &str) -> Bell {
        let bell = Bell::new(self.client.clone(), namespace);
        bell.hang(self.server.clone());
        bell
    }

    /// Follows what it shows and who may see it, until dropped.
    pub(crate) async fn run(&self) {
        tokio::join!(self.server.run(), self.rights.run(&self.client));
    }

    /// Waits until everything was read once; whether it was.
    pub(crate) async fn ready(&self) -> bool {
        self.rights.ready().await && self.server.ready().await.is_ok()
    }

    /// The API, and the pages at every path beside it.
    pub(crate) fn routes(&self) -> Router {
        let (api, secure, office) = (rest::router(self.server.clone()), self.secure, self.clone());
        Router::new()
            .route("/readyz", axum::routing::get(async move || office.readiness().await))
            .fallback(move |request: Request| answer(api.clone(), request, secure))
    }

    /// Whether everybody would be shown everything, for a load balancer.
    async fn readiness(&self) -> (StatusCode, &'static str) {
        match tokio::time::timeout(PROBE_TIME, self.ready()).await {
            Ok(true) => (StatusCode::OK, "ok"),
            _ => (StatusCode::SERVICE_UNAVAILABLE, "not everything has been read yet"),
        }
    }
}

async fn answer(api: Router, request: Request, secure: bool) -> Response {
    match is_for_programs(request.uri().path()) {
        true => api.oneshot(request).await.into_response(),
        false => pages::answer(request.method(), request.uri().path(), secure),
    }
}

/// Whether a path is one of the API, known or not, and never a page.
fn is_for_programs(path: &str) -> bool {
    let beneath =
        |root: &str| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    ["/api", "/auth", "/healthz", "/swagger.json"].into_iter().any(beneath)
}

/// Which namespaces count beside Argo CD's own.
type Namespaces = Arc<dyn Fn(&str) -> bool + Send + Sync>;

fn others(own: &str, patterns: &[String]) -> Result<Option<Namespaces>, Failure> {
    let patterns: Vec<String> =
        patterns.iter().map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect();
    if patterns.is_empty() {
        return Ok(None);
    }
    let allowed =
        AllowedNamespaces::new(own, &patterns).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(Some(Arc::new(move |namespace| allowed.contains(namespace))))
}

/// Makes what must be there before anybody can sign in.
async fn prepare(client: &Client, namespace: &str) -> Result<(), Failure> {
    let made = baton_server::auth::setup::ensure(client, namespace, Timestamp::now()).await;
    let made = made.map_err(|error| Failure::api(format!("argocd-secret cannot be prepared: {error}")))?;
    let Some(password) = made else { return Ok(()) };
    keep(client, namespace, &password).await?;
    terminal::remark(&format!(
        "The password of admin was made; it is in the Secret {INITIAL_PASSWORD} of namespace {namespace}."
    ));
    Ok(())
}

/// Keeps the password where Argo CD keeps it.
async fn keep(client: &Client, namespace: &str, password: &Secret) -> Result<(), Failure> {
    let secret = json!({
        "metadata": {"name": INITIAL_PASSWORD, "namespace": namespace},
        "type": "Opaque",
        "stringData": {"password": password.expose()},
    });
    let secret: k8s_openapi::api::core::v1::Secret =
        serde_json::from_value(secret).map_err(|error| Failure::failed(error.to_string()))?;
    let secrets = Api::namespaced(client.clone(), namespace);
    match secrets.create(&PostParams::default(), &secret).await {
        Ok(_) => Ok(()),
        // One of an earlier password, which is of no more use.
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
            secrets.replace(INITIAL_PASSWORD, &PostParams::default(), &secret).await?;
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_api_are_never_pages() {
        for path in
            ["/api", "/api/v1/applications", "/api/nothing", "/auth/login", "/healthz", "/swagger.json"]
        {
            assert!(is_for_programs(path), "{path}");
        }
        for path in ["/", "/applications", "/apis", "/assets/api.js", "/settings", "/healthzz"] {
            assert!(!is_for_programs(path), "{path}");
        }
    }

    /// An API that is asked and never answers.
    fn silent() -> Client {
        let silence = tower::service_fn(async |_: axum::http::Request<kube::client::Body>| {
            std::future::pending::<Result<axum::http::Response<kube::client::Body>, std::convert::Infallible>>().await
        });
        Client::new(silence, "argocd")
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_has_read_nothing_yet_lives_and_is_not_ready() {
        let repositories = Repositories::new(baton_source::Settings::default());
        let settings = Flags::default().settings("argocd").expect("the defaults");
        let generators = machinery::generators(&settings, repositories.clone()).expect("generators");
        let manifests = machinery::manifests(repositories, std::env::temp_dir());
        let connect: Arc<dyn Connect> = Arc::new(OverNetwork { allow_exec: false });
        let workshop = Workshop::new(silent(), "argocd", connect.clone(), generators, manifests);
        let office = Office::new(silent(), connect, workshop, Settings::new("argocd"));
        let ask = async |path: &str| {
            let request = Request::get(path).body(axum::body::Body::empty()).expect("a request");
            office.routes().oneshot(request).await.expect("an answer").status()
        };
        let begun = tokio::time::Instant::now();
        assert_eq!(ask("/readyz").await, StatusCode::SERVICE_UNAVAILABLE);
        assert!(begun.elapsed() < Duration::from_secs(5), "a probe waits five seconds");
        assert_eq!(ask("/healthz").await, StatusCode::OK);
    }

    #[test]
    fn other_namespaces_count_only_where_they_are_named() {
        assert!(others("argocd", &[" ".to_owned()]).expect("patterns").is_none());
        let allows = others("argocd", &["team-*".to_owned()]).expect("patterns").expect("some");
        assert!(allows("team-a") && !allows("kube-system"));
        assert!(others("argocd", &["/(/".to_owned()]).is_err());
    }
}
