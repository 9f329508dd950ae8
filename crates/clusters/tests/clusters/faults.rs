//! A wire that fails on demand.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use baton_apiserver::Body as ServerBody;
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use kube::Client;
use parking_lot::Mutex;
use serde_json::json;
use tower::{BoxError, ServiceExt};

/// What the wire does to requests.
#[derive(Clone, Default)]
pub(crate) struct Wire(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    down: bool,
    lagging: bool,
    silent: bool,
    /// Whether discovery is asked for piece by piece, as of an old server.
    plain: bool,
    /// Answers instead of the cluster, as after a restored backup.
    other: Option<baton_apiserver::Cluster>,
    /// Watches opened before the last of these are told that they are too old.
    expiries: u64,
    /// Watches opened before the last cut end.
    cuts: u64,
    /// Path parts and the status they are answered with, and how often.
    refusals: Vec<(String, String, u16, u32)>,
    /// Path parts of writes that are done, but whose answers are lost.
    lost_answers: Vec<String>,
    /// How many writes are still told that somebody else has just created the object.
    races: u32,
    log: Vec<String>,
    waiting: Vec<Waker>,
}

impl Wire {
    /// A client of the cluster behind this wire.
    pub(crate) fn client(&self, cluster: &baton_apiserver::Cluster) -> Client {
        let (wire, cluster) = (self.clone(), cluster.clone());
        let send = tower::service_fn(move |request: Request<kube::client::Body>| {
            let (wire, cluster) = (wire.clone(), cluster.clone());
            async move { wire.send(&cluster, request).await }
        });
        Client::new(send, "default")
    }

    pub(crate) fn set_down(&self, down: bool) {
        self.change(|state| {
            state.down = down;
            state.cuts += u64::from(down);
        });
    }

    /// While it lags, watches tell nothing.
    pub(crate) fn set_lagging(&self, lagging: bool) {
        self.change(|state| state.lagging = lagging);
    }

    /// While it is silent, nothing is ever answered.
    pub(crate) fn set_silent(&self, silent: bool) {
        self.change(|state| {
            state.silent = silent;
            state.lagging = silent;
        });
    }

    /// Ends every open watch.
    pub(crate) fn cut_watches(&self) {
        self.change(|state| state.cuts += 1);
    }

    /// Tells every open watch that it is too old.
    pub(crate) fn expire_watches(&self) {
        self.change(|state| state.expiries += 1);
    }

    /// Makes the server one that cannot tell all its kinds at once.
    pub(crate) fn set_plain(&self) {
        self.change(|state| state.plain = true);
    }

    /// Has another cluster answer from now on.
    pub(crate) fn answer_from(&self, other: &baton_apiserver::Cluster) {
        self.change(|state| {
            state.other = Some(other.clone());
            state.cuts += 1;
        });
    }

    /// Answers the next requests of this method, to paths with this part, with a status.
    pub(crate) fn refuse(&self, method: &str, part: &str, code: u16, times: u32) {
        self.change(|state| state.refusals.push((method.to_owned(), part.to_owned(), code, times)));
    }

    /// Tells the next writes that somebody else has just created the object.
    pub(crate) fn lose_races(&self, times: u32) {
        self.change(|state| state.races = times);
    }

    pub(crate) fn stop_refusing(&self) {
        self.change(|state| state.refusals.clear());
    }

    /// Carries out the next write to a path with this part, and loses its answer.
    pub(crate) fn lose_answer(&self, part: &str) {
        self.change(|state| state.lost_answers.push(part.to_owned()));
    }

    /// The requests since this was last asked, as `METHOD path?query`.
    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().log)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.0.lock();
        change(&mut state);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    async fn send(
        &self,
        cluster: &baton_apiserver::Cluster,
        mut request: Request<kube::client::Body>,
    ) -> Result<Response<Answer>, BoxError> {
        let target = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let lost = {
            let mut state = self.0.lock();
            state.log.push(format!("{} {target}", request.method()));
            if state.down {
                return Err("connection refused".into());
            }
            let method = request.method().as_str();
            let refusal = state.refusals.iter_mut().find(|(known, part, _, times)| {
                known == method && target.contains(part.as_str()) && *times > 0
            });
            if let Some((_, _, code, times)) = refusal {
                *times -= 1;
                return Ok(status(*code, false));
            }
            if state.races > 0 && matches!(method, "PATCH" | "POST") {
                state.races -= 1;
                return Ok(status(409, true));
            }
            let lost =
                state.lost_answers.iter().position(|part| method != "GET" && target.contains(part.as_str()));
            lost.map(|place| state.lost_answers.remove(place)).is_some()
        };
        if self.0.lock().silent {
            return std::future::pending().await;
        }
        let (cuts, expiries, plain, other) = {
            let state = self.0.lock();
            (state.cuts, state.expiries, state.plain, state.other.clone())
        };
        if plain {
            request.headers_mut().insert("accept", http::HeaderValue::from_static("application/json"));
        }
        let cluster = other.as_ref().unwrap_or(cluster);
        let answer = match cluster.service().oneshot(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        if lost {
            return Err("connection reset by peer".into());
        }
        let watch = target.contains("watch=true").then(|| (self.clone(), cuts, expiries));
        Ok(answer.map(|body| Answer::Server { body, watch }))
    }
}

/// A body that stops when the wire does.
pub(crate) enum Answer {
    Server { body: ServerBody, watch: Option<(Wire, u64, u64)> },
    Own(Option<Bytes>),
}

fn status(code: u16, exists: bool) -> Response<Answer> {
    let reason = match code {
        _ if exists => "AlreadyExists",
        410 => "Expired",
        _ => "",
    };
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": format!("refused with {code}")});
    let mut answer = Response::new(Answer::Own(Some(body.to_string().into())));
    *answer.status_mut() = code.try_into().expect("a status");
    answer
}

impl Body for Answer {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let (body, watch) = match self.get_mut() {
            Answer::Own(text) => return Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Answer::Server { body, watch } => (body, watch),
        };
        if let Some((wire, cuts, expiries)) = watch {
            let mut state = wire.0.lock();
            if state.expiries > *expiries {
                *expiries = state.expiries;
                // Nothing follows.
                *cuts = 0;
                state.cuts += 1;
                let line =
                    json!({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}});
                return Poll::Ready(Some(Ok(Frame::data(format!("{line}\n").into()))));
            }
            if state.cuts > *cuts {
                return Poll::Ready(None);
            }
            state.waiting.push(context.waker().clone());
            if state.lagging {
                return Poll::Pending;
            }
        }
        Pin::new(body).poll_frame(context).map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }
}
