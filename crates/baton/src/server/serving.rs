//! Connections of people and programs: nobody holds one for nothing, and those that are at work may finish.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderValue, Request, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::patience::{Impatient, Work};

/// How long the head of a request or the handshake of TLS may take.
const HEAD_TIME: Duration = Duration::from_secs(15);
/// Largest head of a request: a token in twenty cookies fits.
const LARGEST_HEAD: usize = 128 << 10;
/// Most headers of a request.
const MOST_HEADERS: usize = 100;
/// Most requests at once on one connection.
const MOST_STREAMS: u32 = 100;
/// Most connections at once.
const MOST: usize = 4096;
/// How long requests that are at work at the end have for it.
const GRACE: Duration = Duration::from_secs(3);
/// How long nothing is accepted after the system would not.
const REST: Duration = Duration::from_millis(100);

/// What is spoken beneath HTTP.
#[derive(Clone)]
pub(crate) enum Transport {
    /// Nothing, for a machine's own use or behind what speaks TLS.
    Plain,
    /// TLS.
    Tls(TlsAcceptor),
}

/// Answers until `shutdown` is done, and then lets what is at work finish for a moment.
pub(crate) async fn serve(
    listener: TcpListener,
    transport: Transport,
    router: Router,
    shutdown: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(MOST));
    let (stop, _) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let next = async {
            let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            next = next => next,
            () = &mut shutdown => break,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) => {
                let (transport, router, stop) = (transport.clone(), router.clone(), stop.subscribe());
                connections.spawn(async move {
                    connection(stream, transport, router, stop).await;
                    drop(place);
                });
            }
            Err(error) => {
                // Out of file descriptors, most likely: let others finish first.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(REST).await;
            }
        }
    }
    drop(listener);
    stop.send_replace(true);
    let finished = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(GRACE, finished).await;
}

async fn connection(stream: TcpStream, transport: Transport, router: Router, stop: watch::Receiver<bool>) {
    // Lines of streams are small and each matters at once.
    let _ = stream.set_nodelay(true);
    match transport {
        Transport::Plain => talk(stream, router, stop).await,
        Transport::Tls(acceptor) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HEAD_TIME, acceptor.accept(stream)).await {
                talk(stream, router, stop).await;
            }
        }
    }
}

async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    mut stop: watch::Receiver<bool>,
) {
    let work = Work::new();
    let worked = work.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        name_host(&mut request);
        worked.clone().on(router.clone().oneshot(request))
    });
    let mut server = auto::Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(LARGEST_HEAD)
        .max_headers(MOST_HEADERS);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(LARGEST_HEAD as u32)
        .max_concurrent_streams(Some(MOST_STREAMS))
        .keep_alive_interval(Some(Duration::from_secs(30)));
    let mut connection =
        std::pin::pin!(server.serve_connection(TokioIo::new(Impatient::new(stream)), service));
    let idles = tokio::select! {
        _ = connection.as_mut() => return,
        _ = stop.wait_for(|stop| *stop) => false,
        // HTTP/1 has a time of its own; here it is HTTP/2 on which nobody asks for anything.
        () = work.idle() => true,
    };
    connection.as_mut().graceful_shutdown();
    if idles {
        let _ = tokio::time::timeout(HEAD_TIME, connection).await;
        return;
    }
    let _ = connection.await;
}

/// Puts the host where HTTP/1 has it: by it pages of ours are told from those of others.
fn name_host(request: &mut Request<Incoming>) {
    if request.headers().contains_key(header::HOST) {
        return;
    }
    let host = request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    if let Some(host) = host {
        request.headers_mut().insert(header::HOST, host);
    }
}
