//! What the controller asks of the API, counted on its way there.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use baton_apiserver::{Body as Answer, ClusterService};
use http::{Method, Request, Response};
use http_body::Body as _;
use kube::client::Body;
use parking_lot::Mutex;
use tower::Service;

/// Requests, by what they are about.
#[derive(Debug, Default, Clone)]
pub(crate) struct Counts {
    /// Applications created, and changed.
    pub(crate) creates: usize,
    pub(crate) writes: usize,
    pub(crate) heads: usize,
    /// Writes of the set's status by the rollout side, by phases, and by the generation side.
    pub(crate) views: usize,
    pub(crate) phases: usize,
    pub(crate) statuses: usize,
    /// What phases keep beside the set: ConfigMaps, good states, and annotations of the set.
    pub(crate) details: usize,
    pub(crate) revisions: usize,
    pub(crate) mirrors: usize,
    pub(crate) events: usize,
    pub(crate) lists: usize,
    pub(crate) deletes: usize,
    pub(crate) conflicts: usize,
    /// Bytes of all writes but Events.
    pub(crate) bytes: u64,
    /// The largest write of a status by phases.
    pub(crate) largest: u64,
    /// When an Application or the head of a set was last asked to be written, by the path's last part. Only those are
    /// kept that were named here before.
    pub(crate) moments: BTreeMap<String, Option<Instant>>,
}

/// Passes requests on, and counts them.
#[derive(Clone)]
pub(crate) struct Counted {
    pub(crate) inner: ClusterService,
    pub(crate) counts: Arc<Mutex<Counts>>,
}

impl Counts {
    /// All that was written, Events aside.
    pub(crate) fn all_writes(&self) -> usize {
        self.creates + self.writes + self.deletes + self.heads + self.of_phases() + self.views + self.statuses
    }

    /// What was written because a set has phases.
    pub(crate) fn of_phases(&self) -> usize {
        self.phases + self.details + self.revisions + self.mirrors
    }

    fn count(&mut self, method: &Method, path: &str, query: &str, bytes: u64) {
        let about = |plural: &str| path.contains(&format!("/{plural}"));
        let by = |manager: &str| query.contains(&format!("fieldManager={manager}"));
        let last = path.rsplit('/').next().unwrap_or_default();
        match *method {
            Method::GET => {
                self.lists += usize::from(last == "applications" && !query.contains("watch="));
                return;
            }
            Method::DELETE => self.deletes += 1,
            _ if about("events") => return self.events += 1,
            _ if last == "applications" => self.creates += 1,
            _ if about("applications/") => self.writes += 1,
            _ if about("controllerrevisions") => self.revisions += 1,
            _ if about("configmaps") && by("baton-phases") => self.details += 1,
            _ if about("configmaps") => self.heads += 1,
            _ if last == "status" && by("baton-rollout") => self.views += 1,
            _ if last == "status" && by("baton-phases") => {
                (self.phases, self.largest) = (self.phases + 1, self.largest.max(bytes));
            }
            _ if last == "status" => self.statuses += 1,
            _ if by("baton-phases") => self.mirrors += 1,
            _ => return,
        }
        self.bytes += bytes;
        if let Some(moment) = self.moments.get_mut(last) {
            *moment = Some(Instant::now());
        }
    }
}

impl Service<Request<Body>> for Counted {
    type Response = Response<Answer>;
    type Error = std::convert::Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        <ClusterService as Service<Request<Body>>>::poll_ready(&mut self.inner, context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let uri = request.uri();
        let bytes = request.body().size_hint().exact().unwrap_or(0);
        self.counts.lock().count(request.method(), uri.path(), uri.query().unwrap_or_default(), bytes);
        let (counts, answer) = (self.counts.clone(), self.inner.call(request));
        Box::pin(async move {
            let answer = answer.await?;
            if answer.status() == http::StatusCode::CONFLICT {
                counts.lock().conflicts += 1;
            }
            Ok(answer)
        })
    }
}
