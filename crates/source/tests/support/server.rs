//! A git server over HTTP: git's own CGI program behind a small server that can misbehave.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// What the server does with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Serve,
    /// In the first version of git's protocol, which gives no single objects.
    Old,
    /// Only with this `Authorization` header.
    Require(String),
    Status(u16),
    /// The same path at another server.
    Redirect(String),
    /// The answer to a fetch ends in the middle.
    Cut,
    /// No answer, ever.
    Hang,
    /// An answer to a fetch that tells of progress and never ends.
    Drip,
}

/// A running server; it ends with the test.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    /// The certificate clients must trust, when it speaks TLS.
    pub(crate) certificate: Option<String>,
}

struct Shared {
    root: PathBuf,
    mood: Mutex<Mood>,
    log: Mutex<Vec<Seen>>,
    arrivals: watch::Sender<usize>,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
}

impl Server {
    /// Serves the repository at `/repo`.
    pub(crate) async fn start(repository: &Path) -> Server {
        Server::serve(repository, None).await
    }

    /// Serves it over TLS, with a certificate of its own making.
    pub(crate) async fn start_tls(repository: &Path) -> Server {
        Server::serve_tls(repository, None).await
    }

    /// Serves it over TLS to whoever shows a certificate.
    pub(crate) async fn start_tls_for(repository: &Path, client: CertificateDer<'static>) -> Server {
        Server::serve_tls(repository, Some(client)).await
    }

    async fn serve_tls(repository: &Path, client: Option<CertificateDer<'static>>) -> Server {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let verifier = match client {
            None => WebPkiClientVerifier::no_client_auth(),
            Some(client) => {
                let mut roots = RootCertStore::empty();
                roots.add(client).expect("a certificate");
                let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
                builder.build().expect("a verifier")
            }
        };
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the versions fit")
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("the certificate fits its key");
        let mut server = Server::serve(repository, Some(TlsAcceptor::from(Arc::new(config)))).await;
        server.certificate = Some(made.cert.pem());
        server
    }

    async fn serve(repository: &Path, tls: Option<TlsAcceptor>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let shared = Arc::new(Shared {
            root: repository.to_owned(),
            mood: Mutex::new(Mood::Serve),
            log: Mutex::default(),
            arrivals: watch::Sender::new(0),
        });
        let service = TowerToHyperService::new(Router::new().fallback(answer).with_state(shared.clone()));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, service) = (tls.clone(), service.clone());
                tokio::spawn(async move {
                    let builder = Builder::new(TokioExecutor::new());
                    // A connection that breaks is what some tests are about.
                    let _ = match tls {
                        None => builder.serve_connection(TokioIo::new(stream), service).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => builder.serve_connection(TokioIo::new(stream), service).await,
                            Err(_) => return,
                        },
                    };
                });
            }
        });
        Server { address, shared, certificate: None }
    }

    pub(crate) fn url(&self) -> String {
        match self.certificate {
            None => format!("http://{}/repo", self.address),
            Some(_) => format!("https://localhost:{}/repo", self.address.port()),
        }
    }

    pub(crate) fn mood(&self, mood: Mood) {
        *self.shared.mood.lock().expect("unpoisoned") = mood;
    }

    /// Asks for user and password from now on.
    pub(crate) fn require_password(&self, user: &str, password: &str) {
        self.mood(Mood::Require(format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))));
    }

    /// The requests that came, forgotten once seen.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.shared.log.lock().expect("unpoisoned"))
    }

    /// How often the references were asked for: each listing and each fetch asks once.
    pub(crate) fn listings(&self) -> usize {
        self.seen().iter().filter(|seen| seen.path.ends_with("/info/refs")).count()
    }

    /// Waits until so many requests have come since the start.
    pub(crate) async fn wait_for_requests(&self, count: usize) {
        let mut arrivals = self.shared.arrivals.subscribe();
        arrivals.wait_for(|come| *come >= count).await.expect("the server runs");
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let authorization =
        head.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let path = head.uri.path().to_owned();
    let seen = Seen { path: path.clone(), authorization: authorization.clone() };
    shared.log.lock().expect("unpoisoned").push(seen);
    shared.arrivals.send_modify(|come| *come += 1);
    let mood = shared.mood.lock().expect("unpoisoned").clone();
    let mut headers = head.headers;
    if mood == Mood::Old {
        headers.remove("git-protocol");
    }
    match mood {
        Mood::Serve | Mood::Old => {}
        Mood::Require(wanted) if authorization.as_deref() == Some(wanted.as_str()) => {}
        Mood::Require(_) => {
            let ask = [(header::WWW_AUTHENTICATE, "Basic realm=\"git\"")];
            return (StatusCode::UNAUTHORIZED, ask, "who is it?").into_response();
        }
        Mood::Status(code) => return StatusCode::from_u16(code).expect("a status").into_response(),
        Mood::Redirect(to) => {
            let target = head.uri.path_and_query().map_or("", |part| part.as_str());
            return (StatusCode::FOUND, [(header::LOCATION, format!("{to}{target}"))]).into_response();
        }
        Mood::Hang => std::future::pending().await,
        Mood::Drip => {
            if path.ends_with("/git-upload-pack") {
                let drops = Body::from_stream(progress());
                return ([(header::CONTENT_TYPE, "application/x-git-upload-pack-result")], drops)
                    .into_response();
            }
        }
        Mood::Cut => {
            if path.ends_with("/git-upload-pack") {
                let half = Body::from_stream(futures_half());
                return ([(header::CONTENT_TYPE, "application/x-git-upload-pack-result")], half)
                    .into_response();
            }
        }
    }
    let body = to_bytes(body, 64 << 20).await.expect("a body");
    run(&shared.root, head.method.as_str(), &path, head.uri.query().unwrap_or(""), &headers, body).await
}

