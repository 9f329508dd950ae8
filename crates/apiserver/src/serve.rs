//! A cluster behind TLS on a port, with the credentials that let a client in.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::auth::{Secret, User};
use crate::cluster::Cluster;
use crate::request::{Target, target};
use crate::rest::{Body, unauthorized};
use crate::tokens::TokenKey;

/// How long a client may take for the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a connection may stay without a whole request head. The wait for the next request counts too, so this is what
/// kube-apiserver allows an idle connection: clients keep theirs for as long.
const HEAD_TIMEOUT: Duration = Duration::from_secs(90);
/// Most bytes in the head of a request.
const HEAD_LIMIT: usize = 64 * 1024;

/// A server that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Certificates cannot be made or read.
    #[error("certificates: {0}")]
    Certificates(String),
    /// A credential file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which file.
        path: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// Everything a server needs to be recognised and to recognise its owner.
#[derive(Clone)]
pub struct Credentials {
    ca_certificate: String,
    server_certificate: String,
    server_key: Secret,
    client_certificate: String,
    client_key: Secret,
    token: Secret,
    service_account_key: Secret,
}

impl Credentials {
    /// New credentials, signed by a new authority of their own.
    pub fn generate() -> Result<Credentials, ServeError> {
        let bad = |error: rcgen::Error| ServeError::Certificates(error.to_string());
        let new_key = || KeyPair::generate().map_err(bad);

        let ca_key = new_key()?;
        let mut ca = CertificateParams::default();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.distinguished_name.push(DnType::CommonName, "baton-ca");
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca_certificate = ca.self_signed(&ca_key).map_err(bad)?;
        let issuer = Issuer::new(ca, ca_key);

        let names =
            ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let server_key = new_key()?;
        let mut server = CertificateParams::new(names.map(str::to_owned)).map_err(bad)?;
        server.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let server_certificate = server.signed_by(&server_key, &issuer).map_err(bad)?;

        let client_key = new_key()?;
        let mut client = CertificateParams::default();
        client.distinguished_name.push(DnType::OrganizationName, "system:masters");
        client.distinguished_name.push(DnType::CommonName, User::admin().name);
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let client_certificate = client.signed_by(&client_key, &issuer).map_err(bad)?;

        let random: [u8; 32] = rand::random();
        Ok(Credentials {
            ca_certificate: ca_certificate.pem(),
            server_certificate: server_certificate.pem(),
            server_key: Secret::new(server_key.serialize_pem()),
            client_certificate: client_certificate.pem(),
            client_key: Secret::new(client_key.serialize_pem()),
            token: Secret::new(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random)),
            service_account_key: TokenKey::generate(),
        })
    }

    /// The credentials kept in a directory, made there if absent, so that a kubeconfig outlives a restart.
    pub fn load_or_generate(directory: &Path) -> Result<Credentials, ServeError> {
        const FILES: [&str; 6] = ["ca.crt", "server.crt", "server.key", "client.crt", "client.key", "token"];
        let fail = |path: &Path| {
            let path = path.display().to_string();
            move |source| ServeError::File { path, source }
        };
        std::fs::create_dir_all(directory).map_err(fail(directory))?;
        // The token is written last: with it, all are there.
        if directory.join("token").exists() {
            let read = |name: &str| {
                let path = directory.join(name);
                std::fs::read_to_string(&path).map_err(fail(&path))
            };
            let [ca_certificate, server_certificate, server_key, client_certificate, client_key, token] =
                FILES.map(read);
            return Ok(Credentials {
                ca_certificate: ca_certificate?,
                server_certificate: server_certificate?,
                server_key: Secret::new(server_key?),
                client_certificate: client_certificate?,
                client_key: Secret::new(client_key?),
                token: Secret::new(token?),
                service_account_key: service_account_key(directory)?,
            });
        }
        let made = Credentials::generate()?;
        let texts = [
            &made.ca_certificate,
            &made.server_certificate,
            made.server_key.reveal(),
            &made.client_certificate,
            made.client_key.reveal(),
            made.token.reveal(),
        ];
        for (name, text) in FILES.into_iter().zip(texts) {
            let path = directory.join(name);
            write_private(&path, text).map_err(fail(&path))?;
        }
        Ok(Credentials { service_account_key: service_account_key(directory)?, ..made })
    }

    /// What tokens of service accounts are signed with.
    pub fn service_account_key(&self) -> &Secret {
        &self.service_account_key
    }

    /// The name to expect in the server's certificate where that is not the address: the certificate outlives
    /// restarts on other addresses, so it names none but the local ones.
    pub fn server_name(address: SocketAddr) -> Option<&'static str> {
        let named = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
        (!named.contains(&address.ip())).then_some("localhost")
    }

    /// A kubeconfig for `https://address`.
    pub fn kubeconfig(&self, address: SocketAddr, name: &str) -> String {
        let data = |pem: &str| STANDARD.encode(pem);
        let server_name = Credentials::server_name(address)
            .map_or_else(String::new, |name| format!("    tls-server-name: {name}\n"));
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: {name}\nclusters:\n- name: {name}\n  cluster:\n    server: \
             https://{address}\n{server_name}    certificate-authority-data: {}\ncontexts:\n- name: {name}\n  context:\n    cluster: \
             {name}\n    user: {name}\nusers:\n- name: {name}\n  user:\n    client-certificate-data: {}\n    \
             client-key-data: {}\n",
            data(&self.ca_certificate),
            data(&self.client_certificate),
            data(self.client_key.reveal()),
        )
    }

    /// The authority's certificate, PEM.
    pub fn ca_certificate(&self) -> &str {
        &self.ca_certificate
    }

    /// The bearer token that also lets the owner in.
    pub fn token(&self) -> &Secret {
        &self.token
    }

    /// The TLS configuration, and the judge of client certificates.
    fn tls(&self) -> Result<(rustls::ServerConfig, Arc<dyn ClientCertVerifier>), ServeError> {
        let bad = |error: &dyn std::fmt::Display| ServeError::Certificates(error.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(self.ca_certificate.as_bytes()) {
            let certificate = certificate.map_err(|error| bad(&error))?;
            roots.add(certificate).map_err(|error| bad(&error))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .allow_unauthenticated()
            .build()
            .map_err(|error| bad(&error))?;
        let chain = CertificateDer::pem_slice_iter(self.server_certificate.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| bad(&error))?;
        let key = PrivateKeyDer::from_pem_slice(self.server_key.reveal().as_bytes())
            .map_err(|error| bad(&error))?;
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| bad(&error))?
            .with_client_cert_verifier(Arc::new(LetIn(verifier.clone())))
            .with_single_cert(chain, key)
            .map_err(|error| bad(&error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok((config, verifier))
    }
}

/// The key of tokens, made where an older version of this server has made the rest.
fn service_account_key(directory: &Path) -> Result<Secret, ServeError> {
    let path = directory.join("sa.key");
    let fail = |source| ServeError::File { path: path.display().to_string(), source };
    if path.exists() {
        return std::fs::read_to_string(&path).map(Secret::new).map_err(fail);
    }
    let made = TokenKey::generate();
    write_private(&path, made.reveal()).map_err(fail)?;
    Ok(made)
}

/// Lets any client certificate through the handshake, whose holder must still prove to have its key. Whether the
/// certificate is worth anything is asked afterwards, so that a stranger gets an answer (401) instead of a broken
/// handshake, and a token counts beside a certificate of another cluster.
#[derive(Debug)]
struct LetIn(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for LetIn {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Writes a file that only its owner can read, whole or not at all.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let partial = path.with_extension("partial");
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&partial, path)
}

/// A cluster being served. Dropping it closes the port and every connection.
pub struct Server {
    address: SocketAddr,
    credentials: Credentials,
    _accepting: JoinSet<()>,
}

impl Server {
    /// Where clients on this machine reach it: the address listened on, with the port that was chosen. One that
    /// stands for all addresses is replaced by the local one.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// A kubeconfig that lets its holder do anything.
    pub fn kubeconfig(&self) -> String {
        self.credentials.kubeconfig(self.address, "baton")
    }

    /// The credentials the server accepts.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }
}

/// Serves a cluster over TLS with new credentials.
pub async fn serve(cluster: Cluster, address: SocketAddr) -> Result<Server, ServeError> {
    serve_with(cluster, address, Credentials::generate()?).await
}

/// Serves a cluster over TLS with these credentials.
pub async fn serve_with(
    cluster: Cluster,
    address: SocketAddr,
    credentials: Credentials,
) -> Result<Server, ServeError> {
    let listener =
        TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })?;
    let address = listener.local_addr().map_err(|source| ServeError::Listen { address, source })?;
    let (tls, judge) = credentials.tls()?;
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let door = Arc::new(Door { cluster, token: credentials.token.clone(), judge });
    let mut accepting = JoinSet::new();
    accepting.spawn(accept(listener, acceptor, door));
    Ok(Server { address: reachable(address), credentials, _accepting: accepting })
}

fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The cluster and what opens it.
struct Door {
    cluster: Cluster,
    token: Secret,
    judge: Arc<dyn ClientCertVerifier>,
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, door: Arc<Door>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, acceptor.clone(), door.clone()));
                }
                Err(error) => {
                    // Out of file descriptors, most likely: let others finish first.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, door: Arc<Door>) {
    // Watch frames are small and each matters at once.
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await else {
        return;
    };
    let certified = door.certifies(stream.get_ref().1.peer_certificates().unwrap_or_default());
    let service = service_fn(move |request: Request<Incoming>| {
        let door = door.clone();
        async move { Ok::<_, Infallible>(door.enter(request, certified).await) }
    });
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(HEAD_LIMIT);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEAD_LIMIT as u32)
        .max_concurrent_streams(Some(1000))
        .keep_alive_interval(Some(Duration::from_secs(30)));
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

impl Door {
    async fn enter(self: Arc<Self>, mut request: Request<Incoming>, certified: bool) -> Response<Body> {
        let health = matches!(target(request.uri().path()), Some(Target::Health));
        let user = if certified || health { Some(User::admin()) } else { self.bearer(&request) };
        let Some(user) = user else { return unauthorized() };
        request.extensions_mut().insert(user);
        if matches!(request.method().as_str(), "GET" | "HEAD") {
            return self.cluster.handle(request).await;
        }
        // A write goes on to its end even if the client hangs up.
        let cluster = self.cluster.clone();
        match tokio::spawn(async move { cluster.handle(request).await }).await {
            Ok(response) => response,
            Err(error) => {
                tracing::error!(%error, "a request failed");
                crate::rest::internal("the request failed unexpectedly")
            }
        }
    }

    /// Whether a chain leads to our authority and is valid now; its holder is the owner.
    fn certifies(&self, chain: &[CertificateDer<'_>]) -> bool {
        chain
            .split_first()
            .is_some_and(|(own, others)| self.judge.verify_client_cert(own, others, UnixTime::now()).is_ok())
    }

    /// Who shows this token: the owner, or a service account.
    fn bearer(&self, request: &Request<Incoming>) -> Option<User> {
        let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok())?;
        let token = header.strip_prefix("Bearer ")?.trim();
        if self.token.matches(token) { Some(User::admin()) } else { self.cluster.authenticate(token) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_stands_for_all_is_reached_on_the_local_one() {
        let cases = [
            ("0.0.0.0:6443", "127.0.0.1:6443", None),
            ("[::]:6443", "[::1]:6443", None),
            ("127.0.0.1:1", "127.0.0.1:1", None),
            ("192.0.2.7:1", "192.0.2.7:1", Some("localhost")),
        ];
        for (listen, expected, server_name) in cases {
            let reached = reachable(listen.parse().expect("an address"));
            assert_eq!(reached.to_string(), expected);
            assert_eq!(Credentials::server_name(reached), server_name, "{listen}");
        }
    }
}
