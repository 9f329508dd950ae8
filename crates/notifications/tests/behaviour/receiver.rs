//! A small HTTP server on this machine that keeps what it is sent.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A receiver on this machine that answers each request by its number and target.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    pub(crate) async fn start(answer: impl Fn(usize, &str) -> String + Send + Sync + 'static) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let address = listener.local_addr().expect("a bound socket has an address");
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = requests.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let request = read_request(&mut stream).await;
                let number = seen.lock().len();
                let answer = answer(number, &request);
                seen.lock().push(request);
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Receiver { address, requests }
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }
}

async fn read_request(stream: &mut tokio::net::TcpStream) -> String {
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = stream.read(&mut piece).await.unwrap_or(0);
        text.extend_from_slice(&piece[..count]);
        let shown = String::from_utf8_lossy(&text).into_owned();
        let Some((head, body)) = shown.split_once("\r\n\r\n") else {
            if count == 0 {
                return shown;
            }
            continue;
        };
        let length =
            head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if count == 0 || body.len() >= length.unwrap_or(0) {
            return shown;
        }
    }
}

pub(crate) fn answer(status: u16, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} Whatever\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}