/// The beginning of an answer, then progress for ever.
fn progress() -> impl futures::Stream<Item = Result<Bytes, std::io::Error>> {
    let begin = futures::stream::iter([Ok(Bytes::from_static(b"000dpackfile\n"))]);
    let pace = tokio::time::interval(Duration::from_millis(20));
    let drops = futures::stream::unfold(pace, async |mut pace| {
        pace.tick().await;
        Some((Ok(Bytes::from_static(b"000d\x02working\r")), pace))
    });
    begin.chain(drops)
}

/// The beginning of an answer, then a broken connection.
fn futures_half() -> impl futures::Stream<Item = Result<Bytes, std::io::Error>> {
    futures::stream::iter([
        Ok(Bytes::from_static(b"000dpackfile\n")),
        Err(std::io::Error::other("the connection is cut")),
    ])
}

async fn run(
    root: &Path,
    method: &str,
    path: &str,
    query: &str,
    headers: &HeaderMap,
    body: Bytes,
) -> Response {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("").to_owned();
    let inner = path.strip_prefix("/repo").unwrap_or(path);
    let git_dir = if root.join(".git").is_dir() { root.join(".git") } else { root.to_owned() };
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", &git_dir)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("PATH_INFO", inner)
        .env("QUERY_STRING", query)
        .env("REQUEST_METHOD", method)
        .env("CONTENT_TYPE", text("content-type"))
        .env("HTTP_CONTENT_ENCODING", text("content-encoding"))
        .env("GIT_PROTOCOL", text("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("git runs");
    let mut input = child.stdin.take().expect("piped");
    let feed = tokio::spawn(async move { input.write_all(&body).await });
    let output = child.wait_with_output().await.expect("git ends");
    // A backend that refuses the request does not read its body.
    let _ = feed.await;
    let end = output.stdout.windows(4).position(|window| window == b"\r\n\r\n").expect("a CGI answer");
    let head = String::from_utf8_lossy(&output.stdout[..end]).into_owned();
    let mut response = Response::new(Body::from(output.stdout[end + 4..].to_vec()));
    for line in head.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        if name.eq_ignore_ascii_case("status") {
            let code = value.split(' ').next().and_then(|code| code.parse().ok()).expect("a status");
            *response.status_mut() = StatusCode::from_u16(code).expect("a status");
        } else {
            let name = header::HeaderName::from_bytes(name.as_bytes()).expect("a name");
            response.headers_mut().insert(name, value.parse().expect("a value"));
        }
    }
    response
}
