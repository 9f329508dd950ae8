//! Connections whose other end has to go on: nobody holds one by saying nothing, by taking nothing, or by asking for nothing.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// How long the other end has to say which HTTP it speaks.
const FIRST: Duration = Duration::from_secs(15);
/// How much it says for that: the preface of HTTP/2. Whoever has said as much is judged by what comes of it.
const PREFACE: usize = 24;
/// How long it may take nothing of what is sent.
const STALLED: Duration = Duration::from_secs(30);
/// How long a connection is kept on which nothing is asked for.
const IDLE: Duration = Duration::from_secs(120);

/// A connection that fails with `TimedOut` where its other end does not go on.
pub(super) struct Impatient<S> {
    stream: S,
    heard: usize,
    first: Pin<Box<Sleep>>,
    stalled: Option<Pin<Box<Sleep>>>,
}

/// What is at work on a connection.
#[derive(Debug, Clone)]
pub(super) struct Work(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    requests: AtomicUsize,
    /// When the last one ended.
    rested: Mutex<Instant>,
}

/// A request at work, until the last of its answer is on its way.
struct Request(Work);

/// The body of an answer, and that it is at work.
struct Worked {
    body: Body,
    _request: Request,
}

// === impl Impatient ===

impl<S> Impatient<S> {
    pub(super) fn new(stream: S) -> Impatient<S> {
        Impatient { stream, heard: 0, first: Box::pin(sleep(FIRST)), stalled: None }
    }

    /// Passes on what came of a write, and gives up where nothing has come for too long.
    fn sent<T>(&mut self, context: &mut Context<'_>, came: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if came.is_ready() {
            self.stalled = None;
            return came;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(STALLED)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let came = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.heard = self.heard.saturating_add(buffer.filled().len() - before);
        if came.is_ready() || self.heard >= PREFACE {
            return came;
        }
        ready!(self.first.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let came = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.sent(context, came)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let came = Pin::new(&mut self.stream).poll_flush(context);
        self.sent(context, came)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let came = Pin::new(&mut self.stream).poll_shutdown(context);
        self.sent(context, came)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        all: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let came = Pin::new(&mut self.stream).poll_write_vectored(context, all);
        self.sent(context, came)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

// === impl Work ===

impl Work {
    pub(super) fn new() -> Work {
        Work(Arc::new(Inner { requests: AtomicUsize::new(0), rested: Mutex::new(Instant::now()) }))
    }

    /// Makes an answer, and counts as work until it was sent.
    pub(super) async fn on<E>(
        self,
        answer: impl Future<Output = Result<Response, E>>,
    ) -> Result<Response, E> {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
        let request = Request(self);
        Ok(answer.await?.map(|body| Body::new(Worked { body, _request: request })))
    }

    /// Returns once there was nothing to do for long.
    pub(super) async fn idle(&self) {
        loop {
            let rested = *self.0.rested.lock();
            let left = match self.0.requests.load(Ordering::Relaxed) {
                0 => IDLE.saturating_sub(rested.elapsed()),
                _ => IDLE,
            };
            if left.is_zero() {
                return;
            }
            sleep(left).await;
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        *self.0.0.rested.lock() = Instant::now();
        self.0.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

impl hyper::body::Body for Worked {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_is_not_listened_to_for_ever() {
        for said in ["", "PRI * HTTP/2.0\r\n"] {
            let (mut other, own) = duplex(100);
            other.write_all(said.as_bytes()).await.expect("sent");
            let begun = Instant::now();
            let mut heard = Vec::new();
            let error = Impatient::new(own).read_to_end(&mut heard).await.expect_err("it is cut off");
            assert_eq!((error.kind(), begun.elapsed()), (io::ErrorKind::TimedOut, FIRST), "{said}");
            assert_eq!(heard, said.as_bytes());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_said_something_may_think() {
        let (mut other, own) = duplex(100);
        let mut own = Impatient::new(own);
        other.write_all(&[b'x'; PREFACE]).await.expect("sent");
        own.read_exact(&mut [0; PREFACE]).await.expect("heard");
        sleep(FIRST * 3).await;
        assert!(tokio::time::timeout(FIRST, own.read_u8()).await.is_err(), "it is waited for");
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_gets_nothing_more() {
        let (mut other, own) = duplex(10);
        let mut own = Impatient::new(own);
        let writing = tokio::spawn(async move { own.write_all(&[0; 100]).await });
        // While something is taken now and then, it goes on.
        for _ in 0..3 {
            sleep(STALLED - Duration::from_secs(1)).await;
            other.read_exact(&mut [0; 10]).await.expect("taken");
        }
        let begun = Instant::now();
        let error = writing.await.expect("no panic").expect_err("it is cut off");
        assert_eq!((error.kind(), begun.elapsed()), (io::ErrorKind::TimedOut, STALLED));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_rests_only_once_its_last_answer_was_sent() {
        let work = Work::new();
        let answer = async { Ok::<_, std::convert::Infallible>(Response::new(Body::from("x"))) };
        let Ok(answer) = work.clone().on(answer).await;
        assert!(tokio::time::timeout(IDLE * 3, work.idle()).await.is_err(), "it is being sent");
        let sent = Instant::now();
        drop(answer);
        work.idle().await;
        assert!((IDLE..IDLE * 2).contains(&sent.elapsed()), "{:?}", sent.elapsed());
    }
}
