//! A watch whose events come late and in order, and that may be cut.

use std::convert::Infallible;
use std::time::Duration;

use baton_apiserver::Body as Answer;
use bytes::Bytes;
use futures::StreamExt;
use http::Response;
use http_body_util::{BodyExt, StreamBody};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Fault, Wire};
use crate::dice::Dice;

type Frame = Result<http_body::Frame<Bytes>, Infallible>;

/// The same answer, whose parts come late and in order, until it is cut.
pub(super) fn late(wire: &Wire, answer: Response<Answer>, mut dice: Dice) -> Response<Answer> {
    let (head, body) = answer.into_parts();
    let weather = &wire.air.weather;
    let most = u64::try_from(weather.lag.as_millis()).unwrap_or(u64::MAX);
    // Some streams are prompt, so that others are late beside them.
    let own = if dice.chance(30) { 0 } else { dice.below(most) };
    let longest = weather.cut.filter(|_| !wire.air.is_calm());
    let cut = longest.map(|longest| {
        let longest = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
        Instant::now() + Duration::from_millis(dice.between(500, longest))
    });
    let (send, receive) = mpsc::unbounded_channel();
    tokio::spawn(pump(body, send, wire.clone(), own, dice));
    let frames = futures::stream::unfold((receive, wire.clone()), move |(mut receive, wire)| async move {
        let next = async {
            let (frame, due): (Frame, Instant) = receive.recv().await?;
            tokio::time::sleep_until(due).await;
            wire.life.moves().await;
            Some(frame)
        };
        let frame = tokio::select! {
            biased;
            () = is_cut(&wire, cut) => None,
            frame = next => frame,
        };
        frame.map(|frame| (frame, (receive, wire)))
    });
    Response::from_parts(head, StreamBody::new(frames.boxed()).boxed_unsync())
}

/// Waits until the watch is cut, if it ever is.
async fn is_cut(wire: &Wire, cut: Option<Instant>) {
    match cut {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
    wire.life.moves().await;
    if wire.air.is_calm() || wire.life.is_over() {
        return std::future::pending().await;
    }
    wire.count(Fault::WatchCut);
}

/// Notes when each part was sent and when it is to arrive.
async fn pump(
    mut body: Answer,
    send: mpsc::UnboundedSender<(Frame, Instant)>,
    wire: Wire,
    own: u64,
    mut dice: Dice,
) {
    let mut last = Instant::now();
    loop {
        let frame = tokio::select! {
            biased;
            () = send.closed() => return,
            frame = body.frame() => frame,
        };
        let Some(frame) = frame else { return };
        if wire.life.is_over() {
            return;
        }
        let delay = if wire.air.is_calm() { 0 } else { own + dice.below(own / 4 + 1) };
        if delay > 0 {
            wire.count(Fault::Late);
        }
        last = last.max(Instant::now() + Duration::from_millis(delay));
        if send.send((frame, last)).is_err() {
            return;
        }
    }
}
