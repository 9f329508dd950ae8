//! Kubernetes clients that do not wait for ever.
//!
//! kube's watcher times out when an open watch falls silent, but not when the answer to its request never begins. So
//! every request gets a limit for the time until the head of its answer is there.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use kube::client::Body;
use kube::{Client, Config};
use tower::{BoxError, Layer, Service};

/// Time until the head of an answer must be there.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// An answer that did not begin in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the Kubernetes API did not begin to answer within {} s", .0.as_secs())]
pub struct HeadTimedOut(pub Duration);

/// Adds the limit to a service.
#[derive(Debug, Clone, Copy)]
pub struct HeadTimeoutLayer(pub Duration);

/// A service whose answers begin in time or fail.
#[derive(Debug, Clone)]
pub struct HeadTimeout<S> {
    inner: S,
    limit: Duration,
}

/// A client of the cluster that `config` names.
///
/// # Errors
/// If the configuration cannot be used, for example for its certificates.
pub fn connect(config: Config) -> Result<Client, kube::Error> {
    Ok(bounded(Client::try_from(config)?))
}

/// The same client with the limit. A client that has it already is as good as before.
pub fn bounded(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let send = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move { client.send(request).await }
    });
    Client::new(HeadTimeoutLayer(HEAD_TIMEOUT).layer(send), namespace)
}

// === impl HeadTimeoutLayer ===

impl<S> Layer<S> for HeadTimeoutLayer {
    type Service = HeadTimeout<S>;

    fn layer(&self, inner: S) -> HeadTimeout<S> {
        HeadTimeout { inner, limit: self.0 }
    }
}

// === impl HeadTimeout ===

impl<S, B> Service<Request<Body>> for HeadTimeout<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (limit, answer) = (self.limit, self.inner.call(request));
        Box::pin(async move {
            match tokio::time::timeout(limit, answer).await {
                Ok(answer) => answer.map_err(Into::into),
                Err(_) => Err(HeadTimedOut(limit).into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Api;

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_never_begins_is_an_error() {
        let silent = tower::service_fn(|_: Request<Body>| {
            std::future::pending::<Result<Response<Body>, std::convert::Infallible>>()
        });
        let client = bounded(Client::new(silent, "default"));
        let answer = Api::<ConfigMap>::namespaced(client, "default").get("any").await;
        let error = answer.expect_err("no answer");
        let mut causes =
            std::iter::successors(Some(&error as &dyn std::error::Error), |cause| cause.source());
        assert!(causes.any(|cause| cause.to_string().contains("within 30 s")), "{error:?}");
    }
}
