//! From a URL to a connection, past the guard.
//!
//! A name is resolved once for a connection, every address is judged, and exactly those addresses are connected to.
//! There is no second look-up in between, so a name that changes its mind (DNS rebinding) gains nothing. Nothing is
//! pooled: a connection belongs to one exchange and ends with it.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::{Host, Url};

use super::allow::{AllowList, Places};
use super::tls::Trust;
use crate::outcome::{Fault, Reason};

/// How long an address is tried before the next one is.
const NEXT_ADDRESS: Duration = Duration::from_secs(10);

/// Finds the addresses of hosts.
pub trait Resolve: Send + Sync {
    /// The addresses of a host name.
    fn resolve<'a>(
        &'a self,
        host: &'a str,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;
}

/// Asks the system, as every program on the machine does.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

/// Opens connections to where calls may go.
///
/// # Guarantees
/// No address is connected to that the allow-list does not admit: names are resolved once, and the judged address is
/// the one connected to.
pub struct Connector {
    allow: AllowList,
    places: Places,
    resolver: Arc<dyn Resolve>,
    trust: Trust,
}

pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

// === impl SystemResolver ===

impl Resolve for SystemResolver {
    fn resolve<'a>(
        &'a self,
        host: &'a str,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>> {
        Box::pin(async move {
            Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
        })
    }
}

// === impl Connector ===

impl Connector {
    /// A connector that admits these addresses, finds hosts so, and trusts the machine's authorities and those of a
    /// PEM file beside them.
    ///
    /// # Errors
    /// The file cannot be read or holds no certificate.
    pub fn new(
        allow: AllowList,
        places: Places,
        resolver: Arc<dyn Resolve>,
        authorities: Option<&Path>,
    ) -> io::Result<Connector> {
        Ok(Connector { allow, places, resolver, trust: Trust::new(authorities)? })
    }

    /// Connects to a URL's host and port, in the clear whatever its scheme.
    ///
    /// # Errors
    /// The host cannot be found, may not be called or does not answer.
    pub async fn open(&self, url: &Url) -> Result<TcpStream, Fault> {
        let addresses = self.addresses(url).await?;
        let stream = connect_to_first(url, &addresses).await?;
        // Calls are one small request: waiting to fill a packet only delays it.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    /// Speaks TLS over a connection that was opened to the URL's host, for another protocol than HTTP.
    ///
    /// # Errors
    /// The peer's certificate or TLS is not good.
    pub async fn secure<S: AsyncRead + AsyncWrite + Send + Unpin>(
        &self,
        url: &Url,
        stream: S,
        insecure: bool,
    ) -> Result<TlsStream<S>, Fault> {
        let mut config = ClientConfig::clone(&self.trust.config(insecure));
        config.alpn_protocols.clear();
        let name = server_name(url)?;
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .map_err(|fault| broken_tls(url, &fault))
    }

    /// Connects to a URL's host, with TLS where its scheme is https.
    pub(crate) async fn connect(&self, url: &Url, insecure: bool) -> Result<Box<dyn Stream>, Fault> {
        let stream = self.open(url).await?;
        if url.scheme() == "http" {
            return Ok(Box::new(stream));
        }
        let name = server_name(url)?;
        let config = self.trust.config(insecure);
        let stream = TlsConnector::from(config)
            .connect(name, stream)
            .await
            .map_err(|fault| broken_tls(url, &fault))?;
        Ok(Box::new(stream))
    }

    /// The addresses a URL leads to, each of them judged. One that leads inward makes all of them suspect.
    async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, Fault> {
        let port = url.port_or_known_default().unwrap_or(443);
        let (host, found) = match url.host() {
            Some(Host::Ipv4(address)) => (address.to_string(), vec![SocketAddr::new(address.into(), port)]),
            Some(Host::Ipv6(address)) => (address.to_string(), vec![SocketAddr::new(address.into(), port)]),
            Some(Host::Domain(host)) => (host.to_owned(), self.look_up(host, port).await?),
            None => return Err(Fault::new(Reason::Invalid, "the URL has no host")),
        };
        for address in &found {
            self.allow.check(&host, address.ip()).map_err(|inward| {
                let message = format!(
                    "{} may not be called: {host} is at {}, which {}; the operator can allow it with \
                     --hooks-allow",
                    origin(url),
                    address.ip(),
                    inward.describe()
                );
                Fault::new(Reason::AddressNotAllowed, message)
            })?;
        }
        Ok(found)
    }

    async fn look_up(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Fault> {
        if let Some(places) = self.places.of(host) {
            let socket =
                |place: &super::allow::Place| SocketAddr::new(place.address, place.port.unwrap_or(port));
            return Ok(places.iter().map(socket).collect());
        }
        let found = self.resolver.resolve(host).await.map_err(|fault| {
            Fault::new(Reason::NameNotFound, format!("the host {host} could not be resolved: {fault}"))
        })?;
        if found.is_empty() {
            return Err(Fault::new(Reason::NameNotFound, format!("the host {host} has no address")));
        }
        Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }
}

async fn connect_to_first(url: &Url, addresses: &[SocketAddr]) -> Result<TcpStream, Fault> {
    let mut last = None;
    for (index, address) in addresses.iter().enumerate() {
        let connecting = TcpStream::connect(address);
        // One that does not answer must not use up the time of the others; the last may take what is left of it.
        let connected = if index + 1 < addresses.len() {
            let late = |_| Err(io::ErrorKind::TimedOut.into());
            tokio::time::timeout(NEXT_ADDRESS, connecting).await.unwrap_or_else(late)
        } else {
            connecting.await
        };
        match connected {
            Ok(stream) => return Ok(stream),
            Err(fault) => last = Some(fault),
        }
    }
    let why = last.map_or_else(String::new, |fault| format!(": {fault}"));
    Err(Fault::new(Reason::ConnectionFailed, format!("no connection to {}{why}", origin(url))))
}

fn broken_tls(url: &Url, fault: &io::Error) -> Fault {
    Fault::new(Reason::TlsFailed, format!("TLS with {} failed: {fault}", origin(url)))
}

fn server_name(url: &Url) -> Result<ServerName<'static>, Fault> {
    let name = match url.host() {
        Some(Host::Domain(host)) => ServerName::try_from(host.to_owned()).ok(),
        Some(Host::Ipv4(address)) => Some(ServerName::from(IpAddr::V4(address))),
        Some(Host::Ipv6(address)) => Some(ServerName::from(IpAddr::V6(address))),
        None => None,
    };
    name.ok_or_else(|| Fault::new(Reason::Invalid, "the URL's host is no name a certificate can have"))
}

/// What of a URL may be shown. Paths and queries of webhooks are often the credential itself.
pub fn origin(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{}://{host}:{port}", url.scheme()),
        None => format!("{}://{host}", url.scheme()),
    }
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").field("allow", &self.allow).finish_non_exhaustive()
    }
}
