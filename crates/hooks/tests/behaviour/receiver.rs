//! A receiver of calls on the loopback interface.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

/// What it answers.
#[derive(Clone)]
pub(crate) enum Answer {
    /// These bytes, and the end.
    Bytes(String),
    /// These bytes, then zeroes for as long as anybody reads.
    Endless(String),
    /// These bytes, then a byte now and then, for ever.
    Drip(String),
    /// Nothing, for ever.
    Silence,
}

/// A running receiver.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    requests: Mutex<Vec<String>>,
    connections: Mutex<usize>,
    closed: Mutex<usize>,
    /// Bytes that were sent after the answer's beginning.
    sent: Mutex<usize>,
    changed: Notify,
}

/// A whole answer.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    Answer::Bytes(format!("HTTP/1.1 {status} Whatever\r\ncontent-length: {length}\r\n{headers}\r\n{body}"))
}

pub(crate) fn ok() -> Answer {
    answer(200, &[], "")
}

impl Receiver {
    /// A receiver that answers by the request's target, in the clear.
    pub(crate) async fn start(route: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Receiver {
        Receiver::start_at("127.0.0.1:0", None, route).await
    }

    pub(crate) async fn start_at(
        address: &str,
        tls: Option<TlsAcceptor>,
        route: impl Fn(&str) -> Answer + Send + Sync + 'static,
    ) -> Receiver {
        let listener = TcpListener::bind(address).await.expect("loopback has free ports");
        let address = listener.local_addr().expect("a bound socket has an address");
        let receiver = Receiver { address, state: Arc::default() };
        let (state, route) = (receiver.state.clone(), Arc::new(route));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (state, route, tls) = (state.clone(), route.clone(), tls.clone());
                *state.connections.lock() += 1;
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                converse(stream, &state, route.as_ref()).await;
                            }
                        }
                        None => converse(stream, &state, route.as_ref()).await,
                    }
                    *state.closed.lock() += 1;
                    state.changed.notify_waiters();
                });
            }
        });
        receiver
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Every request so far: its head in lower case, and its body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.requests.lock().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        *self.state.connections.lock()
    }

    pub(crate) fn sent(&self) -> usize {
        *self.state.sent.lock()
    }

    /// Waits until a request has come.
    pub(crate) async fn asked(&self) {
        self.until(|state| !state.requests.lock().is_empty()).await;
    }

    /// Waits until every connection is closed by the other side.
    pub(crate) async fn closed(&self) {
        self.until(|state| *state.closed.lock() == *state.connections.lock()).await;
    }

    /// How many connections to it the kernel still knows as open.
    pub(crate) fn open_connections(&self) -> usize {
        let table = std::fs::read_to_string("/proc/net/tcp").expect("there is /proc");
        let port = format!(":{:04X}", self.address.port());
        let open = |line: &&str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields.get(2).is_some_and(|remote| remote.ends_with(&port)) && fields.get(3) == Some(&"01")
        };
        table.lines().filter(open).count()
    }

    async fn until(&self, holds: impl Fn(&State) -> bool) {
        loop {
            let changed = self.state.changed.notified();
            if holds(&self.state) {
                return;
            }
            changed.await;
        }
    }
}

async fn converse(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    state: &State,
    route: &(impl Fn(&str) -> Answer + ?Sized),
) {
    let Some(request) = read_request(&mut stream).await else { return };
    let target = request.split_whitespace().nth(1).unwrap_or_default().to_owned();
    state.requests.lock().push(request);
    state.changed.notify_waiters();
    let nothing = [0; 64 << 10];
    match route(&target) {
        Answer::Bytes(bytes) => {
            let _ = stream.write_all(bytes.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
        Answer::Endless(head) => {
            let _ = stream.write_all(head.as_bytes()).await;
            while stream.write_all(&nothing).await.is_ok() {
                *state.sent.lock() += nothing.len();
            }
        }
        Answer::Drip(head) => {
            let _ = stream.write_all(head.as_bytes()).await;
            while stream.write_all(b"x").await.is_ok() {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        }
        Answer::Silence => {
            let mut byte = [0];
            while matches!(stream.read(&mut byte).await, Ok(1..)) {}
        }
    }
}

/// A request with its body, as far as its length says.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\n") {
        seen.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(seen).ok()?;
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(head + &String::from_utf8(body).ok()?)
}
