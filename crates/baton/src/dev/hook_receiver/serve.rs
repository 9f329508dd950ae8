//! Taking calls.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::Timestamp;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::answers::Answers;
use super::journal::{Call, History, Journal, Tls, of_note};

/// Bodies of hooks are at most a quarter of this.
const LONGEST_BODY: usize = 1 << 20;
/// How long a caller may take to say hello, and to send its headers.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) struct Receiver {
    pub(super) answers: Answers,
    pub(super) journal: Journal,
    pub(super) history: History,
}

/// Takes calls until dropped.
pub(super) async fn serve(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    receiver: Arc<Receiver>,
) -> Infallible {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (acceptor, receiver) = (acceptor.clone(), receiver.clone());
        tokio::spawn(async move { take(stream, acceptor, receiver).await });
    }
}

async fn take(stream: TcpStream, acceptor: TlsAcceptor, receiver: Arc<Receiver>) {
    let stream = match tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::warn!("a caller turned away before it called: {error}"),
        Err(_) => return,
    };
    let (_, connection) = stream.get_ref();
    let tls = Tls {
        version: connection.protocol_version().map(|version| format!("{version:?}")).unwrap_or_default(),
        server_name: connection.server_name().unwrap_or_default().to_owned(),
    };
    let service = service_fn(|request| answer(receiver.clone(), tls.clone(), request));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service);
    // A caller that hangs up has told what it had to tell.
    let _ = served.await;
}

async fn answer(
    receiver: Arc<Receiver>,
    tls: Tls,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    // A caller that hangs up while its answer waits has called all the same: its line is not to be lost with it.
    let status = tokio::spawn(receive(receiver, tls, request)).await;
    let mut response = Response::new(Full::new(Bytes::from_static(b"{}\n")));
    *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(response)
}

async fn receive(receiver: Arc<Receiver>, tls: Tls, request: Request<Incoming>) -> StatusCode {
    let number = receiver.journal.number();
    let time = Timestamp::now().to_string();
    let came_at = receiver.history.now().await;
    let (head, body) = request.into_parts();
    let host = head.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let path = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let name = host.split(':').next().unwrap_or(host).to_ascii_lowercase();
    let (mut status, after) = receiver.answers.to(&name, &path);
    let body = match Limited::new(body, LONGEST_BODY).collect().await {
        Ok(body) => String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        Err(_) => {
            status = StatusCode::PAYLOAD_TOO_LARGE;
            String::new()
        }
    };
    tokio::time::sleep(after).await;
    let call = Call {
        number,
        time,
        method: head.method.to_string(),
        host: host.to_owned(),
        path,
        headers: of_note(&head.headers),
        body,
        tls,
        status: status.as_u16(),
        came_at,
        answered_at: receiver.history.now().await,
    };
    receiver.journal.tell(&call);
    status
}
