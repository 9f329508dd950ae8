//! Connections: nobody holds one for nothing.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// How long the head of a request may take.
const HEAD_TIME: Duration = Duration::from_secs(15);
/// Largest head of a request: a token in twenty cookies fits.
const LARGEST_HEAD: usize = 128 << 10;
/// Most headers of a request.
const MOST_HEADERS: usize = 100;
/// Most connections at once.
const MOST: usize = 4096;

/// Answers until dropped, and with it every connection.
pub async fn serve(listener: TcpListener, router: Router) -> Infallible {
    let places = Arc::new(Semaphore::new(MOST));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else { continue };
        let service = TowerToHyperService::new(router.clone());
        connections.spawn(async move {
            let _ = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .max_buf_size(LARGEST_HEAD)
                .max_headers(MOST_HEADERS)
                .serve_connection(TokioIo::new(stream), service)
                .await;
            drop(place);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    #[tokio::test(start_paused = true)]
    async fn a_head_that_does_not_come_is_not_waited_for_without_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = tokio::spawn(async move { match serve(listener, Router::new()).await {} });
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(b"GET / HTTP/1.1\r\nhost: ").await.expect("sent");
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text).await;
        assert!(text.is_empty() || text.starts_with(b"HTTP/1.1 408"), "{}", text.len());
        server.abort();
    }
}
