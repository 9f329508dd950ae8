//! The proxy on a port, behind TLS and its token.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use kube::Client;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::counts::Counts;
use crate::door::{Door, reachable};
use crate::fate::Faults;
use crate::proxy::Before;

/// How long a client may take for the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a connection may stay without a whole request head; clients keep idle ones for as long.
const HEAD_TIMEOUT: Duration = Duration::from_secs(90);
/// Most bytes in the head of a request.
const HEAD_LIMIT: usize = 64 * 1024;
/// Most connections at once; others wait to be accepted.
const CONNECTIONS: usize = 1000;

/// A proxy that cannot start.
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
    /// No certificate can be made.
    #[error("certificates: {0}")]
    Certificates(String),
}

/// A proxy being served. Dropping it closes the port and every connection.
pub struct Proxy {
    address: SocketAddr,
    door: Arc<Door>,
    before: Arc<Before>,
    _accepting: JoinSet<()>,
}

impl Proxy {
    /// Where clients on this machine reach it.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// A kubeconfig whose holder may do through the proxy what the proxy may do. It holds a token: write it where only
    /// its owner can read.
    pub fn kubeconfig(&self) -> String {
        self.door.kubeconfig(self.address)
    }

    /// What happened so far.
    pub fn counts(&self) -> Counts {
        self.before.counts()
    }
}

/// Serves a proxy before a cluster. The client must not retry what fails, nor give up a watch that is silent.
pub async fn serve(cluster: Client, faults: Faults, address: SocketAddr) -> Result<Proxy, ServeError> {
    let failed = |source| ServeError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = reachable(listener.local_addr().map_err(failed)?);
    let (door, tls) = Door::new(address)?;
    let (door, before) = (Arc::new(door), Arc::new(Before::new(cluster, faults)));
    let mut accepting = JoinSet::new();
    accepting.spawn(accept(listener, TlsAcceptor::from(Arc::new(tls)), door.clone(), before.clone()));
    Ok(Proxy { address, door, before, _accepting: accepting })
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, door: Arc<Door>, before: Arc<Before>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = connection(stream, acceptor.clone(), door.clone(), before.clone());
                connections.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            Err(error) => {
                // Out of file descriptors, most likely: let others finish first.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, door: Arc<Door>, before: Arc<Before>) {
    // Watch frames are small and each matters at once.
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await else {
        return;
    };
    let service = service_fn(move |request: Request<Incoming>| {
        let (door, before) = (door.clone(), before.clone());
        async move {
            Ok::<_, Infallible>(match door.knows(request.headers()) {
                true => before.answer(request).await,
                false => before.stranger(),
            })
        }
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
